"""Methods that compare a recording with what a candidate is known by.

`lazy` takes the candidate's mean copy, centered: the lazy-informed attacker with the one thing that costs nothing.
`ignorant` takes the mean original as it is, which survives an anonymizer that hardly moves the vectors. The other two
take single copies: the best of them, or their mean in normalized scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.families import AffineScorer, FittedMethod, Parameters, scorer, standardize, toward
from veilmeter.attacks.adaptive.training import TrainingSet, class_means
from veilmeter.attacks.backends.base import Cohort, best_of_each, nearest, normalize, unit64, without_own
from veilmeter.attacks.material import Floats, Rows


class MeanCopy:
    name = "lazy"
    about = "compares a recording with the mean of each candidate's own anonymized copies"
    grid: tuple[Parameters, ...] = ((),)
    defaults: tuple[Parameters, ...] = ()
    transfers = False

    def possible(self, training: TrainingSet) -> bool:
        return len(training.x) > 0

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        for parameters in grid:
            yield parameters, scorer(training, toward(training.means))


LAZY = MeanCopy()


class MeanOriginal:
    name = "ignorant"
    about = "compares a recording with the mean of each candidate's original recordings"
    grid: tuple[Parameters, ...] = ((),)
    defaults: tuple[Parameters, ...] = ()
    transfers = True

    def possible(self, training: TrainingSet) -> bool:
        return training.comparable

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        for parameters in grid:
            yield parameters, scorer(training, toward(training.mu))


IGNORANT = MeanOriginal()


BLOCK = 4_000_000  # comparisons at a time
MOST_COPIES = 60_000  # beyond, comparing with each costs more than it brings
MOST_COMPARED = 4000  # copies, unless that were fewer than two of each candidate
MOST_STRANGERS = 1000


@dataclass(frozen=True, eq=False)
class BestScorer:
    """Cosines with all copies, and the best of each candidate's."""

    copies: NDArray[np.float32]
    labels: Rows
    candidates: int
    usual: float

    def scores(self, x: Floats) -> NDArray[np.float32]:
        def best(part: NDArray[np.float32]) -> NDArray[np.float32]:
            return best_of_each(part @ self.copies.T, self.labels, self.candidates)

        return standardize(_by_blocks(x, len(self.copies), best), self.usual)


@dataclass(frozen=True, eq=False)
class NormalizedScorer:
    """Cosines with candidates' mean copies (`models`), normalized by the copies in `cohort`."""

    models: NDArray[np.float32]
    cohort: NDArray[np.float32]
    of_models: Cohort
    usual: float

    def scores(self, x: Floats) -> NDArray[np.float32]:
        def beside_strangers(part: NDArray[np.float32]) -> NDArray[np.float32]:
            return normalize(part @ self.models.T, self.of_models, nearest(part @ self.cohort.T))

        return standardize(_by_blocks(x, len(self.cohort), beside_strangers), self.usual)


def _by_blocks(
    x: Floats, compared: int, score: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """The scores of unit vectors, a few at a time."""
    seen = unit64(x).astype(np.float32)
    step = max(1, BLOCK // max(1, compared))
    return np.concatenate([score(seen[start : start + step]) for start in range(0, len(seen), step)])


class _CopyFamily:
    """`name` and `about` of a comparison with copies; `normalizes` says which."""

    grid: tuple[Parameters, ...] = ((),)
    defaults: tuple[Parameters, ...] = ()
    transfers = False

    def __init__(self, name: str, about: str, *, normalizes: bool) -> None:
        self.name, self.about, self.normalizes = name, about, normalizes

    def possible(self, training: TrainingSet) -> bool:
        several = self.normalizes or int(training.counts.max(initial=0)) > 1  # else the best is the mean
        return several and 0 < len(training.x) <= MOST_COPIES

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, FittedMethod]]:
        unit = unit64(training.x)
        means = class_means(unit, training.labels, training.candidates)
        usual = scorer(training, toward(means)).usual
        copies = unit.astype(np.float32)
        for parameters in grid:
            if self.normalizes:
                models = unit64(means).astype(np.float32)
                some = slice(None, None, -(-len(copies) // MOST_STRANGERS))
                strangers = without_own(models @ copies[some].T, training.labels[some])
                yield parameters, NormalizedScorer(models, copies[some], nearest(strangers), usual)
            else:
                kept = _some_of_each(training.labels, training.candidates)
                yield parameters, BestScorer(copies[kept], training.labels[kept], training.candidates, usual)


def _some_of_each(labels: Rows, candidates: int) -> Rows:
    """Rows of as many copies of each candidate as can be compared at little cost, at least two."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(candidates))
    places = np.arange(len(labels)) - starts[labels[order]]
    return np.sort(order[places < max(2, MOST_COMPARED // candidates)])


BEST_RECORDING = _CopyFamily(
    "best-recording",
    "compares a recording with each candidate's anonymized copies and takes the most similar one",
    normalizes=False,
)
NORMALIZED_LAZY = _CopyFamily(
    "normalized-lazy",
    "compares a recording with the mean of each candidate's anonymized copies, beside what both score with their "
    "nearest strangers",
    normalizes=True,
)
