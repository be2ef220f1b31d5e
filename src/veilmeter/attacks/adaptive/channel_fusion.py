"""Fusion of several extractors that loses little to the best of them where the others tell nothing.

Weights of all methods of all extractors at once fit chance where recordings are few: an extractor that tells nothing
gets weight too. So each extractor's methods are also fused first, then one weight per extractor is learned, and these
are pulled towards the best extractor alone. How hard, or not at all, is what serves people the weights did not see.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veilmeter.attacks.adaptive.fusion import PENALTY, Scores, cross_entropy, fit_weights, least_loss, weighted_sum
from veilmeter.attacks.material import Floats, Rows

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
        unseen[:, held] = [weighted_sum([scores[held] for scores in methods], share) for share in shares]
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
        fused.append(weighted_sum([methods[row] for row in rows], weights))
    alone = np.eye(len(fused))[int(np.argmin(losses))]

    def at(pull: float) -> Floats:
        if pull == 0:
            return fit_weights(methods, labels)[0]
        outer = alone if np.isinf(pull) else fit_weights(fused, labels, pull, alone)[0]
        weights: Floats = outer @ np.array(inner)
        return weights

    return [at(pull) for pull in pulls]
