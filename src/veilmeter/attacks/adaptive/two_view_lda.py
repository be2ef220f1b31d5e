"""Two-view LDA: a candidate's place among the copies is what the original voice predicts, plus part of the rest.

With M the mean copies, c their mean and mu the mean originals, F = mu (mu'mu + lambda t I)^-1 mu' (M - c) is what the
original predicts (t the mean variance of mu), D = (M - c) - F the rest, which holds identity and the noise of draws
alike. Class means are F + rho D, the covariance within a class is W + (1 - rho) D'D/n, shrunk. rho = 1 is plain LDA,
rho = 0 trusts only what the original predicts.

Two-view LDA and softmax regression may also follow a regression back to the original voice that other people taught.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from veilmeter.attacks.adaptive.families import AffineFamily, AffineScorer, Parameters, scorer
from veilmeter.attacks.adaptive.regressions import SOFTMAX, recovery
from veilmeter.attacks.adaptive.training import TrainingSet, solve_ridge, spectrum
from veilmeter.attacks.material import Floats

FLOOR = 1e-3  # of the mean variance, added to every direction


def shrink(covariance: Floats, share: float) -> Floats:
    """`share` of the way to a multiple of the identity, or with a negative share to its own diagonal."""
    d = len(covariance)
    if share >= 0:
        mixed = (1 - share) * covariance
        mixed[np.diag_indices(d)] += share * np.trace(covariance) / d
    else:
        mixed = (1 + share) * covariance
        mixed[np.diag_indices(d)] -= share * np.diag(covariance)
    return mixed


class TwoViewLDA:
    """Parameters: the share of other people's covariance, lambda, rho, and the shrinkage (see `shrink`)."""

    name = "two-view-lda"
    about = "places each candidate among the copies by their original voice and their own copies together"
    grid: tuple[Parameters, ...] = tuple(
        (share, strength, rest, shrinkage)
        for share in (0.0, 0.3, 0.5)
        for strength in (0.1, 0.3, 1.0)
        for rest in (0.0, 0.5, 1.0)
        for shrinkage in (0.6, -0.1, -0.3, -0.6)
    )
    defaults: tuple[Parameters, ...] = ((0.0, 0.3, 0.5, 0.6), (0.0, 0.3, 0.5, -0.6))
    transfers = False

    def possible(self, training: TrainingSet) -> bool:
        return len(training.x) > 0

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        n, means = training.candidates, training.means
        center = means.mean(axis=0)
        centered = means - center
        rest = training.x - means[training.labels]
        own = rest.T @ rest / len(training.x)
        floor = FLOOR * float(np.mean((training.x - center) ** 2))
        parts = spectrum(training.mu)
        variance = float(np.sum(training.mu**2)) / n
        # Without other people's covariance their share changes nothing: every set of parameters counts once.
        alone = [p for p in grid if p[0] == 0.0] if training.within is None else []
        for (share, strength), group in groupby(sorted(alone or grid), key=lambda p: p[:2]):
            within = own if training.within is None else (1 - share) * own + share * training.within
            ridge = max(strength * variance, 1e-12)
            predicted = training.mu @ solve_ridge(parts, training.mu.T @ centered, ridge)
            unexplained = centered - predicted
            noise = unexplained.T @ unexplained / n
            for parameters in group:
                _, _, kept, shrinkage = parameters
                covariance = within + (1 - kept) * noise
                covariance[np.diag_indices(len(covariance))] += floor
                yield (
                    parameters,
                    self._scorer(training, predicted + kept * unexplained, shrink(covariance, shrinkage), center),
                )

    @staticmethod
    def _scorer(training: TrainingSet, models: Floats, covariance: Floats, center: Floats) -> AffineScorer:
        from scipy.linalg import cho_factor, cho_solve

        weights = cho_solve(cho_factor(covariance, lower=True), models.T)
        lengths = np.sqrt(np.maximum(np.einsum("ij,ji->i", models, weights), 1e-24))
        weights = weights / lengths
        return scorer(training, weights, -center @ weights)


TWO_VIEW_LDA = TwoViewLDA()


def recover(training: TrainingSet) -> tuple[TrainingSet, Floats]:
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
        moved, back = recover(training)
        for parameters, inner in self.inner.fit(moved, grid):
            yield parameters, scorer(training, back @ inner.weights, inner.offset)


RECOVERED_TWO_VIEW_LDA = Recovered(TWO_VIEW_LDA, TWO_VIEW_LDA.grid, ((0.5, 1.0, 0.0, 0.6),))
RECOVERED_SOFTMAX = Recovered(SOFTMAX, ((1e-4,), (1e-3,)), ((1e-3,),))
