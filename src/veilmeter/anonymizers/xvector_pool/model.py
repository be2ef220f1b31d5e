"""Everything the system needs in one safetensors file: converter, whitening, pitch regression, PLDA, and the pool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.anonymizers.xvector_pool.features import LIMIT, SourceFrames, standardize
from veilmeter.anonymizers.xvector_pool.selection import Plda, VoicePool
from veilmeter.anonymizers.xvector_pool.world import ORDER, Analysis
from veilmeter.core.errors import InputError, VeilmeterError, missing_extra
from veilmeter.core.files import check_input, sha256, whole_file
from veilmeter.data.embeddings import unit

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    raise missing_extra("torch", "audio") from None


@dataclass(frozen=True, slots=True)
class ConverterShape:
    """The sizes of the network; kept with its weights."""

    content: int = 416
    outputs: int = 41
    speaker: int = 64
    bottleneck: int = 32
    channels: int = 128
    layers: int = 4
    kernel: int = 5

    def to_json(self) -> dict[str, int]:
        return asdict(self)


class Modulated(nn.Module):
    """A residual convolution, scaled and shifted by the speaker vector."""

    def __init__(self, shape: ConverterShape) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(shape.channels, shape.channels, shape.kernel, padding=shape.kernel // 2)
        self.film = nn.Linear(shape.speaker, 2 * shape.channels)

    def forward(self, x: Tensor, speaker: Tensor) -> Tensor:
        scale, shift = self.film(speaker).unsqueeze(2).chunk(2, dim=1)
        return x + torch.relu(self.convolution(x) * (1 + scale) + shift)


class Converter(nn.Module):
    """(batch, 416, frames) and (batch, 3, frames) and (batch, 64) to (batch, 41, frames), all standardized."""

    PROSODY = 3  # log-F0, voicing, energy

    def __init__(self, shape: ConverterShape) -> None:
        super().__init__()
        self.shape = shape
        self.bottleneck = nn.Conv1d(shape.content, shape.bottleneck, 1)
        inputs = shape.bottleneck + self.PROSODY
        self.first = nn.Conv1d(inputs, shape.channels, shape.kernel, padding=shape.kernel // 2)
        self.layers = nn.ModuleList(Modulated(shape) for _ in range(shape.layers))
        self.last = nn.Conv1d(shape.channels, shape.outputs, 1)

    def forward(self, content: Tensor, prosody: Tensor, speaker: Tensor) -> Tensor:
        y = torch.relu(self.first(torch.cat([self.bottleneck(content), prosody], dim=1)))
        for layer in self.layers:
            y = layer(y, speaker)
        out: Tensor = self.last(y)
        return out


class Converters(nn.Module):
    """The mean of what several networks of one shape give."""

    def __init__(self, members: Sequence[Converter]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.shape = members[0].shape

    def forward(self, content: Tensor, prosody: Tensor, speaker: Tensor) -> Tensor:
        return torch.stack([member(content, prosody, speaker) for member in self.members]).mean(dim=0)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


def make_converters(shape: ConverterShape, members: int, state: dict[str, Tensor]) -> Converters:
    model = Converters([Converter(shape) for _ in range(members)])
    model.load_state_dict(state, strict=True)
    return model


FORMAT = "veilmeter-xvector-pool-4"
FILE = "model.safetensors"
LARGEST_MODEL = 1 << 32  # bytes; the one that ships has a thousandth of that
# Vectors of real speakers have this length after whitening; an average of several is shorter and must be brought back,
# else the decoder gives everyone the same mean voice.
SPEAKER_NORM = 9.0
_CONVERTER = "converter."
_ABOUT = "veilmeter"
_SCALES = ("content_mean", "content_variance", "output_mean", "output_scale", "compensation", "pitch", "energy")

Array = NDArray[np.float64]


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums come out in the same order, bit for bit, whatever the machine's number of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class Whitening:
    """Centered, projected on the leading axes and scaled to variance 1 between speakers."""

    mean: Array
    matrix: Array

    @classmethod
    def fit(cls, vectors: ArrayLike, dimension: int) -> Whitening:
        """From one vector per speaker; fewer dimensions where there are fewer speakers."""
        x = unit(vectors).astype(np.float64)
        mean = x.mean(axis=0)
        _, spread, axes = np.linalg.svd(x - mean, full_matrices=False)
        kept = min(dimension, len(x) - 1, int((spread > 1e-6 * spread[0]).sum()))
        if kept < 1:
            raise InputError("the speakers' vectors are all the same")
        # The sign of an axis is arbitrary; fixing it keeps results equal across linear algebra libraries.
        signs = np.sign(axes[np.arange(kept), np.abs(axes[:kept]).argmax(axis=1)])
        return cls(mean, (axes[:kept] * signs[:, None]).T * (np.sqrt(len(x) - 1) / spread[:kept]))

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[1])

    def __call__(self, vectors: ArrayLike) -> Array:
        whitened: Array = (unit(vectors).astype(np.float64) - self.mean) @ self.matrix
        return whitened


def prosody_of(f0: ArrayLike, energy: ArrayLike, scales: Mapping[str, Array]) -> NDArray[np.float32]:
    """The decoder's input for each frame (3 x frames): standardized log-F0, voicing, standardized energy."""
    hertz = np.asarray(f0, float)
    level, spread = scales["pitch"]
    quiet, range_ = scales["energy"]
    voiced = hertz > 0
    log_f0 = np.where(voiced, (np.log(np.where(voiced, hertz, 1.0)) - level) / spread, 0.0)
    loudness = (np.asarray(energy, float) - quiet) / range_
    return np.stack([log_f0, voiced.astype(float), loudness]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class VoiceModel:
    """A trained converter with its pool.

    `layer` is the one of the recognizer's encoder that it hears words from. `f0_weights` are the ridge regression from
    the whitened vector to mean log-F0 (the last is the intercept), `f0_range` the log-F0 levels that real speakers
    have. `version` is the hash of the file it came from.
    """

    converter: Converters
    layer: int
    scales: Mapping[str, Array]
    whitening: Whitening
    f0_weights: Array
    f0_range: tuple[float, float]
    plda: Plda
    pool: VoicePool
    card: Mapping[str, Any] = field(default_factory=dict)
    version: str = "unsaved"

    def speaker_code(self, vector: ArrayLike) -> Array:
        """A pseudo-speaker's x-vector as the decoder takes it: whitened, and as long as a real speaker's."""
        code = self.whitening(vector)
        scaled: Array = code * (SPEAKER_NORM / np.linalg.norm(code))
        return scaled

    def f0_level(self, code: ArrayLike) -> float:
        """The mean log-F0 that goes with this voice, kept within what voices have."""
        predicted = float(np.asarray(code, float) @ self.f0_weights[:-1] + self.f0_weights[-1])
        return float(np.clip(predicted, *self.f0_range))

    def convert(self, heard: SourceFrames, code: ArrayLike) -> Analysis:
        """The same words in the voice of this speaker code."""
        import torch

        f0 = heard.f0.copy()
        voiced = f0 > 0
        if voiced.any():  # the level is the pseudo-speaker's, the melody the source's
            contour = np.log(f0[voiced])
            f0[voiced] = np.exp(contour - contour.mean() + self.f0_level(code))
        content = standardize(heard.content, self.scales["content_mean"], self.scales["content_variance"])
        with torch.inference_mode(), one_thread():
            out = self.converter(
                torch.from_numpy(np.ascontiguousarray(content.T))[None],
                torch.from_numpy(prosody_of(f0, heard.energy, self.scales))[None],
                torch.from_numpy(np.asarray(code, np.float32))[None],
            )[0].numpy()
        predicted = out.T.astype(np.float64)
        # Trained to be right on average, the network moves too little; voices that move too little sound alike.
        center = predicted.mean(axis=0)
        predicted = center + (predicted - center) * self.scales["compensation"]
        predicted = np.clip(predicted, -LIMIT, LIMIT)  # whatever it hears, it does not burst
        predicted = predicted * self.scales["output_scale"] + self.scales["output_mean"]
        # Aperiodicity is in decibels: nothing is louder than the whole.
        return Analysis(f0, predicted[:, :ORDER], np.minimum(predicted[:, ORDER:], 0.0), heard.samples)

    @cached_property
    def _tensors(self) -> dict[str, NDArray[Any]]:
        state = {_CONVERTER + key: value.numpy() for key, value in self.converter.state_dict().items()}
        return {
            **state,
            **{name: np.asarray(self.scales[name], np.float32) for name in _SCALES},
            "whitening_mean": self.whitening.mean.astype(np.float32),
            "whitening_matrix": self.whitening.matrix.astype(np.float32),
            "f0_weights": self.f0_weights.astype(np.float32),
            "plda_mean": self.plda.mean.astype(np.float32),
            "plda_transform": self.plda.transform.astype(np.float32),
            "plda_between": self.plda.between.astype(np.float32),
            "pool": self.pool.vectors.astype(np.float32),
        }

    def save(self, path: str | Path) -> None:
        """One file, whole or not at all."""
        from safetensors.numpy import save_file

        about = {
            "format": FORMAT,
            "shape": self.converter.shape.to_json(),
            "members": len(self.converter.members),
            "layer": self.layer,
            "f0_range": list(self.f0_range),
            "pool_names": list(self.pool.names),
            "pool_genders": list(self.pool.genders),
            "card": dict(self.card),
        }
        with whole_file(path) as temporary:
            tensors = {name: np.ascontiguousarray(value) for name, value in self._tensors.items()}
            # One entry only: safetensors writes several in an order of chance, and the file's hash is the version.
            save_file(tensors, temporary, metadata={_ABOUT: json.dumps(about, sort_keys=True)})


def load(path: str | Path) -> VoiceModel:
    """The model in a file that `save` wrote, or in the folder of `veilmeter train xvector-pool`."""
    from safetensors import SafetensorError, safe_open

    if Path(path).is_dir():
        path = Path(path) / FILE
    check_input(path, most=LARGEST_MODEL)
    try:
        with safe_open(path, framework="numpy") as handle:
            about = json.loads((handle.metadata() or {}).get(_ABOUT, "{}"))
            if about.get("format") != FORMAT:
                raise InputError("not an xvector-pool model", path=path, fix="train one with: veilmeter train")
            tensors = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
        return _assemble(tensors, about, sha256(path)[:16])
    except (SafetensorError, OSError) as error:
        raise InputError(f"this model can't be read: {error}", path=path) from None
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"this model is incomplete or of another shape: {error}", path=path) from None


def _assemble(tensors: dict[str, NDArray[Any]], about: dict[str, Any], version: str) -> VoiceModel:
    import torch

    wide = {name: value.astype(np.float64) for name, value in tensors.items() if not name.startswith(_CONVERTER)}
    if not all(np.isfinite(value).all() for value in tensors.values()):
        raise ValueError("it holds numbers that are not finite")
    state = {
        name.removeprefix(_CONVERTER): torch.from_numpy(value.copy())
        for name, value in tensors.items()
        if name.startswith(_CONVERTER)
    }
    converter = make_converters(ConverterShape(**about["shape"]), int(about["members"]), state).eval()
    for parameter in converter.parameters():
        parameter.requires_grad_(False)
    low, high = about["f0_range"]
    return VoiceModel(
        converter=converter,
        layer=int(about["layer"]),
        scales={name: wide[name] for name in _SCALES},
        whitening=Whitening(wide["whitening_mean"], wide["whitening_matrix"]),
        f0_weights=wide["f0_weights"],
        f0_range=(float(low), float(high)),
        plda=Plda(wide["plda_mean"], wide["plda_transform"], wide["plda_between"]),
        pool=VoicePool(tensors["pool"], tuple(about["pool_names"]), tuple(about["pool_genders"])),
        card=about["card"],
        version=version,
    )


def builtin_model() -> Path:
    """The model that comes with the package."""
    path = Path(__file__).with_name("librispeech.safetensors")
    if not path.is_file():
        raise VeilmeterError(
            "the model that comes with the package is missing", path=path, fix="install veilmeter again"
        )
    return path
