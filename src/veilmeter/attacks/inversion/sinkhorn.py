"""Entropic optimal transport between two sets of equal-weight points (Cuturi 2013)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
SAFE_EXPONENT = 300.0  # the square of exp(-300) is still a normal double: kernel entries are multiplied by scalings
CHECK_EVERY = 10


def sinkhorn(cost: Floats, regularization: float, *, tolerance: float = 1e-3, steps: int = 1000) -> Floats:
    """The plan P that minimises <P, cost> - regularization * entropy(P); rows sum to 1, columns to n/m.

    Scaling iterations, in the log domain where the kernel would underflow. They stop when the column sums are
    `tolerance` away from what they should be (Euclidean norm), looked at every ten steps.

    >>> sinkhorn(np.array([[0.0, 1.0], [1.0, 0.0]]), 0.1).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = cost.shape
    share = rows / columns
    exponent = (cost.min() - cost) / regularization
    if exponent.min() < -SAFE_EXPONENT:
        return _in_logarithms(exponent, share, tolerance, steps)
    kernel = np.exp(exponent)
    u = np.ones(rows)
    for step in range(steps):
        v = share / (u @ kernel)
        u = 1 / (kernel @ v)
        if step % CHECK_EVERY == 0 and np.linalg.norm(v * (u @ kernel) - share) < tolerance:
            break
    plan: Floats = u[:, None] * kernel * v
    return plan


def _in_logarithms(exponent: Floats, share: float, tolerance: float, steps: int) -> Floats:
    f = np.zeros(len(exponent))
    for step in range(steps):
        g = np.log(share) - logsumexp(exponent + f[:, None], axis=0)
        f = -logsumexp(exponent + g, axis=1)
        if step % CHECK_EVERY == 0:
            sums = np.exp(g + logsumexp(exponent + f[:, None], axis=0))
            if np.linalg.norm(sums - share) < tolerance:
                break
    plan: Floats = np.exp(exponent + f[:, None] + g)
    return plan
