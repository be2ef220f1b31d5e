"""Scores alone: what attackers of other systems found, assessed without any speech."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from veilmeter._version import __version__
from veilmeter.assessment.attackers import Used, described
from veilmeter.assessment.conclude import attackers_of, parts_of, warnings_of
from veilmeter.assessment.effects import Facts, effects
from veilmeter.assessment.given_scores import ScoreFiles, measure_given
from veilmeter.assessment.measuring import Asked
from veilmeter.assessment.parts import ZEBRA_SETS, score_sets_part
from veilmeter.assessment.plugins import added_measures
from veilmeter.assessment.recorded_run import LEFT_OUT, Assessment, RecordedRun, without_place
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.tasks import Done, Task, TaskId, TaskKind
from veilmeter.attacks.knowledge import ORIGINAL, default_attackers, known_attackers
from veilmeter.core.errors import InputError
from veilmeter.core.files import sha256
from veilmeter.core.findings import as_findings
from veilmeter.results.model import AttackerResult, Input, Matching, ProtocolFacts, Results
from veilmeter.results.trust import TrustFacts
from veilmeter.results.verdict import conclude

NEEDS_SPEECH = "linking, singling out, similarity, inversion, inference and usability: they need speech or vectors"


def has_scores(settings: Settings) -> bool:
    """Whether some attacker's scores were given."""
    return any(options.scores for options in settings.attackers.values())


class ScoreRun(RecordedRun):
    """An assessment of score files: only what follows from scores is measured, and the rest is said to be open."""

    def assessed(self) -> Assessment:
        settings = self.settings
        if not settings.wants("scores"):
            raise InputError(
                "only scores were given, and the measures of scores were left out", fix="add scores to --measures"
            )
        self.stage("reading scores")
        files = self._files()
        tasks = self._tasks(files)
        done = self.perform(tasks)
        self.stage("drawing conclusions")
        results = self._results(files, done)
        if self.folder is not None:
            results = self.write(results, {}, done)
            (self.folder / LEFT_OUT).unlink(missing_ok=True)
        return Assessment(results, self.folder, self.timings)

    def _files(self) -> dict[str, ScoreFiles]:
        """The score files of each attacker, the baseline first."""
        common = tuple(map(Path, self.settings.trials))
        order = [ORIGINAL.name, *known_attackers()]
        given = {name: options for name, options in self.settings.attackers.items() if options.scores}
        return {
            name: ScoreFiles(tuple(map(Path, given[name].scores)), tuple(map(Path, given[name].trials)) or common)
            for name in dict.fromkeys(order)
            if name in given
        }

    def _tasks(self, files: Mapping[str, ScoreFiles]) -> list[Task]:
        settings = self.settings
        asked = Asked(
            lengths=settings.lengths,
            measures=("scores",),
            added=added_measures("scores"),
            intervals=settings.intervals,
            resamples=settings.resamples,
            seed=settings.seed,
        )
        known = {ORIGINAL.name: ORIGINAL, **known_attackers()}
        tasks = [
            Task(
                TaskId(TaskKind.SCORES, name), measure_given, (described(known[name]), given, None, asked), needed=True
            )
            for name, given in files.items()
        ]
        if all(name in files for name in ZEBRA_SETS):
            sets = {name: files[name] for name in ZEBRA_SETS}
            tasks.append(Task(TaskId(TaskKind.ANALYSIS, "zebra"), score_sets_part, (sets, asked)))
        return tasks

    def _results(self, files: Mapping[str, ScoreFiles], done: Done) -> Results:
        settings = self.settings
        measured = {task: result for task, (result, _) in done.items() if not result.not_possible}
        attackers = attackers_of(measured)
        people = max(_counted(attacker, "speakers") for attacker in attackers.values())
        had = effects(
            settings,
            Facts(heard=frozenset(), attackers=frozenset(files), used=Used(), enrolled=people, scores_only=True),
        )
        results = Results(
            version=__version__,
            title=settings.title or f"scores of {', '.join(attackers)}",
            seed=settings.seed,
            settings=had.used,
            inputs={
                entry.role: entry for entry in (_input(name, given, attackers[name]) for name, given in files.items())
            },
            matching=Matching(matched=0),
            protocol=ProtocolFacts(
                split="the trials of the score files",
                enrolled_speakers=people,
                trial_speakers=people,
                enrollment_utterances=0,
                trial_utterances=0,
                details={"speakers": people, "groups": [], "keys": _digest(*(given.keys for given in files.values()))},
            ),
            attackers=attackers,
            command=without_place(self.argv),
            parts=parts_of(measured),
            remarks=as_findings(had.remarks),
            warnings=as_findings(warnings_of((), measured)),
        )
        return conclude(results, TrustFacts(), not_tested=self._not_tested(files, done))

    def _not_tested(self, files: Mapping[str, ScoreFiles], done: Done) -> list[str]:
        reasons = [f"{name} attacker: no scores were given" for name in default_attackers() if name not in files]
        reasons += [f"{task}: {result.not_possible}" for task, (result, _) in done.items() if result.not_possible]
        return [*reasons, NEEDS_SPEECH]


def _counted(attacker: AttackerResult, what: str) -> int:
    eer = attacker.estimates.single("eer")
    return 0 if eer is None else int(eer.n.get(what, 0))


def _digest(*groups: Iterable[Path]) -> str:
    """Of the contents of files; nothing where there are none."""
    known = dict.fromkeys(sha256(file) for group in groups for file in group)
    return hashlib.sha256("\n".join(known).encode()).hexdigest() if known else ""


def _input(name: str, given: ScoreFiles, attacker: AttackerResult) -> Input:
    counts = {what: _counted(attacker, what) for what in ("targets", "impostors")}
    return Input(
        role=f"scores-{name}",
        kind="scores",
        path=", ".join(map(str, given.files)),
        sha256=_digest(given.files, given.keys),
        speakers=_counted(attacker, "speakers"),
        utterances=0,
        details={**counts, "keys": [str(key) for key in given.keys]},
    )
