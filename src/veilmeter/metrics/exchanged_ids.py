"""Whether recordings bear the ids of other recordings, as where a list is in another order than the vectors.

Then attackers find nobody, whatever the anonymizer left: they look at the wrong people's recordings. Ids are left aside
here, and each anonymized recording is matched with the original (or the copy in an attacker's run) that it resembles
most. Voices that were drawn independently of the originals are matched independently of each other, so several share
one original by chance, fewest where all originals are equally likely. Where the voices themselves are still there,
hardly any two share one. Recordings that are matched with their own speaker have the right ids and are left out. The
same is done with the mean of each person, in case all of their recordings bear the ids of one other person.

*Durations.* What was said takes about as long after anonymization; under wrong ids it does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.intervals import normal_probability
from veilmeter.data.embeddings import Embeddings, Strings, strings, unit64

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

DRAWS = 9999
ENOUGH = 20  # draws with as many different matches: chance explains them
MOST_TRIED = 1000  # recordings; more would hardly add power
BLOCK = 500
SMALLEST = 1e-9
LEAST_PEOPLE = 6
LEAST_RECORDINGS = 20
LEAST_SPREAD = 0.05  # standard deviation of log durations


def exchanged_ids(
    known: Sequence[Embeddings], released: Embeddings, groups: Sequence[Mapping[str, str]] = (), *, seed: int = 0
) -> float | None:
    """How often chance would match released recordings, or their speakers, with as many different ones of other people,
    of the originals or of a run, whichever stands out most. `groups` are values of attributes by person: what is kept
    of a voice may be one of these. None where there are too few people, or vectors of other extractors only."""
    probabilities = []
    for number, side in enumerate(known):
        if side.dimension != released.dimension or len(set(side.names) & set(released.names)) < LEAST_PEOPLE:
            continue
        rng = np.random.default_rng([seed, 28, number])
        known_rows, rows = (_Voices(_centered(one.vectors), one.speakers) for one in (side, released))
        probabilities += [_p(known_rows, rows, groups, rng, parts=parts) for parts in (1, 2)]
        probabilities.append(_p(_means(known_rows, side), _means(rows, released), groups, rng, parts=1))
    return min(1.0, len(probabilities) * min(probabilities)) if probabilities else None


@dataclass(frozen=True, slots=True)
class _Voices:
    """Directions of recordings or of people, and whose they are."""

    rows: Floats
    names: Strings


def _centered(vectors: NDArray[np.floating]) -> Floats:
    rows = unit64(vectors)
    return unit64(rows - rows.mean(axis=0))


def _means(recordings: _Voices, side: Embeddings) -> _Voices:
    sums = np.zeros((len(side.names), side.dimension))
    np.add.at(sums, side.codes, recordings.rows)
    return _Voices(_centered(sums), strings(side.names))


def _p(
    known: _Voices, tried: _Voices, groups: Sequence[Mapping[str, str]], rng: np.random.Generator, *, parts: int
) -> float:
    """How often chance would match `tried` with as many different ones of `known`: of everybody, or of people with the
    same value of an attribute, whichever explains it best."""
    some = rng.permutation(len(tried.rows))[:MOST_TRIED]
    part = np.arange(len(some)) % parts
    names = np.concatenate([known.names, tried.names[some]]).astype(str)
    people, codes = np.unique(names, return_inverse=True)
    whose, own = codes[: len(known.rows)], codes[len(known.rows) :]
    nearest = _nearest(known.rows, tried.rows[some], part)
    wrong = whose[nearest] != own
    if not wrong.any():
        return 1.0
    values = [np.unique([str(group.get(name, "")) for name in people], return_inverse=True)[1] for group in groups]
    everybody = np.zeros(len(people), np.int64)
    return max(_different_p(nearest[wrong], own[wrong], part[wrong], whose, v, rng) for v in (everybody, *values))


def _nearest(known: Floats, tried: Floats, part: Codes) -> Codes:
    """The match of each of `tried`. Some of `known` are near to many: with several parts, what counts is how much
    nearer than to the other parts."""
    nearest = np.empty(len(tried), np.int64)
    for number in range(part.max() + 1):
        here, rest = tried[part == number], tried[part != number]
        usual, spread = np.zeros(len(known)), np.ones(len(known))
        if len(rest):
            usual = known @ rest.mean(axis=0)
            squares = np.einsum("ij,ij->i", known @ (rest.T @ rest / len(rest)), known)
            spread = np.sqrt(np.maximum(squares - usual**2, SMALLEST))
        blocks = [here[start : start + BLOCK] @ known.T for start in range(0, len(here), BLOCK)]
        nearest[part == number] = np.concatenate([((cosines - usual) / spread).argmax(axis=1) for cosines in blocks])
    return nearest


def _different_p(
    nearest: Codes, own: Codes, part: Codes, whose: Codes, values: Codes, rng: np.random.Generator
) -> float:
    """How often as many different ones would be drawn within each part, if each is drawn from all of other people with
    the same value: equal chances make the most different ones."""
    candidates = np.lexsort((whose, values[whose]))
    places = np.arange(len(candidates))
    of_value, of_person = values[whose][candidates], whose[candidates]
    first = np.searchsorted(of_value, values[own])
    mine = np.bincount(whose, minlength=len(values))[own]
    starts = np.full(len(values), len(candidates))
    np.minimum.at(starts, of_person, places)
    others = np.searchsorted(of_value, values[own], "right") - first - mine
    some = others > 0
    if not some.any():
        return 1.0
    first, mine, others, start, part = (array[some] for array in (first, mine, others, starts[own], part))
    found = len(np.unique(nearest[some] + part * len(whose)))
    as_many, drawn = 1, 1
    while drawn <= DRAWS and as_many <= ENOUGH:
        number = min(BLOCK, DRAWS + 1 - drawn)
        matches = first + np.floor(rng.random((number, len(first))) * others).astype(np.int64)
        matches += np.where(matches >= start, mine, 0) + part * len(whose)
        matches.sort(axis=1)
        different = 1 + np.count_nonzero(np.diff(matches, axis=1), axis=1)
        as_many += int(np.count_nonzero(different >= found))
        drawn += number
    return as_many / drawn


def duration_correlation(original: Embeddings, released: Embeddings) -> tuple[float, float] | None:
    """The correlation of the log durations of released recordings with those of their originals, and how often chance
    alone would give one as large. None where durations are not known, or hardly differ."""
    if original.durations is None or released.durations is None:
        return None
    pairs = np.stack([original.durations, released.durations])
    pairs = np.log(pairs[:, (np.isfinite(pairs) & (pairs > 0)).all(axis=0)])
    if pairs.shape[1] < LEAST_RECORDINGS or (pairs.std(axis=1) < LEAST_SPREAD).any():
        return None
    correlation = float(np.corrcoef(pairs[0], pairs[1])[0, 1])
    # Over permutations of recordings it has mean 0 and variance 1 / (recordings - 1).
    return correlation, 1 - normal_probability(correlation * math.sqrt(pairs.shape[1] - 1))
