"""Extractors whose weights can be trained further, and those whose weights were."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.core.user_code import load_object

try:
    import torch
    from torch import nn
except ImportError:
    raise missing_extra("torch", "audio") from None

Features = Callable[[ArrayLike], NDArray[np.float32]]


def trainable(spec: str = "campplus", *, offline: bool = False) -> tuple[nn.Module, Features, int]:
    """A network, the features it takes (time x bands, from samples) and its dimension.

    `campplus`, or `module:function` where the function returns these three: any torch extractor of one's own.
    """
    if spec == "campplus":
        from veilmeter.speech.extractors.campplus import DIMENSION, load_model
        from veilmeter.speech.extractors.features import fbank

        model = load_model(offline=offline)
        for parameter in model.parameters():
            parameter.requires_grad_(True)
        return model, fbank, DIMENSION
    if ":" in spec:
        try:
            model, features, dimension = load_object(spec, "network")[0]()
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{spec} can't be fine-tuned: {error}", fix="it must return (module, features, dimension)"
            ) from None
        return model, features, int(dimension)
    raise InputError(f"{spec} can't be fine-tuned", fix="choose campplus, or module:function for a network of your own")


class FineTunedExtractor:
    """An extractor with fine-tuned weights, for `--extractor campplus:FILE` and `module:function@FILE`."""

    def __init__(self, spec: str, path: str | Path, *, offline: bool = False) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        file = Path(path)
        if not file.is_file():
            raise InputError("the fine-tuned weights are not there", path=file)
        self._model, self._features, self.dimension = trainable(spec, offline=offline)
        try:
            self._model.load_state_dict(load_file(file))
        except (SafetensorError, RuntimeError, ValueError, OSError) as error:
            raise InputError(f"these are not weights of {spec}: {str(error).splitlines()[0]}", path=file) from None
        self._model.eval()
        self.name = f"{spec} (fine-tuned)"
        with open(file, "rb") as handle:
            self.version = "finetuned-" + hashlib.file_digest(handle, "sha256").hexdigest()[:16]

    def embed(self, samples: ArrayLike) -> NDArray[np.float32]:
        features = torch.from_numpy(np.asarray(self._features(samples), np.float32))
        with torch.inference_mode():
            vector: NDArray[np.float32] = self._model(features.unsqueeze(0))[0].numpy()
        return vector
