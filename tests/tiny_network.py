"""A network small enough to be fine-tuned in a moment."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, features: Tensor) -> Tensor:
        found: Tensor = self.layers(features).mean(dim=1)
        return found


def features(samples: ArrayLike) -> NDArray[np.float32]:
    """Log energies of 20 bands every 10 ms."""
    x = np.asarray(samples, np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(x, 400)[::160]
    spectrum = np.abs(np.fft.rfft(frames, axis=1))[:, :200].reshape(len(frames), 20, 10).sum(axis=2)
    return np.log(spectrum + 1e-3).astype(np.float32)


def make() -> tuple[nn.Module, object, int]:
    return Tiny(), features, 8


def embed(samples: ArrayLike) -> NDArray[np.float32]:
    """An extractor of one's own: mean and spread of the bands."""
    x = features(samples)
    return np.concatenate([x.mean(axis=0), x.std(axis=0)]).astype(np.float32)
