"""Softmax (multinomial logistic) regression of who speaks on the candidates' copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from veilmeter.attacks.adaptive.families.base import AffineScorer, Parameters, scorer
from veilmeter.attacks.adaptive.training import TrainingSet
from veilmeter.attacks.material import Floats, Rows

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


FAMILY = SoftmaxRegression()
