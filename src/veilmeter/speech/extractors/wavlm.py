"""`wavlm:FOLDER`: WavLM (Chen et al. 2022), wav2vec 2.0 (Baevski et al. 2020) and HuBERT (Hsu et al. 2021), from a
local folder in the hub's format: config.json and model.safetensors.

The networks are written from the papers, with the parameter names of the hub's format so that every tensor is found by
name. The tests compare each hidden layer with what the transformers library gives. Weights as a pickle are refused:
loading one can run code.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, missing_extra, need
from veilmeter.core.files import check_input, read_input_json, sha256
from veilmeter.speech.extractors.onnx import MIN_SAMPLES, RATE
from veilmeter.speech.recognizers.base import cut_at_pauses

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    raise missing_extra("torch", "audio") from None

# Part of the version: raise it when the same samples may give another vector.
CODE = 1
KINDS = ("wavlm", "wav2vec2", "hubert")
WEIGHTS = "model.safetensors"
LONGEST = 20.0  # seconds at once: attention grows with the square of the length
LARGEST_CONFIG = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SslConfig:
    """The part of config.json that decides what is computed; the names are the hub's, and so are the defaults."""

    model_type: str
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    conv_dim: tuple[int, ...] = (512,) * 7
    conv_kernel: tuple[int, ...] = (10, 3, 3, 3, 3, 2, 2)
    conv_stride: tuple[int, ...] = (5, 2, 2, 2, 2, 2, 2)
    conv_bias: bool = False
    feat_extract_norm: str = "group"
    num_conv_pos_embeddings: int = 128
    num_conv_pos_embedding_groups: int = 16
    do_stable_layer_norm: bool = False
    layer_norm_eps: float = 1e-5
    num_buckets: int = 320
    max_bucket_distance: int = 800

    @property
    def least_samples(self) -> int:
        """Samples that give two frames: one has no deviation."""
        least = 2
        for kernel, stride in zip(self.conv_kernel[::-1], self.conv_stride[::-1], strict=True):
            least = (least - 1) * stride + kernel
        return least


def read_config(folder: Path) -> SslConfig:
    """config.json, checked: an untrusted one must not make a network of any size."""
    path = folder / "config.json"
    form = read_input_json(path, most=LARGEST_CONFIG)
    kind = form.get("model_type") if isinstance(form, dict) else None
    if kind not in KINDS:
        raise InputError(f"model_type is {kind!r}, not {', '.join(KINDS[:-1])} or {KINDS[-1]}", path=path)
    unknown = {"hidden_act": "gelu", "feat_extract_activation": "gelu", "add_adapter": False}
    unknown |= {"conv_pos_batch_norm": False, "feat_proj_layer_norm": True, "position_embeddings_type": None}
    for name, usual in unknown.items():
        if form.get(name, usual) not in (usual, None):
            raise InputError(f"{name} = {form[name]!r} is not supported, only {usual!r}", path=path)
    given: dict[str, Any] = {"model_type": kind}
    for name, field in SslConfig.__dataclass_fields__.items():
        if name == "model_type" or form.get(name) is None:
            continue
        given[name] = _check_value(name, form[name], field.default, path)
    config = SslConfig(**given)
    sizes = (config.conv_dim, config.conv_kernel, config.conv_stride)
    if len({len(size) for size in sizes}) != 1 or config.hidden_size % config.num_attention_heads:
        raise InputError("the sizes of the layers do not fit together", path=path)
    if config.feat_extract_norm not in ("group", "layer"):
        raise InputError(f"feat_extract_norm is {config.feat_extract_norm!r}, not 'group' or 'layer'", path=path)
    return config


def _check_value(name: str, value: Any, usual: Any, path: Path) -> Any:
    """A value of the type of the usual one, and of a size that a network can have."""
    if isinstance(usual, tuple):
        if isinstance(value, list) and 1 <= len(value) <= 32:
            return tuple(_check_value(name, part, 1, path) for part in value)
    elif isinstance(usual, bool):
        if isinstance(value, bool):
            return value
    elif isinstance(usual, int):
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65536:
            return value
    elif isinstance(usual, float):
        if isinstance(value, float) and 0 < value < 1:
            return value
    elif isinstance(value, str):
        return value
    raise InputError(f"{name} = {str(value)[:60]} is not a possible value", path=path)


class ConvLayer(nn.Module):
    """A convolution over time, normalized over each channel's time ("group"), over the channels ("layer") or not."""

    def __init__(self, inputs: int, config: SslConfig, number: int) -> None:
        super().__init__()
        outputs = config.conv_dim[number]
        kernel, stride = config.conv_kernel[number], config.conv_stride[number]
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride=stride, bias=config.conv_bias)
        self.over_channels = config.feat_extract_norm == "layer"
        self.layer_norm: nn.Module | None = None
        if self.over_channels:
            self.layer_norm = nn.LayerNorm(outputs)
        elif number == 0:
            self.layer_norm = nn.GroupNorm(outputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.layer_norm is not None:
            x = self.layer_norm(x.transpose(1, 2)).transpose(1, 2) if self.over_channels else self.layer_norm(x)
        return nn.functional.gelu(x)


class Attention(nn.Module):
    """Attention with several heads; WavLM's adds a gated bias that depends on how far apart two frames are."""

    def __init__(self, config: SslConfig, *, first: bool) -> None:
        super().__init__()
        size, self.heads = config.hidden_size, config.num_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(size, size) for _ in range(4))
        self.gated = config.model_type == "wavlm"
        if self.gated:
            self.buckets, self.farthest = config.num_buckets, config.max_bucket_distance
            self.gru_rel_pos_const = nn.Parameter(torch.ones(1, self.heads, 1, 1))
            self.gru_rel_pos_linear = nn.Linear(size // self.heads, 8)
            if first:  # the other layers use the same biases, each with gates of its own
                self.rel_attn_embed = nn.Embedding(self.buckets, self.heads)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        batch, frames, size = x.shape

        def by_head(y: Tensor) -> Tensor:
            return y.view(batch, frames, self.heads, -1).transpose(1, 2)

        if bias is not None:
            gates = self.gru_rel_pos_linear(by_head(x)).unflatten(-1, (2, 4)).sum(-1)
            update, reset = torch.sigmoid(gates).chunk(2, dim=-1)
            bias = (update * (reset * self.gru_rel_pos_const - 1.0) + 2.0) * bias
        queries, keys, values = (by_head(project(x)) for project in (self.q_proj, self.k_proj, self.v_proj))
        mixed = nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        y: Tensor = self.out_proj(mixed.transpose(1, 2).reshape(batch, frames, size))
        return y

    def position_bias(self, frames: int) -> Tensor:
        """(1, heads, frames, frames): near distances have a bucket each, far ones share them logarithmically."""
        places = torch.arange(frames, device=self.rel_attn_embed.weight.device)
        ahead = places[None, :] - places[:, None]
        half = self.buckets // 2
        near = half // 2
        distance = ahead.abs()
        growth = torch.log(distance.float() / near) / math.log(self.farthest / near)
        far = (near + growth * (half - near)).clamp(max=half - 1).long()
        bucket = (ahead > 0).long() * half + torch.where(distance < near, distance, far)
        values: Tensor = self.rel_attn_embed(bucket)
        return values.permute(2, 0, 1)[None]


class FeedForward(nn.Module):
    def __init__(self, config: SslConfig) -> None:
        super().__init__()
        self.intermediate_dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.output_dense = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.output_dense(nn.functional.gelu(self.intermediate_dense(x)))
        return y


class Layer(nn.Module):
    """A transformer's layer, normalized before its two parts ("stable") or after them."""

    def __init__(self, config: SslConfig, *, first: bool) -> None:
        super().__init__()
        self.attention = Attention(config, first=first)
        self.layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.before = config.do_stable_layer_norm

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        y: Tensor
        if self.before:
            x = x + self.attention(self.layer_norm(x), bias)
            y = x + self.feed_forward(self.final_layer_norm(x))
        else:
            x = self.layer_norm(x + self.attention(x, bias))
            y = self.final_layer_norm(x + self.feed_forward(x))
        return y


class SslModel(nn.Module):
    """Samples (batch, time) to all hidden layers, each (batch, frames, hidden_size), a frame every 20 ms.

    The first is what enters the transformer; the last is normalized where the layers normalize before their parts.
    """

    def __init__(self, config: SslConfig) -> None:
        super().__init__()
        self.config = config
        size = config.hidden_size
        inputs = (1, *config.conv_dim)
        convs = [ConvLayer(inputs[number], config, number) for number in range(len(config.conv_dim))]
        self.feature_extractor = nn.ModuleDict({"conv_layers": nn.ModuleList(convs)})
        self.feature_projection = nn.ModuleDict(
            {
                "layer_norm": nn.LayerNorm(inputs[-1], eps=config.layer_norm_eps),
                "projection": nn.Linear(inputs[-1], size),
            }
        )
        kernel = config.num_conv_pos_embeddings
        groups = config.num_conv_pos_embedding_groups
        layers = [Layer(config, first=number == 0) for number in range(config.num_hidden_layers)]
        places = nn.Conv1d(size, size, kernel, padding=kernel // 2, groups=groups)
        self.encoder = nn.ModuleDict(
            {
                "pos_conv_embed": nn.ModuleDict({"conv": places}),
                "layer_norm": nn.LayerNorm(size, eps=config.layer_norm_eps),
                "layers": nn.ModuleList(layers),
            }
        )

    def forward(self, samples: Tensor, last: int | None = None) -> list[Tensor]:
        """All hidden layers, or those up to number `last`."""
        x = samples[:, None]
        for convolve in self.feature_extractor["conv_layers"]:  # type: ignore[attr-defined]
            x = convolve(x)
        x = self.feature_projection["projection"](self.feature_projection["layer_norm"](x.transpose(1, 2)))
        frames = x.shape[1]
        places = self.encoder["pos_conv_embed"]["conv"](x.transpose(1, 2))[:, :, :frames]  # type: ignore[index]
        x = x + nn.functional.gelu(places).transpose(1, 2)
        norm, layers = self.encoder["layer_norm"], self.encoder["layers"]
        stable = self.config.do_stable_layer_norm
        hidden = [x if stable else norm(x)]
        count = self.config.num_hidden_layers
        bias = layers[0].attention.position_bias(frames) if layers[0].attention.gated else None  # type: ignore[index]
        for number in range(count if last is None else last):
            hidden.append(layers[number](hidden[-1], bias))  # type: ignore[index]
        if stable and len(hidden) == count + 1:
            hidden[-1] = norm(hidden[-1])
        return hidden


def normalizes_samples(folder: Path, config: SslConfig) -> bool:
    """Whether samples are brought to mean 0 and variance 1: preprocessor_config.json says so, else the kind of
    normalization, with which the published models go together."""
    path = folder / "preprocessor_config.json"
    if path.exists():
        form = read_input_json(path, most=LARGEST_CONFIG)
        if isinstance(form, dict) and isinstance(form.get("do_normalize"), bool):
            return bool(form["do_normalize"])
    return config.feat_extract_norm == "layer"


def load_ssl(folder: str | Path) -> tuple[SslModel, bool]:
    """The network of a folder, ready to use, and whether it takes normalized samples.

    Parameters
    ----------
    folder : str or Path
        Holds config.json and model.safetensors, in the hub's format.

    Returns
    -------
    tuple of SslModel and bool

    Raises
    ------
    InputError
        If a file is missing or invalid, or if the weights are a pickle only.
    """
    need("safetensors")
    place = Path(folder)
    config = read_config(place)
    state = _read_weights(place, config)
    with torch.device("meta"):  # nothing is allocated for what a file may claim
        model = SslModel(config)
    wanted = model.state_dict()
    missing = sorted(set(wanted) - set(state))
    if missing:
        what = f"{len(missing)} tensors of a {config.model_type} are missing, such as {missing[0]}"
        raise InputError(what, path=place / WEIGHTS)
    for name, tensor in wanted.items():
        if state[name].shape != tensor.shape:
            raise InputError(
                f"{name} has the shape {tuple(state[name].shape)}, config.json says {tuple(tensor.shape)}",
                path=place / WEIGHTS,
            )
    model.load_state_dict({name: state[name].float() for name in wanted}, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.eval(), normalizes_samples(place, config)


def _read_weights(folder: Path, config: SslConfig) -> dict[str, Tensor]:
    """The tensors by name, without the prefix that a model with a head for some task has."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / WEIGHTS
    if not path.exists():
        pickles = sorted(file.name for pattern in ("*.bin", "*.pt", "*.ckpt") for file in folder.glob(pattern))
        if pickles:
            raise InputError(
                f"{pickles[0]} is a pickle, which can run code when it is loaded; only {WEIGHTS} is read",
                path=folder, fix="convert it: see docs/reference/extractors.md",
            )  # fmt: skip
    check_input(path)
    try:
        tensors = load_file(path)
    except (SafetensorError, RuntimeError, ValueError, OSError) as error:
        raise InputError(f"not safetensors: {str(error).splitlines()[0][:200]}", path=path) from None
    prefix = f"{config.model_type}."
    state = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    place = "encoder.pos_conv_embed.conv."
    for gain, direction in (
        ("weight_g", "weight_v"),
        ("parametrizations.weight.original0", "parametrizations.weight.original1"),
    ):
        if place + gain in state and place + direction in state:  # weight normalization: gain x direction
            towards = state[place + direction].float()
            length = towards.norm(dim=(0, 1), keepdim=True).clamp(min=1e-12)
            state[place + "weight"] = state[place + gain].float() * towards / length
    return state


class SslExtractor:
    """Mean and deviation over time of one hidden layer."""

    def __init__(self, folder: str | Path, layer: int | None = None) -> None:
        place = Path(folder)
        self._model, self._normalizes = load_ssl(place)
        config = self._model.config
        # Early layers say most about the speaker; voice conversion uses layer 6 of WavLM Large's 24 (Baas et al. 2023).
        self.layer = max(1, config.num_hidden_layers // 4) if layer is None else layer
        if not 0 <= self.layer <= config.num_hidden_layers:
            raise InputError(
                f"there is no layer {layer}: this model has layers 0 to {config.num_hidden_layers}", path=place
            )
        self.name = f"{config.model_type}:{place.name}:{self.layer}"
        digest = hashlib.sha256(f"{config}{self._normalizes}{sha256(place / WEIGHTS)}".encode())
        self.version = f"ssl{CODE}-{digest.hexdigest()[:12]}"
        self.dimension = 2 * config.hidden_size

    def __repr__(self) -> str:
        return f"SslExtractor({self.name}, {self.dimension}-d, {self.version})"

    def embed(self, samples: ArrayLike) -> NDArray[np.float32]:
        signal = np.ascontiguousarray(samples, np.float32)
        if signal.ndim != 1 or len(signal) < MIN_SAMPLES:
            raise InputError(f"a speaker embedding needs at least {MIN_SAMPLES / RATE:g} s of mono speech")
        if self._normalizes:
            signal = normalize_samples(signal)
        least = self._model.config.least_samples
        parts = [part for part in cut_at_pauses(signal, LONGEST) if len(part) >= least]
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # sums in another order would give other bits
        try:
            with torch.inference_mode():
                frames = [self._model(torch.from_numpy(part)[None], self.layer)[-1][0].numpy() for part in parts]
        finally:
            torch.set_num_threads(before)
        return pool_frames(np.concatenate(frames))


def normalize_samples(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean 0 and variance 1, as the models that take normalized samples were trained."""
    scaled: NDArray[np.float32] = (samples - samples.mean()) / np.sqrt(samples.var() + np.float32(1e-7))
    return scaled


def pool_frames(frames: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean and deviation over time of a table of frames.

    >>> pool_frames(np.array([[1, 0], [3, 0]], np.float32)).tolist()
    [2.0, 0.0, 1.0, 0.0]
    """
    wide = frames.astype(np.float64)
    return np.concatenate([wide.mean(axis=0), wide.std(axis=0)]).astype(np.float32)


def split_layer(text: str) -> tuple[str, int | None]:
    """FOLDER or FOLDER:LAYER as the folder and the layer's number.

    >>> split_layer("models/wavlm-large"), split_layer("models/wavlm-large:6")
    (('models/wavlm-large', None), ('models/wavlm-large', 6))
    """
    folder, colon, layer = text.rpartition(":")
    if colon and layer.isdecimal() and len(layer) < 5 and not Path(text).is_dir():
        return folder, int(layer)
    return text, None


def load_wavlm(text: str) -> SslExtractor:
    """What stands after `wavlm:`: FOLDER or FOLDER:LAYER."""
    return SslExtractor(*split_layer(text))
