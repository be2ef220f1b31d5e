"""The correlation of pitch tracks: shifted, scaled, stretched, unrelated, monotone, unvoiced."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.metrics.utility.melody import LONGEST_LAG, pitch_correlation


def track(seed: int, frames: int = 400) -> np.ndarray:
    """A wandering voice with pauses."""
    rng = np.random.default_rng(seed)
    steps = np.convolve(rng.standard_normal(frames + 40), np.hanning(40), "valid")[:frames]
    voiced = np.convolve(rng.standard_normal(frames + 20), np.hanning(20), "valid")[:frames] > -1
    return np.where(voiced, 150 + 10 * steps, 0.0)


def direct(x: np.ndarray, y: np.ndarray) -> float:
    both = (x > 0) & (y > 0)
    return float(np.corrcoef(x[both], y[both])[0, 1])


@pytest.mark.parametrize("delay", [0, 3, 20, -7])
def test_a_copy_of_another_level_and_time_correlates_fully(delay: int) -> None:
    original = track(0)
    moved = np.roll(np.where(original > 0, 1.7 * original + 20, 0), delay)
    assert pitch_correlation(original, moved) == pytest.approx(1.0, abs=1e-6)


def test_it_is_pearsons_at_the_best_lag() -> None:
    original, other = track(1), np.where(track(1) > 0, track(1) + 0.3 * track(2), 0)
    lags = [direct(original[lag:], other[: len(other) - lag]) for lag in range(LONGEST_LAG + 1)]
    lags += [direct(original[:-lag], other[lag:]) for lag in range(1, LONGEST_LAG + 1)]
    assert pitch_correlation(original, other) == pytest.approx(max(lags))


def test_another_length_is_stretched() -> None:
    original = track(3)
    slower = np.repeat(original, 2)
    assert pitch_correlation(original, slower) > 0.98
    assert pitch_correlation(original, np.r_[original, np.zeros(5)]) == pytest.approx(1.0)


def test_what_has_no_melody() -> None:
    original = track(4)
    assert pitch_correlation(original, np.where(original > 0, 120.0, 0)) == 0.0
    assert np.isnan(pitch_correlation(original, np.zeros(400)))
    assert np.isnan(pitch_correlation(original[:10], original[:10]))
    unrelated = [pitch_correlation(track(seed), track(seed + 1000)) for seed in range(10, 30)]
    assert np.mean(unrelated) < 0.7
