"""The EER by each method against literal readings of its definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.scores.rates import rates

from veilmeter.core.errors import InputError
from veilmeter.metrics.scores.eer import eer

scores = st.lists(st.integers(-6, 6).map(float) | st.floats(-50, 50), min_size=1, max_size=40)


def scikit_eer(t: list[float], n: list[float]) -> float:
    """What sklearn.metrics.roc_curve (drop_intermediate) and an argmin give."""
    cuts = sorted({*t, *n}, reverse=True)
    tps = np.array([sum(x >= c for x in t) for c in cuts])
    fps = np.array([sum(x >= c for x in n) for c in cuts])
    if len(fps) > 2:
        kept = np.where(np.r_[True, np.logical_or(np.diff(fps, 2), np.diff(tps, 2)), True])[0]
        fps, tps = fps[kept], tps[kept]
    fpr, fnr = np.r_[0, fps] / len(n), 1 - np.r_[0, tps] / len(t)
    best = np.argmin(np.abs(fnr - fpr))
    return float(100 * (fnr[best] + fpr[best]) / 2)


@given(scores, scores)
def test_roc_eer_is_scikit_learns(t: list[float], n: list[float]) -> None:
    assert eer(t, n, "roc") == pytest.approx(scikit_eer(t, n))


@given(scores, scores)
def test_the_challenges_eer_against_its_definition(t: list[float], n: list[float]) -> None:
    """Every distinct score and every midpoint is a threshold; the first where both rates differ least decides."""
    distinct = sorted({*t, *n})
    thresholds = sorted([*distinct, *((a + b) / 2 for a, b in pairwise(distinct))])
    pairs = [(Fraction(sum(x <= at for x in t), len(t)), Fraction(sum(x > at for x in n), len(n))) for at in thresholds]
    miss, false = min(pairs, key=lambda pair: abs(pair[0] - pair[1]))
    assert eer(t, n, "speechbrain") == pytest.approx(float(50 * (miss + false)))


@given(scores, scores)
def test_interpolated_eer_lies_on_the_roc(t: list[float], n: list[float]) -> None:
    miss, false = rates(t, n)
    found = eer(t, n, "interpolated") / 100
    on_a_segment = [
        min(a, b) - 1e-9 <= found <= max(a, b) + 1e-9 and abs((found - a) * (d - c) - (found - c) * (b - a)) < 1e-9
        for a, b, c, d in zip(miss, miss[1:], false, false[1:], strict=False)
    ]
    assert any(on_a_segment)


@given(scores, scores)
def test_hull_eer_is_the_least_of_all_mixtures(t: list[float], n: list[float]) -> None:
    """The EER on the convex hull is the best equal-error point of any two thresholds mixed at random."""
    miss, false = (np.array(x) for x in rates(t, n))
    least = 1.0
    gap = miss - false
    for i in np.flatnonzero(gap >= 0):
        for j in np.flatnonzero(gap <= 0):
            share = 0.5 if gap[i] == gap[j] else gap[i] / (gap[i] - gap[j])
            least = min(least, miss[i] + share * (miss[j] - miss[i]))
    assert eer(t, n) == pytest.approx(100 * least, abs=1e-9)
    assert eer(t, n) <= 50 + 1e-9
    assert eer(t, n) <= eer(t, n, "interpolated") + 1e-9


def test_only_the_option_folds() -> None:
    t, n = [0.0, 1.0], [2.0, 3.0]
    assert eer(t, n, "roc") == 100
    assert eer(t, n, "roc", fold=True) == 0
    assert eer(t, n) == 50
    with pytest.raises(InputError, match="rocch"):
        eer(t, n, "best")
