"""Recordings compared with each other over whole corpora: what is still the original, and what is there twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Here, ordered
from veilmeter.data.copies import (
    CopiesFound,
    CopyPair,
    Unchanged,
    fingerprint,
    likely_copies,
    unchanged_stretches,
)
from veilmeter.data.corpus import Utterance
from veilmeter.speech.audio import AudioError, read_audio

LONGEST = 120.0  # seconds of a recording that are compared: a copy shows in two minutes
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class UnchangedSpeech:
    """How many anonymized recordings are their original but for level, delay or coding, of how many compared; `parts`
    counts those of which some stretch is. `examples` are ids with the correlation."""

    compared: int
    copies: int
    parts: int
    examples: tuple[tuple[str, float], ...] = ()


def unchanged_speech(
    pairs: Sequence[tuple[Utterance, Utterance]], engine: Engine | None = None, *, most: int | None = None
) -> UnchangedSpeech:
    """Original and anonymized recordings beside each other, all or `most` of them evenly spread."""
    chosen = _spread(pairs, most)
    results = ordered(engine or Here(), _compare, chosen)
    heard = [(pair[0].id, result) for pair, result in zip(chosen, results, strict=True) if result is not None]
    copies = [(name, round(abs(result.median.value), 4)) for name, result in heard if result.is_copy]
    parts = sum(result.unchanged > 0 for _, result in heard)
    return UnchangedSpeech(len(heard), len(copies), parts, tuple(copies[:_SHOWN]))


def same_recordings(
    first: Sequence[Utterance], second: Sequence[Utterance], engine: Engine | None = None
) -> CopiesFound:
    """Recordings of the second set that are, but for level, delay or coding, one of the first under another id, such as
    one of the trials among the enrollment. Fingerprints find the pairs that are compared."""
    here = engine or Here()
    utterances = {u.id: u for u in (*first, *second)}
    prints = dict(zip(utterances, ordered(here, _fingerprint, list(utterances.values())), strict=True))
    names = ([u.id for u in first], [u.id for u in second])
    likely = likely_copies(*({name: prints[name] for name in side} for side in names))
    pairs = [(a, b) for a, b in likely if a != b]
    results = ordered(here, _compare, [(utterances[a], utterances[b]) for a, b in pairs])
    found: dict[str, CopyPair] = {}
    for (a, b), result in zip(pairs, results, strict=True):
        if result is not None and result.is_copy:
            same = utterances[a].speaker == utterances[b].speaker
            found.setdefault(b, CopyPair(a, b, abs(result.median.value), same))
    copies = list(found.values())
    compared = sum(len(prints[name]) > 0 for name in names[1])
    return CopiesFound(compared, len(copies), sum(bool(pair.same_speaker) for pair in copies), tuple(copies[:_SHOWN]))


def _spread(pairs: Sequence[tuple[Utterance, Utterance]], most: int | None) -> list[tuple[Utterance, Utterance]]:
    if most is None or len(pairs) <= most:
        return list(pairs)
    return [pairs[int(i)] for i in np.linspace(0, len(pairs) - 1, most)]


def _samples(utterance: Utterance) -> NDArray[np.float32] | None:
    """The beginning of a recording; None where it can't be used, which others say."""
    try:
        return read_audio(utterance.path, stretch=utterance.stretch, allow=("short",))[: int(LONGEST * 16_000)]
    except AudioError:
        return None


def _compare(pair: tuple[Utterance, Utterance]) -> Unchanged | None:
    original, other = _samples(pair[0]), _samples(pair[1])
    return None if original is None or other is None else unchanged_stretches(original, other)


def _fingerprint(utterance: Utterance) -> NDArray[np.uint32]:
    samples = _samples(utterance)
    return np.zeros(0, np.uint32) if samples is None else fingerprint(samples)
