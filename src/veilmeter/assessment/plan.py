"""The plan of an assessment: every measurement as a task, one job per attacker, and the reasons for what is left out.

Each attacker says itself what it needs; the desk gives it what the experiment has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from veilmeter.assessment.analyses import (
    ZEBRA_SETS,
    KnownPairs,
    curve_part,
    inference_part,
    inversion_part,
    measures_part,
    runs_part,
    score_sets_part,
    sessions_part,
    similarity_part,
)
from veilmeter.assessment.attack import Job, MeasureOptions, measure_attack, measure_versions
from veilmeter.assessment.attacker_settings import AttackerSettings
from veilmeter.assessment.experiment import NOT_OF_A_PERSON, Experiment
from veilmeter.assessment.given_scores import ScoreFiles, measure_given
from veilmeter.assessment.settings import Settings, attacker_names
from veilmeter.assessment.tasks import Task, TaskId, TaskKind
from veilmeter.attacks.attacker import (
    ADAPTIVE,
    ATTACKERS,
    BASELINE,
    FUSED,
    Attacker,
    AttackerId,
    AttackScoring,
    default_attackers,
)
from veilmeter.attacks.backends.scoring import KaldiFiles
from veilmeter.attacks.material import (
    AttackerRun,
    EnrollmentCopies,
    Material,
    NotPossibleError,
    OtherPeople,
    TrainingSpeech,
    Used,
)
from veilmeter.attacks.vector_attackers import LEAST_PAIRS, VectorComparison
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, about
from veilmeter.data.corpus import SpeechRole
from veilmeter.data.embeddings import Embeddings, strings
from veilmeter.data.matching import match
from veilmeter.results.model import AttackerResult
from veilmeter.results.people import WORDS, channel_attackers
from veilmeter.speech.extractors.base import extractor_label, hears
from veilmeter.wording import sentence

# Without these no trust check could be made: they are measured whatever else is asked for, the scores of original
# speech only.
NEEDED_BY_CHECKS = ("linkability",)
NEEDED_OF_BASELINE = ("scores",)
CONTROL_MEASURES = ("scores", "linkability", "ranks")


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
class JobBuilder:
    """Makes the jobs of one extractor, and records what they use; `further` make those of further extractors."""

    experiment: Experiment
    settings: Settings
    measure_options: MeasureOptions
    further: Mapping[str, JobBuilder] = field(default_factory=dict)
    used: Used = field(default_factory=Used)

    def job(self, attacker: Attacker, needed: Sequence[str] = ()) -> Job:
        """A NotPossibleError where this attacker lacks what it needs. `needed` are families of measures beside those
        that were asked for."""
        further = {label: builder.experiment for label, builder in self.further.items()}
        desk = AttackerDesk(self.experiment, self.settings, attacker, self.used, further)
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


@dataclass(frozen=True, eq=False)
class AttackerDesk:
    """The material that an experiment offers to one attacker (see `Desk`). `used` records what the attacker takes;
    `further` are the experiments of further extractors."""

    experiment: Experiment
    settings: Settings
    attacker: Attacker
    used: Used
    further: Mapping[str, Experiment]

    @property
    def _name(self) -> str:
        return self.attacker.name

    @property
    def _options(self) -> AttackerSettings:
        return self.settings.of_attacker(self._name)

    @property
    def seed(self) -> int:
        return self.settings.seed

    @property
    def dimension(self) -> int | None:
        return self._options.dimension

    def trials(self) -> Embeddings:
        return self.experiment.trials(getattr(self.experiment.sides_of(self._name), self.attacker.trials))

    def originals(self) -> Embeddings:
        return self.experiment.enrollment(self.experiment.sides_of(self._name).original)

    def copies(self) -> EnrollmentCopies:
        copies = self.experiment.copies(self._name)
        self.used.copies.add(self._name)
        return copies

    def own_extractor(self) -> Finding | None:
        own = self.experiment.own.get(self._name)
        if own is None:
            return None
        if own.tuned and self.attacker.training is not None:
            self.used.train(self.attacker.training, self._name)
        return own.about

    def backend(self, *, adapted: bool) -> str:
        kind = self._options.backend or (self.settings.adapted_backend if adapted else self.settings.backend)
        (self.used.adapted_backends if adapted else self.used.backends).add(kind)
        return kind

    def kaldi(self) -> KaldiFiles | None:
        return KaldiFiles.of(self._options.plda, self._options.mean, self._options.lda)

    def training(self, role: SpeechRole) -> TrainingSpeech | None:
        speech = self.experiment.training.get(role)
        if speech is None:
            return None
        self.used.train(role, self._name)
        assessed = set(speech.embeddings.names) & set(self.experiment.original.names)
        return TrainingSpeech(speech.embeddings, len(assessed))

    def release(self) -> Embeddings:
        protocol = self.experiment.protocol
        return self.experiment.anonymized.of_utterances([*protocol.enrollment, *protocol.trials])

    def folds(self, speakers: int) -> int:
        folds = min(self.settings.folds, speakers)
        self.used.folds = folds
        return folds

    def material(self, *, several: bool = False) -> Material:
        views = {
            other: replace(material_of(self.experiment, other, self.seed), seen=own.tuned_on_copies)
            for other, own in self.experiment.own.items()
            if self._name not in self.experiment.own and own.tuned and len(own.runs) == len(self.experiment.runs)
        }
        if several:
            views |= {label: material_of(other, self._name, self.seed) for label, other in self.further.items()}
        return replace(material_of(self.experiment, self._name, self.seed), views=views)

    def take(self, material: Material) -> None:
        self.used.copies.add(self._name)
        if material.others is not None:
            self.used.train(SpeechRole.TRAIN_ORIGINAL, self._name)
            self.used.train(SpeechRole.TRAIN_ANONYMIZED, self._name)


def material_of(experiment: Experiment, attacker: str, seed: int) -> Material:
    """The material of an attacker, by one extractor alone: the released recordings come without names."""
    sides = experiment.sides_of(attacker)
    released = experiment.trials(sides.anonymized)
    runs = experiment.runs_of(attacker)
    if not runs:
        copies = experiment.enrollment(sides.anonymized)
        runs = (AttackerRun(vectors=copies, own=False, name="the released run"),)
    return Material(
        candidates=experiment.enrollment(sides.original),
        trials=released.vectors,
        conversations=(),
        runs=runs,
        others=None if attacker in experiment.own else _other_people(experiment),
        trial_ids=strings(released.utterances),
        pseudonyms=_pseudonyms(released),
        seed=seed,
    )


def _other_people(experiment: Experiment) -> OtherPeople | None:
    """Other people's originals and their anonymized versions, pass by pass; None without pairs."""
    original = experiment.training.get(SpeechRole.TRAIN_ORIGINAL)
    anonymized = experiment.training.get(SpeechRole.TRAIN_ANONYMIZED)
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


def _pseudonyms(released: Embeddings) -> np.ndarray | None:
    """Which released recordings share a pseudonym, where the anonymized side says so."""
    for name in ("pseudonym", "pseudo_pseudonym"):
        column = released.attributes.get(name)
        if column is not None and all(column):
            return np.unique(column.astype(str), return_inverse=True)[1].astype(np.int64)
    return None


@dataclass(frozen=True, eq=False)
class AssessmentPlan:
    """The tasks, the jobs of the attackers among them, and what is left out and why."""

    tasks: Sequence[Task]
    jobs: Mapping[AttackerId, Job]
    not_tested: Sequence[Finding]
    used: Used
    attributes: tuple[str, ...] = ()


def channels(settings: Settings) -> dict[str, AttackerId]:
    """The channels of several extractors, each with its attacker; none of one extractor, unless it hears words: what
    they tell of original speech is the text floor."""
    first, *further = map(extractor_label, settings.extractor)
    return channel_attackers(first, tuple(further)) if further or hears(first) == WORDS else {}


def make_plan(
    experiment: Experiment, settings: Settings, keys: Sequence[str], further: Mapping[str, Experiment] | None = None
) -> AssessmentPlan:
    """`keys` are the trial keys of the protocol, for score files that name none; `further` the experiments with the
    vectors of further extractors, by their names."""
    return _Planner(experiment, settings, tuple(map(Path, keys)), further or {}).plan()


@dataclass(eq=False)
class _Planner:
    experiment: Experiment
    settings: Settings
    keys: tuple[Path, ...]
    further: Mapping[str, Experiment] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    jobs: dict[AttackerId, Job] = field(default_factory=dict)
    not_tested: list[Finding] = field(default_factory=list)

    def plan(self) -> AssessmentPlan:
        settings = self.settings
        self.measure_options = MeasureOptions(
            lengths=settings.lengths,
            sizes=settings.speakers,
            population=settings.population,
            candidates=settings.candidates,
            measures=tuple(dict.fromkeys((*settings.families, *NEEDED_BY_CHECKS))),
            score_measures=measure_versions("scores", settings),
            groups=self.experiment.groups,
            intervals=settings.intervals,
            resamples=settings.resamples,
            seed=settings.seed,
            eer_method=settings.eer_method,
            eer_rules=self._eer_rules(),
        )
        further = {
            name: JobBuilder(experiment, settings, self.measure_options) for name, experiment in self.further.items()
        }
        self.builder = JobBuilder(self.experiment, settings, self.measure_options, further)
        self._attackers()
        for name, builder in further.items():
            self._attackers_by(name, builder)
        self._channel_controls()
        clear, protected = map(self.experiment.trials, (self.experiment.original, self.experiment.anonymized))
        if settings.wants("similarity"):
            self._analyze(
                "similarity",
                similarity_part,
                clear,
                protected,
                self.experiment.groups,
                settings.intervals,
                settings.seed,
            )
        self._inversion(clear, protected)
        self._zebra()
        attributes = self._inference(clear, protected)
        if settings.wants("linkability") and _has_sessions(self.experiment.original):
            self._analyze(
                "sessions",
                sessions_part,
                self.experiment.original,
                self.experiment.anonymized,
                settings.intervals,
                settings.seed,
            )
        self._runs()
        if measures := measure_versions("embeddings", settings):
            self._analyze("added", measures_part, measures, clear, protected)
        return AssessmentPlan(self.tasks, self.jobs, self.not_tested, self.builder.used, attributes)

    def _eer_rules(self) -> tuple[str, ...]:
        """The further rules of the EER: those of a challenge, and ROCCH beside them whatever was chosen."""
        rules = self.experiment.protocol.eer_rules
        return (*rules, "rocch") if rules and self.settings.eer_method != "rocch" else rules

    def _add(self, kind: TaskKind, name: str, function: object, *arguments: object, needed: bool = False) -> None:
        self.tasks.append(Task(TaskId(kind, name), function, arguments, needed))  # type: ignore[arg-type]

    def _analyze(self, name: str, function: object, *arguments: object) -> None:
        self._add(TaskKind.ANALYSIS, name, function, *arguments)

    # --- attackers

    def _attackers(self) -> None:
        names = attacker_names(self.settings)
        if self.further and ADAPTIVE in names and FUSED not in names:
            names.append(FUSED)
        for known in (ATTACKERS[name] for name in (BASELINE, *names)):
            given = self._score_files(known.name)
            if known.family and not self.settings.wants(known.family) and given is None:
                reason = Finding("family_not_asked_for", {"family": known.family})
                self.not_tested.append(about(reason, attacker=known.name))
                continue
            try:
                job = self.builder.job(known, NEEDED_OF_BASELINE if known.name == BASELINE else ())
                self.jobs[AttackerId(known.name)] = job
                self._add(TaskKind.ATTACKER, known.name, measure_attack, job, needed=known.name == BASELINE)
            except NotPossibleError as error:
                if given is None:
                    self._leave_out(known, error.finding)
            if given is not None:
                people = frozenset(self.experiment.original.names)
                arguments = (describe(known), given, people, self.measure_options)
                self._add(TaskKind.SCORES, known.name, measure_given, *arguments, needed=True)
        left_out = [name for name in default_attackers() if name not in names]
        self.not_tested += [about(Finding("not_asked_for"), attacker=name) for name in left_out]

    def _attackers_by(self, extractor: str, builder: JobBuilder) -> None:
        """Every attacker once more by a further extractor."""
        for name in attacker_names(self.settings):
            known = ATTACKERS[name]
            if known.several or (known.family and not self.settings.wants(known.family)):
                continue
            attacker = AttackerId(name, extractor)
            try:
                job = builder.job(known)
            except NotPossibleError as error:
                self.not_tested.append(about(error.finding, attacker=str(attacker)))
                continue
            result = replace(job.attacker, name=str(attacker), extractor=extractor)
            self.jobs[attacker] = job = replace(job, attacker=result)
            self._add(TaskKind.ATTACKER, str(attacker), measure_attack, job)

    def _channel_controls(self) -> None:
        """What each channel finds in original speech, and with people shuffled."""
        for name, attacker in channels(self.settings).items():
            if attacker not in self.jobs:
                continue
            builder = self.builder.further.get(name, self.builder)
            known = ATTACKERS[attacker.kind]
            self._add(TaskKind.CONTROL, name, measure_attack, on_original(builder, known))
            self._add(TaskKind.SHUFFLED, name, measure_attack, with_shuffled_people(builder, known))

    def _leave_out(self, known: Attacker, reason: Finding) -> None:
        if known.name == BASELINE:  # the baseline: without it nothing else says anything
            raise InputError(f"the assessment can't be made: {sentence(reason)}")
        self.not_tested.append(about(reason, attacker=known.name))

    def _score_files(self, name: str) -> ScoreFiles | None:
        options = self.settings.attackers.get(name, AttackerSettings())
        if not options.scores:
            return None
        keys = tuple(map(Path, options.trials)) or self.keys
        return ScoreFiles(tuple(map(Path, options.scores)), keys, self.experiment.protocol.common_trials)

    # --- parts

    def _inversion(self, clear: Embeddings, protected: Embeddings) -> None:
        """The variants of the procrustes attacker; they belong to it."""
        if AttackerId("procrustes") not in self.jobs or clear.dimension != protected.dimension:
            return
        experiment, settings = self.experiment, self.settings
        try:
            copies = experiment.copies().vectors
        except NotPossibleError:
            return
        if len(copies) < LEAST_PAIRS:
            return

        def pairs_of(enrollment: Embeddings, released: Embeddings) -> KnownPairs:
            wanted = list(enrollment.utterances)
            return KnownPairs(
                experiment.original.of_utterances(wanted),
                enrollment,
                clear,
                experiment.trials(released),
            )

        base = pairs_of(copies, experiment.anonymized)
        own = {
            name: pairs_of(experiment.copies(name).vectors, own.matched.anonymized)
            for name, own in experiment.own.items()
            if ATTACKERS[name].adapted
        }
        drawn = settings.intervals, settings.seed, settings.eer_method
        self._analyze("inversion", inversion_part, base, own, *drawn)
        self._analyze("inversion-curve", curve_part, base, settings.seed)

    def _zebra(self) -> None:
        if not self.settings.wants("scores"):
            return
        files = {name: given for name in ZEBRA_SETS if (given := self._score_files(name)) is not None}
        if len(files) == len(ZEBRA_SETS):
            self._analyze("zebra", score_sets_part, files, self.measure_options)
            return
        sets = {name: job for name in ZEBRA_SETS if (job := self.jobs.get(AttackerId(name))) is not None}
        if len(sets) == len(ZEBRA_SETS):
            # How distinct the voices of one run are: both sides of it are the released one.
            within = self.experiment.enrollment(self.experiment.anonymized)
            sets["lazy-informed"] = self._with_enrollment(sets["lazy-informed"], within)
            self._analyze("zebra", score_sets_part, sets, self.measure_options)
        else:
            missing = tuple(name for name in ZEBRA_SETS if name not in sets)
            self.not_tested.append(Finding("disclosure_removed_unknown", {"attackers": missing}))

    def _inference(self, clear: Embeddings, protected: Embeddings) -> tuple[str, ...]:
        settings = self.settings
        known = self.experiment.original.attributes
        missing = [name for name in settings.attributes or () if name not in known]
        if missing:
            listed = ", ".join(sorted(known)) or "none"
            raise InputError(f"can't infer {missing[0]!r}: unknown attribute", fix=f"choose from {listed}")
        attributes = settings.attributes
        if attributes is None:
            attributes = tuple(name for name in known if name not in NOT_OF_A_PERSON)
        if not settings.wants("inference") or not attributes:
            return ()
        rest = (settings.resamples, settings.intervals, settings.seed)
        self._analyze("inference", inference_part, clear, protected, attributes, *rest)
        return attributes

    def _runs(self) -> None:
        """The attackers' first run beside the released one: the same attackers on it, and enrollment of the released
        run against trials of the other."""
        experiment, protocol = self.experiment, self.experiment.protocol
        if not experiment.runs:
            return
        second = experiment.runs[0].vectors
        there = set(second.utterances)
        enrollment = [u for u in protocol.enrollment if u in there]
        trials = [u for u in protocol.trials if u in there]
        compared = {
            name: job
            for name in ("ignorant", "lazy-informed")
            if name not in experiment.own and (job := self.jobs.get(AttackerId(name))) is not None
        }
        if not enrollment or not trials or not compared:
            return  # a run over the enrollment only, as an attacker makes it
        test = second.of_utterances(trials)
        within = experiment.enrollment(experiment.anonymized)
        first, rerun = {}, {}
        for name, job in compared.items():
            first[name] = job if name == "ignorant" else self._with_enrollment(job, within)
            again = job if name == "ignorant" else self._with_enrollment(job, second.of_utterances(enrollment))
            mask = protocol.mask(again.scoring.names, list(test.utterances))
            rerun[name] = replace(again, test=test, mask=mask)
        plain = replace(self.measure_options.with_own_measures(), measures=("scores", "linkability"), groups={})
        across = Job(
            attacker=AttackerResult(name="across runs", about="compares a released run with another run"),
            test=test,
            scoring=VectorComparison(within),
            options=plain,
            mask=protocol.mask(within.names, list(test.utterances)),
        )
        self._analyze("runs", runs_part, first, rerun, across)

    def _with_enrollment(self, job: Job, enroll: Embeddings) -> Job:
        """The same attacker with another enrollment."""
        assert isinstance(job.scoring, VectorComparison)
        mask = self.experiment.protocol.mask(enroll.names, list(job.test.utterances))
        return replace(job, scoring=replace(job.scoring, enroll=enroll), mask=mask)


def on_original(builder: JobBuilder, known: Attacker) -> Job:
    """Control of a channel on original speech, which shows what there was to hide: the attacker's copies and the trials
    are original recordings."""
    job, material = _attack_job(builder, known)
    views = {
        name: _on_originals(view, builder.further[name])
        for name, view in material.views.items()
        if name in builder.further
    }
    clear = replace(_on_originals(material, builder), views=views)
    test = builder.experiment.trials(builder.experiment.original)
    return _control(builder, job, clear, test, "on original speech")


def with_shuffled_people(builder: JobBuilder, known: Attacker) -> Job:
    """Control of a channel that must be at chance: the recordings that the attacker knows people by are assigned to
    people at random, as many to each as before."""
    job, material = _attack_job(builder, known)
    order = np.random.default_rng([builder.settings.seed, 21]).permutation(len(material.candidates))
    views = {name: _shuffle_people(view, order) for name, view in material.views.items()}
    return _control(
        builder, job, replace(_shuffle_people(material, order), views=views), job.test, "with shuffled people"
    )


def _attack_job(builder: JobBuilder, known: Attacker) -> tuple[Job, Material]:
    job = builder.job(known)
    if not isinstance(job.scoring, AttackScoring):
        raise InputError(f"the {known.name} attacker learns nothing from people's own recordings")
    return job, job.scoring.material


def _control(builder: JobBuilder, job: Job, material: Material, test: Embeddings, where: str) -> Job:
    assert isinstance(job.scoring, AttackScoring)
    scoring = replace(job.scoring, material=material)
    measure_options = replace(builder.measure_options.with_own_measures(), measures=CONTROL_MEASURES, groups={})
    attacker = replace(job.attacker, name=f"{job.attacker.name} {where}", apart=True)
    mask = builder.experiment.protocol.mask(scoring.names, list(test.utterances))
    return Job(attacker=attacker, test=test, scoring=scoring, options=measure_options, mask=mask)


def _on_originals(material: Material, builder: JobBuilder) -> Material:
    trials = builder.experiment.trials(builder.experiment.original)
    copies = AttackerRun(vectors=material.candidates, draw="utterance", name="original speech", certain=True)
    return replace(material, trials=trials.vectors, runs=(copies,), others=None, pseudonyms=None)


def _shuffle_people(material: Material, order: np.ndarray) -> Material:
    known = material.candidates
    return replace(material, candidates=Embeddings(known.vectors, known.utterances, known.speakers[order]))


def _has_sessions(embeddings: Embeddings) -> bool:
    """Whether some speaker has several known sessions."""
    column = embeddings.attributes.get("session")
    if column is None:
        return False
    known = {(speaker, session) for speaker, session in zip(embeddings.speakers, column, strict=True) if session}
    return len(known) > len({speaker for speaker, _ in known})
