"""The networks of the VoicePrivacy Challenges' attackers: ECAPA-TDNN in 2024 (`--network ecapa`, `ecapa:scratch`) and
a dual-stream ECAPA-TDNN in 2026 (`--network vpc2026:FOLDER`).

One stream of the latter is ECAPA-TDNN's (Desplanques et al. 2020) over mel energies. The other has four of its blocks
over the weighted sum of the hidden layers of a WavLM, which is not trained. What the last three blocks of both give is
multiplied, then pooled as in ECAPA. ECAPA-TDNN starts from SpeechBrain's published parameters, by whose names the
tensors go, or from random numbers; the second stream always starts from random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from veilmeter.core.errors import InputError
from veilmeter.speech.extractors.onnx import FRAME, MIN_SAMPLES, RATE, SHIFT
from veilmeter.speech.extractors.published import DECIBELS, ECAPA_LEAST_VARIANCE, ECAPA_PARTS, speechbrain_filters
from veilmeter.speech.extractors.wavlm import LONGEST, SslModel

CHANNELS, POOLED, INNER, DIMENSION = 1024, 3072, 128, 192
KERNELS, DILATIONS = (5, 3, 3, 3), (1, 2, 3, 4)
DROPOUT = 0.3  # in 2026
STRETCHES, STRETCH = 5, (1000, 2000)  # chunk drop: at most so many stretches, of so many samples
BANDS, BAND = 3, 0.05  # frequency drop: at most so many bands, each this part of all frequencies


class Convolution(nn.Module):
    """Over time, keeping the length; edges are mirrored."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation)
        self.around = dilation * (kernel - 1) // 2

    def forward(self, x: Tensor) -> Tensor:
        if self.around:
            x = nn.functional.pad(x, (self.around, self.around), mode="reflect")
        y: Tensor = self.conv(x)
        return y


class Normalization(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(x)
        return y


class Tdnn(nn.Module):
    """Convolution, ReLU, normalization, and dropout of whole channels."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = Convolution(inputs, outputs, kernel, dilation)
        self.norm = Normalization(outputs)
        self.dropout = nn.Dropout1d(dropout)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.dropout(self.norm(torch.relu(self.conv(x))))
        return y


class Block(nn.Module):
    """Parts of the channels convolved one after the other, then weighted by what the whole utterance is like."""

    def __init__(self, channels: int, kernel: int, dilation: int, dropout: float = 0.0) -> None:
        super().__init__()
        part = channels // ECAPA_PARTS
        self.tdnn1, self.tdnn2 = (Tdnn(channels, channels, dropout=dropout) for _ in range(2))
        inner = [Tdnn(part, part, kernel, dilation, dropout) for _ in range(ECAPA_PARTS - 1)]
        self.res2net_block = nn.ModuleDict({"blocks": nn.ModuleList(inner)})
        self.se_block = nn.ModuleDict({"conv1": Convolution(channels, INNER), "conv2": Convolution(INNER, channels)})

    def forward(self, x: Tensor) -> Tensor:
        parts = self.tdnn1(x).chunk(ECAPA_PARTS, dim=1)
        done = [parts[0]]
        for number, part in enumerate(parts[1:]):
            inner = self.res2net_block["blocks"][number]  # type: ignore[index]
            done.append(inner(part if number == 0 else part + done[-1]))
        y = self.tdnn2(torch.cat(done, dim=1))
        squeezed = torch.relu(self.se_block["conv1"](y.mean(dim=2, keepdim=True)))
        gated: Tensor = torch.sigmoid(self.se_block["conv2"](squeezed)) * y
        return gated + x


class Ecapa(nn.Module):
    """ECAPA-TDNN: frames of samples (batch, time, 160), 10 ms each, to embeddings (batch, 192)."""

    clean_share = 0.5

    def __init__(self, *, channels: int = CHANNELS, pooled: int = POOLED, dropout: float = 0.0) -> None:
        super().__init__()
        first, *later = zip(KERNELS, DILATIONS, strict=True)
        entry = Tdnn(80, channels, *first, dropout)
        self.blocks = nn.ModuleList([entry, *(Block(channels, *how, dropout) for how in later)])
        self.mfa = Tdnn(3 * channels, pooled, dropout=dropout)
        self.asp = nn.ModuleDict({"tdnn": Tdnn(3 * pooled, INNER), "conv": Convolution(INNER, pooled)})
        self.asp_bn = Normalization(2 * pooled)
        self.fc = Convolution(2 * pooled, DIMENSION)
        self.filters: Tensor
        self.window: Tensor
        self.register_buffer("filters", torch.from_numpy(speechbrain_filters().astype(np.float32)), persistent=False)
        window = 0.54 - 0.46 * torch.cos(2 * torch.pi * torch.arange(FRAME) / FRAME)
        self.register_buffer("window", window, persistent=False)

    def forward(self, frames: Tensor) -> Tensor:
        return self.pool(self.mel_stream(self.augment(frames)))

    def augment(self, frames: Tensor) -> Tensor:
        """The samples; in training with stretches and bands dropped, of all recordings or of a random half."""
        samples = frames.flatten(1)
        if not self.training:
            return samples
        clean = torch.rand(len(samples), 1, device=samples.device) < self.clean_share
        return torch.where(clean, samples, drop_bands(drop_stretches(samples)))

    def mel_stream(self, samples: Tensor) -> Tensor:
        """(batch, 3 x channels, frames): the last three blocks over SpeechBrain's mel energies."""
        wide = nn.functional.pad(samples, (FRAME // 2, FRAME // 2)).unfold(1, FRAME, SHIFT)
        power = torch.fft.rfft(wide * self.window).abs() ** 2
        decibels = 10 * torch.log10((power @ self.filters).clamp(min=1e-10))
        decibels = torch.maximum(decibels, decibels.amax(dim=(1, 2), keepdim=True) - DECIBELS)
        return self._last_three(self.blocks, (decibels - decibels.mean(dim=1, keepdim=True)).transpose(1, 2))

    @staticmethod
    def _last_three(blocks: nn.ModuleList, x: Tensor) -> Tensor:
        outputs = []
        for block in blocks:
            x = block(x)
            outputs.append(x)
        return torch.cat(outputs[-3:], dim=1)

    def pool(self, x: Tensor) -> Tensor:
        """Attentive statistics: weighted mean and deviation, where the weights know those of the whole."""
        x = self.mfa(x)
        mean, deviation = _statistics(x, torch.full_like(x[:, :1], 1 / x.shape[2]))
        context = torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], dim=1)
        attention = torch.softmax(self.asp["conv"](torch.tanh(self.asp["tdnn"](context))), dim=2)
        statistics = torch.cat(_statistics(x, attention), dim=1)
        embedding: Tensor = self.fc(self.asp_bn(statistics)).squeeze(2)
        return embedding

    def start_from(self, published: Mapping[str, Any]) -> None:
        """Takes over SpeechBrain's ECAPA-TDNN of VoxCeleb: all of it, or the mel stream and the pooling."""
        missing, unexpected = self.load_state_dict(dict(published), strict=False)
        own = ("blocks_features.", "entry.", "layer_weights")
        strange = [*unexpected, *(name for name in missing if not name.startswith(own))]
        if strange:
            raise InputError(f"these are not the parameters of ECAPA-TDNN: {strange[0]}")


class DualStreamEcapa(Ecapa):
    """The same with a second stream, of a WavLM's layers."""

    clean_share = 0.0

    def __init__(self, wavlm: SslModel, *, normalizes: bool, channels: int = CHANNELS, pooled: int = POOLED) -> None:
        super().__init__(channels=channels, pooled=pooled, dropout=DROPOUT)
        # Not a part of the network: it is neither trained nor kept with its weights.
        self._wavlm, self._normalizes = [wavlm], normalizes
        size, layers = wavlm.config.hidden_size, wavlm.config.num_hidden_layers
        self.layer_weights = nn.Parameter(torch.ones(layers))
        # The challenge has a WavLM of as many channels.
        self.entry = nn.Conv1d(size, channels, 1) if size != channels else nn.Identity()
        later = zip(KERNELS, DILATIONS, strict=True)
        self.blocks_features = nn.ModuleList([Block(channels, *how, DROPOUT) for how in later])

    def forward(self, frames: Tensor) -> Tensor:
        samples = self.augment(frames)
        mel, ssl = self.mel_stream(samples), self.ssl_stream(samples)
        # A frame of WavLM lasts 20 ms, one of mel energies 10 ms.
        nearest = torch.arange(mel.shape[2], device=mel.device) * ssl.shape[2] // mel.shape[2]
        return self.pool(mel * ssl[:, :, nearest])

    def ssl_stream(self, samples: Tensor) -> Tensor:
        """(batch, 3 x channels, frames): the last three blocks over the weighted sum of WavLM's layers."""
        self._wavlm[0] = self._wavlm[0].to(samples.device)
        if self._normalizes:
            spread = torch.sqrt(samples.var(dim=1, keepdim=True, unbiased=False) + 1e-7)
            samples = (samples - samples.mean(dim=1, keepdim=True)) / spread
        with torch.no_grad():
            parts = [torch.stack(self._wavlm[0](part)[1:]) for part in _cut(samples, int(LONGEST * RATE))]
        layers = torch.cat(parts, dim=2)
        weights = torch.softmax(self.layer_weights, dim=0)
        mixed = torch.einsum("l,lbtc->bct", weights, layers)
        return self._last_three(self.blocks_features, self.entry(mixed))


def _statistics(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    mean = (weights * x).sum(dim=2, keepdim=True)
    variance = (weights * (x - mean) ** 2).sum(dim=2, keepdim=True)
    return mean, torch.sqrt(variance.clamp(min=ECAPA_LEAST_VARIANCE))


def _cut(samples: Tensor, most: int) -> list[Tensor]:
    """Parts of nearly one length: a short rest at the end would have too few samples for a frame."""
    return list(samples.tensor_split(-(-samples.shape[1] // most), dim=1))


def drop_stretches(samples: Tensor) -> Tensor:
    """Silences up to five short stretches of each recording (chunk drop)."""
    samples = samples.clone()
    for row in samples:
        for _ in range(int(torch.randint(1, STRETCHES + 1, ()))):
            start = int(torch.randint(len(row), ()))
            row[start : start + int(torch.randint(*STRETCH, ()))] = 0
    return samples


def drop_bands(samples: Tensor) -> Tensor:
    """Removes up to three narrow bands of frequencies (frequency drop)."""
    spectrum = torch.fft.rfft(samples)
    count = spectrum.shape[1]
    for row in spectrum:
        for _ in range(int(torch.randint(1, BANDS + 1, ()))):
            start = int(torch.randint(count, ()))
            row[start : start + int(count * BAND)] = 0
    kept: Tensor = torch.fft.irfft(spectrum, n=samples.shape[1])
    return kept


def sample_frames(samples: ArrayLike) -> NDArray[np.float32]:
    """Samples in frames of 10 ms (n x 160), which can be cropped like features; the rest at the end is left out."""
    signal = np.ascontiguousarray(samples, np.float32)
    if signal.ndim != 1 or len(signal) < MIN_SAMPLES:
        raise InputError(f"a speaker embedding needs at least {MIN_SAMPLES / RATE:g} s of mono speech")
    return signal[: len(signal) // SHIFT * SHIFT].reshape(-1, SHIFT)


def build_ecapa(*, from_scratch: bool, offline: bool = False) -> Ecapa:
    """ECAPA-TDNN, ready to be trained: from SpeechBrain's published parameters, or from random numbers, the same ones
    every time."""
    from veilmeter.speech import weights

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Ecapa()
    if not from_scratch:
        published = torch.load(weights.fetch(weights.ECAPA, offline=offline), map_location="cpu", weights_only=True)
        model.start_from(published)
    return model


def build_dual_stream(folder: str, *, offline: bool = False) -> DualStreamEcapa:
    """The network with the WavLM of a folder, ready to be trained; the same numbers every time."""
    from veilmeter.speech import weights
    from veilmeter.speech.extractors.wavlm import load_ssl

    wavlm, normalizes = load_ssl(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = DualStreamEcapa(wavlm, normalizes=normalizes)
    model.start_from(torch.load(weights.fetch(weights.ECAPA, offline=offline), map_location="cpu", weights_only=True))
    return model
