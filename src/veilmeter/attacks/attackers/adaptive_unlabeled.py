"""The adaptive attacker who looks at the whole release together, without names: a separate threat model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veilmeter.attacks.adaptive.fitting import Adaptive
from veilmeter.attacks.adaptive.released import balanced, supported
from veilmeter.attacks.adaptive.training import Space
from veilmeter.attacks.attacker import KNOWN_PEOPLE, PlainWords
from veilmeter.attacks.attackers.adaptive import AdaptiveAttacker, conversation_odds, trial_vectors
from veilmeter.attacks.material import Floats, Material


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
        logits = balanced(fitted.logits(*trials, spaces=spaces))
        supporting = supported(logits, spaces[0].apply(trials[0].astype(np.float64)))
        return conversation_odds(supporting, material.conversations)


ATTACKER = AdaptiveUnlabeled()
