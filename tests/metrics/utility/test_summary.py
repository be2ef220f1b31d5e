"""The table of recordings: estimates for all, per group and per person; what counts as no speech."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.metrics.utility.summary import UtilityTable, count_speech
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
