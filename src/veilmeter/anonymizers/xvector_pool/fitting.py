"""What is fitted in closed form around the converter: pitch from the x-vector, PLDA, and a pool of no one's voices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.anonymizers.xvector_pool.model import Whitening
from veilmeter.anonymizers.xvector_pool.selection import Plda, VoicePool
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import unit

Array = NDArray[np.float64]

RIDGE_STRENGTHS = tuple(float(s) for s in np.logspace(-1, 3, 17))
# Two recordings of one person seldom have a cosine below 0.45 in CAM++, two persons seldom above 0.42.
SAME_PERSON = 0.45
SHRINKAGE = 0.1


@dataclass(frozen=True, eq=False, slots=True)
class Ridge:
    """Weights with the intercept last, the strength that predicted best left-out speakers, and how well (R squared)."""

    weights: Array
    strength: float
    r_squared: float


def fit_ridge(inputs: ArrayLike, outputs: ArrayLike, strengths: Sequence[float] = RIDGE_STRENGTHS) -> Ridge:
    """Ridge regression; the strength by the leave-one-out error, which has a closed form (PRESS)."""
    x, y = np.asarray(inputs, float), np.asarray(outputs, float)
    x_mean, y_mean = x.mean(axis=0), y.mean()
    u, s, vt = np.linalg.svd(x - x_mean, full_matrices=False)
    projected = u.T @ (y - y_mean)
    best: tuple[float, float] | None = None
    for strength in strengths:
        shrink = s**2 / (s**2 + strength)
        residual = y - y_mean - u @ (shrink * projected)
        leverage = 1 / len(x) + (u**2 * shrink).sum(axis=1)
        error = float(np.mean((residual / np.maximum(1 - leverage, 1e-9)) ** 2))
        if best is None or error < best[0]:
            best = (error, strength)
    if best is None:
        raise InputError("no ridge strength was given")
    error, strength = best
    slope = vt.T @ (s / (s**2 + strength) * projected)
    variance = float(y.var()) or 1.0
    return Ridge(np.append(slope, y_mean - x_mean @ slope), strength, 1 - error / variance)


def fit_plda(whitening: Whitening, pieces: ArrayLike, speakers: Sequence[str]) -> Plda:
    """Two-covariance PLDA from several vectors a speaker (pieces of an utterance will do), in the whitened space."""
    z = whitening(pieces)
    codes = np.unique(np.asarray(speakers, dtype=str), return_inverse=True)[1]
    counts = np.bincount(codes)
    means = np.stack([np.bincount(codes, z[:, d]) for d in range(z.shape[1])], axis=1) / counts[:, None]
    residual = z - means[codes]
    freedom = max(1, len(z) - len(counts))
    within = residual.T @ residual / freedom
    # Where hardly anyone has two pieces the estimate is thin: lean on its diagonal, and never let it be singular.
    within = (1 - SHRINKAGE) * within + SHRINKAGE * np.diag(np.diag(within)) + 1e-3 * np.eye(len(within))
    between = np.cov(means.T, ddof=0).reshape(within.shape) - within / counts.mean()
    values, axes = np.linalg.eigh(between)
    between = (axes * np.maximum(values, 1e-6)) @ axes.T
    return Plda.fit(whitening.mean, within, between, whitening.matrix)


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """A pool, and the largest cosine of any of its voices with a real speaker."""

    pool: VoicePool
    largest_cosine: float
    rejected: int


def draw_pool(
    vectors: ArrayLike, genders: Sequence[str], per_gender: int, seed: int, *, limit: float = SAME_PERSON
) -> Drawn:
    """Voices of no one: drawn from normal distributions fitted to the real ones, one mean per gender, one covariance.

    A draw whose cosine with any real speaker reaches `limit` (what two recordings of one person have) is thrown away.
    """
    x = unit(vectors).astype(np.float64)
    labels = np.asarray(genders, dtype=str)
    groups = sorted(set(labels[labels != ""])) or [""]
    known = labels if groups != [""] else np.full(len(x), "")
    means = {g: x[known == g].mean(axis=0) for g in groups}
    inside = [x[known == g] - means[g] for g in groups]
    residual = np.concatenate(inside)
    freedom = max(1, len(residual) - len(groups))
    covariance = residual.T @ residual / freedom
    # A few speakers span a few directions only: without this, every draw would be a mixture of these very people.
    shrinkage = float(np.clip(20 / len(x), SHRINKAGE, 0.9))
    covariance = (1 - shrinkage) * covariance + shrinkage * np.diag(np.diag(covariance))
    values, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(values, 0))
    rng = np.random.default_rng([seed, 0x9001])
    real = x.astype(np.float32)
    drawn: list[NDArray[np.float32]] = []
    names: list[str] = []
    rejected = 0
    largest = -1.0
    for gender in groups:
        kept = 0
        while kept < per_gender:
            candidate = unit(means[gender] + root @ rng.standard_normal(len(root)))
            nearest = float((real @ candidate).max())
            if nearest >= limit:
                rejected += 1
                if rejected > 1000 * per_gender:
                    raise InputError(
                        "no voice can be drawn that is unlike every speaker of this corpus", fix="use more speakers"
                    )
                continue
            kept += 1
            largest = max(largest, nearest)
            drawn.append(candidate)
            names.append(f"{gender or 'x'}{kept:03d}")
    genders_drawn = tuple(g for g in groups for _ in range(per_gender))
    return Drawn(VoicePool(np.stack(drawn), tuple(names), genders_drawn), largest, rejected)
