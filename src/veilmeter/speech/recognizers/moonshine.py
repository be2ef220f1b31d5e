"""Moonshine base (English, MIT; Jeffries et al. 2024), run by ONNX Runtime, one greedy token after the other.

The published decoder keeps its weights as 8-bit integers and turns all of them into floats again for every token. As an
ONNX graph ONNX Runtime does that once, when it is loaded: the same text in a third of the time. In the same way
the encoder can be cut behind any layer (`EncoderLayer`), where a frame every 24 ms holds the words.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, need
from veilmeter.core.files import whole_file
from veilmeter.speech import weights
from veilmeter.speech.audio import RATE
from veilmeter.speech.onnx_session import import_runtime, open_session, session_options
from veilmeter.speech.recognizers.base import RecognizerKind, Samples, Transcript, cut_at_pauses, join_transcripts

# Part of the version: raise it when the same samples may give another text.
CODE = 1
LONGEST = 25.0  # seconds transcribed at once: it was trained on up to 30
SHORTEST = RATE // 4  # samples that the encoder needs to give a frame or two
TOKENS_PER_SECOND = 6.5  # as its makers limit it: on strange sounds it would never end
START, END = 1, 2
HEADS, HEAD_SIZE = 8, 52
_BLANK = "\u2581".encode()


class Moonshine:
    """English speech as text, with case and punctuation."""

    name = "moonshine"
    language = "en"

    def __init__(self, encoder: Path, decoder: Path, tokens: Path) -> None:
        self.version = f"base-en-{weights.MOONSHINE_DECODER.sha256[:12]}-{CODE}"
        self._encoder, self._decoder = open_session(encoder), _open_decoder(decoder)
        self._tokens = read_tokens(tokens.read_bytes())
        outputs = [output.name for output in self._decoder.get_outputs()]
        # The decoder's own past grows with every token; what it has read from the encoder stays as it was.
        self._first = outputs
        self._next = [name for name in outputs if ".encoder." not in name]

    def transcribe(self, samples: Samples) -> Transcript:
        heard = [self._stretch(stretch) for stretch in cut_at_pauses(samples, LONGEST)]
        return join_transcripts([part for part, _ in heard], [count for _, count in heard])

    def _stretch(self, samples: Samples) -> tuple[Transcript, int]:
        if len(samples) < SHORTEST:
            samples = np.pad(samples, (0, SHORTEST - len(samples)))
        states = self.encode(samples)
        most = int(len(samples) / RATE * TOKENS_PER_SECOND) + 1
        ids, logs = self.decode(states, most)
        text = b"".join(self._tokens[token] for token in ids if token < len(self._tokens)).replace(_BLANK, b" ")
        confidence = float(np.exp(np.mean(logs)))
        return Transcript(" ".join(text.decode("utf-8", "ignore").split()), confidence), len(logs)

    def encode(self, samples: Samples) -> Any:
        """The encoder's output, a frame every 24 ms."""
        states = self._encoder.run(None, {"input_values": np.ascontiguousarray(samples)[None]})[0]
        return import_runtime().OrtValue.ortvalue_from_numpy(states)

    def decode(self, states: Any, most: int) -> tuple[list[int], list[float]]:
        """Tokens, at most so many, without the one that ends it; and the logarithm of each one's probability."""
        value = import_runtime().OrtValue.ortvalue_from_numpy
        empty = value(np.zeros((1, HEADS, 0, HEAD_SIZE), np.float32))
        inputs = {i.name: empty for i in self._decoder.get_inputs() if i.name.startswith("past_key_values.")}
        inputs |= {"encoder_hidden_states": states, "use_cache_branch": value(np.array([False]))}
        ids: list[int] = []
        logs: list[float] = []
        token, wanted = START, self._first
        for _ in range(most):
            inputs["input_ids"] = value(np.array([[token]]))
            given = self._decoder.run_with_ort_values(wanted, inputs)
            token, log = _best(given[0].numpy()[0, -1])
            logs.append(log)
            if token == END:
                break
            ids.append(token)
            for name, past in zip(wanted[1:], given[1:], strict=True):
                inputs[name.replace("present.", "past_key_values.")] = past
            if wanted is self._first:
                inputs["use_cache_branch"] = value(np.array([True]))
                wanted = self._next
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


def _open_decoder(published: Path) -> Any:
    """The decoder as an ONNX graph, kept beside the weights; as it was published where that can't be made."""
    graph = published.with_name(f"moonshine-decoder-{weights.MOONSHINE_DECODER.sha256[:12]}-{CODE}.onnx")
    with suppress(Exception):  # an older ONNX Runtime, or none of the library onnx
        return open_graph(published, graph)
    return open_session(published)


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
        _cut_behind(model.graph, output)
    onnx.save(model, target)


def _cut_behind(graph: Any, output: str) -> None:
    """Leaves what the output is made of: nodes come after those that they need, so one way back finds all of it."""
    from onnx import TensorProto, helper

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
    graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, None))


KIND = RecognizerKind(("en",), load)


# Part of the version: raise it when the same samples may give other numbers.
LAYER_CODE = 1
LAYERS = 8
DIMENSION = 416
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
