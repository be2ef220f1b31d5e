"""Cllr and min Cllr against their formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.metrics.scores.cllr import cllr, min_cllr

scores = st.lists(st.integers(-6, 6).map(float) | st.floats(-50, 50), min_size=1, max_size=40)


@given(scores, scores)
def test_cllr_is_its_formula(t: list[float], n: list[float]) -> None:
    up = np.mean(np.logaddexp(0, -np.array(t)))
    down = np.mean(np.logaddexp(0, np.array(n)))
    assert cllr(t, n) == pytest.approx((up + down) / (2 * np.log(2)), rel=1e-9, abs=1e-15)


def test_cllr_of_extreme_scores_is_finite() -> None:
    assert cllr([-800.0], [-1e9]) == pytest.approx(400 / np.log(2))
    assert cllr([1e300], [1e300]) == pytest.approx(1e300 / (2 * np.log(2)))


@given(scores, scores)
def test_min_cllr_is_between_0_and_1_and_below_cllr(t: list[float], n: list[float]) -> None:
    assert -1e-12 <= min_cllr(t, n) <= min(1 + 1e-9, cllr(t, n) + 1e-9)
