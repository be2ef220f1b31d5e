"""The table of recordings: estimates for all, per group and per person; what counts as no speech."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.metrics.utility.summary import LONGEST_LAG, UtilityTable, count_speech, pitch_correlation
from veilmeter.metrics.utility.words import count_errors

REFERENCES = ["one two three four", "five six", "seven eight nine ten", ""]
HEARD = ["one two three", "five six", "oh no", "something"]
BEFORE = ["one two three four", "five sex", "seven eight nine ten", ""]


def table(**changes: object) -> UtilityTable:
    facts: dict[str, object] = {
        "speakers": ("a", "a", "b", "b"),
        "errors": count_errors(REFERENCES, [*HEARD[:3], ""]),
        "errors_original": count_errors(REFERENCES, BEFORE),
        "numbers": {
            "mos": np.array([3.0, np.nan, 2.0, 2.0]),
            "mos_original": np.array([4.0, 4.0, 4.0, 3.0]),
            "pitch_correlation": np.array([0.9, 0.7, 0.8, np.nan]),
        },
        "by_chance": {"pitch_correlation": np.array([0.2, 0.4, 0.3, np.nan])},
        "groups": {"gender": ("f", "f", "m", "m"), "accent": ("", "", "", "")},
        **changes,
    }
    return UtilityTable(**facts)  # type: ignore[arg-type]


def test_rates_are_pooled_and_numbers_are_means() -> None:
    found = {point.name: point for point in table().estimates()}
    assert found["wer"].value == pytest.approx(100 * 5 / 10)
    assert found["wer_original"].value == pytest.approx(100 * 1 / 10)
    assert found["d_wer"].value == pytest.approx(40)
    assert found["wer"].n == {"recordings": 3, "words": 10, "speakers": 2}
    assert found["mos"].value == pytest.approx(7 / 3)
    assert found["mos"].n == {"recordings": 3, "speakers": 2}
    assert found["d_mos"].value == pytest.approx(np.mean([-1, -2, -1]))
    assert found["pitch_correlation"].null == pytest.approx(0.3)
    assert found["mos_original"].label == "MOS (Distill-MOS) original"


def test_against_the_transcript_of_the_original_the_increase_is_the_rate() -> None:
    found = table(errors_original=None).estimates()
    assert "wer_original" not in found
    assert found.single("d_wer").value == found.single("wer").value  # type: ignore[union-attr]


def test_groups_and_people() -> None:
    groups = table().by_group("gender")
    assert set(groups) == {"f", "m"}
    assert groups["f"].single("wer").value == pytest.approx(100 / 6)  # type: ignore[union-attr]
    assert groups["f"].single("wer").interval is None  # type: ignore[union-attr]
    assert table().by_group("accent") == {}
    people = table().people()
    assert [row["speaker"] for row in people] == ["b", "a"]
    assert people[0]["wer"] == pytest.approx(100)
    assert people[0]["gender"] == "m"
    assert people[1]["recordings"] == 2


def test_no_words_no_rate() -> None:
    empty = table(errors=count_errors(["", "", "", ""], ["", "", "", ""]), errors_original=None)
    assert "wer" not in empty.estimates()
    assert "mos" in empty.estimates()


def test_what_is_no_speech() -> None:
    counts = count_speech(REFERENCES, ["one", "", "oh no", "x"], BEFORE, [False, True, False, False])
    assert counts.to_json() == {"recordings": 3, "silent": 1, "wordless": 1, "lost": 2, "wordless_original": 0}


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
