"""A linear discriminant for few speakers: the nearest mean of a class, in two views of the vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def unit64(vectors: ArrayLike) -> Array:
    """Rows of length 1 in double precision; a zero row stays zero."""
    x = np.asarray(vectors, np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    return x / np.where(norms > 0, norms, 1.0)[:, None]


def shrunk(covariance: Array, samples: int) -> Array:
    """With its correlation shrunk towards the identity, so that it can be inverted when there are fewer samples than
    dimensions; each coordinate keeps its own variance.

    The share is the oracle approximating one (Chen et al. 2010), for the correlation. Shrunk towards a multiple of the
    identity, coordinates of low variance would be drowned, and whatever tells people apart there with them.
    """
    d = len(covariance)
    variances = np.diag(covariance)
    mean = float(variances.mean())
    if mean <= 0:
        return np.eye(d)
    # A floor for coordinates that hold no variance at all, as when the vectors lie in a subspace.
    scales = np.sqrt(np.maximum(variances, 1e-9 * mean))
    correlation = covariance / np.outer(scales, scales)
    np.fill_diagonal(correlation, 1.0)
    trace_of_square = float(np.sum(correlation**2))
    above = (1 - 2 / d) * trace_of_square + d**2
    below = (samples + 1 - 2 / d) * (trace_of_square - d)
    weight = 1.0 if below <= 0 else min(1.0, above / below)
    mixed: Array = ((1 - weight) * correlation + (weight + 1e-9) * np.eye(d)) * np.outer(scales, scales)
    return mixed


def discriminant_views(train: Array, test: Array, people: int) -> list[tuple[Array, Array]]:
    """The vectors as they are, and whitened: with few speakers the first tells more, with many the second. What varies
    is the speaker, so the covariance is shrunk as one of so many samples as there are speakers."""
    mean = train.mean(axis=0)
    centered, other = train - mean, test - mean
    covariance = shrunk(centered.T @ centered / len(train), people)
    half = np.linalg.cholesky(np.linalg.inv(covariance))
    return [(centered, other), (centered @ half, other @ half)]


def nearest_class(tests: list[Array], means: list[Array], label: NDArray[np.int64], values: int) -> NDArray[np.int64]:
    """The nearest class mean of each test; `means` are those of speakers, `label` their classes."""
    weights = np.zeros((values, len(label)))
    weights[label, np.arange(len(label))] = 1
    sizes = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray(nearest_center(tests, [(weights @ mean / sizes)[None] for mean in means])[0])


def nearest_center(tests: Sequence[Array], centers: Sequence[Array]) -> NDArray[np.int64]:
    """The nearest center of each test (sets x tests), for sets of centers (sets x values x dimensions) in each view.

    Distances are squared, in units of each view's spread, and summed over the views; a center that is NaN is nobody's.
    """
    sets, values, _ = centers[0].shape
    distances = np.zeros((len(tests[0]), sets * values))
    for test, center in zip(tests, centers, strict=True):
        flat = center.reshape(sets * values, -1)
        scale = float(np.mean(np.einsum("ij,ij->i", test, test))) or 1.0
        distances += (np.einsum("ij,ij->i", flat, flat) - 2 * test @ flat.T) / scale
    distances = np.where(np.isnan(distances), np.inf, distances)
    return np.asarray(distances.reshape(-1, sets, values).argmin(axis=2).T, np.int64)
