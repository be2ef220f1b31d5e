"""The wasserstein-procrustes attacker: learns a rotation without knowing which recordings are pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veilmeter.attacks.attacker import Equipment, PlainWords
from veilmeter.attacks.vector_attackers import InvertingAttacker
from veilmeter.core.colors import BLUE

MOST_UNPAIRED = 2000  # its cost grows with the square of their number


class WassersteinProcrustes(InvertingAttacker):
    name = "wasserstein-procrustes"
    order = 60
    about = (
        "learns such a rotation without knowing which anonymized recording belongs to which original one, and compares "
        "the restored vectors with original speech"
    )
    aliases = ("wasserstein", "unsupervised-inversion")
    method = "wasserstein"
    has = Equipment(inversion="by a rotation, without pairs")
    words = PlainWords(
        "someone who tries to reverse your anonymizer without having it",
        "original and anonymized recordings, not matched",
        "a research method",
        "days",
    )
    color = BLUE

    def choose(self, utterances: Sequence[str], seed: int) -> Sequence[str]:
        if len(utterances) <= MOST_UNPAIRED:
            return utterances
        rng = np.random.default_rng([seed, 11])
        return [utterances[i] for i in np.sort(rng.choice(len(utterances), MOST_UNPAIRED, replace=False))]


ATTACKER = WassersteinProcrustes()
