"""Checks of the vectors themselves: copies of a recording where there should be none, and lengths that identify people.

An anonymized recording may not have changed at all, or one recording may be in enrollment and trials under two ids. Two
vectors are of one recording where they are a hundred times closer than two recordings of one speaker usually are: no
extractor gives the same vector twice for different speech, and none gives exactly the same for a recording that was
scaled or encoded again.

Comparisons by angle ignore the length of a vector; an attacker need not.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings

CLOSER = 0.01  # of the usual distance (1 - cosine) of two recordings of one speaker
SMALLEST, LARGEST = 1e-6, 1e-2  # bounds of that distance: rounding, and voices that hardly resemble themselves
MOST_PAIRS = 1_000_000_000  # a few seconds; beyond, only recordings of the same speaker are compared
BLOCK = 2048
FAR_OUT = 3.0  # times the distance between the quartiles, above the upper one (Tukey's far outliers)
MOST_OTHERS = 1000  # originals of others that every recording is compared with


def find_unchanged(original: Embeddings, anonymized: Embeddings) -> NDArray[np.bool_] | None:
    """Which anonymized recordings are the original ones, row by row of the same utterances; None where the vectors are
    of different extractors."""
    if original.dimension != anonymized.dimension:
        return None
    distance = 1 - np.einsum("ij,ij->i", original.unit, anonymized.unit, dtype=np.float64)
    return np.asarray(distance < usual_distance(original) * CLOSER)


def let_through(original: Embeddings, anonymized: Embeddings, *, seed: int = 0) -> NDArray[np.bool_] | None:
    """Which anonymized recordings are far more like their own original than the others are, and than any is like an
    original of somebody else: outliers that the anonymizer seems to have let through. None where vectors are of
    different extractors.

    If nothing is kept of any voice, a recording of N comes out above all N x N comparisons with others once in N times.
    """
    if original.dimension != anonymized.dimension:
        return None
    own = np.einsum("ij,ij->i", original.unit, anonymized.unit, dtype=np.float64)
    low, high = np.quantile(own, [0.25, 0.75])
    found = own > high + FAR_OUT * (high - low)
    if not found.any():
        return np.asarray(found)
    some = np.random.default_rng([seed, 26]).permutation(len(original))[:MOST_OTHERS]
    others = np.full(len(anonymized), -np.inf)
    for start in range(0, len(anonymized), BLOCK):
        part = slice(start, start + BLOCK)
        cosines = anonymized.unit[part] @ original.unit[some].T
        cosines[anonymized.speakers[part][:, None] == original.speakers[some][None]] = -np.inf
        others[part] = cosines.max(axis=1)
    return np.asarray(found & (own > others.max()))


def copies(enrollment: Embeddings, trials: Embeddings) -> NDArray[np.bool_]:
    """Which trial recordings also occur in the enrollment, under any speaker's name."""
    limit = usual_distance(trials, enrollment) * CLOSER
    if len(enrollment) * len(trials) <= MOST_PAIRS:
        return _near(enrollment.unit, trials.unit, limit)
    same = np.zeros(len(trials), dtype=bool)
    known = _rows_of(enrollment)
    for name, own in _rows_of(trials).items():
        if name in known:
            same[own] = _near(enrollment.unit[known[name]], trials.unit[own], limit)
    return same


def _rows_of(side: Embeddings) -> dict[str, NDArray[np.intp]]:
    order = np.argsort(side.codes, kind="stable")
    firsts = np.searchsorted(side.codes[order], np.arange(1, len(side.names)))
    return dict(zip(side.names, np.split(order, firsts), strict=True))


def _near(known: NDArray[np.float32], tried: NDArray[np.float32], limit: float) -> NDArray[np.bool_]:
    same = np.zeros(len(tried), dtype=bool)
    for start in range(0, len(tried), BLOCK):
        part = tried[start : start + BLOCK]
        best = np.full(len(part), -np.inf, np.float32)
        for first in range(0, len(known), BLOCK):
            np.maximum(best, (part @ known[first : first + BLOCK].T).max(axis=1), out=best)
        # float32 rounds 1 - cosine to about 1e-7, below the smallest limit
        same[start : start + BLOCK] = 1 - best.astype(np.float64) < limit
    return same


def usual_distance(*sides: Embeddings) -> float:
    """The median of 1 - cosine between two recordings of one speaker, next to each other in the order given."""
    distances = []
    for side in sides:
        order = np.argsort(side.codes, kind="stable")
        codes, vectors = side.codes[order], side.unit[order]
        pairs = np.flatnonzero(codes[1:] == codes[:-1])
        if len(pairs):
            distances.append(1 - np.einsum("ij,ij->i", vectors[pairs], vectors[pairs + 1], dtype=np.float64))
    usual = float(np.median(np.concatenate(distances))) if distances else LARGEST / CLOSER
    return float(np.clip(usual, SMALLEST / CLOSER, LARGEST / CLOSER))


LEAST_PEOPLE = 6
SAME = 1e-4  # lengths that differ by less were made equal


def length_correlation(enrollment: Embeddings, trials: Embeddings) -> tuple[float, float] | None:
    """The correlation over people of the mean log length of their vectors in enrollment and in trials, and how often
    chance alone would give one as far from 0. None where there are too few people, or all lengths are the same."""
    people = sorted(set(enrollment.names) & set(trials.names))
    if len(people) < LEAST_PEOPLE:
        return None
    sides = [_mean_log_lengths(side, people) for side in (enrollment, trials)]
    if any(side.std() < SAME for side in sides):
        return None
    correlation = float(np.corrcoef(sides[0], sides[1])[0, 1])
    # Over permutations of people a correlation has mean 0 and variance 1 / (people - 1).
    z = abs(correlation) * math.sqrt(len(people) - 1)
    return correlation, 2 * (1 - NormalDist().cdf(z))


def _mean_log_lengths(side: Embeddings, people: list[str]) -> NDArray[np.float64]:
    lengths = np.log(np.maximum(np.linalg.norm(side.vectors.astype(np.float64), axis=1), 1e-30))
    means = np.bincount(side.codes, lengths, len(side.names)) / np.bincount(side.codes, minlength=len(side.names))
    place = {name: code for code, name in enumerate(side.names)}
    return np.asarray(means[[place[name] for name in people]])
