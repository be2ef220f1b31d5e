"""The order of numbers, beside NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from veilmeter.metrics import calibration
from veilmeter.metrics.calibration import levels_of, order_of

FINITE = st.floats(allow_nan=False, width=64)
ALIKE = st.sampled_from(
    [0.0, -0.0, 1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 0), -1.0, np.nextafter(-1.0, 0), 5e-324]
)


@given(arrays(np.float64, st.integers(1, 60), elements=FINITE | ALIKE))
def test_it_is_the_stable_order(values: np.ndarray) -> None:
    assert order_of(values).tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("digits", [2, 9, 17])
def test_it_is_the_stable_order_of_many_near_each_other(dtype: type, digits: int) -> None:
    values = np.round(np.random.default_rng(digits).normal(1, 1e-6, 50_000), digits).astype(dtype)
    assert np.array_equal(order_of(values), np.argsort(values, kind="stable"))


def test_the_numbers_stay_as_they_are() -> None:
    values = np.array([2.0, -0.0, 1.0])
    assert order_of(values).tolist() == [1, 2, 0]
    assert values.tobytes() == np.array([2.0, -0.0, 1.0]).tobytes()


@given(arrays(np.float64, st.integers(1, 60), elements=st.integers(-9, 9).map(float)))
def test_levels_are_the_distinct_numbers(values: np.ndarray) -> None:
    numbers, of, sizes = np.unique(values, return_inverse=True, return_counts=True)
    found = levels_of(values)
    assert found.numbers.tolist() == numbers.tolist()
    assert found.of.tolist() == of.tolist()
    assert found.sizes.tolist() == sizes.tolist()


def test_of_very_many_numbers_those_on_one_level_hardly_differ() -> None:
    values = np.random.default_rng(0).normal(size=calibration.MANY)
    found = levels_of(values)
    assert len(found.numbers) == calibration.FINE
    assert np.abs(found.numbers[found.of] - values).max() <= np.ptp(values) / (calibration.FINE - 1)
    assert np.array_equal(found.sizes, np.bincount(found.of, minlength=calibration.FINE))
    assert (np.diff(found.of[order_of(values)]) >= 0).all()


@pytest.mark.parametrize("far", [1e9, 1e308])
def test_a_far_number_does_not_put_all_others_on_one_level(far: float) -> None:
    values = np.random.default_rng(0).normal(size=calibration.MANY)
    values[:2] = far, -far
    assert len(levels_of(values).numbers) == len(np.unique(values))
