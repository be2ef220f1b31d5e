"""An attacker: names the candidate with the most similar single recording."""

import numpy as np

from veilmeter.attacks.attacker import ORIGINALS, AttackScores, PlainWords, ScoringAttacker
from veilmeter.attacks.material import Material


class NearestRecording(ScoringAttacker):
    name = "nearest-recording"
    about = "compares each conversation with every original recording and takes a candidate's best one"
    words = PlainWords("someone with many recordings of each person", "recordings", "uses a public tool", "an hour")
    knows = frozenset({ORIGINALS})
    color = "#882255"

    def scores(self, material: Material) -> AttackScores:
        similarity = material.candidates.unit @ material.conversation_means.T
        best = np.full((len(material.names), similarity.shape[1]), -np.inf)
        np.maximum.at(best, material.candidates.codes, similarity)
        return AttackScores(scores=best, method="cosine with the nearest recording")


ATTACKER = NearestRecording()
