"""What measures give back is decided once: single measures numbers, measures of a set of scores estimates by name."""

from __future__ import annotations

import numpy as np
import pytest

import veilmeter
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.data.scores import Scores
from veilmeter.metrics.scores.score_sets import compare_sets, cross_calibration, per_speaker
from veilmeter.metrics.scores.summary import measure, score_functions

RNG = np.random.default_rng(0)
PEOPLE = [f"p{i}" for i in range(6)]
SCORES = Scores.from_matrix(RNG.normal(size=(6, 18)) + 2 * np.eye(6).repeat(3, axis=1), PEOPLE, np.repeat(PEOPLE, 3))


@pytest.mark.parametrize("name", ["eer", "cllr", "min_cllr", "d_sys"])
def test_a_single_measure_is_a_number(name: str) -> None:
    assert type(getattr(veilmeter, name)(SCORES.targets, SCORES.impostors)) is float


def test_those_with_a_parameter_or_several_parts() -> None:
    assert type(veilmeter.tpr_at_fpr(SCORES.targets, SCORES.impostors, 0.1)) is float
    found = veilmeter.zebra(SCORES.targets, SCORES.impostors)
    assert (type(found.d_ece), type(found.l_w), type(found.tag)) == (float, float, str)


def test_single_measures_are_those_of_the_page() -> None:
    page = measure(SCORES, intervals=False)
    for name in ("eer", "cllr", "min_cllr", "d_sys"):
        assert getattr(veilmeter, name)(SCORES.targets, SCORES.impostors) == page[name].value
    found = veilmeter.zebra(SCORES.targets, SCORES.impostors)
    assert (found.d_ece, found.l_w) == (page["d_ece"].value, page["l_w"].value)


def test_measures_of_a_set_of_scores_are_estimates_by_name() -> None:
    page = measure(SCORES, intervals=False)
    assert page.names == tuple(score_functions())
    options = {"intervals": False}
    for found in (page, cross_calibration(SCORES, SCORES, **options), compare_sets(SCORES, SCORES, SCORES, **options)):
        assert all(type(point) is Estimate and point.name == name for name, point in found.items())
        assert Estimates.of(found).names == tuple(found.keys())


def test_a_curve_is_a_list_of_estimates() -> None:
    curves = per_speaker(SCORES, intervals=False, draws=5)
    assert all(type(point) is Estimate for curve in curves.values() for point in curve)
    assert len(Estimates.of(curves)["eer_per_speaker"]) == 6
