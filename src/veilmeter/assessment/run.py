"""assess(): original and anonymized speech in, a complete assessment out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from veilmeter.assessment.case import AssessmentCase, group_people
from veilmeter.assessment.conclusions import FinishedRun, concluded
from veilmeter.assessment.effects import Facts, effects
from veilmeter.assessment.heard_copies import HeardCopies, heard_copies
from veilmeter.assessment.hearing import further_hearings
from veilmeter.assessment.plan import AssessmentPlan, make_plan
from veilmeter.assessment.protocol import Protocol, lists_near, make_protocol
from veilmeter.assessment.reading import HeardRun, Reader, Say, Shown
from veilmeter.assessment.settings import Settings, make_settings, refuse_missing_files, who_attacks
from veilmeter.assessment.sources import chose_channel, folders_near, write_left_out
from veilmeter.assessment.speech import as_list, joined_corpora, refuse_mixtures
from veilmeter.assessment.stages import Stages
from veilmeter.assessment.tables import write_tables
from veilmeter.assessment.tasks import Arrays, Task, TaskResult, perform
from veilmeter.core.engine import Engine, open_engine
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import make_folder, only_one, remove_leftovers, write_json
from veilmeter.data.matching import Matched, match
from veilmeter.results.model import Results
from veilmeter.results.run_folder import RESULTS, read_results, write_results

SOURCES = ("original", "anonymized", "attacker_run", "train_original", "train_anonymized", "train_similar")
LEFT_OUT = "left_out.jsonl"


@dataclass(frozen=True, eq=False)
class Assessment:
    """`results` are what was found; `folder` is where they were written, if anywhere; `left_out` how many recordings
    were given and could not be assessed. `timings` are the seconds of each stage and `real_time_factor` the processor
    seconds for a second of speech, where veilmeter ran the anonymizer; both differ between runs, results do not."""

    results: Results
    folder: Path | None = None
    timings: dict[str, float] = field(default_factory=dict)
    left_out: int = 0
    real_time_factor: float | None = None

    @property
    def trustworthy(self) -> bool:
        return self.results.verdict.trustworthy

    @property
    def headline(self) -> str:
        return self.results.verdict.headline

    def __repr__(self) -> str:
        doubt = "" if self.trustworthy else "not trustworthy: "
        return f"Assessment({doubt}{self.headline})"

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


def assess(
    original: Any = None,
    anonymized: Any = None,
    *,
    out: str | Path | None = None,
    settings: Settings | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    argv: Sequence[str] = (),
    say: Say | None = None,
    progress: Shown | None = None,
    **options: Any,
) -> Assessment:
    """Assess an anonymizer from original and anonymized speech of the same utterances.

    Every source (`original`, `anonymized`, and as options `attacker_run`, `train_original`, `train_anonymized`,
    `train_similar`) is a path (a corpus of audio, or embeddings), a `Corpus`, an `Embeddings`, arrays as `(vectors,
    speakers)` or `(vectors, utterances, speakers)`, or a list of these. The other options are those of the command, by
    the same names. With `out`, everything is written there, and a run that was interrupted goes on where it was.
    """
    if "anonymized_again" in options:
        options["attacker_run"] = options.pop("anonymized_again")
    given = {"original": original, "anonymized": anonymized} | {role: options.pop(role, None) for role in SOURCES[2:]}
    if settings is None:
        named = {role: _named(source) for role, source in given.items() if source is not None}
        settings = make_settings({**named, **options})
    elif options:
        raise InputError("give settings or options, not both")
    sources = {role: given[role] if given[role] is not None else getattr(settings, role) or None for role in SOURCES}
    for role in ("original", "anonymized"):
        if sources[role] is None and not (role == "anonymized" and settings.runs_system):
            raise InputError(f"there is no {role} speech", fix=f"give --{role} PATH")
    refuse_missing_files(settings)
    with closing(open_engine(jobs, cluster)) as engine, single_threaded():
        run = _AssessmentRun(settings, sources, out, engine, say or _silent, progress or _no_progress, tuple(argv))
        return run.go()


def _silent(text: str) -> None:
    pass


def _no_progress(title: str) -> AbstractContextManager[None]:
    return nullcontext()


def _named(source: Any) -> list[str]:
    return [
        str(item)
        if isinstance(item, str | Path)
        else str(getattr(item, "source", "") or getattr(item, "root", "") or "given")
        for item in as_list(source)
    ]


def single_threaded() -> Any:
    """Linear algebra in one thread: how a product is cut up among threads changes its last digits."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(1)


class _AssessmentRun:
    """One assessment, stage by stage."""

    def __init__(
        self,
        settings: Settings,
        sources: Mapping[str, Any],
        out: str | Path | None,
        engine: Engine,
        say: Say,
        progress: Shown,
        argv: tuple[str, ...],
    ) -> None:
        self.settings = settings
        self.sources = sources
        self.folder = None if out is None else make_folder(out)
        self.engine = engine
        self.argv = argv
        self._say = say
        self._progress = progress
        self.stages = Stages(None if self.folder is None else self.folder / "stages")
        self.timings: dict[str, float] = {}
        self.started = time.monotonic()
        self._last = ""

    def stage(self, name: str) -> None:
        now = time.monotonic()
        if self._last:
            before = self.timings.get(self._last, 0.0)
            self.timings[self._last] = round(before + now - self.started - sum(self.timings.values()), 3)
        self._last = name
        self._say(name)

    def go(self) -> Assessment:
        if self.folder is None:
            return self.assessed()
        with only_one(self.folder / ".lock", self.folder):
            refuse_late_threshold(self.folder, self.settings.threshold)
            for folder in (self.folder, make_folder(self.folder / "stages"), self.folder / "tables"):
                remove_leftovers(folder)
            return self.assessed()

    def assessed(self) -> Assessment:
        if who := who_attacks(self.settings):
            self._say(who)
        reader = Reader(self.settings, self.sources, self.engine, self.stage, self._say, self._progress, self.folder)
        reader.read_sides()
        reader.read_training()
        refuse_mixtures(reader.speech)
        matched = match(reader.speech["original"].embeddings, reader.speech["anonymized"].embeddings)
        if self.settings.strict and matched.left_out:
            raise InputError(
                "; ".join(matched.warnings()), fix="give both sides of every recording, or leave out --strict"
            )
        self.stage("choosing enrollment and trials")
        near = folders_near(self.sources["original"], self.settings)
        protocol = make_protocol(
            matched.original,
            enroll=self.settings.enroll,
            trials=self.settings.trials,
            found_near=near,
            seed=self.settings.seed,
        )
        reader.warnings += [*matched.warnings(), *protocol.warnings]
        heard = reader.runs(matched, protocol.enrollment)
        refuse_mixtures(reader.speech)
        case = self.case(reader, matched, protocol, heard)
        keys = self.settings.trials or tuple(lists_near(near)[1])
        further = further_hearings(self.settings, reader, case, heard)
        plan = make_plan(case, self.settings, keys, further)
        return self.finish(reader, case, plan, {**self.perform(plan.tasks), **self.utility(reader, case)})

    def case(self, reader: Reader, matched: Matched, protocol: Protocol, heard: Sequence[HeardRun]) -> AssessmentCase:
        from veilmeter.assessment.tuning import to_be_tuned, tuned_extractor

        own = reader.own_vectors(matched)
        for name in to_be_tuned(self.settings):
            self.stage(f"fine-tuning the extractor of the {name} attacker")
            folder = None if self.folder is None else self.folder / "finetuned" / name
            with self._progress(f"fine-tuning for the {name} attacker") as progress:
                own[name] = tuned_extractor(
                    name,
                    reader.speech,
                    matched,
                    heard,
                    protocol.enrollment,
                    self.settings,
                    folder,
                    self.engine,
                    progress,
                )
        return AssessmentCase(
            matched=matched,
            protocol=protocol,
            training={role: speech for role, speech in reader.speech.items() if role.startswith("train_")},
            runs=tuple(heard_run.run for heard_run in heard),
            own=own,
            groups=group_people(matched.original, self.settings.by),
        )

    def perform(self, tasks: Sequence[Task]) -> dict[str, tuple[TaskResult, Arrays]]:
        """Do every task that is not kept from an earlier run; wherever the engine runs them."""
        done: dict[str, tuple[TaskResult, Arrays]] = {}
        for task in tasks:
            kept = self.stages.get(task.name, task.key)
            if kept is not None:
                done[task.name] = kept
        left = [task for task in tasks if task.name not in done]
        if done:
            self._say(f"{len(done)} of {len(tasks)} parts are kept from an earlier run")
        if left:
            self.stage(f"measuring {len(left)} parts: {', '.join(task.name for task in left)}")
        for number, (measured, arrays) in self.engine.run(perform, left):
            task = left[number]
            done[task.name] = (self.stages.put(task.name, task.key, measured, arrays), arrays)
            self._say(f"measured: {task.name} ({len(done)} of {len(tasks)})")
        return {task.name: done[task.name] for task in tasks}  # in one order, wherever they ran

    def utility(self, reader: Reader, case: AssessmentCase) -> dict[str, tuple[TaskResult, Arrays]]:
        """What the speech is still good for, where there are recordings of both sides."""
        sides = [reader.speech[role].corpora for role in ("original", "anonymized")]
        if not self.settings.wants("utility") or not all(sides):
            return {}
        from veilmeter.assessment.utility import UtilitySettings, measure_utility, with_labels

        self.stage("listening for what the speech is still good for")
        chosen = UtilitySettings(
            recordings=self.settings.utility_recordings,
            rated=self.settings.utility_rated,
            groups=self.settings.by or UtilitySettings().groups,
            offline=self.settings.offline,
        )
        if self.settings.recognizer is not None:
            chosen = replace(chosen, recognizer=self.settings.recognizer)
        original, anonymized = map(joined_corpora, sides)
        try:
            with self._progress("what the speech is still good for") as progress:
                part = measure_utility(
                    original, anonymized, chosen, engine=self.engine, say=self._say, progress=progress
                )
        except VeilmeterError as error:
            if self.settings.recognizer is not None:
                raise
            return {"utility": (TaskResult(not_possible=str(error)), {})}
        part = with_labels(part, case.matched.original, case.matched.anonymized)
        return {"utility": (TaskResult(part=part), {})}

    def listen(self, reader: Reader, case: AssessmentCase) -> HeardCopies | None:
        """Whether recordings of both sides are copies of each other, where there are any."""
        if all(reader.speech[role].is_audio for role in ("original", "anonymized")):
            self.stage("listening for copies")
        return heard_copies(case, reader.speech, self.engine)

    def finish(
        self, reader: Reader, case: AssessmentCase, plan: AssessmentPlan, done: Mapping[str, tuple[TaskResult, Arrays]]
    ) -> Assessment:
        self.stage("drawing conclusions")
        facts = Facts(
            heard=frozenset(role for role, speech in reader.speech.items() if speech.is_audio),
            attackers=frozenset(plan.jobs) | {name for name in self.settings.attackers if f"scores-{name}" in done},
            used=plan.used,
            enrolled=len(case.original.of_utterances(case.protocol.enrollment).names),
            tuned=frozenset(name for name, own in case.own.items() if own.tuned),
            parts=frozenset(done),
            has_channels=any(chose_channel(corpus) for speech in reader.speech.values() for corpus in speech.corpora),
        )
        had = effects(self.settings, facts)
        heard = self.listen(reader, case)
        outcome = FinishedRun(case, plan, done, reader.speech, tuple(reader.warnings), had, heard)
        results = concluded(outcome, self.settings, without_place(self.argv))
        left_out = sum(len(speech.left_out) for speech in reader.speech.values()) + len(case.matched.left_out)
        factor = reader.real_time_factor()
        if self.folder is not None:
            results = self.write(results, plan, done, factor)
            write_left_out(self.folder / LEFT_OUT, reader.speech, case.matched)
        return Assessment(results, self.folder, self.timings, left_out, factor)

    def write(
        self,
        results: Results,
        plan: AssessmentPlan,
        done: Mapping[str, tuple[TaskResult, Arrays]],
        factor: float | None,
    ) -> Results:
        """The tables, the results, and how long it took. The folder is this run's: what an earlier one wrote goes."""
        assert self.folder is not None
        written = write_tables(self.folder / "tables", results, plan.jobs, done)
        for file in (self.folder / "tables").glob("*.parquet"):
            if file.name not in written:
                file.unlink()
        (self.folder / "report.html").unlink(missing_ok=True)
        results = write_results(self.folder, results)
        self.stage("done")
        write_json(
            self.folder / "timings.json",
            {
                "seconds": self.timings,
                "total": round(time.monotonic() - self.started, 3),
                "real_time_factor": factor,
                "command": self.argv,
                "workers": self.engine.workers,
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            },
        )
        return results


def refuse_late_threshold(folder: Path, threshold: float | None) -> None:
    """A limit stands in the settings of a run because it was chosen before its results were known."""
    if threshold is None or not (folder / RESULTS).is_file():
        return
    before = None
    with suppress(InputError):
        before = read_results(folder).settings.get("threshold")
    if before != threshold:
        raise InputError(
            f"this folder holds results already, and not with the limit {threshold:g}: it was not chosen beforehand",
            path=folder / RESULTS,
            fix=f"name it in the report (`report RUN --threshold {threshold:g}`), or assess into a new folder",
        )


# Options of the command that say where it runs and what it prints. Results must not depend on them, to the byte.
PLACE = {"--out": 1, "--jobs": 1, "--cluster": 1, "--quiet": 0, "--json": 0, "--no-report": 0}


def without_place(command: Sequence[str]) -> tuple[str, ...]:
    """The command without what can't change a result.

    >>> without_place(["veilmeter", "assess", "a.toml", "--jobs", "4", "--out=run", "--seed", "1", "--quiet"])
    ('veilmeter', 'assess', 'a.toml', '--seed', '1')
    """
    kept: list[str] = []
    words = iter(command)
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in PLACE:
            kept.append(word)
        elif PLACE[name] and not equals:
            next(words, None)
    return tuple(kept)
