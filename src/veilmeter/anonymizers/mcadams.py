"""McAdams' coefficient: B2 of the VoicePrivacy challenges, and B2r with a coefficient drawn at random.

The voice is split into what the vocal tract does (the poles of a linear prediction) and what excites it (the residual).
The angle φ of every complex pole becomes φ^α, which moves the formants; the residual then excites the moved poles.

Patino, Tomashenko, Todisco, Nautsch, Evans, "Speaker anonymization using the McAdams coefficient", Interspeech 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers import poles
from veilmeter.anonymizers.base import Draw, Samples, check_draw, generator
from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from veilmeter.data.corpus import Utterance

Real = NDArray[np.float64]

RATE, FRAME, HOP, ORDER = 16_000, 320, 160, 20

# Burg's recursion ends where less than this part of a frame's energy is left. Speech never gets there (a loud tone's
# rounding to 16 bits alone leaves as much); a pure tone does, and what would follow is a fit to rounding errors.
ENERGY_FLOOR = 1e-10

# Where less than this is left, sums of products of samples are too coarse to go on with.
PRECISE = 1e-6

# Angles this close to 0 or π count as real poles. The map is discontinuous there (a pair at π moves, a real pole
# stays), and a double real pole comes out of any root finder as a pair some 1e-8 apart.
REAL_ANGLE = 1e-6

# Frames worked on at once: enough to hide the interpreter, few enough to stay in the cache, which is different for
# each part.
BLOCK_FRAMES, BURG_FRAMES, FILTER_FRAMES, LATTICE_FRAMES = 2048, 512, 500, 128


@dataclass(frozen=True, slots=True)
class McAdams:
    """B2: the same coefficient for everyone.

    >>> import numpy as np
    >>> tone = np.sin(2 * np.pi * 300 * np.arange(16000) / 16000).astype(np.float32)
    >>> McAdams(alpha=0.8).anonymize(tone, {"alpha": 0.8}).shape
    (16000,)
    """

    alpha: float = 0.8
    name = "mcadams"
    version = "2"
    draws = Draw.NONE

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        return {"alpha": self.alpha}

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        return mcadams(samples, parameters["alpha"]).astype(np.float32)

    def anonymize_blocks(self, blocks: Iterable[Samples], parameters: dict[str, Any]) -> Iterator[Samples]:
        return (block.astype(np.float32) for block in mcadams_blocks(blocks, parameters["alpha"]))


@dataclass(frozen=True, slots=True)
class RandomMcAdams:
    """B2r: the coefficient drawn from a uniform distribution, for each speaker or each utterance, from the seed and the
    id alone.

    The default is that of the 2022-2026 challenges, U(0.5, 0.9) for each utterance. Noé et al. 2022 drew from
    U(0.7, 0.9) for each speaker: `alpha_range=(0.7, 0.9), per="speaker"`.
    """

    alpha_range: tuple[float, float] = (0.5, 0.9)
    per: str = "utterance"
    seed: int = 0
    name = "mcadams-random"
    version = "2"

    def __post_init__(self) -> None:
        try:
            low, high = (float(value) for value in self.alpha_range)
        except (TypeError, ValueError):
            raise InputError(
                f"not a range of coefficients: {self.alpha_range!r}", fix="give two numbers, such as 0.5 0.9"
            ) from None
        for value in (low, high):
            _check_alpha(value)
        if low > high:
            raise InputError(f"the range of coefficients ends before it begins: {low} {high}", fix="swap the two")
        check_draw(self.per)
        object.__setattr__(self, "alpha_range", (low, high))

    @property
    def draws(self) -> Draw:
        return Draw(self.per)

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        # The kind goes into the name, as a speaker and an utterance may have the same id.
        whose = utterance.speaker if self.per == "speaker" else utterance.id
        alpha = generator(self.seed, f"{self.per}:{whose}").uniform(*self.alpha_range)
        return {"alpha": float(alpha), "alpha_range": list(self.alpha_range), "per": self.per, "seed": self.seed}

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        return mcadams(samples, parameters["alpha"]).astype(np.float32)

    def anonymize_blocks(self, blocks: Iterable[Samples], parameters: dict[str, Any]) -> Iterator[Samples]:
        return (block.astype(np.float32) for block in mcadams_blocks(blocks, parameters["alpha"]))


def _check_alpha(alpha: float) -> None:
    if not (isinstance(alpha, int | float) and math.isfinite(alpha) and 0.1 <= alpha <= 2):
        raise InputError(
            f"{alpha!r} is not a McAdams coefficient", fix="give a number from 0.1 to 2; the papers use 0.5-0.9"
        )


def mcadams(samples: NDArray[Any], alpha: float) -> Real:
    """`samples` (mono, 16 kHz) with the angles of all complex poles raised to the power `alpha`.

    Frames of 20 ms every 10 ms, complete ones only; sqrt(h / (sum(h)/hop)) with h the symmetric Hann window before
    analysis and after synthesis; linear prediction of order 20 by Burg's method on the windowed frame; filters start
    at rest in each frame; the level is left as it comes out. What follows the last complete frame is silent.
    """
    return np.concatenate(list(mcadams_blocks([samples], alpha)))


def mcadams_blocks(blocks: Iterable[NDArray[Any]], alpha: float) -> Iterator[Real]:
    """The same for samples that come in blocks, as many as there are of them, with the memory for a few: frames are
    put together to the same arrays however the samples come, so that every bit of the result is the same."""
    weights = window()
    waiting = np.empty(0)  # what the next frame starts with
    overlap = np.zeros(HOP)  # the second half of the last frame
    received = sent = 0
    for block in blocks:
        signal = _check(block)
        received += len(signal)
        waiting = signal if not len(waiting) else np.concatenate([waiting, signal])
        while len(waiting) >= BLOCK_FRAMES * HOP + FRAME - HOP:
            ready, overlap = _add_up(_frames(waiting)[:BLOCK_FRAMES], weights, alpha, overlap)
            waiting = waiting[len(ready) :]
            sent += len(ready)
            yield ready
    if received < FRAME:
        raise InputError(f"{received} samples are less than one frame of 20 ms")
    if len(waiting) >= FRAME:
        ready, overlap = _add_up(_frames(waiting), weights, alpha, overlap)
        sent += len(ready)
        yield ready
    yield np.concatenate([overlap, np.zeros(received - sent - HOP)])


def _check(samples: NDArray[Any]) -> Real:
    signal = np.ascontiguousarray(samples, dtype=np.float64)
    if signal.ndim != 1:
        raise InputError(f"one channel is expected, not an array of shape {signal.shape}")
    if not np.isfinite(signal).all():
        raise InputError("some samples are not finite numbers")
    return signal


def _frames(signal: Real) -> Real:
    return np.lib.stride_tricks.sliding_window_view(signal, FRAME)[::HOP]


def _add_up(frames: Real, weights: Real, alpha: float, overlap: Real) -> tuple[Real, Real]:
    """The sum of the frames, one hop per frame, and the second half of the last one, to which the next adds."""
    predictors = np.empty((ORDER + 1, len(frames)))
    for first in range(0, len(frames), BURG_FRAMES):
        some = slice(first, first + BURG_FRAMES)
        predictors[:, some] = burg(frames[some] * weights)
    moved = warp(predictors, alpha)
    out = np.zeros((len(frames) + 1, HOP))
    out[0] = overlap
    for first in range(0, len(frames), FILTER_FRAMES):
        some = slice(first, first + FILTER_FRAMES)
        voices = refilter(frames[some], weights, predictors[:, some], moved[:, some])
        count = voices.shape[1]
        out[first : first + count] += voices[:HOP].T
        out[first + 1 : first + count + 1] += voices[HOP:].T
    if not np.isfinite(out).all():
        raise InputError(f"the coefficient {alpha} gives an unstable filter for this recording")
    return out[:-1].ravel(), out[-1]


def window() -> Real:
    """Squared, it adds up to one over overlapping frames (but for the symmetric window's last bit)."""
    hann = np.hanning(FRAME)
    return np.asarray(np.sqrt(hann / (hann.sum() / HOP)))


def burg(frames: Real) -> Real:
    """Burg's predictors (ORDER + 1 rows, one column per frame) of frames given as rows.

    Burg's method minimises the forward and backward prediction errors, but needs only sums over their products, and
    those follow from the autocorrelation and the samples at both ends (Vos, "A fast implementation of Burg's method",
    2013). With C(p, q) = Σ x[n-p]·x[n-q] over n = i+1 ... N-1, G(p, q) = C(p, q) + C(i+1-p, i+1-q) and g = G·a, the
    reflection coefficient is k = -Σ a[j]·g[i+1-j] / Σ a[j]·g[j]. Differences of large sums are taken, so a frame of
    which little is left unpredicted is done again sample by sample.
    """
    width, length = frames.shape
    c = np.empty((ORDER + 1, width))  # C + C
    for lag in range(ORDER + 1):
        c[lag] = 2 * _dot(frames[:, lag:], frames[:, : length - lag])
    ends = np.empty((2, ORDER + 1, width))  # the first samples, and the last ones backwards
    ends[0], ends[1] = frames[:, : ORDER + 1].T, frames[:, : -ORDER - 2 : -1].T
    a, g, truncated = np.zeros((ORDER + 1, width)), np.zeros((ORDER + 2, width)), np.zeros((ORDER + 2, width))
    a[0] = 1.0
    g[0] = c[0] - ends[0, 0] ** 2 - ends[1, 0] ** 2
    g[1] = truncated[1] = c[1]
    least = PRECISE * c[0]
    left, change = g[0], np.empty((ORDER + 1, width))
    for i in range(ORDER):
        left = np.einsum("jf,jf->f", a[: i + 1], g[: i + 1])
        left[left <= least] = np.inf  # no further
        k = np.einsum("jf,jf->f", a[: i + 1], g[i + 1 : 0 : -1])
        k /= -left
        a[1 : i + 2] += np.multiply(a[i::-1], k, out=change[: i + 1])
        if i + 1 == ORDER:
            break
        near = ends[:, i + 1 :: -1]  # x[i+1-p] and x[N-2-i+p]
        g[: i + 2] += np.multiply(g[i + 1 :: -1], k, out=change[: i + 2])
        g[: i + 2] -= np.einsum("ejf,ef->jf", near, np.einsum("ejf,jf->ef", near, a[: i + 2]), out=change[: i + 2])
        truncated[1 : i + 2] -= np.einsum("ejf,ef->jf", near[:, 1:], near[:, 0], out=change[: i + 1])
        truncated[i + 2] = c[i + 2]
        np.einsum("jf,jf->f", truncated[i + 2 : 0 : -1], a[: i + 2], out=g[i + 2])
    again = np.flatnonzero(np.isinf(left) & (c[0] > 0))
    for start in range(0, len(again), LATTICE_FRAMES):
        which = again[start : start + LATTICE_FRAMES]
        a[:, which] = _lattice(frames[which]).T
    return a


def _dot(left: Real, right: Real) -> Real:
    """Row by row: numpy hands these to the linear algebra library, which is several times as fast as einsum."""
    return np.asarray((left[:, None, :] @ right[:, :, None])[:, 0, 0])


def _lattice(frames: Real) -> Real:
    """Burg's predictors by his recursion on the prediction errors, a frame a row: exact down to ENERGY_FLOOR."""
    forward, backward = frames[:, 1:].copy(), frames[:, :-1].copy()
    change_f, change_b = np.empty_like(forward), np.empty_like(forward)
    least = ENERGY_FLOOR * 2 * _dot(frames, frames)
    a = np.zeros((len(frames), ORDER + 1))
    a[:, 0] = 1.0
    for i in range(ORDER):
        error = _dot(forward, forward) + _dot(backward, backward)
        k = np.zeros((len(frames), 1))
        np.divide(-2 * _dot(forward, backward), error, out=k[:, 0], where=error > least)
        a[:, 1 : i + 2] += k * a[:, i::-1]
        np.multiply(backward, k, out=change_f[:, i:])
        np.multiply(forward, k, out=change_b[:, i:])
        forward += change_f[:, i:]
        backward += change_b[:, i:]
        forward, backward = forward[:, 1:], backward[:, :-1]
    return a


def warp(predictors: Real, alpha: float) -> Real:
    """The predictors (columns, highest power first) with the angles of their complex poles to the power alpha."""
    moved = predictors.copy()
    rest = np.nonzero(predictors[-1])[0]  # a shorter recursion leaves poles at 0, which stay; see below
    b, c, factored = poles.factors(predictors[:, rest])
    moved[:, rest[factored]] = poles.product(_turn(b[:, factored], c[:, factored], alpha), c[:, factored])
    for column in np.setdiff1d(np.nonzero(predictors[1:].any(axis=0))[0], rest[factored], assume_unique=True):
        moved[:, column] = _warp_one(predictors[:, column], alpha)
    return moved


def _turn(b: Real, c: Real, alpha: float) -> Real:
    """The new b of the factors z² + bz + c; c, the squared radius, stays."""
    height = c - 0.25 * b * b
    angle = np.arctan2(np.sqrt(np.maximum(height, 0.0)), -0.5 * b)
    paired = (height > 0) & (angle > REAL_ANGLE) & (angle < np.pi - REAL_ANGLE)
    new_angle = np.minimum(angle**alpha, np.pi)
    return np.where(paired, -2 * np.sqrt(np.maximum(c, 0.0)) * np.cos(new_angle), b)


def _warp_one(predictor: Real, alpha: float) -> Real:
    """By eigenvalues, for the few frames that need them."""
    roots = np.roots(predictor)
    angle = np.abs(np.angle(roots))
    paired = (angle > REAL_ANGLE) & (angle < np.pi - REAL_ANGLE)
    turned = np.abs(roots) * np.exp(1j * np.sign(roots.imag) * np.minimum(angle**alpha, np.pi))
    new = np.real(np.poly(np.where(paired, turned, roots)))
    return np.concatenate([new, np.zeros(len(predictor) - len(new))])


def refilter(frames: Real, weights: Real, old: Real, new: Real) -> Real:
    """The weighted frames (rows) through the inverse filter `old` and the all-pole filter 1/`new` (columns), both from
    rest; weighted again, in columns.

    All frames at once, two samples at a time: numpy needs as long to prepare a sum as to add up the products of a few
    seconds of speech. What the first of the two adds to the second follows. (With the first put into the second's sum
    there would be fewer calls still, but 20 dB less agreement on signals with little residual.)
    """
    width, length = frames.shape
    rows = np.empty((ORDER + length, width))
    rows[:ORDER] = 0.0
    np.multiply(frames.T, weights[:, None], out=rows[ORDER:])
    windows = np.lib.stride_tricks.sliding_window_view(rows, ORDER + 1, axis=0)  # sample, frame, tap
    result = np.empty((ORDER + length, width))
    result[:ORDER] = 0.0
    np.einsum("tfk,kf->tf", windows, old[::-1], out=result[ORDER:])
    taps = np.zeros((2, ORDER + 2, width))  # of the last ORDER results and two of the residual
    taps[0, :ORDER], taps[1, 1:ORDER] = -new[:0:-1], -new[:1:-1]
    taps[0, ORDER] = taps[1, ORDER + 1] = 1.0
    sums, latest, carried = np.empty((2, width)), new[1].copy(), np.empty(width)
    for n in range(ORDER, ORDER + length, 2):
        np.einsum("akf,kf->af", taps, result[n - ORDER : n + 2], out=sums)
        result[n] = sums[0]
        np.multiply(latest, sums[0], out=carried)
        np.subtract(sums[1], carried, out=result[n + 1])
    voices = result[ORDER:]
    voices *= weights[:, None]
    return voices
