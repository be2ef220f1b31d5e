"""`whisper:LAYER`: a hidden layer of the multilingual recognizer's encoder, pooled over time.

Whisper base (Radford et al. 2022) was trained to transcribe 99 languages, not to distinguish people. The information
about the speaker in its layers is therefore independent of networks that were trained on speakers. The parameters are
those of the recognizer, read from its file and run by torch: ctranslate2 gives the last layer only. The recording is
not filled up with silence to 30 s, as the recognizer does it: attention to silence costs time and changes what is
pooled.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.speech import weights
from veilmeter.speech.extractors.onnx import MIN_SAMPLES, RATE
from veilmeter.speech.extractors.wavlm import pool_frames
from veilmeter.speech.recognizers.base import cut_at_pauses
from veilmeter.speech.recognizers.whisper import HOP, LONGEST, log_mels, model_folder

try:
    import torch
    from torch import Tensor
    from torch.nn import functional
except ImportError:
    raise missing_extra("torch", "audio") from None

# Part of the version: raise it when the same samples may give another vector.
CODE = 1
LAYERS, HEADS, SIZE = 6, 8, 512
DEFAULT_LAYER = 1  # see docs/validation/extractors.md
FORM = 6  # of ctranslate2's files
HALF_FLOATS = 4  # its number for float16


def read_encoder(path: Path) -> dict[str, Tensor]:
    """The encoder's tensors in a file of ctranslate2: each has a name, a shape, a type and its bytes."""
    tensors: dict[str, Tensor] = {}
    try:
        with open(path, "rb") as file:
            (form,) = struct.unpack("<I", file.read(4))
            if form != FORM or _text(file) != "WhisperSpec":
                raise ValueError("another form")
            _, count = struct.unpack("<II", file.read(8))
            for _ in range(count):
                name = _text(file)
                (rank,) = struct.unpack("<B", file.read(1))
                shape = struct.unpack(f"<{rank}I", file.read(4 * rank))
                kind, size = struct.unpack("<BI", file.read(5))
                content = file.read(size)
                if kind == HALF_FLOATS and name.startswith("encoder/"):
                    numbers = np.frombuffer(content, "<f2").reshape(shape).astype(np.float32)
                    tensors[name.removeprefix("encoder/")] = torch.from_numpy(numbers)
    except (OSError, ValueError, struct.error, UnicodeDecodeError) as error:
        raise InputError(f"the model can't be read: {error}", path=path, fix="remove the folder") from None
    return tensors


def _text(file: IO[bytes]) -> str:
    (size,) = struct.unpack("<H", file.read(2))
    return file.read(size).rstrip(b"\0").decode()


class WhisperExtractor:
    """Mean and deviation over time of one layer: 0 is what enters the first, 6 the recognizer's output."""

    dimension = 2 * SIZE

    def __init__(self, layer: int = DEFAULT_LAYER, *, offline: bool = False) -> None:
        if not 0 <= layer <= LAYERS:
            raise InputError(f"there is no layer {layer}: whisper has layers 0 to {LAYERS}")
        self.layer = layer
        self.name = f"whisper:{layer}"
        self.version = f"base-{weights.WHISPER_HALVES[0].sha256[:12]}-{CODE}"
        self._tensors = read_encoder(model_folder(offline) / "model.bin")

    def embed(self, samples: ArrayLike) -> NDArray[np.float32]:
        signal = np.ascontiguousarray(samples, np.float32)
        if signal.ndim != 1 or len(signal) < MIN_SAMPLES:
            raise InputError(f"a speaker embedding needs at least {MIN_SAMPLES / RATE:g} s of mono speech")
        parts = [part for part in cut_at_pauses(signal, LONGEST) if len(part) >= MIN_SAMPLES]
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # sums in another order would give other bits
        try:
            with torch.inference_mode():
                frames = [self.hidden(log_mels(part)[:, : len(part) // (2 * HOP) * 2]).numpy() for part in parts]
        finally:
            torch.set_num_threads(before)
        return pool_frames(np.concatenate(frames))

    def hidden(self, mels: NDArray[np.float32]) -> Tensor:
        """The layer's frames of 20 ms (n x 512) from log mel energies (80 x 2n)."""
        get = self._tensors
        x = torch.from_numpy(np.ascontiguousarray(mels))[None]
        x = functional.gelu(functional.conv1d(x, get["conv1/weight"], get["conv1/bias"], padding=1))
        x = functional.gelu(functional.conv1d(x, get["conv2/weight"], get["conv2/bias"], stride=2, padding=1))
        x = x[0].T
        x = x + get["position_encodings/encodings"][: len(x)]
        for number in range(self.layer):
            x = self._layer(x, f"layer_{number}")
        return self._normalize(x, "layer_norm") if self.layer == LAYERS else x

    def _layer(self, x: Tensor, name: str) -> Tensor:
        attention, forward = f"{name}/self_attention", f"{name}/ffn"
        mixed = self._linear(self._normalize(x, f"{attention}/layer_norm"), f"{attention}/linear_0")
        queries, keys, values = (part.reshape(len(x), HEADS, -1).transpose(0, 1) for part in mixed.chunk(3, dim=1))
        shares = torch.softmax(queries @ keys.transpose(1, 2) / math.sqrt(SIZE / HEADS), dim=2)
        x = x + self._linear((shares @ values).transpose(0, 1).flatten(1), f"{attention}/linear_1")
        wide = functional.gelu(self._linear(self._normalize(x, f"{forward}/layer_norm"), f"{forward}/linear_0"))
        return x + self._linear(wide, f"{forward}/linear_1")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._tensors[f"{name}/weight"], self._tensors[f"{name}/bias"])

    def _normalize(self, x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, (SIZE,), self._tensors[f"{name}/gamma"], self._tensors[f"{name}/beta"])


def load_whisper(text: str = "", *, offline: bool = False) -> WhisperExtractor:
    """What stands after `whisper:`, the number of a layer."""
    if not text:
        return WhisperExtractor(offline=offline)
    if not (text.isdecimal() and len(text) < 5):
        raise InputError(f"{text!r} is not the number of a layer", fix=f"give whisper:0 to whisper:{LAYERS}")
    return WhisperExtractor(int(text), offline=offline)
