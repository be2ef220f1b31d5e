"""The candidate's mean original, as it is: what survives an anonymizer that hardly moves the vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilmeter.attacks.adaptive.families.base import AffineScorer, Parameters, scorer, toward
from veilmeter.attacks.adaptive.training import TrainingSet


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


FAMILY = MeanOriginal()
