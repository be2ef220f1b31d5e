"""The two sets that the legal measures compare: enrollment models and conversations, and what makes them a poor test.

A conversation is L utterances of one speaker, averaged; an enrollment model is all utterances of one, averaged. Vectors
are x = unit(mean of unit embeddings) throughout (Vauquier et al. 2025, section 3.4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, first_speakers, warning
from veilmeter.core.option_groups import EVERY_SIZE
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.metrics.measure import percentage_of

_BLOCK = 1 << 16  # vectors made unit length at a time: a memory-mapped file is never in memory as a whole


@dataclass(frozen=True, eq=False)
class Models:
    """One vector per speaker (G x d, unit length), in the order of `names`."""

    vectors: NDArray[np.float32]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Conversations:
    """Conversations of `length` utterances: `vectors` (n x d, unit), each with its speaker's index into `names`.

    A speaker's conversations stand together, in the order of the listing. `dropped` are the speakers with too few
    utterances; `utterances` says which rows of the embeddings each conversation was made of.
    """

    vectors: NDArray[np.float32]
    speakers: NDArray[np.int64]
    names: tuple[str, ...]
    length: int
    utterances: NDArray[np.int64]
    dropped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def counts(self) -> NDArray[np.int64]:
        """K_s: how many conversations each speaker has."""
        return np.bincount(self.speakers, minlength=len(self.names))

    @cached_property
    def twins(self) -> NDArray[np.int64]:
        """For each conversation the first one with the very same vector; -1 for a vector that occurs once.

        A matrix product may give equal vectors scores that differ in the last digit, by where they stand; those of
        twins must be made equal, or rounding distinguishes people whom nothing else distinguishes.
        """
        first_twin = np.full(len(self), -1, np.int64)
        rows = np.ascontiguousarray(self.vectors)
        start = rows[:, : 2 if rows.shape[1] > 1 else 1].copy()  # hardly ever the same by chance
        _, where, count = np.unique(
            start.view(f"u{4 * start.shape[1]}").ravel(), return_inverse=True, return_counts=True
        )
        seen: dict[bytes, int] = {}
        for row in np.flatnonzero(count[where] > 1).tolist():
            first = seen.setdefault(rows[row].tobytes(), row)
            if first != row:
                first_twin[first] = first_twin[row] = first
        return first_twin


def models(embeddings: Embeddings) -> Models:
    """Each speaker's enrollment model: unit(mean of all their unit embeddings).

    >>> e = Embeddings([[2, 0], [0, 1], [0, 5]], ["a-1", "a-2", "b-1"], ["a", "a", "b"])
    >>> models(e).vectors.round(3).tolist()
    [[0.7070000171661377, 0.7070000171661377], [0.0, 1.0]]
    """
    names = embeddings.names
    return Models(_means(embeddings, np.arange(len(embeddings)), embeddings.codes, names), names)


def conversations(
    embeddings: Embeddings, length: int = 1, *, least: int = 1, most: int | None = None, seed: int = 0
) -> Conversations:
    """Conversations of `length` utterances each, made of neighbors in the list; the remainder is not used.

    A speaker needs at least `least` of them (Singling Out: 2, one for the test and one for calibration). With more
    than `most`, that many utterances are chosen at random, by the seed and the speaker's name alone, so that neither
    the other speakers nor their order matter; the chosen ones stay in the order of the listing.

    >>> e = Embeddings(np.eye(5), ["a-1", "a-2", "a-3", "b-1", "b-2"], ["a", "a", "a", "b", "b"])
    >>> [conversations(e, 2).utterances.tolist(), conversations(e, 3).dropped]
    [[[0, 1], [3, 4]], ('b',)]
    """
    if length < 1:
        raise InputError(f"a conversation must have at least 1 utterance (got {length})")
    order = np.argsort(embeddings.codes, kind="stable")
    counts = np.bincount(embeddings.codes)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    enough = counts // length >= least
    kept = np.flatnonzero(enough)
    dropped = tuple(embeddings.names[code] for code in np.flatnonzero(~enough))
    if len(kept) == 0:
        raise InputError(
            f"no speaker has {least * length} utterances, which conversations of {length} need",
            path=embeddings.source or None,
            fix=f"the largest possible length is {counts.max() // least}",
        )
    rows: list[NDArray[np.int64]] = []
    for code in kept:
        own = order[starts[code] : starts[code] + counts[code]]
        whole = int(counts[code]) // length
        if most is not None and whole > most:
            name = hashlib.sha256(embeddings.names[code].encode("utf-8", "surrogateescape")).digest()
            rng = np.random.default_rng([seed, int.from_bytes(name[:8], "big")])
            own, whole = own[np.sort(rng.choice(len(own), most * length, replace=False))], most
        rows.append(own[: whole * length].reshape(whole, length))
    utterances = np.concatenate(rows)
    speakers = np.repeat(np.arange(len(kept)), [len(part) for part in rows])
    names = tuple(embeddings.names[code] for code in kept)
    groups = np.repeat(np.arange(len(utterances)), length)
    vectors = _means(embeddings, utterances.ravel(), groups, [names[code] for code in speakers])
    return Conversations(vectors, speakers, names, length, utterances, dropped)


def speaker_attribute(embeddings: Embeddings, column: str, names: Sequence[str]) -> NDArray[np.object_]:
    """The value of an attribute column for each of these speakers; "" where it is not known.

    A speaker with two different values is an error: the attribute must be one of the person.
    """
    if column not in embeddings.attributes:
        there = ", ".join(sorted(embeddings.attributes)) or "none"
        raise InputError(f"no column {column!r}; there are: {there}", path=embeddings.source or None)
    value_of: dict[str, str] = {}
    for speaker, value in zip(embeddings.speakers, embeddings.attributes[column], strict=True):
        if not value:
            continue
        if value_of.setdefault(speaker, value) != value:
            raise InputError(
                f"speaker {speaker!r} has two values of {column}: {value_of[speaker]!r} and {value!r}",
                path=embeddings.source or None,
                fix="side information must be an attribute of the person; fix the column or choose another",
            )
    values = np.empty(len(names), dtype=object)
    values[:] = [value_of.get(name, "") for name in names]
    return values


def _means(
    embeddings: Embeddings, rows: NDArray[np.int64], groups: NDArray[np.int64], names: Sequence[str]
) -> NDArray[np.float32]:
    """unit(mean of the unit vectors of `rows`) for each group, some groups at a time: memory is bounded by the result.

    The sum has the direction of the mean, so the division is left out. `names` are the groups' speakers, for messages.
    """
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups, minlength=len(names)))
    means = np.empty((len(names), embeddings.dimension), np.float32)
    first = start = 0
    while first < len(names):
        last = max(first + 1, int(np.searchsorted(ends, start + _BLOCK, side="right")))
        stop = int(ends[last - 1])
        part = unit(embeddings.vectors[rows[order[start:stop]]]).astype(np.float64)
        sums = part
        if len(part) > last - first:  # else every group has one vector, and there is nothing to sum
            sums = np.add.reduceat(part, np.concatenate([[start], ends[first : last - 1]]) - start, axis=0)
        norms = np.linalg.norm(sums, axis=1)
        if not norms.all():
            speaker = names[first + int(np.flatnonzero(norms == 0)[0])]
            raise InputError(
                f"the embeddings of speaker {speaker!r} cancel out to zero", path=embeddings.source or None
            )
        means[first:last] = sums / norms[:, None]
        first, start = last, stop
    return means


def refuse_other_dimension(enroll: Embeddings, test: Embeddings) -> None:
    """Vectors of different dimensions can't be compared."""
    if enroll.dimension != test.dimension:
        raise InputError(
            f"the enrollment has {enroll.dimension} dimensions and the test {test.dimension}",
            fix="both must come from the same extractor",
        )


def doubts_of(enroll: Embeddings, test: Embeddings) -> list[Finding]:
    """Warnings about two sets that make a poor test; different dimensions are an error."""
    refuse_other_dimension(enroll, test)
    doubts = []
    both = [u for u in test.utterances if u in enroll.utterance_rows]
    if both:
        rows = np.array([enroll.utterance_rows[u] for u in both])
        mine = np.array([test.utterance_rows[u] for u in both])
        same = int(np.count_nonzero((enroll.vectors[rows] == test.vectors[mine]).all(axis=1)))
        if same:
            doubts.append(warning("same_recording_enrolled", count=same))
        else:
            doubts.append(warning("same_id_enrolled", count=len(both)))
    enrolled = set(enroll.names)
    strangers = [name for name in test.names if name not in enrolled]
    if strangers:
        doubts.append(warning("people_not_enrolled", count=len(strangers), examples=first_speakers(strangers)))
    return doubts


LADDER = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)


def ladder(largest: int) -> list[int]:
    """Round numbers of speakers, and everybody.

    >>> ladder(130), ladder(8)
    ([20, 50, 100, 130], [2, 4, 8])
    """
    few = [n for n in LADDER if n < largest]
    if not few:
        few = [n for n in (2, 4, 8, 16) if n < largest]
    return [*few, largest]


CURVE = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)


def sizes_to_draw(wanted: Sequence[int]) -> tuple[int, ...]:
    """The numbers of people at which people are drawn, which takes time: round numbers where all were asked for."""
    return () if tuple(wanted) == EVERY_SIZE else tuple(wanted)


def curve_sizes(wanted: Sequence[int], largest: int) -> list[int]:
    """The numbers of people at which a curve is given: those asked for, or round ones, and everybody.

    >>> curve_sizes((), 12), curve_sizes((3, 40), 12), curve_sizes(EVERY_SIZE, 5)
    ([2, 5, 10, 12], [3, 12], [2, 3, 4, 5])
    """
    asked = range(2, largest) if tuple(wanted) == EVERY_SIZE else wanted or CURVE
    base = [n for n in asked if n < largest]
    return [*base, largest] if largest >= 2 else base


def speakers_by_length(test: Embeddings, lengths: Sequence[int]) -> dict[int, int]:
    """For each length, how many test speakers have two conversations of it."""
    counts = np.bincount(test.codes)
    return {length: int(np.count_nonzero(counts >= 2 * length)) for length in lengths}


def per_speaker_estimates(
    name: str,
    people: Iterable[tuple[str, float, Mapping[str, int]]],
    *,
    speakers: int,
    length: int,
    method: str,
    null: float | None = None,
) -> list[Estimate]:
    """The measure of each person (who, share, counts behind it) among so many speakers, the most exposed first."""
    return [
        percentage_of(
            f"{name}_per_speaker",
            float(value),
            null=null,
            method=method,
            n=counts,
            at={"speaker": who, "speakers": speakers, "length": length},
        )
        for who, value, counts in sorted(people, key=lambda person: (-person[1], person[0]))
    ]


def row_dots(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    """Row by row in float64, in one fixed order: equal vectors give equal scores."""
    return np.asarray((a.astype(np.float64) * b.astype(np.float64)).sum(-1))
