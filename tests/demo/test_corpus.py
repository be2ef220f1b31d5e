"""The synthetic voices: distinct, and the same on every run whatever the order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("espeakng_loader")
pytest.importorskip("soundfile")

from veilmeter.core.engine import Here
from veilmeter.data.corpus import read_corpus
from veilmeter.demo.corpus import RATE, SESSIONS, build, record, speak, voices

TEXT = "The boat left the harbor before the morning fog had lifted."


def test_forty_voices_differ_from_each_other() -> None:
    chosen = voices(40)
    assert len({voice.name for voice in chosen}) == 40
    assert sum(voice.gender == "f" for voice in chosen) == 20
    spoken = {speak(voice, TEXT).tobytes() for voice in chosen}
    assert len(spoken) == 40


def test_a_voice_does_not_depend_on_what_was_spoken_before() -> None:
    first, second = voices(2)
    alone = speak(first, TEXT)
    speak(second, "Something else entirely was spoken in between.")
    assert np.array_equal(speak(first, TEXT), alone)
    assert 1.5 * RATE < len(alone) < 8 * RATE


def test_the_corpus_has_two_sessions_and_is_the_same_twice(tmp_path: Path) -> None:
    first = build(tmp_path / "a", Here(), speakers=3, utterances=1)
    second = build(tmp_path / "b", Here(), speakers=3, utterances=1)
    corpus = read_corpus(first / "corpus.csv")
    assert len(corpus.utterances) == 6
    assert {u.session for u in corpus.utterances} == set(SESSIONS)
    assert {u.gender for u in corpus.utterances} == {"f", "m"}
    for file in sorted(first.rglob("*.flac")):
        assert file.read_bytes() == (second / file.relative_to(first)).read_bytes()


def test_another_seed_acts_in_a_used_folder(tmp_path: Path) -> None:
    build(tmp_path / "used", Here(), speakers=2, utterances=1)
    used = build(tmp_path / "used", Here(), speakers=2, utterances=1, seed=3)
    fresh = build(tmp_path / "fresh", Here(), speakers=2, utterances=1, seed=3)
    recordings = [file.relative_to(fresh) for file in sorted(fresh.rglob("*.flac"))]
    assert len(recordings) == 4
    assert [(used / file).read_bytes() for file in recordings] == [(fresh / file).read_bytes() for file in recordings]


def test_a_room_changes_the_sound_and_keeps_its_level() -> None:
    speech = speak(voices(1)[0], TEXT)
    home, clinic = record(speech, [0, 1, 0], [1]), record(speech, [0, 1, 1], [1])
    assert not np.allclose(home, clinic)
    assert np.max(np.abs(home)) == pytest.approx(0.5, abs=1e-3)
