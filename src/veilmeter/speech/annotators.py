"""The models that come with veilmeter as annotators: transcripts, predicted quality, pitch and level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.user_code import version_of
from veilmeter.speech.annotations import Annotator, Values
from veilmeter.speech.pitch import PitchTracker
from veilmeter.speech.quality import QualityModels
from veilmeter.speech.recognizers.base import load_recognizer

_BLOCK = 1 << 20  # samples squared at once: those of an hour would take half a gigabyte


class TranscriptAnnotator:
    """A recognizer; the version holds its language too."""

    def __init__(self, spec: str, language: str, *, offline: bool = False) -> None:
        self._recognizer = load_recognizer(spec, language, offline=offline)
        self.name = f"transcripts-{self._recognizer.name}-{self._recognizer.language}"
        self.version = version_of(self._recognizer)

    def annotate(self, samples: NDArray[np.float32]) -> Values:
        heard = self._recognizer.transcribe(samples)
        return {"text": heard.text, "confidence": heard.confidence}


class QualityAnnotator:
    """Predicted ratings."""

    name = "quality"

    def __init__(self, *, offline: bool = False) -> None:
        self._models = QualityModels(offline=offline)
        self.version = self._models.version

    def annotate(self, samples: NDArray[np.float32]) -> Values:
        return asdict(self._models.rate(samples))


class VoiceAnnotator:
    """Pitch in Hertz every 16 ms (0: unvoiced), and the level in dB below full scale."""

    name = "pitch"

    def __init__(self, *, offline: bool = False) -> None:
        self._tracker = PitchTracker(offline=offline)
        self.version = f"{self._tracker.version}-1"

    def annotate(self, samples: NDArray[np.float32]) -> Values:
        squares = (np.square(samples[i : i + _BLOCK], dtype=np.float64).sum() for i in range(0, len(samples), _BLOCK))
        power = float(sum(squares)) / len(samples)
        track = self._tracker.track(samples)
        return {"pitch": [round(float(hertz), 1) for hertz in track], "level": 10 * float(np.log10(max(power, 1e-12)))}


def transcripts(spec: str, language: str, *, offline: bool = False) -> Callable[[], Annotator]:
    return partial(TranscriptAnnotator, spec, language, offline=offline)


def ratings(*, offline: bool = False) -> Callable[[], Annotator]:
    return partial(QualityAnnotator, offline=offline)


def voices(*, offline: bool = False) -> Callable[[], Annotator]:
    return partial(VoiceAnnotator, offline=offline)
