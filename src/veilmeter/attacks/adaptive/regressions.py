"""Methods that regress on the candidates' copies.

`ridge` goes from a copy to who it is (one column per candidate), `ridge-to-mean` to its speaker's mean original vector,
compared by cosine; `pooled-ridge` goes back to the original voice, learned from pairs of candidates and other
people together; `softmax` is a multinomial logistic regression of who speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from veilmeter.attacks.adaptive.families import AffineScorer, Parameters, scorer, toward
from veilmeter.attacks.adaptive.training import TrainingSet, class_sums, solve_ridge, spectrum
from veilmeter.attacks.material import Floats, Rows


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


RIDGE = OneHotRidge()


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

    def possible(self, training: TrainingSet) -> bool:
        return len(training.x) > 0 and training.x.size * training.candidates <= MOST

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]:
        for parameters in grid:
            weights, offset = regression(training.x, training.labels, training.candidates, parameters[0])
            yield parameters, scorer(training, weights, offset)


SOFTMAX = SoftmaxRegression()
