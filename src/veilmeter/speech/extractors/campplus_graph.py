"""CAM++ as an ONNX graph, written straight from the published parameters.

The same network as the torch module in `campplus`, arranged for a CPU: batch normalisation is folded into the
convolution before it, and the context-aware mask, which is the same for all frames of a segment, is computed once a
segment instead of once a frame. No exporter is involved, so that it takes a second and does not depend on torch's
version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import missing_extra

OPSET = 17
IR_VERSION = 8
EPSILON = 1e-5  # of torch's batch normalisation
SEGMENT = 100
BLOCKS = ((12, 1), (24, 2), (16, 2))  # (layers, dilation)

Array = NDArray[np.float32]


def build_graph(state: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """The serialized model: input `feats` (batch, frames, 80), output `embs` (batch, 192)."""
    graph = _Graph({name: np.asarray(value, np.float32) for name, value in state.items()})
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
    return graph.serialized(metadata or {})


def _head(graph: _Graph, x: str) -> str:
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

    def __init__(self, graph: _Graph, x: str) -> None:
        shape = graph.op("Shape", [x])
        self.frames = graph.op("Gather", [shape, graph.integer(2)], axis=0)
        length, zero, one = graph.integer(SEGMENT), graph.integer(0), graph.integer(1)
        self.of_frame = graph.op("Div", [graph.op("Range", [zero, self.frames, one]), length])
        last = graph.op("Div", [graph.op("Sub", [self.frames, one]), length])
        count = graph.op("Add", [last, one])
        member = graph.op("OneHot", [self.of_frame, count, graph.constant(np.array([0, 1], np.float32))], axis=-1)
        sizes = graph.op("ReduceSum", [member, graph.integers([0])], keepdims=1)
        self.average = graph.op("Div", [member, sizes])


def _dense_layer(graph: _Graph, x: str, place: str, dilation: int, segments: _Segments) -> str:
    x = graph.normalize(x, f"{place}.nonlinear1.batchnorm")
    x = graph.op("Relu", [graph.convolve(x, f"{place}.linear1", batch_norm=f"{place}.nonlinear2.batchnorm")])
    local = graph.convolve(x, f"{place}.cam_layer.linear_local", pads=[dilation, dilation], dilations=[dilation])
    whole = graph.op("ReduceMean", [x], axes=[2], keepdims=1)
    context = graph.op("Add", [whole, graph.op("MatMul", [x, segments.average])])
    mask = graph.op("Relu", [graph.convolve(context, f"{place}.cam_layer.linear1")])
    mask = graph.op("Sigmoid", [graph.convolve(mask, f"{place}.cam_layer.linear2")])
    return graph.op("Mul", [local, graph.op("Gather", [mask, segments.of_frame], axis=2)])


def _mean_and_deviation(graph: _Graph, x: str, frames: str) -> str:
    mean = graph.op("ReduceMean", [x], axes=[2], keepdims=1)
    away = graph.op("Sub", [x, mean])
    squares = graph.op("ReduceSum", [graph.op("Mul", [away, away]), graph.integers([2])], keepdims=1)
    others = graph.op("Cast", [graph.op("Sub", [frames, graph.integer(1)])], to=1)  # unbiased: n - 1
    deviation = graph.op("Sqrt", [graph.op("Div", [squares, others])])
    return graph.op("Concat", [mean, deviation], axis=1)


class _Graph:
    """Nodes and constants as they are added."""

    def __init__(self, state: Mapping[str, Array]) -> None:
        try:
            import onnx
        except ImportError:
            raise missing_extra("onnx", "audio") from None
        self._onnx: Any = onnx
        self.state = state
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._shared: dict[tuple[int, ...] | int, str] = {}

    def op(self, kind: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        name = output or f"n{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, values: Sequence[int]) -> str:
        key = tuple(values)
        if key not in self._shared:
            self._shared[key] = self.constant(np.array(values, np.int64))
        return self._shared[key]

    def integer(self, value: int) -> str:
        if value not in self._shared:
            self._shared[value] = self.constant(np.array(value, np.int64))
        return self._shared[value]

    def convolve(self, x: str, name: str, *, batch_norm: str | None = None, **attributes: Any) -> str:
        """A convolution, with the batch normalisation after it folded in."""
        weight: NDArray[Any] = self.state[f"{name}.weight"]
        bias: NDArray[Any] | None = self.state.get(f"{name}.bias")
        if batch_norm is not None:
            gain, offset = self._affine(batch_norm)
            weight = weight * gain.reshape(-1, *[1] * (weight.ndim - 1))
            bias = offset if bias is None else bias * gain + offset
        inputs = [x, self.constant(weight.astype(np.float32))]
        if bias is not None:
            inputs.append(self.constant(bias.astype(np.float32)))
        return self.op("Conv", inputs, kernel_shape=list(weight.shape[2:]), **attributes)

    def normalize(self, x: str, name: str) -> str:
        """Batch normalisation that nothing before it can take over, and ReLU."""
        gain, offset = self._affine(name)
        zero = np.zeros(len(gain), np.float32)
        one = np.ones(len(gain), np.float32)
        parameters = [self.constant(v.astype(np.float32)) for v in (gain, offset, zero, one)]
        return self.op("Relu", [self.op("BatchNormalization", [x, *parameters], epsilon=0.0)])

    def _affine(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        mean = self.state[f"{name}.running_mean"].astype(np.float64)
        spread = np.sqrt(self.state[f"{name}.running_var"].astype(np.float64) + EPSILON)
        gain = self.state.get(f"{name}.weight", np.ones(len(mean), np.float32)) / spread
        offset = self.state.get(f"{name}.bias", np.zeros(len(mean), np.float32)) - mean * gain
        return gain, offset

    def serialized(self, metadata: Mapping[str, str]) -> bytes:
        helper, floats = self._onnx.helper, self._onnx.TensorProto.FLOAT
        feats = helper.make_tensor_value_info("feats", floats, ["batch", "frames", 80])
        dimension = self.state["xvector.dense.linear.weight"].shape[0]
        embs = helper.make_tensor_value_info("embs", floats, ["batch", dimension])
        graph = helper.make_graph(self._nodes, "campplus", [feats], [embs], self._constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="veilmeter"
        )
        helper.set_model_props(model, dict(metadata))
        self._onnx.checker.check_model(model)
        data: bytes = model.SerializeToString(deterministic=True)
        return data
