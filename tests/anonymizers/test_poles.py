"""Factoring: against known roots, against numpy's eigenvalues, and on what does not converge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.anonymizers import poles

pairs = st.lists(
    st.tuples(st.floats(0.05, 0.999), st.floats(0.01, np.pi - 0.01)),
    min_size=1,
    max_size=10,
)


def known(radii_and_angles: list[tuple[float, float]], real: list[float]) -> np.ndarray:
    upper = [radius * np.exp(1j * angle) for radius, angle in radii_and_angles]
    return np.real(np.poly([*upper, *np.conj(upper), *real]))


def roots_of(b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.concatenate([np.roots([1.0, one, other]) for one, other in zip(b, c, strict=True)])


@given(pairs, st.lists(st.floats(-0.99, 0.99), max_size=4).filter(lambda found: len(found) % 2 == 0))
def test_what_is_found_multiplies_out_to_the_polynomial(found: list[tuple[float, float]], real: list[float]) -> None:
    p = known(found, real)
    b, c, ok = poles.factors(np.repeat(p[:, None], 5, axis=1))
    if ok[0]:
        np.testing.assert_allclose(poles.product(b, c)[:, 0], p, atol=2e-12 * np.abs(p).max())


def test_well_separated_roots_are_all_found() -> None:
    rng = np.random.default_rng(0)
    polynomials, expected = [], []
    for number in range(300):
        count = number % 3  # pairs of real roots
        angles = (np.arange(10 - count) + rng.uniform(0.3, 0.7, 10 - count)) * np.pi / (10 - count)
        upper = rng.uniform(0.6, 0.999, 10 - count) * np.exp(1j * angles)
        real = (np.arange(2 * count) + rng.uniform(0.3, 0.7, 2 * count)) / max(1, count) - 1
        expected.append(np.concatenate([upper, upper.conj(), real]))
        polynomials.append(np.real(np.poly(expected[-1])))
    b, c, ok = poles.factors(np.array(polynomials).T)
    assert ok.mean() > 0.98
    for number in np.nonzero(ok)[0]:
        got = roots_of(b[:, number], c[:, number])
        distance = np.abs(got[:, None] - expected[number][None]).min(axis=0)
        assert distance.max() < 1e-7


@pytest.mark.parametrize("count", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("width", [1, 40])
def test_any_even_degree_and_any_number_of_frames(count: int, width: int) -> None:
    rng = np.random.default_rng(count)
    polynomials = []
    for _ in range(width):
        angles = (np.arange(count) + rng.uniform(0.3, 0.7, count)) * np.pi / count
        upper = rng.uniform(0.6, 0.98, count) * np.exp(1j * angles)
        polynomials.append(np.real(np.poly([*upper, *upper.conj()])))
    p = np.array(polynomials).T
    b, c, ok = poles.factors(p)
    assert b.shape == c.shape == (count, width)
    assert ok.mean() > 0.9
    np.testing.assert_allclose(poles.product(b, c)[:, ok], p[:, ok], atol=1e-11)


def test_two_real_roots_are_a_factor_too_and_no_frames_are_no_frames() -> None:
    b, c, ok = poles.factors(np.array([[1.0, 1.0], [-0.9, 0.3], [0.2, 0.9]]))
    assert ok.all()
    np.testing.assert_allclose([b[0], c[0]], [[-0.9, 0.3], [0.2, 0.9]], rtol=1e-15)
    assert poles.factors(np.zeros((21, 0)))[2].shape == (0,)


def test_speech_frames_hardly_ever_need_the_eigenvalues(make_voice: Any, plain: Any) -> None:
    weights = plain.window()
    signal = make_voice(3, seconds=4.0)
    frames = [signal[start : start + 320] * weights for start in range(0, len(signal) - 320, 160)]
    polynomials = np.array([plain.burg(frame) for frame in frames]).T
    b, c, ok = poles.factors(polynomials)
    assert ok.mean() > 0.98
    for number in np.nonzero(ok)[0][::20]:
        got = np.sort_complex(roots_of(b[:, number], c[:, number]))
        numpy_roots = np.roots(polynomials[:, number])
        assert np.abs(got[:, None] - numpy_roots[None]).min(axis=1).max() < 1e-8


@pytest.mark.parametrize(
    "roots",
    [
        [0.9 * np.exp(1j), 0.9 * np.exp(1j)],  # a double pair
        [0.5 * np.exp(0.3j)] * 5,
        [1e-9 * np.exp(2j), 0.9 * np.exp(1j)],
    ],
)
def test_multiple_roots_are_found_or_given_up_but_never_wrong(roots: list[complex]) -> None:
    p = np.real(np.poly([*roots, *np.conj(roots)]))
    b, c, ok = poles.factors(np.repeat(p[:, None], 6, axis=1))
    if ok[0]:
        np.testing.assert_allclose(poles.product(b, c)[:, 0], p, atol=1e-11)
    assert np.isfinite(b).all()
    assert np.isfinite(c).all()


def test_frames_do_not_influence_each_other_beyond_rounding() -> None:
    rng = np.random.default_rng(1)
    upper = rng.uniform(0.6, 0.99, (200, 10)) * np.exp(1j * rng.uniform(0.05, 3.1, (200, 10)))
    polynomials = np.array([np.real(np.poly([*one, *one.conj()])) for one in upper]).T
    b, c, ok = poles.factors(polynomials)
    b2, c2, ok2 = poles.factors(polynomials[:, ::-1].copy())
    both = ok & ok2[::-1]
    assert both.mean() > 0.8
    np.testing.assert_allclose(poles.product(b, c)[:, both], poles.product(b2, c2)[:, ::-1][:, both], atol=1e-9)
