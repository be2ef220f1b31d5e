"""What the converter hears: against plain loops, and against what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("scipy")

from veilmeter.anonymizers.xvector_pool import features, world


def noise(samples: int = 4000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, samples).astype(np.float32)


@pytest.mark.parametrize("samples", [1600, 1759, 1760, 4001])
def test_power_is_the_weighted_mean_square_around_each_frame(samples: int) -> None:
    signal = noise(samples)
    squares = np.concatenate([np.zeros(200), signal.astype(float) ** 2, np.zeros(1000)])
    weights = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    expected = [
        float((squares[start : start + 400] * weights).sum() / weights.sum()) for start in range(0, samples + 1, 160)
    ]
    np.testing.assert_allclose(features.power(signal), expected, rtol=1e-9)


def test_there_is_a_power_for_each_frame_of_the_vocoder() -> None:
    pytest.importorskip("pyworld")
    for samples in (1600, 1759, 1760, 16123):
        assert len(features.power(noise(samples))) == len(world.pitch(noise(samples)))


def test_the_level_is_that_of_the_loud_parts() -> None:
    speech = noise(16000)
    with_pause = np.concatenate([speech, np.zeros(160000, np.float32)])
    gains = [features.level(signal)[1] for signal in (speech, with_pause)]
    assert gains[0] == pytest.approx(gains[1], rel=0.01)
    assert features.level(3 * speech)[1] == pytest.approx(gains[0] / 3, rel=1e-5)
    assert features.level(np.zeros(1600))[1] == 1.0


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(1, 120), st.integers(0, 99))
def test_frames_lie_on_the_lines_between_what_was_heard(count: int, frames: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = np.cumsum(rng.uniform(100, 900, count))
    values = rng.normal(size=(count, 3)).astype(np.float32)
    result = features.at_frames(places, values, frames)
    expected = [np.interp(np.arange(frames) * 160, places, values[:, column]) for column in range(3)]
    np.testing.assert_allclose(result, np.stack(expected, axis=1), atol=1e-4)


def test_what_is_constant_is_taken_away_and_bursts_are_cut() -> None:
    heard = np.random.default_rng(0).normal(size=(100 * features.LEAN, 4))
    standard = features.standardize(7 + heard * [1, 2, 50, 1], np.zeros(4), np.ones(4))
    np.testing.assert_allclose(standard[:, :3].mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(standard[:, :3].std(axis=0), 1, atol=0.25)
    heard[3, 3] = 1e6
    assert np.abs(features.standardize(heard, np.zeros(4), np.ones(4))).max() == features.LIMIT


def test_the_statistics_of_a_short_stretch_lean_on_the_usual_ones() -> None:
    """As if the usual frames had been heard, too: a stretch as long as the leaning counts for half."""
    rng = np.random.default_rng(0)
    usual_mean, usual_variance = np.array([1.0, 2.0]), np.array([4.0, 0.25])
    heard = rng.normal(3.0, 0.5, size=(features.LEAN, 2))
    mean, variance = (heard.mean(axis=0) + usual_mean) / 2, (heard.var(axis=0) + usual_variance) / 2
    expected = (heard - mean) / (np.sqrt(variance) + 1e-3)
    np.testing.assert_allclose(features.standardize(heard, usual_mean, usual_variance), expected, rtol=1e-5)
    one = features.standardize(usual_mean[None], usual_mean, usual_variance)
    np.testing.assert_allclose(one, 0.0, atol=1e-12)
