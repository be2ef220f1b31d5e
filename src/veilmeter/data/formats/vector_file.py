"""What a reader found in a file of vectors, before it is judged: the one place that decides about bad vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.embeddings import Embeddings

Vectors = NDArray[np.float32] | Sequence[NDArray[np.float32]]


@dataclass(slots=True)
class Found:
    """Ids and vectors as they stand in the file. An empty string among `speakers` or `attributes` means unknown.

    `vectors` is a table, or a list where the lengths may differ. `problems` are what the reader itself left out.
    """

    path: Path
    utterances: list[str]
    vectors: Vectors
    speakers: list[str] | None = None
    attributes: dict[str, list[str]] = field(default_factory=dict)
    durations: NDArray[np.float64] | None = None
    problems: list[Problem] = field(default_factory=list)
    places: list[tuple[str, int]] | None = None  # file and line of each utterance, where lines exist


@dataclass(frozen=True, slots=True)
class Loaded:
    """The usable vectors, and everything that was left out and why."""

    embeddings: Embeddings
    problems: tuple[Problem, ...]

    def warnings(self) -> list[str]:
        """One sentence for each kind of problem, with a count and the first of its kind."""
        kinds: dict[str, list[Problem]] = {}
        for problem in self.problems:
            kinds.setdefault(problem.kind, []).append(problem)
        return [
            f"{problems[0].path}: left out {len(problems)} ({kind}), the first: {problems[0].what}"
            for kind, problems in kinds.items()
        ]


def judge(found: Found) -> Loaded:
    """Keep what can be used; name and count the rest. Raises only where nothing is left.

    The decisions: the most frequent vector length is the right one; of an id that is there twice the first stays; a
    vector that is zero or not finite, or whose speaker is unknown, goes.
    """
    n = len(found.utterances)
    if n == 0:
        _raise_or(found, "there are no vectors in it")
    if found.speakers is None:
        raise InputError(
            "nothing says who speaks in these utterances",
            path=found.path,
            fix="put a Kaldi file utt2spk beside it, or in a folder meta/",
        )
    problems = list(found.problems)
    keep = np.ones(n, bool)

    def leave_out(row: int, kind: str, what: str, fix: str) -> None:
        keep[row] = False
        path, line = found.places[row] if found.places is not None else (str(found.path), None)
        problems.append(Problem(kind, what, path, line, fix))

    texts = (found.utterances, found.speakers, *found.attributes.values())
    if not all(_sound(column) for column in texts) or "" in found.utterances:
        for row in range(n):
            if not found.utterances[row] or not _sound([column[row] for column in texts]):
                what = f"the id or another text of utterance {row + 1} is empty or no Unicode text"
                leave_out(row, "bad-id", what, "write the file anew with ids in UTF-8")
    dimension = _usual_length(found.vectors)
    if isinstance(found.vectors, list | tuple):
        for row, vector in enumerate(found.vectors):
            if len(vector) != dimension and keep[row]:
                what = f"the vector of {found.utterances[row]!r} has {len(vector)} numbers, most have {dimension}"
                leave_out(row, "differing-length", what, "extract it again with the same extractor")
    seen: set[str] = set()
    for row, utterance in enumerate(found.utterances):
        if utterance in seen and keep[row]:
            what = f"utterance {utterance!r} is there twice"
            leave_out(row, "same-id-twice", what, "give every utterance its own id; the first one was kept")
        seen.add(utterance)
    for row, speaker in enumerate(found.speakers):
        if not speaker and keep[row]:
            what = f"the speaker of utterance {found.utterances[row]!r} is not known"
            leave_out(row, "no-speaker", what, "add the utterance to utt2spk")
    if isinstance(found.vectors, np.ndarray):
        table = found.vectors
    else:
        table = np.zeros((n, dimension), np.float32)
        for row in np.flatnonzero(keep).tolist():
            table[row] = found.vectors[row]
    for row, kind, what in _bad_rows(table, found.utterances):
        if keep[row]:
            leave_out(row, kind, what, "leave the utterance out or extract it again")
    if not keep.any():
        _raise_or(found, "none of its vectors can be used", problems)
    everything = bool(keep.all())
    rows = np.flatnonzero(keep)

    def part(column: list[str]) -> list[str]:
        return column if everything else [column[row] for row in rows]

    return Loaded(
        Embeddings(
            table if everything else table[rows],
            part(found.utterances),
            part(found.speakers),
            {key: part(column) for key, column in found.attributes.items()},
            found.durations if everything or found.durations is None else found.durations[rows],
            str(found.path),
        ),
        tuple(problems),
    )


def _raise_or(found: Found, what: str, problems: Sequence[Problem] = ()) -> None:
    first = next(iter([*found.problems, *problems]), None)
    if first is None:
        raise InputError(what, path=found.path)
    raise InputError(f"{what}; {first.what}", path=first.path, line=first.line, fix=first.fix or None)


def _sound(texts: Sequence[str]) -> bool:
    """Whether it can be written: broken files give strings with halves of characters."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _usual_length(vectors: Vectors) -> int:
    if isinstance(vectors, np.ndarray):
        return int(vectors.shape[1])
    lengths, counts = np.unique([len(vector) for vector in vectors], return_counts=True)
    return int(lengths[np.argmax(counts)])


def _bad_rows(table: NDArray[np.float32], utterances: Sequence[str]) -> list[tuple[int, str, str]]:
    """Rows that are zero or not finite, looked at in pieces: the table may be larger than memory."""
    bad: list[tuple[int, str, str]] = []
    for start in range(0, len(table), 65536):
        piece = np.asarray(table[start : start + 65536])
        with np.errstate(over="ignore", invalid="ignore"):
            squared = np.einsum("ij,ij->i", piece, piece, dtype=np.float64)
        for offset in np.flatnonzero(~np.isfinite(squared)):
            row = start + int(offset)
            bad.append((row, "not-finite", f"the vector of {utterances[row]!r} has numbers that are not finite"))
        for offset in np.flatnonzero(squared == 0):
            row = start + int(offset)
            bad.append((row, "zero-vector", f"the vector of {utterances[row]!r} is zero"))
    return bad
