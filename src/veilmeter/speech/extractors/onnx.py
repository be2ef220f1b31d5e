"""Extractors run by ONNX Runtime: CAM++ from its published parameters, and any model with WeSpeaker's interface.

Their front end is Kaldi's log mel energies. Kaldi goes frame by frame; whole blocks of frames through one FFT and one
matrix product are four times as quick and agree with it to float32's precision (the tests compare with
kaldi-native-fbank).
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.devices import BATCH, choose_device
from veilmeter.core.errors import InputError, VeilmeterError, missing_extra, need
from veilmeter.core.files import check_input, real_path, sha256, write_bytes, write_text
from veilmeter.core.processes import run_confined
from veilmeter.speech.extractors.base import Extractor, as_vector
from veilmeter.speech.onnx_session import QUIET, GraphBuilder, device_of, first_line, import_runtime, open_session

RATE = 16000
MEL_BINS = 80
# The networks thin the frames out and then take a standard deviation over time, so a few frames are the least.
MIN_SAMPLES = RATE // 10

FRAME = 400  # 25 ms
SHIFT = 160  # 10 ms
FFT = 512
LOWEST = 20.0  # Hz
PREEMPHASIS = np.float32(0.97)
FLOOR = np.finfo(np.float32).eps  # Kaldi's least energy
_BLOCK = 512  # frames at once: a megabyte, which stays in the processor's cache


def fbank(
    samples: ArrayLike, *, bins: int = MEL_BINS, window: str = "povey", scale: float = 1.0
) -> NDArray[np.float32]:
    """Log mel energies every 10 ms (n x bins), with the mean over the utterance subtracted.

    Kaldi's features without dither and energy floor; samples in [-1, 1] at 16 kHz, multiplied by `scale` (which the
    mean subtraction takes away again wherever there is sound at all). CAM++ was trained with the povey window,
    WeSpeaker's models with hamming and samples of 16-bit size.
    """
    from scipy.fft import rfft

    signal = np.ascontiguousarray(samples, np.float32)
    if signal.ndim != 1 or len(signal) < MIN_SAMPLES:
        raise InputError(f"a speaker embedding needs at least {MIN_SAMPLES / RATE:g} s of mono speech")
    if scale != 1.0:
        signal = signal * np.float32(scale)
    frames = np.lib.stride_tricks.sliding_window_view(signal, FRAME)[::SHIFT]  # complete frames only
    taper, filters = _window(window), _filters(bins)
    features = np.empty((len(frames), bins), np.float32)
    for start in range(0, len(frames), _BLOCK):
        x = frames[start : start + _BLOCK]
        x = x - x.mean(axis=1, keepdims=True)
        y = np.empty_like(x)
        np.multiply(x[:, :-1], -PREEMPHASIS, out=y[:, 1:])
        y[:, 1:] += x[:, 1:]
        y[:, 0] = x[:, 0] * (1 - PREEMPHASIS)
        y *= taper
        spectrum = rfft(y, FFT, axis=1)[:, : FFT // 2]  # Kaldi leaves the Nyquist bin away
        power = np.square(spectrum.real)
        power += np.square(spectrum.imag)
        features[start : start + _BLOCK] = power @ filters
    np.log(np.maximum(features, FLOOR, out=features), out=features)
    features -= features.mean(axis=0, keepdims=True)
    return features


@lru_cache
def _window(name: str) -> NDArray[np.float32]:
    turn = 2 * np.pi * np.arange(FRAME) / (FRAME - 1)
    windows = {"povey": (0.5 - 0.5 * np.cos(turn)) ** 0.85, "hamming": 0.54 - 0.46 * np.cos(turn)}
    if name not in windows:
        raise InputError(f"unknown window {name!r}", fix=f"choose {' or '.join(windows)}")
    return windows[name].astype(np.float32)


@lru_cache
def _filters(bins: int) -> NDArray[np.float32]:
    """Triangles of height 1 with equal steps of mel = 1127 ln(1 + f / 700), from 20 Hz to 8 kHz: (FFT / 2) x bins."""
    mels = 1127 * np.log1p(np.arange(FFT // 2) * RATE / FFT / 700)
    low, high = 1127 * np.log1p(np.array([LOWEST, RATE / 2]) / 700)
    step = (high - low) / (bins + 1)
    left = low + step * np.arange(bins)
    rising = (mels[:, None] - left) / step
    filters: NDArray[np.float32] = np.maximum(0, np.minimum(rising, 2 - rising)).astype(np.float32)
    return filters


def model_digest(path: Path) -> str:
    """The content of the model's file and of every file with weights that it names."""
    own, beside = sha256(path), external_files(path)
    if not beside:
        return own
    digest = hashlib.sha256(own.encode())
    for file in beside:
        digest.update(f"\0{file.name}\0{sha256(file)}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def external_files(path: Path) -> list[Path]:
    """The files beside the model that hold some of its weights, in order; one outside its folder is refused."""
    need("onnx")
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # a broken file, and protobuf's own types
        raise InputError(f"this ONNX model can't be loaded: {str(error)[:200]}", path=path) from None
    folder = real_path(path).parent
    files = []
    for location in sorted({place for tensor in _tensors(model.graph) for place in _locations(tensor)}):
        try:
            file = real_path(folder / location)
            inside, present = file.is_relative_to(folder), file.is_file()
        except (OSError, ValueError):  # a name that the system can't have
            inside, present = True, False
        if not inside:
            raise InputError(f"the model's weights lie outside its folder: {location!r}", path=path)
        if not present:
            raise InputError(f"the model's weights {location!r} are not there", path=path, fix="put them beside it")
        files.append(file)
    return files


def _locations(tensor: Any) -> Iterator[str]:
    """Where a tensor's numbers lie; protobuf gives bytes for a name that is not UTF-8."""
    for entry in tensor.external_data:
        if entry.key == "location":
            yield entry.value if isinstance(entry.value, str) else os.fsdecode(entry.value)


def _tensors(graph: Any) -> Iterator[Any]:
    """Every tensor that is stored in a graph and in the graphs inside it."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                if inner.ByteSize():
                    yield from _tensors(inner)


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
    return graph.serialize(
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
    """Inputs of the masks that depend on the number of frames alone: the segment of each frame, and a matrix that
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


# Part of the cached graph's name and of the extractor's version: raise it when the graph changes.
GRAPH = 1
SECONDS_PER_SECOND = 30  # that a model may take for one second of sound; ours take a hundredth
LARGEST_MODEL = 1 << 31  # bytes of an ONNX file, by its own format; weights beside it are further files
# Keys of a model's own metadata that say how its features are computed; WeSpeaker's values where it says nothing.
WINDOW, SCALE = "veilmeter.window", "veilmeter.scale"


class OnnxExtractor:
    """Mean-subtracted log mel energies (1, frames, bins) into a model, its first output as the vector."""

    def __init__(self, path: str | Path, *, name: str, version: str) -> None:
        self.name = name
        self.path = Path(path)
        self.session = open_session(path)
        self.device = device_of(self.session)
        self.version = version + ("-cuda" if self.device == "cuda" else "")
        self._input, self.bins = self._interface()
        about = self.session.get_modelmeta().custom_metadata_map
        self.window = about.get(WINDOW, "hamming")
        try:
            self.scale = float(about.get(SCALE, 32768.0))
        except ValueError:
            raise InputError(f"the model's metadata {SCALE} is not a number", path=path) from None
        second = np.random.default_rng(0).standard_normal(16_000).astype(np.float32) * np.float32(0.1)
        self.dimension = len(self.embed_features(self.features(second)))

    def __repr__(self) -> str:
        return f"OnnxExtractor({self.name}, {self.dimension}-d, {self.version})"

    def features(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """The model's input: (1, frames, bins)."""
        return fbank(samples, bins=self.bins, window=self.window, scale=self.scale)[None]

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.embed_features(self.features(samples))

    def embed_batch(self, pieces: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """The vectors of several pieces of sound, those of one length at once: what a GPU is quick at."""
        vectors: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(pieces)
        by_length: dict[int, list[int]] = {}
        features = [self.features(piece) for piece in pieces]
        for number, made in enumerate(features):
            by_length.setdefault(made.shape[1], []).append(number)
        for numbers in by_length.values():
            for start in range(0, len(numbers), BATCH):
                some = numbers[start : start + BATCH]
                together = self._run(np.concatenate([features[number] for number in some]))
                for number, vector in zip(some, together, strict=True):
                    vectors[number] = as_vector(vector, self.name)
        return vectors

    def embed_features(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        return as_vector(self._run(features), self.name)

    def _run(self, features: NDArray[np.float32]) -> Any:
        """Within a time limit: an untrusted model may loop, if only for some inputs."""
        options = import_runtime().RunOptions()
        options.log_severity_level = QUIET
        seconds = SECONDS_PER_SECOND * math.ceil(features.shape[0] * features.shape[1] * SHIFT / RATE)
        limit = threading.Timer(seconds, setattr, (options, "terminate", True))
        limit.daemon = True
        limit.start()
        try:
            return self.session.run(None, {self._input: features}, options)[0]
        except Exception as error:  # ONNX Runtime's own types are not public
            if options.terminate:
                what = f"the model takes more than {SECONDS_PER_SECOND} s for one second of sound"
                raise InputError(what, path=self.path) from None
            raise VeilmeterError(f"the model fails: {first_line(error)}", path=self.path) from None
        finally:
            limit.cancel()

    def _interface(self) -> tuple[str, int]:
        inputs = self.session.get_inputs()
        shape = inputs[0].shape if inputs else []
        if len(inputs) != 1 or len(shape) != 3 or inputs[0].type != "tensor(float)":
            signature = "; ".join(f"{entry.name} {entry.type} {entry.shape}" for entry in inputs)
            raise InputError(
                f"the model takes {signature or 'nothing'}, not one table of features", path=self.path,
                fix="it needs one float input (batch, frames, mel bins), as WeSpeaker exports it; one that takes "
                "samples can be called by a function of yours: --extractor file.py:function",
            )  # fmt: skip
        bins = shape[2] if isinstance(shape[2], int) else 80
        if not 8 <= bins <= 256:
            raise InputError(f"the model takes {bins} mel bins, which is not a speech feature", path=self.path)
        return str(inputs[0].name), bins


def load_onnx(path: str | Path) -> OnnxExtractor:
    """`onnx:FILE`; its content, and that of weights beside it, is the version."""
    file = Path(path)
    check_input(file, most=LARGEST_MODEL)
    version = f"onnx-{model_digest(file)[:12]}"
    if multiprocessing.parent_process() is None:  # workers get what this process has tried
        run_confined("veilmeter.speech.extractors.onnx:try_model", file, [], "ONNX model", beside=external_files(file))
    return OnnxExtractor(file, name=f"onnx:{file.name}", version=version)


def try_model(path: str) -> dict[str, Any]:
    """Load a model and call it once; run in a child process, as a model may loop or fill the memory in either."""
    choose_device("cpu")  # CUDA reserves more addresses than the limits allow
    OnnxExtractor(path, name="", version="")
    return {}


def load_campplus(*, offline: bool = False) -> Extractor:
    """CAM++ by ONNX Runtime, or by torch where that is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError:
        from veilmeter.speech.extractors.campplus import TorchCampplus

        return TorchCampplus(offline=offline)
    from veilmeter.speech import weights

    version = f"onnx{GRAPH}-{weights.CAMPPLUS.sha256[:12]}"
    path = campplus_graph_file(offline=offline)
    try:
        return OnnxExtractor(path, name="campplus", version=version)
    except InputError:  # a damaged file in the cache: made again from the weights, which are verified
        path.unlink(missing_ok=True)
        return OnnxExtractor(campplus_graph_file(offline=offline), name="campplus", version=version)


def campplus_graph_file(*, offline: bool = False) -> Path:
    """The graph in the cache, made from the verified weights when it is missing or not as it was made; its name holds
    the weights' hash, a file beside it the graph's."""
    from veilmeter.speech import weights

    path = weights.cache_folder() / f"campplus-{weights.CAMPPLUS.sha256[:12]}-{GRAPH}.onnx"
    mark = path.with_name(path.name + ".sha256")
    if _is_as_made(path, mark):
        return path
    published = weights.fetch(weights.CAMPPLUS, offline=offline)
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "audio") from None

    state = torch.load(published, map_location="cpu", weights_only=True)
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    graph = build_graph(arrays, {WINDOW: "povey", SCALE: "1"})
    write_bytes(path, graph)
    write_text(mark, hashlib.sha256(graph).hexdigest() + "\n")
    return path


def _is_as_made(path: Path, mark: Path) -> bool:
    """Whether the graph is the one made from the verified weights: one that was changed gives other vectors."""
    try:
        return mark.read_text(encoding="ascii").strip() == sha256(path)
    except (OSError, UnicodeDecodeError):
        return False
