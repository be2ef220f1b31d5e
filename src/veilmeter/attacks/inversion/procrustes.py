"""Orthogonal maps from pairs: Procrustes analysis (paper 002, eq. 1), and a fast step for stochastic solvers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError

Floats = NDArray[np.float64]
RANK_TOLERANCE = 1e-10


def procrustes(source: ArrayLike, target: ArrayLike, *, reflections: bool = True) -> Floats:
    """The orthogonal W that minimises ||A W - B||² for paired rows (eq. 1): the polar factor of AᵀB.

    With fewer pairs than dimensions the pairs say nothing about part of the space, and an SVD fills it with whatever
    the linear algebra library leaves there. Here that part is turned as little as possible, so that the answer is
    unique. Without `reflections` det W = +1: the least certain direction is flipped where needed.

    >>> W = procrustes([[1, 0], [0, 2]], [[0, 1], [-2, 0]])
    >>> W.round(3).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    a, b = np.asarray(source, float), np.asarray(target, float)
    if a.shape != b.shape or a.ndim != 2:
        raise InputError(
            f"Procrustes analysis needs pairs of vectors: {a.shape} and {b.shape} do not pair",
            fix="give both sides the same utterances and dimension",
        )
    if not len(a):
        raise InputError("Procrustes analysis needs at least one pair of vectors")
    u, values, vt = _svd(a.T @ b)
    if values[0] == 0:
        raise InputError("the pairs determine no direction at all: their cross-product is zero")
    rank = int(np.sum(values > RANK_TOLERANCE * values[0]))
    left, right = u[:, rank:], vt[rank:].T
    rotation: Floats = u[:, :rank] @ vt[:rank]
    if rank < len(values):
        inner_u, _, inner_vt = _svd(left.T @ right)
        left, right = left @ inner_u, right @ inner_vt.T  # turned as little as possible from one free part to the other
        rotation = rotation + left @ right.T
    if not reflections and np.linalg.det(rotation) < 0:
        last_u, last_v = (left[:, -1], right[:, -1]) if rank < len(values) else (u[:, -1], vt[-1])
        rotation = rotation - 2 * np.outer(last_u, last_v)
    return rotation


def polar_step(rotation: Floats, source: Floats, target: Floats) -> Floats:
    """The orthogonal matrix nearest to R + AᵀB (A = `source`, B = `target`, b rows each, R orthogonal).

    A full SVD costs O(d³) although the change has rank b. With R = `rotation`, R + AᵀB = R (I + (A R)ᵀ B), which is the
    identity outside the span of A R and B: QR of that d x 2b block, then an SVD of 2b x 2b, gives the same matrix.
    """
    count, dimension = source.shape
    if 2 * count >= dimension:
        return nearest_orthogonal(rotation + source.T @ target)
    turned = source @ rotation
    basis, _ = np.linalg.qr(np.concatenate([turned, target]).T)
    inner = np.eye(2 * count) + (turned @ basis).T @ (target @ basis)
    change = nearest_orthogonal(inner)
    change[np.diag_indices_from(change)] -= 1
    stepped: Floats = rotation + ((rotation @ basis) @ change) @ basis.T
    return stepped


def nearest_orthogonal(matrix: Floats) -> Floats:
    """The polar factor."""
    u, _, vt = _svd(matrix)
    nearest: Floats = u @ vt
    return nearest


def _svd(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """An SVD that does not give up: the fast driver fails to converge on rare matrices, the slow one does not."""
    try:
        u, values, vt = np.linalg.svd(matrix)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd

        u, values, vt = svd(matrix, lapack_driver="gesvd")
    return u, values, vt


def is_orthogonal(matrix: ArrayLike, *, tolerance: float = 1e-6) -> bool:
    w = np.asarray(matrix, float)
    return w.ndim == 2 and w.shape[0] == w.shape[1] and bool(np.allclose(w.T @ w, np.eye(len(w)), atol=tolerance))
