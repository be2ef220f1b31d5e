"""Several extractors: every attacker on each, all of them together, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_voices as voices

pytest.importorskip("soundfile")

from veilmeter.assessment import assess
from veilmeter.assessment.experiment import group_people
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.results.people import rank_disclosure
from veilmeter.speech.audio import RATE, write_audio
from veilmeter.wording import sentence

EXTRACTORS = """
import numpy as np

def spectrum(samples):
    return np.abs(np.fft.rfft(samples))

def bands(samples, low, high):
    size = spectrum(samples)[low:high].reshape(8, -1).mean(axis=1)
    return np.log(size + 1e-3)

def low(samples):
    return bands(samples, 80, 880)

def high(samples):
    return bands(samples, 2000, 2800)
"""
FAST: dict[str, Any] = {"lengths": [1], "intervals": False, "measures": ["scores", "linkability", "ranks"]}
PEOPLE = 6


def recording(rng: np.random.Generator, speaker: int, kept: str) -> np.ndarray:
    """Two places of the spectrum tell people apart, of two bits each; an anonymizer keeps some of them."""
    time = np.arange(RATE) / RATE
    sound = 0.02 * rng.standard_normal(RATE)
    if "low" in kept:
        sound += 0.1 * np.sin(2 * np.pi * (130 + 200 * (speaker % 3)) * time)
    if "high" in kept:
        sound += 0.1 * np.sin(2 * np.pi * (2050 + 200 * (speaker // 3)) * time)
    return sound.astype(np.float32)


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "two.py").write_text(EXTRACTORS)
    rng = np.random.default_rng(0)
    for side, kept in (("original", "low high"), ("anonymized", "low high"), ("again", "low high")):
        for speaker in range(PEOPLE):
            for number in range(4):
                path = tmp_path / side / f"s{speaker}" / f"s{speaker}-{number}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_audio(path, recording(rng, speaker, kept))
    return tmp_path


def test_attackers_use_each_extractor_and_all_together(speech: Path) -> None:
    results = assess(
        speech / "original",
        speech / "anonymized",
        attacker_run=str(speech / "again"),
        extractor=[f"{speech / 'two.py'}:low", f"{speech / 'two.py'}:high"],
        attackers=["ignorant", "adaptive"],
        **FAST,
    ).results
    assert list(results.attackers) == [
        "original", "ignorant", "adaptive", "fused", "ignorant@two-high", "adaptive@two-high",
    ]  # fmt: skip
    linked = {
        name: max(results.attackers[name].estimates.points("linkability"), key=lambda point: point.at["speakers"]).value
        for name in ("adaptive", "adaptive@two-high", "fused")
    }
    # Each place alone leaves two or three people who sound alike; together they name everybody.
    assert linked["adaptive"] < 80
    assert linked["adaptive@two-high"] < 70
    assert linked["fused"] > 95
    assert results.attackers["adaptive@two-high"].extractor == "two-high"
    assert results.channels is not None
    assert [(channel.name, channel.attacker) for channel in results.channels.channels] == [
        ("two-low", "adaptive"), ("two-high", "adaptive@two-high"), ("all together", "fused"),
    ]  # fmt: skip
    low, high, together = results.channels.channels
    # Three sounds of the low place are log2(3) bits, two of the high one are one bit.
    bits = [rank_disclosure(channel.estimates) for channel in (low, high, together)]
    assert [point.value for point in bits if point] == pytest.approx([1.58, 1, 2.58], abs=0.6)
    for channel in results.channels.channels:
        clear, shuffled = rank_disclosure(channel.original), rank_disclosure(channel.shuffled)
        assert clear is not None
        assert clear.value > 0.2  # nothing was taken away
        assert shuffled is not None
        assert shuffled.value < 0.5
    assert {person.speaker for person in results.channels.people} == {f"s{n}" for n in range(PEOPLE)}
    for person in results.channels.people:
        assert person.bits["all together"] > max(person.bits["two-low"], person.bits["two-high"])
        assert person.linked["all together"] > 0.5
    assert "all together" in sentence(results.channels.finding)


def test_further_extractors_need_recordings() -> None:
    original = voices.original(6, 4, 8)
    with pytest.raises(InputError, match="needs recordings"):
        assess(original, voices.partly(original), extractor=["campplus", "ecapa"], **FAST)
    with pytest.raises(InputError, match="name each extractor once"):
        assess(original, voices.partly(original), extractor=["ecapa", "ecapa"], **FAST)


def test_people_are_also_grouped_by_all_attributes_together() -> None:
    """Unless fewer than two combinations have enough people to say anything about them."""
    names = [f"s{number:02d}" for number in range(20)]
    columns = {
        "gender": ["fm"[number % 2] for number in range(20)],
        "accent": ["ab"[number // 10] for number in range(20)],
    }
    speech = Embeddings(np.eye(20), names, names, columns)
    assert set(group_people(speech, ["gender"])) == {"gender"}
    groups = group_people(speech, ["gender", "accent"])
    assert set(groups) == {"gender", "accent", "gender and accent"}
    assert groups["gender and accent"]["s13"] == "m, b"
    few = speech.take(np.arange(20) % 5 == 0)
    assert set(group_people(few, ["gender", "accent"])) == {"gender", "accent"}
