"""Recordings compared with each other over whole corpora: what is still the original, and what is there twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Here, ordered
from veilmeter.data.copies import (
    CopyPair,
    Unchanged,
    fingerprint,
    likely_copies,
    unchanged_stretches,
)
from veilmeter.data.corpus import Utterance
from veilmeter.speech.audio import AudioError, read_audio

LONGEST = 120.0  # seconds of a recording that are compared: a copy shows in two minutes


@dataclass(frozen=True, slots=True)
class UnchangedSpeech:
    """The ids of anonymized recordings that are their original but for level, delay or coding, of how many compared;
    `parts` are those of which only some stretch is."""

    compared: int
    copies: tuple[str, ...]
    parts: tuple[str, ...]


def unchanged_speech(pairs: Sequence[tuple[Utterance, Utterance]], engine: Engine | None = None) -> UnchangedSpeech:
    """Original and anonymized recordings beside each other; ids are those of the originals."""
    results = ordered(engine or Here(), _compare, pairs)
    heard = [(pair[0].id, result) for pair, result in zip(pairs, results, strict=True) if result is not None]
    copies = tuple(name for name, result in heard if result.is_copy)
    parts = tuple(name for name, result in heard if result.unchanged and not result.is_copy)
    return UnchangedSpeech(len(heard), copies, parts)


def same_recordings(
    first: Sequence[Utterance], second: Sequence[Utterance], engine: Engine | None = None
) -> list[CopyPair]:
    """Recordings of the second set that are, but for level, delay or coding, one of the first under another id, such as
    one of the trials among the enrollment. Fingerprints find the pairs that are compared."""
    here = engine or Here()
    utterances = {u.id: u for u in (*first, *second)}
    prints = dict(zip(utterances, ordered(here, _fingerprint, list(utterances.values())), strict=True))
    sides = ({u.id: prints[u.id] for u in side} for side in (first, second))
    pairs = [(a, b) for a, b in likely_copies(*sides) if a != b]
    results = ordered(here, _compare, [(utterances[a], utterances[b]) for a, b in pairs])
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
    return None if original is None or other is None else unchanged_stretches(original, other)


def _fingerprint(utterance: Utterance) -> NDArray[np.uint32]:
    samples = _samples(utterance)
    return np.zeros(0, np.uint32) if samples is None else fingerprint(samples)
