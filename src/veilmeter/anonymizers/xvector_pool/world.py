"""Speech as pitch, spectral envelope and aperiodicity, and back: the WORLD vocoder (Morise et al., 2016).

The envelope is coded as 40 mel-cepstra every 10 ms, the aperiodicity as one band: little enough to learn from an hour
of speech, and the fine structure that would tell the speaker is gone already.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, missing_extra

RATE = 16000
PERIOD_MS = 10.0
ORDER = 40
F0_FLOOR = 71.0
F0_CEILING = 500.0
# DIO follows F0 from frame to frame: every 10 ms it loses a voice that moves quickly, and calls it unvoiced.
TRACKING_MS = 5.0
# Rumble below the voice makes DIO sit at its floor for some speakers.
HIGH_PASS_HZ = 75.0
FFT = 1024
# The envelopes of an hour would take gigabytes, and the vocoder can not be stopped before it is done with what it was
# given: long recordings are cut where it is quiet.
BLOCK_SECONDS = 60.0
CUT_SECONDS = 2.0

Array = NDArray[np.float64]


@cache
def vocoder() -> Any:
    """pyworld's compiled module.

    Its package imports pkg_resources only to learn its own version, and setuptools 81 no longer has that; the compiled
    module inside needs nothing of it.
    """
    package = importlib.util.find_spec("pyworld")
    spec = package and importlib.machinery.PathFinder.find_spec("pyworld.pyworld", package.submodule_search_locations)
    if not spec or not spec.loader:
        raise missing_extra("pyworld", "audio")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, eq=False, slots=True)
class Analysis:
    """Frames of an utterance: F0 in hertz (0 where unvoiced), mel-cepstra, coded aperiodicity, and its length."""

    f0: Array
    cepstra: Array
    aperiodicity: Array
    samples: int

    @property
    def voiced(self) -> NDArray[np.bool_]:
        return self.f0 > 0

    def with_voice(self, f0: ArrayLike, cepstra: ArrayLike) -> Analysis:
        return replace(self, f0=np.asarray(f0, np.float64), cepstra=np.asarray(cepstra, np.float64))


def quiet_cuts(samples: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """A recording, however it comes, in blocks of about a minute, each cut at the quietest place near its end."""
    reach, window = int(CUT_SECONDS * RATE), RATE // 50
    near = int(BLOCK_SECONDS * RATE) - reach
    waiting = np.empty(0, np.float32)
    for arrived in samples:
        waiting = np.concatenate([waiting, np.asarray(arrived, np.float32)])
        while len(waiting) > (BLOCK_SECONDS + 2 * CUT_SECONDS) * RATE:
            energy = np.convolve(waiting[near : near + 2 * reach].astype(np.float64) ** 2, np.ones(window), "valid")
            cut = near + int(energy.argmin()) + window // 2
            yield waiting[:cut]
            waiting = waiting[cut:]
    yield waiting


def pitch(samples: ArrayLike) -> Array:
    """F0 of speech at 16 kHz, 0 where it is unvoiced."""
    f0, _ = _track_pitch(_speech(samples))
    return f0


def analyze(samples: ArrayLike) -> Analysis:
    """The parameters of speech at 16 kHz."""
    world = vocoder()
    signal = _speech(samples)
    f0, times = _track_pitch(signal)
    envelope = world.cheaptrick(signal, f0, times, RATE, fft_size=FFT)
    aperiodicity = world.d4c(signal, f0, times, RATE, fft_size=FFT)
    return Analysis(
        f0=f0,
        cepstra=world.code_spectral_envelope(envelope, RATE, ORDER),
        aperiodicity=world.code_aperiodicity(aperiodicity, RATE),
        samples=len(signal),
    )


def _speech(samples: ArrayLike) -> Array:
    signal = np.ascontiguousarray(samples, np.float64)
    if signal.ndim != 1 or len(signal) < RATE // 10:
        raise InputError("the vocoder needs at least 0.1 s of mono speech")
    return signal


def _track_pitch(signal: Array) -> tuple[Array, Array]:
    """F0 and the time of each frame."""
    from scipy.signal import butter, sosfiltfilt

    world = vocoder()
    filtered = np.ascontiguousarray(sosfiltfilt(butter(4, HIGH_PASS_HZ, "high", fs=RATE, output="sos"), signal))
    fine, moments = world.dio(filtered, RATE, f0_floor=F0_FLOOR, f0_ceil=F0_CEILING, frame_period=TRACKING_MS)
    step = round(PERIOD_MS / TRACKING_MS)
    raw, times = np.ascontiguousarray(fine[::step]), np.ascontiguousarray(moments[::step])
    f0 = world.stonemask(filtered, raw, times, RATE)
    f0[(f0 < F0_FLOOR) | (f0 > F0_CEILING)] = 0.0
    return f0, times


def synthesize(analysis: Analysis) -> NDArray[np.float32]:
    """Speech from the parameters, as long as what was analyzed; its level is left as it comes out."""
    world = vocoder()
    envelope = world.decode_spectral_envelope(np.ascontiguousarray(analysis.cepstra), RATE, FFT)
    aperiodicity = world.decode_aperiodicity(np.ascontiguousarray(analysis.aperiodicity), RATE, FFT)
    signal = world.synthesize(np.ascontiguousarray(analysis.f0), envelope, aperiodicity, RATE, PERIOD_MS)
    out = np.zeros(analysis.samples)
    n = min(len(signal), len(out))
    out[:n] = signal[:n]
    if not np.isfinite(out).all():
        raise InputError("the vocoder can't resynthesize this utterance")
    return out.astype(np.float32)


def warp(analysis: Analysis, factor: float, f0_factor: float) -> Analysis:
    """The control without a pool: every envelope stretched by `factor` along the frequency axis, F0 multiplied."""
    world = vocoder()
    log_envelope = np.log(world.decode_spectral_envelope(np.ascontiguousarray(analysis.cepstra), RATE, FFT))
    bins = np.arange(log_envelope.shape[1], dtype=float)
    at = np.clip(bins / factor, 0, bins[-1])
    low = np.minimum(at.astype(int), len(bins) - 2)
    part = at - low
    warped = np.exp(log_envelope[:, low] * (1 - part) + log_envelope[:, low + 1] * part)
    cepstra = world.code_spectral_envelope(np.ascontiguousarray(warped), RATE, ORDER)
    return analysis.with_voice(analysis.f0 * f0_factor, cepstra)
