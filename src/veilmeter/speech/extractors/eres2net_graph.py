"""ERes2Net (Chen et al. 2023) as 3D-Speaker trained it on VoxCeleb, as an ONNX graph of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from veilmeter.speech.onnx_session import GraphBuilder

LAYERS = ((1, 3, 1, False), (2, 4, 2, False), (3, 6, 2, True), (4, 3, 2, True))  # (number, blocks, stride, fused)
AROUND = [1, 1, 1, 1]
HIGHEST = 20.0  # its ReLU ends there
LEAST_VARIANCE = 1e-8


def build_graph(state: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """The serialized model: input `feats` (batch, frames, 80), output `embs` (batch, 192)."""
    graph = GraphBuilder({name: np.asarray(value, np.float32) for name, value in state.items()})
    x = graph.op("Transpose", ["feats"], perm=[0, 2, 1])
    x = graph.op("Unsqueeze", [x, graph.integers([1])])
    x = graph.op("Relu", [graph.convolve(x, "conv1", batch_norm="bn1", pads=AROUND)])
    fused = ""
    for number, blocks, stride, inner in LAYERS:
        for block in range(blocks):
            x = _block(graph, x, f"layer{number}.{block}", stride if block == 0 else 1, inner)
        if number == 1:
            fused = x
        else:  # what was fused so far, thinned out to the size of this layer
            below = graph.convolve(fused, f"layer{number - 1}_downsample", strides=[2, 2], pads=AROUND)
            fused = _fuse(graph, x, below, f"fuse_mode{'1234'[:number]}")
    graph.op("Identity", [graph.linear(_mean_and_deviation(graph, fused), "seg_1")], output="embs")
    dimension = graph.state["seg_1.weight"].shape[0]
    return graph.serialized("eres2net", {"feats": ["batch", "frames", 80]}, {"embs": ["batch", dimension]}, metadata)


def _block(graph: GraphBuilder, x: str, place: str, stride: int, inner: bool) -> str:
    """A residual block: two halves of the channels, the second convolved with the first one's result, which is added
    or, in the deeper layers, fused by attention."""
    y = _clipped(graph, graph.convolve(x, f"{place}.conv1", batch_norm=f"{place}.bn1", strides=[stride, stride]))
    width = graph.state[f"{place}.convs.0.weight"].shape[0]
    first, second = (
        graph.op("Slice", [y, graph.integers([start]), graph.integers([start + width]), graph.integers([1])])
        for start in (0, width)
    )
    done = _clipped(graph, graph.convolve(first, f"{place}.convs.0", batch_norm=f"{place}.bns.0", pads=AROUND))
    mixed = _fuse(graph, done, second, f"{place}.fuse_models.0") if inner else graph.op("Add", [done, second])
    other = _clipped(graph, graph.convolve(mixed, f"{place}.convs.1", batch_norm=f"{place}.bns.1", pads=AROUND))
    y = graph.convolve(graph.op("Concat", [done, other], axis=1), f"{place}.conv3", batch_norm=f"{place}.bn3")
    if f"{place}.shortcut.0.weight" in graph.state:
        short = f"{place}.shortcut"
        x = graph.convolve(x, f"{short}.0", batch_norm=f"{short}.1", strides=[stride, stride])
    return _clipped(graph, graph.op("Add", [y, x]))


def _clipped(graph: GraphBuilder, x: str) -> str:
    low, high = (graph.constant(np.array(end, np.float32)) for end in (0.0, HIGHEST))
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
        "Add", [graph.op("Div", [squares, others]), graph.constant(np.array(LEAST_VARIANCE, np.float32))]
    )
    parts = [graph.op("Flatten", [part], axis=1) for part in (mean, graph.op("Sqrt", [variance]))]
    return graph.op("Concat", parts, axis=1)
