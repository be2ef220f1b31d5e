"""The run of an assessment: original and anonymized speech in, a complete assessment out."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from veilmeter._version import __version__
from veilmeter.assessment.analyses import ZEBRA_SETS, score_sets_part
from veilmeter.assessment.attack import Job, MeasureOptions, measure_versions
from veilmeter.assessment.attacker_settings import AttackerSettings
from veilmeter.assessment.conclude import (
    FinishedRun,
    attackers_of,
    build_results,
    matrices_of,
    not_tested,
    option_use,
    parts_of,
    sign,
    warnings_of,
    write_tables,
)
from veilmeter.assessment.evidence import DuplicateAudio, find_duplicate_audio
from veilmeter.assessment.experiment import Experiment, build_experiment, further_experiments, further_labels
from veilmeter.assessment.forecast import extraction_cost, forecast_work, measuring_work, utility_budget
from veilmeter.assessment.given_scores import ScoreFiles, measure_given
from veilmeter.assessment.inputs import InputReader
from veilmeter.assessment.plan import AssessmentPlan, describe, make_plan
from veilmeter.assessment.protocol import GivenProtocol, lists_near, make_protocol
from veilmeter.assessment.settings import (
    SOURCES,
    Facts,
    RunOptions,
    Settings,
    attacker_names,
    make_settings,
)
from veilmeter.assessment.speech import (
    as_list,
    distractors_of,
    folders_near,
    join_corpora,
    refuse_missing_files,
    refuse_missing_sides,
    refuse_mixtures,
    side_vectors,
    write_left_out,
)
from veilmeter.assessment.stages import Forecast, Stage, StageLog
from veilmeter.assessment.tasks import (
    Arrays,
    Done,
    Stages,
    Task,
    TaskId,
    TaskKind,
    TaskResult,
    perform,
)
from veilmeter.attacks.attacker import ATTACKERS, BASELINE, AttackerId, default_attackers
from veilmeter.attacks.material import Used
from veilmeter.core.devices import choose_device
from veilmeter.core.engine import Engine, Say, open_engine, single_threaded
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import make_folder, only_one, remove_leftovers, sha256, write_json
from veilmeter.core.findings import Finding, about, not_possible
from veilmeter.core.options import options_of
from veilmeter.data.corpus import SIDES, SpeechRole
from veilmeter.data.matching import match, refuse_one_speaker
from veilmeter.results.model import AttackerResult, Input, Matching, ProtocolFacts, Results
from veilmeter.results.run_folder import RESULTS, TIMINGS, Assessment, Costs, read_costs, read_results, write_results
from veilmeter.results.trust import UTILITY_PENDING, TrustFacts
from veilmeter.results.verdict import conclude
from veilmeter.speech.audio import chose_channel, leaves_home
from veilmeter.wording import text

LEFT_OUT = "left_out.jsonl"
UTILITY = TaskId(TaskKind.ANALYSIS, "utility")
# Analyses that take less time than the others.
QUICK = {TaskId(TaskKind.ANALYSIS, name) for name in ("similarity", "sessions", "inference", "added")}


def run_assessment(
    original: Any = None,
    anonymized: Any = None,
    *,
    out: str | Path | None = None,
    settings: Settings | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    argv: Sequence[str] = (),
    say: Say | None = None,
    forecast: Forecast | None = None,
    set_name: str = "",
    protocol: GivenProtocol | None = None,
    first: Callable[[Assessment], bool] | None = None,
    **options: Any,
) -> Assessment:
    """Run an assessment from options, as `assess` takes them, or from `settings`, and report its progress.

    A source that is given beside `settings` replaces the one they name. `protocol` says who is enrolled and tried where
    no list does. Without any speech, the scores that `attackers` are given are assessed by themselves.

    With `out` and `first`, the attackers' verdict is written as soon as it is known, and passed to `first`; utility and
    further extractors follow if it returns True, and complete the same folder. `results.pending` lists what is missing.
    `forecast` shows how far it is and how long the rest takes; with `set_name`, this is one of several sets.
    """
    given = {role: options.pop(role, None) for role in SOURCES}
    given |= {SpeechRole.ORIGINAL: original, SpeechRole.ANONYMIZED: anonymized}
    if settings is None:
        named = {str(role): _source_names(source) for role, source in given.items() if source is not None}
        settings = make_settings({**named, **options})
    elif options:
        raise InputError("give settings or options, not both")
    sources = {role: given[role] if given[role] is not None else getattr(settings, role) or None for role in SOURCES}
    if settings.vpc is not None:
        raise InputError("the sets of VoicePrivacy data are assessed one by one", fix="call assess_challenge")
    alone = all(source is None for source in sources.values()) and not settings.runs_system and has_scores(settings)
    if not alone:
        refuse_missing_sides(sources, settings)
    refuse_missing_files(settings)
    choose_device(settings.device)
    with closing(open_engine(jobs, cluster)) as engine, single_threaded():
        common = (settings, out, engine, StageLog(say or _silent, forecast, set_name), tuple(argv))
        run = ScoreRun(*common) if alone else SpeechRun(*common, sources=sources, given=protocol, first=first)
        return run.execute()


def _silent(text: str) -> None:
    pass


def _source_names(source: Any) -> list[str]:
    return [
        str(item)
        if isinstance(item, str | Path)
        else str(getattr(item, "source", "") or getattr(item, "root", "") or "given")
        for item in as_list(source)
    ]


class Run(ABC):
    """One assessment: it reports its stages, keeps finished tasks, and owns its folder."""

    def __init__(
        self, settings: Settings, out: str | Path | None, engine: Engine, log: StageLog, argv: tuple[str, ...]
    ) -> None:
        self.settings = settings
        self.folder = None if out is None else make_folder(out)
        self.engine = engine
        self.log = log
        self.argv = argv
        self.stages = Stages(None if self.folder is None else self.folder / "stages")
        self._performed: dict[str, tuple[TaskResult, Arrays]] = {}  # by the key of the task
        self._has_recorded = False
        self.costs = Costs() if self.folder is None else read_costs(self.folder)

    def execute(self) -> Assessment:
        if self.folder is None:
            return self.assess()
        with only_one(self.folder / ".lock", self.folder):
            refuse_late_threshold(self.folder, self.settings.threshold)
            for folder in (self.folder, make_folder(self.folder / "stages"), self.folder / "tables"):
                remove_leftovers(folder)
            return self.assess()

    @abstractmethod
    def assess(self) -> Assessment:
        """Measure, conclude and write."""

    def perform(self, tasks: Sequence[Task]) -> Done:
        """Run every task that is not kept from an earlier run, wherever the engine runs it."""
        done = {task.id: self._performed[task.key] for task in tasks if task.key in self._performed}
        tasks_before = len(done)
        for task in tasks:
            kept = None if task.id in done else self.stages.get(task.id, task.key)
            if kept is not None:
                done[task.id] = kept
        left = [task for task in tasks if task.id not in done]
        if len(done) > tasks_before:
            self.log.say(f"{len(done) - tasks_before} of {len(tasks)} tasks are kept from an earlier run")
        if left:
            self.log.stage(Stage.MEASURING, ", ".join(str(task.id) for task in left))
            self.log.count(len(done), len(tasks))
        left = _longest_first(left)
        for number, (measured, arrays, seconds) in self.engine.run(perform, left):
            task = left[number]
            self.costs.seconds[str(task.id)] = seconds
            as_kept = self.stages.put(task.id, task.key, measured, arrays)
            done[task.id] = as_kept, self.stages.arrays_of(task.id, task.key, arrays)
            del arrays
            self.log.say(f"measured: {task.id} ({len(done)} of {len(tasks)})")
            self.log.count(len(done), len(tasks))
        self._performed |= {task.key: done[task.id] for task in tasks}
        return {task.id: done[task.id] for task in tasks}  # in one order, wherever they ran

    def record(
        self,
        results: Results,
        done: Done,
        jobs: Mapping[AttackerId, Job],
        left_out: int = 0,
        factor: float | None = None,
    ) -> Assessment:
        """The assessment, written to the folder of the run, if it has one. Tables and the report of an earlier run in
        this folder are removed."""
        matrices = matrices_of(done)
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self.folder is not None:
            written = write_tables(self.folder / "tables", results, jobs, done, matrices)
            for file in (self.folder / "tables").glob("*.parquet"):
                if file.name not in written:
                    file.unlink()
            if not self._has_recorded:
                (self.folder / "report.html").unlink(missing_ok=True)
            self._has_recorded = True
            results = write_results(self.folder, results)
            self.log.stage(Stage.FIRST if results.pending else Stage.DONE)
            self.log.forecast.keep_speeds()
            timings = {
                "seconds": self.log.timings,
                "total": round(time.monotonic() - self.log.started, 3),
                "real_time_factor": factor,
                **self.costs.to_json(done),
                "command": self.argv,
                "workers": self.engine.workers,
                "created": created,
            }
            write_json(self.folder / TIMINGS, timings)
        return Assessment(
            results,
            self.folder,
            {str(stage): seconds for stage, seconds in self.log.timings.items()},
            left_out,
            factor,
            matrices,
            created,
        )


def _longest_first(tasks: Sequence[Task]) -> list[Task]:
    """Long tasks first, so that workers do not wait for one that started last. Attackers are planned from the simplest
    to the one that tries most."""
    attacks = [task for task in tasks if task.id.kind is TaskKind.ATTACKER]
    others = [task for task in tasks if task.id.kind is not TaskKind.ATTACKER]
    return [*reversed(attacks), *sorted(others, key=lambda task: task.id in QUICK)]


def who_attacks(settings: Settings) -> str:
    """A sentence on who was asked for and who was not; nothing where all were."""
    names = attacker_names(settings)
    left = [name for name in default_attackers() if name not in names]
    if not left:
        return ""
    special = any(table != AttackerSettings() for name, table in settings.attackers.items() if name != BASELINE)
    why = " (where there are tables [attackers.NAME], only those attackers are run)" if special else ""
    return f"attackers: {', '.join(names)}; not asked for: {', '.join(left)}{why}"


def refuse_late_threshold(folder: Path, threshold: float | None) -> None:
    """A threshold counts as chosen beforehand only if no results with another one are known."""
    if threshold is None or not (folder / RESULTS).is_file():
        return
    before = None
    with suppress(InputError):
        before = read_results(folder).settings.get("threshold")
    if before != threshold:
        raise InputError(
            f"this folder holds results already, and not with the limit {threshold:g} %: it was not chosen beforehand",
            path=folder / RESULTS,
            fix=f"name it in the report (`report RUN --threshold {threshold:g}%`), or assess into a new folder",
        )


def without_place(command: Sequence[str]) -> tuple[str, ...]:
    """The command without what can't change a result: where it runs and what it prints.

    >>> without_place(["veilmeter", "assess", "a.toml", "--jobs", "4", "--out=run", "--seed", "1", "--quiet"])
    ('veilmeter', 'assess', 'a.toml', '--seed', '1')
    """
    place = {flag: declared for declared in options_of(RunOptions).values() for flag in declared.all_flags}
    kept: list[str] = []
    words = iter(command)
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in place:
            kept.append(word)
        elif not place[name].is_flag and not equals:
            next(words, None)
    return tuple(kept)


class SpeechRun(Run):
    """An assessment of speech, or of vectors of it."""

    def __init__(
        self,
        *common: Any,
        sources: Mapping[SpeechRole, Any],
        given: GivenProtocol | None = None,
        first: Callable[[Assessment], bool] | None = None,
    ) -> None:
        super().__init__(*common)
        self.sources = sources
        self.given = given
        self.first = first
        self._duplicates: DuplicateAudio | None = None

    def assess(self) -> Assessment:
        if who := who_attacks(self.settings):
            self.log.say(who)
        reader = InputReader(self.settings, self.sources, self.engine, self.log, self.folder)
        reader.check()
        if work := forecast_work(self.settings, self.sources, reader.corpora, self.folder):
            self.log.expect(work, self.engine.workers)
        reader.read_sides()
        reader.read_training()
        refuse_mixtures(reader.all_speech)
        matched = match(*side_vectors(reader.speech))
        if self.settings.strict and matched.left_out:
            raise InputError(text(matched.findings()), fix="give both sides of every recording, or leave out --strict")
        refuse_one_speaker(matched.original.speakers, matched.original.source)
        self.log.stage(Stage.PROTOCOL)
        near = folders_near(self.sources[SpeechRole.ORIGINAL], self.settings)
        protocol = make_protocol(
            matched.original,
            enroll=self.settings.enroll,
            trials=self.settings.trials,
            found_near=near,
            seed=self.settings.seed,
            given=self.given,
            distractors=distractors_of(reader.speech),
        )
        reader.findings += [*matched.findings(), *protocol.findings]
        self.log.expect([measuring_work(self.settings, len(matched.original.names))], self.engine.workers)
        runs = reader.read_runs(matched, protocol.enrollment)
        refuse_mixtures(reader.all_speech)
        experiment = build_experiment(reader, matched, protocol, runs)
        keys = self.settings.trials or (self.given.keys if self.given else tuple(lists_near(near)[1]))
        pending = self.pending(reader)
        if pending and self.first is not None and self.folder is not None:
            plan = make_plan(experiment, self.settings, keys)
            assessment = self.finish(reader, experiment, plan, self.perform(plan.tasks), pending)
            if not self.first(assessment):
                return assessment
        further = further_experiments(reader, experiment, runs)
        plan = make_plan(experiment, self.settings, keys, further)
        return self.finish(reader, experiment, plan, {**self.perform(plan.tasks), **self.utility(reader, experiment)})

    def pending(self, reader: InputReader) -> tuple[Finding, ...]:
        """Measurements that follow the first verdict: they take longest and change it least."""
        further = [Finding.of("extractor_pending", extractor=label) for label in further_labels(self.settings)]
        return (*further, *([Finding(UTILITY_PENDING)] if self.measures_utility(reader) else ()))

    def measures_utility(self, reader: InputReader) -> bool:
        """Whether utility was asked for, and there are recordings of both sides."""
        return self.settings.wants("utility") and all(reader.speech[side].corpora for side in SIDES)

    def utility(self, reader: InputReader, experiment: Experiment) -> Done:
        """The utility of the speech, where there are recordings of both sides."""
        if not self.measures_utility(reader):
            return {}
        sides = [reader.speech[side].corpora for side in SIDES]
        from veilmeter.assessment.utility import UtilitySettings, measure_utility, with_labels

        self.log.stage(Stage.UTILITY)
        chosen = UtilitySettings(
            recognizer=self.settings.recognizer,
            language=self.settings.language,
            recordings=self.settings.utility_recordings,
            rated=self.settings.utility_rated,
            precision=self.settings.utility_precision,
            budget=utility_budget(self.settings, extraction_cost(reader.all_speech)),
            groups=self.settings.by or UtilitySettings().groups,
            measures=tuple(self.settings.named_measures),
            offline=self.settings.offline,
        )
        original, anonymized = map(join_corpora, sides)
        try:
            with self.log.progress() as progress:
                part = measure_utility(
                    original, anonymized, chosen, engine=self.engine, say=self.log.say, progress=progress
                )
        except VeilmeterError as error:
            if self.settings.recognizer is not None or self.settings.language is not None:
                raise
            return {UTILITY: (TaskResult(not_possible=not_possible(error)), {})}
        part = with_labels(part, experiment.matched.original, experiment.matched.anonymized)
        return {UTILITY: (TaskResult(part=part), {})}

    def utility_limits(self, done: Done) -> dict[str, bool]:
        """What could end the measurement of utility, where it was measured."""
        part = done[UTILITY][0].part if UTILITY in done else None
        if part is None:
            return {}
        from veilmeter.assessment.utility import utility_limits

        return utility_limits(part)

    def find_duplicates(self, reader: InputReader, experiment: Experiment) -> DuplicateAudio | None:
        """Whether recordings of both sides are copies of each other, where there are any."""
        if self._duplicates is None:
            if all(reader.speech[side].is_audio for side in SIDES):
                self.log.stage(Stage.DUPLICATES)
            self._duplicates = find_duplicate_audio(experiment, reader.speech, self.engine)
        return self._duplicates

    def finish(
        self,
        reader: InputReader,
        experiment: Experiment,
        plan: AssessmentPlan,
        done: Done,
        pending: tuple[Finding, ...] = (),
    ) -> Assessment:
        self.log.stage(Stage.CONCLUDING)
        corpora = [corpus for speech in reader.all_speech for corpus in speech.corpora]
        facts = Facts(
            recorded=frozenset(speech.role for speech in reader.all_speech if speech.is_audio),
            attackers=frozenset(
                {attacker.kind for attacker in plan.jobs if not attacker.extractor}
                | {task.name for task in done if task.kind is TaskKind.SCORES}
            ),
            used=plan.used,
            enrolled=len(experiment.enrollment(experiment.original).names),
            tuned=frozenset(name for name, own in experiment.own.items() if own.tuned),
            parts=frozenset(task.name for task in done if task.kind is TaskKind.ANALYSIS)
            | ({UTILITY.name} if Finding(UTILITY_PENDING) in pending else frozenset()),
            has_channels=any(map(chose_channel, corpora)),
            leaves_home=any(map(leaves_home, corpora)),
            **self.utility_limits(done),
        )
        options = option_use(self.settings, facts)
        duplicates = self.find_duplicates(reader, experiment)
        findings = tuple(reader.findings)
        outcome = FinishedRun(experiment, plan, done, reader.all_speech, findings, options, duplicates, pending)
        results = build_results(outcome, self.settings, without_place(self.argv))
        left_out = sum(len(speech.left_out) for speech in reader.all_speech) + len(experiment.matched.left_out)
        self.costs.add_extraction(reader.extracted)
        assessment = self.record(results, done, plan.jobs, left_out, reader.real_time_factor())
        if self.folder is not None:
            write_left_out(self.folder / LEFT_OUT, reader.all_speech, experiment.matched)
        return assessment


def has_scores(settings: Settings) -> bool:
    """Whether some attacker's scores were given."""
    return any(options.scores for options in settings.attackers.values())


class ScoreRun(Run):
    """An assessment of score files: measures of scores only; the results list what was not tested."""

    def assess(self) -> Assessment:
        settings = self.settings
        if not settings.wants("scores"):
            raise InputError(
                "only scores were given, and the measures of scores were left out", fix="add scores to --measures"
            )
        self.log.stage(Stage.READING, "scores")
        files = self._files()
        tasks = self._tasks(files)
        done = self.perform(tasks)
        self.log.stage(Stage.CONCLUDING)
        assessment = self.record(self._results(files, done), done, jobs={})
        if self.folder is not None:
            (self.folder / LEFT_OUT).unlink(missing_ok=True)
        return assessment

    def _files(self) -> dict[str, ScoreFiles]:
        """The score files of each attacker, the baseline first."""
        common = tuple(map(Path, self.settings.trials))
        given = {name: options for name, options in self.settings.attackers.items() if options.scores}
        return {
            name: ScoreFiles(tuple(map(Path, given[name].scores)), tuple(map(Path, given[name].trials)) or common)
            for name in ATTACKERS
            if name in given
        }

    def _tasks(self, files: Mapping[str, ScoreFiles]) -> list[Task]:
        settings = self.settings
        options = MeasureOptions(
            lengths=settings.lengths,
            measures=("scores",),
            score_measures=measure_versions("scores", settings),
            intervals=settings.intervals,
            resamples=settings.resamples,
            seed=settings.seed,
        )
        tasks = [
            Task(
                TaskId(TaskKind.SCORES, name),
                measure_given,
                (describe(ATTACKERS[name]), given, None, options),
                needed=True,
            )
            for name, given in files.items()
        ]
        if all(name in files for name in ZEBRA_SETS):
            sets = {name: files[name] for name in ZEBRA_SETS}
            tasks.append(Task(TaskId(TaskKind.ANALYSIS, "zebra"), score_sets_part, (sets, options)))
        return tasks

    def _results(self, files: Mapping[str, ScoreFiles], done: Done) -> Results:
        settings = self.settings
        measured = {task: result for task, (result, _) in done.items() if not result.not_possible}
        attackers = attackers_of(measured)
        counts = [attacker.details for attacker in attackers.values()]
        enrolled, tried = (max(count[key] for count in counts) for key in ("enrolled_speakers", "trial_speakers"))
        options = option_use(
            settings,
            Facts(recorded=frozenset(), attackers=frozenset(files), used=Used(), enrolled=enrolled, scores_only=True),
        )
        results = Results(
            version=__version__,
            title=settings.title or f"scores of {', '.join(attackers)}",
            seed=settings.seed,
            settings=options.used,
            incidental=options.incidental,
            inputs={
                entry.role: entry for entry in (_input(name, given, attackers[name]) for name, given in files.items())
            },
            matching=Matching(matched=0),
            protocol=ProtocolFacts(
                split=Finding("split_of_scores"),
                enrolled_speakers=enrolled,
                trial_speakers=tried,
                enrollment_utterances=0,
                trial_utterances=0,
                details={"speakers": tried, "groups": [], "keys": _digest(*(given.keys for given in files.values()))},
            ),
            attackers=attackers,
            command=without_place(self.argv),
            parts=parts_of(measured),
            remarks=options.remarks,
            warnings=warnings_of((), measured),
        )
        return conclude(sign(results), TrustFacts(), not_tested=self._not_tested(files, done))

    def _not_tested(self, files: Mapping[str, ScoreFiles], done: Done) -> list[Finding]:
        missing = [name for name in default_attackers() if name not in files]
        reasons = [about(Finding("no_scores_given"), attacker=name) for name in missing]
        return [*reasons, *not_tested(done), Finding("speech_needed")]


def _count(attacker: AttackerResult, what: str) -> int:
    eer = attacker.estimates.single("eer")
    return 0 if eer is None else int(eer.n.get(what, 0))


def _digest(*groups: Iterable[Path]) -> str:
    """A hash of the contents of files; empty without files."""
    known = dict.fromkeys(sha256(file) for group in groups for file in group)
    return hashlib.sha256("\n".join(known).encode()).hexdigest() if known else ""


def _input(name: str, given: ScoreFiles, attacker: AttackerResult) -> Input:
    counts = {what: _count(attacker, what) for what in ("targets", "impostors")}
    return Input(
        role=f"scores-{name}",
        kind="scores",
        path=", ".join(map(str, given.files)),
        sha256=_digest(given.files, given.keys),
        speakers=_count(attacker, "speakers"),
        utterances=0,
        details={**counts, "keys": [str(key) for key in given.keys]},
    )
