"""The interface of speaker-embedding extractors, and how one is found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.devices import chosen_device
from veilmeter.core.errors import InputError, VeilmeterError, foreign_errors
from veilmeter.core.registry import Registry
from veilmeter.core.user_code import (
    GIVEN,
    load_object,
    note_origin,
    parameters_of,
    source_version,
    takes_nothing,
    version_of,
)

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


# What is registered is an extractor, a class or function that makes one (it may take `offline`), or a function of
# samples. Imported only when asked for: some need torch.
EXTRACTORS: Registry[Any] = Registry(
    "extractor",
    "veilmeter.extractors",
    {
        "campplus": "veilmeter.speech.extractors.onnx:load_campplus",
        "ge2e": "veilmeter.speech.extractors.ge2e:load_ge2e",
        "ecapa": "veilmeter.speech.extractors.published:load_ecapa",
        "eres2net": "veilmeter.speech.extractors.published:load_eres2net",
        "resnet34": "veilmeter.speech.extractors.published:load_resnet34",
        "whisper": "veilmeter.speech.extractors.whisper:WhisperExtractor",
        # These measure words and manner, not the voice.
        "words": "veilmeter.speech.extractors.words:load_words",
        "word-style": "veilmeter.speech.extractors.words:load_word_style",
        "word-meaning": "veilmeter.speech.extractors.words:load_word_meaning",
        "rhythm": "veilmeter.speech.extractors.rhythm:load_rhythm",
        "rhythm-level-free": "veilmeter.speech.extractors.rhythm:load_level_free",
        "durations": "veilmeter.speech.extractors.rhythm:DurationsExtractor",
    },
    accepts=lambda thing: callable(thing) or isinstance(thing, Extractor),
    forms=(
        "onnx:FILE",
        "wavlm:FOLDER",
        "wavlm:FOLDER:LAYER",
        "whisper:LAYER",
        "words:FILE",
        "words:corpus",
        "module:function",
        "file.py:function",
    ),
)


GIVEN_TEXTS = ("words:", "word-style:", "word-meaning:")  # before a file of texts
OF_WORDS = ("words", "word-style", "word-meaning", "words-given", "word-style-given", "word-meaning-given")
# What registered extractors hear; others, such as a function of yours, may hear anything.
HEARS = {
    **dict.fromkeys(("campplus", "ge2e", "ecapa", "eres2net", "resnet34"), "voice"),
    **dict.fromkeys(OF_WORDS, "words"),
    **dict.fromkeys(("rhythm", "rhythm-level-free", "durations"), "rhythm"),
}


def hears(name: str) -> str:
    """Voice, words or rhythm; "speech" where it is not known.

    >>> hears("ecapa"), hears("words"), hears("own-embed")
    ('voice', 'words', 'speech')
    """
    return HEARS.get(name, "speech")


def extractor_label(spec: str) -> str:
    """The short name of an extractor, for attackers that use it.

    >>> [extractor_label(spec) for spec in ("ecapa", "onnx:models/mine.onnx", "own.py:embed", "words:texts/text")]
    ['ecapa', 'mine', 'own-embed', 'words-given']
    >>> [extractor_label(spec) for spec in ("wavlm:models/wavlm-large", "wavlm:models/wavlm-large:6")]
    ['wavlm-large', 'wavlm-large-6']
    """
    if spec.startswith(GIVEN_TEXTS):
        return f"{spec.partition(':')[0]}-given"
    place, colon, name = spec.rpartition(":")
    if place == GIVEN:
        return name
    if place in ("onnx", "campplus"):
        return Path(name).stem
    if place == "wavlm":
        return Path(name).name
    return f"{Path(place).stem}-{name}" if colon else spec


# Of the habits of speech: what each extractor hears.
_WORDS, _PACE, _MELODY = HABITS = ("choice of words", "pace and pauses", "melody")
_HABITS_HEARD = {
    **dict.fromkeys(OF_WORDS, (_WORDS,)),
    **dict.fromkeys(("rhythm", "rhythm-level-free"), (_PACE, _MELODY)),
    "durations": (_PACE,),
}


def unheard_habits(names: Iterable[str]) -> tuple[str, ...]:
    """The habits of speech that none of these extractors hears.

    >>> unheard_habits(["campplus", "durations"]), unheard_habits(["words", "rhythm"])
    (('choice of words', 'melody'), ())
    """
    heard = {habit for name in names for habit in _HABITS_HEARD.get(name, ())}
    return tuple(habit for habit in HABITS if habit not in heard)


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
    """An extractor's result as one float32 vector, or an error that names the extractor."""
    try:
        vector = np.asarray(value, dtype=np.float32).squeeze()
    except (TypeError, ValueError):
        raise VeilmeterError(f"extractor {name} did not return numbers") from None
    if vector.ndim != 1 or not len(vector):
        raise VeilmeterError(f"extractor {name} returned an array of shape {np.shape(value)}, not one vector")
    return vector


def load_extractor(spec: str = DEFAULT, *, offline: bool = False) -> Extractor:
    """The extractor named by `spec`.

    A registered name (`campplus`, `ge2e`, ... come with veilmeter; their weights are fetched once, never with
    `offline`; other packages add theirs under the entry point group `veilmeter.extractors`); `onnx:FILE`, any model
    with the WeSpeaker interface; `wavlm:FOLDER` or `wavlm:FOLDER:LAYER`, a WavLM, wav2vec 2.0 or HuBERT model;
    `whisper:LAYER`, a layer of the recognizer's encoder; `campplus:FILE` or `module:function@FILE`, fine-tuned weights;
    `module:function` or `file.py:function`, your own: a function of samples, or what makes an `Extractor`.
    """
    if spec.startswith("onnx:"):
        from veilmeter.speech.extractors.onnx import load_onnx

        return load_onnx(spec.removeprefix("onnx:"))
    if spec.startswith("wavlm:"):
        from veilmeter.speech.extractors.wavlm import load_wavlm

        return load_wavlm(spec.removeprefix("wavlm:"))
    if spec.startswith("whisper:"):
        from veilmeter.speech.extractors.whisper import load_whisper

        return load_whisper(spec.removeprefix("whisper:"), offline=offline)
    if spec.startswith(GIVEN_TEXTS):
        raise InputError(
            f"{spec}: given texts are used by `assess`, not extracted from a recording",
            fix="remove the colon and what follows it to have recordings transcribed",
        )
    if spec.startswith("campplus:") or "@" in spec:
        from veilmeter.speech.extractors.campplus import FineTunedExtractor

        network, _, file = spec.partition(":" if spec.startswith("campplus:") else "@")
        return FineTunedExtractor(network, file, offline=offline)
    if ":" in spec:
        return _make(spec, *load_object(spec, "extractor"), offline=offline)
    from veilmeter.speech import weights

    return _load_registered(spec, offline, str(weights.cache_folder()), chosen_device())


def device_of_extractor(extractor: Extractor) -> str:
    """`cuda` or `cpu`; one's own function is taken to run on the processor."""
    return str(getattr(extractor, "device", "cpu"))


def embed_pieces(extractor: Extractor, pieces: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """The vector of each piece: in batches on a GPU, and one by one on the processor, where that is as quick and every
    vector is the same whatever it comes with."""
    batch = getattr(extractor, "embed_batch", None)
    if batch is None or device_of_extractor(extractor) == "cpu":
        return [np.asarray(extractor.embed(piece), np.float32) for piece in pieces]
    return [np.asarray(vector, np.float32) for vector in batch(pieces)]


def load_same_extractor(spec: str, version: str, *, offline: bool = False) -> Extractor:
    """What another process has loaded in this version; what this one has must not be kept as that."""
    extractor = load_extractor(spec, offline=offline)
    if (own := version_of(extractor)) != version:
        raise VeilmeterError(
            f"one process has {spec} {version}, another {own}",
            fix="install the same versions on all machines, and do not change them during a run",
        )
    return extractor


@lru_cache(maxsize=4)
def _load_registered(name: str, offline: bool, cache: str, device: str) -> Extractor:
    """Loaded once per process, as it takes a second and an assessment embeds one corpus after the other."""
    return _make(name, EXTRACTORS[name], offline=offline)


def _make(spec: str, thing: Any, module: ModuleType | None = None, *, offline: bool) -> Extractor:
    """An extractor from what was registered, or named in a module: an extractor, what makes one, or a function of
    samples."""
    if isinstance(thing, type) or (callable(thing) and not isinstance(thing, Extractor) and takes_nothing(thing)):
        with foreign_errors(f"extractor {spec} can't be made"):
            thing = thing(offline=offline) if "offline" in parameters_of(thing) else thing()
    if isinstance(thing, Extractor):
        note_origin(thing, module)
        return thing
    if not callable(thing):
        raise InputError(f"extractor {spec} is neither a function nor an extractor")
    with foreign_errors(f"extractor {spec} fails on a second of noise"):
        return FunctionExtractor(spec, source_version(thing, module), thing)
