"""Sessions: a pseudonym should link a speaker's recordings within a session, and neither across sessions nor to the
original voice (Noé et al. 2020, sections 2 and 6).

Each speaker's utterances in a session are split in two: one half is enrolled, the conversations of the other half are
tested. The same test conversations meet three galleries, each with one model a speaker:

    within    the right person is represented by the protected voice of the same session,
    across    by the protected voice of another of their sessions (each of them in turn),
    original  by their original voice in the same session.

The impostors of `within` and `across` are the same models: of every other speaker the protected voice in the same
session if they take part in it, else in one of theirs chosen by the seed. So the two differ in the right person only.
No utterance is ever compared with itself or with its own original: enrolled and tested halves are disjoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.metrics.legal.linkability import LinkCounts
from veilmeter.metrics.measure import Measure, find_measure

Rows = NDArray[np.int64]
Vectors = NDArray[np.float64]
TIE = 1e-12  # two products of the same numbers may differ by rounding


MEASURES = (
    Measure(
        name="linkability_within_session",
        label="Linkability within a session",
        unit="percent",
        better="neither",
        meaning="The chance that a recording is linked to its speaker within one session; pseudonyms should allow it.",
        source="cf. Noé et al. 2020",
        section="sessions",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
    Measure(
        name="linkability_across_sessions",
        label="Linkability across sessions",
        unit="percent",
        better="lower",
        meaning="The same for the speaker's protected voice in another session; pseudonyms should not allow it.",
        source="cf. Noé et al. 2020",
        section="sessions",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
    Measure(
        name="linkability_to_original",
        label="Linkability to the original",
        unit="percent",
        better="lower",
        meaning="The same for the speaker's original voice.",
        source="cf. Noé et al. 2020",
        section="sessions",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
)


@dataclass(frozen=True, eq=False, slots=True)
class Sessions:
    """Linkability under the three conditions. `original` is None where no original vectors were given."""

    within: LinkCounts
    across: LinkCounts
    original: LinkCounts | None
    sessions: int
    left_out: tuple[str, ...]

    def estimates(self, speakers: Sequence[int] | None = None, *, intervals: bool = True) -> dict[str, list[Estimate]]:
        """Curves over N' (by default the most and a few below) for each condition."""
        named = {
            "linkability_within_session": self.within,
            "linkability_across_sessions": self.across,
            "linkability_to_original": self.original,
        }
        wanted = list(speakers) if speakers else _usual(self.within.largest)
        curves: dict[str, list[Estimate]] = {}
        for name, linked in named.items():
            if linked is None:
                continue
            entry = find_measure(name)
            curves[name] = [
                estimate.with_(
                    name=name, label=entry.label, better=entry.better, n={**estimate.n, "sessions": self.sessions}
                )
                for estimate in linked.estimates(wanted, intervals=intervals)
            ]
        return curves


def _usual(largest: int) -> list[int]:
    return [n for n in (2, 5, 20, 100, 1000, 10_000) if n < largest] + [largest]


@dataclass(frozen=True, slots=True)
class _Part:
    """One speaker's share of a session, as rows: enrolled and tested."""

    speaker: int
    session: str
    enrolled: Rows
    tested: Rows


def linkability_by_session(
    protected: Embeddings,
    original: Embeddings | None = None,
    *,
    length: int = 1,
    column: str = "session",
    seed: int = 0,
) -> Sessions:
    """Linkability of conversations of `length` utterances within a session, across sessions and to the original.

    `protected` has the sessions in the attribute `column`; `original` has the same utterances in the same order.
    Speakers with at least two usable sessions (of 2 * `length` utterances or more) are tested, the others are
    impostors where they have one, and left out where they have none.
    """
    parts, left_out = _parts(protected, column, length)
    if original is not None and list(original.utterances) != list(protected.utterances):
        raise InputError("the original and the protected set must hold the same utterances in the same order")
    of_speaker: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        of_speaker.setdefault(part.speaker, []).append(number)
    tested = [number for number, part in enumerate(parts) if len(of_speaker[part.speaker]) > 1]
    if not tested:
        raise InputError(
            f"length {length}: no speaker has two sessions with {2 * length} utterances each",
            path=protected.source or None,
            fix=f"give every utterance its session in the column {column!r}",
        )
    if len(of_speaker) < 2:
        raise InputError("there is nobody to mistake the only speaker for", path=protected.source or None)
    people = {speaker: place for place, speaker in enumerate(of_speaker)}
    where = {(part.speaker, part.session): number for number, part in enumerate(parts)}
    voices = _means(protected, [part.enrolled for part in parts])
    clear = None if original is None else _means(original, [part.enrolled for part in parts])
    rows: dict[str, list[_Item]] = {"within": [], "across": [], "original": []}
    for number in tested:
        part = parts[number]
        talks = part.tested[: len(part.tested) // length * length].reshape(-1, length)
        tests = _means(protected, list(talks))
        gallery = np.array([_present(speaker, part.session, of_speaker, where, protected, seed) for speaker in people])
        own = people[part.speaker]
        scores = tests @ voices[gallery].T
        rows["within"].append(_item(scores, tests @ voices[number], own))
        for other in of_speaker[part.speaker]:
            if other != number:
                rows["across"].append(_item(scores, tests @ voices[other], own))
        if clear is not None:
            rows["original"].append(_item(tests @ clear[gallery].T, tests @ clear[number], own))
    names = [protected.names[speaker] for speaker in people]
    within, across = (_linkability(rows[kind], names, length) for kind in ("within", "across"))
    to_original = _linkability(rows["original"], names, length) if clear is not None else None
    return Sessions(within, across, to_original, len({part.session for part in parts}), left_out)


@dataclass(frozen=True, slots=True)
class _Item:
    own: int
    beats: NDArray[np.bool_]  # conversations x people; the right person never beats themselves


def _item(scores: Vectors, right: Vectors, own: int) -> _Item:
    beats = scores >= right[:, None] - TIE  # a tie is a failure for the attacker
    beats[:, own] = False
    return _Item(own, beats)


def _linkability(items: Sequence[_Item], names: Sequence[str], length: int) -> LinkCounts:
    beats = np.concatenate([item.beats for item in items])
    own = np.repeat([item.own for item in items], [len(item.beats) for item in items])
    heard, speakers = np.unique(own, return_inverse=True)
    return LinkCounts(
        beats.sum(1).astype(np.int64), len(names) - 1, speakers, tuple(names[i] for i in heard), length, own, beats
    )


def _present(
    speaker: int,
    session: str,
    of_speaker: dict[int, list[int]],
    where: dict[tuple[int, str], int],
    embeddings: Embeddings,
    seed: int,
) -> int:
    """Which of a speaker's parts is in the gallery of a session."""
    if (speaker, session) in where:
        return where[speaker, session]
    choices = of_speaker[speaker]
    name = f"{embeddings.names[speaker]}\0{session}".encode("utf-8", "surrogateescape")
    rng = np.random.default_rng([seed, int.from_bytes(hashlib.sha256(name).digest()[:8], "big")])
    return choices[int(rng.integers(len(choices)))]


def _parts(embeddings: Embeddings, column: str, length: int) -> tuple[list[_Part], tuple[str, ...]]:
    if length < 1:
        raise InputError(f"a conversation must have at least 1 utterance (got {length})")
    if column not in embeddings.attributes:
        there = ", ".join(sorted(embeddings.attributes)) or "none"
        raise InputError(
            f"the session of an utterance is not known: no column {column!r}; there are: {there}",
            path=embeddings.source or None,
            fix="in a Kaldi folder, add meta/utt2session",
        )
    rows: dict[tuple[int, str], list[int]] = {}
    for row, (speaker, session) in enumerate(zip(embeddings.codes, embeddings.attributes[column], strict=True)):
        if session:
            rows.setdefault((int(speaker), session), []).append(row)
    parts = []
    for (speaker, session), own in rows.items():
        if len(own) >= 2 * length:
            # Every second utterance: halves of a session that are as alike as can be.
            parts.append(_Part(speaker, session, np.array(own[0::2]), np.array(own[1::2])))
    kept = {part.speaker for part in parts}
    return parts, tuple(name for code, name in enumerate(embeddings.names) if code not in kept)


def _means(embeddings: Embeddings, groups: Sequence[Rows]) -> Vectors:
    """x = unit(mean of unit vectors) for each group of rows."""
    means = np.stack([unit(embeddings.vectors[rows]).astype(np.float64).mean(0) for rows in groups])
    norms = np.linalg.norm(means, axis=1)
    if not norms.all():
        first = int(np.flatnonzero(norms == 0)[0])
        raise InputError(
            f"the vectors of {embeddings.utterances[groups[first][0]]!r} and others cancel out to zero",
            path=embeddings.source or None,
        )
    unit_means: Vectors = means / norms[:, None]
    return unit_means
