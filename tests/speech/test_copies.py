"""Copies of recordings, against plain definitions and under what copies go through."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from veilmeter.data.corpus import Utterance
from veilmeter.speech.copies import (
    RATE,
    best_correlation,
    find_unchanged,
    find_unchanged_speech,
    fingerprint,
    likely_copies,
)

Samples = NDArray[np.float32]


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 10**6))
def test_the_best_correlation_is_that_of_trying_every_delay(length: int, total: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(length).astype(np.float32), rng.standard_normal(total).astype(np.float32)
    padded = np.concatenate([np.zeros(length - 1), b, np.zeros(length - 1)])
    best = 0.0
    for start in range(len(padded) - length + 1):
        part = padded[start : start + length]
        if np.linalg.norm(part) > 0:
            value = float(a @ part / np.linalg.norm(a) / np.linalg.norm(part))
            best = value if abs(value) > abs(best) else best
    found = abs(best_correlation(a, b).value)
    assert found >= abs(best) - 1e-5  # at least: delays between samples are tried, too
    assert found <= 1 + 1e-6


def test_delay_and_gain_are_found() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(400).astype(np.float32)
    b = np.concatenate([rng.standard_normal(150) * 0.1, -0.4 * a, rng.standard_normal(90)]).astype(np.float32)
    found = best_correlation(a, b)
    assert found.value == pytest.approx(-1, abs=1e-6)
    assert found.delay == pytest.approx(150 / RATE)
    assert found.gain == pytest.approx(-0.4, abs=1e-3)
    assert best_correlation(a, np.zeros(1000, np.float32)).value == 0


@pytest.fixture(scope="module")
def voices(librispeech: Path) -> dict[str, Samples]:
    soundfile = pytest.importorskip("soundfile")
    files = sorted((librispeech / "test-other-10x10").rglob("*.flac"))[::9]
    return {file.stem: soundfile.read(file, dtype="float32")[0] for file in files}


def recoded(samples: Samples, form: str, subtype: str) -> Samples:
    soundfile = pytest.importorskip("soundfile")
    packed = io.BytesIO()
    soundfile.write(packed, samples, 16000, format=form, subtype=subtype)
    packed.seek(0)
    found: Samples = soundfile.read(packed, dtype="float32")[0]
    return found


WAYS: dict[str, Callable[[Samples], Samples]] = {
    "scaled": lambda x: np.float32(0.8) * x,
    "inverted and delayed": lambda x: np.concatenate([np.zeros(12345, np.float32), -np.float32(0.1) * x]),
    "cut": lambda x: x[7001:],
    "mp3": lambda x: recoded(x, "MP3", "MPEG_LAYER_III"),
    "opus": lambda x: recoded(x, "OGG", "OPUS"),
    "telephone": lambda x: recoded(x, "WAV", "ULAW"),
}


@pytest.mark.parametrize("way", WAYS)
def test_copies_are_found_whatever_they_went_through(voices: dict[str, Samples], way: str) -> None:
    names = list(voices)[:4]
    copies = {f"{name} again": WAYS[way](voices[name]) for name in names}
    for name in names:
        assert find_unchanged(voices[name], copies[f"{name} again"]).is_copy
    prints = {name: fingerprint(samples) for name, samples in voices.items()}
    found = likely_copies(prints, {name: fingerprint(samples) for name, samples in copies.items()})
    assert sorted(found) == sorted((name, f"{name} again") for name in names)


def test_other_recordings_and_anonymized_ones_are_no_copies(voices: dict[str, Samples]) -> None:
    from veilmeter.anonymizers.base import load_anonymizer

    names = list(voices)
    system = load_anonymizer("mcadams", {"alpha": 0.8})
    for name, other in pairwise(names[:5]):
        assert find_unchanged(voices[name], voices[other]).unchanged == 0
        changed = system.anonymize(voices[name], {"alpha": 0.8})
        assert find_unchanged(voices[name], changed).unchanged == 0
    prints = {name: fingerprint(samples) for name, samples in voices.items()}
    assert [pair for pair in likely_copies(prints, prints) if pair[0] != pair[1]] == []


def test_a_part_that_was_left_as_it_was_is_seen(voices: dict[str, Samples]) -> None:
    name, other = list(voices)[:2]
    half = len(voices[name]) // 2
    mixed = np.concatenate([voices[name][:half], voices[other]])
    found = find_unchanged(voices[name], mixed)
    assert 0 < found.unchanged < found.stretches


def test_tones_of_one_pitch_are_no_copies() -> None:
    time = np.arange(32000) / 16000
    first, second = (np.sin(2 * np.pi * 440 * time + phase).astype(np.float32) for phase in (0.0, 1.0))
    assert find_unchanged(first, second).unchanged == 0


def test_silence_and_nothing_are_no_copies() -> None:
    nothing = np.zeros(16000, np.float32)
    assert not find_unchanged(nothing, nothing).is_copy
    assert not find_unchanged(nothing[:0], nothing).is_copy
    assert likely_copies({"a": fingerprint(nothing)}, {"b": fingerprint(nothing)}) == []


def test_over_corpora(tmp_path: Path, voices: dict[str, Samples]) -> None:
    soundfile = pytest.importorskip("soundfile")
    from veilmeter.speech.copies import same_recordings

    def written(name: str, samples: Samples, speaker: str) -> Utterance:
        soundfile.write(tmp_path / f"{name}.wav", samples, 16000)
        return Utterance(name, speaker, tmp_path / f"{name}.wav")

    names = list(voices)[:4]
    clear = [written(name, voices[name], name[:4]) for name in names]
    hidden = [written(f"{name}-x", 0.5 * voices[name], name[:4]) for name in names[:2]]
    hidden += [written(f"{name}-x", voices[other], name[:4]) for name, other in zip(names[2:], names[:2], strict=True)]
    found = find_unchanged_speech(list(zip(clear, hidden, strict=True)))
    assert (found.compared, found.copies, found.parts) == (4, tuple(names[:2]), ())
    gone = Utterance("gone", "s", tmp_path / "gone.wav")
    copies = same_recordings(clear, [*hidden, gone])
    assert {(pair.first, pair.second) for pair in copies} == {
        *((name, f"{name}-x") for name in names[:2]),
        *((other, f"{name}-x") for name, other in zip(names[2:], names[:2], strict=True)),
    }


def test_a_recording_that_is_far_more_like_its_original_than_others_stands_out(tmp_path: Path) -> None:
    """Two of 24 are the original beside noise of half its energy: no copy, but nothing that was anonymized."""
    soundfile = pytest.importorskip("soundfile")
    rng = np.random.default_rng(0)
    pairs = []
    for number in range(24):
        spoken, other = (0.1 * rng.standard_normal(3 * 16_000) for _ in range(2))
        sides = (spoken, spoken + 0.7 * other if number < 2 else other)
        names = [tmp_path / f"{side}{number}.wav" for side in "oa"]
        for name, samples in zip(names, sides, strict=True):
            soundfile.write(name, samples, 16_000)
        pairs.append((Utterance(f"u{number}", "s", names[0]), Utterance(f"u{number}", "s", names[1])))
    found = find_unchanged_speech(pairs)
    assert found.outliers == ("u0", "u1")
    assert not found.copies
    assert not find_unchanged_speech(pairs[2:]).outliers
