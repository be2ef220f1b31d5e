"""The adaptive attacker who sees which released recordings share a pseudonym: a separate threat model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veilmeter.attacks.adaptive.fitting import Adaptive
from veilmeter.attacks.attacker import KNOWN_PEOPLE, RELEASE_PSEUDONYMS, PlainWords
from veilmeter.attacks.attackers.adaptive import AdaptiveAttacker, conversation_odds, trial_vectors
from veilmeter.attacks.material import Floats, Material, Rows
from veilmeter.core.findings import Finding


class AdaptivePseudonyms(AdaptiveAttacker):
    name = "adaptive-pseudonyms"
    order = 90
    about = "does what the adaptive attacker does, and sees which released recordings belong to one pseudonym"
    has = replace(AdaptiveAttacker.has, released="one at a time, and which of them share a pseudonym")
    words = PlainWords(
        "the same, knowing which released recordings belong together",
        f"your anonymizer, {KNOWN_PEOPLE}, the whole release",
        "trains models",
        "days",
    )
    color = ""
    knows = AdaptiveAttacker.knows | {RELEASE_PSEUDONYMS}
    apart = True
    default = False

    def missing(self, material: Material) -> Finding | str:
        if len(material.names) > 1 and material.pseudonyms is None:
            return Finding("no_release_pseudonyms")
        return super().missing(material)

    def odds(self, fitted: Adaptive, material: Material) -> Floats:
        assert material.pseudonyms is not None
        logits = pool(fitted.logits(*trial_vectors(material)), material.pseudonyms)
        return conversation_odds(logits, material.conversations)


def pool(logits: Floats, pseudonyms: Rows) -> Floats:
    """Every recording with the sum over all that share its pseudonym."""
    codes = np.unique(pseudonyms, return_inverse=True)[1]
    sums = np.zeros((int(codes.max()) + 1, logits.shape[1]))
    np.add.at(sums, codes, logits)
    pooled_logits: Floats = sums[codes]
    return pooled_logits


ATTACKER = AdaptivePseudonyms()
