"""The small network that says the same words in another voice.

An encoder squeezes the source's mel-cepstra through four sigmoid channels, too narrow for who speaks and just wide
enough for what is said; a decoder rebuilds the mel-cepstra from those four, pitch, voicing and energy, each of its
layers scaled and shifted (FiLM, Perez et al. 2018) by the speaker vector. Trained to rebuild speech from its own
speaker vector, it takes another one when used.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from veilmeter.core.errors import missing_extra

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    raise missing_extra("torch", "audio") from None


@dataclass(frozen=True, slots=True)
class ConverterShape:
    """The sizes of the network; kept with its weights."""

    cepstra: int = 40
    speaker: int = 64
    bottleneck: int = 4
    channels: int = 128
    encoder_layers: int = 3
    decoder_layers: int = 4
    kernel: int = 5

    def to_json(self) -> dict[str, int]:
        return asdict(self)


class Encoder(nn.Module):
    """Mel-cepstra to a few channels between 0 and 1.

    Instance normalization after every convolution takes away what is constant over the utterance: channel and voice.
    """

    def __init__(self, shape: ConverterShape) -> None:
        super().__init__()
        widths = [shape.cepstra] + [shape.channels] * shape.encoder_layers
        self.layers = nn.ModuleList(
            nn.Conv1d(a, b, shape.kernel, padding=shape.kernel // 2) for a, b in pairwise(widths)
        )
        self.last = nn.Conv1d(shape.channels, shape.bottleneck, 1)

    def forward(self, cepstra: Tensor) -> Tensor:
        y = nn.functional.instance_norm(cepstra)
        for layer in self.layers:
            y = torch.relu(nn.functional.instance_norm(layer(y)))
        return torch.sigmoid(self.last(y))


class Modulated(nn.Module):
    """A residual convolution, scaled and shifted by the speaker vector."""

    def __init__(self, shape: ConverterShape) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(shape.channels, shape.channels, shape.kernel, padding=shape.kernel // 2)
        self.film = nn.Linear(shape.speaker, 2 * shape.channels)

    def forward(self, x: Tensor, speaker: Tensor) -> Tensor:
        scale, shift = self.film(speaker).unsqueeze(2).chunk(2, dim=1)
        return x + torch.relu(self.convolution(x) * (1 + scale) + shift)


class Decoder(nn.Module):
    """The few channels, prosody and a speaker vector to mel-cepstra."""

    PROSODY = 3  # log-F0, voicing, energy

    def __init__(self, shape: ConverterShape) -> None:
        super().__init__()
        inputs = shape.bottleneck + self.PROSODY
        self.first = nn.Conv1d(inputs, shape.channels, shape.kernel, padding=shape.kernel // 2)
        self.layers = nn.ModuleList(Modulated(shape) for _ in range(shape.decoder_layers))
        self.last = nn.Conv1d(shape.channels, shape.cepstra, 1)

    def forward(self, content: Tensor, prosody: Tensor, speaker: Tensor) -> Tensor:
        y = torch.relu(self.first(torch.cat([content, prosody], dim=1)))
        for layer in self.layers:
            y = layer(y, speaker)
        out: Tensor = self.last(y)
        return out


class Converter(nn.Module):
    """Both: (batch, 40, frames) and (batch, 3, frames) and (batch, 64) to (batch, 40, frames), all standardized."""

    def __init__(self, shape: ConverterShape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder = Encoder(shape)
        self.decoder = Decoder(shape)

    def forward(self, cepstra: Tensor, prosody: Tensor, speaker: Tensor) -> Tensor:
        out: Tensor = self.decoder(self.encoder(cepstra), prosody, speaker)
        return out

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


def make_converter(shape: ConverterShape, state: dict[str, Any] | None = None) -> Converter:
    model = Converter(shape)
    if state is not None:
        model.load_state_dict(state, strict=True)
    return model
