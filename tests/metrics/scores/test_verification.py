"""Verification measures against literal readings of their definitions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from veilmeter.core.errors import InputError
from veilmeter.metrics.scores import verification as v

scores = st.lists(st.integers(-6, 6).map(float) | st.floats(-50, 50), min_size=1, max_size=40)


def rates(t: list[float], n: list[float]) -> tuple[list[float], list[float]]:
    """Miss and false alarm rate at every threshold, the highest first, with "accept nothing" before them."""
    cuts = sorted({*t, *n}, reverse=True)
    miss = [1.0] + [sum(x < c for x in t) / len(t) for c in cuts]
    false = [0.0] + [sum(x >= c for x in n) / len(n) for c in cuts]
    return miss, false


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
    assert v.eer(t, n, "roc") == pytest.approx(scikit_eer(t, n))


@given(scores, scores)
def test_the_challenges_eer_against_its_definition(t: list[float], n: list[float]) -> None:
    """Every distinct score and every midpoint is a threshold; the first where both rates differ least decides."""
    distinct = sorted({*t, *n})
    thresholds = sorted([*distinct, *((a + b) / 2 for a, b in pairwise(distinct))])
    pairs = [(Fraction(sum(x <= at for x in t), len(t)), Fraction(sum(x > at for x in n), len(n))) for at in thresholds]
    miss, false = min(pairs, key=lambda pair: abs(pair[0] - pair[1]))
    assert v.eer(t, n, "speechbrain") == pytest.approx(float(50 * (miss + false)))


@given(scores, scores)
def test_interpolated_eer_lies_on_the_roc(t: list[float], n: list[float]) -> None:
    miss, false = rates(t, n)
    found = v.eer(t, n, "interpolated") / 100
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
    assert v.eer(t, n) == pytest.approx(100 * least, abs=1e-9)
    assert v.eer(t, n) <= 50 + 1e-9
    assert v.eer(t, n) <= v.eer(t, n, "interpolated") + 1e-9


def test_only_the_option_folds() -> None:
    t, n = [0.0, 1.0], [2.0, 3.0]
    assert v.eer(t, n, "roc") == 100
    assert v.eer(t, n, "roc", fold=True) == 0
    assert v.eer(t, n) == 50
    with pytest.raises(InputError, match="rocch"):
        v.eer(t, n, "best")


@given(scores, scores)
def test_cllr_is_its_formula(t: list[float], n: list[float]) -> None:
    up = np.mean(np.logaddexp(0, -np.array(t)))
    down = np.mean(np.logaddexp(0, np.array(n)))
    assert v.cllr(t, n) == pytest.approx((up + down) / (2 * np.log(2)), rel=1e-9, abs=1e-15)


def test_cllr_of_extreme_scores_is_finite() -> None:
    assert v.cllr([-800.0], [-1e9]) == pytest.approx(400 / np.log(2))
    assert v.cllr([1e300], [1e300]) == pytest.approx(1e300 / (2 * np.log(2)))


@given(scores, scores)
def test_min_cllr_is_between_0_and_1_and_below_cllr(t: list[float], n: list[float]) -> None:
    assert -1e-12 <= v.min_cllr(t, n) <= min(1 + 1e-9, v.cllr(t, n) + 1e-9)


@given(scores, scores, st.sampled_from([0.0001, 0.01, 0.1, 0.25, 0.5, 1.0]))
def test_tpr_at_fpr_is_the_best_allowed_threshold(t: list[float], n: list[float], fpr: float) -> None:
    miss, false = rates(t, n)
    best = max(1 - m for m, f in zip(miss, false, strict=True) if f <= fpr + 1e-12)
    assert v.tpr_at_fpr(t, n, fpr) == pytest.approx(100 * best)


@given(scores, scores)
def test_d_sys_is_the_published_recipe(t: list[float], n: list[float]) -> None:
    targets, impostors = np.repeat(t, 7), np.array(n)
    bins = max(1, min(len(targets) // 10, 100))
    low, high = min(targets.min(), impostors.min()), max(targets.max(), impostors.max())
    both = (low, high) if high > low else (low - 0.5, high + 0.5)
    y_t, edges = np.histogram(targets, bins=bins, range=both, density=True)
    y_n, _ = np.histogram(impostors, bins=bins, range=both, density=True)
    d = np.zeros(bins)
    for i in range(bins):
        if y_t[i] > 0:
            ratio = np.inf if y_n[i] == 0 else y_t[i] / y_n[i]
            d[i] = 1.0 if np.isinf(ratio) else max(0.0, 2 * ratio / (1 + ratio) - 1)
    centres = (edges[1:] + edges[:-1]) / 2
    assert v.d_sys(targets, impostors) == pytest.approx(float(trapezoid(d * y_t, centres)), abs=1e-9)


def test_names_of_rates() -> None:
    assert [v.tpr_name(fpr) for fpr in v.LOW_FPRS] == ["tpr@fpr=0.01", "tpr@fpr=0.001", "tpr@fpr=0.0001"]
