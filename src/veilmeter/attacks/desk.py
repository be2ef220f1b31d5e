"""The desk: everything that an experiment offers to an attacker, and a record of what attackers took from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from veilmeter.attacks.backends.scoring import KaldiFiles
from veilmeter.attacks.material import Material
from veilmeter.core.findings import Finding
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.roles import SpeechRole


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
