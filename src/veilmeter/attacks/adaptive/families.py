"""The methods that the adaptive attacker chooses from, by name; other packages may add theirs.

A method is fitted on the attacker's own data and then gives each candidate a score for a vector. Most methods are
affine in the vector. Scores are standardized over the candidates of a trial, so lengths of vectors and of projections
drop out: a cosine with each candidate's model is the product with that model at unit length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.training import TrainingSet
from veilmeter.attacks.material import Floats
from veilmeter.core.registry import Registry

Parameters = tuple[float, ...]
PRIOR = 3.0  # how many candidates' worth the usual spread counts beside that of the candidates of a trial


class FittedMethod(Protocol):
    """A fitted method."""

    def scores(self, x: Floats) -> NDArray[np.float32]:
        """Of vectors (rows) for the candidates (columns), standardized over the candidates of each trial."""
        ...


@dataclass(frozen=True, eq=False)
class AffineScorer:
    """scores = x weights + offset, one column per candidate; `usual` is their usual variance over candidates."""

    weights: Floats
    offset: Floats
    usual: float = 0.0

    def scores(self, x: Floats) -> NDArray[np.float32]:
        raw = x.astype(np.float32) @ self.weights.astype(np.float32) + self.offset.astype(np.float32)
        return standardize(raw, self.usual)


def standardize(raw: NDArray[np.float32], usual: float) -> NDArray[np.float32]:
    """Scores without the mean over the candidates of each trial, in units of their spread.

    With few candidates their spread says little, so it is mixed with the usual one: with two, every trial would
    otherwise seem equally sure.
    """
    centered = raw - raw.mean(axis=1, keepdims=True)
    n = raw.shape[1]
    variances = np.einsum("ij,ij->i", centered, centered, dtype=np.float64) / n
    mixed = ((n - 1) * variances + PRIOR * usual) / (n - 1 + PRIOR)
    return np.asarray(centered / np.sqrt(np.maximum(mixed, 1e-24)).astype(np.float32)[:, None], np.float32)


class Family(Protocol):
    """A method with its parameters, registered in `FAMILIES`.

    `grid` are the parameters to choose from, `defaults` those used where nothing can be chosen honestly (with none it
    is not used then). `transfers` says that it needs no copy of the person looked for, `nonlinear` that it
    is used only where it clearly adds to the others, and that its scorers take coordinates (`Space.coordinates`) in
    place of directions (`Space.apply`). `about` completes the sentence "The attacker ...".
    """

    name: str
    about: str
    grid: tuple[Parameters, ...]
    defaults: tuple[Parameters, ...]
    transfers: bool
    nonlinear: bool

    def possible(self, training: TrainingSet) -> bool:
        """Whether it can be fitted on such data, and at an acceptable cost."""
        ...

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, FittedMethod]]:
        """A scorer for each of these parameters, sharing what they have in common."""
        ...


class AffineFamily(Family, Protocol):
    """A method whose scores are affine in the vector."""

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, AffineScorer]]: ...


def toward(models: Floats) -> Floats:
    """The weights of a cosine with each row of `models` (columns of unit length)."""
    norms = np.linalg.norm(models, axis=1)
    directions: Floats = (models / np.where(norms > 0, norms, 1.0)[:, None]).T
    return directions


def scorer(training: TrainingSet, weights: Floats, offset: Floats | None = None) -> AffineScorer:
    """With the usual variance, which is that of the training's copies."""
    shift = np.zeros(weights.shape[1]) if offset is None else offset
    centered = weights - weights.mean(axis=1, keepdims=True)
    level = shift - shift.mean()
    some = training.x[:: max(1, len(training.x) // 500)]
    spread = some @ centered + level if len(some) else level[None, :]
    return AffineScorer(weights, shift, float(np.mean(spread**2)))


_METHODS = "veilmeter.attacks.adaptive.methods"

FAMILIES: Registry[Family] = Registry(
    "method of the adaptive attacker",
    "veilmeter.adaptive_methods",
    {
        "lazy": f"{_METHODS}:LAZY",
        "ignorant": f"{_METHODS}:IGNORANT",
        "best-recording": f"{_METHODS}:BEST_RECORDING",
        "normalized-lazy": f"{_METHODS}:NORMALIZED_LAZY",
        "ridge": f"{_METHODS}:RIDGE",
        "ridge-to-mean": f"{_METHODS}:RIDGE_TO_MEAN",
        "softmax": f"{_METHODS}:SOFTMAX",
        "two-view-lda": f"{_METHODS}:TWO_VIEW_LDA",
        "pooled-ridge": f"{_METHODS}:POOLED_RIDGE",
        "recovered-softmax": f"{_METHODS}:RECOVERED_SOFTMAX",
        "recovered-two-view-lda": f"{_METHODS}:RECOVERED_TWO_VIEW_LDA",
        "kernel": "veilmeter.attacks.adaptive.nonlinear:KERNEL",
        "interactions": "veilmeter.attacks.adaptive.nonlinear:INTERACTIONS",
        "each-draw": "veilmeter.attacks.adaptive.draws:EACH_DRAW",
    },
)
