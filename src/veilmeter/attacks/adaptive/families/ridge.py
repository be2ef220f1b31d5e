"""Ridge regression from a copy to who it is: one column per candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilmeter.attacks.adaptive.families.base import AffineScorer, Parameters, scorer
from veilmeter.attacks.adaptive.training import TrainingSet, class_sums


class OneHotRidge:
    name = "ridge"
    about = "regresses who speaks on each candidate's own anonymized copies"
    grid: tuple[Parameters, ...] = ((0.1,), (0.3,), (1.0,), (3.0,))
    defaults: tuple[Parameters, ...] = ((1.0,),)
    transfers = False

    def possible(self, training: TrainingSet) -> bool:
        return len(training.x) > 0

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        sums = class_sums(training.x, training.labels, training.candidates).T  # X'H
        for parameters in grid:
            yield parameters, scorer(training, training.ridge(sums, parameters[0]))


FAMILY = OneHotRidge()
