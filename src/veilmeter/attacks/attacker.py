"""The type of every attacker: names, equipment, whom it must not do worse than, words, color, how it scores.

Every attacker is one object: those of the papers, the adaptive ones, and those that other packages add under the entry
point group `veilmeter.attacks`. Commands, reports and documentation take what they say of an attacker from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from veilmeter.attacks.desk import Desk, NotPossibleError
from veilmeter.attacks.material import Floats, Material, Rows
from veilmeter.attacks.scoring import Preparation, ScoreTables
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.findings import Finding, as_findings, unclassified
from veilmeter.data.embeddings import Embeddings

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimates

Side = Literal["original", "anonymized"]
Role = Literal["", "train_anonymized", "train_similar"]

BASELINE = "original"  # the name of the comparison of original speech with original speech, which is not an attack

# Kinds of knowledge. An attacker who knows more could always do what one who knows less does.
ORIGINALS, ANONYMIZER, ADAPTATION, METHODS = "originals", "anonymizer", "adaptation", "methods"
SIMILAR_SYSTEM, EXTRACTORS = "similar system", "several extractors"

# The options of a table [attackers.NAME] of any attacker, and of one that compares vectors by a back end.
ANY_OPTIONS = frozenset({"original", "anonymized", "attacker_run", "scores", "trials"})
BACKEND_OPTIONS = ANY_OPTIONS | {"backend", "dimension", "plda", "mean", "lda"}

# Phrases that several attackers share.
OWN_COPIES = "anonymized by the same system"
KNOWN_PEOPLE = "recordings of the people they look for"
OTHER_PEOPLE = "recordings of some hundred other people"
PUBLIC_RECOGNIZER = "uses a public voice recognizer"


@dataclass(frozen=True, slots=True)
class AttackerId:
    """An attacker by the name of its kind, and the further extractor that it uses, if any.

    >>> print(AttackerId("adaptive"), AttackerId("adaptive", "words"))
    adaptive adaptive@words
    """

    kind: str
    extractor: str = ""

    def __str__(self) -> str:
        return f"{self.kind}@{self.extractor}" if self.extractor else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What an attacker has, in words: the speech that it knows people by, its extractor, what it adapts to, what it
    learns to undo the anonymizer with, and what it sees of the release."""

    enrollment: str = "original"
    extractor: str = "trained on original speech"
    adaptation: str = "none"
    inversion: str = "none"
    released: str = "one at a time"

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PlainWords:
    """An attacker for readers who do not know the field: who that is, and what the attack takes.

    `who` completes "This could be done by ..."; the technical name is written beside it.
    """

    who: str
    data: str = ""
    skill: str = ""
    time: str = ""


class Attacker(ABC):
    """One attacker. A subclass sets at least `name` and `about`; an instance of it is registered.

    `about` completes the sentence "The attacker ..."; `has` says what it has, `words` does so for laypeople.
    `voiceprivacy` and `vauquier2025` are the names that others have for it, `aliases` further names to ask for it by.
    `enrollment` is the speech it knows people by, `trials` the speech it wants to name, `training` the role of the
    speech that it adapts to. `knows` names what it knows: it must not do worse than an attacker who knows less, and if
    it `falls_back`, its scores are then replaced by the other's. `options` are those of a table [attackers.NAME].
    `family` is the family of measures without which it is left out. A `reference` is an attacker of the papers; one
    that is `apart` is a threat model of its own, reported beside the headline; `default` ones run unless others are
    asked for; one with `several` uses several extractors at once. `color` is its color in figures, if it has one, and
    `order` its place in lists, in which attackers who know more come later.
    """

    name: str
    about: str
    order: int = 1000
    aliases: tuple[str, ...] = ()
    voiceprivacy: str = ""
    vauquier2025: str = ""
    enrollment: tuple[Side, ...] = ("original",)
    trials: Side = "anonymized"
    training: Role = ""
    has: Equipment = Equipment()
    words: PlainWords | None = None
    color: str = ""
    knows: frozenset[str] = frozenset()
    falls_back: bool = True
    options: frozenset[str] = ANY_OPTIONS
    family: str = ""
    reference: bool = False
    apart: bool = False
    default: bool = False
    several: bool = False
    version: str = "1"

    @abstractmethod
    def prepare(self, desk: Desk) -> Preparation:
        """How it scores, with what it takes from the desk; a NotPossibleError where it lacks what it needs."""

    @property
    def adapted(self) -> bool:
        """Whether it adapts its extractor or back end to anonymized speech."""
        return bool(self.training)

    def outranks(self, other: Attacker) -> bool:
        """Whether it knows all that the other knows and more, so that it must not do worse."""
        return bool(other.knows) and other.knows < self.knows

    @property
    def plain_words(self) -> PlainWords:
        return self.words or PlainWords(f"someone who {self.about}")

    @property
    def row(self) -> tuple[str, ...]:
        """Its line in tables: name, enrollment speech, extractor, inversion, and what others call it."""
        has = self.has
        inversion = "" if has.inversion == "none" else has.inversion
        cells = (self.name, has.enrollment, has.extractor, inversion, self.voiceprivacy, self.vauquier2025)
        return tuple(cell or "-" for cell in cells)

    def key(self) -> Any:
        """What its scores depend on beside the material, for the store of finished work."""
        return (self.name, self.version, {name: value for name, value in vars(self).items() if name != "name"})

    def to_json(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "has": self.has.to_json(),
            "aliases": {"voiceprivacy": self.voiceprivacy, "vauquier2025": self.vauquier2025},
            "other_names": list(self.aliases),
            "words": asdict(self.plain_words),
            "knows": sorted(self.knows),
            "color": self.color,
            "default": self.default,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackScores:
    """Scores of candidates (rows) for conversations (columns), higher for the likelier person.

    `method` says in a few words how they were made, `trained_on` on what, `findings` what a reader must know (a run
    that was not used, say), both of which may also be plain sentences; `details` are plain values for results.json.
    """

    scores: Floats
    method: str = ""
    trained_on: Finding | str = ""
    findings: tuple[Finding | str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class ScoringAttacker(Attacker):
    """An attacker with its own method: a subclass implements `scores`."""

    @abstractmethod
    def scores(self, material: Material) -> Floats | AttackScores:
        """A score for every candidate (rows) and conversation (columns, in the order of the tables)."""

    def missing(self, material: Material) -> Finding | str:
        """Why this attack can't be made with this material; empty where it can."""
        return ""

    def prepare(self, desk: Desk) -> Preparation:
        material = desk.material(several=self.several)
        reason = self.missing(material)
        if reason:
            raise NotPossibleError(unclassified(reason) if isinstance(reason, str) else reason)
        desk.take(material)
        return Preparation(AttackScoring(self, material))


def perform(attacker: Attacker, material: Material) -> AttackScores:
    """The scores of an attacker with its own method, checked: one from another package may return anything."""
    if not isinstance(attacker, ScoringAttacker):
        raise InputError(f"the attacker {attacker.name} compares vectors", fix="run it with veilmeter assess")
    reason = attacker.missing(material)
    if reason:
        why = reason if isinstance(reason, str) else reason.code.replace("_", " ")
        raise InputError(f"the attacker {attacker.name} can't be run: {why}")
    given = attacker.scores(material)
    outcome = given if isinstance(given, AttackScores) else AttackScores(scores=np.asarray(given, float))
    wanted = (len(material.names), material.columns)
    if outcome.scores.shape != wanted:
        raise InputError(
            f"the attacker {attacker.name} gave scores of shape {outcome.scores.shape}, not {wanted}",
            fix="give one row per candidate and one column per conversation",
        )
    if not np.isfinite(outcome.scores).all():
        raise InputError(f"the attacker {attacker.name} gave scores that are not finite numbers")
    return outcome


@dataclass(frozen=True, eq=False)
class AttackScoring:
    """An attacker's own method on what it may know; the released recordings come without names."""

    attacker: ScoringAttacker
    material: Material

    @property
    def names(self) -> tuple[str, ...]:
        return self.material.names

    def score(self, test: Embeddings, conversations: Sequence[Rows], isolation: Sequence[Rows] = ()) -> ScoreTables:
        asked = (*conversations, *isolation)
        filled = tuple(table for table in asked if len(table))
        material = replace(self.material, conversations=filled)
        outcome = self._perform(material)
        split = iter(material.split(outcome.scores))
        empty = outcome.scores[:, :0]
        tables = tuple(next(split) if len(table) else empty for table in asked)
        count = len(conversations)
        trained_on = as_findings([outcome.trained_on])[0] if outcome.trained_on else None
        found = outcome.method, trained_on, as_findings(outcome.findings), outcome.details
        return ScoreTables(tables[:count], *found, isolation=tables[count:])

    def learning(self, trials: Rows, spoken: Sequence[str], *, intervals: bool, seed: int) -> Estimates:
        """What the attacker would find with less of each kind of effort; none for attackers that are run on request,
        for threat models of their own, and where it would cost too much."""
        from veilmeter.attacks.adaptive.learning import MOST_CANDIDATES, learning_curves
        from veilmeter.core.estimate import Estimates

        if not self.attacker.default or self.attacker.apart or len(self.names) > MOST_CANDIDATES:
            return Estimates()
        material = replace(self.material, conversations=(trials,))
        return learning_curves(
            material, spoken, lambda part: self._perform(part).scores, intervals=intervals, seed=seed
        )

    def _perform(self, material: Material) -> AttackScores:
        """The attacker's scores; an error in another package's attacker, or vectors that hold nothing to compute with,
        ends this attacker alone."""
        try:
            return perform(self.attacker, material)
        except VeilmeterError:
            raise
        except np.linalg.LinAlgError as error:
            raise InputError(f"the vectors do not allow it ({error})") from error
        except Exception as error:
            if type(self.attacker).__module__.startswith("veilmeter."):
                raise
            raise InputError(f"the attacker {self.attacker.name} failed: {type(error).__name__}: {error}") from error
