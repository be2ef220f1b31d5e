"""ONNX Runtime sessions, opened one way everywhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.devices import CUDA, chosen_device, find_providers
from veilmeter.core.errors import InputError, missing_extra

OPSET = 17
IR_VERSION = 8
EPSILON = 1e-5  # of torch's normalizations
MICROSOFT = "com.microsoft"  # operators that ONNX Runtime adds
BLOCK = 32  # numbers that share a scale
QUIET = 4  # ONNX Runtime prints fatal errors only: we say what an exception says

Array = NDArray[np.float32]


class GraphBuilder:
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
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], name, **attributes))
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
        """A convolution, with the batch normalization after it folded in."""
        weight: NDArray[Any] = self.state[f"{name}.weight"]
        bias: NDArray[Any] | None = self.state.get(f"{name}.bias")
        if batch_norm is not None:
            gain, offset = self.normalization(batch_norm)
            weight = weight * gain.reshape(-1, *[1] * (weight.ndim - 1))
            bias = offset if bias is None else bias * gain + offset
        inputs = [x, self.constant(weight.astype(np.float32))]
        if bias is not None:
            inputs.append(self.constant(bias.astype(np.float32)))
        return self.op("Conv", inputs, kernel_shape=list(weight.shape[2:]), **attributes)

    def normalize(self, x: str, name: str) -> str:
        """Batch normalization that nothing before it can take over, and ReLU."""
        gain, offset = self.normalization(name)
        zeros = np.zeros(len(gain), np.float32)
        ones = np.ones(len(gain), np.float32)
        parameters = [self.constant(v.astype(np.float32)) for v in (gain, offset, zeros, ones)]
        return self.op("Relu", [self.op("BatchNormalization", [x, *parameters], epsilon=0.0)])

    def normalization(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Batch normalization as a gain and an offset for each channel."""
        mean = self.state[f"{name}.running_mean"].astype(np.float64)
        spread = np.sqrt(self.state[f"{name}.running_var"].astype(np.float64) + EPSILON)
        gain = self.state.get(f"{name}.weight", np.ones(len(mean), np.float32)) / spread
        offset = self.state.get(f"{name}.bias", np.zeros(len(mean), np.float32)) - mean * gain
        return gain, offset

    def linear(self, x: str, name: str) -> str:
        """A matrix and an offset for the last axis."""
        return self.affine(x, self.state[f"{name}.weight"], self.state[f"{name}.bias"])

    def affine(self, x: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
        product = self.op("MatMul", [x, self.constant(weight.T.astype(np.float32))])
        return self.op("Add", [product, self.constant(bias.astype(np.float32))])

    def quantized(
        self, x: str, weight: NDArray[Any], bias: NDArray[Any] | None = None, output: str | None = None
    ) -> str:
        """A product with a matrix (and an offset for the last axis) in 8-bit integers, both sides scaled by blocks of
        the summed axis. In Moonshine's decoder this changed 6 of 1,913 words of original speech, 20 of anonymized."""
        height, width = weight.shape
        blocks = weight.T.reshape(width, height // BLOCK, BLOCK)
        scale = np.maximum(np.abs(blocks).max(axis=-1), 1e-12) / 127
        integers = (np.round(blocks / scale[..., None]) + 128).astype(np.uint8)
        inputs = [x, self.constant(integers), self.constant(scale.astype(np.float32))]
        if bias is not None:
            inputs += ["", "", self.constant(bias.astype(np.float32))]
        sizes = {"K": height, "N": width, "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
        return self.op("MatMulNBits", inputs, output, domain=MICROSOFT, **sizes)

    def split(self, x: str, parts: int) -> list[str]:
        """Parts of one size, along the last axis."""
        names = [f"n{len(self._nodes)}_{part}" for part in range(parts)]
        self._nodes.append(self._onnx.helper.make_node("Split", [x], names, names[0], axis=-1))
        return names

    def attend(self, inputs: Sequence[str], heads: int, present: Sequence[str] = ()) -> str:
        """Attention with several heads; `present` names the keys and values with those of the past."""
        name = f"n{len(self._nodes)}"
        node = self._onnx.helper.make_node(
            "MultiHeadAttention", list(inputs), [name, *present], name, domain=MICROSOFT, num_heads=heads
        )
        self._nodes.append(node)
        return name

    def scale_norm(self, x: str, gain: NDArray[Any]) -> str:
        """Layer normalization without an offset."""
        return self.op("LayerNormalization", [x, self.constant(gain)], axis=-1, epsilon=EPSILON)

    def layer_norm(self, x: str, name: str) -> str:
        gain, offset = (self.constant(self.state[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.op("LayerNormalization", [x, gain, offset], axis=-1, epsilon=EPSILON)

    def serialize(
        self,
        name: str,
        inputs: Mapping[str, Sequence[str | int]],
        outputs: Mapping[str, Sequence[str | int]],
        metadata: Mapping[str, str],
        *,
        integers: Collection[str] = (),
    ) -> bytes:
        """The model with these tensors by shape; all are floats but those named as `integers`."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        given, wanted = (
            [
                helper.make_tensor_value_info(tensor, types.INT64 if tensor in integers else types.FLOAT, list(shape))
                for tensor, shape in tensors.items()
            ]
            for tensors in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, name, given, wanted, self._constants)
        domains = [helper.make_opsetid("", OPSET)]
        if any(node.domain == MICROSOFT for node in self._nodes):
            domains.append(helper.make_opsetid(MICROSOFT, 1))
        model = helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION, producer_name="veilmeter")
        helper.set_model_props(model, dict(metadata))
        self._onnx.checker.check_model(model)
        data: bytes = model.SerializeToString(deterministic=True)
        return data


def open_session(path: str | Path) -> Any:
    """An ONNX Runtime session with one thread: cores are used by processes, and one thread is always repeatable."""
    runtime = import_runtime()
    if not Path(path).is_file():
        raise InputError("there is no such model", path=path)
    try:
        return runtime.InferenceSession(str(path), session_options(), providers=available_providers())
    except Exception as error:  # ONNX Runtime's own types are not public
        raise InputError(f"this ONNX model can't be loaded: {first_line(error)}", path=path) from None


def available_providers() -> list[str]:
    """The providers that a session may use, in order: a GPU where there is one and it was not declined."""
    return find_providers(import_runtime().get_available_providers())


def device_of(session: Any) -> str:
    """`cuda` or `cpu`: what the session runs on in the end. ONNX Runtime falls back to the processor in silence, for
    example where a library of CUDA is missing; that is an error where a GPU was asked for."""
    if CUDA in session.get_providers():
        return "cuda"
    if chosen_device() == "cuda" and CUDA in import_runtime().get_available_providers():
        raise InputError(
            "--device cuda: ONNX Runtime has fallen back to the processor", fix="check CUDA and cuDNN, or --device cpu"
        )
    return "cpu"


def session_options() -> Any:
    """One thread, and no remarks about the model on standard error."""
    options = import_runtime().SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    return options


def import_runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise missing_extra("onnxruntime", "audio") from None
    return onnxruntime


def cut_behind(graph: Any, output: str) -> None:
    """Leaves what the output is made of: nodes come after those that they need, so one way back finds all of it."""
    from onnx import ValueInfoProto

    needed = {output}
    nodes = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
    constants = [constant for constant in graph.initializer if constant.name in needed]
    for field, kept in ((graph.node, nodes[::-1]), (graph.initializer, constants)):
        del field[:]
        field.extend(kept)
    del graph.output[:]
    graph.output.append(ValueInfoProto(name=output))  # its type follows


def first_line(error: Exception) -> str:
    """What ONNX Runtime said, without the nodes and places in its source before it and the pages that follow."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0].rpartition("Status Message: ")[2]
    return re.sub(r"^/\S+:\d+ .*?\) ", "", first)[:300]
