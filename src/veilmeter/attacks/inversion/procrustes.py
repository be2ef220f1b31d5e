"""Rotations between two sets of vectors: from pairs, and where the pairs are unknown.

Procrustes analysis (paper 002, eq. 1) takes pairs. Wasserstein-Procrustes (Grave et al. 2018; paper 002, 3.2) does not:
a convex relaxation gives a first rotation, stochastic steps on small batches refine it, with entropic optimal transport
(Cuturi 2013) between the sets, a final match turns it into pairs, and Procrustes analysis of these pairs gives the map.

**Table 2 of paper 002 is not unsupervised.** There the final match looks, for each clear vector, for the nearest of
the clear vectors' own transported images, and takes the number of that image's row as the number of an anonymized
vector. Since both files list the same utterances in the same order, that is the right speaker almost whatever the
rotation is. `matching="row-order"` does the same, to reproduce the table; shuffle one side and it falls to chance (a
test shows it). The honest matches are `transport` (arg max of the transport plan) and `assignment` (one to one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from veilmeter.core.errors import InputError

Floats = NDArray[np.float64]
RANK_TOLERANCE = 1e-10


def procrustes(source: ArrayLike, target: ArrayLike, *, reflections: bool = True) -> Floats:
    """The orthogonal W that minimises ||A W - B||² for paired rows (eq. 1): the polar factor of AᵀB.

    With fewer pairs than dimensions the pairs say nothing about part of the space, and an SVD fills it with whatever
    the linear algebra library leaves there. Here that part is turned as little as possible, so that the answer is
    unique. Without `reflections` det W = +1: the least certain direction is flipped where needed.

    >>> W = procrustes([[1, 0], [0, 2]], [[0, 1], [-2, 0]])
    >>> W.round(3).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    a, b = np.asarray(source, float), np.asarray(target, float)
    if a.shape != b.shape or a.ndim != 2:
        raise InputError(
            f"Procrustes analysis needs pairs of vectors: {a.shape} and {b.shape} do not pair",
            fix="give both sides the same utterances and dimension",
        )
    if not len(a):
        raise InputError("Procrustes analysis needs at least one pair of vectors")
    u, values, vt = _svd(a.T @ b)
    if values[0] == 0:
        raise InputError("the pairs determine no direction at all: their cross-product is zero")
    rank = int(np.sum(values > RANK_TOLERANCE * values[0]))
    left, right = u[:, rank:], vt[rank:].T
    rotation: Floats = u[:, :rank] @ vt[:rank]
    if rank < len(values):
        inner_u, _, inner_vt = _svd(left.T @ right)
        left, right = left @ inner_u, right @ inner_vt.T  # turned as little as possible from one free part to the other
        rotation = rotation + left @ right.T
    if not reflections and np.linalg.det(rotation) < 0:
        last_u, last_v = (left[:, -1], right[:, -1]) if rank < len(values) else (u[:, -1], vt[-1])
        rotation = rotation - 2 * np.outer(last_u, last_v)
    return rotation


def polar_step(rotation: Floats, source: Floats, target: Floats) -> Floats:
    """The orthogonal matrix nearest to R + AᵀB (A = `source`, B = `target`, b rows each, R orthogonal).

    A full SVD costs O(d³) although the change has rank b. With R = `rotation`, R + AᵀB = R (I + (A R)ᵀ B), which is the
    identity outside the span of A R and B: QR of that d x 2b block, then an SVD of 2b x 2b, gives the same matrix.
    """
    count, dimension = source.shape
    if 2 * count >= dimension:
        return nearest_orthogonal(rotation + source.T @ target)
    turned = source @ rotation
    basis, _ = np.linalg.qr(np.concatenate([turned, target]).T)
    inner = np.eye(2 * count) + (turned @ basis).T @ (target @ basis)
    change = nearest_orthogonal(inner)
    change[np.diag_indices_from(change)] -= 1
    stepped: Floats = rotation + ((rotation @ basis) @ change) @ basis.T
    return stepped


def nearest_orthogonal(matrix: Floats) -> Floats:
    """The polar factor."""
    u, _, vt = _svd(matrix)
    nearest: Floats = u @ vt
    return nearest


def _svd(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """An SVD that does not give up: the fast driver fails to converge on rare matrices, the slow one does not."""
    try:
        u, values, vt = np.linalg.svd(matrix)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd

        u, values, vt = svd(matrix, lapack_driver="gesvd")
    return u, values, vt


def is_orthogonal(matrix: ArrayLike, *, tolerance: float = 1e-6) -> bool:
    w = np.asarray(matrix, float)
    return w.ndim == 2 and w.shape[0] == w.shape[1] and bool(np.allclose(w.T @ w, np.eye(len(w)), atol=tolerance))


SAFE_EXPONENT = 300.0  # the square of exp(-300) is still a normal double: kernel entries are multiplied by scalings
CHECK_EVERY = 10


def sinkhorn(cost: Floats, regularization: float, *, tolerance: float = 1e-3, steps: int = 1000) -> Floats:
    """The plan P that minimises <P, cost> - regularization * entropy(P); rows sum to 1, columns to n/m.

    Scaling iterations, in the log domain where the kernel would underflow. They stop when the column sums are
    `tolerance` away from what they should be (Euclidean norm), looked at every ten steps.

    >>> sinkhorn(np.array([[0.0, 1.0], [1.0, 0.0]]), 0.1).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = cost.shape
    share = rows / columns
    exponent = (cost.min() - cost) / regularization
    if exponent.min() < -SAFE_EXPONENT:
        return _in_logarithms(exponent, share, tolerance, steps)
    kernel = np.exp(exponent)
    u = np.ones(rows)
    for step in range(steps):
        v = share / (u @ kernel)
        u = 1 / (kernel @ v)
        if step % CHECK_EVERY == 0 and np.linalg.norm(v * (u @ kernel) - share) < tolerance:
            break
    plan: Floats = u[:, None] * kernel * v
    return plan


def _in_logarithms(exponent: Floats, share: float, tolerance: float, steps: int) -> Floats:
    f = np.zeros(len(exponent))
    for step in range(steps):
        g = np.log(share) - logsumexp(exponent + f[:, None], axis=0)
        f = -logsumexp(exponent + g, axis=1)
        if step % CHECK_EVERY == 0:
            sums = np.exp(g + logsumexp(exponent + f[:, None], axis=0))
            if np.linalg.norm(sums - share) < tolerance:
                break
    plan: Floats = np.exp(exponent + f[:, None] + g)
    return plan


Matching = Literal["assignment", "transport", "row-order"]
INITIAL_POINTS = 600  # the convex relaxation is at least quadratic in their number; 1,000 found rotations no more often
MANY_POINTS = 500  # from which products with vectors cost less than those of Gram matrices


@dataclass(frozen=True, slots=True)
class Schedule:
    """The solver's parameters; the defaults are those behind Table 2.

    `full_svd` projects with an SVD of the whole matrix after every step: the same result, many times slower.
    """

    initial_steps: int = 100
    regularization: float = 0.05
    steps: int = 512
    batch: int = 8
    rate: float = 10.0
    epochs: int = 15
    final_regularization: float = 0.025
    full_svd: bool = False


@dataclass(frozen=True, eq=False)
class TransportMatch:
    """`rotation` turns sources towards targets; `match[i]` is the target that source i was paired with.

    `objective` is the transport cost of the refined rotation before the final match (lower is better; no labels are
    needed to know it), `history` the same after the initialization and after each epoch; of very large sets, that of
    `INITIAL_POINTS` vectors at most, at even distances.
    """

    rotation: Floats
    match: NDArray[np.int64]
    objective: float
    history: tuple[float, ...]


def wasserstein_procrustes(
    source: ArrayLike,
    target: ArrayLike,
    *,
    seed: int = 0,
    matching: Matching = "assignment",
    reflections: bool = True,
    schedule: Schedule | None = None,
    initial: Floats | None = None,
    rounds: int = 0,
) -> TransportMatch:
    """Align `source` with `target` without knowing which rows belong together. The sets may differ in size.

    `initial` is a first rotation to use instead of the convex relaxation's, which does not depend on the seed unless a
    set is larger than `INITIAL_POINTS`. `rounds` refine the match at the end (`mutual_refinement`).
    """
    x, y = check_sets(source, target)
    plan = schedule or Schedule()
    # The legacy generator, because its stream for seed 1111 is the one behind Table 2.
    rng = np.random.RandomState(seed)
    chosen_x, chosen_y = rng.permutation(len(x))[:INITIAL_POINTS], rng.permutation(len(y))[:INITIAL_POINTS]
    first = initial
    if first is None:
        first = initial_rotation(x[chosen_x], y[chosen_y], steps=plan.initial_steps, regularization=plan.regularization)
    rotation, history = refine(x, y, first, rng, plan)
    match = final_match(x, y, rotation, matching, plan.final_regularization)
    kept = np.flatnonzero(match >= 0)
    refined = procrustes(x[kept], y[match[kept]], reflections=reflections)
    if rounds:
        refined = mutual_refinement(x, y, refined, rounds=rounds, reflections=reflections)
    return TransportMatch(refined, match, history[-1], tuple(history))


def mutual_refinement(
    source: ArrayLike, target: ArrayLike, rotation: Floats, *, rounds: int = 20, reflections: bool = True
) -> Floats:
    """Procrustes analysis of the pairs that are each other's nearest, again and again until they stay the same.

    Needs a rotation that is right for many vectors already: it sharpens a map, it does not find one.
    """
    x, y = np.asarray(source, float), np.asarray(target, float)
    before: NDArray[np.int64] | None = None
    for _ in range(rounds):
        similarity = (x @ rotation) @ y.T
        forward, backward = np.argmax(similarity, axis=1), np.argmax(similarity, axis=0)
        mutual = np.flatnonzero(backward[forward] == np.arange(len(x)))
        pairs = np.stack([mutual, forward[mutual]])
        if len(mutual) < 2 or (before is not None and np.array_equal(pairs, before)):
            break
        before = pairs
        rotation = procrustes(x[pairs[0]], y[pairs[1]], reflections=reflections)
    return rotation


def initial_rotation(source: Floats, target: Floats, *, steps: int = 100, regularization: float = 0.05) -> Floats:
    """The convex relaxation of Grave et al., eq. 6: min ||P K_X - K_Y P||² over doubly stochastic P, by Frank-Wolfe.

    K are Gram matrices after the square root of the singular values, which keeps the strongest directions from
    deciding alone. The linear step is an entropic transport problem.
    """
    x, y = _root(source), _root(target)
    low_rank = len(x) >= max(MANY_POINTS, 2 * x.shape[1])
    gradient = (_gradient_of_vectors if low_rank else _gradient_of_grams)(x, y)
    plan = np.full((len(y), len(x)), 1 / len(x))
    for step in range(1, steps + 1):
        share = 2 / (2 + step)
        plan = share * sinkhorn(gradient(plan), regularization) + (1 - share) * plan
    return nearest_orthogonal((plan @ x).T @ y)


def _gradient_of_grams(x: Floats, y: Floats) -> Callable[[Floats], Floats]:
    """P K_X² + K_Y² P - 2 K_Y P K_X, of a plan P."""
    gram_x, gram_y = x @ x.T, y @ y.T
    gram_y *= np.linalg.norm(gram_x) / np.linalg.norm(gram_y)
    square_x, square_y = gram_x @ gram_x, gram_y @ gram_y
    return lambda plan: plan @ square_x + square_y @ plan - 2 * gram_y @ (plan @ gram_x)


def _gradient_of_vectors(x: Floats, y: Floats) -> Callable[[Floats], Floats]:
    """The same from products with the vectors, which are narrow where there are many points; in single precision, which
    is finer than what the transport between them is regularized by."""
    x, y = x.astype(np.float32), y.astype(np.float32)
    inner_x, inner_y = x.T @ x, y.T @ y
    scale = np.linalg.norm(inner_x) / np.linalg.norm(inner_y)  # the norm of K_X is that of XᵀX

    def gradient(plan: Floats) -> Floats:
        single = plan.astype(np.float32)
        of_x, of_y = single @ x, y.T @ single
        left = np.concatenate([of_x @ inner_x - 2 * scale * (y @ (of_y @ x)), y], axis=1)
        return np.asarray(left @ np.concatenate([x.T, scale**2 * (inner_y @ of_y)]), np.float64)

    return gradient


def _root(vectors: Floats) -> Floats:
    u, values, vt = np.linalg.svd(vectors, full_matrices=False)
    root: Floats = (u * np.sqrt(values)) @ vt
    return root


def refine(
    x: Floats, y: Floats, rotation: Floats, rng: np.random.RandomState, plan: Schedule
) -> tuple[Floats, list[float]]:
    """Stochastic steps: transport between two random batches, a gradient step, back to the orthogonal matrices.

    Each epoch doubles the batch and halves the steps; it ends when a batch would be the whole of the smaller set.
    """
    smaller, batch, steps = min(len(x), len(y)), plan.batch, plan.steps
    some_x, some_y = (vectors[:: -(-len(vectors) // INITIAL_POINTS)] for vectors in (x, y))
    history = [transport_cost(some_x, some_y, rotation, plan.final_regularization)]
    for _ in range(plan.epochs):
        if steps == 0 or batch >= smaller:
            break
        rotation = stochastic_steps(x, y, rotation, rng, plan, batch, steps)
        # Rounding adds up over low-rank steps; one Newton-Schulz step makes what is nearly orthogonal orthogonal again.
        rotation = 1.5 * rotation - 0.5 * rotation @ (rotation.T @ rotation)
        batch, steps = 2 * batch, steps // 2
        history.append(transport_cost(some_x, some_y, rotation, plan.final_regularization))
    return rotation, history


def stochastic_steps(
    x: Floats, y: Floats, rotation: Floats, rng: np.random.RandomState, plan: Schedule, batch: int, steps: int
) -> Floats:
    """One epoch's steps."""
    for _ in range(steps):
        xs = x[rng.permutation(len(x))[:batch]]
        ys = y[rng.permutation(len(y))[:batch]]
        pulled = sinkhorn(-(xs @ rotation) @ ys.T, plan.regularization) @ ys
        pulled *= plan.rate / batch
        stepped = nearest_orthogonal(rotation + xs.T @ pulled) if plan.full_svd else None
        rotation = polar_step(rotation, xs, pulled) if stepped is None else stepped
    return rotation


def transport_cost(x: Floats, y: Floats, rotation: Floats, regularization: float = 0.025) -> float:
    """Root mean square distance of the rotated sources to where the transport plan sends them."""
    moved = x @ rotation
    plan = sinkhorn(-moved @ y.T, regularization)
    return float(np.linalg.norm(moved - plan @ y) / np.sqrt(len(x)))


def final_match(
    x: Floats, y: Floats, rotation: Floats, matching: Matching = "assignment", regularization: float = 0.025
) -> NDArray[np.int64]:
    """Which target each source goes with; -1 where the smaller set has none left (one to one only)."""
    if matching not in get_args(Matching):
        raise InputError(f"unknown matching {matching!r}", fix=f"choose among {', '.join(get_args(Matching))}")
    moved = x @ rotation
    similarity = moved @ y.T
    if matching == "assignment":
        return assign(similarity)
    plan = sinkhorn(-similarity, regularization)
    if matching == "transport":
        return np.asarray(np.argmax(plan, axis=1), np.int64)
    if len(x) != len(y):
        raise InputError("the match by row order needs two sets of the same utterances in the same order")
    images = plan @ y  # one a source, yet its row number is taken for a target's: see the head of this file
    distances = np.sum(images**2, axis=1) - 2 * moved @ images.T
    return np.asarray(np.argmin(distances, axis=1), np.int64)


def assign(similarity: Floats) -> NDArray[np.int64]:
    """The one-to-one match with the largest total similarity."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    match = np.full(len(similarity), -1, dtype=np.int64)
    match[rows] = columns
    return match


def check_sets(source: ArrayLike, target: ArrayLike) -> tuple[Floats, Floats]:
    """Both sets as tables of one dimension with something to learn from."""
    x, y = np.asarray(source, float), np.asarray(target, float)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise InputError(f"two sets of vectors of one dimension are needed, not {x.shape} and {y.shape}")
    for vectors, side in ((x, "clear"), (y, "anonymized")):
        if len(vectors) < 2 or np.allclose(vectors, vectors[0], rtol=0, atol=1e-9):
            raise InputError(
                f"the {side} training vectors are all the same: a match can't be found without differences",
                fix="give at least two different vectors per side",
            )
    return x, y
