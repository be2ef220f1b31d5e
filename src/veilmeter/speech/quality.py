"""Models that rate a recording and track its pitch.

Two models predict listeners' ratings, both from 1 to 5. Distill-MOS says how good speech sounds overall, also where it
was coded or synthesized. DNSMOS P.835 says how clean it is: the speech itself, the background, and both together.
Neither says whether one understands a word.

The pitch is tracked by SwiftF0 (Nieradzik 2025, MIT), a value every 16 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.devices import device_mark
from veilmeter.core.errors import missing_extra
from veilmeter.core.files import write_bytes
from veilmeter.speech import weights
from veilmeter.speech.audio import RATE
from veilmeter.speech.onnx_session import GraphBuilder, open_session

# Part of the cached graph's name: raise it when the graph changes.
GRAPH = 1
STRETCH = 122_880  # samples
WINDOW, HOP = 320, 160
STRIDES = ((1, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 2))  # of the convolutions, over frequency and time
LAYERS, HEADS, WIDTH = 7, 8, 200
_MODEL = "transformer_pool_attn"


def build_graph(state: Mapping[str, Any]) -> bytes:
    """The serialized model: input `spectra` (batch, 2, 161, 768), output `mos` (batch, 1)."""
    graph = GraphBuilder({name: np.asarray(value, np.float32) for name, value in state.items()})
    x = "spectra"
    for number, strides in enumerate(STRIDES):
        x = graph.convolve(x, f"cnn.cnn.{2 * number}", strides=list(strides), pads=[0, 1, 0, 1])
        x = graph.op("LeakyRelu", [x], alpha=0.1)
    channels = graph.state[f"{_MODEL}.transformer.linear_proj.weight"].shape[1]
    x = graph.op("Transpose", [graph.op("Reshape", [x, graph.integers([0, channels, -1])])], perm=[0, 2, 1])
    x = graph.affine(x, *_projection(graph))
    x = graph.op("Add", [x, graph.constant(graph.state[f"{_MODEL}.transformer.position_encoding.pe"])])
    for layer in range(LAYERS):
        x = _transformer_layer(graph, x, f"{_MODEL}.transformer.transformer_encoder.layers.{layer}")
    gain, offset = graph.normalization(f"{_MODEL}.norm_trans")
    x = graph.op("Mul", [x, graph.constant(gain.astype(np.float32))])
    x = graph.op("Add", [x, graph.constant(offset.astype(np.float32))])
    attention = graph.linear(graph.op("Relu", [graph.linear(x, f"{_MODEL}.pool.linear1")]), f"{_MODEL}.pool.linear2")
    attention = graph.op("Softmax", [graph.op("Transpose", [attention], perm=[0, 2, 1])], axis=-1)
    pooled = graph.op("Squeeze", [graph.op("MatMul", [attention, x]), graph.integers([1])])
    share = graph.op("Sigmoid", [graph.linear(pooled, f"{_MODEL}.pool.linear3")])
    four, one = (graph.constant(np.array(value, np.float32)) for value in (4, 1))
    graph.op("Add", [graph.op("Mul", [share, four]), one], output="mos")
    return graph.serialize("distill_mos", {"spectra": ["batch", 2, 161, 768]}, {"mos": ["batch", 1]}, {})


def _projection(graph: GraphBuilder) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two batch normalizations, one after the other, and the linear map behind them, as one linear map."""
    first, second = (graph.normalization(f"{_MODEL}.{place}") for place in ("norm_input", "transformer.norm"))
    weight = graph.state[f"{_MODEL}.transformer.linear_proj.weight"].astype(np.float64)
    bias = graph.state[f"{_MODEL}.transformer.linear_proj.bias"].astype(np.float64)
    gain = first[0] * second[0]
    offset = first[1] * second[0] + second[1]
    return weight * gain, bias + weight @ offset


def _transformer_layer(graph: GraphBuilder, x: str, place: str) -> str:
    """Attention and a feed-forward network, each added to what it read and normalized after that."""
    size = WIDTH // HEADS
    weight = graph.state[f"{place}.self_attn.in_proj_weight"]
    bias = graph.state[f"{place}.self_attn.in_proj_bias"]
    parts = []
    for number in range(3):
        rows = slice(number * WIDTH, (number + 1) * WIDTH)
        split = graph.op("Reshape", [graph.affine(x, weight[rows], bias[rows]), graph.integers([0, 0, HEADS, size])])
        parts.append(graph.op("Transpose", [split], perm=[0, 2, 3, 1] if number == 1 else [0, 2, 1, 3]))
    query, key, value = parts
    scale = graph.constant(np.array(size**-0.5, np.float32))
    scores = graph.op("Softmax", [graph.op("Mul", [graph.op("MatMul", [query, key]), scale])], axis=-1)
    mixed = graph.op("Transpose", [graph.op("MatMul", [scores, value])], perm=[0, 2, 1, 3])
    mixed = graph.linear(graph.op("Reshape", [mixed, graph.integers([0, 0, WIDTH])]), f"{place}.self_attn.out_proj")
    x = graph.layer_norm(graph.op("Add", [x, mixed]), f"{place}.norm1")
    wide = graph.op("Relu", [graph.linear(x, f"{place}.linear1")])
    return graph.layer_norm(graph.op("Add", [x, graph.linear(wide, f"{place}.linear2")]), f"{place}.norm2")


def spectrum(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """(2, 161, 768): real and imaginary parts of frames of 20 ms every 10 ms, magnitudes to the power 0.3."""
    scaled = samples / (np.abs(samples).max() + np.float32(1e-8))
    wide = np.pad(scaled, (WINDOW - HOP) // 2, mode="reflect")
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(wide, WINDOW)[::HOP] * window
    values = np.fft.rfft(frames, axis=1)
    values *= np.maximum(np.abs(values), 1e-12) ** -0.7
    return np.stack([values.real.T, values.imag.T]).astype(np.float32)


def open_model(*, offline: bool = False) -> Any:
    """The session, its graph made from the verified weights when it is missing in the cache."""
    path = weights.cache_folder() / f"distill-mos-{weights.DISTILL_MOS.sha256[:12]}-{GRAPH}.onnx"
    if not path.is_file():
        published = weights.fetch(weights.DISTILL_MOS, offline=offline)
        try:
            import torch
        except ImportError:
            raise missing_extra("torch", "audio") from None
        state = torch.load(published, map_location="cpu", weights_only=True)["model"]
        write_bytes(path, build_graph({name: tensor.numpy() for name, tensor in state.items()}))
    return open_session(path)


# Part of the version: raise it when the same samples may give other values.
CODE = 1
MOST_STRETCHES = 12  # of a long recording, spread evenly over it
DNSMOS_SAMPLES = int(9.01 * RATE)
# The published calibration of the raw outputs to listeners' scores: quadratic, linear and constant terms.
_POLYNOMIALS = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)


@dataclass(frozen=True, slots=True)
class Quality:
    """Predicted ratings from 1 to 5."""

    mos: float
    dnsmos_sig: float
    dnsmos_bak: float
    dnsmos_ovr: float


class QualityModels:
    """Both models, loaded."""

    name = "quality"

    def __init__(self, *, offline: bool = False) -> None:
        marks = [entry.sha256[:8] for entry in (weights.DISTILL_MOS, weights.DNSMOS)]
        self.version = "-".join([*marks, str(CODE)]) + device_mark()
        self._distill = open_model(offline=offline)
        self._dnsmos = open_session(weights.fetch(weights.DNSMOS, offline=offline))

    def rate(self, samples: NDArray[np.float32]) -> Quality:
        clipped = np.clip(samples, -1, 1)
        mos = _mean_over(clipped, STRETCH, self._distill_mos, fill=_with_silence)
        return Quality(float(mos[0]), *map(float, _mean_over(clipped, DNSMOS_SAMPLES, self._p835, fill=_repeat)))

    def _distill_mos(self, stretch: NDArray[np.float32]) -> Any:
        return self._distill.run(None, {"spectra": spectrum(stretch)[None]})[0][0]

    def _p835(self, stretch: NDArray[np.float32]) -> Any:
        raw = self._dnsmos.run(None, {"input_1": stretch[None]})[0][0]
        return np.array([np.polyval(polynomial, value) for polynomial, value in zip(_POLYNOMIALS, raw, strict=True)])


def _mean_over(
    samples: NDArray[np.float32],
    size: int,
    rate: Callable[[NDArray[np.float32]], Any],
    *,
    fill: Callable[[NDArray[np.float32], int], NDArray[np.float32]],
) -> NDArray[np.float64]:
    """The mean rating of overlapping stretches: half of each is new, the first and the last end where the recording
    does."""
    if len(samples) < size:
        samples = fill(samples, size)
    count = min(MOST_STRETCHES, 1 + -(-2 * (len(samples) - size) // size))
    starts = np.linspace(0, len(samples) - size, count).astype(int)
    ratings = [rate(np.ascontiguousarray(samples[start : start + size])) for start in starts]
    return np.asarray(np.mean(ratings, axis=0, dtype=np.float64))


def _with_silence(samples: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return np.pad(samples, (0, size - len(samples)))


def _repeat(samples: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return np.tile(samples, -(-size // len(samples)))[:size]


# Part of the version: raise it when the same samples may give other values.
PITCH_CODE = 1
FRAME = 256  # samples
FRAME_SECONDS = FRAME / RATE
LOWEST, HIGHEST = 50.0, 600.0  # Hz: of speech
VOICED = 0.5  # the least confidence, as the model is calibrated
_QUIET = 1e-3  # on digital silence it answers at random
_WINDOW, _BEFORE, _AFTER = 1875, 11, 10  # frames: half a minute at once, with what decides its first and last frame


class PitchTracker:
    """Loaded once; `track` may be called for as many recordings as you like."""

    name = "pitch"

    def __init__(self, *, offline: bool = False) -> None:
        self.version = f"{weights.SWIFT_F0.sha256[:12]}-{PITCH_CODE}{device_mark()}"
        self._session = open_session(weights.fetch(weights.SWIFT_F0, offline=offline))

    def track(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Hertz per frame, 0 where nothing is voiced."""
        frames = max(1, len(samples) // FRAME)
        parts = []
        for start in range(0, frames, _WINDOW):
            end, left = min(start + _WINDOW, frames), max(0, start - _BEFORE)
            window = samples[left * FRAME : (end + _AFTER) * FRAME if end < frames else len(samples)]
            parts.append(self._window(window)[start - left : end - left])
        return np.concatenate(parts)

    def _window(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        low, high = np.array(LOWEST, np.float32), np.array(HIGHEST, np.float32)
        inputs = {"audio": np.ascontiguousarray(samples)[None], "fmin": low, "fmax": high}
        pitch, confidence = (values[0] for values in self._session.run(["pitch", "confidence"], inputs))
        voiced = confidence >= VOICED
        if len(samples) >= FRAME:
            hops = samples[: len(voiced) * FRAME].reshape(len(voiced), FRAME)
            voiced &= np.abs(hops).max(axis=1) >= _QUIET
        return np.where(voiced, pitch, 0.0).astype(np.float32)
