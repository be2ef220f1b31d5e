"""What a speaker-embedding extractor is, and how one is found by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.user_code import load_object, source_version, takes_nothing

GROUP = "veilmeter.extractors"
DEFAULT = "campplus"

Vector = NDArray[np.float32]


@runtime_checkable
class Extractor(Protocol):
    """Turns 16 kHz mono samples into one vector.

    `version` changes whenever the same samples may give other vectors (weights, code): what was computed with another
    version is computed again.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, samples: Vector) -> Vector: ...


class FunctionExtractor:
    """A user's function of samples (float32, 16 kHz) as an extractor; its module's source is its version."""

    def __init__(self, name: str, version: str, function: Callable[[Vector], Any]) -> None:
        self.name = name
        self.version = version
        self._function = function
        noise = np.random.default_rng(0).standard_normal(16_000).astype(np.float32) * np.float32(0.1)
        self.dimension = len(self.embed(noise))

    def embed(self, samples: Vector) -> Vector:
        return as_vector(self._function(samples), self.name)


def as_vector(value: Any, name: str) -> Vector:
    """What an extractor returned as one float32 vector, or an error that names the extractor."""
    try:
        vector = np.asarray(value, dtype=np.float32).squeeze()
    except (TypeError, ValueError):
        raise VeilmeterError(f"extractor {name} did not return numbers") from None
    if vector.ndim != 1 or not len(vector):
        raise VeilmeterError(f"extractor {name} returned an array of shape {np.shape(value)}, not one vector")
    return vector


def load_extractor(spec: str = DEFAULT, *, offline: bool = False) -> Extractor:
    """The extractor named by `spec`.

    `campplus` and `ge2e` come with veilmeter (their weights are fetched once, never with `offline`); `onnx:FILE` is any
    model with the WeSpeaker interface; a name registered in the entry point group `veilmeter.extractors`, or
    `module:function` (or `file.py:function`) is your own: a function of samples, or what makes an `Extractor`.
    """
    if spec in ("campplus", "ge2e"):
        from veilmeter.speech import weights

        return _built_in(spec, offline, str(weights.cache_folder()))
    if spec.startswith("campplus:") or "@" in spec:  # fine-tuned weights: campplus:FILE, module:function@FILE
        from veilmeter.attacks.finetune import FineTunedExtractor

        network, _, file = spec.partition(":" if spec.startswith("campplus:") else "@")
        return FineTunedExtractor(network, file, offline=offline)
    if spec.startswith("onnx:"):
        from veilmeter.speech.extractors.onnx import load_onnx

        return load_onnx(spec.removeprefix("onnx:"))
    for entry in entry_points(group=GROUP):
        if entry.name == spec:
            return _own(spec, entry.load(), sys.modules.get(entry.module))
    if ":" in spec:
        found, module = load_object(spec, "extractor")
        return _own(spec, found, module)
    registered = sorted(entry.name for entry in entry_points(group=GROUP))
    names = ", ".join(["campplus", "ge2e", "onnx:FILE", *registered, "module:function"])
    raise InputError(f"there is no extractor {spec!r}", fix=f"choose one of {names}")


@lru_cache(maxsize=2)
def _built_in(spec: str, offline: bool, cache: str) -> Extractor:
    """Loaded once a process, as it takes a second and an assessment embeds one corpus after the other."""
    if spec == "campplus":
        from veilmeter.speech.extractors.onnx import load_campplus

        return load_campplus(offline=offline)
    from veilmeter.speech.extractors.ge2e import load_ge2e

    return load_ge2e(offline=offline)


def _own(spec: str, found: Any, module: ModuleType | None) -> Extractor:
    """A user's object: an extractor, a class or function that makes one, or a function of samples."""
    if isinstance(found, type) or (callable(found) and not isinstance(found, Extractor) and takes_nothing(found)):
        try:
            found = found()
        except Exception as error:
            raise InputError(f"extractor {spec} can't be made: {type(error).__name__}: {error}") from None
    if isinstance(found, Extractor):
        return found
    if not callable(found):
        raise InputError(f"extractor {spec} is neither a function nor an extractor")
    try:
        return FunctionExtractor(spec, source_version(module), found)
    except VeilmeterError:
        raise
    except Exception as error:
        raise InputError(f"extractor {spec} fails on a second of noise: {type(error).__name__}: {error}") from None
