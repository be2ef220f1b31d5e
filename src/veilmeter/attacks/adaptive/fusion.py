"""Fusion: non-negative weights of several methods' scores, chosen for the least cross-entropy of who speaks.

With several extractors, weights of all methods at once fit chance where recordings are few: an extractor without any
information gets weight too. So each extractor's methods are also fused first, then one weight per extractor is learned,
and these are pulled towards the best extractor alone. How hard, or not at all, is what serves people the weights did
not see. So the fusion loses little to the best extractor where the others carry no information.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.material import Floats, Rows

Scores = NDArray[np.float32]
PENALTY = 1e-3
STEPS = 12
LARGEST = 60.0


def sum_with_weights(methods: Sequence[Scores], weights: Floats) -> Scores:
    """The sum of the methods' scores, each times its weight."""
    logits = sum(np.float32(weight) * scores for weight, scores in zip(weights, methods, strict=True))
    assert isinstance(logits, np.ndarray)
    return logits


def cross_entropy(
    weights: Floats, methods: Sequence[Scores], labels: Rows, penalty: float, center: Floats | float = 0.0
) -> tuple[float, Floats]:
    """Mean -log p(right candidate) of softmax(sum of weighted scores), plus the penalty on the squared distance of the
    weights from `center`; and its gradient."""
    rows = np.arange(len(labels))
    logits = sum_with_weights(methods, weights)
    logits -= logits.max(axis=1, keepdims=True)
    own = logits[rows, labels].astype(np.float64)
    np.exp(logits, out=logits)
    totals = logits.sum(axis=1, dtype=np.float64)
    value = float(np.mean(np.log(totals) - own)) + penalty * float(np.sum((weights - center) ** 2))
    logits /= totals[:, None].astype(np.float32)
    logits[rows, labels] -= 1
    gradient = [float(np.vdot(logits, scores)) / len(labels) for scores in methods]
    return value, np.array(gradient) + 2 * penalty * (weights - center)


def fit_weights(
    methods: Sequence[Scores], labels: Rows, penalty: float = PENALTY, center: Floats | float = 0.0
) -> tuple[Floats, float]:
    """The non-negative weights with the least cross-entropy, and that."""
    from scipy.optimize import minimize  # a second, which a report of attacks need not wait for

    start = np.full(len(methods), 1 / len(methods))
    optimum = minimize(
        cross_entropy,
        start,
        args=(methods, labels, penalty, center),
        jac=True,
        bounds=[(0.0, LARGEST)] * len(methods),
        method="L-BFGS-B",
    )
    return np.asarray(optimum.x, float), float(optimum.fun)


def least_loss(scores: Scores, labels: Rows, penalty: float = PENALTY) -> float:
    """The least cross-entropy that one method's scores reach at any weight, by Newton steps."""
    rows = np.arange(len(labels))
    own = scores[rows, labels].astype(np.float64)
    weight, best = 1.0, np.inf
    for _ in range(STEPS):
        logits = np.float32(weight) * scores
        logits -= logits.max(axis=1, keepdims=True)
        height = logits[rows, labels].astype(np.float64)
        np.exp(logits, out=logits)
        totals = logits.sum(axis=1, dtype=np.float64)
        value = float(np.mean(np.log(totals) - height)) + penalty * weight**2
        first = np.einsum("ij,ij->i", logits, scores, dtype=np.float64) / totals
        second = np.einsum("ij,ij,ij->i", logits, scores, scores, dtype=np.float64) / totals
        slope = float(np.mean(first - own)) + 2 * penalty * weight
        bend = float(np.mean(second - first**2)) + 2 * penalty
        improved = best - value
        best = min(best, value)
        if improved < 1e-5:
            break
        # Far from the minimum the loss is nearly straight and a full step would overshoot.
        weight = float(np.clip(weight - slope / bend, weight / 4, 4 * weight + 1e-3))
    return min(best, float(np.log(scores.shape[1])))


def log_softmax(logits: Floats) -> Floats:
    """Log-posteriors over the candidates of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_shares: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_shares


def log_odds(logits: Floats) -> Floats:
    """Log-likelihood ratios of each candidate against the others: log-odds of its posterior plus log(n - 1).

    They order scores as the posteriors do, but do not saturate where somebody is nearly certain.

    >>> log_odds(np.array([[800.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).round(6).tolist()
    [[800.0, -799.306853, -799.306853], [0.0, 0.0, 0.0]]
    """
    n = logits.shape[1]
    if n < 2:
        return np.zeros_like(logits)
    rows, best = np.arange(len(logits)), np.argmax(logits, axis=1)
    top = logits[rows, best]
    weights = np.exp(logits - top[:, None])
    weights[rows, best] = 0.0
    # For everybody but the best, the others' sum is at least the best one's weight, which is 1.
    totals = top[:, None] + np.log1p(weights.sum(axis=1, keepdims=True) - weights)
    others = logits.copy()
    others[rows, best] = -np.inf
    second = others.max(axis=1)
    totals[rows, best] = second + np.log(np.exp(others - second[:, None]).sum(axis=1))
    odds: Floats = logits - totals + np.log(n - 1)
    return odds


PULLS = (np.inf, 1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0)  # from the best extractor alone to all weights at once
PEOPLE = 4  # groups of people that are held out in turn
MOST = 1_000_000  # scores that the pull is chosen on
LEAST_SUM = 1e-9


def fuse_channels(methods: Sequence[Scores], channels: Sequence[int], labels: Rows) -> tuple[Floats, float]:
    """Non-negative weights of methods, each of one channel (extractor), and their cross-entropy.

    `methods` are held-out scores, recordings x candidates; `labels` say who speaks.
    """
    if len(set(channels)) < 2:
        return fit_weights(methods, labels)
    step = -(-methods[0].size // MOST)
    pull = _pull([scores[::step] for scores in methods], channels, labels[::step])
    weights = _path(methods, channels, labels, (pull,))[0]
    return weights, cross_entropy(weights, methods, labels, PENALTY)[0]


def _pull(methods: Sequence[Scores], channels: Sequence[int], labels: Rows) -> float:
    """The pull with the least cross-entropy for people that the weights were not learned on."""
    people = np.unique(labels, return_inverse=True)[1]
    groups = min(PEOPLE, int(people.max(initial=0)) + 1)
    if groups < 2:
        return PULLS[0]
    unseen = np.empty((len(PULLS), *methods[0].shape), np.float32)
    for group in range(groups):
        held = people % groups == group
        fitted = _path([scores[~held] for scores in methods], channels, labels[~held], PULLS)
        # How large the sum of the weights is, is learned on few recordings too: only their shares are tested.
        shares = [weights / max(float(weights.sum()), LEAST_SUM) for weights in fitted]
        unseen[:, held] = [sum_with_weights([scores[held] for scores in methods], share) for share in shares]
    return PULLS[int(np.argmin([least_loss(scores, labels) for scores in unseen]))]


def _path(methods: Sequence[Scores], channels: Sequence[int], labels: Rows, pulls: Sequence[float]) -> list[Floats]:
    """The weights of all methods for each pull."""
    fused: list[Scores] = []
    inner: list[Floats] = []
    losses: list[float] = []
    for channel in sorted(set(channels)):
        rows = [row for row, own in enumerate(channels) if own == channel]
        weights, loss = fit_weights([methods[row] for row in rows], labels)
        spread = np.zeros(len(methods))
        spread[rows] = weights
        inner.append(spread)
        losses.append(loss)
        fused.append(sum_with_weights([methods[row] for row in rows], weights))
    alone = np.eye(len(fused))[int(np.argmin(losses))]

    def at(pull: float) -> Floats:
        if pull == 0:
            return fit_weights(methods, labels)[0]
        outer = alone if np.isinf(pull) else fit_weights(fused, labels, pull, alone)[0]
        weights: Floats = outer @ np.array(inner)
        return weights

    return [at(pull) for pull in pulls]
