"""Whether the length of a vector tells who speaks: comparisons by angle are blind to it, and an attacker is not."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings

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
