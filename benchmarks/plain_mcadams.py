"""The McAdams anonymizer as one would first write it: frame by frame, Burg's loop, numpy.roots, lfilter.

What the fast one must agree with, and what its speed is measured against.
"""

from __future__ import annotations

import numpy as np
import scipy.signal

ORDER, FRAME, HOP = 20, 320, 160


def burg(frame, order=ORDER, floor=1e-10):
    """Prediction polynomial 1, a_1 ... a_order by Burg's method; it ends early once the error that is left is less than
    `floor` of the frame's energy, as what follows would be fitted to rounding errors."""
    a = np.array([1.0])
    forward, backward = frame[1:], frame[:-1]
    least = floor * 2 * np.dot(frame, frame)
    for _ in range(order):
        energy = np.dot(forward, forward) + np.dot(backward, backward)
        if energy <= least:
            break
        k = -2 * np.dot(forward, backward) / energy
        a = np.append(a, 0.0)
        a = a + k * a[::-1]
        forward, backward = (forward + k * backward)[1:], (backward + k * forward)[:-1]
    return np.append(a, np.zeros(order + 1 - len(a)))


def warp(a, alpha, real=1e-6):
    """The polynomial whose complex poles have their angles raised to the power alpha, by numpy's eigenvalues.

    Poles within `real` of the real axis (as an angle) count as real."""
    poles = np.roots(a)
    angle = np.abs(np.angle(poles))
    is_complex = (angle > real) & (angle < np.pi - real)
    turned = np.sign(poles.imag) * np.clip(angle**alpha, 0, np.pi)
    moved = np.where(is_complex, np.abs(poles) * np.exp(1j * turned), poles)
    return np.append(np.real(np.poly(moved)), np.zeros(len(a) - 1 - len(poles)))


def window(frame=FRAME, hop=HOP):
    hann = np.hanning(frame)
    return np.sqrt(hann / (hann.sum() / hop))


def plain_mcadams(samples, alpha=0.8):
    """Anonymized samples in float64."""
    samples = np.asarray(samples, dtype=np.float64)
    out = np.zeros(len(samples))
    weights = window()
    for start in range(0, len(samples) - FRAME + 1, HOP):
        frame = samples[start : start + FRAME] * weights
        a = burg(frame)
        residual = scipy.signal.lfilter(a, [1.0], frame)
        out[start : start + FRAME] += weights * scipy.signal.lfilter([1.0], warp(a, alpha), residual)
    return out
