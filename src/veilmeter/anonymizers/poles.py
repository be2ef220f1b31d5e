"""The poles of many all-pole filters at once.

`numpy.roots` solves one eigenvalue problem a polynomial. Speech has a hundred frames a second, so here all frames are
factored together, each into real quadratics z² + bz + c, by Aberth's simultaneous iteration, carried out not on complex
roots but in the ring R[z]/(z² + bz + c): an element is u1·z + u0, a conjugate pair and two real poles are the same
thing, and only real arithmetic on contiguous rows is left. One step is Newton's on p divided by the product of the
other factors, so the error is cubed each time.

Two things make it reliable. Linear prediction puts all poles into the unit disc and a grid of values of p in [-1, 1]
shows how many are real, so that the start has the right number of each kind; and a factor that began as a conjugate
pair is kept one in the first steps. Every result is checked by multiplying the factors out; what has not converged, or
does not give p back, goes to the eigenvalue routine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Floats = NDArray[Any]  # of single or double precision

START_RADIUS = 0.95  # of the pairs; between 0.9 and 0.95 the mean number of steps on speech hardly changes
GRID = np.cos(np.pi * np.arange(48) / 47)[::-1]  # dense near -1 and 1, where real poles crowd
COARSE_STEPS, GUARDED_STEPS, STEPS = 4, 8, 24
CONVERGED = 1e-6  # a step this small leaves an error of its cube
FEW = 4  # frames for which another step costs more than their eigenvalues
BACKWARD_ERROR = 1e-12  # of the factors' product, in units of the largest coefficient


def factors(polynomials: Real) -> tuple[Real, Real, NDArray[np.bool_]]:
    """The quadratic factors of monic polynomials of even degree n whose roots lie in the unit disc.

    `polynomials` is n + 1 rows, highest power first, by the number of frames. Returns b and c, n/2 rows by frames, and
    which frames were found; in the others b and c mean nothing. Below degree 6 none is found.

    >>> b, c, found = factors(np.array([[1.0], [-0.5], [0.75], [0.0], [0.125], [0.0], [0.25]]))
    >>> product(b, c)[:, 0].round(12) + 0.0, found
    (array([ 1.   , -0.5  ,  0.75 ,  0.   ,  0.125,  0.   ,  0.25 ]), array([ True]))
    """
    b, c, pairs = _start(polynomials)
    width = polynomials.shape[1]
    found_b, found_c = np.zeros_like(b), np.zeros_like(c)
    found = np.zeros(width, dtype=bool)
    active = np.arange(width)
    p = polynomials
    with np.errstate(all="ignore"):  # what divides by zero does not converge, and is caught below
        _coarse(p, b, c, pairs)
        step = _Steps(len(b), width, np.float64)
        for number in range(COARSE_STEPS, STEPS):
            db, dc = step(p, b, c)
            b += db
            c += dc
            if number < GUARDED_STEPS:
                _keep_pairs(b, c, pairs)
            np.abs(db, out=db)
            np.abs(dc, out=dc)
            done = np.maximum(db.max(axis=0), dc.max(axis=0)) < CONVERGED
            if not done.any():
                continue
            ready = active[done]
            found_b[:, ready], found_c[:, ready], found[ready] = b[:, done], c[:, done], True
            rest = ~done
            active = active[rest]
            if len(active) < FEW:
                break
            step.fit(len(active))
            p, b, c, pairs = p[:, rest], b[:, rest], c[:, rest], pairs[:, rest]
        wrong = np.abs(product(found_b, found_c) - polynomials).max(axis=0)
        found &= wrong <= BACKWARD_ERROR * np.abs(polynomials).max(axis=0)
    return found_b, found_c, found


def _coarse(p: Real, b: Real, c: Real, pairs: NDArray[np.bool_]) -> None:
    """The first steps, far from the poles, in single precision: twice as fast. Where that breaks down b and c stay."""
    p32, b32, c32 = p.astype(np.float32), b.astype(np.float32), c.astype(np.float32)
    step = _Steps(len(b), b.shape[1], np.float32)
    for _ in range(COARSE_STEPS):
        db, dc = step(p32, b32, c32)
        b32 += db
        c32 += dc
        _keep_pairs(b32, c32, pairs)
    good = np.isfinite(b32.sum(axis=0) + c32.sum(axis=0))
    np.copyto(b, b32, where=good)
    np.copyto(c, c32, where=good)


def _keep_pairs(b: Floats, c: Floats, pairs: NDArray[np.bool_]) -> None:
    """A pair that has met on the real axis is put back above it, at the same distance."""
    height = c - 0.25 * b * b  # squared, above the real axis
    np.subtract(c, 2 * height, out=c, where=pairs & (height < 0))


def product(b: Real, c: Real) -> Real:
    """The polynomials whose quadratic factors are z² + bz + c: 2m + 1 rows from m rows."""
    count, width = b.shape
    p = np.zeros((2 * count + 1, width))
    p[0] = 1.0
    for i in range(count):
        upper = 2 * i + 1
        low = p[:upper].copy()
        p[1 : upper + 1] += b[i] * low
        p[2 : upper + 2] += c[i] * low
    return p


def _start(p: Real) -> tuple[Real, Real, NDArray[np.bool_]]:
    """b, c and which factors begin as conjugate pairs."""
    count, width = (len(p) - 1) // 2, p.shape[1]
    values = np.vander(GRID, len(p)) @ p
    crosses = values[1:] * values[:-1] < 0
    real = np.minimum(crosses.sum(axis=0), 2 * count)
    b, c = np.empty((count, width)), np.empty((count, width))
    for n in np.unique(real):
        which = np.nonzero(real == n)[0]
        half = n // 2
        if half:
            left = np.nonzero(crosses[:, which].T)[1].reshape(len(which), -1)[:, : 2 * half].T
            before, after = values[left, which], values[left + 1, which]
            x = GRID[left] + (GRID[left + 1] - GRID[left]) * before / (before - after)
            b[:half, which] = -(x[0::2] + x[1::2])
            c[:half, which] = x[0::2] * x[1::2]
        others = count - half
        # With real poles at both ends of the axis the pairs keep off it.
        angle = np.arange(1, others + 1) / (others + 1) if half else (np.arange(others) + 0.5) / max(others, 1)
        b[half:, which] = (-2 * START_RADIUS * np.cos(np.pi * angle))[:, None]
        c[half:, which] = START_RADIUS**2
    return b, c, np.arange(count)[:, None] >= real // 2


class _Steps:
    """Aberth's step for all factors of all frames. Its arrays are made once: new ones cost as much as the sums."""

    def __init__(self, count: int, width: int, kind: type[np.floating[Any]]) -> None:
        self._store = np.empty((14, count * width), dtype=kind)
        self._count = count
        self.fit(width)

    def fit(self, width: int) -> None:
        """Use the store for fewer frames."""
        self._rows = self._store[:, : self._count * width].reshape(14, self._count, width)

    def __call__(self, p: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats]:
        """How b and c change. What is returned is overwritten by the next call."""
        degree = len(p) - 1
        count = len(b)
        g, g_last, h, h_last, t, r1, r0, g1, g0, s1, s0, v1, v0, lead = self._rows
        mul, sub, add = np.multiply, np.subtract, np.add

        # p = q·G + r and G = q·H + g, both divisions side by side (Bairstow's scheme), q = z² + bz + c.
        g_last[...] = p[0]
        h_last[...] = p[0]
        sub(p[1], mul(b, g_last, out=t), out=g)
        sub(g, mul(b, h_last, out=t), out=h)
        for k in range(2, degree - 1):
            # g_last becomes the new coefficient p[k] - b·g - c·g_last, then the two change names.
            mul(c, g_last, out=g_last)
            sub(p[k], g_last, out=g_last)
            sub(g_last, mul(b, g, out=t), out=g_last)
            g, g_last = g_last, g
            if k < degree - 3:
                mul(c, h_last, out=h_last)
                sub(g, h_last, out=h_last)
                sub(h_last, mul(b, h, out=t), out=h_last)
                h, h_last = h_last, h
            elif k == degree - 3:
                sub(g, mul(b, h, out=t), out=g1)
                sub(g1, mul(c, h_last, out=t), out=g1)
        sub(g, mul(c, h, out=t), out=g0)
        sub(p[degree - 1], mul(b, g, out=t), out=r1)
        sub(r1, mul(c, g_last, out=t), out=r1)
        sub(p[degree], mul(c, g, out=t), out=r0)

        # The product of the other factors, s + q·h modulo q², factor by factor.
        all_b, all_c = np.concatenate([b, b]), np.concatenate([c, c])
        h1, h0, x = g, g_last, h
        sub(all_b[1 : 1 + count], b, out=s1)
        sub(all_c[1 : 1 + count], c, out=s0)
        h1[...] = 0.0
        h0[...] = 1.0
        for d in range(2, count):
            sub(all_b[d : d + count], b, out=v1)
            sub(all_c[d : d + count], c, out=v0)
            mul(s1, v1, out=lead)
            # h becomes h·v + s + lead, as s·v = q·lead + its remainder
            mul(h1, v1, out=x)
            mul(h1, v0, out=h1)
            add(h1, mul(h0, v1, out=t), out=h1)
            sub(h1, mul(b, x, out=t), out=h1)
            add(h1, s1, out=h1)
            mul(h0, v0, out=h0)
            sub(h0, mul(c, x, out=t), out=h0)
            add(h0, s0, out=h0)
            add(h0, lead, out=h0)
            # s becomes s·v
            mul(s1, v0, out=s1)
            add(s1, mul(s0, v1, out=t), out=s1)
            sub(s1, mul(b, lead, out=t), out=s1)
            mul(s0, v0, out=s0)
            sub(s0, mul(c, lead, out=t), out=s0)

        # Newton's step on p / product for the factor as a whole: r / (g - (r/s)·h + t), t = -(r/s)_1·s_1.
        f1, f0 = v1, v0
        _quotient(r1, r0, s1, s0, b, c, f1, f0)
        mul(f1, s1, out=t)
        sub(g0, t, out=g0)
        mul(f1, h1, out=x)
        sub(g1, mul(f1, h0, out=t), out=g1)
        sub(g1, mul(f0, h1, out=t), out=g1)
        add(g1, mul(b, x, out=t), out=g1)
        sub(g0, mul(f0, h0, out=t), out=g0)
        add(g0, mul(c, x, out=t), out=g0)
        _quotient(r1, r0, g1, g0, b, c, f1, f0)
        return f1, f0


def _quotient(u1: Floats, u0: Floats, v1: Floats, v0: Floats, b: Floats, c: Floats, out1: Floats, out0: Floats) -> None:
    """(u1·z + u0) / (v1·z + v0) modulo z² + bz + c: times the conjugate, by the norm."""
    conjugate = v0 - b * v1
    norm = v0 * conjugate + c * v1 * v1
    lead = u1 * v1
    np.divide(u1 * conjugate - u0 * v1 + b * lead, norm, out=out1)
    np.divide(u0 * conjugate + c * lead, norm, out=out0)
