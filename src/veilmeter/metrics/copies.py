"""Recordings that are the same though they should differ: an anonymized one that did not change, or one and the same
recording in enrollment and trials under two ids.

Two vectors are of one recording where they are a hundred times closer than two recordings of one speaker usually are:
no extractor gives the same vector twice for different speech, and none gives exactly the same for a recording that was
scaled or encoded anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings

CLOSER = 0.01  # of the usual distance (1 - cosine) of two recordings of one speaker
SMALLEST, LARGEST = 1e-6, 1e-2  # bounds of that distance: rounding, and voices that hardly resemble themselves
MOST_PAIRS = 1_000_000_000  # a few seconds; beyond, only recordings of the same speaker are compared
BLOCK = 2048


def unchanged(original: Embeddings, anonymized: Embeddings) -> NDArray[np.bool_] | None:
    """Which anonymized recordings are the original ones, row by row of the same utterances; None where the vectors are
    of different extractors."""
    if original.dimension != anonymized.dimension:
        return None
    distance = 1 - np.einsum("ij,ij->i", original.unit, anonymized.unit, dtype=np.float64)
    return np.asarray(distance < usual_distance(original) * CLOSER)


def copies(enrollment: Embeddings, trials: Embeddings) -> NDArray[np.bool_]:
    """Which trial recordings also stand in the enrollment, whoever they are said to be of."""
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
