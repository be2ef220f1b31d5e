"""The registry of measures: complete words, ranges that hold the values, variants, and measures of other packages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.data.scores import Scores
from veilmeter.metrics import measure as measures
from veilmeter.metrics.calibration import BlockSets
from veilmeter.metrics.measure import (
    MEASURES,
    SECTIONS,
    Measure,
    MeasureRegistry,
    compute_estimates,
    compute_on_recording,
    estimate_of,
    find_measure,
    label_of,
    mean_over_recordings,
)
from veilmeter.metrics.scores.eer import Eer
from veilmeter.metrics.scores.forms import BlockFunction
from veilmeter.metrics.scores.summary import measure, measure_stream


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeasureRegistry]:
    """A registry of its own, so that nothing registered here stays."""
    own = MeasureRegistry()
    monkeypatch.setattr(measures, "MEASURES", own)
    return own


@dataclass(frozen=True)
class HalfEer(BlockFunction):
    def of_blocks(self, blocks: BlockSets) -> NDArray[np.float64]:
        return Eer().of_blocks(blocks) / 2


def added(name: str = "ties", compute: Callable[..., Any] = len, **changes: Any) -> Measure:
    facts: dict[str, Any] = {"kind": "scores", "unit": "percent", **changes}
    words = {"label": "ties", "meaning": "How many scores are equal.", "source": "a test"}
    return Measure(name, better="lower", compute=compute, **words, **facts)


@pytest.mark.parametrize("entry", MEASURES.values(), ids=lambda entry: entry.name)
def test_every_measure_has_its_words(entry: Measure) -> None:
    assert entry.label
    assert entry.meaning.endswith(".")
    assert entry.source
    assert entry.section in SECTIONS
    assert entry.low < entry.high
    assert (entry.kind is None) == (not entry.functions)
    # where the registry looks for it
    assert all(
        type(function).__module__.startswith("veilmeter.metrics.scores.") for function in entry.functions.values()
    )


def test_values_lie_within_the_ranges() -> None:
    rng = np.random.default_rng(3)
    for shift in (-3.0, 0.0, 1.0, 50.0):
        scores = Scores.from_arrays(rng.normal(shift, 1, 40), rng.normal(0, 1, 300))
        for name, found in measure(scores, intervals=False).items():
            assert isinstance(found, Estimate)
            assert find_measure(name).contains(found.value), found


def test_variants_keep_the_words_of_their_family() -> None:
    assert find_measure("tpr@fpr=0.001").label == "TPR at FPR 0.1 %"
    assert find_measure("c_ece_isotonic").label == "C_ECE isotonic"
    assert find_measure("d_ece_op_oo").label == "D_ECE removed"  # a measure of its own, not a variant of D_ECE
    assert MEASURES.family("eer_per_speaker") == "eer"
    assert (find_measure("eer_per_speaker").low, find_measure("eer_per_speaker").high) == (0, 100)


def test_a_measure_that_is_not_there_suggests_one() -> None:
    with pytest.raises(InputError, match="did you mean 'linkability'"):
        find_measure("linkabilty")
    assert label_of("word_order_left_out") == "word order left out"


def test_an_estimate_takes_its_words_from_the_measure() -> None:
    point = estimate_of("d_ece", 0.1, interval=(0.05, 0.2), at={"length": 3})
    assert (point.label, point.unit, point.better, point.at) == ("D_ECE", "bit", "lower", {"length": 3})
    assert estimate_of("eer", 1.0, label="EER, women").label == "EER, women"


def test_an_added_measure_of_scores_is_found_and_computed(fresh: MeasureRegistry) -> None:
    def compute(scores: Scores) -> Estimate:
        return fresh["eer_ties"].estimate(100.0 * (len(scores) - len(np.unique(scores.values))) / len(scores))

    fresh.register("eer_ties", added("eer_ties", compute))
    assert "eer_ties" in [entry.name for entry in fresh.of_kind("scores")]
    assert fresh.family("eer_ties") == "eer_ties"  # its own, though its name begins like another's
    assert fresh["eer_ties"].section == "verification"
    point = compute_estimates(fresh["eer_ties"], Scores.from_arrays([1.0, 1.0], [0.0, 2.0]))["eer_ties"]
    assert isinstance(point, Estimate)
    assert point.value == 25.0


def test_registered_functions_are_measured_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain function gets the words and counts; one that fails is left out, by name."""
    scores = Scores.from_arrays([1.0, 1.0], [0.0, 2.0])
    monkeypatch.setitem(MEASURES._loaded, "ties", added(compute=lambda scores: 25))
    page = measure(scores, intervals=False)
    assert (page["ties"].value, page["ties"].label, page["ties"].n) == (25.0, "ties", scores.counts)
    assert page["ties"].interval is None
    monkeypatch.setitem(MEASURES._loaded, "ties", added(compute=lambda scores: 1 / 0))
    with pytest.warns(UserWarning, match="ties: the measure 'ties' failed: ZeroDivisionError"):
        assert "ties" not in measure(scores, intervals=False)


def test_a_resampled_function_has_interval_chance_and_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package's function that is written as veilmeter's own are gets all that these have."""
    entry = added("half_eer", HalfEer(), unit="percent", high=50.0, low=0.0)
    monkeypatch.setitem(MEASURES._loaded, "half_eer", entry)
    rng = np.random.default_rng(0)
    scores = Scores.from_arrays(rng.normal(1, 1, 60), rng.normal(0, 1, 300))
    page = measure(scores, resamples=60)
    assert page["half_eer"].value == page["eer"].value / 2
    assert page["half_eer"].null == pytest.approx(page["eer"].null / 2)  # type: ignore[operator]
    assert page["half_eer"].interval is not None
    streamed = measure_stream([(scores.values, scores.is_target)])
    assert streamed["half_eer"].value == pytest.approx(page["half_eer"].value)


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda scores: "3.0", "gave a str"),
        (lambda scores: 1 / 0, "failed: ZeroDivisionError"),
        (lambda scores: Estimates([Estimate(name="eer", value=1.0)]), "gave an estimate called 'eer'"),
    ],
)
def test_what_an_added_measure_gives_is_checked(compute: Callable[..., Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compute_estimates(added(compute=compute), Scores.from_arrays([1.0], [0.0]))


def test_a_measure_of_recordings_is_averaged_over_speakers() -> None:
    entry = added("gain", lambda a, b, rate: b.std() / a.std(), kind="recordings", low=0.0)
    rng = np.random.default_rng(0)
    sounds = [rng.normal(size=100) for _ in range(6)]
    values = [compute_on_recording(entry, s, k * s, 16_000) for s, k in zip(sounds, [1, 1, 2, 2, 3, 3], strict=True)]
    point = mean_over_recordings(entry, [*values, math.nan], [*"aabbcc", "c"])
    assert point.value == pytest.approx(2)
    assert point.n == {"recordings": 6, "speakers": 3, "without_value": 1}
    assert point.interval is not None
    assert point.interval[0] == 0.0 < 2 < point.interval[1]
    with pytest.raises(InputError, match="no recording has a value"):
        mean_over_recordings(entry, [math.nan], ["a"])


@pytest.mark.parametrize("changes", [{"kind": "words"}, {"kind": None}, {"section": "astrology"}])
def test_a_measure_that_contradicts_itself_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="'ties'"):
        added(**changes)


def test_only_measures_are_registered_under_their_own_name(fresh: MeasureRegistry) -> None:
    with pytest.raises(InputError, match="is not a measure"):
        fresh.register("length", len)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is registered as 'other'"):
        fresh.register("other", added())
    with pytest.raises(InputError, match="already a measure"):
        fresh.register("eer", added("eer"))
