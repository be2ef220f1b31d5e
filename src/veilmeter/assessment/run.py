"""assess(): original and anonymized speech in, a complete assessment out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilmeter.assessment.conclude import DuplicateAudio, FinishedRun, build_results, find_duplicate_audio
from veilmeter.assessment.effects import Facts, effects
from veilmeter.assessment.experiment import Experiment, group_people
from veilmeter.assessment.hearing import further_hearings
from veilmeter.assessment.plan import AssessmentPlan, make_plan
from veilmeter.assessment.preflight import refuse_missing_files
from veilmeter.assessment.protocol import GivenProtocol, Protocol, lists_near, make_protocol
from veilmeter.assessment.reading import HeardRun, Reader
from veilmeter.assessment.recorded_run import LEFT_OUT, Assessment, RecordedRun, without_place
from veilmeter.assessment.scores_only import ScoreRun, has_scores
from veilmeter.assessment.settings import Settings, make_settings, who_attacks
from veilmeter.assessment.sources import folders_near, write_left_out
from veilmeter.assessment.speech import as_list, joined_corpora, refuse_mixtures
from veilmeter.assessment.tasks import Done, TaskId, TaskKind, TaskResult
from veilmeter.core.engine import Say, ShowProgress, open_engine
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.matching import Matched, match
from veilmeter.speech.reading_options import chose_channel, leaves_home

SOURCES = ("original", "anonymized", "attacker_run", "train_original", "train_anonymized", "train_similar")
UTILITY = TaskId(TaskKind.ANALYSIS, "utility")


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
    progress: ShowProgress | None = None,
    protocol: GivenProtocol | None = None,
    **options: Any,
) -> Assessment:
    """Assess an anonymizer from original and anonymized speech of the same utterances.

    Every source (`original`, `anonymized`, and as options `attacker_run`, `train_original`, `train_anonymized`,
    `train_similar`) is a path (a corpus of audio, or embeddings), a `Corpus`, an `Embeddings`, arrays as `(vectors,
    speakers)` or `(vectors, utterances, speakers)`, or a list of these. The other options are those of the command, by
    the same names. With `out`, everything is written there, and a run that was interrupted goes on where it was.
    A source that is given beside `settings` takes the place of the one they name. `protocol` says who is enrolled and
    tried where no list does. Without any speech, the scores that `attackers` are given are assessed by themselves.
    """
    if "anonymized_again" in options:
        if "attacker_run" in options:
            raise InputError("attacker_run is given twice, under two names")
        options["attacker_run"] = options.pop("anonymized_again")
    given = {"original": original, "anonymized": anonymized} | {role: options.pop(role, None) for role in SOURCES[2:]}
    if settings is None:
        named = {role: _named(source) for role, source in given.items() if source is not None}
        settings = make_settings({**named, **options})
    elif options:
        raise InputError("give settings or options, not both")
    sources = {role: given[role] if given[role] is not None else getattr(settings, role) or None for role in SOURCES}
    if settings.vpc is not None:
        raise InputError("the sets of VoicePrivacy data are assessed one by one", fix="call assess_challenge")
    alone = all(source is None for source in sources.values()) and not settings.runs_system and has_scores(settings)
    for role in ("original", "anonymized"):
        if sources[role] is None and not alone and not (role == "anonymized" and settings.runs_system):
            options_given = [f"--{name.replace('_', '-')}" for name in SOURCES if sources[name] is not None]
            options_given += [f"--{name}" for name in ("system", "command") if getattr(settings, name) is not None]
            needed = f", which {', '.join(options_given)} needs" if options_given else ""
            fix = f"give --{role} PATH, or --scores ATTACKER=FILE alone"
            raise InputError(f"there is no {role} speech{needed}", fix=fix)
    refuse_missing_files(settings)
    with closing(open_engine(jobs, cluster)) as engine, single_threaded():
        common = (settings, out, engine, say or _silent, progress or _no_progress, tuple(argv))
        run = ScoreRun(*common) if alone else SpeechRun(*common, sources=sources, given=protocol)
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


class SpeechRun(RecordedRun):
    """An assessment of speech, or of vectors of it."""

    def __init__(self, *common: Any, sources: Mapping[str, Any], given: GivenProtocol | None = None) -> None:
        super().__init__(*common)
        self.sources = sources
        self.given = given

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
            given=self.given,
        )
        reader.warnings += [*matched.warnings(), *protocol.warnings]
        heard = reader.runs(matched, protocol.enrollment)
        refuse_mixtures(reader.speech)
        case = self.case(reader, matched, protocol, heard)
        keys = self.settings.trials or (self.given.keys if self.given else tuple(lists_near(near)[1]))
        further = further_hearings(self.settings, reader, case, heard)
        plan = make_plan(case, self.settings, keys, further)
        return self.finish(reader, case, plan, {**self.perform(plan.tasks), **self.utility(reader, case)})

    def case(self, reader: Reader, matched: Matched, protocol: Protocol, heard: Sequence[HeardRun]) -> Experiment:
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
        return Experiment(
            matched=matched,
            protocol=protocol,
            training={role: speech for role, speech in reader.speech.items() if role.startswith("train_")},
            runs=tuple(heard_run.run for heard_run in heard),
            own=own,
            groups=group_people(matched.original, self.settings.by),
        )

    def utility(self, reader: Reader, case: Experiment) -> Done:
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
            return {UTILITY: (TaskResult(not_possible=str(error)), {})}
        part = with_labels(part, case.matched.original, case.matched.anonymized)
        return {UTILITY: (TaskResult(part=part), {})}

    def listen(self, reader: Reader, case: Experiment) -> DuplicateAudio | None:
        """Whether recordings of both sides are copies of each other, where there are any."""
        if all(reader.speech[role].is_audio for role in ("original", "anonymized")):
            self.stage("listening for copies")
        return find_duplicate_audio(case, reader.speech, self.engine)

    def finish(self, reader: Reader, case: Experiment, plan: AssessmentPlan, done: Done) -> Assessment:
        self.stage("drawing conclusions")
        corpora = [corpus for speech in reader.speech.values() for corpus in speech.corpora]
        facts = Facts(
            heard=frozenset(role for role, speech in reader.speech.items() if speech.is_audio),
            attackers=frozenset(
                {attacker.kind for attacker in plan.jobs if not attacker.extractor}
                | {task.name for task in done if task.kind is TaskKind.SCORES}
            ),
            used=plan.used,
            enrolled=len(case.enrolled(case.original).names),
            tuned=frozenset(name for name, own in case.own.items() if own.tuned),
            parts=frozenset(task.name for task in done if task.kind is TaskKind.ANALYSIS),
            has_channels=any(map(chose_channel, corpora)),
            leaves_home=any(map(leaves_home, corpora)),
        )
        had = effects(self.settings, facts)
        heard = self.listen(reader, case)
        outcome = FinishedRun(case, plan, done, reader.speech, tuple(reader.warnings), had, heard)
        results = build_results(outcome, self.settings, without_place(self.argv))
        left_out = sum(len(speech.left_out) for speech in reader.speech.values()) + len(case.matched.left_out)
        factor = reader.real_time_factor()
        if self.folder is not None:
            results = self.write(results, plan.jobs, done, factor)
            write_left_out(self.folder / LEFT_OUT, reader.speech, case.matched)
        return Assessment(results, self.folder, self.timings, left_out, factor)
