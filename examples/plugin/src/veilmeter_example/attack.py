"""An attack: the candidate with the most similar single recording."""

import numpy as np

from veilmeter.attacks.attacker import AttackScores, ScoringAttacker
from veilmeter.attacks.material import Material


class NearestRecording(ScoringAttacker):
    name = "nearest-recording"
    about = "compares each conversation with every original recording and takes a candidate's best one"

    def scores(self, material: Material) -> AttackScores:
        similarity = material.candidates.unit @ material.conversation_means.T
        best = np.full((len(material.names), similarity.shape[1]), -np.inf)
        np.maximum.at(best, material.candidates.codes, similarity)
        return AttackScores(scores=best, method="cosine with the nearest recording")


ATTACK = NearestRecording()
