from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from veilmeter.attacks.inversion.attack import unit_rows
from veilmeter.attacks.inversion.procrustes import (
    Schedule,
    _gradient_of_grams,
    _gradient_of_vectors,
    assign,
    final_match,
    initial_rotation,
    is_orthogonal,
    mutual_refinement,
    nearest_orthogonal,
    polar_step,
    procrustes,
    sinkhorn,
    transport_cost,
    wasserstein_procrustes,
)
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


QUICK = Schedule(initial_steps=30, steps=64)


def clouds(seed: int, n: int = 60, d: int = 4, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A skewed cloud, the same cloud turned, and the turn."""
    rng = np.random.default_rng(seed)
    x = unit_rows(rng.gamma(1.0, size=(n, d)) * [4, 2, 1, 0.5][:d] - [2, 1, 0.5, 0.2][:d])
    w = nearest_orthogonal(rng.standard_normal((d, d)))
    return x, unit_rows(x @ w + noise * rng.standard_normal((n, d))), w


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 8))
def test_a_plan_has_its_marginals(seed: int, n: int, m: int) -> None:
    plan = sinkhorn(np.random.default_rng(seed).standard_normal((n, m)), 0.2, tolerance=1e-9, steps=100_000)
    assert (plan >= 0).all()
    assert np.allclose(plan.sum(1), 1)
    assert np.allclose(plan.sum(0), n / m, atol=1e-6)


def test_plans_agree_in_and_out_of_the_log_domain() -> None:
    cost = np.random.default_rng(0).standard_normal((7, 7))
    shifted = cost.copy()
    plain = sinkhorn(cost, 0.3, tolerance=1e-11, steps=20_000)
    shifted[0] += 1000  # a constant on a row changes nothing, but makes exp() underflow
    assert np.allclose(sinkhorn(shifted, 0.3, tolerance=1e-11, steps=20_000), plain, atol=1e-6)


def test_the_gradient_of_vectors_is_that_of_gram_matrices() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 5)), rng.normal(size=(26, 5))
    plan = rng.random((26, 30))
    expected = _gradient_of_grams(x, y)(plan)
    np.testing.assert_allclose(_gradient_of_vectors(x, y)(plan), expected, rtol=0, atol=1e-5 * abs(expected).max())


def test_little_regularization_gives_the_assignment() -> None:
    similarity = np.random.default_rng(1).standard_normal((9, 9))
    plan = sinkhorn(-similarity, 0.01, tolerance=1e-3, steps=5000)
    assert np.array_equal(np.argmax(plan, axis=1), assign(similarity))


def test_the_assignment_of_unequal_sets_leaves_some_out() -> None:
    match = assign(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 0.8]]))
    assert match.tolist() == [0, -1, 1]


@pytest.mark.parametrize("seed", range(3))
def test_a_turned_cloud_is_turned_back_without_pairs(seed: int) -> None:
    x, y, w = clouds(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    found = wasserstein_procrustes(x, y[order], seed=seed, schedule=QUICK, rounds=20)
    assert is_orthogonal(found.rotation)
    assert np.abs(found.rotation - w).max() < 0.05


def test_sets_of_different_size() -> None:
    x, y, w = clouds(1, n=80)
    found = wasserstein_procrustes(x, y[:70], schedule=QUICK)
    assert (found.match == -1).sum() == 10
    assert np.abs(found.rotation - w).max() < 0.3
    with pytest.raises(InputError, match="same utterances"):
        wasserstein_procrustes(x, y[:70], schedule=QUICK, matching="row-order")


def test_the_seed_decides_and_full_svd_changes_nothing() -> None:
    x, y, _ = clouds(2, n=40, noise=0.2)
    one = wasserstein_procrustes(x, y, seed=5, schedule=QUICK)
    assert np.array_equal(one.rotation, wasserstein_procrustes(x, y, seed=5, schedule=QUICK).rotation)
    full = wasserstein_procrustes(x, y, seed=5, schedule=Schedule(initial_steps=30, steps=64, full_svd=True))
    assert np.allclose(one.rotation, full.rotation, atol=1e-8)
    assert one.history == pytest.approx(full.history)
    assert one.objective == one.history[-1]


def test_low_rank_steps_in_many_dimensions_are_the_full_ones() -> None:
    rng = np.random.default_rng(3)
    x, y = unit_rows(rng.standard_normal((40, 64))), unit_rows(rng.standard_normal((40, 64)))
    quick = Schedule(initial_steps=5, steps=16)
    full = Schedule(initial_steps=5, steps=16, full_svd=True)
    a, b = (wasserstein_procrustes(x, y, seed=1, schedule=s).history for s in (quick, full))
    assert a == pytest.approx(b, abs=1e-9)


def test_the_first_rotation_does_not_depend_on_the_order() -> None:
    x, y, _ = clouds(4, n=30, noise=0.1)
    order = np.random.default_rng(0).permutation(30)
    assert np.allclose(initial_rotation(x, y, steps=20), initial_rotation(x, y[order], steps=20), atol=1e-6)


def test_row_order_matching_reads_the_answer_and_honest_matching_does_not() -> None:
    """What makes lines 13-20 and 22 of the paper's Table 2 look unsupervised."""
    rng = np.random.default_rng(0)
    speakers = np.repeat(np.arange(6), 10)
    x = unit_rows(rng.standard_normal((6, 40))[speakers] + 0.4 * rng.standard_normal((60, 40)))
    y = unit_rows(rng.standard_normal((6, 40))[speakers] + 0.4 * rng.standard_normal((60, 40)))
    order = rng.permutation(60)
    wrong = nearest_orthogonal(rng.standard_normal((40, 40)))  # any rotation at all

    def right(match: np.ndarray, labels: np.ndarray) -> float:
        return float(np.mean(labels[match] == speakers))

    assert right(final_match(x, y, wrong, "row-order"), speakers) > 0.9
    assert right(final_match(x, y[order], wrong, "row-order"), speakers[order]) < 0.4
    for matching in ("assignment", "transport"):
        as_is = final_match(x, y, wrong, matching)
        moved = final_match(x, y[order], wrong, matching)
        assert np.array_equal(order[moved], as_is)  # honest: the order does not matter


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_mutual_neighbors_sharpen_a_map(seed: int) -> None:
    x, y, w = clouds(seed, n=60)
    start = nearest_orthogonal(w + 0.05 * np.random.default_rng(seed).standard_normal(w.shape))
    sharpened = mutual_refinement(x, y, start)
    assert np.linalg.norm(sharpened - w) <= np.linalg.norm(start - w) + 1e-9


def test_the_objective_falls_to_zero_at_the_truth() -> None:
    x, y, w = clouds(5)
    assert transport_cost(x, y, w, 0.001) < 0.01 < transport_cost(x, y, np.eye(4), 0.001)
    assert np.allclose(procrustes(x, y), w)


@pytest.mark.parametrize("side", [0, 1])
def test_identical_vectors_can_not_be_matched(side: int) -> None:
    x, y, _ = clouds(0, n=20)
    sets = [x, y]
    sets[side] = np.tile(sets[side][:1], (20, 1))
    with pytest.raises(InputError, match="all the same"):
        wasserstein_procrustes(*sets)


def test_unknown_matching() -> None:
    x, y, _ = clouds(0, n=20)
    with pytest.raises(InputError, match="unknown matching"):
        final_match(x, y, np.eye(4), "best")  # type: ignore[arg-type]
