"""Extractors of other makers, from their published parameters: ECAPA-TDNN, ERes2Net, and a ResNet34.

Each front end is its makers' own: SpeechBrain's for ECAPA, Kaldi's with a povey window for ERes2Net (as for CAM++),
Kaldi's with a hamming window for the ResNet34, which has WeSpeaker's interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.core.files import write_bytes
from veilmeter.speech import weights
from veilmeter.speech.extractors import ecapa_graph, eres2net_graph
from veilmeter.speech.extractors.features import FRAME, MEL_BINS, MIN_SAMPLES, RATE, SHIFT
from veilmeter.speech.extractors.onnx import SCALE, WINDOW, OnnxExtractor

# Part of the cached graphs' names and of the extractors' versions: raise it when a graph or a front end changes.
GRAPH = 1
DECIBELS = 80.0  # SpeechBrain's range of energies below the greatest


class EcapaExtractor(OnnxExtractor):
    """The network behind SpeechBrain's front end."""

    def features(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        return speechbrain_fbank(samples)[None]


def speechbrain_fbank(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mel energies in dB every 10 ms (n x 80), the mean over the utterance subtracted, as SpeechBrain computes them:
    centered frames of 25 ms, a periodic hamming window, triangles as wide on the right as on the left."""
    signal = np.ascontiguousarray(samples, np.float32)
    if signal.ndim != 1 or len(signal) < MIN_SAMPLES:
        raise InputError(f"a speaker embedding needs at least {MIN_SAMPLES / RATE:g} s of mono speech")
    wide = np.pad(signal, FRAME // 2)
    frames = np.lib.stride_tricks.sliding_window_view(wide, FRAME)[::SHIFT]
    window = (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    decibels = 10 * np.log10(np.maximum(power @ _speechbrain_filters(), 1e-10))
    decibels = np.maximum(decibels, decibels.max() - DECIBELS)
    return np.asarray(decibels - decibels.mean(axis=0), np.float32)


@lru_cache(maxsize=1)
def _speechbrain_filters() -> NDArray[np.float64]:
    """(201 x 80): each triangle reaches as far to the right as to its neighbor on the left."""
    mels = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), MEL_BINS + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    slope = (np.linspace(0, RATE // 2, FRAME // 2 + 1)[:, None] - hertz[1:-1]) / np.diff(hertz)[:-1]
    return np.asarray(np.maximum(0, np.minimum(1 + slope, 1 - slope)))


def load_ecapa(*, offline: bool = False) -> OnnxExtractor:
    """SpeechBrain's ECAPA-TDNN of VoxCeleb, 192-d: the challenges' own attacker."""
    return _load("ecapa", weights.ECAPA, ecapa_graph.build_graph, EcapaExtractor, offline)


def load_eres2net(*, offline: bool = False) -> OnnxExtractor:
    """3D-Speaker's ERes2Net of VoxCeleb, 192-d."""
    return _load("eres2net", weights.ERES2NET, eres2net_graph.build_graph, OnnxExtractor, offline)


def load_resnet34(*, offline: bool = False) -> OnnxExtractor:
    """A ResNet34 with WeSpeaker's interface, 256-d; its makers are not named."""
    path = weights.fetch(weights.RESNET34, offline=offline)
    return OnnxExtractor(path, name="resnet34", version=f"onnx-{weights.RESNET34.sha256[:12]}")


def _load(
    name: str,
    published: weights.Weights,
    build: Callable[[Mapping[str, Any], Mapping[str, str]], bytes],
    kind: type[OnnxExtractor],
    offline: bool,
) -> OnnxExtractor:
    """The graph in the cache, made from the verified weights when it is missing or damaged."""
    path = weights.cache_folder() / f"{name}-{published.sha256[:12]}-{GRAPH}.onnx"
    version = f"onnx{GRAPH}-{published.sha256[:12]}"
    if path.is_file():
        try:
            return kind(path, name=name, version=version)
        except InputError:
            path.unlink(missing_ok=True)
    _write(path, weights.fetch(published, offline=offline), build)
    return kind(path, name=name, version=version)


def _write(path: Path, published: Path, build: Callable[[Mapping[str, Any], Mapping[str, str]], bytes]) -> None:
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "audio") from None
    state = torch.load(published, map_location="cpu", weights_only=True)
    write_bytes(path, build({name: tensor.numpy() for name, tensor in state.items()}, {WINDOW: "povey", SCALE: "1"}))
