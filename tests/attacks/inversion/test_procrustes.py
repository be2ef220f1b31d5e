from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from veilmeter.attacks.inversion.procrustes import is_orthogonal, nearest_orthogonal, polar_step, procrustes
from veilmeter.core.errors import InputError


def random_rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    return nearest_orthogonal(rng.standard_normal((d, d)))


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 30))
def test_a_rotation_is_found_again(seed: int, d: int, extra: int) -> None:
    rng = np.random.default_rng(seed)
    a, w = rng.standard_normal((d + extra, d)), random_rotation(rng, d)
    assert np.allclose(procrustes(a, a @ w), w, atol=1e-8)


@given(st.integers(0, 10_000))
def test_same_as_scipy_where_the_answer_is_unique(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((20, 6)), rng.standard_normal((20, 6))
    assert np.allclose(procrustes(a, b), orthogonal_procrustes(a, b)[0], atol=1e-8)


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_no_orthogonal_matrix_fits_better(seed: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((pairs, 5)), rng.standard_normal((pairs, 5))
    w = procrustes(a, b)
    assert is_orthogonal(w)
    least = np.linalg.norm(a @ w - b)
    for _ in range(20):
        near = nearest_orthogonal(w + 0.3 * rng.standard_normal((5, 5)))
        assert least <= np.linalg.norm(a @ near - b) + 1e-9


def test_fewer_pairs_than_dimensions_turn_the_rest_as_little_as_possible() -> None:
    a = np.eye(6)[:2]
    assert np.allclose(procrustes(a, a), np.eye(6))  # the four free directions stay
    swapped = procrustes(np.eye(6)[:1], np.eye(6)[1:2])
    assert np.allclose(swapped[2:, 2:], np.eye(4))
    # The same answer whatever the basis in which the SVD happens to leave the free part.
    rng = np.random.default_rng(0)
    a, b, q = rng.standard_normal((3, 8)), rng.standard_normal((3, 8)), random_rotation(rng, 8)
    assert np.allclose(q.T @ procrustes(a, b) @ q, procrustes(a @ q, b @ q), atol=1e-8)


@given(st.integers(0, 1000), st.integers(2, 9))
def test_without_reflections_the_determinant_is_one(seed: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((pairs, 5)), rng.standard_normal((pairs, 5))
    w = procrustes(a, b, reflections=False)
    assert is_orthogonal(w)
    assert np.linalg.det(w) == pytest.approx(1)
    for _ in range(10):
        other = nearest_orthogonal(w + 0.2 * rng.standard_normal((5, 5)))
        if np.linalg.det(other) > 0:
            assert np.linalg.norm(a @ w - b) <= np.linalg.norm(a @ other - b) + 1e-9


@given(st.integers(0, 10_000), st.integers(1, 20))
def test_low_rank_step_is_the_full_one(seed: int, batch: int) -> None:
    rng = np.random.default_rng(seed)
    w, a, b = random_rotation(rng, 24), rng.standard_normal((batch, 24)), rng.standard_normal((batch, 24))
    assert np.allclose(polar_step(w, a, 0.1 * b), nearest_orthogonal(w + 0.1 * a.T @ b), atol=1e-8)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (np.eye(3), np.eye(3)[:2], "do not pair"),
        (np.eye(3), np.ones((3, 2)), "do not pair"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "at least one pair"),
        (np.zeros((2, 3)), np.ones((2, 3)), "no direction"),
    ],
)
def test_what_can_not_be_aligned_is_said(a: np.ndarray, b: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        procrustes(a, b)
