"""An attacker at work: a score for every enrolled person and every conversation, however it finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from veilmeter.attacks.backends.scoring import Fixed, Recipe
from veilmeter.attacks.material import Floats, Rows
from veilmeter.core.findings import Finding
from veilmeter.data.embeddings import Embeddings


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """One table of scores per table of conversations, with one row per enrolled person; and how they were found.

    `sides` are enrollment and trials as vectors whose cosine is the score, where a score is that; else `isolation` has
    the tables that people are singled out by.
    """

    tables: tuple[Floats, ...]
    method: str
    trained_on: Finding | None = None
    findings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sides: tuple[Embeddings, Embeddings] | None = None
    isolation: tuple[Floats, ...] = ()


class Scoring(Protocol):
    """How an attacker scores; it travels to where the work runs, and all training is done there."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def score(self, test: Embeddings, conversations: Sequence[Rows], isolation: Sequence[Rows] = ()) -> ScoreTables: ...


@dataclass(frozen=True, eq=False)
class Preparation:
    """An attacker that has taken what it needs: how it scores, what it was trained on, what a reader must know."""

    scoring: Scoring
    trained_on: Finding | None = None
    findings: tuple[Finding, ...] = ()


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
