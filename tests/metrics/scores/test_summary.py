"""The page of score measures: reference values, invariances, intervals and null levels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import t_quantile, wilson
from veilmeter.data.scores import Scores, read_scores
from veilmeter.metrics.calibration import group
from veilmeter.metrics.scores import resampling, zebra
from veilmeter.metrics.scores.d_sys import of_histograms
from veilmeter.metrics.scores.eer import eer
from veilmeter.metrics.scores.forms import SortedScores, bin_counts
from veilmeter.metrics.scores.resampling import Shape, interval, layout
from veilmeter.metrics.scores.score_sets import compare_sets, cross_calibration, per_speaker
from veilmeter.metrics.scores.summary import measure, null_levels, score_functions, values

FUNCTIONS = score_functions()
NAMES = tuple(FUNCTIONS)
TOLERANCES = {"d_ece": 1e-5, "l_w": 1e-4, "cllr": 1e-3, "min_cllr": 1e-4, "eer": 0.01, "d_sys": 1e-5}
IN_REFERENCE = {"d_ece": "d_ece_bits", "eer": "rocch_eer_percent"}
ORIGINAL, MIXED, PROTECTED = (
    "ASV-libri_test_enrolls-libri_test_trials_{}",
    "ASV-libri_test_enrolls-libri_test_trials_{}_anon",
    "ASV-libri_test_enrolls_anon-libri_test_trials_{}_anon",
)


def real(root: Path, extractor: str, run: str) -> Scores:
    gender = run.removesuffix("_anon")[-1]
    key = root / extractor / f"xvect_libri_test_trials_{gender}" / "meta" / "trials"
    return read_scores(root / extractor / "results" / run / "scores", key)


def plain(scores: Scores, **options: Any) -> dict[str, Estimate]:
    found = measure(scores, intervals=False, **options)
    return {name: one for name, one in found.items() if isinstance(one, Estimate)}


def correlated(rng: np.random.Generator, people: int, utterances: int, distance: float) -> Scores:
    """Trials of unit variance with effects of the enrolled, of the tested and of the utterance."""
    a, b = rng.normal(0, 0.4, people), rng.normal(0, 0.4, people)
    u = rng.normal(0, 0.3, (people, utterances))
    noise = rng.normal(0, np.sqrt(1 - 0.16 - 0.16 - 0.09), (people, people, utterances))
    x = a[:, None, None] + b[None, :, None] + u[None] + noise
    enroll, test = (np.broadcast_to(i[..., None], x.shape).ravel() for i in np.indices((people, people)))
    return Scores(x.ravel() + distance * (enroll == test), enroll == test, enroll, test)


@pytest.mark.parametrize("extractor", ["extractor-original", "extractor-retrained"])
@pytest.mark.parametrize("run", [name.format(g) for name in (ORIGINAL, MIXED, PROTECTED) for g in "fm"])
def test_reference_values(vpc2020: Path, reference: dict[str, Any], extractor: str, run: str) -> None:
    expected = reference["scores"][extractor][run]
    found = plain(real(vpc2020, extractor, run))
    assert found["eer"].n["targets"] == expected["targets"]
    assert found["eer"].n["impostors"] == expected["impostors"]
    assert found["l_w"].extra["tag"] == expected["tag"]
    for name, tolerance in TOLERANCES.items():
        assert found[name].value == pytest.approx(expected[IN_REFERENCE.get(name, name)], abs=tolerance), name


@pytest.mark.parametrize("extractor", ["extractor-original", "extractor-retrained"])
@pytest.mark.parametrize("gender", ["f", "m"])
def test_normalised_values(vpc2020: Path, reference: dict[str, Any], extractor: str, gender: str) -> None:
    sets = [real(vpc2020, extractor, name.format(gender)) for name in (ORIGINAL, MIXED, PROTECTED)]
    found = compare_sets(*sets, intervals=False)
    ours = [found[name].value for name in ("d_ece_op_oo", "min_cllr_op_oo", "g_d_ece", "g_min_cllr")]
    np.testing.assert_allclose(ours, reference["normalised"][extractor][gender], atol=2e-3)


@pytest.mark.parametrize("gender", ["f", "m"])
def test_split_half_c_ece(vpc2020: Path, reference: dict[str, Any], gender: str) -> None:
    scores = real(vpc2020, "extractor-original", MIXED.format(gender))
    found = []
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(scores))
        one, two = scores.take(order[: len(order) // 2]), scores.take(order[len(order) // 2 :])
        found.append(cross_calibration(one, two, intervals=False)["c_ece_linear"].value)
    mean, deviation = reference["split_half_c_ece_linear"][gender]
    # Both are means over random halves: they differ by what 20 draws differ by.
    assert abs(np.mean(found) - mean) < 3 * np.hypot(deviation, np.std(found)) / np.sqrt(20)
    assert np.std(found) < 3 * deviation


def test_methods_of_the_eer_differ_as_known(vpc2020: Path) -> None:
    scores = real(vpc2020, "extractor-original", MIXED.format("f"))
    found = [plain(scores, eer_method=m)["eer"].value for m in ("roc", "interpolated", "rocch")]
    np.testing.assert_allclose(found, [46.75, 46.79, 46.02], atol=0.01)


def test_all_names_and_the_shape_of_an_estimate() -> None:
    rng = np.random.default_rng(0)
    found = measure(correlated(rng, 8, 4, 1.0), resamples=60)
    assert found.names == tuple(NAMES)
    for name, one in found.items():
        assert isinstance(one, Estimate)
        assert one.interval is not None, name
        assert one.interval[0] <= one.value <= one.interval[1]
        assert one.null is not None
        assert one.null_range is not None
        assert one.n == {"targets": 32, "impostors": 224, "speakers": 8}
    assert found["eer"].unit == "percent"
    assert found["d_ece"].unit == "bit"


def test_constant_scores_tell_nothing() -> None:
    found = plain(Scores.from_arrays(np.full(400, 3.0), np.full(5000, 3.0)))
    assert found["eer"].value == 50
    assert found["d_ece"].value == 0
    assert found["l_w"].value < 0.05
    assert found["min_cllr"].value == pytest.approx(1)
    assert found["d_sys"].value == 0
    assert not found["d_ece"].extra["inverted"]


def test_separated_scores_tell_all_and_their_intervals_know_the_number_of_people() -> None:
    rng = np.random.default_rng(0)
    found = measure(correlated(rng, 12, 3, 100.0), resamples=60)
    assert found["d_ece"].value == pytest.approx(0.7213, abs=5e-5)
    assert found["eer"].value == 0
    assert found["tpr@fpr=0.0001"].value == 100
    low, high = found["eer"].interval
    assert low == 0
    assert 100 * wilson(0, 36)[1] < high < 100 * wilson(0, 12)[1]  # fewer than the trials count, more than the people
    assert found["d_ece"].interval[0] == pytest.approx(0.7213 * (1 - high / 100), abs=1e-3)


def test_a_flipped_sign_is_seen() -> None:
    rng = np.random.default_rng(0)
    t, n = rng.normal(2, 1, 300), rng.normal(0, 1, 3000)
    assert not plain(Scores.from_arrays(t, n))["d_ece"].extra["inverted"]
    flipped = plain(Scores.from_arrays(-t, -n))["d_ece"]
    assert flipped.extra["inverted"]
    assert flipped.extra["flipped"] == pytest.approx(plain(Scores.from_arrays(t, n))["d_ece"].value)


small = st.lists(st.integers(-8, 8).map(float), min_size=1, max_size=25)


@settings(max_examples=60)
@given(small, small, st.sampled_from(["exp", "cube", "shift", "stretch"]))
def test_an_increasing_map_changes_nothing_but_costs(t: list[float], n: list[float], name: str) -> None:
    maps = {
        "exp": lambda x: np.exp(x / 4),
        "cube": lambda x: x**3,
        "shift": lambda x: x + 64.0,
        "stretch": lambda x: 4 * x,
    }
    before = values(SortedScores.from_arrays(np.array(t), np.array(n)))
    after = values(SortedScores.from_arrays(maps[name](np.array(t)), maps[name](np.array(n))))
    free = {"cllr", "calibration_loss"} | ({"d_sys"} if name in ("exp", "cube") else set())
    for figure in set(NAMES) - free:
        assert after[figure] == pytest.approx(before[figure], abs=1e-9), figure


@given(small, small, st.integers(0, 1000))
@settings(max_examples=40)
def test_weights_are_repeated_trials(t: list[float], n: list[float], seed: int) -> None:
    """Whole weights give the same as trials written out as often as they weigh."""
    rng = np.random.default_rng(seed)
    each = np.arange(len(t) + len(n))  # every trial is of a person of its own
    scores = Scores(np.array([*t, *n]), each < len(t), each, each)
    data = SortedScores.from_arrays(scores.targets, scores.impostors)
    edges = data.edges
    place = layout(scores, len(each), group(data.targets, data.impostors), edges)
    wt, wn = rng.integers(0, 3, len(t)), rng.integers(0, 3, len(n))
    wt[0], wn[0] = 1, 1
    drawn = np.concatenate([wt, wn])[:, None].astype(float)
    for method in ("rocch", "interpolated"):
        sets = resampling.ReweightedSets(place.targets.reweight(drawn), place.impostors.reweight(drawn))
        found = {name: sets.of(function) for name, function in score_functions(method).items()}
        repeated = SortedScores.from_arrays(np.repeat(t, wt), np.repeat(n, wn))
        expected = values(repeated, method)
        for name in set(NAMES) - {"d_sys"}:
            assert found[name][0] == pytest.approx(expected[name], abs=1e-9), name
        t_bins, n_bins = (bin_counts(x, edges) for x in (repeated.targets, repeated.impostors))
        d_sys = of_histograms(t_bins, n_bins)
        assert found["d_sys"][0] == pytest.approx(float(d_sys), abs=1e-9)


def test_people_are_drawn_with_their_trials_on_both_sides() -> None:
    scores = correlated(np.random.default_rng(1), 5, 2, 1.0)
    data = SortedScores.from_arrays(scores.targets, scores.impostors)
    edges = data.edges
    place = layout(scores, 5, group(data.targets, data.impostors), edges)
    drawn = np.array([[2.0], [0.0], [1.0], [1.0], [1.0]])
    for sums in (place.targets.reweight(drawn).groups, place.targets.reweight(drawn).bins):
        assert sums.sum() == 2 * 5  # a target trial counts as often as its person, not squared
    assert place.impostors.reweight(drawn).groups.sum() == 2 * (5 * 5 - (4 + 0 + 1 + 1 + 1))
    same, again = (resampling.replicates(scores, data, FUNCTIONS, resamples=60, seed=3) for _ in range(2))
    assert (same.samples["d_ece"] == again.samples["d_ece"]).all()
    assert same.clusters == 5


def test_leaving_each_person_out_is_drawing_everybody_else() -> None:
    scores = correlated(np.random.default_rng(1), 6, 3, 1.0)
    data = SortedScores.from_arrays(scores.targets, scores.impostors)
    edges = data.edges
    place = layout(scores, 6, group(data.targets, data.impostors), edges)
    for cells in (place.targets, place.impostors):
        left_out, others = cells.without_each(), cells.reweight(1 - np.eye(6))
        np.testing.assert_array_equal(left_out.groups, others.groups)
        np.testing.assert_array_equal(left_out.bins, others.bins)
        np.testing.assert_allclose(left_out.cost, others.cost)


def test_names_decide_the_draw_not_the_order_of_the_file() -> None:
    scores = correlated(np.random.default_rng(1), 6, 3, 1.0)
    named = Scores(scores.values, scores.is_target, scores.enroll_speaker, scores.test_speaker, list("abcdef"))
    order = np.random.default_rng(2).permutation(len(scores))
    codes = np.array([3, 5, 0, 1, 4, 2])
    names = [""] * 6
    for old, new in enumerate(codes):
        names[new] = "abcdef"[old]
    assert scores.enroll_speaker is not None
    assert scores.test_speaker is not None
    shuffled = Scores(scores.values[order], scores.is_target[order], codes[scores.enroll_speaker][order],
                      codes[scores.test_speaker][order], names)  # fmt: skip
    one, two = (measure(s, resamples=60)["d_ece"] for s in (named, shuffled))
    assert one.interval == pytest.approx(two.interval, rel=1e-9)  # type: ignore[union-attr]


def test_coarse_groups_change_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    scores = correlated(rng, 12, 20, 1.2)
    fine = measure(scores, resamples=60)
    monkeypatch.setattr(resampling, "MOST_GROUPS", 300)
    coarse = measure(scores, resamples=60)
    for name in ("eer", "d_ece", "min_cllr"):
        np.testing.assert_allclose(coarse[name].interval, fine[name].interval, rtol=0.08)


def test_intervals_without_people_say_so() -> None:
    rng = np.random.default_rng(0)
    found = measure(Scores.from_arrays(rng.normal(1, 1, 50), rng.normal(0, 1, 500)), resamples=60)
    assert found["eer"].interval is not None
    assert "speakers" not in found["eer"].n


def test_null_levels_are_those_of_the_methods_page() -> None:
    rng = np.random.default_rng(0)
    found = null_levels(Scores.from_arrays(rng.normal(size=548), rng.normal(size=11196)), FUNCTIONS, draws=400)
    assert found["d_ece"].mean == pytest.approx(0.0019, abs=2e-4)
    assert found["d_ece"].range[1] == pytest.approx(0.0042, abs=6e-4)
    assert found["l_w"].mean == pytest.approx(0.48, abs=0.06)
    assert found["eer"].mean == pytest.approx(48.9, abs=0.15)
    assert found["d_sys"].mean == pytest.approx(0.060, abs=0.004)
    assert found["tpr@fpr=0.01"].mean == pytest.approx(1, abs=0.1)


def test_null_levels_are_those_of_shuffled_labels() -> None:
    rng = np.random.default_rng(1)
    pooled = rng.integers(0, 30, 400).astype(float)
    for targets in (60, 330):  # either class may be the rarer one
        found = null_levels(Scores.from_arrays(pooled[:targets], pooled[targets:]), FUNCTIONS, draws=300, seed=2)
        direct = []
        for _ in range(300):
            shuffled = rng.permutation(pooled)
            direct.append(values(SortedScores.from_arrays(shuffled[:targets], shuffled[targets:])))
        for name in NAMES:
            column = np.array([one[name] for one in direct])
            error = 5 * column.std() / np.sqrt(150) + 1e-9
            assert found[name].mean == pytest.approx(column.mean(), abs=error), name


def test_nothing_to_find_means_no_interval() -> None:
    assert interval(1.0, np.array([np.nan, np.nan]), 5, Shape()) is None
    assert interval(1.0, np.arange(10.0), 1, Shape()) is None
    assert interval(np.inf, np.arange(10.0), 5, Shape()) is None


def test_student_t_is_scipys() -> None:
    from scipy.special import stdtrit

    for freedom in (1, 2, 3, 4, 7, 19, 100, 10**5):
        for p in (0.9, 0.975, 0.995):
            assert t_quantile(freedom, p) == pytest.approx(float(stdtrit(freedom, p)))


def test_the_same_run_calibrates_itself() -> None:
    scores = correlated(np.random.default_rng(2), 10, 8, 1.5)
    found = cross_calibration(scores, scores, resamples=100)
    d_ece = plain(scores)["d_ece"].value
    assert found["c_ece_isotonic"].value == pytest.approx(d_ece, abs=0.02)
    assert found["c_ece_linear"].value == pytest.approx(d_ece, abs=0.07)
    low, high = found["c_ece_linear"].interval or (1, 0)
    assert low < found["c_ece_linear"].value < high


def test_c_ece_by_hand() -> None:
    scores = correlated(np.random.default_rng(2), 6, 3, 1.5)
    other = correlated(np.random.default_rng(3), 6, 3, 1.5)
    found = cross_calibration(scores, other, intervals=False)["c_ece_linear"].value
    assert found == pytest.approx(
        zebra.c_ece(scores.targets, scores.impostors, zebra.train("linear", other.targets, other.impostors))
    )


def test_compared_sets_share_their_people() -> None:
    sets = [correlated(np.random.default_rng(i), 10, 4, d) for i, d in enumerate((4.0, 0.3, 1.5))]
    found = compare_sets(*sets, resamples=80)
    assert 80 < found["d_ece_op_oo"].value <= 100
    low, high = found["d_ece_op_oo"].interval or (1, 0)
    assert low < high <= 100
    assert found["g_d_ece"].interval is not None
    with pytest.raises(InputError, match="different people"):
        compare_sets(sets[0], sets[1], correlated(np.random.default_rng(9), 11, 4, 1.0), resamples=60)


def test_a_speaker_whom_protection_fails_comes_first() -> None:
    scores = correlated(np.random.default_rng(7), 8, 25, 0.3)
    assert scores.enroll_speaker is not None
    failed = (scores.enroll_speaker == 5) & scores.is_target
    worse = replace(scores, values=scores.values + 4 * failed)
    found = per_speaker(worse, resamples=60)
    assert found["d_ece_per_speaker"][0].at["speaker"] == "5"
    assert len(found["eer_per_speaker"]) == 8
    first, second = found["d_ece_per_speaker"][:2]
    assert first.value > 3 * second.value
    assert first.interval is not None
    assert first.interval[0] > second.null  # type: ignore[operator]
    with pytest.raises(InputError, match="speaker labels"):
        per_speaker(Scores.from_arrays([1.0], [0.0]))


def test_scores_validate_themselves() -> None:
    good = Scores.from_matrix([[5, 1], [0, 4]], ["a", "b"], ["a", "b"], mask=[[True, True], [True, True]])
    assert good.speaker_count == 2
    assert "of 2 speakers" in repr(good)
    for bad in (
        lambda: Scores(np.array([1.0, np.nan]), np.array([True, False])),
        lambda: Scores(np.array([1.0, 2.0]), np.array([True, True])),
        lambda: Scores(np.array([1.0, 2.0]), np.array([True])),
        lambda: Scores(np.array([1.0, 2.0]), np.array([True, False]), np.array([0, 1])),
        lambda: Scores(np.array([1.0, 2.0]), np.array([True, False]), np.array([0]), np.array([0])),
        lambda: Scores.from_matrix([[1.0]], ["a", "b"], ["a"]),
        lambda: Scores.from_arrays([1.0], [0.0], target_speakers=(["a"], ["a"])),
    ):
        with pytest.raises(InputError):
            bad()
    made = Scores.from_arrays([1.0], [0.0], target_speakers=(["a"], ["a"]), impostor_speakers=(["a"], ["b"]))
    assert made.counts["speakers"] == 2


@pytest.mark.slow
def test_intervals_cover() -> None:
    """Correlated trials: 95 of 100 intervals cover the true value, give or take three standard errors of so few
    samples. The benchmark of the same name has 93.5 to 95.5 % of many more."""
    from benchmarks.bench_coverage_scores import coverage

    found = coverage(people=16, utterances=8, distance=1.0, samples=100, resamples=100, seed=4)
    for name, rate in found.items():
        assert 0.885 <= rate <= 0.995, (name, rate)


@pytest.mark.parametrize("scale", [1.7e308, 5e-324, 1e-300])
def test_enormous_and_tiny_scores_are_only_scores(scale: float) -> None:
    """Ranks count, not size: no warning, no crash, the same measures of ranks."""
    rng = np.random.default_rng(0)
    signs = np.sign(rng.normal(0.4, 1, 40)), np.sign(rng.normal(-0.4, 1, 300))
    people = (np.arange(40) % 8, np.arange(300) % 8)
    given = {"target_speakers": (people[0], people[0]), "impostor_speakers": (people[1], (people[1] + 1) % 8)}
    small = Scores.from_arrays(*signs, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        large = Scores.from_arrays(signs[0] * scale, signs[1] * scale, **given)
        found, wanted = (measure(x, resamples=50) for x in (large, small))
        cross_calibration(large, small, resamples=50)
        per_speaker(large, resamples=50)
    for name in ("eer", "min_cllr", "d_ece", "l_w", "tpr@fpr=0.01"):
        assert found[name].value == pytest.approx(wanted[name].value, abs=1e-12)
        assert found[name].interval == pytest.approx(wanted[name].interval, abs=1e-12)
    assert 0 <= found["d_sys"].value <= 1
    assert found["calibration_loss"].value >= 0


def test_what_few_trials_cannot_show() -> None:
    """One bin of D_sys says 0 whatever the scores are; one target speaker says nothing about people."""
    t, n = np.linspace(2, 3, 19), np.linspace(0, 1, 60)
    codes = (np.arange(19) % 4, np.arange(60) % 4)
    some = Scores.from_arrays(t, n, target_speakers=(codes[0],) * 2, impostor_speakers=(codes[1], (codes[1] + 1) % 4))
    found = measure(some, resamples=50)
    assert found["d_sys"].value == 0
    assert found["d_sys"].interval is None
    assert found["eer"].interval is not None
    assert found["tpr@fpr=0.01"].method == "no false alarm"
    one = Scores.from_arrays(t, n, target_speakers=(["a"] * 19,) * 2, impostor_speakers=(["a"] * 60, codes[1]))
    assert all(estimate.interval is None for estimate in measure(one, resamples=50).values())


def test_every_number_says_how_it_was_computed() -> None:
    found = measure(Scores.from_arrays([2.0, 3.0], [0.0, 1.0] * 50), intervals=False)
    assert all(estimate.method for estimate in found.values())
    assert found["tpr@fpr=0.01"].method == "1 false alarm"


def test_the_rule_of_the_challenges_has_an_interval() -> None:
    scores = correlated(np.random.default_rng(4), 10, 3, 1.0)
    page = measure(scores, resamples=60, eer_method="speechbrain")["eer"]
    assert page.value == eer(scores.targets, scores.impostors, "speechbrain")
    assert page.interval is not None
    assert page.interval[0] <= page.value <= page.interval[1]


def test_an_interval_at_the_end_of_the_range_does_not_run_backwards() -> None:
    """Rounding may take a value beyond the largest one that there is."""
    highest = 1 / np.log(4)
    above = float(np.nextafter(highest, 1))
    found = interval(above, np.full(50, above), 20, Shape(high=highest))
    assert found is not None
    assert found[0] <= found[1]
