"""ECAPA-TDNN (Desplanques et al. 2020) as SpeechBrain trained it on VoxCeleb, as an ONNX graph of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from veilmeter.speech.onnx_session import GraphBuilder

BLOCKS = ((1, 2), (2, 3), (3, 4))  # (number, dilation)
SCALE = 8  # parts of the channels that a block convolves one after the other
LEAST_VARIANCE = 1e-12


def build_graph(state: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """The serialized model: input `feats` (batch, frames, 80), output `embs` (batch, 192)."""
    graph = GraphBuilder({name: np.asarray(value, np.float32) for name, value in state.items()})
    x = graph.op("Transpose", ["feats"], perm=[0, 2, 1])
    x = _tdnn(graph, x, "blocks.0")
    outputs = []
    for number, dilation in BLOCKS:
        x = _block(graph, x, f"blocks.{number}", dilation)
        outputs.append(x)
    x = _tdnn(graph, graph.op("Concat", outputs, axis=1), "mfa")
    x = _normalized(graph, _attentive_statistics(graph, x), "asp_bn.norm")
    x = graph.convolve(x, "fc.conv")
    graph.op("Squeeze", [x, graph.integers([2])], output="embs")
    dimension = graph.state["fc.conv.weight"].shape[0]
    return graph.serialized("ecapa", {"feats": ["batch", "frames", 80]}, {"embs": ["batch", dimension]}, metadata)


def _tdnn(graph: GraphBuilder, x: str, place: str, dilation: int = 1) -> str:
    """A convolution over time that keeps the length (edges are mirrored), ReLU, and then normalization."""
    around = dilation * (graph.state[f"{place}.conv.conv.weight"].shape[2] - 1) // 2
    if around:
        x = graph.op("Pad", [x, graph.integers([0, 0, around, 0, 0, around])], mode="reflect")
    x = graph.op("Relu", [graph.convolve(x, f"{place}.conv.conv", dilations=[dilation])])
    return _normalized(graph, x, f"{place}.norm.norm")


def _normalized(graph: GraphBuilder, x: str, name: str) -> str:
    gain, offset = (graph.constant(part.astype(np.float32)[:, None]) for part in graph.normalization(name))
    return graph.op("Add", [graph.op("Mul", [x, gain]), offset])


def _block(graph: GraphBuilder, x: str, place: str, dilation: int) -> str:
    y = _tdnn(graph, x, f"{place}.tdnn1")
    size = graph.state[f"{place}.tdnn1.conv.conv.weight"].shape[0] // SCALE
    parts = [_channels(graph, y, size * number, size) for number in range(SCALE)]
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
    return graph.op("Sqrt", [graph.op("Max", [x, graph.constant(np.array(LEAST_VARIANCE, np.float32))])])
