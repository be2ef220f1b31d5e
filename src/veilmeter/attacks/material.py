"""The material of an attack: original speech of the people looked for, runs of the anonymizer, and the release.

The released recordings come without names, so an attacker can't look at the answer. An experiment offers all of it at a
`Desk`, where attackers take what they need; what they took is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.data.corpus import SpeechRole
from veilmeter.data.embeddings import Embeddings, strings, unit

if TYPE_CHECKING:
    from veilmeter.attacks.backends.scoring import KaldiFiles

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
DrawLevel = Literal["utterance", "speaker", "unknown"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackerRun:
    """One run of the anonymizer over speech that the attacker has, matched to the originals by utterance.

    `draw` is what shares one pseudo-voice: an utterance, or all of a speaker's recordings. `own` is False for the run
    that was released: its draws are those of the trials, which a real attacker could not make. `certain` says that the
    draw level is on record (a manifest); what a person says of a run is checked against its data. `made_here` says that
    it is known to be a run of the released system, as veilmeter ran that itself. `choices` is how many draws a system
    with a finite set declares; a column of the vectors names them (`draw_names`).
    """

    vectors: Embeddings
    draw: DrawLevel = "unknown"
    own: bool = True
    name: str = ""
    certain: bool = False
    made_here: bool = False
    choices: int = 0

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
    """All that an attacker with its own method gets.

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
            raise InputError("an attacker needs a table of released vectors, one row per recording")
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


class NotPossibleError(Exception):
    """An attacker or an analysis lacks what it needs; the finding tells the reader of the report what."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.code)
        self.finding = finding


@dataclass(frozen=True, eq=False)
class EnrollmentCopies:
    """The enrollment as an attacker anonymized it, and remarks for the reader, such as who is left out."""

    vectors: Embeddings
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class TrainingSpeech:
    """Vectors to train a back end on, and how many of their speakers are assessed, too."""

    vectors: Embeddings
    assessed: int

    def finding(self, version: Literal["original", "anonymized"]) -> Finding:
        """That an attacker was trained on it."""
        return Finding.of(
            "trained_on_speech",
            recordings=len(self.vectors),
            version=version,
            speakers=len(self.vectors.names),
            assessed=self.assessed,
        )


Training = Literal["none", "separate corpus", "cross-validation by speaker"]


@dataclass
class Used:
    """What attackers made use of, so that options that had no effect can be reported."""

    training: dict[SpeechRole, set[str]] = field(default_factory=dict)  # role to the attackers that were trained on it
    backends: set[str] = field(default_factory=set)
    adapted_backends: set[str] = field(default_factory=set)
    copies: set[str] = field(default_factory=set)  # attackers that anonymize people's speech themselves
    folds: int | None = None

    def train(self, role: SpeechRole, attacker: str) -> None:
        self.training.setdefault(role, set()).add(attacker)

    @property
    def training_kind(self) -> Training:
        if self.folds is not None:
            return "cross-validation by speaker"
        return "separate corpus" if self.training else "none"


class Desk(Protocol):
    """Everything that an experiment offers to one attacker. Whatever the attacker takes is recorded."""

    @property
    def seed(self) -> int: ...

    @property
    def dimension(self) -> int | None:
        """The dimension that a trained back end reduces vectors to, where one was asked for."""
        ...

    def trials(self) -> Embeddings:
        """The recordings to be recognized."""
        ...

    def originals(self) -> Embeddings:
        """Original recordings of the enrolled people."""
        ...

    def copies(self) -> EnrollmentCopies:
        """The same recordings as the attacker anonymized them; the released ones where it has no own run."""
        ...

    def own_extractor(self) -> Finding | None:
        """The training data of the attacker's own extractor; None if it uses the same extractor as the others."""
        ...

    def backend(self, *, adapted: bool) -> str:
        """The name of the back end to compare vectors with."""
        ...

    def kaldi(self) -> KaldiFiles | None:
        """A back end of Kaldi's that was given for this attacker."""
        ...

    def training(self, role: SpeechRole) -> TrainingSpeech | None:
        """Other people's speech."""
        ...

    def release(self) -> Embeddings:
        """The released recordings of the assessed people, enrollment and trials."""
        ...

    def folds(self, speakers: int) -> int:
        """How many folds to cross-validate so many speakers in."""
        ...

    def material(self, *, several: bool = False) -> Material:
        """The material of an attacker with its own method; with `several`, also by further extractors."""
        ...

    def take(self, material: Material) -> None:
        """Record that this material is used."""
        ...
