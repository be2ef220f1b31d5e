"""Attackers that compare vectors of known people with those of the trials by a back end."""

from __future__ import annotations

from abc import abstractmethod

from veilmeter.attacks.attacker import BACKEND_OPTIONS, Attacker, Side
from veilmeter.attacks.backends.registry import backend_kind
from veilmeter.attacks.backends.scoring import Recipe
from veilmeter.attacks.desk import Desk, NotPossibleError
from veilmeter.attacks.scoring import Preparation, VectorComparison
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.data.embeddings import Embeddings


def refuse_other_dimension(name: str, enroll: Embeddings, trials: Embeddings) -> None:
    if enroll.dimension != trials.dimension:
        raise InputError(
            f"attackers.{name}: its enrollment vectors have {enroll.dimension} numbers, its trials {trials.dimension}",
            fix=f"give both sides by its extractor: [attackers.{name}] original = .., anonymized = ..",
        )


class ComparingAttacker(Attacker):
    """Compares the trials with original speech of known people; its back end learns from original speech, if at all."""

    options = BACKEND_OPTIONS
    reference = True
    default = True

    def prepare(self, desk: Desk) -> Preparation:
        enroll, findings = self.enroll(desk)
        refuse_other_dimension(self.name, enroll, desk.trials())
        recipe, trained_on = self.recipe(desk)
        return Preparation(VectorComparison(enroll, recipe), trained_on, findings)

    def enroll(self, desk: Desk) -> tuple[Embeddings, tuple[Finding, ...]]:
        """The vectors that people are known by, and findings about them."""
        return desk.originals(), ()

    def recipe(self, desk: Desk) -> tuple[Recipe, Finding]:
        """The back end, and what it was trained on: one that was given, else one that fits the extractor."""
        kaldi, extractor = desk.kaldi(), desk.own_extractor()
        if kaldi is not None:
            return Recipe(kaldi=kaldi), extractor or Finding("trained_by_kaldi")
        if extractor is None:
            return self.train(desk)
        kind = desk.backend(adapted=False)
        if backend_kind(kind).needs_training:
            raise InputError(
                f"attackers.{self.name}: the back end {kind} would be trained on another extractor's vectors",
                fix=f'compare its own vectors untrained ([attackers.{self.name}] backend = "centered-cosine") or by a '
                "plda file",
            )
        return Recipe(kind), extractor

    def train(self, desk: Desk) -> tuple[Recipe, Finding]:
        kind = desk.backend(adapted=False)
        if not backend_kind(kind).needs_training:
            return Recipe(kind), Finding("trained_on_nothing")
        speech = desk.training("train_original")
        if speech is None:
            raise NotPossibleError(Finding("backend_untrained", {"backend": kind}))
        return Recipe(kind, speech.vectors, dimension=desk.dimension), speech.finding("original")


class CopyingAttacker(ComparingAttacker):
    """Anonymizes the speech of known people with the same system, and compares the trials with these copies."""

    enrollment: tuple[Side, ...] = ("anonymized",)

    def enroll(self, desk: Desk) -> tuple[Embeddings, tuple[Finding, ...]]:
        copies = desk.copies()
        if len(copies.vectors.names) < 2:
            raise NotPossibleError(Finding("runs_of_few_people"))
        return copies.vectors, copies.findings


class AdaptedAttacker(CopyingAttacker):
    """Trains its back end, or fine-tunes its extractor, on anonymized speech in the role `training`."""

    options = BACKEND_OPTIONS | {"adaptation"}
    cross_validates = False  # whether it trains its back end on the assessed speakers if no training speech was given

    def train(self, desk: Desk) -> tuple[Recipe, Finding]:
        kind = desk.backend(adapted=True)
        speech = desk.training(self.training)
        if speech is None:
            return self.train_without_speech(desk, kind)
        return Recipe(kind, speech.vectors, dimension=desk.dimension), speech.finding("anonymized")

    @abstractmethod
    def train_without_speech(self, desk: Desk, kind: str) -> tuple[Recipe, Finding]:
        """What to do where no training speech was given."""
