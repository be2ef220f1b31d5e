"""CAM++: a densely connected time delay network with context-aware masking (Wang et al., Interspeech 2023).

The network, written from the paper, with the parameter names of the published state dict so that it loads strictly:

- a convolutional head over (mel, time) with residual blocks, which reduces the 80 mel bins to 10;
- a time delay layer that halves the frame rate, and three dense blocks, each layer of which sees all before it and
  multiplies its output with a mask computed from the mean over the utterance and over its own 2 s segment;
- mean and standard deviation over time, then a 192-d projection with batch normalization **and no ReLU**. A ReLU there
  (as one public implementation has it) lifts the mean cosine of different speakers from 0.10 to 0.38.

Its weights can be trained further; `FineTunedExtractor` is an extractor whose weights were.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.devices import torch_device
from veilmeter.core.errors import InputError, VeilmeterError, foreign_errors, missing_extra
from veilmeter.core.files import sha256
from veilmeter.core.user_code import load_object
from veilmeter.speech import weights
from veilmeter.speech.extractors.onnx import MEL_BINS, MIN_SAMPLES, RATE, fbank

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    raise missing_extra("torch", "audio") from None

DIMENSION = 192

HEAD_CHANNELS = 32
GROWTH = 32
BOTTLENECK = 128
# (layers, dilation) of the three dense blocks; the kernel is 3 everywhere
BLOCKS = ((12, 1), (24, 2), (16, 2))
SEGMENT = 100  # frames of 20 ms: the segment of the context-aware mask

__all__ = ["DIMENSION", "MEL_BINS", "MIN_SAMPLES", "RATE", "CamPlusPlus", "TorchCampplus", "build_model", "fbank"]


class Normalized(nn.Module):
    """Batch normalization, then ReLU unless it is the last layer."""

    def __init__(self, channels: int, *, relu: bool = True, affine: bool = True) -> None:
        super().__init__()
        self.batchnorm = nn.BatchNorm1d(channels, affine=affine)
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.batchnorm(x)
        return torch.relu(y) if self.relu else y


class Residual(nn.Module):
    """Two 3x3 convolutions over (mel, time) with a short cut; `stride` thins the mel axis only."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, stride=(stride, 1), padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut.append(nn.Conv2d(channels, channels, 1, stride=(stride, 1), bias=False))
            self.shortcut.append(nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Head(nn.Module):
    """The 2-D front: (batch, 80, time) to (batch, 320, time), 32 channels of 10 mel bands."""

    def __init__(self) -> None:
        super().__init__()
        c = HEAD_CHANNELS
        self.conv1 = nn.Conv2d(1, c, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(c)
        self.layer1 = nn.Sequential(Residual(c, 2), Residual(c, 1))
        self.layer2 = nn.Sequential(Residual(c, 2), Residual(c, 1))
        self.conv2 = nn.Conv2d(c, c, 3, stride=(2, 1), padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(c)
        self.channels = c * MEL_BINS // 8

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x.unsqueeze(1))))
        y = self.layer2(self.layer1(y))
        y = torch.relu(self.bn2(self.conv2(y)))
        return y.flatten(1, 2)


class Convolved(nn.Module):
    """A convolution over time and what `Normalized` does after it."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, **normalized: bool) -> None:
        super().__init__()
        self.linear = nn.Conv1d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.nonlinear = Normalized(outputs, **normalized)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.nonlinear(self.linear(x))
        return y


class Transition(nn.Module):
    """Between dense blocks: half as many channels."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.nonlinear = Normalized(inputs)
        self.linear = nn.Conv1d(inputs, inputs // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(self.nonlinear(x))
        return y


def segment_means(x: Tensor, length: int = SEGMENT) -> Tensor:
    """Each frame's mean over its segment of `length` frames; the last segment may be shorter.

    Written with concatenation and slices of known meaning, so that it can be exported for any number of frames.
    """
    batch, channels, frames = x.shape
    segments = (frames + length - 1) // length
    padded = torch.cat([x, x.new_zeros(batch, channels, length - 1)], dim=2)[:, :, : segments * length]
    sums = padded.reshape(batch, channels, segments, length).sum(dim=3)
    counts = (frames - torch.arange(segments, device=x.device) * length).clamp(max=length).to(x.dtype)
    means = (sums / counts).unsqueeze(3).expand(batch, channels, segments, length)
    return means.reshape(batch, channels, segments * length)[:, :, :frames]


class ContextMask(nn.Module):
    """Context-aware masking: a local convolution, weighted by what the utterance and the segment are like."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.linear_local = nn.Conv1d(inputs, outputs, 3, padding=dilation, dilation=dilation, bias=False)
        self.linear1 = nn.Conv1d(inputs, inputs // 2, 1)
        self.linear2 = nn.Conv1d(inputs // 2, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        context = x.mean(dim=2, keepdim=True) + segment_means(x)
        mask = torch.sigmoid(self.linear2(torch.relu(self.linear1(context))))
        y: Tensor = self.linear_local(x) * mask
        return y


class DenseLayer(nn.Module):
    """Narrow to 128 channels, mask, and give 32 new ones."""

    def __init__(self, inputs: int, dilation: int) -> None:
        super().__init__()
        self.nonlinear1 = Normalized(inputs)
        self.linear1 = nn.Conv1d(inputs, BOTTLENECK, 1, bias=False)
        self.nonlinear2 = Normalized(BOTTLENECK)
        self.cam_layer = ContextMask(BOTTLENECK, GROWTH, dilation)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.cam_layer(self.nonlinear2(self.linear1(self.nonlinear1(x))))
        return y


class DenseBlock(nn.Module):
    """Each layer sees the input and everything the layers before it gave."""

    def __init__(self, inputs: int, layers: int, dilation: int) -> None:
        super().__init__()
        for number in range(layers):
            self.add_module(f"tdnnd{number + 1}", DenseLayer(inputs + number * GROWTH, dilation))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = torch.cat([x, layer(x)], dim=1)
        return x


class Backbone(nn.Module):
    """From the head's channels to the embedding."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        channels = BOTTLENECK
        self.tdnn = Convolved(inputs, channels, kernel=5, stride=2)
        for number, (layers, dilation) in enumerate(BLOCKS, 1):
            self.add_module(f"block{number}", DenseBlock(channels, layers, dilation))
            channels += layers * GROWTH
            self.add_module(f"transit{number}", Transition(channels))
            channels //= 2
        self.out_nonlinear = Normalized(channels)
        self.dense = Convolved(2 * channels, DIMENSION, relu=False, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.tdnn(x)
        for number in range(1, len(BLOCKS) + 1):
            y = getattr(self, f"transit{number}")(getattr(self, f"block{number}")(y))
        y = self.out_nonlinear(y)
        statistics = torch.cat([y.mean(dim=2), y.std(dim=2, unbiased=True)], dim=1)
        embedding: Tensor = self.dense(statistics.unsqueeze(2)).squeeze(2)
        return embedding


class CamPlusPlus(nn.Module):
    """Features (batch, time, 80) to embeddings (batch, 192)."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Head()
        self.xvector = Backbone(self.head.channels)

    def forward(self, features: Tensor) -> Tensor:
        embedding: Tensor = self.xvector(self.head(features.transpose(1, 2)))
        return embedding


def build_model(state: Mapping[str, Any]) -> CamPlusPlus:
    """The network with these parameters, ready to use; every tensor must be there with its shape, and no other."""
    model = CamPlusPlus()
    try:
        model.load_state_dict(dict(state), strict=True)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise VeilmeterError(f"these are not the parameters of CAM++: {str(error).splitlines()[0]}") from None
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model


def load_model(path: str | Path | None = None, *, offline: bool = False) -> CamPlusPlus:
    """The published network, fetched and verified at the first use."""
    file = weights.fetch(weights.CAMPPLUS, offline=offline) if path is None else Path(path)
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError) as error:
        raise InputError(f"not weights: {str(error).splitlines()[0]}", path=file) from None
    return build_model(state)


class TorchCampplus:
    """The extractor run by torch. The ONNX session is quicker; this one is what it must agree with."""

    name = "campplus"
    version = f"torch-{weights.CAMPPLUS.sha256[:12]}"
    dimension = DIMENSION

    def __init__(self, *, offline: bool = False) -> None:
        self._model = load_model(offline=offline)

    def embed(self, samples: ArrayLike) -> NDArray[np.float32]:
        features = torch.from_numpy(fbank(samples))
        with torch.inference_mode():
            vector: NDArray[np.float32] = self._model(features.unsqueeze(0))[0].numpy()
        return vector


Features = Callable[[ArrayLike], NDArray[np.float32]]


ECAPAS = ("ecapa", "ecapa:scratch")  # from published parameters, and from random ones


def refuse_untrainable(spec: str) -> None:
    """Refuse a network that has no form in torch, as those of ONNX, or whose folder is missing."""
    kind, colon, place = spec.partition(":")
    if spec == "vpc2026":
        raise InputError("vpc2026 needs a WavLM model", fix="give the folder that holds it: vpc2026:FOLDER")
    if kind == "vpc2026" and not Path(place).is_dir():
        raise InputError("there is no such folder (the WavLM model of vpc2026)", path=place)
    if spec in ("campplus", *ECAPAS):
        return
    if not colon or kind in ("onnx", "ecapa"):
        raise InputError(
            f"{spec} can't be fine-tuned",
            fix=f"choose --network campplus, {', '.join(ECAPAS)}, vpc2026:FOLDER, or module:function for a network of "
            "your own",
        )


@dataclass(frozen=True, slots=True)
class Trainable:
    """A network that can be fine-tuned, and the features that it takes (time x bands, every 10 ms, from samples).

    `centers`: the mean of a crop is subtracted from its features. `keeps_statistics`: batch normalization does not
    learn new ones. `version` stands for weights that the network uses and that are not trained.
    """

    model: nn.Module
    features: Features
    dimension: int
    centers: bool = True
    keeps_statistics: bool = True
    version: str = ""


def trainable(spec: str = "campplus", *, offline: bool = False) -> Trainable:
    """The network named by `spec`.

    `campplus`; `ecapa`, from SpeechBrain's published parameters, or `ecapa:scratch`; `vpc2026:FOLDER`, the dual-stream
    ECAPA-TDNN with the WavLM of that folder; or `module:function` where
    the function returns a network, its features and its dimension: any other torch extractor.
    """
    refuse_untrainable(spec)
    if spec == "campplus":
        from veilmeter.speech.extractors.onnx import fbank

        model = load_model(offline=offline)
        for parameter in model.parameters():
            parameter.requires_grad_(True)
        return Trainable(model, fbank, DIMENSION)
    if spec.startswith("vpc2026:"):
        from veilmeter.speech.extractors.dual_stream import build_dual_stream, sample_frames
        from veilmeter.speech.extractors.wavlm import WEIGHTS

        folder = spec.removeprefix("vpc2026:")
        network = build_dual_stream(folder, offline=offline)
        version = sha256(Path(folder, WEIGHTS))
        return Trainable(network, sample_frames, DIMENSION, centers=False, keeps_statistics=False, version=version)
    if spec in ECAPAS:
        from veilmeter.speech.extractors.dual_stream import build_ecapa, sample_frames

        scratch = spec != "ecapa"
        ecapa = build_ecapa(from_scratch=scratch, offline=offline)
        return Trainable(ecapa, sample_frames, DIMENSION, centers=False, keeps_statistics=not scratch)
    make = load_object(spec, "network")[0]
    with foreign_errors(f"{spec} can't be fine-tuned, as it must return (module, features, dimension)"):
        own, features, dimension = make()
        return Trainable(own, features, int(dimension))


class FineTunedExtractor:
    """An extractor with fine-tuned weights, for `--extractor campplus:FILE`, `ecapa@FILE`, `vpc2026:FOLDER@FILE` and
    `module:function@FILE`."""

    def __init__(self, spec: str, path: str | Path, *, offline: bool = False) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        file = Path(path)
        if not file.is_file():
            raise InputError("the fine-tuned weights are not there", path=file)
        network = trainable(spec, offline=offline)
        self._model, self._features, self.dimension = network.model, network.features, network.dimension
        try:
            self._model.load_state_dict(load_file(file))
        except (SafetensorError, RuntimeError, ValueError, OSError) as error:
            raise InputError(f"these are not weights of {spec}: {str(error).splitlines()[0]}", path=file) from None
        self.device = torch_device()
        self._model.eval().to(self.device)
        self.name = f"{spec} (fine-tuned)"
        with open(file, "rb") as handle:
            mark = "-cuda" if self.device == "cuda" else ""
            self.version = (
                "finetuned-" + hashlib.file_digest(handle, "sha256").hexdigest()[:16] + network.version[:12] + mark
            )

    def embed(self, samples: ArrayLike) -> NDArray[np.float32]:
        features = torch.from_numpy(np.asarray(self._features(samples), np.float32))
        with torch.inference_mode():
            vector: NDArray[np.float32] = self._model(features.unsqueeze(0).to(self.device))[0].cpu().numpy()
        return vector
