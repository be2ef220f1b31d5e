"""From what the tasks measured to `Results` and to the tables of a run, and which options had an effect.

When an option acts is part of its declaration (`acts_when`). Options without effect are reported, not recorded as used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter._version import __version__
from veilmeter.anonymizers.base import load_with_unused, parse_options
from veilmeter.assessment.attack import Job
from veilmeter.assessment.attacker_settings import AttackerSettings
from veilmeter.assessment.evidence import DuplicateAudio, trust_facts
from veilmeter.assessment.experiment import Experiment
from veilmeter.assessment.given_scores import combine
from veilmeter.assessment.inputs import system_options
from veilmeter.assessment.plan import NEEDED_BY_CHECKS, AssessmentPlan, channels
from veilmeter.assessment.settings import Facts, Settings
from veilmeter.assessment.speech import Speech
from veilmeter.assessment.tasks import Done, TaskId, TaskKind, TaskResult
from veilmeter.attacks.attacker import AttackerId, Success, takeovers
from veilmeter.core.estimate import Estimates
from veilmeter.core.files import short_digest, to_json
from veilmeter.core.findings import Finding, about, distinct
from veilmeter.core.option_groups import ALL, EVERY_SIZE
from veilmeter.core.options import OptionSet, option_without_effect, options_of, unused_options
from veilmeter.data.corpus import SIDES, SpeechRole
from veilmeter.metrics.legal.chance import Relabeled, joint_chance
from veilmeter.metrics.similarity.matrices import KINDS
from veilmeter.results.levels import with_chance
from veilmeter.results.model import AttackerResult, Channels, Matching, Part, ProtocolFacts, Results
from veilmeter.results.people import Traits, channels_of, interval_of
from veilmeter.results.run_folder import GROUPS, MATRICES, Matrices, write_matrices, write_table
from veilmeter.results.verdict import conclude


@dataclass(frozen=True)
class OptionUse:
    """The settings that were used, as results.json has them, a remark on each that had no effect, and the names of
    those in which runs may differ and still be compared."""

    used: Mapping[str, Any]
    remarks: tuple[Finding, ...]
    incidental: tuple[str, ...]


def option_use(settings: Settings, facts: Facts) -> OptionUse:
    used: dict[str, Any] = {}
    remarks = [
        option_without_effect(*options_of(Settings)[name].spell(getattr(settings, name)), reason=reason)
        for name, reason in unused_options(settings, facts).items()
    ]
    for name, declared in options_of(Settings).items():
        used[name] = None if declared.idle_reason(settings, facts) else _plain(getattr(settings, name))
    used["attackers"] = {name: _plain(table) for name, table in settings.attackers.items() if name in facts.attackers}
    if settings.speakers == EVERY_SIZE and used["speakers"] is not None:
        used["speakers"] = ALL
    beyond = [n for n in settings.speakers if n > facts.enrolled]
    if beyond and used["speakers"] is not None:
        used["speakers"] = [n for n in settings.speakers if n not in beyond]
        reason = f"only {facts.enrolled} people are enrolled"
        remarks.append(option_without_effect("--speakers", ", ".join(map(str, beyond)), reason=reason))
    remarks += _system_options_without_effect(settings)
    return OptionUse(used, tuple(remarks), _incidental_options())


def _incidental_options() -> tuple[str, ...]:
    """The names of comparable options; those of an attacker's table as attackers.NAME."""
    own = [name for name, declared in options_of(Settings).items() if declared.comparable]
    of_tables = [f"attackers.{name}" for name, declared in options_of(AttackerSettings).items() if declared.comparable]
    return (*own, *of_tables)


def _system_options_without_effect(settings: Settings) -> list[Finding]:
    """Options passed to the anonymizer by --option that can't act in it."""
    options = parse_options(settings.option)
    if not options:
        return []
    idle = load_with_unused(settings.anonymizer, system_options(settings))[1]
    if settings.anonymized:
        idle["per"] = "the release is given, and attackers draw again for each utterance"
    return [option_without_effect("--option", name, reason=idle[name]) for name in options if name in idle]


def _plain(value: Any) -> Any:
    if isinstance(value, OptionSet):
        kind: type = type(value)
        return {name: _plain(getattr(value, name)) for name in options_of(kind)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


CURVE = "inversion-curve"
SIMILARITY = TaskId(TaskKind.ANALYSIS, "similarity")
Measured = Mapping[TaskId, TaskResult]


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run that has measured everything, or everything but what is `pending`."""

    experiment: Experiment
    plan: AssessmentPlan
    done: Done
    speech: Sequence[Speech]
    findings: tuple[Finding, ...]
    options: OptionUse
    duplicates: DuplicateAudio | None = None
    pending: tuple[Finding, ...] = ()  # what is still to be measured

    def speech_of(self, role: SpeechRole) -> Speech:
        return next(speech for speech in self.speech if speech.role is role)

    def possible(self) -> Measured:
        """The tasks that were possible."""
        return {task: measured for task, (measured, _) in self.done.items() if not measured.not_possible}


def build_results(outcome: FinishedRun, settings: Settings, command: Sequence[str]) -> Results:
    """The results with everything that follows from them."""
    experiment, measured = outcome.experiment, outcome.possible()
    attackers, taken_over = _no_worse_for_knowing_more(attackers_of(measured), outcome)
    results = Results(
        version=__version__,
        title=settings.title or _title(outcome),
        seed=settings.seed,
        settings=outcome.options.used,
        incidental=outcome.options.incidental,
        inputs={speech.facts.role: speech.facts for speech in outcome.speech},
        matching=Matching(matched=len(experiment.matched), unmatched=experiment.matched.unmatched),
        protocol=_protocol(outcome),
        attackers=attackers,
        command=tuple(command),
        extractor=outcome.speech_of(SpeechRole.ORIGINAL).extractor,
        parts=parts_of(measured),
        channels=_channels(attackers, measured, settings),
        remarks=distinct([*outcome.options.remarks, *_measures_for_checks(settings)]),
        warnings=distinct([*warnings_of(outcome.findings, measured), *taken_over]),
        pending=outcome.pending,
    )
    similarity = results.parts.get("similarity", Part(name="similarity")).details
    traits = Traits(
        gender=dict(zip(experiment.original.speakers, experiment.original.attributes.get("gender", ()), strict=False)),
        animal={animal["speaker"]: animal["animal"] for animal in similarity.get("zoo", ())},
        deid=similarity.get("deid", {}),
    )
    released = [corpus.root for corpus in outcome.speech_of(SpeechRole.ANONYMIZED).corpora]
    chance = joint_chance(_relabelings(outcome), seed=settings.seed)
    return conclude(
        with_chance(sign(results), chance),
        trust_facts(
            experiment, outcome.plan, outcome.done, folders=released, duplicates=outcome.duplicates, seed=settings.seed
        ),
        not_tested=[*outcome.plan.not_tested, *not_tested(outcome.done)],
        traits=traits,
    )


def sign(results: Results) -> Results:
    """The results with everything that a figure depends on in its signature: the attacker with its back end and
    extractor, the speech and the settings, by digests, and the seed."""
    comparable = {name: value for name, value in results.settings.items() if name not in results.incidental}
    common: dict[str, float | int | str] = {
        "data": short_digest(*(f"{role} {given.sha256}" for role, given in results.inputs.items())),
        "settings": short_digest(to_json(comparable)),
        "seed": results.seed,
        "v": results.version,
    }
    extractor = str((results.extractor or {}).get("name", ""))

    def sign_groups(group: Mapping[str, Mapping[str, Estimates]], facts: Mapping[str, Any]) -> dict[str, Any]:
        return {
            attribute: {value: points.sign(**facts, **{attribute: value}) for value, points in values.items()}
            for attribute, values in group.items()
        }

    attackers = {}
    for name, attacker in results.attackers.items():
        facts = {"attacker": name, "backend": attacker.backend, "extractor": attacker.extractor or extractor}
        known: dict[str, Any] = {key: value for key, value in facts.items() if value} | common
        attackers[name] = replace(
            attacker, estimates=attacker.estimates.sign(**known), by=sign_groups(attacker.by, known)
        )
    parts = {}
    for name, part in results.parts.items():
        known = {"part": name, **({"extractor": extractor} if extractor else {}), **common}
        parts[name] = replace(part, estimates=part.estimates.sign(**known), by=sign_groups(part.by, known))
    return replace(results, attackers=attackers, parts=parts)


def _relabelings(outcome: FinishedRun) -> list[Relabeled]:
    """Each attacker's figures with people relabeled at random, as they were measured."""
    return [
        Relabeled(measured.figures, arrays["values"], measured.enrolled, arrays["first"], arrays["own"])
        for measured, arrays in outcome.done.values()
        if measured.figures
    ]


def attackers_of(measured: Measured) -> dict[str, AttackerResult]:
    """Vectors and given scores of one attacker together, in the order in which they were planned."""
    kinds = (TaskKind.ATTACKER, TaskKind.SCORES)
    compared, given = (results_of(measured, kind) for kind in kinds)
    names = dict.fromkeys(task.name for task in measured if task.kind in kinds)
    return {name: combine(compared.get(name), given[name]) if name in given else compared[name] for name in names}


def results_of(measured: Measured, kind: TaskKind) -> dict[str, AttackerResult]:
    """The results of attackers in tasks of one kind, by the names of the tasks."""
    return {
        task.name: result.attacker
        for task, result in measured.items()
        if task.kind is kind and result.attacker is not None
    }


def _no_worse_for_knowing_more(
    attackers: Mapping[str, AttackerResult], outcome: FinishedRun
) -> tuple[dict[str, AttackerResult], list[Finding]]:
    """An attacker who knows more than another and did significantly worse gets the other's results, as it could have
    used the same method; and the findings about it."""
    successes = {}
    for attacker in outcome.plan.jobs:
        name = str(attacker)
        arrays = outcome.done[TaskId(TaskKind.ATTACKER, name)][1]
        if "ahead" in arrays and name in attackers and attackers[name].source == "vectors":
            successes[attacker] = Success(arrays["ahead"], arrays["ahead_of"])
    changed, findings = dict(attackers), []
    for takeover in takeovers(successes):
        loser, winner = attackers[takeover.attacker], attackers[takeover.other]
        changed[loser.name] = replace(
            loser,
            backend=winner.backend,
            estimates=winner.estimates,
            by=winner.by,
            people=winner.people,
            ties=winner.ties,
            profile=winner.profile,
            det=winner.det,
            details={**loser.details, "taken_over_from": winner.name, "own_estimates": loser.estimates.to_json()},
        )
        findings.append(takeover.finding)
    return changed, findings


def parts_of(measured: Measured) -> dict[str, Part]:
    """The analyses by name; the learning curve of inversion belongs to the part of inversion."""
    parts = {task.name: result.part for task, result in measured.items() if result.part is not None}
    curve, inversion = parts.pop(CURVE, None), parts.get("inversion")
    if inversion is not None and curve is not None:
        parts["inversion"] = replace(inversion, details={**inversion.details, **curve.details})
    return parts


def _channels(attackers: Mapping[str, AttackerResult], measured: Measured, settings: Settings) -> Channels | None:
    """What each extractor gives away, where there are several, beside its controls."""
    controls = (results_of(measured, kind) for kind in (TaskKind.CONTROL, TaskKind.SHUFFLED))
    return channels_of(attackers, channels(settings), *controls)


def _protocol(outcome: FinishedRun) -> ProtocolFacts:
    experiment, used = outcome.experiment, outcome.plan.used
    facts = experiment.protocol.facts(experiment.original)
    runs = [
        {"name": run.name, "draw": run.draw, "own": run.own, "recordings": len(run.vectors)} for run in experiment.runs
    ]
    return replace(
        facts,
        training=used.training_kind,
        anonymized_enrollment="own run" if any(run.own for run in experiment.runs) else "released run",
        details={**facts.details, "folds": used.folds, "attacker_runs": runs, "groups": sorted(experiment.groups)},
    )


def not_tested(done: Done) -> list[Finding]:
    """What tasks could not measure, each with the attacker or the part."""
    findings: list[Finding] = []
    for task, (measured, _) in done.items():
        if measured.not_possible is not None:
            findings.append(about_task(measured.not_possible, task))
        findings += [about_task(finding, task) for finding in measured.not_tested]
    return findings


def about_task(finding: Finding, task: TaskId) -> Finding:
    is_attacker = task.kind in (TaskKind.ATTACKER, TaskKind.SCORES)
    return about(finding, attacker=task.name) if is_attacker else about(finding, part=str(task))


def warnings_of(common: Sequence[Finding], measured: Measured) -> tuple[Finding, ...]:
    """A warning that holds for every attacker comes once; any other names the attacker or the part."""
    by_attacker = {task.name: result.findings for task, result in measured.items() if task.kind is TaskKind.ATTACKER}
    findings = list(common)
    for name, own in by_attacker.items():
        shared = [finding for finding in own if all(finding in others for others in by_attacker.values())]
        findings += shared + [about(finding, attacker=name) for finding in own if finding not in shared]
    for task, result in measured.items():
        if task.kind in (TaskKind.SCORES, TaskKind.ANALYSIS):
            findings += [about_task(finding, task) for finding in result.findings]
    return distinct(findings)


def _measures_for_checks(settings: Settings) -> list[Finding]:
    """A remark on measures that were not asked for."""
    added = [family for family in NEEDED_BY_CHECKS if family not in settings.measures]
    return [Finding.of("measured_for_checks", families=tuple(added))] if added else []


def _title(outcome: FinishedRun) -> str:
    original, anonymized = (outcome.speech_of(side).facts for side in SIDES)
    names = []
    for facts in (anonymized, original):
        paths = facts.path.split(", ")
        names.append(Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else ""))
    variant = f" ({anonymized.variant})" if names[0] == names[1] and anonymized.variant else ""
    return f"{names[0]}{variant} against {names[1]}"


def matrices_of(done: Done) -> Matrices | None:
    """The similarity matrices, where they were measured."""
    measured, arrays = done.get(SIMILARITY, (TaskResult(), {}))
    if not arrays:
        return None
    return Matrices(measured.names, {kind: np.asarray(arrays[kind], float) for kind in KINDS})


def write_tables(
    folder: Path, results: Results, jobs: Mapping[AttackerId, Job], done: Done, matrices: Matrices | None
) -> set[str]:
    """Every table of a run; the names of the files."""
    genders = {person.speaker: person.gender for person in results.people.persons}
    write_speakers(folder / "speakers.parquet", results.attackers.values(), genders)
    written = {"speakers.parquet"}
    if write_groups(folder / GROUPS, next((job.options.groups for job in jobs.values()), {})):
        written.add(GROUPS)
    for attacker, job in jobs.items():
        _, arrays = done[TaskId(TaskKind.ATTACKER, str(attacker))]
        if "scores" in arrays and write_scores(folder / f"scores-{attacker}.parquet", job, arrays["scores"]):
            written.add(f"scores-{attacker}.parquet")
    if matrices is not None:
        write_matrices(folder / MATRICES, matrices)
        written.add(MATRICES)
    return written


def write_groups(path: Path, groups: Mapping[str, Mapping[str, str]]) -> bool:
    """One row per speaker and attribute within whose values everything was measured; nothing where there is none."""
    rows = [
        (attribute, value, speaker)
        for attribute, people in groups.items()
        for speaker, value in people.items()
        if value
    ]
    if rows:
        names = ("attribute", "value", "speaker")
        write_table(path, {name: [row[place] for row in rows] for place, name in enumerate(names)})
    return bool(rows)


def write_scores(path: Path, job: Job, scores: NDArray[np.float64]) -> bool:
    """One row per trial of one utterance: enrolled speaker, utterance, target, score. Nothing is written where
    utterances were drawn, or the shortest conversation is longer than one."""
    import pyarrow as pa

    enrolled, tested = list(job.scoring.names), list(job.test.names)

    def encode(names: list[str], codes: NDArray[np.integer]) -> Any:
        return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))

    if scores.shape != (len(enrolled), len(job.test)):
        return False
    # The columns of a table of scores are conversations in the order of speakers; those of length 1 are utterances.
    order = np.argsort(job.test.codes, kind="stable")
    rows, columns = np.divmod(np.arange(scores.size, dtype=np.int32), np.int32(len(order)))
    values = np.ravel(scores)
    if job.mask is not None:
        kept = np.flatnonzero(job.mask[:, order])
        rows, columns, values = rows[kept], columns[kept], values[kept]
    place = {name: code for code, name in enumerate(tested)}
    own = np.array([place.get(name, -1) for name in enrolled], np.int32)[rows]
    spoken = job.test.codes[order].astype(np.int32)[columns]
    write_table(
        path,
        {
            "enrollment_speaker": encode(enrolled, rows),
            "utterance": encode(job.test.utterances[order].tolist(), columns),
            "trial_speaker": encode(tested, spoken),
            "target": own == spoken,
            "score": values,
        },
    )
    return True


def write_speakers(path: Path, attackers: Iterable[AttackerResult], genders: Mapping[str, str]) -> None:
    """One row per speaker, attacker and conversation length: how often they are linked among all, in percent."""
    rows = []
    for attacker in attackers:
        for person in attacker.people:
            low, high = interval_of(person)
            mark = (person.speaker, genders.get(person.speaker, ""), attacker.name, person.length)
            rows.append((*mark, person.linked, low, high, person.conversations, person.among))
    names = ("speaker", "gender", "attacker", "length", "linked", "low", "high", "conversations", "among")
    write_table(path, {name: [row[i] for row in rows] for i, name in enumerate(names)})
