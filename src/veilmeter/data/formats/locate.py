"""Where a path in a list leads: the one place that decides which files a list may name.

A relative path is sought below given folders and must stay there, links followed. An absolute path leads where the
list's author says: that is how Kaldi's recipes and companies' tables name audio. `roots` confines both: then nothing
that lies outside the corpus's folder and these is taken, which is what a stranger's list deserves. Formats of the hub,
where a table travels with its audio, may not name absolute paths at all without `roots`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def locate(
    value: str, folder: Path, roots: Sequence[Path] = (), *, more: Sequence[Path] = (), absolute: bool = True
) -> Path | tuple[str, str]:
    """The regular file that `value` names, or the kind of what is wrong and the words for it.

    Relative paths are sought below `folder`, then below each of `more`.
    """
    confined = [os.path.realpath(root) for root in (folder, *roots)] if roots else None
    if "\0" in value or not value:
        return "bad-line", "this is no path"
    if os.path.isabs(value):
        if confined is None and not absolute and not inside(os.path.realpath(value), [os.path.realpath(folder)]):
            return "outside-root", "it leads out of its folder; give the folder with --root if you trust it"
        if not os.path.isfile(value):
            return "missing-audio", "there is no such file"
        if confined is not None and not inside(os.path.realpath(value), confined):
            return "outside-root", "it lies outside the folders given with --root"
        return Path(value)
    outside = False
    for base in (folder, *more):
        path = base / value
        if path.is_file():
            if inside(os.path.realpath(path), confined or [os.path.realpath(base)]):
                return path
            outside = True
    if outside or not inside(os.path.realpath(folder / value), [os.path.realpath(base) for base in (folder, *more)]):
        return "outside-root", "it leads out of its folder; give the folder with --root if you trust it"
    return "missing-audio", "there is no such file"


def inside(real: str, allowed: Sequence[str]) -> bool:
    """Whether a path without links lies below one of the folders (without links too)."""
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in allowed)
