"""Two-view LDA and softmax regression after a regression back to the original voice that other people taught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from veilmeter.attacks.adaptive.families import softmax, two_view_lda
from veilmeter.attacks.adaptive.families.base import AffineFamily, AffineScorer, Parameters, scorer
from veilmeter.attacks.adaptive.families.pooled_ridge import recovery
from veilmeter.attacks.adaptive.training import TrainingSet
from veilmeter.attacks.material import Floats


def recovered(training: TrainingSet) -> tuple[TrainingSet, Floats]:
    """The training with copies moved back to where originals lie, and the map that moves them."""
    back = recovery(training, 1.0, 1.0)
    moved = training.x @ back
    back = back / max(float(np.mean(np.linalg.norm(moved, axis=1))), 1e-12)
    within = None if training.within is None else back.T @ training.within @ back
    return replace(training, x=training.x @ back, within=within), back


class Recovered:
    """`inner`, another family, where copies were moved back first."""

    def __init__(self, inner: AffineFamily, grid: tuple[Parameters, ...], defaults: tuple[Parameters, ...]) -> None:
        self.inner = inner
        self.name = f"recovered-{inner.name}"
        self.about = f"moves copies back as other people's pairs teach, then {inner.about}"
        self.grid = grid
        self.defaults = defaults
        self.transfers = inner.transfers

    def possible(self, training: TrainingSet) -> bool:
        return training.pairs_x is not None and self.inner.possible(training)

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        moved, back = recovered(training)
        for parameters, inner in self.inner.fit(moved, grid):
            yield parameters, scorer(training, back @ inner.weights, inner.offset)


TWO_VIEW_LDA = Recovered(two_view_lda.FAMILY, two_view_lda.FAMILY.grid, ((0.5, 1.0, 0.0, 0.6),))
SOFTMAX = Recovered(softmax.FAMILY, ((1e-4,), (1e-3,)), ((1e-3,),))
