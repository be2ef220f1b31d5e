"""Ridge regression back to the original voice, learned from the candidates' and other people's pairs together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from veilmeter.attacks.adaptive.families.base import AffineScorer, Parameters, scorer, toward
from veilmeter.attacks.adaptive.training import TrainingSet, class_sums, solve_ridge, spectrum
from veilmeter.attacks.material import Floats


def recovery(training: TrainingSet, weight: float, strength: float) -> Floats:
    """From a copy to the original: a candidate's copies count `weight` times another person's."""
    assert training.pairs_x is not None
    assert training.pairs_y is not None
    scale = np.sqrt(weight)
    sums = class_sums(training.x, training.labels, training.candidates)
    targets = weight * (sums.T @ training.mu) + training.pairs_x.T @ training.pairs_y
    return solve_ridge(spectrum(np.concatenate([scale * training.x, training.pairs_x])), targets, strength)


class PooledRidge:
    # What no test can tell apart is decided by the order: where no candidate's copy is trained on, their weight.
    name = "pooled-ridge"
    about = "learns the way back to the original voice from candidates and other people together"
    grid: tuple[Parameters, ...] = tuple((weight, strength) for weight in (1.0, 3.0) for strength in (0.3, 1.0, 3.0))
    defaults: tuple[Parameters, ...] = ((1.0, 1.0),)
    transfers = True

    def possible(self, training: TrainingSet) -> bool:
        return training.pairs_x is not None

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        models = toward(training.mu)
        for parameters in grid:
            yield parameters, scorer(training, recovery(training, *parameters) @ models)


FAMILY = PooledRidge()
