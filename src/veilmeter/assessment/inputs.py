"""The inputs of an assessment: the speech of each role, and the runs that attackers make of the anonymizer.

A run that veilmeter makes for the attackers has its own seeds and, where the system can, a new draw for every
utterance. It lies in the folder of the assessment, apart from what was released, and an interrupted one is continued.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.anonymizers.anonymize_corpus import (
    Anonymized,
    anonymize_corpus,
    manifest_path,
    own_seeds,
    run_again,
    turns,
)
from veilmeter.anonymizers.base import Anonymizer, Draw, choices_of, load_anonymizer, parse_options
from veilmeter.anonymizers.manifest import Entry, TimedEngine, read_manifest, real_time_factor
from veilmeter.assessment.attacker_settings import AttackerSettings
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.speech import (
    Corpora,
    Speech,
    SpeechPart,
    as_list,
    check_inputs,
    join_parts,
    merge,
    open_source,
    split_draw,
)
from veilmeter.assessment.stages import Stage, StageLog
from veilmeter.attacks.material import AttackerRun, DrawLevel
from veilmeter.core.engine import Engine, Progress
from veilmeter.core.errors import InputError, Problem, refuse
from veilmeter.core.files import real_path
from veilmeter.core.findings import Finding, file_reference, warning
from veilmeter.data.corpus import FURTHER, SpeechRole
from veilmeter.data.embeddings import DRAW_COLUMNS, Embeddings, draw_names
from veilmeter.data.layouts import locate
from veilmeter.data.matching import Matched, match
from veilmeter.metrics.vector_checks import find_unchanged

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

RUNS = 2  # by default; the second brings most of what more of them bring
FOLDER = "attacker_runs"
RELEASE = "release"
NEEDS_RECORDINGS = "an anonymizer (--system, --command) is run on recordings"


@dataclass(frozen=True, eq=False)
class RunAudio:
    """An attacker's run with its recordings, where it was given as recordings."""

    run: AttackerRun
    corpora: tuple[Corpus, ...] = ()


@dataclass(frozen=True, eq=False)
class OwnVectors:
    """The vectors of an attacker's own extractor, as far as they were given."""

    original: Embeddings | None
    anonymized: Embeddings | None
    runs: tuple[AttackerRun, ...]


@dataclass(eq=False)
class InputReader:
    """Reads speech and extracts its vectors. `speech` holds both sides and the training speech, `run_speech` the
    attackers' runs, `findings` what a reader of the results must know about them."""

    settings: Settings
    sources: Mapping[SpeechRole, Any]
    engine: Engine
    log: StageLog
    folder: Path | None = None
    findings: list[Finding] = field(default_factory=list)
    speech: dict[SpeechRole, Speech] = field(default_factory=dict)
    run_speech: list[Speech] = field(default_factory=list)
    extracted: tuple[float, int] = (0.0, 0)  # processor seconds, and recordings whose vectors were made for them
    corpora: Corpora = field(default_factory=dict)  # the recordings that lists name, before any is read

    @property
    def all_speech(self) -> tuple[Speech, ...]:
        return (*self.speech.values(), *self.run_speech)

    # --- the sides and training speech

    def check(self) -> None:
        """Read the lists of recordings, and refuse what would fail later."""
        self.log.stage(Stage.INPUTS)
        if self.settings.runs_system:
            load_system(self.settings)  # refuses a system or an option that does not exist
        self.corpora = check_inputs(self.sources, self.settings, self.log.say)

    def read_sides(self) -> None:
        """Both sides; the anonymized one is made where only the anonymizer was given."""
        self._keep(self.read(SpeechRole.ORIGINAL, self.sources[SpeechRole.ORIGINAL]))
        released = self.sources.get(SpeechRole.ANONYMIZED)
        if released is None:
            self.log.stage(Stage.RELEASE)
            with self.log.progress() as progress:
                released = [self._system().release(corpus, progress) for corpus in self._original_recordings()]
        speech = self.read(SpeechRole.ANONYMIZED, released)
        if speech is not None:
            details = {
                **speech.facts.details,
                **anonymizer_facts([corpus.root for corpus in speech.corpora], self.settings),
            }
            self._keep(replace(speech, facts=replace(speech.facts, details=details)))
        self._read_distractors(made_here=self.sources.get(SpeechRole.ANONYMIZED) is None)

    def _read_distractors(self, *, made_here: bool) -> None:
        """Both sides of the people who are enrolled and never tried."""
        given = {role: self.sources.get(role) for role in FURTHER.values()}
        missing = [role for role, source in given.items() if source is None]
        if len(missing) == len(given):
            return
        if missing and not (made_here and missing == [SpeechRole.DISTRACTORS]):
            options = {role: f"--{role.replace('_', '-')}" for role in given}
            there = next(options[role] for role in given if role not in missing)
            raise InputError(
                f"{there} is one side of the distractors: some attackers enroll original speech, others anonymized",
                fix=f"give {options[missing[0]]} too",
            )
        self._keep(self.read(SpeechRole.DISTRACTORS_ORIGINAL, given[SpeechRole.DISTRACTORS_ORIGINAL]))
        released = given[SpeechRole.DISTRACTORS]
        if released is None:
            self.log.stage(Stage.RELEASE, "distractors")
            with self.log.progress() as progress:
                corpora = self.speech[SpeechRole.DISTRACTORS_ORIGINAL].corpora
                released = [self._system().release(corpus, progress) for corpus in corpora]
        self._keep(self.read(SpeechRole.DISTRACTORS, released))

    def read_training(self) -> None:
        """Training speech; the anonymized one is made where only the original one and the anonymizer were given."""
        for role in SpeechRole:
            if role.is_training:
                self._keep(self.read(role, self.sources.get(role)))
        clear = self.speech.get(SpeechRole.TRAIN_ORIGINAL)
        is_copied_here = self.settings.runs_system and SpeechRole.TRAIN_ANONYMIZED not in self.speech
        if is_copied_here and clear is not None and clear.is_audio:
            self.log.stage(Stage.TRAINING)
            runs = []
            for number in self._run_numbers():
                for corpus in clear.corpora:
                    with self.log.progress() as progress:
                        runs.append(self._system().of_attacker(corpus, number, "training", progress)[0])
            self._keep(self.read(SpeechRole.TRAIN_ANONYMIZED, runs))

    def _keep(self, speech: Speech | None) -> None:
        if speech is not None:
            self.speech[speech.role] = speech
            self.findings += speech.findings

    def read(self, role: SpeechRole, source: Any, *, name: str = "", extractor: str = "") -> Speech | None:
        """The speech of a role, shown as a stage. `name` tells inputs of one role apart; `extractor` is the first one
        unless another is named."""
        if source is None:
            return None
        is_run = role is SpeechRole.ATTACKER_RUN
        self.log.stage(Stage.READING_RUNS if is_run else Stage.READING, (name or role).replace("_", " "))
        return self._load(role, source, name=name, extractor=extractor)

    def _load(self, role: SpeechRole, source: Any, *, name: str = "", extractor: str = "") -> Speech | None:
        parts = []
        for item in as_list(source):
            for opened in open_source(item, role, name or role, self.settings, self.corpora):
                part = opened
                if opened.corpus is not None:
                    part = self._extract(opened, opened.corpus, role, extractor or self.settings.first_extractor)
                parts.append(part)
        if not parts:
            return None
        speech = join_parts(role, name or str(role), parts)
        if self.settings.strict:
            refuse(speech.left_out)
        if self.folder is None:
            return speech
        # Paths in the run folder are relative to it: results must not depend on where it lies.
        return replace(speech, facts=replace(speech.facts, path=speech.facts.path.replace(f"{self.folder}/", "")))

    def _extract(self, part: SpeechPart, corpus: Corpus, role: SpeechRole, extractor: str) -> SpeechPart:
        """The vectors of recordings. Training speech is cut into pieces, so that a speaker with one recording has
        several vectors."""
        from veilmeter.assessment.extraction import embed_segments, embed_texts, embed_whole, is_of_words

        settings, say = self.settings, self.log.say
        offline, strict = settings.offline, settings.strict
        timed = TimedEngine(self.engine)
        with self.log.progress() as progress:
            if is_of_words(extractor):
                originals = [beside for (other, _), beside in self.corpora.items() if other.is_original]
                embeddings, facts = embed_texts(
                    corpus, extractor, self.engine, recognizer=settings.recognizer, language=settings.language,
                    beside=originals, offline=offline, strict=strict, progress=progress,
                )  # fmt: skip
            elif role.is_training:
                embeddings, facts = embed_segments(
                    corpus, extractor, self.engine, settings.segments, offline=offline, progress=progress, say=say
                )
            else:
                embeddings, facts = embed_whole(
                    corpus, extractor, timed, offline=offline, strict=strict, progress=progress, say=say
                )
        if not role.is_original:
            embeddings = with_recorded_draws(embeddings, corpus.root)
        problems, computed = tuple(facts.pop("problems")), int(facts.pop("computed", 0))
        if computed:  # kept vectors cost nothing here, but an attacker has to extract them
            self.extracted = (self.extracted[0] + timed.seconds, self.extracted[1] + computed)
        return replace(part, embeddings=embeddings, extractor=facts, problems=problems)

    # --- the attackers' runs

    def read_runs(self, matched: Matched, enrollment: Sequence[str]) -> list[RunAudio]:
        """The attackers' runs: those that were given, or made here over the enrollment recordings."""
        runs = self._make_runs(enrollment) if self.settings.runs_system else self._read_given_runs()
        placed = match_runs(
            matched.original, matched.anonymized, [run.run for run in runs], made_here=self.settings.runs_system
        )
        for run, other in zip(runs, placed, strict=True):
            if run.run.own and not other.own:
                self.findings.append(warning("run_is_released", run=other.name))
        return [replace(run, run=other) for run, other in zip(runs, placed, strict=True)]

    def _read_run(self, source: Any, name: str) -> Speech:
        speech = self.read(SpeechRole.ATTACKER_RUN, source, name=name)
        assert speech is not None
        self.run_speech.append(speech)
        self.findings += speech.findings
        return speech

    def _read_given_runs(self) -> list[RunAudio]:
        given = as_list(self.sources.get(SpeechRole.ATTACKER_RUN))
        released = {_absolute(source) for source in as_list(self.sources.get(SpeechRole.ANONYMIZED))} - {None}
        runs: list[RunAudio] = []
        for number, source in enumerate(given, 1):
            place, draw = split_draw(source) if isinstance(source, str) else (source, "unknown")
            if _absolute(place) in released:
                raise InputError(
                    "the attacker's run is the released run itself", path=place, fix="give another run, or none"
                )
            speech = self._read_run(place, "" if len(given) == 1 else run_name(number))
            recorded = draw_in_manifest(place) if isinstance(place, str | Path) else "unknown"
            certain = recorded != "unknown"
            if certain and draw not in ("unknown", recorded):
                self.findings.append(
                    warning("draw_contradicts_manifest", place=file_reference(place), said=draw, recorded=recorded)
                )
            level: DrawLevel = recorded if certain else draw  # type: ignore[assignment]
            runs += [
                RunAudio(AttackerRun(vectors=part, draw=level, name=f"run {number}", certain=certain), speech.corpora)
                for part in speech.parts
            ]
        joined = join_runs([run.run for run in runs])
        if len(joined) == len(runs):
            return [replace(audio, run=run) for audio, run in zip(runs, joined, strict=True)]
        corpora = tuple(corpus for run in runs for corpus in run.corpora)
        return [RunAudio(run, corpora if number == 0 else ()) for number, run in enumerate(joined)]

    def _make_runs(self, enrollment: Sequence[str]) -> list[RunAudio]:
        wanted = set(enrollment)
        corpora = [
            part for corpus in self._original_recordings() if (part := enrollment_of(corpus, wanted)) is not None
        ]
        choices = choices_of(load_system(self.settings))
        every: Sequence[Mapping[str, int] | None] = [None for _ in self._run_numbers()]
        if choices:
            every = turns(corpora, choices, len(every))
        runs = []
        for number, wanted_draws in enumerate(every, 1):
            self.log.stage(Stage.ATTACKER_RUNS, f"run {number}")
            copies, draws = [], []
            for corpus in corpora:
                part = corpus if wanted_draws is None else enrollment_of(corpus, wanted_draws)
                if part is None:
                    continue
                with self.log.progress() as progress:
                    copy, draw = self._system().of_attacker(part, number, progress=progress, draws=wanted_draws)
                copies.append(copy)
                draws.append(draw)
            speech = self._read_run(copies, run_name(number))
            draw = draws[0] if len(set(draws)) == 1 else "unknown"
            run = AttackerRun(
                vectors=speech.embeddings,
                draw=draw,
                name=f"run {number}",
                certain=draw != "unknown",
                choices=choices,
            )
            runs.append(RunAudio(run, speech.corpora))
        return runs

    def _run_numbers(self) -> range:
        return range(1, (self.settings.system_runs or RUNS) + 1)

    def _system(self) -> SystemRuns:
        if self.folder is None:
            raise InputError("the runs of the anonymizer need a folder", fix="give out=FOLDER (--out)")
        return SystemRuns(self.settings, self.folder, self.engine)

    def _original_recordings(self) -> tuple[Corpus, ...]:
        corpora = self.speech[SpeechRole.ORIGINAL].corpora
        if SpeechRole.DISTRACTORS_ORIGINAL in self.speech:
            corpora += self.speech[SpeechRole.DISTRACTORS_ORIGINAL].corpora
        if not corpora:
            raise InputError(
                f"{NEEDS_RECORDINGS}, and the original speech is vectors", fix="give recordings, or --attacker-run"
            )
        return corpora

    def real_time_factor(self) -> float | None:
        """The real-time factor of the release, where veilmeter made it, else of the attackers' runs."""
        for made in ([self.speech[SpeechRole.ANONYMIZED]], self.run_speech):
            roots = {corpus.root for speech in made for corpus in speech.corpora}
            if (factor := real_time_factor(sorted(roots))) is not None:
                return factor
        return None

    # --- attackers with their own extractor

    def read_own_vectors(self, attacker: str, options: AttackerSettings) -> OwnVectors:
        """The vectors that an attacker's table names."""
        self.log.stage(Stage.READING, f"the vectors of the {attacker} attacker")
        original = self._load_vectors(SpeechRole.ORIGINAL, options.original or None)
        anonymized = self._load_vectors(SpeechRole.ANONYMIZED, options.anonymized or None)
        runs = []
        for number, source in enumerate(options.attacker_run, 1):
            place, draw = split_draw(source)
            if (speech := self._load_findings(SpeechRole.ATTACKER_RUN, place)) is not None:
                runs += [AttackerRun(vectors=part, draw=draw, name=f"run {number}") for part in speech.parts]
        return OwnVectors(original, anonymized, tuple(join_runs(runs)))

    def _load_vectors(self, role: SpeechRole, source: Any) -> Embeddings | None:
        speech = self._load_findings(role, source)
        return None if speech is None else speech.embeddings

    def _load_findings(self, role: SpeechRole, source: Any) -> Speech | None:
        speech = self._load(role, source)
        if speech is not None:
            self.findings += speech.findings
        return speech


def run_name(number: int) -> str:
    """The name of an attacker's run among the inputs."""
    return f"{SpeechRole.ATTACKER_RUN}_{number}"


def _absolute(source: Any) -> Path | None:
    return real_path(source) if isinstance(source, str | Path) else None


def match_runs(
    original: Embeddings, released: Embeddings, runs: Sequence[AttackerRun], *, made_here: bool = False
) -> tuple[AttackerRun, ...]:
    """The runs by the ids and speakers of the originals. One that equals the released run is taken for that run, unless
    it was made here: then the anonymizer draws nothing at random. One that is the original speech is refused."""
    placed = []
    for run in runs:
        matched = match(original, run.vectors, second=f"the attacker's {run.name or 'run'}")
        vectors = matched.anonymized
        unchanged = _share_unchanged(matched.original, vectors)
        if unchanged > 0.5 >= _share_unchanged(original, released):
            raise _not_anonymized(run, unchanged, made_here=made_here)
        common = [u for u in vectors.utterances if u in released.utterance_rows]
        same = bool(common) and np.array_equal(
            vectors.of_utterances(common).vectors, released.of_utterances(common).vectors
        )
        placed.append(replace(run, vectors=vectors, own=run.own and (made_here or not same), made_here=made_here))
    return tuple(placed)


def _not_anonymized(run: AttackerRun, unchanged: float, *, made_here: bool) -> InputError:
    name = f"the attacker's {run.name or 'run'}"
    fix = "give a run of the anonymizer over these recordings, or none"
    if made_here:
        fix = "give --system or --command the anonymizer that made the release, or leave them out"
    return InputError(
        f"{name} is original speech: nothing in it was anonymized"
        if unchanged == 1
        else f"{unchanged:.0%} of the recordings in {name} are original speech",
        path=run.vectors.source or None,
        fix=fix,
    )


def _share_unchanged(original: Embeddings, copies: Embeddings) -> float:
    same = find_unchanged(original, copies)
    return 0.0 if same is None else float(same.mean())


def join_runs(runs: Sequence[AttackerRun]) -> list[AttackerRun]:
    """Sources without a common utterance, and with draws alike, are parts of one run."""
    kept: list[AttackerRun] = []
    for run in runs:
        ids = set(run.vectors.utterances)
        for number, other in enumerate(kept):
            if (other.draw, other.certain) == (run.draw, run.certain) and not ids & set(other.vectors.utterances):
                kept[number] = replace(other, vectors=merge([other.vectors, run.vectors]))
                break
        else:
            kept.append(run)
    return [replace(run, name=f"run {number}") for number, run in enumerate(kept, 1)]


def with_recorded_draws(vectors: Embeddings, folder: Path) -> Embeddings:
    """With a column `draw` of what the manifest beside a folder of copies says, where it names draws of a finite
    set."""
    place = manifest_path(folder)
    if not place.is_file() or draw_names(vectors) is not None:
        return vectors
    with suppress(InputError):
        draws = {name: entry.named_draw for name, entry in read_manifest(place).items()}
        column = [draws.get(str(utterance), "") for utterance in vectors.utterances]
        if any(column):
            return vectors.with_attributes({**vectors.attributes, DRAW_COLUMNS[0]: column})
    return vectors


def draw_in_manifest(folder: str | Path) -> DrawLevel:
    """What one draw covers by the manifest beside a folder that veilmeter anonymized; unknown without one."""
    place = manifest_path(folder)
    try:
        levels = {entry.draw for entry in read_manifest(place).values()} if place.is_file() else set()
    except InputError:
        return "unknown"
    return _level(Draw(levels.pop())) if len(levels) == 1 else "unknown"


def anonymizer_facts(folders: Sequence[Path], settings: Settings) -> dict[str, Any]:
    """The anonymizer of a release for results.json: its name, its version, and the parameters that are the same for
    every recording. From the manifests beside the folders, else from the settings; empty where neither knows."""
    entries: list[Entry] = []
    for place in map(manifest_path, folders):
        with suppress(InputError):
            entries += read_manifest(place).values() if place.is_file() else ()
    made_by = {(entry.system, entry.version) for entry in entries}
    if len(made_by) == 1:
        name, version = made_by.pop()
        shared = {
            key: value
            for key, value in entries[0].parameters.items()
            if isinstance(value, bool | int | float | str)
            and all(entry.parameters.get(key) == value for entry in entries)
        }
        known = name.rpartition(":")[2]  # a function of one's own file has the name of its module before its own
        return {"anonymizer": known, "anonymizer_version": version, "anonymizer_parameters": shared}
    if settings.system is not None:
        return {"anonymizer": settings.system, "anonymizer_parameters": parse_options(settings.option)}
    return {}


def _level(draw: Draw) -> DrawLevel:
    """Where nothing is drawn, no two recordings share a draw."""
    if draw in (Draw.NONE, Draw.UTTERANCE):
        return "utterance"
    return "speaker" if draw == Draw.SPEAKER else "unknown"


def system_options(settings: Settings) -> dict[str, Any]:
    """The options that the anonymizer is given."""
    options = parse_options(settings.option)
    if settings.command is not None:
        options["command"] = settings.command
    return options


def load_system(settings: Settings) -> Anonymizer:
    """The anonymizer that makes the release, with the seed of the assessment."""
    options = {**system_options(settings), "seed": settings.seed, "offline": settings.offline}
    return load_anonymizer(settings.anonymizer, options)


@dataclass(frozen=True, eq=False)
class SystemRuns:
    """The anonymizer that is run here, for the release and for the attackers."""

    settings: Settings
    folder: Path
    engine: Engine

    def release(self, corpus: Corpus, progress: Progress | None = None) -> Corpus:
        """The released run, where none was given: as the system is by default, with the seed of the assessment."""
        out = release_folder(self.folder, corpus)
        anonymizer = load_system(self.settings)
        done = anonymize_corpus(corpus, out, anonymizer, engine=self.engine, overwrite=True, progress=progress)
        return corpus_of_copies(corpus, done)

    def of_attacker(
        self,
        corpus: Corpus,
        number: int,
        role: str = "run",
        progress: Progress | None = None,
        draws: Mapping[str, int] | None = None,
    ) -> tuple[Corpus, DrawLevel]:
        """One of the attackers' runs, and the scope of one draw in it; `draws` are those of a finite set."""
        done = run_again(
            corpus,
            self.folder / FOLDER / f"{role}-{number}" / corpus.root.name,
            self.settings.anonymizer,
            system_options(self.settings),
            seed=own_seeds(self.settings.seed, number)[-1],
            engine=self.engine,
            offline=self.settings.offline,
            progress=progress,
            draws=draws,
        )
        return corpus_of_copies(corpus, done), _level(done.draw)


def release_folder(run: Path, corpus: Corpus) -> Path:
    return run / RELEASE / corpus.root.name


def read_release(corpus: Corpus, run: Path) -> Corpus:
    """The release of this corpus in the folder `run`, where the assessment ran the anonymizer itself."""
    out = release_folder(run, corpus)
    place = manifest_path(out)
    if not place.is_file():
        raise InputError("the release that was made here no longer exists", path=out, fix="run `assess` again")
    outputs = {}
    for entry in read_manifest(place).values():
        path = None if entry.output is None else locate(entry.output, out, absolute=False)
        if isinstance(path, Path):
            outputs[entry.utterance] = path
    return _copies(corpus, out, outputs)


def corpus_of_copies(corpus: Corpus, done: Anonymized) -> Corpus:
    """The corpus of what came of a run."""
    outputs = {entry.utterance: done.out / entry.output for entry in done.entries if entry.output is not None}
    return _copies(corpus, done.out, outputs, done.failed)


def _copies(corpus: Corpus, out: Path, outputs: Mapping[str, Path], problems: tuple[Problem, ...] = ()) -> Corpus:
    utterances = tuple(u.copy_to(outputs[u.id]) for u in corpus.utterances if u.id in outputs)
    return replace(corpus, root=out, utterances=utterances, problems=problems)


def enrollment_of(corpus: Corpus, wanted: Container[str]) -> Corpus | None:
    """Only these recordings of a corpus; None where it has none of them."""
    kept = tuple(utterance for utterance in corpus.utterances if utterance.id in wanted)
    return replace(corpus, utterances=kept, problems=()) if kept else None
