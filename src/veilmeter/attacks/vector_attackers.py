"""Attackers that compare vectors of known people with those of the trials, perhaps after undoing the anonymizer.

An attacker of the papers compares by a back end: original speech of known people, or copies that it anonymized itself,
with a back end that may be trained. An inverting one learns a map that undoes the anonymizer, and compares what it
restores with original speech.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from veilmeter.attacks.attacker import BACKEND_OPTIONS, Attacker, Preparation, ScoreTables, Side
from veilmeter.attacks.backends.base import backend_kind
from veilmeter.attacks.backends.scoring import Fixed, Recipe
from veilmeter.attacks.material import Desk, NotPossibleError, Rows
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.data.corpus import SpeechRole
from veilmeter.data.embeddings import Embeddings


@dataclass(frozen=True, eq=False)
class Undo:
    """A map that undoes the anonymizer, learned from these clear and anonymized recordings of known people."""

    clear: Embeddings
    anonymized: Embeddings
    method: str
    seed: int

    def apply(self, enroll: Embeddings, test: Embeddings) -> tuple[Embeddings, Embeddings, str]:
        """Enrollment and trials in one space, and how they got there. Both sides are centered, which in many dimensions
        gains most of what a PCA would."""
        from veilmeter.attacks.inversion import learn
        from veilmeter.attacks.inversion.attack import InversionSettings

        settings = InversionSettings(method=self.method, center=True, seed=self.seed)  # type: ignore[arg-type]
        learned = learn(self.clear, self.anonymized, settings)
        method = f"{self.method} on {len(self.clear)} centered vectors, cosine"
        return learned.see(enroll), learned.restore(test), method


@dataclass(frozen=True, eq=False)
class VectorComparison:
    """Vectors of known people are compared with those of the trials by a back end, after undoing the anonymizer where
    a map is learned for that."""

    enroll: Embeddings
    recipe: Recipe = field(default_factory=Recipe)
    undo: Undo | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.enroll.names

    def score(self, test: Embeddings, conversations: Sequence[Rows], isolation: Sequence[Rows] = ()) -> ScoreTables:
        enroll, method = self.enroll, ""
        if self.undo is not None:
            enroll, test, method = self.undo.apply(enroll, test)
        scorer = self.recipe.scorer(enroll, test)
        sides = None
        if isinstance(scorer, Fixed) and scorer.is_cosine:
            other = scorer.test_backend or scorer.backend
            sides = (
                enroll.with_vectors(scorer.backend.project(enroll.vectors)),
                test.with_vectors(other.project(test.vectors)),
            )
        tables = tuple(scorer.matrix(enroll, test, table) for table in conversations)
        others = () if sides is not None else tuple(scorer.matrix(enroll, test, table) for table in isolation)
        return ScoreTables(tables, method or scorer.name, sides=sides, isolation=others)


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
        speech = desk.training(SpeechRole.TRAIN_ORIGINAL)
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

    training: SpeechRole
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
