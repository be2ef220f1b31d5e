"""What is done to vectors before a rotation is learned: center, PCA, unit length. Fitted on each side by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """x -> (x - mean) basis, then length 1. An empty `mean` is no centering, an empty `basis` no PCA.

    >>> p = fit_preprocessing([[3.0, 4.0], [1.0, 0.0]])
    >>> p.apply([[3.0, 4.0]]).tolist()
    [[0.6, 0.8]]
    """

    mean: Floats
    basis: Floats
    dimension: int

    @property
    def components(self) -> int:
        """The dimension of what comes out."""
        return int(self.basis.shape[1]) if self.basis.size else self.dimension

    def project(self, vectors: ArrayLike) -> Floats:
        """Centered and projected, not yet of length 1: what an enrollment model is averaged from."""
        x = np.asarray(vectors, float)
        if x.ndim != 2 or x.shape[1] != self.dimension:
            raise InputError(f"this map was learned on {self.dimension}-d vectors, these are {x.shape}")
        if self.mean.size:
            x = x - self.mean
        return x @ self.basis if self.basis.size else x

    def apply(self, vectors: ArrayLike) -> Floats:
        """As the rotation sees them: projected, with length 1."""
        return unit_rows(self.project(vectors))

    def restore(self, projected: ArrayLike) -> Floats:
        """Back into the space of the original vectors (their length is lost, and what PCA dropped is the mean)."""
        x = np.asarray(projected, float)
        if self.basis.size:
            x = x @ self.basis.T
        return x + self.mean if self.mean.size else x


def fit_preprocessing(vectors: ArrayLike, *, pca: int | None = None, center: bool = False) -> Preprocessing:
    """Fit on one side's training vectors. PCA is exact (full SVD; signs fixed, so that nothing is left to chance)."""
    x = np.asarray(vectors, float)
    count, dimension = x.shape
    mean = x.mean(0) if center or pca else np.zeros(0)
    basis = np.zeros((0, 0))
    if pca:
        if pca < 1 or pca > min(count, dimension):
            raise InputError(
                f"PCA to {pca} dimensions needs at least {pca} training vectors of at least that dimension; "
                f"here are {count} of {dimension}-d",
                fix=f"choose at most {min(count, dimension)} or give more vectors",
            )
        _, values, vt = np.linalg.svd(x - mean, full_matrices=False)
        if values[0] <= 1e-12 * max(1.0, float(np.abs(x).max())):
            raise InputError("all training vectors are the same: there is nothing to learn from")
        basis = vt[:pca].T
        # An SVD leaves the signs open; the largest entry of each direction is made positive.
        basis = basis * np.sign(basis[np.argmax(np.abs(basis), axis=0), np.arange(pca)])
    return Preprocessing(mean, basis, dimension)


def unit_rows(vectors: ArrayLike) -> Floats:
    """Rows with length 1; a row of zeros (the mean itself, after centering) stays zero."""
    x = np.asarray(vectors, float)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: Floats = x / np.where(norms > 0, norms, 1.0)
    return scaled
