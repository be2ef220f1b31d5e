"""The poles of many all-pole filters at once.

`numpy.roots` solves one eigenvalue problem per polynomial. Speech has 100 frames per second, so here all frames are
factored together, each into real quadratics q = z² + bz + c: a conjugate pair and two real poles are the same thing,
and only real arithmetic on contiguous rows is left. Newton's method for all factors at once (Durand and Kerner's, with
quadratics in place of roots) changes each factor by p / (product of the others) modulo q.

- The start: linear prediction puts all poles into the unit disc. A grid of values of p in [-1, 1] shows how many are
  real. The others lie each between two neighboring line spectral frequencies, the closer to the circle the narrower
  the gap; those are changes of sign on a grid, too, and a grid is one product of matrices.
- The way: far from the poles, single precision is enough and twice as fast; steps in double precision follow. A step is
  never long, and a factor that began as a conjugate pair is kept one as long as precision is single.
- The end: every result is checked by multiplying the factors out. What has not converged, or does not give p back, is
  left to the caller.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Floats = NDArray[Any]  # of single or double precision
Flags = NDArray[np.bool_]

GRID = np.cos(np.pi * np.arange(48) / 47)[::-1]  # dense near -1 and 1, where real poles crowd
LINES = 96  # cells for the line spectral frequencies; with fewer, two of a kind fall into one more often
GAP = 0.6  # a pole's distance from the circle, as a part of the gap it lies in; 0.5 for a pole on its own
LONGEST = 0.25  # of a step; longer ones are those that miss
COARSE, COARSE_STEPS = 1e-2, 7  # a step this small leaves an error of about its square
FINE, FINE_STEPS = 1e-7, 20
PATIENCE = 8  # steps after which one frame, and one more each time, is left to eigenvalues
BACKWARD_ERROR = 1e-12  # of the factors' product, in units of the largest coefficient


def factors(polynomials: Real) -> tuple[Real, Real, Flags]:
    """The quadratic factors of monic polynomials of even degree n whose roots lie in the unit disc.

    `polynomials` is n + 1 rows, highest power first, by the number of frames. Returns b and c, n/2 rows by frames, and
    which frames were found; in the others b and c mean nothing.

    >>> b, c, found = factors(np.array([[1.0], [-0.5], [0.75], [0.0], [0.125], [0.0], [0.25]]))
    >>> product(b, c)[:, 0].round(12) + 0.0, found
    (array([ 1.   , -0.5  ,  0.75 ,  0.   ,  0.125,  0.   ,  0.25 ]), array([ True]))
    """
    count, width = (len(polynomials) - 1) // 2, polynomials.shape[1]
    if not polynomials.size:
        return np.zeros((count, width)), np.zeros((count, width)), np.zeros(width, dtype=bool)
    with np.errstate(all="ignore"):  # what divides by zero does not converge, and is caught
        start, pairs = _start(polynomials)
        _approach(polynomials, start, pairs, COARSE, COARSE_STEPS)
        now = start.astype(np.float64)
        converged = _approach(polynomials, now, None, FINE, FINE_STEPS)
        wrong = _largest(product(*now) - polynomials)
        converged &= wrong <= BACKWARD_ERROR * _largest(polynomials)
    return now[0], now[1], converged


def product(b: Real, c: Real) -> Real:
    """The polynomials whose quadratic factors are z² + bz + c: 2m + 1 rows from m rows."""
    count, width = b.shape
    p, by_b, by_c = np.zeros((2 * count + 1, width)), np.empty((2 * count, width)), np.empty((2 * count, width))
    p[0] = 1.0
    for i in range(count):
        upper = 2 * i + 1
        np.multiply(p[:upper], b[i], out=by_b[:upper])
        np.multiply(p[:upper], c[i], out=by_c[:upper])
        p[1 : upper + 1] += by_b[:upper]
        p[2 : upper + 2] += by_c[:upper]
    return p


def _approach(p: Real, both: Floats, pairs: Flags | None, short: float, steps: int) -> Flags:
    """Bring `both` (b and c) to the factors of p in steps of the same precision, until a step is short or few
    frames are left: which frames got there. `pairs` are kept pairs."""
    count, width = both.shape[1:]
    arrived = np.zeros(width, dtype=bool)
    step = _Steps(count, width, both.dtype)
    p = p.astype(both.dtype, copy=False)
    active, now = np.arange(width), both.copy()
    # A pair that has met on the real axis is put back above it, at the same distance: b²/2 - c in place of c.
    bend = None if pairs is None else np.where(pairs, now.dtype.type(0.5), now.dtype.type(-1e30))
    for number in range(steps):
        change = step.times(step.remainder(p, now), step.inverse(now), now)
        length = _largest(change)
        change *= LONGEST / np.maximum(length, LONGEST)
        now += change
        if bend is not None:
            bent = np.square(now[0], out=change[0])
            bent *= bend
            bent -= now[1]
            np.maximum(now[1], bent, out=now[1])
        done = length < short
        ready = np.flatnonzero(done)
        last = number + 1 == steps or len(active) - len(ready) <= number // PATIENCE
        if last or 8 * len(ready) > len(active):  # not at each step, as copies cost as well
            arrived[active[ready]] = True
            if last:
                both[:, :, active] = now
                break
            both[:, :, active[ready]] = now.take(ready, axis=2)
            keep = np.flatnonzero(~done)
            active, p, now = active.take(keep), p.take(keep, axis=1), now.take(keep, axis=2)
            bend = None if bend is None else bend.take(keep, axis=1)
            step.fit(len(active))
    return arrived


def _largest(values: Floats) -> Floats:
    """The largest magnitude of each frame."""
    flat = values.reshape(-1, values.shape[-1])
    return np.asarray(np.maximum(flat.max(axis=0), -flat.min(axis=0)))


@lru_cache(maxsize=8)
def _tables(degree: int) -> tuple[Real, Floats]:
    """The matrices that give a polynomial's values on the grid, and its two line spectra at LINES + 1 angles.

    p(e^jω)·e^(-jω(n+1)/2) is real at the roots of the one, imaginary at those of the other; the roots that both always
    have at 0 or π are taken out."""
    angle = np.linspace(0, np.pi, LINES + 1)
    angle[0], angle[-1] = 1e-6, np.pi - 1e-6
    turn = (np.arange(degree + 1) - (degree + 1) / 2)[:, None] * angle
    lines = np.hstack([np.cos(turn) / np.cos(angle / 2), np.sin(turn) / np.sin(angle / 2)])
    return np.vander(GRID, degree + 1).T, lines.astype(np.float32)


def _start(p: Real) -> tuple[Floats, Flags]:
    """b and c in single precision, and which factors begin as conjugate pairs."""
    count, width = (len(p) - 1) // 2, p.shape[1]
    on_grid, on_circle = _tables(len(p) - 1)
    values = p.T @ on_grid
    frame, cell = np.nonzero(_changes(values))
    real = np.bincount(frame, minlength=width)
    right = np.bincount(frame[cell >= len(GRID) // 2 - 1], minlength=width)
    half = np.minimum(real // 2, count)  # the factors with two real roots, which come first

    # Each pair between two lines, but for the first and last lines, which belong to the real poles.
    lines = _lines(p.T.astype(np.float32) @ on_circle, count)
    row = np.arange(count)[:, None]
    line = np.clip(right + 2 * (row - half), 0, 2 * count - 2) * width + np.arange(width)
    low, high = lines.take(line), lines.take(line + width)
    radius = np.clip(1 - np.float32(GAP) * (high - low), 0.5, 0.99)
    start = np.empty((2, count, width), dtype=np.float32)
    np.multiply(-2 * radius, np.cos(0.5 * (low + high)), out=start[0])
    np.square(radius, out=start[1])

    before, after = values[frame, cell], values[frame, cell + 1]
    root = GRID[cell] + (GRID[cell + 1] - GRID[cell]) * before / (before - after)
    first = np.cumsum(real) - real
    for i in range(half.max()):
        which = np.nonzero(half > i)[0]
        first_root, second_root = root[first[which] + 2 * i], root[first[which] + 2 * i + 1]
        start[0, i, which] = -(first_root + second_root)
        start[1, i, which] = first_root * second_root
    return start, row >= half


def _changes(values: Floats) -> Flags:
    """Where the sign changes along a row."""
    below = values < 0
    return np.asarray(below[:, 1:] != below[:, :-1])


def _lines(values: Floats, count: int) -> Floats:
    """The line spectral frequencies, 2·count rows by frames: the two kinds in turn. Where the cells do not show all of
    them, they are spread evenly."""
    width = len(values)
    lines = np.empty((2 * count, width), dtype=np.float32)
    for kind in (0, 1):
        first = kind * (LINES + 1)
        changes = _changes(values[:, first : first + LINES + 1])
        frames = np.flatnonzero(changes.sum(axis=1, dtype=np.int16) == count)
        if len(frames) < width:
            lines[kind::2] = ((np.arange(kind, 2 * count, 2) + 0.5) * np.pi / (2 * count))[:, None]
            changes = changes[frames]
        cell = np.flatnonzero(changes).reshape(-1, count) - LINES * np.arange(len(frames))[:, None]
        here = cell + (frames * values.shape[1] + first)[:, None]
        before, after = values.take(here), values.take(here + 1)
        crossings = (cell + before / (before - after)) * np.float32(np.pi / LINES)
        if len(frames) < width:
            lines[kind::2, frames] = crossings.T
        else:
            lines[kind::2] = crossings.T
    return lines


class _Steps:
    """Arithmetic modulo all factors of all frames. `now` is b and c; an element u1·z + u0 of the ring R[z]/q is stored
    likewise. Arrays are made once, as new ones cost as much as the sums: what is returned lasts until the next call
    of the same method. All operands of one call have the same shape, because numpy takes as long to prepare a
    broadcast as to multiply the rows of a few seconds of speech.
    """

    def __init__(self, count: int, width: int, kind: Any) -> None:
        self._store = np.empty((14, count * width), dtype=kind)
        self._doubled = np.empty((2, 2 * count * width), dtype=kind)
        self._count = count
        self.fit(width)

    def fit(self, width: int) -> None:
        """Use the store for fewer frames."""
        rows = self._store[:, : self._count * width].reshape(-1, self._count, width)
        self._remainder, self._inverse, self._change = rows[0:2], rows[2:4], rows[4:6]
        self._two, self._other, self._one = rows[6:8], rows[8:10], rows[10]
        self._in_turn = rows[11:13], rows[12:14]  # b, c and c, b
        self._twice = self._doubled[:, : 2 * self._count * width].reshape(2, 2 * self._count, width)

    def remainder(self, p: Floats, now: Floats) -> Floats:
        """p modulo q, by synthetic division."""
        result, two, part = self._remainder, self._two, self._other
        b_then_c, c_then_b = self._in_turn
        b_then_c[...] = now
        c_then_b[1] = now[0]
        degree = len(p) - 1
        newer, older = two[1], two[0]
        older[...] = p[0]
        np.multiply(now[0], older, out=newer)
        np.subtract(p[1], newer, out=newer)
        for k in range(2, degree):
            # The older of the two becomes p[k] - b·newer - c·older.
            np.multiply(c_then_b if k % 2 == 0 else b_then_c, two, out=part)
            np.subtract(p[k], part[0], out=older)
            np.subtract(older, part[1], out=older)
            newer, older = older, newer
        result[0] = newer
        np.multiply(now[1], older, out=older)
        np.subtract(p[degree], older, out=result[1])
        return result

    def inverse(self, now: Floats) -> Floats:
        """One by the product of the other factors, modulo q."""
        count = self._count
        (b, c), (s1, s0), (v1, v0), (t, _), lead = now, self._inverse, self._two, self._other, self._one
        mul, sub, add = np.multiply, np.subtract, np.add
        all_b, all_c = self._twice
        all_b[:count] = all_b[count:] = b
        all_c[:count] = all_c[count:] = c
        s1[...], s0[...] = 0.0, 1.0
        for d in range(1, count):
            sub(all_b[d : d + count], b, out=v1)
            sub(all_c[d : d + count], c, out=v0)
            if d == 1:
                s1[...], s0[...] = v1, v0
                continue
            # s·v, whose part s1·v1·z² is -(b·z + c)·s1·v1
            mul(s1, v1, out=lead)
            mul(s1, v0, out=s1)
            mul(s0, v1, out=t)
            add(s1, t, out=s1)
            mul(b, lead, out=t)
            sub(s1, t, out=s1)
            mul(s0, v0, out=s0)
            mul(c, lead, out=t)
            sub(s0, t, out=s0)
        # The inverse is the conjugate by the norm.
        conjugate, norm = v1, v0
        sub(s0, mul(b, s1, out=t), out=conjugate)
        mul(s0, conjugate, out=norm)
        mul(mul(s1, s1, out=t), c, out=t)
        add(norm, t, out=norm)
        np.divide(conjugate, norm, out=s0)
        np.divide(s1, norm, out=s1)
        np.negative(s1, out=s1)
        return self._inverse

    def times(self, u: Floats, v: Floats, now: Floats) -> Floats:
        """u·v modulo q."""
        (u1, u0), (v1, v0), (b, c), (w1, w0), (t, _), lead = u, v, now, self._change, self._other, self._one
        mul, sub, add = np.multiply, np.subtract, np.add
        mul(u1, v1, out=lead)
        mul(u1, v0, out=w1)
        add(w1, mul(u0, v1, out=t), out=w1)
        sub(w1, mul(b, lead, out=t), out=w1)
        mul(u0, v0, out=w0)
        sub(w0, mul(c, lead, out=t), out=w0)
        return self._change
