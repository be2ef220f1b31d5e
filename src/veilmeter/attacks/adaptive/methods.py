"""The methods that the adaptive attacker chooses from.

Comparisons: `lazy` takes the candidate's mean copy, centered: the lazy-informed attacker with the one thing that costs
nothing. `ignorant` takes the mean original as it is, which survives an anonymizer that hardly moves the vectors. Two
more take single copies: the best of them, or their mean in normalized scores.

Regressions: `ridge` goes from a copy to who it is (one column per candidate), `ridge-to-mean` to its speaker's mean
original vector, compared by cosine; `pooled-ridge` goes back to the original voice, learned from pairs of candidates
and other people together; `softmax` is a multinomial logistic regression of who speaks.

Two-view LDA: a candidate's place among the copies is what the original voice predicts, plus part of the rest. With M
the mean copies, c their mean and mu the mean originals, F = mu (mu'mu + lambda t I)^-1 mu' (M - c) is what the original
predicts (t the mean variance of mu), D = (M - c) - F the rest, which holds identity and the noise of draws alike. Class
means are F + rho D, the covariance within a class is W + (1 - rho) D'D/n, shrunk. rho = 1 is plain LDA, rho = 0 trusts
only what the original predicts. It and softmax regression may also follow a regression back to the original voice that
other people taught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.families import (
    AffineFamily,
    AffineScorer,
    FittedMethod,
    Parameters,
    scorer,
    standardize,
    toward,
)
from veilmeter.attacks.adaptive.training import TrainingSet, class_means, class_sums, solve_ridge, spectrum
from veilmeter.attacks.backends.base import Cohort, best_of_each, nearest, normalize, unit64, without_own
from veilmeter.attacks.material import Floats, Rows


class MeanCopy:
    name = "lazy"
    about = "compares a recording with the mean of each candidate's own anonymized copies"
    grid: tuple[Parameters, ...] = ((),)
    defaults: tuple[Parameters, ...] = ()
    transfers = False
    nonlinear = False

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
    nonlinear = False

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
    nonlinear = False

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
    "compares a recording with the mean of each candidate's anonymized copies, relative to how both score against "
    "their nearest strangers",
    normalizes=True,
)


class OneHotRidge:
    name = "ridge"
    about = "regresses who speaks on each candidate's own anonymized copies"
    grid: tuple[Parameters, ...] = ((0.1,), (0.3,), (1.0,), (3.0,))
    defaults: tuple[Parameters, ...] = ((1.0,),)
    transfers = False
    nonlinear = False

    def possible(self, training: TrainingSet) -> bool:
        return len(training.x) > 0

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        sums = class_sums(training.x, training.labels, training.candidates).T  # X'H
        for parameters in grid:
            yield parameters, scorer(training, training.ridge(sums, parameters[0]))


RIDGE = OneHotRidge()


class RidgeToMean:
    name = "ridge-to-mean"
    about = "regresses a candidate's mean original vector on their anonymized copies, and compares with it"
    grid: tuple[Parameters, ...] = ((0.1,), (0.3,), (1.0,), (3.0,))
    defaults: tuple[Parameters, ...] = ((1.0,),)
    transfers = True
    nonlinear = False

    def possible(self, training: TrainingSet) -> bool:
        return training.copies > 0

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        targets = class_sums(training.x, training.labels, training.candidates).T @ training.mu
        for parameters in grid:
            yield parameters, scorer(training, training.ridge(targets, parameters[0]) @ toward(training.mu))


RIDGE_TO_MEAN = RidgeToMean()


def recovery(training: TrainingSet, weight: float, strength: float) -> Floats:
    """From a copy to the original: a candidate's copies count `weight` times another person's."""
    assert training.pairs_x is not None
    assert training.pairs_y is not None
    scale = np.sqrt(weight)
    sums = class_sums(training.x, training.labels, training.candidates)
    targets = weight * (sums.T @ training.mu) + training.pairs_x.T @ training.pairs_y
    return solve_ridge(spectrum(np.concatenate([scale * training.x, training.pairs_x])), targets, strength)


class PooledRidge:
    # The order decides between parameters that no test distinguishes: the weight, where no candidate's copy is used.
    name = "pooled-ridge"
    about = "learns the way back to the original voice from candidates and other people together"
    grid: tuple[Parameters, ...] = tuple((weight, strength) for weight in (1.0, 3.0) for strength in (0.3, 1.0, 3.0))
    defaults: tuple[Parameters, ...] = ((1.0, 1.0),)
    transfers = True
    nonlinear = False

    def possible(self, training: TrainingSet) -> bool:
        return training.pairs_x is not None

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        models = toward(training.mu)
        for parameters in grid:
            yield parameters, scorer(training, recovery(training, *parameters) @ models)


POOLED_RIDGE = PooledRidge()


SCALE = 10.0  # vectors have length 1, and a penalty on weights should not ask for large ones
STEPS = 60
MOST = 100_000_000  # copies x dimensions x candidates: beyond, it costs more than everything else together


def regression(x: Floats, labels: Rows, n: int, penalty: float) -> tuple[Floats, Floats]:
    """Weights and offsets that minimize the mean cross-entropy plus `penalty` times their squared length."""
    from scipy.optimize import minimize

    features = SCALE * np.concatenate([x, np.full((len(x), 1), 0.1)], axis=1)
    rows = np.arange(len(x))
    shape = (features.shape[1], n)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        logits = features @ weights
        logits -= logits.max(axis=1, keepdims=True)
        own = logits[rows, labels]
        np.exp(logits, out=logits)
        totals = logits.sum(axis=1, keepdims=True)
        value = float(np.mean(np.log(totals[:, 0]) - own))
        logits /= totals
        logits[rows, labels] -= 1
        gradient = features.T @ logits / len(x) + 2 * penalty * weights
        return value + penalty * float(np.sum(weights**2)), gradient.ravel()

    start = np.zeros(shape[0] * n)
    coefficients = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x.reshape(shape)
    return SCALE * coefficients[:-1], 0.1 * SCALE * coefficients[-1]


class SoftmaxRegression:
    name = "softmax"
    about = "trains a softmax regression on each candidate's own anonymized copies"
    grid: tuple[Parameters, ...] = ((1e-4,), (1e-3,), (1e-2,))
    defaults: tuple[Parameters, ...] = ((1e-2,),)
    transfers = False
    nonlinear = False

    def possible(self, training: TrainingSet) -> bool:
        return len(training.x) > 0 and training.x.size * training.candidates <= MOST

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        for parameters in grid:
            weights, offset = regression(training.x, training.labels, training.candidates, parameters[0])
            yield parameters, scorer(training, weights, offset)


SOFTMAX = SoftmaxRegression()


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
    nonlinear = False

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
        self.nonlinear = inner.nonlinear

    def possible(self, training: TrainingSet) -> bool:
        return training.pairs_x is not None and self.inner.possible(training)

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        moved, back = recover(training)
        for parameters, inner in self.inner.fit(moved, grid):
            yield parameters, scorer(training, back @ inner.weights, inner.offset)


RECOVERED_TWO_VIEW_LDA = Recovered(TWO_VIEW_LDA, TWO_VIEW_LDA.grid, ((0.5, 1.0, 0.0, 0.6),))
RECOVERED_SOFTMAX = Recovered(SOFTMAX, ((1e-4,), (1e-3,)), ((1e-3,),))
