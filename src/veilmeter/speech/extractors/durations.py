"""How long somebody's phones and pauses last, without voice, melody or level.

Every phone is compared with how long it usually lasts, so that what is said matters little. Statistics become points on
circles, as those of `rhythm` do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import missing_extra
from veilmeter.speech.extractors.rhythm import SPEEDS, on_circles

FRAMES_PER_SECOND = 100
SILENCE = "SIL"
NOISE = "+"  # the first letter of fillers such as +SPN+
LANGUAGE_WEIGHT, PHONE_PENALTY, BEAM = 2.0, 0.3, 1e-10


@dataclass(frozen=True, slots=True)
class Phone:
    """One phone with its duration in seconds; a pause is the phone SIL."""

    name: str
    seconds: float

    @property
    def pause(self) -> bool:
        return self.name == SILENCE


class PhoneAligner:
    """Finds the phones of samples."""

    def __init__(self) -> None:
        try:
            import pocketsphinx
        except ImportError:
            raise missing_extra("pocketsphinx", "audio") from None
        self._sphinx = pocketsphinx
        self.version = f"pocketsphinx-{version('pocketsphinx')}"

    def align(self, samples: NDArray[np.float32]) -> list[Phone]:
        # A new decoder each time: a used one remembers the level of the recording before.
        decoder = self._sphinx.Decoder(
            hmm=self._sphinx.get_model_path(os.path.join("en-us", "en-us")),
            allphone=self._sphinx.get_model_path(os.path.join("en-us", "en-us-phone.lm.bin")),
            lm=None, dict=None, lw=LANGUAGE_WEIGHT, pip=PHONE_PENALTY, beam=BEAM, pbeam=BEAM, loglevel="FATAL",
        )  # fmt: skip
        decoder.start_utt()
        decoder.process_raw((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes(), full_utt=True)
        decoder.end_utt()
        return [
            Phone(segment.word, (segment.end_frame - segment.start_frame + 1) / FRAMES_PER_SECOND)
            for segment in decoder.seg() or ()
        ]


# Part of the version: raise it when the same samples may give other values.
CODE = 1
VOWELS = frozenset(["AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"])
# Mean log2 of seconds in 63 recordings of as many people (LibriSpeech train-clean-100), as PocketSphinx finds them
USUAL = {
    "AA": -3.18, "AE": -3.23, "AH": -4.51, "AO": -3.07, "AW": -2.99, "AY": -3.09, "B": -3.92, "CH": -3.17, "D": -4.05,
    "DH": -3.98, "EH": -3.76, "ER": -3.28, "EY": -3.14, "F": -3.34, "G": -3.65, "HH": -3.37, "IH": -4.24, "IY": -3.32,
    "JH": -3.47, "K": -3.47, "L": -3.5, "M": -3.58, "N": -3.74, "NG": -3.22, "OW": -3.22, "OY": -3.06, "P": -3.56,
    "R": -3.69, "S": -3.06, "SH": -2.84, "T": -3.71, "TH": -3.51, "UH": -4.13, "UW": -3.66, "V": -3.99, "W": -3.33,
    "Y": -3.26, "Z": -3.25, "ZH": -2.79,
}  # fmt: skip
NUMBERS = {name: number for number, name in enumerate(USUAL)}
FEW = 2.0  # phones' worth of "as long as this person's others" beside those of each name
UNIT = 3.0  # per octave: people's phones differ by about a third of one

Floats = NDArray[np.float64]


class DurationsExtractor:
    """An extractor that hears phones' durations and pauses only."""

    name = "durations"

    def __init__(self) -> None:
        self._aligner = PhoneAligner()
        self.version = f"{self._aligner.version}-{CODE}"
        self.dimension = len(duration_features([]))

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        return duration_features(self._aligner.align(samples))


def duration_features(phones: Sequence[Phone]) -> NDArray[np.float32]:
    """Every statistic as a point on circles; those of single phones, which few recordings have many of, on one."""
    statistics = duration_statistics(phones)
    few = len(statistics) - len(USUAL)
    return np.concatenate([on_circles(statistics[:few]), on_circles(statistics[few:], SPEEDS[:1])])


def duration_statistics(phones: Sequence[Phone]) -> Floats:
    """How much longer than usual phones are, all of them, by vowels and consonants, and each; how even; and pauses."""
    spoken = [phone for phone in phones if phone.name in USUAL]
    longer = np.array([np.log2(phone.seconds) - USUAL[phone.name] for phone in spoken] or [0.0])
    numbers = np.array([NUMBERS[phone.name] for phone in spoken] or [0])
    vowels = np.array([phone.name in VOWELS for phone in spoken] or [False])
    mean = float(longer.mean())
    counts = np.bincount(numbers, minlength=len(USUAL))
    by_phone = np.bincount(numbers, longer - mean, len(USUAL)) / (counts + FEW)
    overall = [
        mean,
        _mean(longer[vowels]) - _mean(longer[~vowels]),
        longer.std(),
        _spread(longer[vowels]),
        _spread(longer[~vowels]),
        float(np.abs(np.diff(longer)).mean()) if len(longer) > 1 else 0.0,  # a pairwise variability index
        _before_pauses(phones, mean),
    ]
    return np.concatenate([UNIT * np.array(overall), _pauses(phones), UNIT * by_phone])


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _spread(values: Floats) -> float:
    return float(values.std()) if len(values) else 0.0


def _before_pauses(phones: Sequence[Phone], mean: float) -> float:
    """How much longer phones before a pause are."""
    last = [
        np.log2(phone.seconds) - USUAL[phone.name] - mean
        for phone, after in pairwise(phones)
        if after.pause and phone.name in USUAL
    ]
    return float(np.sum(last)) / (len(last) + FEW)


def _pauses(phones: Sequence[Phone]) -> Floats:
    """Pauses within the recording: how many, how long, how even; and noises such as breath."""
    silent = [phone.pause for phone in phones]
    inner = phones[silent.index(False) : len(silent) - silent[::-1].index(False)] if False in silent else []
    seconds = max(sum(phone.seconds for phone in inner), 0.1)
    lengths = [phone.seconds for phone in inner if phone.pause]
    logs = np.log2(lengths or [0.1])
    noises = sum(phone.seconds for phone in inner if phone.name.startswith(NOISE))
    return np.array(
        [3 * len(lengths) / seconds, 5 * sum(lengths) / seconds, logs.mean(), logs.std(), 5 * noises / seconds]
    )
