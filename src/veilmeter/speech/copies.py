"""Copies: the same recording under two ids, and anonymized speech that is the original with another level or delay.

Recordings are compared by correlation where they are aligned best, whatever gain and delay lie between them, stretch by
stretch, in the band below 2 kHz, which survives lossy codecs. Among many recordings fingerprints (Haitsma and Kalker
2002) find the few pairs to compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Here, map_ordered
from veilmeter.core.intervals import far_outliers
from veilmeter.data.corpus import Utterance
from veilmeter.speech.audio import AudioError, read_audio

Samples = NDArray[np.float32]

RATE = 4000  # what is compared is resampled to this
STRETCH = 1.0  # seconds compared at once
MOST_STRETCHES = 8
UNCHANGED = 0.95  # a stretch of which 0.9 of the energy is the original's
_ELSEWHERE, _NEIGHBORS = 0.9, RATE // 40  # a voice repeats itself within 25 ms, and never so well later
_FRAME, _HOP, _BANDS = 1480, 46, 33  # fingerprints: 0.37 s, every 11.5 ms, 32 differences of 33 bands
_COMMON = 64  # a word that more frames have, as that of a steady tone, says nothing
_VOTES = 10  # frames that two recordings share at one offset before they are compared


@dataclass(frozen=True, slots=True)
class Correlation:
    """How alike two signals are where they fit best: `delay` is that of the second in seconds, `gain` its factor;
    `elsewhere` is how well they fit at any other delay. A steady tone fits everywhere, which says nothing."""

    value: float
    delay: float
    gain: float
    elsewhere: float = 0.0

    @property
    def is_copy(self) -> bool:
        return abs(self.value) >= UNCHANGED and self.elsewhere < _ELSEWHERE * abs(self.value)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """One anonymized recording beside its original: how many of the stretches compared are still there."""

    stretches: int
    unchanged: int
    median: Correlation

    @property
    def is_copy(self) -> bool:
        """At least half of it is the original."""
        return self.stretches > 0 and 2 * self.unchanged >= self.stretches


@dataclass(frozen=True, slots=True)
class CopyPair:
    """Two ids with one recording, and the correlation of the two."""

    first: str
    second: str
    correlation: float


def band_limited(samples: Samples, rate: int) -> Samples:
    """Samples at 4 kHz, so that what codecs change most is not compared."""
    from scipy.signal import resample_poly

    if rate == RATE:
        return np.asarray(samples, np.float32)
    shared = int(np.gcd(rate, RATE))
    return np.asarray(resample_poly(np.asarray(samples, np.float32), RATE // shared, rate // shared), np.float32)


def best_correlation(stretch: Samples, signal: Samples) -> Correlation:
    """The greatest correlation of a stretch with any equally long part of a signal, beyond its ends as if it were
    silent there; the sign does not count, as an inverted copy is a copy."""
    from scipy.fft import irfft, next_fast_len, rfft

    a, b = np.asarray(stretch, np.float64), np.asarray(signal, np.float64)
    energy = float(a @ a)
    if energy == 0 or not len(b):
        return Correlation(0.0, 0.0, 0.0)
    size = next_fast_len(len(a) + len(b) - 1, real=True)
    # products[k]: the stretch begins at sample k - (len(a) - 1) of the signal
    products = irfft(np.conj(rfft(a, size)) * rfft(b, size), size)
    products = np.concatenate([products[size - len(a) + 1 :], products[: len(b)]])
    sums = np.concatenate([[0.0], np.cumsum(b * b)])
    starts = np.arange(len(products)) - (len(a) - 1)
    under = sums[np.clip(starts + len(a), 0, len(b))] - sums[np.clip(starts, 0, len(b))]
    floor = max(float(under.max()) * 1e-6, 1e-20)  # silence correlates with anything
    values = np.where(under > floor, products / np.sqrt(energy * np.maximum(under, floor)), 0.0)
    strength = np.abs(values)
    best = int(np.argmax(strength))
    near = slice(max(0, best - _NEIGHBORS), best + _NEIGHBORS + 1)
    strength[near] = 0
    begin = int(starts[best])
    value, shift = float(values[best]), 0.0
    if 0 <= begin <= len(b) - len(a):
        value, shift = _between_samples(a, b[begin : begin + len(a)], value)
    gain = value * float(np.sqrt(max(under[best], floor) / energy))
    return Correlation(value, (begin + shift) / RATE, gain, float(strength.max()))


def _between_samples(a: NDArray[np.float64], b: NDArray[np.float64], value: float) -> tuple[float, float]:
    """The correlation where it is greatest within half a sample, and by how much `b` is later there: a delay is seldom
    a whole number of samples."""
    from scipy.fft import irfft, rfft

    shifts = np.linspace(-0.5, 0.5, 9)
    turned = np.exp(-2j * np.pi * np.fft.rfftfreq(len(a))[None, :] * shifts[:, None])
    dots = irfft(rfft(a) * turned, len(a), axis=1) @ b
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    best = int(np.argmax(np.abs(dots)))
    correlation = float(dots[best]) / norm if norm else 0.0
    return (correlation, float(shifts[best])) if abs(correlation) > abs(value) else (value, 0.0)


def find_unchanged(original: Samples, anonymized: Samples, rate: int = 16_000) -> Unchanged:
    """The loudest stretches of the original, sought anywhere in the anonymized recording."""
    a, b = band_limited(original, rate), band_limited(anonymized, rate)
    length = min(int(STRETCH * RATE), len(a))
    places = _loudest(a, length)
    unchanged = []
    for start in places:
        match = best_correlation(a[start : start + length], b)
        unchanged.append(replace(match, delay=match.delay - start / RATE))
    if not unchanged:
        return Unchanged(0, 0, Correlation(0.0, 0.0, 0.0))
    unchanged.sort(key=lambda match: abs(match.value))
    return Unchanged(len(unchanged), sum(match.is_copy for match in unchanged), unchanged[len(unchanged) // 2])


def _loudest(samples: Samples, length: int) -> list[int]:
    """Where the loudest stretches begin that do not overlap, at most eight; silent ones are none."""
    if not length:
        return []
    count = len(samples) // length
    energies = np.square(samples[: count * length].astype(np.float64)).reshape(count, length).sum(axis=1)
    order = np.argsort(-energies, kind="stable")[:MOST_STRETCHES]
    return sorted(int(i) * length for i in order if energies[i] > 1e-4 * energies.max())


def fingerprint(samples: Samples, rate: int = 16_000) -> NDArray[np.uint32]:
    """One word of 32 bits per 11.5 ms: whether the energy difference of neighboring bands rises. Gain does not matter,
    a delay shifts the words, codecs turn few bits."""
    x = band_limited(samples, rate)
    if len(x) < _FRAME + _HOP:
        return np.zeros(0, np.uint32)
    frames = np.lib.stride_tricks.sliding_window_view(x, _FRAME)[::_HOP]
    window = np.hanning(_FRAME).astype(np.float32)
    edges = np.round(np.geomspace(300, 1900, _BANDS + 1) / RATE * 2048).astype(int)
    bands = np.empty((len(frames), _BANDS))
    for start in range(0, len(frames), 512):  # a piece at a time: overlapping frames are 32 times the signal
        spectrum = np.square(np.abs(np.fft.rfft(frames[start : start + 512] * window, 2048, axis=1)))
        bands[start : start + 512] = np.add.reduceat(spectrum[:, : edges[-1]], edges[:-1], axis=1)
    differences = np.diff(np.diff(bands, axis=1), axis=0) > 0
    words = np.packbits(differences, axis=1).view(">u4").ravel().astype(np.uint32)
    heard = bands.sum(axis=1)[1:] > 1e-6 * bands.sum(axis=1).max()
    return np.where(heard, words, np.uint32(0))


def likely_copies(
    first: Mapping[str, NDArray[np.uint32]], second: Mapping[str, NDArray[np.uint32]]
) -> list[tuple[str, str]]:
    """Pairs of ids whose fingerprints agree at one offset often enough to be worth comparing."""
    ours, theirs = list(first), list(second)
    words_a, owner_a, frame_a = _flatten([first[name] for name in ours])
    words_b, owner_b, frame_b = _flatten([second[name] for name in theirs])
    order = np.argsort(words_b, kind="stable")
    ordered = words_b[order]
    low, high = (np.searchsorted(ordered, words_a, side=side) for side in ("left", "right"))
    hits = high - low
    hits[(hits > _COMMON) | (words_a == 0)] = 0
    rows = np.repeat(np.arange(len(words_a)), hits)
    if not len(rows):
        return []
    within = np.arange(len(rows)) - np.repeat(np.cumsum(hits) - hits, hits)
    partners = order[low[rows] + within]
    offsets = (frame_b[partners] - frame_a[rows]) // 3  # copies that begin between two frames differ by one
    votes = np.stack([owner_a[rows], owner_b[partners], offsets])
    distinct, counts = np.unique(votes, axis=1, return_counts=True)
    pairs = dict.fromkeys((int(i), int(j)) for i, j, _ in distinct[:, counts >= _VOTES].T)
    return [(ours[i], theirs[j]) for i, j in pairs]


def _flatten(prints: Sequence[NDArray[np.uint32]]) -> tuple[NDArray[np.uint32], NDArray[np.intp], NDArray[np.intp]]:
    """All words with the number of their recording and of their frame."""
    lengths = np.array([len(words) for words in prints], np.intp)
    words = np.concatenate([*prints, np.zeros(0, np.uint32)])
    owner = np.repeat(np.arange(len(prints)), lengths)
    frame = np.arange(len(words)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return words, owner, frame


LEAST_COMPARED = 20  # recordings: among fewer nothing stands out
MUCH_ALIKE = 0.75  # correlation: more than half of the energy is the original's
LONGEST = 120.0  # seconds of a recording that are compared: a copy shows in two minutes


@dataclass(frozen=True, slots=True)
class UnchangedSpeech:
    """The ids of anonymized recordings that are their original but for level, delay or coding, of how many compared;
    `parts` are those of which only some stretch is, `outliers` others that are far more like it than most are."""

    compared: int
    copies: tuple[str, ...]
    parts: tuple[str, ...]
    outliers: tuple[str, ...] = ()


def find_unchanged_speech(
    pairs: Sequence[tuple[Utterance, Utterance]], engine: Engine | None = None
) -> UnchangedSpeech:
    """Original and anonymized recordings beside each other; ids are those of the originals."""
    results = map_ordered(engine or Here(), _compare, pairs)
    heard = [(pair[0].id, result) for pair, result in zip(pairs, results, strict=True) if result is not None]
    copies = tuple(name for name, result in heard if result.is_copy)
    parts = tuple(name for name, result in heard if result.unchanged and not result.is_copy)
    likeness = np.array([abs(result.median.value) for _, result in heard])
    far = far_outliers(likeness) & (likeness > MUCH_ALIKE) & (len(heard) >= LEAST_COMPARED)
    outliers = tuple(name for (name, result), is_far in zip(heard, far, strict=True) if is_far and not result.is_copy)
    return UnchangedSpeech(len(heard), copies, parts, outliers)


def same_recordings(
    first: Sequence[Utterance], second: Sequence[Utterance], engine: Engine | None = None
) -> list[CopyPair]:
    """Recordings of the second set that are, but for level, delay or coding, one of the first under another id, such as
    one of the trials among the enrollment. Fingerprints find the pairs that are compared."""
    here = engine or Here()
    utterances = {u.id: u for u in (*first, *second)}
    prints = dict(zip(utterances, map_ordered(here, _fingerprint, list(utterances.values())), strict=True))
    sides = ({u.id: prints[u.id] for u in side} for side in (first, second))
    pairs = [(a, b) for a, b in likely_copies(*sides) if a != b]
    results = map_ordered(here, _compare, [(utterances[a], utterances[b]) for a, b in pairs])
    copies: dict[str, CopyPair] = {}
    for (a, b), result in zip(pairs, results, strict=True):
        if result is not None and result.is_copy:
            copies.setdefault(b, CopyPair(a, b, abs(result.median.value)))
    return list(copies.values())


def _samples(utterance: Utterance) -> NDArray[np.float32] | None:
    """The beginning of a recording; None where it can't be used, which others say."""
    try:
        return read_audio(utterance.path, stretch=utterance.stretch, allow=("short",))[: int(LONGEST * 16_000)]
    except AudioError:
        return None


def _compare(pair: tuple[Utterance, Utterance]) -> Unchanged | None:
    original, other = _samples(pair[0]), _samples(pair[1])
    return None if original is None or other is None else find_unchanged(original, other)


def _fingerprint(utterance: Utterance) -> NDArray[np.uint32]:
    samples = _samples(utterance)
    return np.zeros(0, np.uint32) if samples is None else fingerprint(samples)
