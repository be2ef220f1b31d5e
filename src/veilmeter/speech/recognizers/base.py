"""The interface of recognizers, how one is found by name, and the choice of its language."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, VeilmeterError, foreign_errors, need
from veilmeter.core.files import scratch_folder
from veilmeter.core.processes import Program
from veilmeter.core.registry import Registry
from veilmeter.core.user_code import load_object, note_origin, source_version, takes_nothing
from veilmeter.speech.audio import RATE, write_audio

TIMEOUT = 600.0


class CommandRecognizer:
    """`{input}` stands for the path of a 16-bit WAV file of one channel at 16 kHz, `{language}` for the language. All
    that the program prints on standard output is the text."""

    def __init__(self, command: str, language: str, timeout: float = TIMEOUT) -> None:
        self._program = Program.parse(command, known=("input", "language"), needed=("input",), timeout=timeout)
        self.name = "command"
        line = "\0".join(self._program.arguments).encode("utf-8", "surrogateescape")
        self.version = f"{self._program.version}-{hashlib.sha256(line).hexdigest()[:12]}"
        self.language = language

    def transcribe(self, samples: Samples) -> Transcript:
        with scratch_folder() as folder:
            source = folder / "input.wav"
            write_audio(source, samples)
            printed = self._program.run({"input": source, "language": self.language}, folder)
        return Transcript(" ".join(printed.split()))


DEFAULT = "moonshine"
MULTILINGUAL = "whisper"
ANY = "any"  # a recognizer that takes any language

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcribed text. `confidence` is the geometric mean of the probabilities of its tokens, the end included; None
    where a recognizer does not say."""

    text: str
    confidence: float | None = None


@runtime_checkable
class Recognizer(Protocol):
    """Turns 16 kHz mono samples of any length into text.

    `version` changes whenever the same samples may give another text; `language` is the one it transcribes.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def language(self) -> str: ...

    def transcribe(self, samples: Samples) -> Transcript: ...


USUAL_COST = 0.05


@dataclass(frozen=True, slots=True)
class RecognizerKind:
    """An entry of the registry: the languages that there are, how to load a recognizer for one of them, and what it
    costs: processor seconds per second of speech, on an ordinary core."""

    languages: tuple[str, ...]
    load: Callable[..., Recognizer]  # load(language, offline=...)
    cost: float = USUAL_COST


RECOGNIZERS: Registry[RecognizerKind] = Registry(
    "recognizer",
    "veilmeter.recognizers",
    {
        "moonshine": "veilmeter.speech.recognizers.moonshine:KIND",
        "whisper": "veilmeter.speech.recognizers.whisper:KIND",
    },
    accepts=lambda thing: isinstance(thing, RecognizerKind),
)


def load_recognizer(spec: str = DEFAULT, language: str = "en", *, offline: bool = False) -> Recognizer:
    """The recognizer named by `spec`, for a language such as `en`.

    `moonshine` (English) and `whisper` (99 languages) come with veilmeter, their weights are fetched once, never with
    `offline`. `command:PROGRAM {input}` prints what it hears in a WAV file. A name registered in the entry point group
    `veilmeter.recognizers`, or `module:function` (or `file.py:function`), is your own: a function of samples that gives
    text, or what makes a `Recognizer`.
    """
    if spec.startswith("command:"):
        return CommandRecognizer(spec.removeprefix("command:"), language)
    if ":" in spec and spec not in RECOGNIZERS:
        return _own(spec, language)
    refuse_recognizer(spec, language)
    return _load(spec, language, offline, _cache())


def refuse_recognizer(spec: str, language: str) -> None:
    """Refuse a registered recognizer that does not know the language, or whose library is not installed."""
    if spec not in RECOGNIZERS:
        return
    kind = RECOGNIZERS[spec]
    if ANY not in kind.languages and language not in kind.languages:
        others = [name for name, other in RECOGNIZERS.items() if language in other.languages]
        listed = ", ".join(kind.languages) if len(kind.languages) < 10 else f"{len(kind.languages)} languages"
        raise InputError(
            f"{spec} recognizes {listed}, not {language!r}",
            fix=f"choose --recognizer {others[0]}" if others else "bring one with --recognizer module:function",
        )
    if spec == MULTILINGUAL:
        need("ctranslate2")


def recognizer_cost(spec: str) -> float:
    """Processor seconds per second of speech; of one that is not registered, what a registered one takes by default."""
    return RECOGNIZERS[spec].cost if spec in RECOGNIZERS else USUAL_COST


@lru_cache(maxsize=2)
def _load(spec: str, language: str, offline: bool, cache: str) -> Recognizer:
    """Once per process: a model takes seconds to load."""
    return RECOGNIZERS[spec].load(language, offline=offline)


def _cache() -> str:
    from veilmeter.speech.weights import cache_folder

    return str(cache_folder())


class FunctionRecognizer:
    """A user's function of samples (float32, 16 kHz) as a recognizer; its module's source is its version."""

    def __init__(self, name: str, version: str, language: str, function: Callable[[Samples], Any]) -> None:
        self.name, self.version, self.language = name, version, language
        self._function = function

    def transcribe(self, samples: Samples) -> Transcript:
        heard = self._function(samples)
        if isinstance(heard, Transcript):
            return heard
        if not isinstance(heard, str):
            raise VeilmeterError(f"recognizer {self.name} gave a {type(heard).__name__}, not text")
        return Transcript(" ".join(heard.split()))


def _own(spec: str, language: str) -> Recognizer:
    """A user's object: a recognizer, a class or function that makes one, or a function of samples."""
    recognizer, module = load_object(spec, "recognizer")
    if isinstance(recognizer, type) or (
        callable(recognizer) and not isinstance(recognizer, Recognizer) and takes_nothing(recognizer)
    ):
        with foreign_errors(f"recognizer {spec} can't be made"):
            recognizer = recognizer()
    if isinstance(recognizer, Recognizer):
        if recognizer.language not in (language, ANY):
            raise InputError(f"recognizer {spec} transcribes {recognizer.language!r}, not {language!r}")
        note_origin(recognizer, module)
        return recognizer
    if not callable(recognizer):
        raise InputError(f"recognizer {spec} is neither a function nor a recognizer")
    return FunctionRecognizer(spec, source_version(recognizer, module), language, recognizer)


_FRAME = RATE // 50


def cut_at_pauses(samples: Samples, longest: float) -> Iterator[Samples]:
    """Consecutive stretches of at most `longest` seconds, cut where it is quietest in their second half.

    >>> [len(piece) for piece in cut_at_pauses(np.ones(16_000 * 5, np.float32), 10.0)]
    [80000]
    """
    most = int(longest * RATE) // _FRAME
    start = 0
    while (len(samples) - start) > most * _FRAME:
        stretch = samples[start + most // 2 * _FRAME : start + most * _FRAME]
        frames = stretch[: len(stretch) // _FRAME * _FRAME].reshape(-1, _FRAME)
        power = np.einsum("ij,ij->i", frames, frames, dtype=np.float64)
        # A pause lasts a fifth of a second; a single quiet frame may be the closure of a plosive.
        smooth = np.convolve(power, np.ones(9), "same")
        cut = start + (most // 2 + int(smooth[4:-4].argmin()) + 4) * _FRAME
        yield samples[start:cut]
        start = cut
    yield samples[start:]


def join_transcripts(heard: Sequence[Transcript], tokens: Sequence[int]) -> Transcript:
    """The transcript of consecutive stretches; the confidence is that over all their tokens."""
    text = " ".join(part.text for part in heard if part.text)
    known = [(part.confidence, count) for part, count in zip(heard, tokens, strict=True) if part.confidence is not None]
    total = sum(count for _, count in known)
    if not total:
        return Transcript(text)
    return Transcript(text, float(np.exp(sum(np.log(max(c, 1e-30)) * count for c, count in known) / total)))
