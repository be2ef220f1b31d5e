"""Extractors that ONNX Runtime runs: CAM++ from its published parameters, and any model with WeSpeaker's interface."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, VeilmeterError, missing_extra
from veilmeter.core.files import sha256, write_bytes, write_text
from veilmeter.speech.extractors.base import Extractor, as_vector
from veilmeter.speech.extractors.features import fbank
from veilmeter.speech.extractors.onnx_files import model_digest
from veilmeter.speech.onnx_session import first_line, open_session

# Part of the cached graph's name and of the extractor's version: raise it when the graph changes.
GRAPH = 1
# Keys of a model's own metadata that say how its features are computed; WeSpeaker's values where it says nothing.
WINDOW, SCALE = "veilmeter.window", "veilmeter.scale"


class OnnxExtractor:
    """Mean-subtracted log mel energies (1, frames, bins) into a model, its first output as the vector."""

    def __init__(self, path: str | Path, *, name: str, version: str) -> None:
        self.name = name
        self.version = version
        self.path = Path(path)
        self.session = open_session(path)
        self._input, self.bins = self._interface()
        about = self.session.get_modelmeta().custom_metadata_map
        self.window = about.get(WINDOW, "hamming")
        try:
            self.scale = float(about.get(SCALE, 32768.0))
        except ValueError:
            raise InputError(f"the model's metadata {SCALE} is not a number", path=path) from None
        second = np.random.default_rng(0).standard_normal(16_000).astype(np.float32) * np.float32(0.1)
        self.dimension = len(self.embed(second))

    def __repr__(self) -> str:
        return f"OnnxExtractor({self.name}, {self.dimension}-d, {self.version})"

    def features(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the model gets: (1, frames, bins)."""
        return fbank(samples, bins=self.bins, window=self.window, scale=self.scale)[None]

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.embed_features(self.features(samples))

    def embed_features(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        try:
            outputs = self.session.run(None, {self._input: features})
        except Exception as error:  # ONNX Runtime's own types are not public
            raise VeilmeterError(f"the model fails: {first_line(error)}", path=self.path) from None
        return as_vector(outputs[0], self.name)

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
            raise InputError(f"the model takes {bins} mel bins, which is no speech feature", path=self.path)
        return str(inputs[0].name), bins


def load_onnx(path: str | Path) -> OnnxExtractor:
    """`onnx:FILE`; its content, and that of weights beside it, is the version."""
    file = Path(path)
    if not file.is_file():
        raise InputError("there is no such model", path=file, fix="give --extractor onnx:FILE")
    return OnnxExtractor(file, name=f"onnx:{file.name}", version=f"onnx-{model_digest(file)[:12]}")


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
    except InputError:  # a damaged file in the cache: made anew from the weights, which are verified
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
    from veilmeter.speech.extractors.campplus_graph import build_graph

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
