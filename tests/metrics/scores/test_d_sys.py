"""D_sys against the published recipe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from veilmeter.data.scores import Scores
from veilmeter.metrics.scores.d_sys import d_sys
from veilmeter.metrics.scores.summary import band_excess

scores = st.lists(st.integers(-6, 6).map(float) | st.floats(-50, 50), min_size=1, max_size=40)


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
    expected = float(trapezoid(d * y_t, centres))
    if np.count_nonzero(y_t) == 1:  # the rule would lose half of a single bin at either end
        expected = float(np.sum(d * y_t * np.diff(edges)))
    assert d_sys(targets, impostors) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("targets", [20, 50, 500])
def test_constant_scores_that_differ_are_told_apart_fully(targets: int) -> None:
    assert d_sys(np.full(targets, 3.0), np.full(100, 1.0)) == 1
    assert d_sys(np.full(targets, 1.0), np.full(100, 3.0)) == 1
    assert d_sys(np.full(targets, 1.0), np.full(100, 1.0)) == 0


@pytest.mark.parametrize("named", [True, False])
def test_bands_are_seen_that_bins_are_too_wide_for(named: bool) -> None:
    rng = np.random.default_rng(0)
    people = np.array([f"s{number}" for number in range(30)], object)
    spoken = np.repeat(people, 3)
    same = people[:, None] == spoken

    def excess(matrix: np.ndarray) -> float:
        scores = Scores.from_matrix(matrix, people, spoken)
        return band_excess(scores if named else Scores(scores.values, scores.is_target))

    noise = rng.standard_normal(same.shape)
    comb = np.round(2 * noise) + 0.1 * rng.standard_normal(same.shape) + same * rng.choice([-0.5, 0.5], same.shape)
    assert excess(comb) > 20
    assert abs(excess(noise)) < 4
    assert abs(excess(np.round(noise))) < 4  # ties in the order of a file
    assert abs(excess(noise + rng.standard_normal((30, 1)))) < 4
