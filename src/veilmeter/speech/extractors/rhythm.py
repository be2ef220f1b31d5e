"""Manner of speaking without the sound of the voice: pauses, rate, melody and loudness; or durations of phones alone.

Anonymizers that change the timbre leave these alone. Statistics of one recording are in units in which people differ by
about one, so that none drowns the others. Vectors are compared by their direction, as those of every extractor, so each
statistic becomes a point on circles: a difference is then an angle. Every phone is compared with how long it usually
lasts, so that the words matter little.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.signal import find_peaks

from veilmeter.core.errors import missing_extra
from veilmeter.speech.audio import RATE
from veilmeter.speech.quality import FRAME, FRAME_SECONDS, PitchTracker

# Part of the version: raise it when the same samples may give other values.
CODE = 2
QUIET = 30.0  # dB below the loud parts: a pause
LOUD = 95  # percentile of the frames' levels
SHORTEST_PAUSE = 0.15  # seconds; what is shorter belongs to a consonant
FLOOR = 1e-7  # of full scale
BANDS = ((0.5, 2.0), (2.0, 4.0), (4.0, 8.0), (8.0, 16.0))  # Hz, of the contour of the level
SEMITONES = 12.0
QUANTILES = (10, 50, 90)
SPEEDS = (0.35, 1.0)  # radians per unit

Floats = NDArray[np.float64]


class RhythmExtractor:
    """An extractor that hears timing, melody and loudness only."""

    def __init__(self, name: str = "rhythm", *, offline: bool = False) -> None:
        self.name = name
        self._level = name == "rhythm"
        self._tracker = PitchTracker(offline=offline)
        self.version = f"{self._tracker.version}-{CODE}"
        silence = np.zeros(RATE, np.float32)
        self.dimension = len(rhythm_features(silence, np.zeros(len(silence) // FRAME), level=self._level))

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        return rhythm_features(samples, self._tracker.track(samples), level=self._level)


def load_rhythm(*, offline: bool = False) -> RhythmExtractor:
    return RhythmExtractor(offline=offline)


def load_level_free(*, offline: bool = False) -> RhythmExtractor:
    """Without the level, which distinguishes rooms and microphones as well as people."""
    return RhythmExtractor("rhythm-level-free", offline=offline)


def rhythm_features(
    samples: NDArray[np.float32], pitch: NDArray[np.floating], *, level: bool = True
) -> NDArray[np.float32]:
    """The statistics of a recording as a vector; without `level`, no gain changes it."""
    return on_circles(rhythm_statistics(samples, pitch, level=level))


def on_circles(statistics: Floats, speeds: Sequence[float] = SPEEDS) -> NDArray[np.float32]:
    """Every statistic as a point on circles, by default on a wide one and on a narrow one."""
    angles = np.concatenate([speed * statistics for speed in speeds])
    return np.concatenate([np.cos(angles), np.sin(angles)]).astype(np.float32)


def rhythm_statistics(samples: NDArray[np.float32], pitch: NDArray[np.floating], *, level: bool = True) -> Floats:
    """All statistics of one recording, from its samples and its pitch every 16 ms (0 where nothing is voiced)."""
    levels = frame_levels(samples)
    contour, loud = loudness(levels)
    return np.concatenate([melody(pitch), timing(levels), contour, [loud] if level else []])


def frame_levels(samples: NDArray[np.float32]) -> Floats:
    """The level of every 16 ms in dB below full scale."""
    frames = max(1, len(samples) // FRAME)
    cut = np.zeros(frames * FRAME)
    cut[: min(len(samples), len(cut))] = samples[: len(cut)]
    power: Floats = np.mean(cut.reshape(frames, FRAME) ** 2, axis=1)
    return np.asarray(10 * np.log10(power + FLOOR**2))


def melody(pitch: NDArray[np.floating]) -> Floats:
    """Height, range and movement of the pitch, in octaves, and how long it holds."""
    voiced = pitch > 0
    heights = np.log2(np.where(voiced, pitch, 1.0) / 150.0)[voiced]
    if len(heights) < 5:
        return np.zeros(14)
    low, middle, high = np.percentile(heights, QUANTILES)
    together = voiced[1:] & voiced[:-1]
    steps = np.diff(np.log2(np.where(voiced, pitch, 1.0)))[together] * SEMITONES
    steps = steps if len(steps) else np.zeros(1)
    held = run_lengths(voiced) * FRAME_SECONDS
    gaps = run_lengths(~voiced) * FRAME_SECONDS
    return np.array(
        [
            2 * middle, 2 * low, 2 * high, 3 * (high - low), 5 * heights.std(),
            np.abs(steps).mean(), steps.std(), 2 * steps.mean(), np.percentile(np.abs(steps), 90),
            5 * voiced.mean(), *_durations(held), *_durations(gaps),
        ]
    )  # fmt: skip


def timing(level: Floats) -> Floats:
    """Pauses, stretches of speech, and the beats of syllables: how many, how long, how even."""
    spoken = close_gaps(level > np.percentile(level, LOUD) - QUIET, round(SHORTEST_PAUSE / FRAME_SECONDS))
    seconds = max(len(level) * FRAME_SECONDS, 1e-3)
    inner = np.flatnonzero(spoken)
    core = spoken[inner[0] : inner[-1] + 1] if len(inner) else spoken
    pauses = run_lengths(~core) * FRAME_SECONDS
    stretches = run_lengths(core) * FRAME_SECONDS
    smooth = np.convolve(level, np.hanning(9)[1:-1] / np.hanning(9).sum(), "same")
    beats, _ = find_peaks(smooth, prominence=3.0, distance=4)
    beats = beats[spoken[beats]]
    between = np.diff(beats) * FRAME_SECONDS
    between = between[between < 0.6]
    rate = len(beats) / max(float(spoken.sum()) * FRAME_SECONDS, 0.1)
    spread = float(between.std() / between.mean()) if len(between) > 1 else 0.0
    return np.array(
        [
            rate, 5 * (1 - core.mean()) if len(core) else 0.0, 3 * len(pauses) / seconds, *_durations(pauses),
            *_durations(stretches), *_durations(between), 5 * spread,
        ]
    )  # fmt: skip


def loudness(level: Floats) -> tuple[Floats, float]:
    """The contour of the level: its spread and its rhythm, which no gain changes; and the level itself."""
    loud = float(np.percentile(level, LOUD))
    relative = np.maximum(level - loud, -60.0)
    power = np.abs(np.fft.rfft(relative - relative.mean())) ** 2
    frequencies = np.fft.rfftfreq(len(relative), FRAME_SECONDS)
    bands = np.array([power[(frequencies >= low) & (frequencies < high)].sum() for low, high in BANDS]) + 1e-6
    shape = np.log(bands / bands.sum())
    return np.concatenate([np.percentile(relative, QUANTILES) / 6, [relative.std() / 3], 2 * shape]), loud / 6


def run_lengths(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The lengths of the stretches of True.

    >>> run_lengths(np.array([True, True, False, True])).tolist()
    [2, 1]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return edges[1::2] - edges[::2]


def close_gaps(flags: NDArray[np.bool_], longest: int) -> NDArray[np.bool_]:
    """With gaps of fewer than `longest` frames filled.

    >>> close_gaps(np.array([True, False, True, False, False, True]), 2).tolist()
    [True, True, True, False, False, True]
    """
    filled = flags.copy()
    edges = np.flatnonzero(np.diff(np.concatenate([[True], flags, [True]])))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        inside = start > 0 and end < len(flags)
        if inside and end - start < longest:
            filled[start:end] = True
    return filled


def _durations(seconds: NDArray[np.floating]) -> Floats:
    """Mean and spread of the logarithm of durations."""
    logs = np.log2(np.maximum(seconds, 0.01)) if len(seconds) else np.zeros(1)
    return np.array([2 * logs.mean(), 2 * logs.std()])


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
DURATIONS_CODE = 1
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


class DurationsExtractor:
    """An extractor that hears phones' durations and pauses only."""

    name = "durations"

    def __init__(self) -> None:
        self._aligner = PhoneAligner()
        self.version = f"{self._aligner.version}-{DURATIONS_CODE}"
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
