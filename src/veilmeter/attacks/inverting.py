"""Attackers that learn a map that undoes the anonymizer, and compare what it restores with original speech."""

from __future__ import annotations

from collections.abc import Sequence

from veilmeter.attacks.attacker import Attacker
from veilmeter.attacks.comparing import refuse_other_dimension
from veilmeter.attacks.desk import Desk, NotPossibleError
from veilmeter.attacks.scoring import Preparation, Undo, VectorComparison
from veilmeter.core.findings import Finding

LEAST_PAIRS = 5


class InvertingAttacker(Attacker):
    """Runs the system on the speech that people are known by, as in Champion et al. 2021, and learns from it."""

    method: str
    family = "inversion"
    reference = True
    default = True

    def prepare(self, desk: Desk) -> Preparation:
        enroll = desk.originals()
        refuse_other_dimension(self.name, enroll, desk.trials())
        copies = desk.copies().vectors
        utterances = self.choose(list(copies.utterances), desk.seed)
        clear, protected = enroll.of_utterances(utterances), copies.of_utterances(utterances)
        if clear.dimension != protected.dimension:
            raise NotPossibleError(Finding("dimensions_differ"))
        if len(utterances) < LEAST_PAIRS:
            raise NotPossibleError(Finding("too_few_for_rotation", {"recordings": len(utterances)}))
        undo = Undo(clear, protected, self.method, desk.seed)
        trained_on = Finding.of("trained_on_pairs", recordings=len(clear))
        return Preparation(VectorComparison(enroll, undo=undo), trained_on)

    def choose(self, utterances: Sequence[str], seed: int) -> Sequence[str]:
        """The enrollment recordings to learn from: all of them."""
        return utterances
