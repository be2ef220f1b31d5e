"""Copies of recordings and of vectors, against plain definitions and under what copies go through."""

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

from veilmeter.data.copies import (
    RATE,
    best_correlation,
    copied_vectors,
    fingerprint,
    likely_copies,
    unchanged_stretches,
)
from veilmeter.data.corpus import Utterance
from veilmeter.data.embeddings import Embeddings

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
    assert abs(best_correlation(a, b).value) == pytest.approx(abs(best), abs=1e-5)


def test_delay_and_gain_are_found() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(400).astype(np.float32)
    b = np.concatenate([rng.standard_normal(150) * 0.1, -0.4 * a, rng.standard_normal(90)]).astype(np.float32)
    found = best_correlation(a, b)
    assert found.value == pytest.approx(-1, abs=1e-6)
    assert found.delay == pytest.approx(150 / RATE)
    assert found.gain == pytest.approx(-0.4, abs=1e-5)
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
        assert unchanged_stretches(voices[name], copies[f"{name} again"]).is_copy
    prints = {name: fingerprint(samples) for name, samples in voices.items()}
    found = likely_copies(prints, {name: fingerprint(samples) for name, samples in copies.items()})
    assert sorted(found) == sorted((name, f"{name} again") for name in names)


def test_other_recordings_and_anonymized_ones_are_no_copies(voices: dict[str, Samples]) -> None:
    from veilmeter.anonymizers.base import load_anonymizer

    names = list(voices)
    system = load_anonymizer("mcadams", {"alpha": 0.8})
    for name, other in pairwise(names[:5]):
        assert unchanged_stretches(voices[name], voices[other]).unchanged == 0
        changed = system.anonymize(voices[name], {"alpha": 0.8})
        assert unchanged_stretches(voices[name], changed).unchanged == 0
    prints = {name: fingerprint(samples) for name, samples in voices.items()}
    assert [pair for pair in likely_copies(prints, prints) if pair[0] != pair[1]] == []


def test_a_part_that_was_left_as_it_was_is_seen(voices: dict[str, Samples]) -> None:
    name, other = list(voices)[:2]
    half = len(voices[name]) // 2
    mixed = np.concatenate([voices[name][:half], voices[other]])
    found = unchanged_stretches(voices[name], mixed)
    assert 0 < found.unchanged < found.stretches


def test_silence_and_nothing_are_no_copies() -> None:
    nothing = np.zeros(16000, np.float32)
    assert not unchanged_stretches(nothing, nothing).is_copy
    assert not unchanged_stretches(nothing[:0], nothing).is_copy
    assert likely_copies({"a": fingerprint(nothing)}, {"b": fingerprint(nothing)}) == []


def people(count: int, each: int, seed: int, *, spread: float = 0.5) -> Embeddings:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((count, 32))
    vectors = np.repeat(means, each, axis=0) + spread * rng.standard_normal((count * each, 32))
    ids = [f"{seed}-{i}" for i in range(count * each)]
    return Embeddings(vectors, ids, [f"s{i // each}" for i in range(count * each)])


def test_vectors_under_two_ids() -> None:
    enrollment, trials = people(20, 3, 1), people(20, 3, 2)
    assert copied_vectors(enrollment, trials).copies == 0
    vectors = trials.vectors.copy()
    vectors[[3, 10, 40]] = enrollment.vectors[[3, 11, 5]] * np.array([[1.0], [2.0], [1.0001]], np.float32)
    found = copied_vectors(enrollment, trials.with_vectors(vectors))
    assert (found.compared, found.copies, found.same_speaker) == (60, 3, 2)
    assert {(pair.first, pair.second) for pair in found.examples} == {("1-3", "2-3"), ("1-11", "2-10"), ("1-5", "2-40")}


def test_the_same_id_is_no_copy_and_one_voice_for_all_is_none_either() -> None:
    enrollment = people(20, 3, 1)
    assert copied_vectors(enrollment, enrollment).copies == 0
    alike = enrollment.with_vectors(np.ones((60, 32)) + 1e-6 * enrollment.vectors)
    other = Embeddings(np.ones((60, 32)), [f"x{i}" for i in range(60)], enrollment.speakers)
    assert copied_vectors(alike, other).copies == 0


def test_people_who_hardly_vary_are_no_copies() -> None:
    one = people(30, 2, 3, spread=0.05)
    other = Embeddings(
        one.vectors + 0.05 * np.random.default_rng(9).standard_normal(one.vectors.shape),
        [f"t{i}" for i in range(60)],
        one.speakers,
    )
    assert copied_vectors(one, other).copies == 0


def test_over_corpora(tmp_path: Path, voices: dict[str, Samples]) -> None:
    soundfile = pytest.importorskip("soundfile")
    from veilmeter.speech.compare_recordings import same_recordings, unchanged_speech

    def written(name: str, samples: Samples, speaker: str) -> Utterance:
        soundfile.write(tmp_path / f"{name}.wav", samples, 16000)
        return Utterance(name, speaker, tmp_path / f"{name}.wav")

    names = list(voices)[:4]
    clear = [written(name, voices[name], name[:4]) for name in names]
    hidden = [written(f"{name}-x", 0.5 * voices[name], name[:4]) for name in names[:2]]
    hidden += [written(f"{name}-x", voices[other], name[:4]) for name, other in zip(names[2:], names[:2], strict=True)]
    found = unchanged_speech(list(zip(clear, hidden, strict=True)))
    assert (found.compared, found.copies) == (4, 2)
    assert [name for name, _ in found.examples] == names[:2]
    gone = Utterance("gone", "s", tmp_path / "gone.wav")
    copies = same_recordings(clear, [*hidden, gone])
    assert (copies.compared, copies.copies) == (4, 4)
    assert copies.same_speaker == 2 + sum(a[:4] == b[:4] for a, b in zip(names[2:], names[:2], strict=True))
