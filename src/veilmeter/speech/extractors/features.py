"""Kaldi's log mel energies, the front end of CAM++ and of WeSpeaker's models, for many frames at once.

Kaldi goes frame by frame; whole blocks of frames through one FFT and one matrix product are four times as quick and
agree with it to float32's precision (the tests compare with kaldi-native-fbank).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError

RATE = 16000
MEL_BINS = 80
# The networks thin the frames out and then take a standard deviation over time, so a few frames are the least.
MIN_SAMPLES = RATE // 10

FRAME = 400  # 25 ms
SHIFT = 160  # 10 ms
FFT = 512
LOWEST = 20.0  # Hz
PREEMPHASIS = np.float32(0.97)
FLOOR = np.finfo(np.float32).eps  # Kaldi's least energy
_BLOCK = 512  # frames at once: a megabyte, which stays in the processor's cache


def fbank(
    samples: ArrayLike, *, bins: int = MEL_BINS, window: str = "povey", scale: float = 1.0
) -> NDArray[np.float32]:
    """Log mel energies every 10 ms (n x bins), with the mean over the utterance subtracted.

    Kaldi's features without dither and energy floor; samples in [-1, 1] at 16 kHz, multiplied by `scale` (which the
    mean subtraction takes away again wherever there is sound at all). CAM++ was trained with the povey window,
    WeSpeaker's models with hamming and samples of 16-bit size.
    """
    from scipy.fft import rfft

    signal = np.ascontiguousarray(samples, np.float32)
    if signal.ndim != 1 or len(signal) < MIN_SAMPLES:
        raise InputError(f"a speaker embedding needs at least {MIN_SAMPLES / RATE:g} s of mono speech")
    if scale != 1.0:
        signal = signal * np.float32(scale)
    frames = np.lib.stride_tricks.sliding_window_view(signal, FRAME)[::SHIFT]  # complete frames only
    taper, filters = _window(window), _filters(bins)
    features = np.empty((len(frames), bins), np.float32)
    for start in range(0, len(frames), _BLOCK):
        x = frames[start : start + _BLOCK]
        x = x - x.mean(axis=1, keepdims=True)
        y = np.empty_like(x)
        np.multiply(x[:, :-1], -PREEMPHASIS, out=y[:, 1:])
        y[:, 1:] += x[:, 1:]
        y[:, 0] = x[:, 0] * (1 - PREEMPHASIS)
        y *= taper
        spectrum = rfft(y, FFT, axis=1)[:, : FFT // 2]  # Kaldi leaves the Nyquist bin away
        power = np.square(spectrum.real)
        power += np.square(spectrum.imag)
        features[start : start + _BLOCK] = power @ filters
    np.log(np.maximum(features, FLOOR, out=features), out=features)
    features -= features.mean(axis=0, keepdims=True)
    return features


@lru_cache
def _window(name: str) -> NDArray[np.float32]:
    turn = 2 * np.pi * np.arange(FRAME) / (FRAME - 1)
    windows = {"povey": (0.5 - 0.5 * np.cos(turn)) ** 0.85, "hamming": 0.54 - 0.46 * np.cos(turn)}
    if name not in windows:
        raise InputError(f"there is no window {name!r}", fix=f"choose {' or '.join(windows)}")
    return windows[name].astype(np.float32)


@lru_cache
def _filters(bins: int) -> NDArray[np.float32]:
    """Triangles of height 1 with equal steps of mel = 1127 ln(1 + f / 700), from 20 Hz to 8 kHz: (FFT / 2) x bins."""
    mels = 1127 * np.log1p(np.arange(FFT // 2) * RATE / FFT / 700)
    low, high = 1127 * np.log1p(np.array([LOWEST, RATE / 2]) / 700)
    step = (high - low) / (bins + 1)
    left = low + step * np.arange(bins)
    rising = (mels[:, None] - left) / step
    filters: NDArray[np.float32] = np.maximum(0, np.minimum(rising, 2 - rising)).astype(np.float32)
    return filters
