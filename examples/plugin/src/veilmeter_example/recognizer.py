"""A recognizer: it writes down how many seconds it heard, in any language."""

import numpy as np
from numpy.typing import NDArray

from veilmeter.speech.recognizers.base import ANY, RecognizerKind, Transcript


class Counting:
    name, version = "counting", "1"

    def __init__(self, language: str) -> None:
        self.language = language

    def transcribe(self, samples: NDArray[np.float32]) -> Transcript:
        return Transcript(" ".join(["second"] * round(len(samples) / 16_000)))


def load(language: str, *, offline: bool = False) -> Counting:
    return Counting(language)


KIND = RecognizerKind(languages=(ANY,), load=load)
