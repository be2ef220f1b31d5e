"""What an attack is: an object that gives every candidate a score for every conversation, from what it may know.

`Material` is all an attack gets. The released recordings come without names, so an attack can't look at the answer.
A package adds an attack under the entry point group `veilmeter.attacks`; no change to veilmeter is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings, strings, unit

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
DrawLevel = Literal["utterance", "speaker", "unknown"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackerRun:
    """One run of the anonymizer over speech that the attacker has, matched to the originals by utterance.

    `draw` is what shares one pseudo-voice: an utterance, or all of a speaker's recordings. `own` is False for the run
    that was released: its draws are those of the trials, which a real attacker could not make. `certain` says that the
    draw level is on record (a manifest); what a person says of a run is checked against its data.
    """

    vectors: Embeddings
    draw: DrawLevel = "unknown"
    own: bool = True
    name: str = ""
    certain: bool = False

    def __post_init__(self) -> None:
        if self.draw not in get_args(DrawLevel):
            raise InputError(f"a run's draw level is one of {', '.join(get_args(DrawLevel))}, not {self.draw!r}")


@dataclass(frozen=True, eq=False, kw_only=True)
class OtherPeople:
    """Speech of people who are not candidates: originals, and runs of the anonymizer over them."""

    originals: Embeddings
    runs: tuple[AttackerRun, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """What an attack gets.

    `candidates` are original recordings of the people looked for; `trials` the vectors of the released recordings,
    with their ids; `conversations` tables of rows of `trials`, one row per conversation, one table per length.
    `pseudonyms` says which trials share a pseudonym, for attackers who see that. `views` is the same material by
    further extractors, in the same order. `texts` are transcripts by utterance id, where there are some. `seen` says
    that the extractor was trained on the runs' copies themselves, so that nothing can be tested on them.
    """

    candidates: Embeddings
    trials: NDArray[np.float32]
    conversations: tuple[Rows, ...]
    runs: tuple[AttackerRun, ...] = ()
    others: OtherPeople | None = None
    trial_ids: NDArray[np.object_] = field(default_factory=lambda: strings([]))
    pseudonyms: Rows | None = None
    views: Mapping[str, Material] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    seen: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trials.ndim != 2 or not len(self.trials):
            raise InputError("an attack needs a table of released vectors, one row per recording")
        for table in self.conversations:
            if table.ndim != 2 or (table.size and not 0 <= table.min() <= table.max() < len(self.trials)):
                raise InputError("a table of conversations holds rows of the trials, one line per conversation")
        if self.pseudonyms is not None and len(self.pseudonyms) != len(self.trials):
            raise InputError(f"there are {len(self.trials)} trials but {len(self.pseudonyms)} pseudonyms")

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates: the rows of the scores."""
        return self.candidates.names

    @property
    def columns(self) -> int:
        """How many conversations there are, over all tables."""
        return sum(len(table) for table in self.conversations)

    def split(self, scores: Floats) -> list[Floats]:
        """The columns of each table of conversations."""
        ends = np.cumsum([len(table) for table in self.conversations])[:-1]
        return np.split(scores, ends, axis=1)

    @cached_property
    def conversation_means(self) -> NDArray[np.float32]:
        """unit(mean of unit vectors) of every conversation, over all tables."""
        vectors = unit(self.trials)
        return unit(np.concatenate([vectors[table].mean(axis=1) for table in self.conversations]))


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackScores:
    """Scores of candidates (rows) for conversations (columns), higher for the likelier person.

    `method` says in a few words how they were made, `trained_on` on what, `remarks` what a reader must know (a run that
    was not used, say); `details` are plain values for results.json.
    """

    scores: Floats
    method: str = ""
    trained_on: str = ""
    remarks: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class Attack(ABC):
    """One attack. A subclass sets `name` and `about` and implements `scores`; an instance is registered.

    `about` completes the sentence "The attacker ..."; `has` says what it has, by kind. `reference` marks the attackers
    of the papers, which are reference points. `apart` marks a threat model of its own, which is reported beside the
    headline and not in it. `default` says whether it runs unless others are asked for. `knows` names what it knows,
    so that attackers who know more can be held to do no worse.
    """

    name: str
    about: str
    has: Mapping[str, str] = {}
    reference: bool = False
    apart: bool = False
    default: bool = False
    knows: frozenset[str] = frozenset()
    version: str = "1"

    @abstractmethod
    def scores(self, material: Material) -> Floats | AttackScores:
        """A score for every candidate (rows) and conversation (columns, in the order of the tables)."""

    def missing(self, material: Material) -> str:
        """Why this attack can't be made with this material; empty where it can."""
        return ""

    def key(self) -> Any:
        """What its scores depend on beside the material, for the store of finished work."""
        return (self.name, self.version, {name: value for name, value in vars(self).items() if name != "name"})


def perform(attack: Attack, material: Material) -> AttackScores:
    """The attack's scores, checked: a stranger's attack may give anything."""
    reason = attack.missing(material)
    if reason:
        raise InputError(f"the attack {attack.name} can't be made: {reason}")
    given = attack.scores(material)
    outcome = given if isinstance(given, AttackScores) else AttackScores(scores=np.asarray(given, float))
    wanted = (len(material.names), material.columns)
    if outcome.scores.shape != wanted:
        raise InputError(
            f"the attack {attack.name} gave scores of shape {outcome.scores.shape}, not {wanted}",
            fix="give one row per candidate and one column per conversation",
        )
    if not np.isfinite(outcome.scores).all():
        raise InputError(f"the attack {attack.name} gave scores that are not finite numbers")
    return outcome
