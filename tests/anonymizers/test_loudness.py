"""Level and peaks: what is beyond full scale fits afterwards, is no softer than before, and bursts stay bursts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.anonymizers.treatment import FULL_SCALE, LevelMeter, OutputAudio, edge_gains

RATE = 16_000
SPEECH = (0.05 * np.random.default_rng(0).standard_normal(3 * RATE)).astype(np.float32)


def level_of(samples: np.ndarray) -> float:
    meter = LevelMeter(RATE)
    meter.add(samples)
    return meter.level


def fitted(folder: Path, blocks: Sequence[np.ndarray], before: float, rate: int = RATE) -> tuple[float, np.ndarray]:
    with OutputAudio(folder) as output:
        for block in blocks:
            output.add(block, rate)
        output.finish()
        gain = output.gain(before)
        return gain, np.concatenate(list(output.blocks(gain)))


def test_one_burst_does_not_silence_the_rest(tmp_path: Path) -> None:
    loud = SPEECH.copy()
    loud[20_000:20_100] *= 2000
    gain, samples = fitted(tmp_path, [loud], level_of(SPEECH))
    assert np.abs(loud).max() > 88
    assert np.abs(samples).max() <= FULL_SCALE
    assert level_of(samples.astype(np.float32)) == pytest.approx(level_of(SPEECH), rel=0.02)
    away = np.r_[0 : 20_000 - 320, 20_100 + 320 : len(loud)]
    np.testing.assert_allclose(samples[away], loud[away] * gain, atol=1e-7)


def test_what_is_loud_throughout_is_scaled_to_its_highest_peak(tmp_path: Path) -> None:
    gain, samples = fitted(tmp_path, [30 * SPEECH], level_of(SPEECH))
    assert gain == pytest.approx(FULL_SCALE / np.abs(30 * SPEECH).max())
    np.testing.assert_allclose(samples, 30 * SPEECH * gain, atol=1e-6)
    assert level_of(samples.astype(np.float32)) > level_of(SPEECH)


def test_what_fits_is_left_as_it_is(tmp_path: Path) -> None:
    gain, samples = fitted(tmp_path, [3 * SPEECH], level_of(SPEECH))
    assert gain == 1.0
    np.testing.assert_array_equal(samples, 3 * SPEECH)


@settings(max_examples=30)
@given(
    cuts=st.lists(st.integers(0, len(SPEECH)), max_size=6).map(sorted),
    loud=st.lists(st.tuples(st.integers(0, len(SPEECH) - 1), st.floats(1, 500)), max_size=8),
)
def test_blocks_change_nothing_and_no_peak_is_too_high(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], loud: list[tuple[int, float]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    samples = SPEECH.copy()
    for place, factor in loud:
        samples[place : place + 50] *= np.float32(factor)
    whole = fitted(folder, [samples], level_of(SPEECH))
    parts = fitted(folder, np.split(samples, cuts), level_of(SPEECH))
    assert whole[0] == parts[0]
    np.testing.assert_array_equal(whole[1], parts[1])
    assert np.abs(whole[1]).max() <= FULL_SCALE * (1 + 1e-6)


@pytest.mark.parametrize("rate", [8000, 44_100, 48_000])
def test_another_rate_block_by_block(tmp_path: Path, rate: int) -> None:
    soxr = pytest.importorskip("soxr")
    _, samples = fitted(tmp_path, np.array_split(SPEECH, 9), 0.0, rate)
    np.testing.assert_allclose(samples, soxr.resample(SPEECH, RATE, rate, "HQ"), atol=1e-6)


def test_gains_at_edges_cover_both_neighbors() -> None:
    peaks = np.array([0.1, 4.0, 2.0, 0.1], np.float32)
    np.testing.assert_allclose(edge_gains(peaks), np.array([1.0, 0.25, 0.25, 0.5, 1.0]), rtol=1e-4)
    assert edge_gains(np.empty(0, np.float32)).tolist() == [1.0]
