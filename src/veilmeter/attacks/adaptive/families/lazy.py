"""The candidate's mean copy, centered: the lazy-informed attacker with the one thing that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilmeter.attacks.adaptive.families.base import AffineScorer, Parameters, scorer, toward
from veilmeter.attacks.adaptive.training import TrainingSet


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


FAMILY = MeanCopy()
