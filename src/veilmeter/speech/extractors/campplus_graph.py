"""CAM++ as an ONNX graph, written straight from the published parameters.

The same network as the torch module in `campplus`, arranged for a CPU: batch normalization is folded into the
convolution before it, and the context-aware mask, which is the same for all frames of a segment, is computed once a
segment instead of once a frame. No exporter is involved, so that it takes a second and does not depend on torch's
version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from veilmeter.speech.onnx_graph import GraphBuilder

SEGMENT = 100
BLOCKS = ((12, 1), (24, 2), (16, 2))  # (layers, dilation)


def build_graph(state: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """The serialized model: input `feats` (batch, frames, 80), output `embs` (batch, 192)."""
    graph = GraphBuilder({name: np.asarray(value, np.float32) for name, value in state.items()})
    x = graph.op("Transpose", ["feats"], perm=[0, 2, 1])
    x = graph.op("Unsqueeze", [x, graph.integers([1])])
    x = _head(graph, x)
    x = graph.convolve(
        x, "xvector.tdnn.linear", batch_norm="xvector.tdnn.nonlinear.batchnorm", strides=[2], pads=[2, 2]
    )
    x = graph.op("Relu", [x])
    segments = _Segments(graph, x)
    for number, (layers, dilation) in enumerate(BLOCKS, 1):
        for layer in range(1, layers + 1):
            new = _dense_layer(graph, x, f"xvector.block{number}.tdnnd{layer}", dilation, segments)
            x = graph.op("Concat", [x, new], axis=1)
        x = graph.normalize(x, f"xvector.transit{number}.nonlinear.batchnorm")
        x = graph.convolve(x, f"xvector.transit{number}.linear")
    x = graph.normalize(x, "xvector.out_nonlinear.batchnorm")
    statistics = _mean_and_deviation(graph, x, segments.frames)
    x = graph.convolve(statistics, "xvector.dense.linear", batch_norm="xvector.dense.nonlinear.batchnorm")
    graph.op("Squeeze", [x, graph.integers([2])], output="embs")
    dimension = graph.state["xvector.dense.linear.weight"].shape[0]
    return graph.serialized(
        "campplus", {"feats": ["batch", "frames", 80]}, {"embs": ["batch", dimension]}, metadata or {}
    )


def _head(graph: GraphBuilder, x: str) -> str:
    """The 2-D front: residual blocks over (mel, time) thin 80 mel bins to 10; then channels and bins are one axis."""
    around = [1, 1, 1, 1]
    x = graph.op("Relu", [graph.convolve(x, "head.conv1", batch_norm="head.bn1", pads=around)])
    for layer in ("head.layer1", "head.layer2"):
        for number, stride in enumerate((2, 1)):
            place = f"{layer}.{number}"
            y = graph.convolve(x, f"{place}.conv1", batch_norm=f"{place}.bn1", pads=around, strides=[stride, 1])
            y = graph.convolve(graph.op("Relu", [y]), f"{place}.conv2", batch_norm=f"{place}.bn2", pads=around)
            if stride != 1:
                short = f"{place}.shortcut"
                x = graph.convolve(x, f"{short}.0", batch_norm=f"{short}.1", strides=[stride, 1])
            x = graph.op("Relu", [graph.op("Add", [y, x])])
    x = graph.op("Relu", [graph.convolve(x, "head.conv2", batch_norm="head.bn2", pads=around, strides=[2, 1])])
    channels = graph.state["xvector.tdnn.linear.weight"].shape[1]
    return graph.op("Reshape", [x, graph.integers([0, channels, -1])])


class _Segments:
    """What the masks need and the number of frames alone decides: which segment a frame is in, and a matrix that
    averages over each segment (the last one may be shorter)."""

    def __init__(self, graph: GraphBuilder, x: str) -> None:
        shape = graph.op("Shape", [x])
        self.frames = graph.op("Gather", [shape, graph.integer(2)], axis=0)
        length, zero, one = graph.integer(SEGMENT), graph.integer(0), graph.integer(1)
        self.of_frame = graph.op("Div", [graph.op("Range", [zero, self.frames, one]), length])
        last = graph.op("Div", [graph.op("Sub", [self.frames, one]), length])
        count = graph.op("Add", [last, one])
        member = graph.op("OneHot", [self.of_frame, count, graph.constant(np.array([0, 1], np.float32))], axis=-1)
        sizes = graph.op("ReduceSum", [member, graph.integers([0])], keepdims=1)
        self.average = graph.op("Div", [member, sizes])


def _dense_layer(graph: GraphBuilder, x: str, place: str, dilation: int, segments: _Segments) -> str:
    x = graph.normalize(x, f"{place}.nonlinear1.batchnorm")
    x = graph.op("Relu", [graph.convolve(x, f"{place}.linear1", batch_norm=f"{place}.nonlinear2.batchnorm")])
    local = graph.convolve(x, f"{place}.cam_layer.linear_local", pads=[dilation, dilation], dilations=[dilation])
    whole = graph.op("ReduceMean", [x], axes=[2], keepdims=1)
    context = graph.op("Add", [whole, graph.op("MatMul", [x, segments.average])])
    mask = graph.op("Relu", [graph.convolve(context, f"{place}.cam_layer.linear1")])
    mask = graph.op("Sigmoid", [graph.convolve(mask, f"{place}.cam_layer.linear2")])
    return graph.op("Mul", [local, graph.op("Gather", [mask, segments.of_frame], axis=2)])


def _mean_and_deviation(graph: GraphBuilder, x: str, frames: str) -> str:
    mean = graph.op("ReduceMean", [x], axes=[2], keepdims=1)
    away = graph.op("Sub", [x, mean])
    squares = graph.op("ReduceSum", [graph.op("Mul", [away, away]), graph.integers([2])], keepdims=1)
    others = graph.op("Cast", [graph.op("Sub", [frames, graph.integer(1)])], to=1)  # unbiased: n - 1
    deviation = graph.op("Sqrt", [graph.op("Div", [squares, others])])
    return graph.op("Concat", [mean, deviation], axis=1)
