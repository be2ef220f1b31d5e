"""The inputs of an assessment: the speech of each role, the attackers' runs, and the vectors of further extractors.

Paths, lists and ids are checked before the first recording is read: lists take seconds, recordings may take hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.anonymizers.timings import real_time_factor
from veilmeter.assessment.attacker_runs import (
    RUNS,
    SystemRuns,
    anonymizer_facts,
    draw_in_manifest,
    enrollment_of,
    join_runs,
    split_draw,
)
from veilmeter.assessment.experiment import Experiment, OwnExtractor, match_runs
from veilmeter.assessment.settings import TRAINING, Settings
from veilmeter.assessment.speech import Speech, as_list, load, merge, read_source, read_sources
from veilmeter.assessment.tasks import EnterStage, Stage
from veilmeter.attacks.material import AttackerRun
from veilmeter.core.engine import Engine, Say, ShowProgress
from veilmeter.core.errors import InputError, refuse
from veilmeter.core.findings import Finding, file_reference, warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import Listed, Matched, find_partners, match
from veilmeter.speech.extractors.base import extractor_label

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

ATTACKER_RUN = "attacker_run"  # the role of an attacker's run; where there are several, a number follows
SIDES = ("original", "anonymized", *TRAINING)
Corpora = dict[tuple[str, str], "Corpus"]  # the recordings at a path, by role and path


@dataclass(frozen=True, eq=False)
class RunAudio:
    """An attacker's run with its recordings, where it was given as recordings."""

    run: AttackerRun
    corpora: tuple[Corpus, ...] = ()


@dataclass(eq=False)
class Reader:
    """Reads and extracts; `findings` collects what is to be known of it, `speech` what was read."""

    settings: Settings
    sources: Mapping[str, Any]
    engine: Engine
    stage: EnterStage
    say: Say
    progress: ShowProgress
    folder: Path | None = None
    findings: list[Finding] = field(default_factory=list)
    speech: dict[str, Speech] = field(default_factory=dict)
    corpora: Corpora = field(default_factory=dict)  # the recordings that lists name, before they are listened to

    # --- the sides and training speech

    def read_sides(self) -> None:
        """Both sides; the anonymized one is made where only the anonymizer was given."""
        self.stage(Stage.INPUTS)
        self.corpora = check_inputs(self.sources, self.settings, self.say)
        self.read("original", self.sources["original"])
        released = self.sources.get("anonymized")
        if released is None:
            self.stage(Stage.RELEASE)
            corpora = self._audio("original", "an anonymizer (--system, --command) is run on recordings")
            with self.progress("anonymizing the release") as progress:
                released = [self.system().release(corpus, progress) for corpus in corpora]
        speech = self.read("anonymized", released)
        if speech is not None:
            details = anonymizer_facts([corpus.root for corpus in speech.corpora], self.settings)
            self.speech["anonymized"] = replace(speech, facts=replace(speech.facts, details=details))

    def read_training(self) -> None:
        for role in TRAINING:
            self.read(role, self.sources.get(role))
        copied_here = (
            self.settings.runs_system and "train_original" in self.speech and "train_anonymized" not in self.speech
        )
        if copied_here and self.speech["train_original"].is_audio:
            self.stage(Stage.TRAINING)
            runs = []
            for number in self._numbers():
                for corpus in self.speech["train_original"].corpora:
                    with self.progress(f"training speech, run {number}") as progress:
                        runs.append(self.system().of_attacker(corpus, number, "training", progress)[0])
            self.read("train_anonymized", runs)

    def read(self, role: str, source: Any) -> Speech | None:
        if source is None:
            return None
        self.stage(Stage.READING_RUNS if _is_attacker_run(role) else Stage.READING, role.replace("_", " "))
        speech = self._load(role, source)
        if speech is not None:
            self.speech[role] = speech
        return speech

    def _load(self, role: str, source: Any) -> Speech | None:
        kind = ATTACKER_RUN if _is_attacker_run(role) else role

        def read(path: Path) -> Corpus:
            return self.corpora.get((kind, str(path))) or read_source(path, role=role, settings=self.settings)

        speech = load(source, role=role, embed=self._embedding(role), read=read)
        if speech is None:
            return None
        if self.settings.strict:
            refuse(speech.left_out)
        self.findings += speech.findings
        if self.folder is None:
            return speech
        # Paths in the run folder are relative to it: results must not depend on where it lies.
        return replace(speech, facts=replace(speech.facts, path=speech.facts.path.replace(f"{self.folder}/", "")))

    def _embedding(self, role: str) -> Callable[[Corpus], tuple[Embeddings, dict[str, Any]]]:
        """How audio of this role becomes vectors: training speech is cut into pieces, so that a speaker with one
        recording gives several."""
        settings = self.settings

        def embed(corpus: Corpus) -> tuple[Embeddings, dict[str, Any]]:
            from veilmeter.assessment.extraction import embed_segments, embed_texts, embed_whole, hears_texts

            with self.progress(f"listening to {corpus.root.name}") as progress:
                if hears_texts(settings.first_extractor):
                    originals = [heard for (kind, _), heard in self.corpora.items() if kind.endswith("original")]
                    return embed_texts(
                        corpus, settings.first_extractor, self.engine, recognizer=settings.recognizer,
                        beside=originals, offline=settings.offline, strict=settings.strict, progress=progress,
                    )  # fmt: skip
                common = {"offline": settings.offline, "progress": progress, "say": self.say}
                if role in TRAINING:
                    return embed_segments(corpus, settings.first_extractor, self.engine, settings.segments, **common)  # type: ignore[arg-type]
                return embed_whole(corpus, settings.first_extractor, self.engine, strict=settings.strict, **common)  # type: ignore[arg-type]

        return embed

    # --- the attackers' runs

    def runs(self, matched: Matched, enrollment: Sequence[str]) -> list[RunAudio]:
        """Those that were given, or made here over the enrollment recordings."""
        heard = self._make_runs(enrollment) if self.settings.runs_system else self._read_runs()
        placed = match_runs(
            matched.original,
            matched.anonymized,
            [heard_run.run for heard_run in heard],
            made_here=self.settings.runs_system,
        )
        for number, run in enumerate(placed, 1):
            if heard[number - 1].run.own and not run.own:
                self.findings.append(warning("run_is_released", run=run.name))
        return [RunAudio(run, heard_run.corpora) for run, heard_run in zip(placed, heard, strict=True)]

    def _read_runs(self) -> list[RunAudio]:
        given = as_list(self.sources.get("attacker_run"))
        released = {_absolute(source) for source in as_list(self.sources.get("anonymized"))} - {None}
        heard = []
        for number, source in enumerate(given, 1):
            place, draw = split_draw(source) if isinstance(source, str) else (source, "unknown")
            if _absolute(place) in released:
                raise InputError(
                    "the attacker's run is the released run itself", path=place, fix="give another run, or none"
                )
            role = "attacker_run" if len(given) == 1 else f"attacker_run_{number}"
            speech = self.read(role, place)
            assert speech is not None
            recorded = draw_in_manifest(place) if isinstance(place, str | Path) else "unknown"
            run = AttackerRun(
                vectors=speech.embeddings,
                draw=draw if recorded == "unknown" else recorded,  # type: ignore[arg-type]
                name=f"run {number}",
                certain=recorded != "unknown",
            )
            if run.certain and draw not in ("unknown", recorded):
                self.findings.append(
                    warning("draw_contradicts_manifest", place=file_reference(place), said=draw, recorded=recorded)
                )
            heard.append((run, speech.corpora))
        runs = join_runs([run for run, _ in heard], merge)
        if len(runs) == len(heard):
            return [RunAudio(run, corpora) for run, (_, corpora) in zip(runs, heard, strict=True)]
        return [RunAudio(run, tuple(corpus for _, corpora in heard for corpus in corpora)) for run in runs[:1]] + [
            RunAudio(run) for run in runs[1:]
        ]

    def _make_runs(self, enrollment: Sequence[str]) -> list[RunAudio]:
        wanted = set(enrollment)
        corpora = [
            part
            for corpus in self._audio("original", "an anonymizer (--system, --command) is run on recordings")
            if (part := enrollment_of(corpus, wanted)) is not None
        ]
        heard = []
        for number in self._numbers():
            self.stage(Stage.ATTACKER_RUNS, f"run {number}")
            copies, draws = [], []
            for corpus in corpora:
                with self.progress(f"attackers' run {number}") as progress:
                    copy, draw = self.system().of_attacker(corpus, number, progress=progress)
                copies.append(copy)
                draws.append(draw)
            speech = self.read(f"attacker_run_{number}", copies)
            assert speech is not None
            draw = draws[0] if len(set(draws)) == 1 else "unknown"
            run = AttackerRun(vectors=speech.embeddings, draw=draw, name=f"run {number}", certain=draw != "unknown")
            heard.append(RunAudio(run, speech.corpora))
        return heard

    def _numbers(self) -> range:
        return range(1, (self.settings.attacker_runs or RUNS) + 1)

    def system(self) -> SystemRuns:
        if self.folder is None:
            raise InputError("the runs of the anonymizer need a folder", fix="give out=FOLDER (--out)")
        return SystemRuns(self.settings, self.folder, self.engine)

    def _audio(self, role: str, why: str) -> tuple[Corpus, ...]:
        corpora = self.speech[role].corpora
        if not corpora:
            raise InputError(f"{why}, and the {role} speech is vectors", fix="give recordings, or --attacker-run")
        return corpora

    def real_time_factor(self) -> float | None:
        """The real-time factor of the release, where veilmeter made it, else of the attackers' runs."""
        roles = [role for role in self.speech if _is_attacker_run(role)]
        for chosen in (["anonymized"], roles):
            roots = {corpus.root for role in chosen for corpus in self.speech[role].corpora}
            if (factor := real_time_factor(sorted(roots))) is not None:
                return factor
        return None

    # --- extractors of attackers' own

    def own_vectors(self, base: Matched) -> dict[str, OwnExtractor]:
        """The vectors of attackers with their own extractor, by attacker, where they were given."""
        own: dict[str, OwnExtractor] = {}
        for name, options in self.settings.attackers.items():
            if not options.has_own_vectors:
                continue
            self.stage(Stage.READING, f"the vectors of the {name} attacker")
            sides = {
                side: self._load(side, getattr(options, side)) if getattr(options, side) else None
                for side in ("original", "anonymized")
            }
            original = base.original if sides["original"] is None else sides["original"].embeddings
            anonymized = base.anonymized if sides["anonymized"] is None else sides["anonymized"].embeddings
            matched = require_cover(base, match(original, anonymized), f"attackers.{name}")
            runs = [
                AttackerRun(vectors=speech.embeddings, draw=split_draw(source)[1], name=f"run {number}")
                for number, source in enumerate(options.attacker_run, 1)
                if (speech := self._load("attacker_run", split_draw(source)[0])) is not None
            ]
            placed = match_runs(matched.original, matched.anonymized, join_runs(runs, merge))
            own[name] = OwnExtractor(matched, placed)
        return own


def require_cover(base: Matched, own: Matched, whose: str) -> Matched:
    """Vectors of a further extractor, which must cover what is assessed."""
    missing = [u for u in base.original.utterances if u not in own.original.utterance_rows]
    if missing:
        raise InputError(
            f"{whose}: {len(missing)} of the {len(base)} assessed recordings have no vector of this extractor, the "
            f"first is {missing[0]!r}",
            path=own.anonymized.source or None,
            fix="give vectors of all assessed recordings",
        )
    return own


def _is_attacker_run(role: str) -> bool:
    return role.startswith(ATTACKER_RUN)


def _absolute(source: Any) -> Path | None:
    return Path(source).resolve() if isinstance(source, str | Path) else None


def further_experiments(
    settings: Settings, reader: Reader, base: Experiment, runs: Sequence[RunAudio]
) -> dict[str, Experiment]:
    """The experiment with the vectors of each extractor after the first, by the extractor's short name."""
    return {
        extractor_label(spec): _experiment_by(spec, settings, reader, base, runs) for spec in settings.extractor[1:]
    }


def _experiment_by(
    spec: str, settings: Settings, reader: Reader, base: Experiment, runs: Sequence[RunAudio]
) -> Experiment:
    """The experiment `base` with the vectors of this extractor, from the recordings that were read before."""
    roles = [role for role in SIDES if role in reader.speech]
    unheard = [role for role in roles if not reader.speech[role].corpora]
    if unheard or any(not heard.corpora for heard in runs):
        what = unheard[0].replace("_", " ") if unheard else "an attacker's run"
        raise InputError(
            f"a further extractor ({spec}) needs recordings, and {what} is vectors",
            fix="give recordings everywhere, or one extractor",
        )
    again = replace(reader, settings=replace(settings, extractor=(spec,)), findings=[], speech={})
    for role in roles:
        again.read(role, list(reader.speech[role].corpora))
    matched = require_cover(
        base.matched, match(again.speech["original"].embeddings, again.speech["anonymized"].embeddings), spec
    )
    heard = []
    for number, run in enumerate(runs, 1):
        speech = again.read(f"attacker_run_{number}", list(run.corpora))
        assert speech is not None
        heard.append(replace(run.run, vectors=speech.embeddings))
    return replace(
        base,
        matched=matched,
        training={role: again.speech[role] for role in roles if role in TRAINING},
        runs=match_runs(matched.original, matched.anonymized, heard, made_here=settings.runs_system),
        own={},
    )


if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus


def check_inputs(sources: Mapping[str, Any], settings: Settings, say: Say) -> Corpora:
    """All corpora of recordings, read from their lists; an error that reading the recordings would run into later is
    raised now."""
    from veilmeter.data.formats.vectors import is_embeddings

    for name, options in settings.attackers.items():
        own = [*options.original, *options.anonymized, *(split_draw(source)[0] for source in options.attacker_run)]
        for place in own:
            _refuse_missing(Path(place), f"attackers.{name}")
    audio: list[tuple[str, Path]] = []
    for role, given in sources.items():
        for path in _paths(role, given):
            _refuse_missing(path, role)
            if not is_embeddings(path):
                audio.append((role, path))
    corpora = read_sources(audio, settings)
    for (role, _), corpus in corpora.items():
        _report_problems(corpus, role, settings, say)
    if not corpora:
        return corpora  # vectors are read in seconds, and matched then
    sides = [_list_side(role, sources.get(role), corpora) for role in ("original", "anonymized")]
    if all(sides):
        places = ", ".join(map(str, _paths("anonymized", sources.get("anonymized"))))
        find_partners(Listed.joined(sides[0]), Listed.joined(sides[1]), places)
    return corpora


def _paths(role: str, given: Any) -> list[Path]:
    named = [source for source in as_list(given) if isinstance(source, str | Path)]
    return [Path(split_draw(str(source))[0] if role == "attacker_run" else source) for source in named]


def _refuse_missing(path: Path, role: str) -> None:
    if not path.exists():
        raise InputError(f"there is no such file or folder ({role})", path=path)


def _report_problems(corpus: Corpus, role: str, settings: Settings, say: Say) -> None:
    """Report problems of the lists, such as missing recordings, which are left out later."""
    fatal = [problem for problem in corpus.problems if problem.fatal]
    if settings.strict:
        refuse(fatal)
    if fatal:
        lines = f"{len(fatal)} recordings or lines of its lists can't be used"
        say(f"{role.replace('_', ' ')}: {lines}; the first: {fatal[0]}")


def _list_side(role: str, given: Any, corpora: Corpora) -> list[Listed]:
    """The ids and speakers of a side; none where arrays without ids are given."""
    return [listed for source in as_list(given) for listed in _list_source(role, source, corpora)]


def _list_source(role: str, source: Any, corpora: Corpora) -> Iterator[Listed]:
    from veilmeter.data.corpus import Corpus
    from veilmeter.data.embeddings import Embeddings

    if isinstance(source, str | Path):
        corpus = corpora.get((role, str(Path(source))))
        if corpus is not None:
            source = corpus
        else:
            from veilmeter.data.formats.vectors import load_embeddings

            source = load_embeddings(Path(source)).embeddings
    if isinstance(source, Corpus):
        yield Listed([u.id for u in source], [u.speaker for u in source])
    elif isinstance(source, Embeddings):
        yield Listed(list(source.utterances), list(source.speakers))


def refuse_missing_files(settings: Settings) -> None:
    """Refuse settings that name a missing file, before anything else is done."""
    named = [("enroll", settings.enroll), ("trials", settings.trials)]
    for name, options in settings.attackers.items():
        for option in ("plda", "mean", "lda", "scores", "trials"):
            value = getattr(options, option)
            files = (value,) if isinstance(value, str) else value or ()
            named.append((f"attackers.{name}: {option}", files))
    for option, files in named:
        for file in files:
            if not Path(file).is_file():
                raise InputError(f"there is no such file ({option})", path=file)
