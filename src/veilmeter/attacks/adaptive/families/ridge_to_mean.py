"""Ridge regression from a copy to its speaker's mean original vector, compared by cosine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilmeter.attacks.adaptive.families.base import AffineScorer, Parameters, scorer, toward
from veilmeter.attacks.adaptive.training import TrainingSet, class_sums


class RidgeToMean:
    name = "ridge-to-mean"
    about = "regresses a candidate's mean original vector on their anonymized copies, and compares with it"
    grid: tuple[Parameters, ...] = ((0.1,), (0.3,), (1.0,), (3.0,))
    defaults: tuple[Parameters, ...] = ((1.0,),)
    transfers = True

    def possible(self, training: TrainingSet) -> bool:
        return training.copies > 0

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        targets = class_sums(training.x, training.labels, training.candidates).T @ training.mu
        for parameters in grid:
            yield parameters, scorer(training, training.ridge(targets, parameters[0]) @ toward(training.mu))


FAMILY = RidgeToMean()
