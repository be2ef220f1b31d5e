"""Extractors made from published parameters as ONNX graphs: ECAPA-TDNN (Desplanques et al. 2020, SpeechBrain),
ERes2Net (Chen et al. 2023, 3D-Speaker), and a ResNet34 (WeSpeaker).

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
from veilmeter.speech.extractors.onnx import FRAME, MEL_BINS, MIN_SAMPLES, RATE, SCALE, SHIFT, WINDOW, OnnxExtractor
from veilmeter.speech.onnx_session import GraphBuilder

ECAPA_BLOCKS = ((1, 2), (2, 3), (3, 4))  # (number, dilation)
ECAPA_PARTS = 8  # parts of the channels that a block convolves one after the other
ECAPA_LEAST_VARIANCE = 1e-12


def build_ecapa(state: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """The serialized model: input `feats` (batch, frames, 80), output `embs` (batch, 192)."""
    graph = GraphBuilder({name: np.asarray(value, np.float32) for name, value in state.items()})
    x = graph.op("Transpose", ["feats"], perm=[0, 2, 1])
    x = _tdnn(graph, x, "blocks.0")
    outputs = []
    for number, dilation in ECAPA_BLOCKS:
        x = _ecapa_block(graph, x, f"blocks.{number}", dilation)
        outputs.append(x)
    x = _tdnn(graph, graph.op("Concat", outputs, axis=1), "mfa")
    x = _normalize(graph, _attentive_statistics(graph, x), "asp_bn.norm")
    x = graph.convolve(x, "fc.conv")
    graph.op("Squeeze", [x, graph.integers([2])], output="embs")
    dimension = graph.state["fc.conv.weight"].shape[0]
    return graph.serialize("ecapa", {"feats": ["batch", "frames", 80]}, {"embs": ["batch", dimension]}, metadata)


def _tdnn(graph: GraphBuilder, x: str, place: str, dilation: int = 1) -> str:
    """A convolution over time that keeps the length (edges are mirrored), ReLU, and then normalization."""
    around = dilation * (graph.state[f"{place}.conv.conv.weight"].shape[2] - 1) // 2
    if around:
        x = graph.op("Pad", [x, graph.integers([0, 0, around, 0, 0, around])], mode="reflect")
    x = graph.op("Relu", [graph.convolve(x, f"{place}.conv.conv", dilations=[dilation])])
    return _normalize(graph, x, f"{place}.norm.norm")


def _normalize(graph: GraphBuilder, x: str, name: str) -> str:
    gain, offset = (graph.constant(part.astype(np.float32)[:, None]) for part in graph.normalization(name))
    return graph.op("Add", [graph.op("Mul", [x, gain]), offset])


def _ecapa_block(graph: GraphBuilder, x: str, place: str, dilation: int) -> str:
    y = _tdnn(graph, x, f"{place}.tdnn1")
    size = graph.state[f"{place}.tdnn1.conv.conv.weight"].shape[0] // ECAPA_PARTS
    parts = [_channels(graph, y, size * number, size) for number in range(ECAPA_PARTS)]
    done = [parts[0]]
    for number, part in enumerate(parts[1:]):
        part = part if number == 0 else graph.op("Add", [part, done[-1]])
        done.append(_tdnn(graph, part, f"{place}.res2net_block.blocks.{number}", dilation))
    y = _tdnn(graph, graph.op("Concat", done, axis=1), f"{place}.tdnn2")
    squeezed = graph.op("ReduceMean", [y], axes=[2], keepdims=1)
    squeezed = graph.op("Relu", [graph.convolve(squeezed, f"{place}.se_block.conv1.conv")])
    gate = graph.op("Sigmoid", [graph.convolve(squeezed, f"{place}.se_block.conv2.conv")])
    return graph.op("Add", [graph.op("Mul", [gate, y]), x])


def _channels(graph: GraphBuilder, x: str, start: int, count: int) -> str:
    return graph.op("Slice", [x, graph.integers([start]), graph.integers([start + count]), graph.integers([1])])


def _attentive_statistics(graph: GraphBuilder, x: str) -> str:
    """Weighted mean and deviation over time; the weights know the mean and deviation of the whole."""
    frames = graph.op("Shape", [x])
    mean = graph.op("ReduceMean", [x], axes=[2], keepdims=1)
    away = graph.op("Sub", [x, mean])
    deviation = _root(graph, graph.op("ReduceMean", [graph.op("Mul", [away, away])], axes=[2], keepdims=1))
    context = [x, graph.op("Expand", [mean, frames]), graph.op("Expand", [deviation, frames])]
    attention = graph.op("Tanh", [_tdnn(graph, graph.op("Concat", context, axis=1), "asp.tdnn")])
    weights = graph.op("Softmax", [graph.convolve(attention, "asp.conv.conv")], axis=2)
    mean = graph.op("ReduceSum", [graph.op("Mul", [weights, x]), graph.integers([2])], keepdims=1)
    away = graph.op("Sub", [x, mean])
    squares = graph.op("Mul", [weights, graph.op("Mul", [away, away])])
    deviation = _root(graph, graph.op("ReduceSum", [squares, graph.integers([2])], keepdims=1))
    return graph.op("Concat", [mean, deviation], axis=1)


def _root(graph: GraphBuilder, x: str) -> str:
    return graph.op("Sqrt", [graph.op("Max", [x, graph.constant(np.array(ECAPA_LEAST_VARIANCE, np.float32))])])


ERES2NET_LAYERS = (
    (1, 3, 1, False),
    (2, 4, 2, False),
    (3, 6, 2, True),
    (4, 3, 2, True),
)  # (number, blocks, stride, fused)
AROUND = [1, 1, 1, 1]
ERES2NET_HIGHEST = 20.0  # its ReLU ends there
ERES2NET_LEAST_VARIANCE = 1e-8


def build_eres2net(state: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """The serialized model: input `feats` (batch, frames, 80), output `embs` (batch, 192)."""
    graph = GraphBuilder({name: np.asarray(value, np.float32) for name, value in state.items()})
    x = graph.op("Transpose", ["feats"], perm=[0, 2, 1])
    x = graph.op("Unsqueeze", [x, graph.integers([1])])
    x = graph.op("Relu", [graph.convolve(x, "conv1", batch_norm="bn1", pads=AROUND)])
    fused = ""
    for number, blocks, stride, inner in ERES2NET_LAYERS:
        for block in range(blocks):
            x = _eres2net_block(graph, x, f"layer{number}.{block}", stride if block == 0 else 1, inner)
        if number == 1:
            fused = x
        else:  # what was fused so far, thinned out to the size of this layer
            below = graph.convolve(fused, f"layer{number - 1}_downsample", strides=[2, 2], pads=AROUND)
            fused = _fuse(graph, x, below, f"fuse_mode{'1234'[:number]}")
    graph.op("Identity", [graph.linear(_mean_and_deviation(graph, fused), "seg_1")], output="embs")
    dimension = graph.state["seg_1.weight"].shape[0]
    return graph.serialize("eres2net", {"feats": ["batch", "frames", 80]}, {"embs": ["batch", dimension]}, metadata)


def _eres2net_block(graph: GraphBuilder, x: str, place: str, stride: int, inner: bool) -> str:
    """A residual block: two halves of the channels, the second convolved with the first one's result, which is added
    or, in the deeper layers, fused by attention."""
    y = _clip(graph, graph.convolve(x, f"{place}.conv1", batch_norm=f"{place}.bn1", strides=[stride, stride]))
    width = graph.state[f"{place}.convs.0.weight"].shape[0]
    first, second = (
        graph.op("Slice", [y, graph.integers([start]), graph.integers([start + width]), graph.integers([1])])
        for start in (0, width)
    )
    done = _clip(graph, graph.convolve(first, f"{place}.convs.0", batch_norm=f"{place}.bns.0", pads=AROUND))
    mixed = _fuse(graph, done, second, f"{place}.fuse_models.0") if inner else graph.op("Add", [done, second])
    other = _clip(graph, graph.convolve(mixed, f"{place}.convs.1", batch_norm=f"{place}.bns.1", pads=AROUND))
    y = graph.convolve(graph.op("Concat", [done, other], axis=1), f"{place}.conv3", batch_norm=f"{place}.bn3")
    if f"{place}.shortcut.0.weight" in graph.state:
        short = f"{place}.shortcut"
        x = graph.convolve(x, f"{short}.0", batch_norm=f"{short}.1", strides=[stride, stride])
    return _clip(graph, graph.op("Add", [y, x]))


def _clip(graph: GraphBuilder, x: str) -> str:
    low, high = (graph.constant(np.array(end, np.float32)) for end in (0.0, ERES2NET_HIGHEST))
    return graph.op("Clip", [x, low, high])


def _fuse(graph: GraphBuilder, x: str, y: str, place: str) -> str:
    """Attention decides, for each place, how much of either counts: x (1 + a) + y (1 - a)."""
    both = graph.op("Concat", [x, y], axis=1)
    hidden = graph.convolve(both, f"{place}.local_att.0", batch_norm=f"{place}.local_att.1")
    hidden = graph.op("Mul", [hidden, graph.op("Sigmoid", [hidden])])
    attention = graph.op("Tanh", [graph.convolve(hidden, f"{place}.local_att.3", batch_norm=f"{place}.local_att.4")])
    difference = graph.op("Mul", [attention, graph.op("Sub", [x, y])])
    return graph.op("Add", [graph.op("Add", [x, y]), difference])


def _mean_and_deviation(graph: GraphBuilder, x: str) -> str:
    """Over time, of every channel and bin: (batch, 2 x channels x bins); the variance is unbiased."""
    mean = graph.op("ReduceMean", [x], axes=[3], keepdims=1)
    away = graph.op("Sub", [x, mean])
    squares = graph.op("ReduceSum", [graph.op("Mul", [away, away]), graph.integers([3])], keepdims=1)
    frames = graph.op("Gather", [graph.op("Shape", [x]), graph.integer(3)], axis=0)
    others = graph.op("Cast", [graph.op("Sub", [frames, graph.integer(1)])], to=1)
    variance = graph.op(
        "Add", [graph.op("Div", [squares, others]), graph.constant(np.array(ERES2NET_LEAST_VARIANCE, np.float32))]
    )
    parts = [graph.op("Flatten", [part], axis=1) for part in (mean, graph.op("Sqrt", [variance]))]
    return graph.op("Concat", parts, axis=1)


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
    decibels = 10 * np.log10(np.maximum(power @ speechbrain_filters(), 1e-10))
    decibels = np.maximum(decibels, decibels.max() - DECIBELS)
    return np.asarray(decibels - decibels.mean(axis=0), np.float32)


@lru_cache(maxsize=1)
def speechbrain_filters() -> NDArray[np.float64]:
    """(201 x 80): each triangle reaches as far to the right as to its neighbor on the left."""
    mels = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), MEL_BINS + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    slope = (np.linspace(0, RATE // 2, FRAME // 2 + 1)[:, None] - hertz[1:-1]) / np.diff(hertz)[:-1]
    return np.asarray(np.maximum(0, np.minimum(1 + slope, 1 - slope)))


def load_ecapa(*, offline: bool = False) -> OnnxExtractor:
    """SpeechBrain's ECAPA-TDNN of VoxCeleb, 192-d: the challenges' own attacker."""
    return _load("ecapa", weights.ECAPA, build_ecapa, EcapaExtractor, offline)


def load_eres2net(*, offline: bool = False) -> OnnxExtractor:
    """3D-Speaker's ERes2Net of VoxCeleb, 192-d."""
    return _load("eres2net", weights.ERES2NET, build_eres2net, OnnxExtractor, offline)


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
