"""A folder per speaker: `<root>/<speaker>/<anything>.wav`, nested as deep as you like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from veilmeter.core.errors import Problem
from veilmeter.data.corpus import Utterance, clean_id
from veilmeter.data.formats.walk import Walk, sample


def recognise(root: Path) -> bool:
    return any(len(path.relative_to(root).parts) > 1 for path in sample(root))


def read(
    root: Path, *, roots: Sequence[Path] = (), part: str | None = None, suffix: str | None = None
) -> tuple[list[Utterance], list[Problem]]:
    """The id is the path below the root without its extension, so that a copy in another format has the same ids."""
    walk = Walk(root, roots)
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
        utterances.append(Utterance(clean_id(name), clean_id(below.parts[0]), path))
    return utterances, walk.problems
