"""What the converter hears of speech every 10 ms: its words, its melody and its loudness.

The words are what a layer of a recognizer's encoder gives. What is constant over a stretch, voice and channel, is taken
away: every number is brought to mean 0 and variance 1 over the stretch. A short stretch has too few words to tell what
is constant from what is said, so its statistics lean on those of the training speech.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.anonymizers.xvector_pool import world
from veilmeter.speech.recognizers.encoder_layers import EncoderLayer

LEVEL = 0.1  # the loud parts of every recording are brought to this amplitude, so that its level says nothing
WINDOW = 400  # samples of a frame of loudness
LOWEST_POWER = 1e-8
LEAN = 480  # frames that the training speech's statistics weigh beside those of a stretch
LIMIT = 5.0  # standard deviations: a few numbers of the encoder burst now and then

Array = NDArray[np.float64]
Frames = NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class SourceFrames:
    """Frames of a stretch: F0 in hertz (0 where unvoiced), log power, content as it was heard (frames x numbers); how
    many samples it had, and by how much these were amplified first."""

    f0: Array
    energy: Array
    content: Frames
    samples: int
    gain: float


def hear(samples: ArrayLike, encoder: EncoderLayer) -> SourceFrames:
    """Of speech at 16 kHz."""
    leveled, gain = level(samples)
    f0 = world.pitch(leveled)
    return SourceFrames(f0, energy(leveled), content(leveled, encoder, len(f0)), len(leveled), gain)


def level(samples: ArrayLike) -> tuple[Frames, float]:
    """The samples with their loud parts at one level, and the gain that did it; pauses do not count."""
    signal = np.asarray(samples, np.float32)
    frames = power(signal)
    total = float(frames.sum())
    gain = LEVEL / np.sqrt(float((frames**2).sum()) / total) if total > 0 else 1.0
    return (signal * gain).astype(np.float32), float(gain)


def power(samples: ArrayLike) -> Array:
    """Mean square around each of WORLD's frames."""
    hop = int(world.RATE * world.PERIOD_MS / 1000)
    squares = np.asarray(samples, np.float64) ** 2
    padded = np.pad(squares, (WINDOW // 2, WINDOW))
    stretches = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::hop]
    result: Array = stretches[: len(squares) // hop + 1] @ _window()
    return result


@cache
def _window() -> Array:
    window = np.hanning(WINDOW + 1)[:-1]
    weights: Array = window / window.sum()
    return weights


def energy(samples: ArrayLike) -> Array:
    result: Array = np.log(power(samples) + LOWEST_POWER)
    return result


def content(samples: Frames, encoder: EncoderLayer, frames: int) -> Frames:
    """The words, at WORLD's frames."""
    places, heard = encoder.hear(samples)
    return at_frames(places, heard, frames)


def standardize(heard: ArrayLike, usual_mean: ArrayLike, usual_variance: ArrayLike) -> Frames:
    """Content (frames x numbers) with what is constant taken away; `usual` is what training speech has."""
    x = np.asarray(heard, np.float64)
    own = len(x) / (len(x) + LEAN)
    mean = own * x.mean(axis=0) + (1 - own) * np.asarray(usual_mean)
    variance = own * x.var(axis=0) + (1 - own) * np.asarray(usual_variance)
    clipped: Frames = np.clip((x - mean) / (np.sqrt(variance) + 1e-3), -LIMIT, LIMIT).astype(np.float32)
    return clipped


def at_frames(places: Array, values: Frames, frames: int) -> Frames:
    """Values known at some places (samples), on the straight lines between them, at each of WORLD's frames."""
    wanted = np.arange(frames) * (world.RATE * world.PERIOD_MS / 1000)
    after = np.clip(np.searchsorted(places, wanted), 1, max(1, len(places) - 1))
    before = after - 1
    after = np.minimum(after, len(places) - 1)
    width = np.maximum(places[after] - places[before], 1.0)
    part = np.clip((wanted - places[before]) / width, 0.0, 1.0).astype(np.float32)[:, None]
    result: Frames = values[before] * (1 - part) + values[after] * part
    return result
