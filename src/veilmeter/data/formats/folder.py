"""A folder per speaker: `<root>/<speaker>/<anything>.wav`, nested as deep as you like."""

from __future__ import annotations

from pathlib import Path

from veilmeter.core.errors import Problem
from veilmeter.data.corpus import Utterance
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, Walk, sample


def recognizes(root: Path) -> bool:
    return root.is_dir() and any(len(path.relative_to(root).parts) > 1 for path in sample(root))


def read(root: Path, options: ReadOptions) -> Reading:
    """The id is the path below the root without its extension, so that a copy in another format has the same ids."""
    walk = Walk(root, options.roots)
    utterances = []
    for path in walk:
        below = path.relative_to(root)
        if len(below.parts) == 1:
            what = "it lies in no speaker's folder"
            walk.problems.append(
                Problem("no-speaker", what, str(path), fix="move it into a folder named by the speaker")
            )
            continue
        name = below.with_suffix("").as_posix()
        utterances.append(Utterance(name, below.parts[0], path))
    return Reading(utterances, walk.problems)


LAYOUT = Layout(recognizes, read, Evidence.FOLDERS, frozenset({"roots"}))
