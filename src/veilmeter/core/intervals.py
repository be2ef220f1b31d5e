"""Intervals that respect shared speakers: trials of one speaker are not independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95


def wilson(successes: float, n: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of a rate. With clustered data `n` is the number of clusters, not of trials.

    >>> low, high = wilson(0, 20)
    >>> low, round(high, 3)
    (0.0, 0.161)
    """
    if n == 0:
        return (0.0, 1.0)
    z = normal_quantile(0.5 + level / 2)
    rate = successes / n
    center = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)))
    low = 0.0 if rate == 0 else max(0.0, center - half)
    high = 1.0 if rate == 1 else min(1.0, center + half)
    return (low, high)


def cluster_error(values: ArrayLike, clusters: ArrayLike) -> tuple[float, int]:
    """The standard error of the mean of `values`, whose items share an effect within each cluster; and the clusters."""
    x = np.asarray(values, float)
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    k = int(codes.max()) + 1
    if k < 2:
        return (float("inf"), k)
    totals = np.bincount(codes, x - x.mean(), minlength=k)
    return (float(np.sqrt(k / (k - 1) * np.sum(totals**2))) / len(x), k)


def cluster_interval(values: ArrayLike, clusters: ArrayLike, *, level: float = LEVEL) -> tuple[float, float]:
    """Interval of the mean of `values`, whose items share an effect within each cluster (a speaker)."""
    mean = float(np.mean(np.asarray(values, float)))
    error, k = cluster_error(values, clusters)
    if k < 2:
        return (-np.inf, np.inf)
    half = t_quantile(k - 1, 0.5 + level / 2) * error
    return (mean - half, mean + half)


def rate_interval(values: ArrayLike, clusters: ArrayLike, *, level: float = LEVEL) -> tuple[float, float]:
    """Interval of a rate (values in 0..1) over clusters: t on the logit scale, or Wilson's near 0 and 1."""
    x = np.asarray(values, float)
    return logit_t(float(x.mean()), *cluster_error(x, clusters), level=level)


def logit_t(value: float, error: float, clusters: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Interval of a rate with this standard error over so many clusters: t on the logit scale, to stay in 0..1.

    Rates that the clusters can't tell from 0 or 1 get Wilson's interval.

    >>> [round(end, 3) for end in logit_t(0.95, 0.02, 30)]
    [0.889, 0.978]
    """
    few = 0.05 / max(clusters, 1)
    if clusters < 2 or value <= few or value >= 1 - few or error == 0:
        return wilson(value * clusters, clusters, level=level)
    middle = np.log(value / (1 - value))
    half = t_quantile(clusters - 1, 0.5 + level / 2) * error / (value * (1 - value))
    low, high = 1 / (1 + np.exp(-np.array([middle - half, middle + half])))
    return (float(low), float(high))


def percentile(samples: ArrayLike, *, level: float = LEVEL) -> tuple[float, float]:
    """Percentile interval of bootstrap replicates."""
    low, high = np.nanquantile(np.asarray(samples, float), [0.5 - level / 2, 0.5 + level / 2])
    return (float(low), float(high))


def multiplicities(rng: np.random.Generator, clusters: int, resamples: int) -> NDArray[np.int64]:
    """How often each cluster is drawn in each bootstrap resample; one row per resample, rows sum to `clusters`."""
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples)


def draw_people(seed: int, people: int, numbers: range) -> NDArray[np.float64]:
    """How often each person is drawn in the resamples of these numbers; one column per resample.

    A resample depends on the seed and its number alone: any caller that needs some of them draws the same ones.
    """
    out = np.empty((people, len(numbers)))
    for column, number in enumerate(numbers):
        out[:, column] = multiplicities(np.random.default_rng([seed, 0, number]), people, 1)[0]
    return out


def look_levels(sizes: Sequence[int]) -> list[float]:
    """The levels of the intervals at planned looks after so many items, the last of them the most there can be: all of
    them hold together with 95 % confidence, so that one may stop at any look because of what is seen there.

    The 5 % are spent as O'Brien and Fleming's rule does, in Lan and DeMets's form: hardly any of it early, nearly all
    of it at the last look, whose interval is almost that of a sample of fixed size. What each look spends is added up
    (Bonferroni's bound), which holds whatever the figures of different looks have to do with each other.

    >>> [round(level, 4) for level in look_levels([25, 50, 100])], look_levels([100])
    ([0.9999, 0.9945, 0.9556], [0.95])
    """
    deviation = normal_quantile(0.5 + LEVEL / 2)
    spent = [2 - 2 * normal_probability(deviation * math.sqrt(sizes[-1] / size)) for size in sizes[:-1]]
    totals = [0.0, *spent, 1 - LEVEL]
    return [1 - (after - before) for before, after in pairwise(totals)]


def normal_probability(value: float) -> float:
    """The probability that a standard normal variable is at most this."""
    from statistics import NormalDist

    return NormalDist().cdf(value)


@cache
def normal_quantile(p: float) -> float:
    """Quantile of the standard normal distribution. (scipy.special takes a third of a second to import.)"""
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def t_quantile(freedom: int, p: float) -> float:
    """Of Student's t distribution.

    >>> round(t_quantile(1, 0.975), 3), round(t_quantile(19, 0.975), 4), round(t_quantile(10**6, 0.975), 4)
    (12.706, 2.093, 1.96)
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, p))


FAR_OUT = 3.0  # times the distance between the quartiles, above the upper one


def far_outliers(values: ArrayLike) -> NDArray[np.bool_]:
    """Which values lie far above the others (Tukey 1977).

    >>> far_outliers([1, 2, 3, 4, 40]).tolist()
    [False, False, False, False, True]
    """
    x = np.asarray(values, np.float64)
    if not len(x):
        return np.zeros(0, bool)
    low, high = np.quantile(x, [0.25, 0.75])
    return np.asarray(x > high + FAR_OUT * (high - low))
