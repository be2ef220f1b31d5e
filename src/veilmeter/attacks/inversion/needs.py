"""The needs of an inversion attack: how many pairs, how clean, and what it gives when the pairs are wrong.

Each point is an attack learned anew on part of the pairs, or on pairs of which some are shuffled. Points run through an
engine and depend on nothing but the seed and their own numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.inversion.attack import InversionSettings, learn, take_pairs
from veilmeter.attacks.inversion.measures import evaluate
from veilmeter.core.engine import Engine, Here, map_ordered
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import percentile
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.measure import estimate_of

SIZES = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
NOISES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class InversionData:
    """What every point has in common."""

    clear_train: Embeddings
    anonymized_train: Embeddings
    clear_trials: Embeddings
    anonymized_trials: Embeddings
    settings: InversionSettings
    most: int = sys.maxsize  # trials of a group that are looked up at a point


@dataclass(frozen=True, eq=False)
class Point:
    """One attack: with `pairs` known pairs, of which the share `noise` is shuffled."""

    data: InversionData
    pairs: int
    noise: float
    seed: tuple[int, ...]


def learning_curve(
    data: InversionData,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    seed: int = 0,
    engine: Engine | None = None,
) -> dict[str, list[Estimate]]:
    """Top-1 against the number of known pairs, from 5 to all; the mean over `repeats` random choices of pairs.

    The attacker has all training vectors, but knows only for these pairs which belong together.
    """
    known = len(_pairs(data).clear_train)
    chosen = sorted({n for n in (sizes or SIZES) if n < known} | {known})
    if min(chosen) < 2:
        raise InputError("a learning curve starts at two pairs or more", fix="choose larger sizes")
    points = [
        Point(data, size, 0.0, (seed, size, repeat))
        for size in chosen
        for repeat in range(repeats if size < known else 1)
    ]
    return _measure(points, [point.pairs for point in points], "pairs", engine)


def label_noise(
    data: InversionData,
    *,
    shares: Sequence[float] = NOISES,
    repeats: int = 5,
    seed: int = 0,
    engine: Engine | None = None,
) -> dict[str, list[Estimate]]:
    """Top-1 when a share of the pairs is shuffled among themselves."""
    if any(not 0 <= share <= 1 for share in shares):
        raise InputError("a share of wrong pairs lies between 0 and 1")
    known = len(_pairs(data).clear_train)
    points = [
        Point(data, known, share, (seed, round(1000 * share), repeat))
        for share in shares
        for repeat in range(repeats if share else 1)
    ]
    return _measure(points, [point.noise for point in points], "wrong_pairs", engine)


def permutation_null(
    data: InversionData, *, shuffles: int = 20, seed: int = 0, engine: Engine | None = None
) -> dict[str, tuple[float, tuple[float, float]]]:
    """What Top-1 gives when all pairs are shuffled: mean and 5th to 95th percentile, by measure and group.

    Keys are `top1` and `top1_clear`, with `@group` where there are several groups. An attack whose pairs are wrong
    (sorted differently, say) lands inside this range.
    """
    known = len(_pairs(data).clear_train)
    points = [Point(data, known, 1.0, (seed, 1000, number)) for number in range(shuffles)]
    results = map_ordered(engine or Here(), top1, points)
    levels = {}
    for number, name in enumerate(("top1", "top1_clear")):
        for group in results[0]:
            values = [result[group][number] for result in results]
            key = name if len(results[0]) == 1 else f"{name}@{group}"
            levels[key] = (fmean(values), percentile(values, level=0.9))
    return levels


def top1(point: Point) -> dict[str, tuple[float, float]]:
    """One point: learn, restore the trials, and count; both directions, by group."""
    data = _pairs(point.data)
    rng = np.random.default_rng(point.seed)
    clear, anonymized = data.clear_train, data.anonymized_train
    pairs = None
    if point.pairs < len(clear):
        pairs = list(clear.utterances[_spread(clear, point.pairs, data.settings.by, rng)])
    if point.noise:
        anonymized = shuffle(anonymized, point.noise, data.settings.by, rng)
    learnt = learn(clear, anonymized, data.settings, pairs=pairs)
    trials = data.anonymized_trials, data.clear_trials
    return evaluate(learnt, *trials, most=data.most).top1()


def shuffle(embeddings: Embeddings, share: float, by: str, rng: np.random.Generator) -> Embeddings:
    """The vectors of a share of the utterances, exchanged among themselves (within each value of `by`)."""
    vectors = embeddings.vectors.copy()
    groups = embeddings.attributes[by] if by else np.full(len(embeddings), "", dtype=object)
    for value in dict.fromkeys(groups):
        rows = np.flatnonzero(groups == value)
        chosen = rng.permutation(rows)[: round(share * len(rows))]
        if len(chosen) > 1:
            # A cycle in random order leaves no chosen utterance with its own vector.
            vectors[chosen] = vectors[np.roll(chosen, 1)]
    return embeddings.with_vectors(vectors)


def _spread(embeddings: Embeddings, count: int, by: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` random rows, at least two for each value of `by`."""
    order = rng.permutation(len(embeddings))
    if by:
        groups = embeddings.attributes[by][order]
        first = [row for value in sorted(set(groups)) for row in order[groups == value][:2]]
        chosen = set(first)
        order = np.array([*first, *(row for row in order if row not in chosen)])
        count = max(count, len(first))
    return np.sort(order[:count])


def _pairs(data: InversionData) -> InversionData:
    clear, anonymized = take_pairs(data.clear_train, data.anonymized_train)
    return replace(data, clear_train=clear, anonymized_train=anonymized)


def _measure(
    points: Sequence[Point], values: Sequence[float], name: str, engine: Engine | None
) -> dict[str, list[Estimate]]:
    results = map_ordered(engine or Here(), top1, points)
    by_direction: dict[str, list[Estimate]] = {"top1": [], "top1_clear": []}
    for number, direction in enumerate(by_direction):
        for group in results[0]:
            at = {"gender": group} if len(results[0]) > 1 else {}
            for value in dict.fromkeys(values):
                got = [r[group][number] for r, v in zip(results, values, strict=True) if v == value]
                by_direction[direction].append(
                    estimate_of(
                        direction,
                        fmean(got),
                        method=f"mean of {len(got)} draws",
                        n={"draws": len(got)},
                        at={**at, name: value},
                        extra={"lowest": min(got), "highest": max(got)},
                    )
                )
    return by_direction
