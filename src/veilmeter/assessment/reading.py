"""Reads what an assessment is given: each role's speech, the attackers' runs, and vectors of their own extractors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    joined_runs,
    split_draw,
)
from veilmeter.assessment.experiment import OwnExtractor, attacker_runs
from veilmeter.assessment.preflight import Corpora, look_ahead
from veilmeter.assessment.settings import TRAINING, Settings
from veilmeter.assessment.sources import read_source
from veilmeter.assessment.speech import Speech, as_list, load, merge
from veilmeter.assessment.tasks import EnterStage, Stage
from veilmeter.attacks.material import AttackerRun
from veilmeter.core.engine import Engine, Say, ShowProgress
from veilmeter.core.errors import InputError, refuse
from veilmeter.core.findings import Finding, file_reference, warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import Matched, match

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

ATTACKER_RUN = "attacker_run"  # the role of an attacker's run; where there are several, a number follows


@dataclass(frozen=True, eq=False)
class HeardRun:
    """An attacker's run with the recordings it was heard in, where there are some."""

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
        self.corpora = look_ahead(self.sources, self.settings, self.say)
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
        # What was made here is named as seen from the folder: results must not depend on where that lies.
        return replace(speech, facts=replace(speech.facts, path=speech.facts.path.replace(f"{self.folder}/", "")))

    def _embedding(self, role: str) -> Callable[[Corpus], tuple[Embeddings, dict[str, Any]]]:
        """How audio of this role becomes vectors: training speech is cut into pieces, so that a speaker with one
        recording gives several."""
        settings = self.settings

        def embed(corpus: Corpus) -> tuple[Embeddings, dict[str, Any]]:
            from veilmeter.assessment.audio import embed_segments, embed_whole
            from veilmeter.assessment.spoken_texts import embed_texts, hears_texts

            with self.progress(f"listening to {corpus.root.name}") as progress:
                if hears_texts(settings.first_extractor):
                    originals = [heard for (kind, _), heard in self.corpora.items() if kind.endswith("original")]
                    return embed_texts(
                        corpus, settings.first_extractor, self.engine, recognizer=settings.recognizer,
                        beside=originals, offline=settings.offline, strict=settings.strict, progress=progress,
                    )  # fmt: skip
                common = {"offline": settings.offline, "progress": progress, "say": self.say}
                if role.startswith("train_"):
                    return embed_segments(corpus, settings.first_extractor, self.engine, settings.segments, **common)  # type: ignore[arg-type]
                return embed_whole(corpus, settings.first_extractor, self.engine, strict=settings.strict, **common)  # type: ignore[arg-type]

        return embed

    # --- the attackers' runs

    def runs(self, matched: Matched, enrollment: Sequence[str]) -> list[HeardRun]:
        """Those that were given, or made here over the enrollment recordings."""
        heard = self._made_runs(enrollment) if self.settings.runs_system else self._given_runs()
        placed = attacker_runs(
            matched.original,
            matched.anonymized,
            [heard_run.run for heard_run in heard],
            made_here=self.settings.runs_system,
        )
        for number, run in enumerate(placed, 1):
            if heard[number - 1].run.own and not run.own:
                self.findings.append(warning("run_is_released", run=run.name))
        return [HeardRun(run, heard_run.corpora) for run, heard_run in zip(placed, heard, strict=True)]

    def _given_runs(self) -> list[HeardRun]:
        given = as_list(self.sources.get("attacker_run"))
        released = {_resolved(source) for source in as_list(self.sources.get("anonymized"))} - {None}
        heard = []
        for number, source in enumerate(given, 1):
            place, draw = split_draw(source) if isinstance(source, str) else (source, "unknown")
            if _resolved(place) in released:
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
        runs = joined_runs([run for run, _ in heard], merge)
        if len(runs) == len(heard):
            return [HeardRun(run, corpora) for run, (_, corpora) in zip(runs, heard, strict=True)]
        return [HeardRun(run, tuple(corpus for _, corpora in heard for corpus in corpora)) for run in runs[:1]] + [
            HeardRun(run) for run in runs[1:]
        ]

    def _made_runs(self, enrollment: Sequence[str]) -> list[HeardRun]:
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
            heard.append(HeardRun(run, speech.corpora))
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
        """Of the release, where veilmeter made it, else of the attackers' runs."""
        roles = [role for role in self.speech if _is_attacker_run(role)]
        for chosen in (["anonymized"], roles):
            roots = {corpus.root for role in chosen for corpus in self.speech[role].corpora}
            if (factor := real_time_factor(sorted(roots))) is not None:
                return factor
        return None

    # --- extractors of attackers' own

    def own_vectors(self, base: Matched) -> dict[str, OwnExtractor]:
        """What attackers hear by an extractor of their own whose vectors were given."""
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
            matched = covering(base, match(original, anonymized), f"attackers.{name}")
            runs = [
                AttackerRun(vectors=speech.embeddings, draw=split_draw(source)[1], name=f"run {number}")
                for number, source in enumerate(options.attacker_run, 1)
                if (speech := self._load("attacker_run", split_draw(source)[0])) is not None
            ]
            placed = attacker_runs(matched.original, matched.anonymized, joined_runs(runs, merge))
            own[name] = OwnExtractor(matched, placed)
        return own


def covering(base: Matched, own: Matched, whose: str) -> Matched:
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


def _resolved(source: Any) -> Path | None:
    return Path(source).resolve() if isinstance(source, str | Path) else None
