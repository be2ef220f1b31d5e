"""The adaptive attacker who looks at the whole release together, without names: a separate threat model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veilmeter.attacks.adaptive.fitting import Adaptive
from veilmeter.attacks.adaptive.fusion import log_softmax
from veilmeter.attacks.adaptive.training import Space
from veilmeter.attacks.attacker import KNOWN_PEOPLE, PlainWords
from veilmeter.attacks.attackers.adaptive import AdaptiveAttacker, conversation_odds, trial_vectors
from veilmeter.attacks.backends.base import unit64
from veilmeter.attacks.material import Floats, Material

ROUNDS = 20
STEP = 0.5
FLOOR = 0.3  # a candidate may be absent from the release: its share is not pushed up without end
NEIGHBORS = 3
SUPPORT = 0.7
MOST_TRIALS = 20_000  # every recording is compared with every other
BLOCK = 2048


class AdaptiveUnlabeled(AdaptiveAttacker):
    name = "adaptive-unlabeled"
    order = 80
    about = (
        "does what the adaptive attacker does, and looks at all released recordings together, without knowing whose "
        "they are"
    )
    has = replace(AdaptiveAttacker.has, released="all of them together, without names")
    words = PlainWords(
        "the same, looking at the whole release together",
        f"your anonymizer, {KNOWN_PEOPLE}, the whole release",
        "trains models",
        "days",
    )
    color = ""
    knows = AdaptiveAttacker.knows | {"release together"}
    apart = True
    default = False

    def odds(self, fitted: Adaptive, material: Material) -> Floats:
        trials = trial_vectors(material)
        spaces = [Space.fit(vectors.astype(np.float64)) for vectors in trials]
        logits = balance(fitted.logits(*trials, spaces=spaces))
        logits = add_support(logits, spaces[0].apply(trials[0].astype(np.float64)))
        return conversation_odds(logits, material.conversations)


def balance(logits: Floats) -> Floats:
    """Shifted until no candidate wins much more than its share of the recordings."""
    n = logits.shape[1]
    shifted = logits.copy()
    for _ in range(ROUNDS):
        shares = np.exp(log_softmax(shifted)).mean(axis=0) * n
        shifted -= STEP * np.log(shares + FLOOR)
    return shifted


def add_support(logits: Floats, seen: Floats) -> Floats:
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


ATTACKER = AdaptiveUnlabeled()
