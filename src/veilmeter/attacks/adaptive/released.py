"""What the released recordings themselves give away without a name: two threat models of their own.

The first looks at all of them together: it centers them on their own mean, takes off what makes one candidate win too
often, and lets recordings that sound alike support each other. The second sees which of them share a pseudonym.
"""

from __future__ import annotations

import numpy as np

from veilmeter.attacks.adaptive.fusion import log_softmax
from veilmeter.attacks.backends.base import unit64
from veilmeter.attacks.material import Floats, Rows

ROUNDS = 20
STEP = 0.5
FLOOR = 0.3  # a candidate may be absent from the release: its share is not pushed up without end
NEIGHBORS = 3
SUPPORT = 0.7
MOST_TRIALS = 20_000  # every recording is compared with every other
BLOCK = 2048


def balanced(logits: Floats) -> Floats:
    """Shifted until no candidate wins much more than its share of the recordings."""
    n = logits.shape[1]
    shifted = logits.copy()
    for _ in range(ROUNDS):
        shares = np.exp(log_softmax(shifted)).mean(axis=0) * n
        shifted -= STEP * np.log(shares + FLOOR)
    return shifted


def supported(logits: Floats, seen: Floats) -> Floats:
    """Every recording with the support of its nearest ones, by how near they are; `seen` are their vectors."""
    if not 2 <= len(seen) <= MOST_TRIALS:
        return logits
    vectors = unit64(seen).astype(np.float32)
    k = min(NEIGHBORS, len(seen) - 1)
    raised = logits.copy()
    for start in range(0, len(seen), BLOCK):
        nearness = vectors[start : start + BLOCK] @ vectors.T
        rows = np.arange(len(nearness))
        nearness[rows, start + rows] = -np.inf
        nearest = np.argpartition(-nearness, k - 1, axis=1)[:, :k]
        weights = np.maximum(np.take_along_axis(nearness, nearest, axis=1), 0.0)
        for place in range(k):
            raised[start : start + BLOCK] += SUPPORT * weights[:, place, None] * logits[nearest[:, place]]
    return raised


def pooled(logits: Floats, pseudonyms: Rows) -> Floats:
    """Every recording with the sum over all that share its pseudonym."""
    codes = np.unique(pseudonyms, return_inverse=True)[1]
    sums = np.zeros((int(codes.max()) + 1, logits.shape[1]))
    np.add.at(sums, codes, logits)
    pooled_logits: Floats = sums[codes]
    return pooled_logits
