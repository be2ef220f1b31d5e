"""Moonshine base (English, MIT; Jeffries et al. 2024), run by ONNX Runtime, one greedy token after the other.

The published decoder keeps its weights as 8-bit integers, per matrix, and computes with floats: for every token it
reads 160 MB of weights and runs a thousand nodes, most of which compute shapes. Here the same weights are put into a
graph of our own (`build_step`), with 8-bit integers per block and products of integers, a quarter of the memory traffic
and a seventh of the nodes; what the decoder reads from the encoder is computed once per recording
(`build_reading`). In the same way the encoder can be cut behind any layer (`EncoderLayer`), where a frame every 24 ms
holds the words.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.devices import device_mark
from veilmeter.core.errors import InputError, need
from veilmeter.core.files import whole_file
from veilmeter.speech import weights
from veilmeter.speech.audio import RATE
from veilmeter.speech.onnx_session import (
    MICROSOFT,
    GraphBuilder,
    cut_behind,
    import_runtime,
    open_session,
    session_options,
)
from veilmeter.speech.recognizers.base import RecognizerKind, Samples, Transcript, cut_at_pauses, join_transcripts

# Part of the version: raise it when the same samples may give another text.
CODE = 2
LONGEST = 25.0  # seconds transcribed at once: it was trained on up to 30
SHORTEST = RATE // 4  # samples that the encoder needs to give a frame or two
TOKENS_PER_SECOND = 6.5  # as its makers limit it: on strange sounds it would never end
START, END = 1, 2
LAYERS, DIMENSION = 8, 416
HEADS, HEAD_SIZE = 8, 52
ROTATED = 32  # of a head's dimensions
EMBEDDING = "model.decoder.embed_tokens.weight_merged_0"
_BLANK = "\u2581".encode()


class Moonshine:
    """English speech as text, with case and punctuation."""

    name = "moonshine"
    language = "en"

    def __init__(self, encoder: Path, decoder: Path, tokens: Path) -> None:
        need("onnx", "onnxruntime")
        self.version = f"base-en-{weights.MOONSHINE_DECODER.sha256[:12]}-{CODE}{device_mark()}"
        self._encoder = open_session(encoder)
        self._reading = _open_kept(decoder, "reading", build_reading)
        self._step = _open_kept(decoder, "step", build_step)
        self._tokens = read_tokens(tokens.read_bytes())
        self._read = [output.name for output in self._reading.get_outputs()]
        self._wanted = [output.name for output in self._step.get_outputs()]

    def transcribe(self, samples: Samples) -> Transcript:
        heard = [self._stretch(stretch) for stretch in cut_at_pauses(samples, LONGEST)]
        return join_transcripts([part for part, _ in heard], [count for _, count in heard])

    def _stretch(self, samples: Samples) -> tuple[Transcript, int]:
        if len(samples) < SHORTEST:
            samples = np.pad(samples, (0, SHORTEST - len(samples)))
        states = self.encode(samples)
        most = int(len(samples) / RATE * TOKENS_PER_SECOND) + 1
        ids, logs = self.decode(states, most)
        return Transcript(self.text_of(ids), float(np.exp(np.mean(logs)))), len(logs)

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that tokens spell."""
        text = b"".join(self._tokens[token] for token in ids if token < len(self._tokens)).replace(_BLANK, b" ")
        return " ".join(text.decode("utf-8", "ignore").split())

    def encode(self, samples: Samples) -> dict[str, Any]:
        """What every layer of the decoder reads from the encoder, whose output is a frame every 24 ms."""
        value = import_runtime().OrtValue.ortvalue_from_numpy
        given = {"input_values": value(np.ascontiguousarray(samples)[None])}
        states = self._encoder.run_with_ort_values(["last_hidden_state"], given)[0]
        return dict(zip(self._read, self._reading.run_with_ort_values(self._read, {"states": states}), strict=True))

    def decode(self, read: Mapping[str, Any], most: int) -> tuple[list[int], list[float]]:
        """Tokens, at most so many, without the one that ends it; and the logarithm of each one's probability."""
        value = import_runtime().OrtValue.ortvalue_from_numpy
        empty = value(np.zeros((1, HEADS, 0, HEAD_SIZE), np.float32))
        inputs = {**read, **{f"past_{name}": empty for name in self._wanted[1:]}}
        ids: list[int] = []
        logs: list[float] = []
        token = START
        for position in range(most):
            inputs["token"], inputs["position"] = value(np.array([[token]])), value(np.array([[position]]))
            logits, *past = self._step.run_with_ort_values(self._wanted, inputs)
            token, log = _best(logits.numpy()[0, -1])
            logs.append(log)
            if token == END:
                break
            ids.append(token)
            inputs.update((f"past_{name}", grown) for name, grown in zip(self._wanted[1:], past, strict=True))
        return ids, logs


def _best(logits: NDArray[np.float32]) -> tuple[int, float]:
    token = int(logits.argmax())
    return token, -float(np.log(np.exp(logits - logits[token]).sum(dtype=np.float64)))


def read_tokens(content: bytes) -> list[bytes]:
    """Byte strings behind their lengths; a length above 127 takes two bytes, the low seven bits first.

    >>> read_tokens(b"\\x02ab\\x00\\x01c")
    [b'ab', b'', b'c']
    """
    tokens: list[bytes] = []
    place = 0
    while place < len(content):
        length = content[place]
        place += 1
        if length >= 128 and place < len(content):
            length += 128 * content[place] - 128
            place += 1
        tokens.append(content[place : place + length])
        place += length
    return tokens


def load(language: str, *, offline: bool = False) -> Moonshine:
    return Moonshine(
        *weights.fetch_all(
            (weights.MOONSHINE_ENCODER, weights.MOONSHINE_DECODER, weights.MOONSHINE_TOKENS), offline=offline
        )
    )


def _open_kept(published: Path, name: str, build: Callable[[Any], bytes]) -> Any:
    """A graph built from a published model and kept beside it; built again where it is damaged."""
    path = published.with_name(f"moonshine-{name}-{weights.MOONSHINE_DECODER.sha256[:12]}-{CODE}.onnx")
    if path.is_file():
        with suppress(InputError):
            return open_session(path)
    with whole_file(path) as temporary:
        write_graph(published, temporary)
        import onnx

        Path(temporary).write_bytes(build(onnx.load(temporary)))
    return open_session(path)


class _Weights:
    """The matrices and vectors of a published model: matrices by the node that multiplies with them."""

    def __init__(self, model: Any) -> None:
        import onnx
        from onnx import numpy_helper

        self._arrays = {constant.name: numpy_helper.to_array(constant) for constant in model.graph.initializer}
        graphs = [model.graph] + [
            attribute.g
            for node in model.graph.node
            for attribute in node.attribute
            if attribute.type == onnx.AttributeProto.GRAPH
        ]
        self._factor = {node.name: node.input[1] for g in graphs for node in g.node if node.op_type == "MatMul"}

    def vector(self, name: str) -> NDArray[np.float32]:
        """A vector of the decoder, by the name that it was published with."""
        return np.asarray(self._arrays[f"model.decoder.{name}_merged_0"])

    def matrix(self, node: str) -> NDArray[np.float32]:
        """The matrix that a node multiplies with."""
        return self.floats(self._factor[f"{node}/MatMul"].removesuffix("_add_tensor"))

    def floats(self, name: str) -> NDArray[np.float32]:
        """A quantized matrix as floats."""
        scale, offset = (self._arrays[f"{name}_{part}"] for part in ("scale", "zero_point"))
        return np.asarray(self._arrays[f"{name}_quantized"].astype(np.float32) * scale + offset)

    def quantized(self, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """A quantized matrix as it was published: integers, scale and offset."""
        integers, scale, offset = (self._arrays[f"{name}_{part}"] for part in ("quantized", "scale", "zero_point"))
        return integers, scale, offset


def build_reading(model: Any) -> bytes:
    """The serialized graph from the encoder's output `states` (1, n, 416) to the keys and values of every layer."""
    published, graph = _Weights(model), GraphBuilder({})
    outputs: dict[str, list[str | int]] = {}
    for layer in range(LAYERS):
        for part in ("key", "value"):
            matrix = published.matrix(f"/model/decoder/layers.{layer}/encoder_attn/{part[0]}_proj")
            heads = graph.op("Reshape", [graph.quantized("states", matrix), graph.integers([0, 0, HEADS, HEAD_SIZE])])
            name = graph.op("Transpose", [heads], output=f"read_{part}{layer}", perm=[0, 2, 1, 3])
            outputs[name] = [1, HEADS, "n", HEAD_SIZE]
    return graph.serialize("moonshine_reading", {"states": [1, "n", DIMENSION]}, outputs, {})


def build_step(model: Any) -> bytes:
    """The serialized decoder of one `token` (1, 1) at a `position` (1, 1): its `logits` (1, 1, tokens), and the keys
    and values of every layer with those of this token."""
    published, graph = _Weights(model), GraphBuilder({})
    integers, scale, offset = published.quantized(EMBEDDING)
    chosen = graph.op("Cast", [graph.op("Gather", [graph.constant(integers), "token"])], to=1)
    x = graph.op("Add", [graph.op("Mul", [chosen, graph.constant(scale)]), graph.constant(offset)])
    rotation = _rotation(graph)
    inputs: dict[str, list[str | int]] = {"token": [1, 1], "position": [1, 1]}
    outputs: dict[str, list[str | int]] = {"logits": [1, 1, len(integers)]}
    for layer in range(LAYERS):
        place = f"/model/decoder/layers.{layer}"
        now = [f"{part}{layer}" for part in ("key", "value")]
        past, read = ([f"{kind}_{name}" for name in now] for kind in ("past", "read"))
        inputs |= {name: [1, HEADS, "past", HEAD_SIZE] for name in past}
        inputs |= {name: [1, HEADS, "n", HEAD_SIZE] for name in read}
        outputs |= {name: [1, HEADS, "now", HEAD_SIZE] for name in now}
        h = graph.scale_norm(x, published.vector(f"layers.{layer}.input_layernorm.weight"))
        matrices = [published.matrix(f"{place}/self_attn/{part}_proj") for part in "qkv"]
        query, key, value = graph.split(graph.quantized(h, np.hstack(matrices)), 3)
        query, key = (
            graph.op("RotaryEmbedding", [part, "position", *rotation], domain=MICROSOFT, interleaved=1,
                     num_heads=HEADS, rotary_embedding_dim=ROTATED)
            for part in (query, key)
        )  # fmt: skip
        mixed = graph.attend([query, key, value, "", "", "", *past], HEADS, now)
        x = graph.op("Add", [x, graph.quantized(mixed, published.matrix(f"{place}/self_attn/dense"))])
        h = graph.scale_norm(x, published.vector(f"layers.{layer}.post_attention_layernorm.weight"))
        query = graph.quantized(h, published.matrix(f"{place}/encoder_attn/q_proj"))
        mixed = graph.attend([query, *read], HEADS)
        x = graph.op("Add", [x, graph.quantized(mixed, published.matrix(f"{place}/encoder_attn/dense"))])
        x = graph.op("Add", [x, _feed_forward(graph, published, x, layer)])
    x = graph.scale_norm(x, published.vector("norm.weight"))
    graph.quantized(x, published.floats(EMBEDDING).T, output="logits")
    return graph.serialize("moonshine_step", inputs, outputs, {}, integers=("token", "position"))


def _feed_forward(graph: GraphBuilder, published: _Weights, x: str, layer: int) -> str:
    place, name = f"/model/decoder/layers.{layer}/mlp", f"layers.{layer}.mlp"
    h = graph.scale_norm(x, published.vector(f"layers.{layer}.final_layernorm.weight"))
    wide = graph.quantized(h, published.matrix(f"{place}/up_proj"), published.vector(f"{name}.up_proj.bias"))
    held, gate = graph.split(wide, 2)
    opened = graph.op("Mul", [gate, graph.op("Sigmoid", [gate])])
    h = graph.op("Mul", [opened, held])
    return graph.quantized(h, published.matrix(f"{place}/down_proj"), published.vector(f"{name}.down_proj.bias"))


def _rotation(graph: GraphBuilder) -> tuple[str, str]:
    """Cosines and sines of the angles by which a position turns each pair of a head's first dimensions."""
    most = int(LONGEST * TOKENS_PER_SECOND) + 2
    angles = np.outer(np.arange(most), 10_000.0 ** (-np.arange(0, ROTATED, 2) / ROTATED))
    return graph.constant(np.cos(angles).astype(np.float32)), graph.constant(np.sin(angles).astype(np.float32))


def open_graph(published: Path, graph: Path, output: str = "") -> Any:
    """A published model as an ONNX graph, up to `output` if that is given; written where it is not there yet."""
    if graph.is_file():
        with suppress(InputError):  # damaged in the cache: made again
            return open_session(graph)
    with whole_file(graph) as temporary:
        write_graph(published, temporary, output)
    return open_session(graph)


def write_graph(published: Path, target: Path, output: str = "") -> None:
    """A published model as an ONNX graph; with an `output`, only up to that tensor."""
    import onnx

    runtime = import_runtime()
    options = session_options()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = os.fspath(target)
    options.add_session_config_entry("session.save_model_format", "ONNX")
    runtime.InferenceSession(os.fspath(published), options, providers=["CPUExecutionProvider"])
    model = onnx.load(target)
    model.graph.name = model.graph.name or "speech"
    for node in model.graph.node:  # ONNX wants names that ONNX Runtime leaves out
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                attribute.g.name = attribute.g.name or attribute.name
    if output:
        cut_behind(model.graph, output)
    onnx.save(model, target)


KIND = RecognizerKind(("en",), load)


# Part of the version: raise it when the same samples may give other numbers.
LAYER_CODE = 1
LONGEST_FOR_LAYER = 16.0  # seconds encoded at once: attention looks at all of them, and memory grows with their square
HOP = 384  # samples from frame to frame
CENTER = 447.5  # samples from the beginning to the middle of the first frame: three convolutions without padding


class EncoderLayer:
    """The output of one layer, counted from 1, for speech of any length."""

    def __init__(self, layer: int, published: Path) -> None:
        if not 1 <= layer <= LAYERS:
            raise InputError(f"Moonshine's encoder has no layer {layer}", fix=f"choose 1 to {LAYERS}")
        self._session = _open(layer, published)

    def hear(self, samples: Samples) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Where the middle of each frame lies, in samples, and the frames (n x 416).

        A long recording is heard in stretches that end in pauses, as the recognizer does.
        """
        start = 0
        places, frames = [], []
        for stretch in cut_at_pauses(samples, LONGEST_FOR_LAYER):
            padded = np.pad(stretch, (0, max(0, SHORTEST - len(stretch))))
            heard = self._session.run(None, {"input_values": np.ascontiguousarray(padded, np.float32)[None]})[0][0]
            places.append(start + CENTER + HOP * np.arange(len(heard)))
            frames.append(heard)
            start += len(stretch)
        return np.concatenate(places), np.concatenate(frames)


def encoder_version(layer: int) -> str:
    """Changes whenever the same samples may give other numbers."""
    return f"moonshine-encoder-{weights.MOONSHINE_ENCODER.sha256[:12]}-{layer}-{LAYER_CODE}"


def load_layer(layer: int, *, offline: bool = False) -> EncoderLayer:
    """The layer, once per process; the weights are fetched as for the recognizer."""
    return _load_layer(layer, offline, str(weights.cache_folder()))


@lru_cache(maxsize=2)
def _load_layer(layer: int, offline: bool, cache: str) -> EncoderLayer:
    need("onnx", "onnxruntime")
    return EncoderLayer(layer, weights.fetch(weights.MOONSHINE_ENCODER, offline=offline, cache=cache))


def _open(layer: int, published: Path) -> Any:
    """The graph up to the layer, kept beside the weights."""
    graph = published.with_name(f"{encoder_version(layer)}.onnx")
    return open_graph(published, graph, f"/layers.{layer - 1}/Add_1_output_0")
