"""The source's rhythm and melody, without its tempo, height and range, for a synthesizer to speak with.

PocketSphinx finds when each phone was spoken, given the words. Durations are divided by the recording's mean, and the
logarithm of the pitch is standardized over the recording; the pseudo-voice's own means and spread take their place. So
how somebody lengthens and stresses is kept, and how fast and how high they speak is not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers.cascade.phones import STRESSES, Word
from veilmeter.anonymizers.cascade.voices import UNVOICED, Floats, Integers
from veilmeter.core.errors import missing_extra
from veilmeter.speech.audio import RATE
from veilmeter.speech.quality import FRAME, PitchTracker

# Part of the version: raise it when the same speech may give another prosody.
CODE = 1
BEAM = 1e-100  # wide: the words are known, so there is little to search
SECONDS_PER_FRAME = 0.01  # of the aligner
SHORTEST_PAUSE = 0.2  # seconds; what is shorter belongs to a consonant
LEAST, MOST = 0.3, 4.0  # of a phone's duration, as a multiple of the mean
WIDEST = 2.5  # standard deviations of the pitch
VOICED = 2 * UNVOICED  # hertz; below, a synthesizer's melody is on its way to silence

# Kokoro's phones as those of PocketSphinx's acoustic model
SPHINX = {
    "A": "EY", "I": "AY", "O": "OW", "Q": "OW", "W": "AW", "Y": "OY", "a": "AA", "e": "EY", "i": "IY", "o": "OW",
    "u": "UW", "y": "IY", "æ": "AE", "ɑ": "AA", "ɐ": "AH", "ɒ": "AA", "ɔ": "AO", "ə": "AH", "ɚ": "ER", "ɛ": "EH",
    "ɜ": "ER", "ɪ": "IH", "ʊ": "UH", "ʌ": "AH", "ᵊ": "AH", "ᵻ": "IH", "b": "B", "d": "D", "f": "F", "h": "HH",
    "j": "Y", "k": "K", "l": "L", "m": "M", "n": "N", "p": "P", "r": "R", "s": "S", "t": "T", "T": "D", "v": "V",
    "w": "W", "x": "K", "z": "Z", "ð": "DH", "ŋ": "NG", "ɡ": "G", "ɹ": "R", "ɾ": "D", "ʃ": "SH", "ʒ": "ZH", "ʤ": "JH",
    "ʧ": "CH", "θ": "TH",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spoken:
    """When a word was spoken: begin and end of each of its phones in seconds, and the pause behind it."""

    phones: tuple[tuple[float, float], ...]
    pause: float = 0.0


def align(words: Sequence[Word], samples: NDArray[np.float32]) -> list[Spoken] | None:
    """When each word was spoken; None if the words and the speech don't fit together."""
    try:
        import pocketsphinx
    except ImportError:
        raise missing_extra("pocketsphinx", "audio") from None
    # A new decoder each time: a used one remembers the level of the recording before.
    decoder = pocketsphinx.Decoder(
        hmm=pocketsphinx.get_model_path(os.path.join("en-us", "en-us")), lm=None, dict=None, bestpath=False,
        beam=BEAM, pbeam=BEAM, wbeam=BEAM, loglevel="FATAL",
    )  # fmt: skip
    names: dict[str, str] = {}
    for word in words:
        phones = " ".join(SPHINX[phone] for phone in word.phones if phone in SPHINX)
        if phones and phones not in names:
            names[phones] = f"w{len(names)}"
            decoder.add_word(names[phones], phones, True)
    spoken = [" ".join(SPHINX[phone] for phone in word.phones if phone in SPHINX) for word in words]
    audio = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    try:
        decoder.set_align_text(" ".join(names[phones] for phones in spoken if phones))
        _decode(decoder, audio)
        decoder.set_alignment()
        _decode(decoder, audio)
        found = [(entry.name, [(phone.start, phone.duration) for phone in entry]) for entry in decoder.get_alignment()]
    except (RuntimeError, TypeError, ValueError):  # it found no way through the words
        return None
    return _by_word(spoken, found)


def _decode(decoder: object, audio: bytes) -> None:
    decoder.start_utt()  # type: ignore[attr-defined]
    decoder.process_raw(audio, full_utt=True)  # type: ignore[attr-defined]
    decoder.end_utt()  # type: ignore[attr-defined]


def _by_word(words: Sequence[str], found: Sequence[tuple[str, list[tuple[int, int]]]]) -> list[Spoken] | None:
    """The aligner's entries, which have silences between the words, one per word."""
    spoken: list[Spoken] = []
    rest = iter(found)
    entry = next(rest, None)
    for phones in words:
        if not phones:
            spoken.append(Spoken(()))
            continue
        while entry is not None and not entry[0].startswith("w"):
            entry = next(rest, None)
        if entry is None or len(entry[1]) != len(phones.split()):
            return None
        edges = tuple((start * SECONDS_PER_FRAME, (start + length) * SECONDS_PER_FRAME) for start, length in entry[1])
        entry = next(rest, None)
        pause = 0.0
        while entry is not None and not entry[0].startswith("w"):
            pause += sum(length for _, length in entry[1]) * SECONDS_PER_FRAME
            entry = next(rest, None)
        spoken.append(Spoken(edges, pause if pause >= SHORTEST_PAUSE else 0.0))
    return spoken


@dataclass(frozen=True, eq=False)
class Contour:
    """The standardized logarithm of the pitch over time, interpolated where speech is unvoiced."""

    times: Floats
    heights: Floats

    @classmethod
    def of(cls, samples: NDArray[np.float32], tracker: PitchTracker) -> Contour:
        pitch = tracker.track(samples).astype(np.float64)
        voiced = np.flatnonzero(pitch > 0)
        if len(voiced) < 5:
            return cls(np.zeros(1), np.zeros(1))
        logs = np.log(pitch[voiced])
        spread = max(float(logs.std()), 1e-3)
        heights = np.clip((logs - logs.mean()) / spread, -WIDEST, WIDEST)
        return cls((voiced + 0.5) * FRAME / RATE, heights)

    def at(self, times: Floats) -> Floats:
        return np.interp(times, self.times, self.heights)


@dataclass(frozen=True, eq=False)
class SourceProsody:
    """How to speak `phones`, a sentence. `spans` has one entry per phone: when it was spoken, None for a
    stress, a blank or a mark. `mean` is the mean duration of a phone in the recording. Without a contour the melody is
    the synthesizer's own, without `rhythm` the durations are."""

    phones: str
    spans: Sequence[tuple[float, float] | None]
    mean: float
    rhythm: bool
    contour: Contour | None = None
    _groups: list[tuple[int, int]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """A stress belongs to the phone behind it; blanks and marks stay alone."""
        first = 0
        for place, (phone, span) in enumerate(zip(self.phones, self.spans, strict=True)):
            if span is not None:
                self._groups.append((first, place))
            if span is not None or phone not in STRESSES:
                first = place + 1

    def durations(self, own: Integers) -> Integers:
        """With a silence at each end, which stays as it is, like blanks and marks."""
        if not self.rhythm or not self._groups:
            return own
        given = own.copy()
        usual = np.mean([own[first + 1 : last + 2].sum() for first, last in self._groups])
        error = 0.0  # carried on, so that rounding does not change the tempo
        for first, last in self._groups:
            span = self.spans[last]
            assert span is not None
            relative = np.clip((span[1] - span[0]) / self.mean, LEAST, MOST)
            wanted = relative * usual + error
            before = given[first + 1 : last + 1]
            before[:] = np.minimum(before, 1)
            given[last + 1] = max(1, round(wanted - int(before.sum())))
            error = float(np.clip(wanted - int(before.sum()) - given[last + 1], -1.0, 1.0))
        return given

    def melody(self, own: Floats, durations: Integers) -> Floats:
        if self.contour is None or not self._groups:
            return own
        ends = np.cumsum(durations) * 2
        here: list[float] = []
        there: list[float] = []
        for first, last in self._groups:
            span = self.spans[last]
            assert span is not None
            here += [float(ends[first]), float(ends[last + 1]) - 0.01]
            there += [span[0], span[1]]
        heights = self.contour.at(np.interp(np.arange(len(own)) + 0.5, here, there))
        voiced = own > VOICED
        if not voiced.any():
            return own
        logs = np.log(own[voiced])
        return np.where(voiced, np.exp(logs.mean() + logs.std() * heights), own)
