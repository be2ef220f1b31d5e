"""GE2E: three LSTM layers trained with the generalized end-to-end loss (Wan et al. 2018), with resemblyzer's weights.

Weaker than CAM++, but trained by others on other data: a second opinion. The utterance is raised to -30 dBFS if it is
softer, cut into overlapping windows of 1.6 s, each gives a vector, and their mean is scaled to length 1. Unlike in
resemblyzer's own preparation, pauses are not cut out (that takes another library's voice detector).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, VeilmeterError, missing_extra

RATE = 16_000
MEL_BINS = 40
FFT = 400  # 25 ms
HOP = 160  # 10 ms
WINDOW_FRAMES = 160  # 1.6 s
WINDOWS_PER_SECOND = 1.3
COVERAGE = 0.75  # a last window that is less full than this is left out
LEVEL = 10 ** (-30 / 20)
DIMENSION = 256


def mel_spectrogram(samples: ArrayLike) -> NDArray[np.float32]:
    """Power in 40 mel bands every 10 ms (n x 40), not as a logarithm; frames are centered, zeros around the ends."""
    from scipy.fft import rfft

    padded = np.pad(np.asarray(samples, np.float32), FFT // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT)[::HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)  # periodic
    spectrum = rfft(frames * hann.astype(np.float32), axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    mel: NDArray[np.float32] = (power @ mel_filters().T).astype(np.float32)
    return mel


def mel_filters(bins: int = MEL_BINS, size: int = FFT, rate: int = RATE) -> NDArray[np.float32]:
    """Triangles of area 1 on Slaney's mel scale (linear below 1 kHz, logarithmic above): bins x (size / 2 + 1)."""
    edges = _hertz(np.linspace(_mels(0.0), _mels(rate / 2), bins + 2))
    frequencies = np.linspace(0, rate / 2, size // 2 + 1)
    rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling))
    filters: NDArray[np.float32] = (triangles * (2 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)
    return filters


_LINEAR = 200 / 3  # Hz a mel below 1 kHz
_BREAK = 1000 / _LINEAR
_STEP = np.log(6.4) / 27


def _mels(hertz: float) -> float:
    return hertz / _LINEAR if hertz < 1000 else float(_BREAK + np.log(hertz / 1000) / _STEP)


def _hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mels < _BREAK, mels * _LINEAR, 1000 * np.exp(_STEP * (np.maximum(mels, _BREAK) - _BREAK)))


def window_starts(samples: int) -> list[int]:
    """The first frame of each window of an utterance.

    >>> window_starts(16000), window_starts(3 * 16000)
    ([0], [0, 77, 154])
    """
    frames = -(-(samples + 1) // HOP)
    step = round(RATE / WINDOWS_PER_SECOND / HOP)
    starts = list(range(0, max(1, frames - WINDOW_FRAMES + step + 1), step))
    covered = (samples - starts[-1] * HOP) / (WINDOW_FRAMES * HOP)
    if covered < COVERAGE and len(starts) > 1:
        starts.pop()
    return starts


class Ge2e:
    """The extractor; torch runs the LSTM."""

    name = "ge2e"
    dimension = DIMENSION

    def __init__(self, state: dict[str, Any], version: str) -> None:
        try:
            import torch
            from torch import nn
        except ImportError:
            raise missing_extra("torch", "audio") from None
        self.version = version
        self._torch = torch
        self._network = nn.ModuleDict(
            {
                "lstm": nn.LSTM(MEL_BINS, DIMENSION, num_layers=3, batch_first=True),
                "linear": nn.Linear(DIMENSION, DIMENSION),
            }
        )
        wanted = {name: value for name, value in state.items() if name.split(".")[0] in ("lstm", "linear")}
        try:
            self._network.load_state_dict(wanted, strict=True)
        except RuntimeError as error:
            raise VeilmeterError(f"these are not the parameters of GE2E: {str(error).splitlines()[0]}") from None
        self._network.eval()

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        torch = self._torch
        if len(samples) < HOP:
            raise InputError("a speaker embedding needs at least 10 ms of speech")
        signal = np.asarray(samples, np.float32)
        level = float(np.sqrt(np.mean(np.square(signal, dtype=np.float64))))
        if 0 < level < LEVEL:
            signal = signal * np.float32(LEVEL / level)
        starts = window_starts(len(signal))
        # As much silence as the last window needs.
        end = (starts[-1] + WINDOW_FRAMES) * HOP
        mel = mel_spectrogram(np.pad(signal, (0, max(0, end - len(signal)))))
        windows = np.stack([mel[start : start + WINDOW_FRAMES] for start in starts])
        # One thread, whatever the process may use elsewhere: sums in another order would give other bits.
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.inference_mode():
                _, (hidden, _) = self._network["lstm"](torch.from_numpy(windows))
                raw = torch.relu(self._network["linear"](hidden[-1])).numpy()
        finally:
            torch.set_num_threads(before)
        partial = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        mean = partial.mean(axis=0)
        vector: NDArray[np.float32] = (mean / np.linalg.norm(mean)).astype(np.float32)
        return vector


def load_ge2e(*, offline: bool = False) -> Ge2e:
    """With the published weights, fetched and verified at the first use."""
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "audio") from None
    from veilmeter.speech import weights

    path = weights.fetch(weights.GE2E, offline=offline)
    state = torch.load(path, map_location="cpu", weights_only=True)
    return Ge2e(state.get("model_state", state), version=f"torch-{weights.GE2E.sha256[:12]}")
