"""McAdams' coefficient: the plain implementation, frames that break eigenvalue routines, a formant's way."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from veilmeter.anonymizers import mcadams as fast
from veilmeter.anonymizers.base import load_anonymizer
from veilmeter.anonymizers.mcadams import McAdams, RandomMcAdams, mcadams
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Utterance

WANTED_DB = 120.0
TIME = np.arange(4800) / 16_000
NOISE = np.random.default_rng(0).standard_normal(4800)


def in_16_bits(signal: np.ndarray) -> np.ndarray:
    return np.round(np.clip(signal, -1, 1 - 2**-15) * 32768) / 32768


def agreement(expected: np.ndarray, found: np.ndarray) -> float:
    error = float(np.sum((expected - found) ** 2))
    return np.inf if error == 0 else 10 * np.log10(float(np.sum(expected**2)) / error)


HARD: dict[str, np.ndarray] = {
    "silence": np.zeros(4800),
    "constant": np.full(4800, 0.3),
    "last bit": in_16_bits((NOISE > 0) / 32768),
    "one click": (np.arange(4800) == 2000) * 1.0,
    "clicks every 20 samples": (np.arange(4800) % 20 == 0) * 1.0,
    "clicks every 7 samples": (np.arange(4800) % 7 == 0) * 1.0,
    "alternating": np.where(np.arange(4800) % 2, 1.0, -1.0),
    "ramp": TIME,
    "decay": np.exp(-100 * TIME),
    "chirp": np.sin(2 * np.pi * 12_000 * TIME**2),
    "two close tones": np.sin(2 * np.pi * 300 * TIME) + np.sin(2 * np.pi * 305 * TIME),
    "harmonics": np.sum([np.sin(2 * np.pi * 100 * k * TIME) / k for k in range(1, 40)], axis=0),
    "noise": 0.1 * NOISE,
    "clipped noise": np.clip(5 * NOISE, -1, 1),
    "tiny noise": 1e-30 * NOISE,
    "brown noise": 0.01 * np.cumsum(NOISE),
    "silence, then noise": np.where(TIME < 0.15, 0, NOISE),
}
for frequency in (50.0, 440.0, 1000.0, 4000.0, 3999.5, 7999.0):
    tone = 0.5 * np.sin(2 * np.pi * frequency * TIME)
    HARD[f"tone at {frequency}"] = tone
    HARD[f"tone at {frequency}, single precision"] = tone.astype(np.float32)
    HARD[f"tone at {frequency}, 16 bits"] = in_16_bits(tone)
    HARD[f"clipped tone at {frequency}"] = in_16_bits(np.clip(10 * tone, -1, 1))
    HARD[f"square wave at {frequency}"] = np.sign(tone)


@pytest.mark.parametrize("alpha", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("name", HARD)
def test_hard_frames_agree_with_the_plain_implementation(name: str, alpha: float, plain: ModuleType) -> None:
    found = mcadams(HARD[name], alpha)
    assert np.isfinite(found).all()
    assert agreement(plain.plain_mcadams(HARD[name], alpha), found) >= WANTED_DB


@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.2])
def test_synthetic_voices_agree_with_the_plain_implementation(
    alpha: float, plain: ModuleType, make_voice: Callable[..., Any]
) -> None:
    for seed in range(3):
        signal = make_voice(seed, seconds=1.0)
        assert agreement(plain.plain_mcadams(signal, alpha), mcadams(signal, alpha)) >= WANTED_DB


def test_real_speech_agrees_with_the_plain_implementation(librispeech: Path, plain: ModuleType) -> None:
    from veilmeter.speech.audio import read_audio

    for path in sorted((librispeech / "test-other-10x10").glob("*/*.flac"))[::17]:
        signal = read_audio(path)[: 2 * 16_000]
        assert agreement(plain.plain_mcadams(signal, 0.8), mcadams(signal, 0.8)) >= WANTED_DB + 30


@settings(max_examples=25)
@given(arrays(np.float32, 640, elements=st.floats(-1, 1, width=32)), st.floats(0.5, 1.0))
def test_any_samples_give_finite_ones_of_the_same_length(signal: np.ndarray, alpha: float) -> None:
    found = mcadams(signal, alpha)
    assert found.shape == signal.shape
    assert np.isfinite(found).all()


def test_a_coefficient_of_one_changes_nothing_but_the_edges(make_voice: Callable[..., Any]) -> None:
    signal = make_voice(5)
    found = mcadams(signal, 1.0)
    weight = np.zeros(len(signal))
    for start in range(0, len(signal) - 320 + 1, 160):
        weight[start : start + 320] += fast.window() ** 2
    np.testing.assert_allclose(found, signal * weight, atol=1e-9)
    assert np.abs(weight[160:-400] - 1).max() < 0.01


@pytest.mark.parametrize("alpha", [0.7, 0.8, 0.9])
def test_a_formant_at_phi_moves_to_phi_to_the_alpha(alpha: float) -> None:
    from scipy.signal import lfilter, welch

    angle = 2 * np.pi * 1500 / 16_000
    resonance = [1.0, -2 * 0.97 * np.cos(angle), 0.97**2]
    signal = lfilter([1.0], resonance, 0.01 * np.random.default_rng(2).standard_normal(5 * 16_000))
    frequencies, power = welch(mcadams(signal, alpha), 16_000, nperseg=1024)
    expected = angle**alpha * 16_000 / (2 * np.pi)
    assert abs(frequencies[np.argmax(power)] - expected) < 80


def test_long_recordings_are_worked_on_in_blocks(
    monkeypatch: pytest.MonkeyPatch, make_voice: Callable[..., Any]
) -> None:
    signal = make_voice(7, seconds=3.0)
    whole = mcadams(signal, 0.8)
    for block, part in ((37, 512), (2048, 10), (50, 7)):
        monkeypatch.setattr(fast, "BLOCK_FRAMES", block)
        monkeypatch.setattr(fast, "BURG_FRAMES", part)
        monkeypatch.setattr(fast, "FILTER_FRAMES", part)
        np.testing.assert_allclose(mcadams(signal, 0.8), whole, atol=1e-8)


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 12_000), max_size=5).map(sorted), length=st.integers(320, 12_000))
def test_blocks_give_every_bit_of_one_piece(cuts: list[int], length: int) -> None:
    signal = 0.1 * np.random.default_rng(3).standard_normal(12_000)[:length]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "BLOCK_FRAMES", 16)
        parts = list(fast.mcadams_blocks(np.split(signal, [cut for cut in cuts if cut <= length]), 0.7))
        np.testing.assert_array_equal(np.concatenate(parts), mcadams(signal, 0.7))


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.zeros(319), "less than one frame"),
        (np.zeros((320, 2)), "one channel"),
        (np.full(400, np.nan), "not finite"),
        (np.full(400, np.inf), "not finite"),
    ],
)
def test_what_can_not_be_done_is_said(samples: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        mcadams(samples, 0.8)


@pytest.mark.parametrize("alpha", [0.0, -1, float("nan"), float("inf"), 3.0, "much"])
def test_a_senseless_coefficient_is_refused(alpha: Any) -> None:
    with pytest.raises(InputError, match="not a McAdams coefficient"):
        McAdams(alpha=alpha)


def person(number: int, utterance: int) -> Utterance:
    return Utterance(f"s{number}-{utterance}", f"s{number}", Path("x.wav"))


def test_b2r_draws_for_each_speaker_or_utterance_from_the_seed_and_the_id_alone() -> None:
    per_speaker = RandomMcAdams(alpha_range=(0.7, 0.9), per="speaker", seed=1)
    alphas = np.array([[per_speaker.parameters(person(s, u))["alpha"] for u in range(4)] for s in range(500)])
    assert (alphas == alphas[:, :1]).all()
    assert len(np.unique(alphas)) == 500
    assert 0.7 <= alphas.min() < 0.705
    assert 0.895 < alphas.max() <= 0.9
    assert abs(alphas.mean() - 0.8) < 0.01
    per_utterance = RandomMcAdams(seed=1)
    drawn = [per_utterance.parameters(person(0, u))["alpha"] for u in range(300)]
    assert len(set(drawn)) == 300
    assert min(drawn) < 0.52
    assert max(drawn) > 0.88
    assert RandomMcAdams(seed=2).parameters(person(0, 0)) != per_utterance.parameters(person(0, 0))
    again = pickle.loads(pickle.dumps(per_utterance))
    assert again.parameters(person(0, 7)) == per_utterance.parameters(person(0, 7))


def test_b2r_does_what_its_parameters_say(make_voice: Callable[..., Any]) -> None:
    system = load_anonymizer("mcadams-random", {"alpha_range": [0.6, 0.6], "seed": 3})
    parameters = system.parameters(person(0, 0))
    assert parameters == {"alpha": 0.6, "alpha_range": [0.6, 0.6], "per": "utterance", "seed": 3}
    signal = make_voice(1).astype(np.float32)
    np.testing.assert_array_equal(system.anonymize(signal, parameters), mcadams(signal, 0.6).astype(np.float32))


@pytest.mark.parametrize(
    "options",
    [{"alpha_range": (0.9, 0.5)}, {"alpha_range": (0.5,)}, {"alpha_range": "ab"}, {"per": "day"}, {"seed": -1}],
)
def test_b2r_refuses_what_makes_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        RandomMcAdams(**options).parameters(person(0, 0))
