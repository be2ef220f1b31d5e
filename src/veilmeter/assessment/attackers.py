"""From the experiment and the settings to one job per attacker; each attacker says itself what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from veilmeter.assessment.attack import Job, MeasureOptions
from veilmeter.assessment.experiment import Experiment
from veilmeter.assessment.settings import AttackerSettings, Settings
from veilmeter.attacks.attacker import Attacker
from veilmeter.attacks.backends.scoring import KaldiFiles
from veilmeter.attacks.desk import EnrollmentCopies, TrainingSpeech, Used
from veilmeter.attacks.material import AttackerRun, Material, OtherPeople
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.data.embeddings import Embeddings, strings
from veilmeter.data.matching import match
from veilmeter.results.model import AttackerResult


def describe(attacker: Attacker) -> AttackerResult:
    """The description of an attacker, without results."""
    return AttackerResult(
        name=attacker.name,
        about=attacker.about,
        has=attacker.has.to_json(),
        aliases={"voiceprivacy": attacker.voiceprivacy, "vauquier2025": attacker.vauquier2025},
        reference=attacker.reference,
        apart=attacker.apart,
    )


@dataclass(frozen=True, eq=False)
class AttackerPlanner:
    """Makes the jobs of one assessment, and notes what they use; `further` make those of further extractors."""

    experiment: Experiment
    settings: Settings
    measure_options: MeasureOptions
    further: Mapping[str, AttackerPlanner] = field(default_factory=dict)
    used: Used = field(default_factory=Used)

    def job(self, attacker: Attacker, needed: Sequence[str] = ()) -> Job:
        """A NotPossibleError where this attacker lacks what it needs. `needed` are families of measures beside those
        that were asked for."""
        desk = AttackerDesk(self, attacker)
        prepared = attacker.prepare(desk)
        measures = tuple(dict.fromkeys((*self.measure_options.measures, *needed)))
        test = desk.trials()
        return Job(
            attacker=replace(describe(attacker), trained_on=prepared.trained_on),
            test=test,
            scoring=prepared.scoring,
            options=replace(self.measure_options, measures=measures),
            mask=self.experiment.protocol.mask(prepared.scoring.names, list(test.utterances)),
            findings=prepared.findings,
        )

    def material(self, name: str) -> Material:
        """The material of an attacker, by this extractor alone: the released recordings come without names."""
        sides = self.experiment.sides_of(name)
        released = self.experiment.trials(sides.anonymized)
        runs = self.experiment.runs_of(name)
        if not runs:
            copies = self.experiment.enrollment(sides.anonymized)
            runs = (AttackerRun(vectors=copies, own=False, name="the released run"),)
        return Material(
            candidates=self.experiment.enrollment(sides.original),
            trials=released.vectors,
            conversations=(),
            runs=runs,
            others=None if name in self.experiment.own else self._others(),
            trial_ids=strings(released.utterances),
            pseudonyms=_pseudonyms(released),
            seed=self.settings.seed,
        )

    def _others(self) -> OtherPeople | None:
        """Other people's originals and their anonymized versions, pass by pass; None without pairs."""
        original, anonymized = (self.experiment.training.get(role) for role in ("train_original", "train_anonymized"))
        if original is None or anonymized is None:
            return None
        runs = []
        for number, part in enumerate(anonymized.parts, 1):
            try:
                matched = match(original.embeddings, part)
            except InputError:
                continue
            runs.append(AttackerRun(vectors=matched.anonymized, name=f"training speech, pass {number}"))
        return OtherPeople(originals=original.embeddings, runs=tuple(runs)) if runs else None


@dataclass(frozen=True, eq=False)
class AttackerDesk:
    """What this experiment offers to one attacker (see `Desk`)."""

    planner: AttackerPlanner
    attacker: Attacker

    @property
    def _experiment(self) -> Experiment:
        return self.planner.experiment

    @property
    def _name(self) -> str:
        return self.attacker.name

    @property
    def _options(self) -> AttackerSettings:
        return self.planner.settings.of_attacker(self._name)

    @property
    def seed(self) -> int:
        return self.planner.settings.seed

    @property
    def dimension(self) -> int | None:
        return self._options.dimension

    def trials(self) -> Embeddings:
        return self._experiment.trials(getattr(self._experiment.sides_of(self._name), self.attacker.trials))

    def originals(self) -> Embeddings:
        return self._experiment.enrollment(self._experiment.sides_of(self._name).original)

    def copies(self) -> EnrollmentCopies:
        copies = self._experiment.copies(self._name)
        self.planner.used.copies.add(self._name)
        return copies

    def own_extractor(self) -> Finding | None:
        own = self._experiment.own.get(self._name)
        if own is None:
            return None
        if own.tuned:
            self.planner.used.train(self.attacker.training, self._name)
        return own.about

    def backend(self, *, adapted: bool) -> str:
        settings, used = self.planner.settings, self.planner.used
        kind = self._options.backend or (settings.adapted_backend if adapted else settings.backend)
        (used.adapted_backends if adapted else used.backends).add(kind)
        return kind

    def kaldi(self) -> KaldiFiles | None:
        return KaldiFiles.of(self._options.plda, self._options.mean, self._options.lda)

    def training(self, role: str) -> TrainingSpeech | None:
        speech = self._experiment.training.get(role)
        if speech is None:
            return None
        self.planner.used.train(role, self._name)
        assessed = set(speech.embeddings.names) & set(self._experiment.original.names)
        return TrainingSpeech(speech.embeddings, len(assessed))

    def assessed_speech(self) -> Embeddings:
        protocol = self._experiment.protocol
        return self._experiment.anonymized.of_utterances([*protocol.enrollment, *protocol.trials])

    def folds(self, speakers: int) -> int:
        folds = min(self.planner.settings.folds, speakers)
        self.planner.used.folds = folds
        return folds

    def material(self, *, several: bool = False) -> Material:
        views = {
            other: replace(self.planner.material(other), seen=own.tuned_on_copies)
            for other, own in self._experiment.own.items()
            if self._name not in self._experiment.own and own.tuned and len(own.runs) == len(self._experiment.runs)
        }
        if several:
            views |= {label: planner.material(self._name) for label, planner in self.planner.further.items()}
        return replace(self.planner.material(self._name), views=views)

    def take(self, material: Material) -> None:
        used = self.planner.used
        used.copies.add(self._name)
        if material.others is not None:
            used.train("train_original", self._name)
            used.train("train_anonymized", self._name)


def _pseudonyms(released: Embeddings) -> np.ndarray | None:
    """Which released recordings share a pseudonym, where the anonymized side says so."""
    for name in ("pseudonym", "pseudo_pseudonym"):
        column = released.attributes.get(name)
        if column is not None and all(column):
            return np.unique(column.astype(str), return_inverse=True)[1].astype(np.int64)
    return None
