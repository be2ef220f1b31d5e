"""What a layer of Moonshine's encoder hears: numbers that tell the words, a frame every 24 ms.

The encoder is published in ONNX Runtime's own format, which gives nothing but its last layer. Written as an ONNX graph
it can be cut behind any layer, and what lies behind the cut costs no time.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, need
from veilmeter.speech import weights
from veilmeter.speech.recognizers.base import Samples, cut_at_pauses
from veilmeter.speech.recognizers.moonshine import SHORTEST, open_graph

# Part of the version: raise it when the same samples may give other numbers.
CODE = 1
LAYERS = 8
DIMENSION = 416
LONGEST = 16.0  # seconds heard at once: attention looks at all of them, and memory grows with their square
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
        for stretch in cut_at_pauses(samples, LONGEST):
            padded = np.pad(stretch, (0, max(0, SHORTEST - len(stretch))))
            heard = self._session.run(None, {"input_values": np.ascontiguousarray(padded, np.float32)[None]})[0][0]
            places.append(start + CENTER + HOP * np.arange(len(heard)))
            frames.append(heard)
            start += len(stretch)
        return np.concatenate(places), np.concatenate(frames)


def encoder_version(layer: int) -> str:
    """Changes whenever the same samples may give other numbers."""
    return f"moonshine-encoder-{weights.MOONSHINE_ENCODER.sha256[:12]}-{layer}-{CODE}"


def load_layer(layer: int, *, offline: bool = False) -> EncoderLayer:
    """The layer, once per process; the weights are fetched as for the recognizer."""
    return _loaded(layer, offline, str(weights.cache_folder()))


@lru_cache(maxsize=2)
def _loaded(layer: int, offline: bool, cache: str) -> EncoderLayer:
    need("onnx", "onnxruntime")
    return EncoderLayer(layer, weights.fetch(weights.MOONSHINE_ENCODER, offline=offline, cache=cache))


def _open(layer: int, published: Path) -> Any:
    """The graph up to the layer, kept beside the weights."""
    graph = published.with_name(f"{encoder_version(layer)}.onnx")
    return open_graph(published, graph, f"/layers.{layer - 1}/Add_1_output_0")
