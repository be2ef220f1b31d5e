"""PAV against a loop that anyone can follow, Laplace's rule with real dummies, logistic regression by its gradient."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from veilmeter.core.errors import InputError
from veilmeter.metrics import calibration
from veilmeter.metrics.calibration import logistic, pav, pav_llrs, pool_starts, sigmoid, softplus

# Few distinct values, so that ties within and between the classes are common.
few_values = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)
any_values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def plain_posteriors(scores: list[float], labels: list[float]) -> dict[float, float]:
    """Pool adjacent violators, one distinct score at a time: the posterior of each distinct score."""
    blocks: list[list[float]] = []  # targets, trials, then the scores of the block
    for score in sorted(set(scores)):
        mine = [label for s, label in zip(scores, labels, strict=True) if s == score]
        blocks.append([sum(mine), len(mine), score])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1], *blocks[-1][2:], *last[2:]]
    return {score: block[0] / block[1] for block in blocks for score in block[2:]}


def plain_llrs(targets: list[float], impostors: list[float], laplace: bool) -> dict[float, float]:
    scores, labels = targets + impostors, [1.0] * len(targets) + [0.0] * len(impostors)
    if laplace:  # one pair below all scores and one above; each pair is one score, so that its order can't matter
        low, high = min(scores) - 1, max(scores) + 1
        scores, labels = [*scores, low, low, high, high], [*labels, 1.0, 0.0, 1.0, 0.0]
    prior = np.log(len(targets) / len(impostors))
    with np.errstate(divide="ignore"):
        return {s: float(np.log(p) - np.log1p(-p) - prior) for s, p in plain_posteriors(scores, labels).items()}


@given(few_values | any_values, few_values | any_values, st.booleans())
def test_pav_is_the_plain_loop(targets: list[float], impostors: list[float], laplace: bool) -> None:
    expected = plain_llrs(targets, impostors, laplace)
    t, n = pav_llrs(targets, impostors, laplace=laplace)
    np.testing.assert_allclose(t, [expected[s] for s in targets], atol=1e-9)
    np.testing.assert_allclose(n, [expected[s] for s in impostors], atol=1e-9)


@given(few_values, few_values)
def test_blocks_hold_all_trials_and_rise(targets: list[float], impostors: list[float]) -> None:
    found = pav(targets, impostors)
    assert found.targets.sum() == len(targets)
    assert found.impostors.sum() == len(impostors)
    assert (np.diff(found.llrs) > 0).all()
    assert (found.lower <= found.upper).all()
    assert (found.upper[:-1] < found.lower[1:]).all()


def test_laplace_keeps_ratios_finite_and_the_prior() -> None:
    found = pav([5.0, 6.0], [1.0, 2.0], laplace=True)
    # One dummy pair joins each class: 3 of 1 against a prior of 2 to 2.
    np.testing.assert_allclose(found.apply([6.0, 1.0]), [np.log(3), -np.log(3)])


def test_equal_scores_say_nothing() -> None:
    assert pav([3.0] * 5, [3.0] * 9).llrs.tolist() == [0.0]
    assert pav_llrs([3.0] * 5, [3.0] * 5)[0].tolist() == [0.0] * 5


def test_a_map_applies_to_other_scores() -> None:
    found = pav([4.0, 8.0], [0.0, 6.0])
    llrs = found.apply([-100.0, 1.9, 2.1, 5.0, 6.9, 7.1, 100.0])
    assert llrs.tolist() == [-np.inf, -np.inf, 0.0, 0.0, 0.0, np.inf, np.inf]


def test_neighbouring_floats_stay_apart() -> None:
    low = 1.0
    high = np.nextafter(low, 2)
    assert pav([high], [low]).apply([low, high]).tolist() == [-np.inf, np.inf]


def test_any_shape_keeps_its_shape() -> None:
    rng = np.random.default_rng(0)
    t, n = rng.normal(1, 1, (3, 4)), rng.normal(0, 1, (5, 6, 2))
    llr_t, llr_n = pav_llrs(t, n)
    assert llr_t.shape == t.shape
    assert llr_n.shape == n.shape
    assert np.isfinite(llr_t).all()


def test_logistic_regression_is_where_the_gradient_vanishes() -> None:
    rng = np.random.default_rng(1)
    t, n = rng.normal(50, 30, 300), rng.normal(0, 40, 5000)
    found = logistic(t, n)
    p_t, p_n = sigmoid(-found.apply(t)), sigmoid(found.apply(n))
    assert abs(p_t.mean() - p_n.mean()) < 1e-6
    assert abs((p_t * t).mean() - (p_n * n).mean()) < 1e-4
    # Both classes count the same: repeating one of them changes nothing.
    again = logistic(np.tile(t, 7), n)
    assert again.slope == pytest.approx(found.slope, rel=1e-6)


def test_logistic_regression_of_separable_and_equal_scores_is_finite() -> None:
    found = logistic([2.0, 3.0], [0.0, 1.0])
    assert np.isfinite([found.slope, found.offset]).all()
    assert found.slope > 1
    assert logistic([1.0, 1.0], [1.0]).apply([1.0, 5.0]).tolist() == [0.0, 0.0]


@given(st.lists(st.floats(-1e300, 1e300), min_size=1))
def test_softplus_and_sigmoid_never_overflow(values: list[float]) -> None:
    x: NDArray[np.float64] = np.array(values)
    assert np.isfinite(softplus(x)).all()
    assert ((sigmoid(x) >= 0) & (sigmoid(x) <= 1)).all()


@pytest.mark.parametrize("bad", [[], [np.nan], [np.inf], [[1.0]]])
def test_unusable_scores_are_errors(bad: list[float]) -> None:
    with pytest.raises(InputError):
        pav(bad, [1.0])
    with pytest.raises(InputError):
        pav([1.0], bad)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=40))
def test_blocks_by_pooling_one_pair_at_a_time(pairs: list[tuple[int, int]]) -> None:
    """Neighbors that do not rise are pooled until all do."""
    blocks = [[value * weight, weight, 1] for value, weight in pairs]
    at = 0
    while at + 1 < len(blocks):
        (a, v, k), (b, w, m) = blocks[at], blocks[at + 1]
        if a * w >= b * v:
            blocks[at : at + 2] = [[a + b, v + w, k + m]]
            at = max(at - 1, 0)
        else:
            at += 1
    values, weights = (np.array(column, float) for column in zip(*pairs, strict=True))
    starts = np.cumsum([0, *(size for _, _, size in blocks[:-1])])
    assert pool_starts(values, weights).tolist() == starts.tolist()


def test_pooling_as_scipy_pools_without_importing_scipy_optimize() -> None:
    """Small files do not wait for that import, and not a block depends on how the compiled step was loaded."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 3, 10, 200, 2000):
        for _ in range(60):
            weights = rng.integers(1, 4, size).astype(float)
            values = rng.integers(0, 5, size) / weights
            before = values.copy(), weights.copy()
            known = isotonic_regression(values, weights=weights).blocks[:-1]
            assert pool_starts(values, weights).tolist() == known.tolist()
            assert np.array_equal(before, (values, weights))
    code = (
        "import sys; from veilmeter.metrics.calibration import pav; pav(range(9), range(5)); "
        "print('scipy.optimize' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_pooling_where_scipy_has_no_such_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values, weights = np.array([0.2, 0.1, 0.5, 0.4, 0.9]), np.ones(5)
    monkeypatch.setattr(calibration.scipy, "__file__", str(tmp_path / "__init__.py"))
    calibration._pava.cache_clear()
    try:
        assert calibration._pava() is calibration._by_public_name
        assert pool_starts(values, weights).tolist() == [0, 2, 4]
    finally:
        calibration._pava.cache_clear()
