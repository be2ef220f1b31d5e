"""An attacker at work: a score for every enrolled person and every conversation, however it finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from veilmeter.attacks.adaptive.learning import MOST_CANDIDATES, learning_curves
from veilmeter.attacks.backends.scoring import Fixed, Recipe
from veilmeter.attacks.base import Attack, AttackScores, Floats, Material, Rows, perform
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.estimates import Estimates
from veilmeter.data.embeddings import Embeddings

MOST_SCORES = 20_000_000  # in one table; beyond, conversations are drawn, one per speaker at least


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """One table of scores per table of conversations, with one row per enrolled person; and how they were found.

    `sides` are enrollment and trials as vectors whose cosine is the score, where a score is that; else `isolation` has
    the tables that people are singled out by.
    """

    tables: tuple[Floats, ...]
    method: str
    trained_on: str = ""
    remarks: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sides: tuple[Embeddings, Embeddings] | None = None
    isolation: tuple[Floats, ...] = ()


class Scoring(Protocol):
    """How an attacker scores; it travels to where the work runs, and all training is done there."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def score(self, test: Embeddings, conversations: Sequence[Rows], isolation: Sequence[Rows] = ()) -> ScoreTables: ...


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


@dataclass(frozen=True, eq=False)
class AttackScoring:
    """A registered attack on what it may know; the released recordings come without names."""

    attack: Attack
    material: Material

    @property
    def names(self) -> tuple[str, ...]:
        return self.material.names

    def score(self, test: Embeddings, conversations: Sequence[Rows], isolation: Sequence[Rows] = ()) -> ScoreTables:
        asked = (*conversations, *isolation)
        filled = tuple(table for table in asked if len(table))
        material = replace(self.material, conversations=filled)
        outcome = _performed(self.attack, material)
        split = iter(material.split(outcome.scores))
        empty = outcome.scores[:, :0]
        tables = tuple(next(split) if len(table) else empty for table in asked)
        count = len(conversations)
        found = outcome.method, outcome.trained_on, outcome.remarks, outcome.details
        return ScoreTables(tables[:count], *found, isolation=tables[count:])

    def learning(self, trials: Rows, spoken: Sequence[str], *, intervals: bool, seed: int) -> Estimates:
        """What the attack would find with less of each kind of effort; none for attackers that are run on request, for
        threat models of their own, and where it would cost too much."""
        if not self.attack.default or self.attack.apart or len(self.names) > MOST_CANDIDATES:
            return Estimates()
        material = replace(self.material, conversations=(trials,))
        return learning_curves(
            material, spoken, lambda part: _performed(self.attack, part).scores, intervals=intervals, seed=seed
        )


def _performed(attack: Attack, material: Material) -> AttackScores:
    """The attack's scores; what goes wrong in another package's attack, or with vectors that hold nothing to compute
    with, is the attack's own trouble and ends nothing else."""
    ours = type(attack).__module__.startswith("veilmeter.")
    try:
        return perform(attack, material)
    except VeilmeterError:
        raise
    except np.linalg.LinAlgError as error:
        raise InputError(f"the vectors do not allow it ({error})") from error
    except Exception as error:
        if ours:
            raise
        raise InputError(f"the attack {attack.name} failed: {type(error).__name__}: {error}") from error
