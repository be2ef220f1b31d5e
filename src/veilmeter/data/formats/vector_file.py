"""Vectors as read from a file, before they are checked: the one place that decides about invalid vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.findings import Finding, Reference, file_reference, warning
from veilmeter.data.embeddings import Embeddings

Vectors = NDArray[np.float32] | Sequence[NDArray[np.float32]]


@dataclass(slots=True)
class RawVectors:
    """Ids and vectors as in the file. An empty string among `speakers` or `attributes` means unknown.

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

    def findings(self) -> list[Finding]:
        """One for each kind of problem, with a count and the first of its kind."""
        kinds: dict[str, list[Problem]] = {}
        for problem in self.problems:
            kinds.setdefault(problem.kind, []).append(problem)
        return [
            warning(
                "vectors_left_out",
                file=file_reference(problems[0].path),
                kind=kind,
                count=len(problems),
                example=Reference("text", problems[0].what),
            )
            for kind, problems in kinds.items()
        ]


def usable(raw: RawVectors) -> Loaded:
    """Keep what can be used; name and count the rest. Raises only where nothing is left.

    The decisions: the most frequent vector length is the right one; of an id that is there twice the first stays; a
    vector that is zero or not finite, or whose speaker is unknown, goes.
    """
    if len(raw.utterances) == 0:
        raise _nothing_left("no vectors in it", raw, raw.problems)
    if raw.speakers is None:
        raise InputError(
            "nothing says who speaks in these utterances",
            path=raw.path,
            fix="put a Kaldi file utt2spk beside it, or in a folder meta/",
        )
    sieve = _Sieve(raw, np.ones(len(raw.utterances), bool), list(raw.problems))
    dimension = _usual_length(raw.vectors)
    sieve.leave_out_bad_texts(raw.speakers)
    sieve.leave_out_other_lengths(dimension)
    sieve.leave_out_repeated_ids()
    sieve.leave_out_unknown_speakers(raw.speakers)
    table = sieve.table(dimension)
    for row, kind, what in _bad_rows(table, raw.utterances):
        sieve.leave_out(row, kind, what, "leave the utterance out or extract it again")
    if not sieve.keep.any():
        raise _nothing_left("none of its vectors can be used", raw, sieve.problems)
    return Loaded(_kept(raw, raw.speakers, table, sieve.keep), tuple(sieve.problems))


@dataclass(frozen=True, slots=True)
class _Sieve:
    """Which rows are still in, and why the others are out. A row is left out once, for the first reason."""

    raw: RawVectors
    keep: NDArray[np.bool_]
    problems: list[Problem]

    def leave_out(self, row: int, kind: str, what: str, fix: str) -> None:
        if self.keep[row]:
            self.keep[row] = False
            path, line = self.raw.places[row] if self.raw.places is not None else (str(self.raw.path), None)
            self.problems.append(Problem(kind, what, path, line, fix))

    def leave_out_bad_texts(self, speakers: list[str]) -> None:
        utterances = self.raw.utterances
        texts = (utterances, speakers, *self.raw.attributes.values())
        if all(_sound(column) for column in texts) and "" not in utterances:
            return
        for row, utterance in enumerate(utterances):
            if not utterance or not _sound([column[row] for column in texts]):
                what = f"the id or another text of utterance {row + 1} is empty or no Unicode text"
                self.leave_out(row, "bad-id", what, "write the file again with ids in UTF-8")

    def leave_out_other_lengths(self, dimension: int) -> None:
        if not isinstance(self.raw.vectors, list | tuple):
            return
        for row, vector in enumerate(self.raw.vectors):
            if len(vector) != dimension:
                what = f"the vector of {self.raw.utterances[row]!r} has {len(vector)} numbers, most have {dimension}"
                self.leave_out(row, "differing-length", what, "extract it again with the same extractor")

    def leave_out_repeated_ids(self) -> None:
        seen: set[str] = set()
        for row, utterance in enumerate(self.raw.utterances):
            if utterance in seen:
                what = f"utterance {utterance!r} is there twice"
                self.leave_out(row, "same-id-twice", what, "give every utterance its own id; the first one was kept")
            seen.add(utterance)

    def leave_out_unknown_speakers(self, speakers: list[str]) -> None:
        for row, speaker in enumerate(speakers):
            if not speaker:
                what = f"the speaker of utterance {self.raw.utterances[row]!r} is not known"
                self.leave_out(row, "no-speaker", what, "add the utterance to utt2spk")

    def table(self, dimension: int) -> NDArray[np.float32]:
        """All vectors as one array; rows that are out may be zero in it."""
        if isinstance(self.raw.vectors, np.ndarray):
            return self.raw.vectors
        table = np.zeros((len(self.keep), dimension), np.float32)
        for row in np.flatnonzero(self.keep).tolist():
            table[row] = self.raw.vectors[row]
        return table


def _kept(raw: RawVectors, speakers: list[str], table: NDArray[np.float32], keep: NDArray[np.bool_]) -> Embeddings:
    everything = bool(keep.all())
    rows = np.flatnonzero(keep)

    def part(column: list[str]) -> list[str]:
        return column if everything else [column[row] for row in rows]

    return Embeddings(
        table if everything else table[rows],
        part(raw.utterances),
        part(speakers),
        {key: part(column) for key, column in raw.attributes.items()},
        raw.durations if everything or raw.durations is None else raw.durations[rows],
        str(raw.path),
    )


def _nothing_left(what: str, raw: RawVectors, problems: Sequence[Problem]) -> InputError:
    if not problems:
        return InputError(what, path=raw.path)
    first = problems[0]
    return InputError(f"{what}; {first.what}", path=first.path, line=first.line, fix=first.fix or None)


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
