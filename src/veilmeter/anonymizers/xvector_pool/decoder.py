"""The small network that says the same words in another voice.

A linear map squeezes what a recognizer's encoder heard through a few channels, too narrow for who speaks and just wide
enough for what is said; a decoder makes mel-cepstra and aperiodicity from these, pitch, voicing and energy, each of its
layers scaled and shifted (FiLM, Perez et al. 2018) by the speaker vector. Trained to rebuild speech from its own
speaker vector, it takes another one when used. Several such networks, each trained from a beginning of its own, speak
together: what they err in differs, and their mean errs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from veilmeter.core.errors import missing_extra

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
