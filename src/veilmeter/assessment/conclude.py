"""From what the tasks measured to `Results` and to the tables of a run, and which options had an effect.

When an option acts is part of its declaration (`acts_when`). Options without effect are reported, not recorded as used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter._version import __version__
from veilmeter.anonymizers.anonymize_corpus import manifest_path
from veilmeter.anonymizers.base import Draw, load_with_unused, parse_options
from veilmeter.anonymizers.manifest import Entry, read_manifest
from veilmeter.assessment.attack import Job, trial_conversations, trials_to_compare
from veilmeter.assessment.experiment import Experiment
from veilmeter.assessment.given_scores import combine
from veilmeter.assessment.plan import NEEDED_BY_CHECKS, AssessmentPlan, channels
from veilmeter.assessment.settings import AttackerSettings, Facts, Settings
from veilmeter.assessment.speech import Speech, join_corpora
from veilmeter.assessment.tasks import Done, TaskId, TaskKind, TaskResult
from veilmeter.attacks.attacker import AttackerId
from veilmeter.attacks.desk import NotPossibleError
from veilmeter.attacks.takeover import Success, takeovers
from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.files import cache_folder, make_folder, write_json
from veilmeter.core.findings import Finding, about, distinct
from veilmeter.core.keys import key_of
from veilmeter.core.option_groups import ALL, EVERY_SIZE
from veilmeter.core.options import option_without_effect, options_of, unused_options
from veilmeter.data.corpus import Utterance
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import match_ids
from veilmeter.metrics.legal.chance import Relabeled, joint_chance
from veilmeter.metrics.own_run import release_linking, run_difference
from veilmeter.metrics.similarity.matrices import KINDS
from veilmeter.metrics.target_voices import TargetVoices, found_target_voices, shared, target_voice_effect
from veilmeter.metrics.vector_checks import copies, length_correlation, unchanged
from veilmeter.results.channels import channels_of
from veilmeter.results.levels import with_chance
from veilmeter.results.model import AttackerResult, Channels, Matching, Part, ProtocolFacts, Results
from veilmeter.results.people import Traits
from veilmeter.results.run_folder import MATRICES, Matrices, write_matrices, write_table
from veilmeter.results.trust import TrustFacts
from veilmeter.results.verdict import conclude
from veilmeter.speech.copies import same_recordings, unchanged_speech


@dataclass(frozen=True)
class OptionUse:
    """The settings that were used, as results.json has them, a remark on each that was given in vain, and the names of
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
    remarks += _unused_system_options(settings)
    return OptionUse(used, tuple(remarks), _incidental_options())


def _incidental_options() -> tuple[str, ...]:
    """The names of comparable options; those of an attacker's table as attackers.NAME."""
    own = [name for name, declared in options_of(Settings).items() if declared.comparable]
    of_tables = [f"attackers.{name}" for name, declared in options_of(AttackerSettings).items() if declared.comparable]
    return (*own, *of_tables)


def _unused_system_options(settings: Settings) -> list[Finding]:
    """Options passed to the anonymizer by --option that can't act in it."""
    options = parse_options(settings.option)
    if not options:
        return []
    command = {} if settings.command is None else {"command": settings.command}
    idle = load_with_unused(settings.system or "command", {**options, **command})[1]
    if settings.anonymized:
        idle["per"] = "the release is given, and attackers draw again for each utterance"
    return [option_without_effect("--option", name, reason=idle[name]) for name in options if name in idle]


def _plain(value: Any) -> Any:
    if isinstance(value, AttackerSettings):
        return {name: _plain(getattr(value, name)) for name in options_of(AttackerSettings)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


CURVE = "inversion-curve"
SIMILARITY = TaskId(TaskKind.ANALYSIS, "similarity")
Measured = Mapping[TaskId, TaskResult]


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run that has measured everything."""

    experiment: Experiment
    plan: AssessmentPlan
    done: Done
    speech: Mapping[str, Speech]
    findings: tuple[Finding, ...]
    options: OptionUse
    heard: DuplicateAudio | None = None

    def measured(self) -> Measured:
        """The tasks that were possible."""
        return {task: measured for task, (measured, _) in self.done.items() if not measured.not_possible}


def build_results(outcome: FinishedRun, settings: Settings, command: Sequence[str]) -> Results:
    """The results with everything that follows from them."""
    experiment, measured = outcome.experiment, outcome.measured()
    attackers, taken_over = _no_worse_for_knowing_more(attackers_of(measured), outcome)
    results = Results(
        version=__version__,
        title=settings.title or _title(outcome.speech),
        seed=settings.seed,
        settings=outcome.options.used,
        incidental=outcome.options.incidental,
        inputs={role: speech.facts for role, speech in outcome.speech.items()},
        matching=Matching(matched=len(experiment.matched), unmatched=experiment.matched.unmatched),
        protocol=_protocol(outcome),
        attackers=attackers,
        command=tuple(command),
        extractor=outcome.speech["original"].extractor,
        parts=parts_of(measured),
        channels=_channels(attackers, measured, settings),
        remarks=distinct([*outcome.options.remarks, *_unrequested_measures(settings)]),
        warnings=distinct([*warnings_of(outcome.findings, measured), *taken_over]),
    )
    similarity = results.parts.get("similarity", Part(name="similarity")).details
    traits = Traits(
        gender=dict(zip(experiment.original.speakers, experiment.original.attributes.get("gender", ()), strict=False)),
        animal={animal["speaker"]: animal["animal"] for animal in similarity.get("zoo", ())},
        deid=similarity.get("deid", {}),
    )
    luck = joint_chance(_relabelings(outcome), seed=settings.seed)
    return conclude(
        with_chance(results, luck),
        _evidence(outcome, settings.seed),
        not_tested=[*outcome.plan.not_tested, *not_tested(outcome.done)],
        traits=traits,
    )


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


def _evidence(outcome: FinishedRun, seed: int) -> TrustFacts:
    """The inputs of the trust checks beside the estimates."""
    experiment = outcome.experiment
    known, tried = experiment.enrollment(experiment.original), experiment.trials(experiment.original)
    heard = outcome.heard or DuplicateAudio()
    same = unchanged(experiment.original, experiment.anonymized)
    if same is not None:
        same |= np.isin(experiment.original.utterances.astype(str), sorted(heard.unchanged))
    repeated = copies(known, tried) | np.isin(tried.utterances.astype(str), sorted(heard.repeated))
    assessed = set(experiment.original.names)
    return TrustFacts(
        compared=len(experiment.original),
        unchanged=None if same is None else int(same.sum()),
        trials=len(tried),
        copies=int(repeated.sum()),
        overlap={
            role: len(assessed & set(experiment.training[role].embeddings.names)) for role in outcome.plan.used.training
        },
        own_runs=sum(run.own for run in experiment.runs) if outcome.plan.used.copies else 0,
        run_p=_run_p(experiment, seed),
        not_covered=len(_without_run(experiment)),
        release_p=_release_p(experiment, seed),
        length_p=_length_p(experiment),
        targets=target_voices(
            experiment,
            outcome.plan.jobs,
            outcome.done,
            [corpus.root for corpus in outcome.speech["anonymized"].corpora],
            seed=seed,
        ),
    )


def _run_p(experiment: Experiment, seed: int) -> float | None:
    """How often two runs of one anonymizer would differ as much as the least similar of the attackers' runs and the
    release. Runs that were made here are runs of it."""
    given = [run.vectors for run in experiment.runs if run.own and not run.made_here]
    probabilities = [run_difference(experiment.original, experiment.anonymized, run, seed=seed) for run in given]
    known = [p for p in probabilities if p is not None]
    return min(1.0, len(known) * min(known)) if known else None


def _without_run(experiment: Experiment) -> list[str]:
    """The enrolled people whom no run of the attackers covers; nobody where attackers have no run of their own."""
    runs = [run.vectors for run in experiment.runs if run.own]
    covered = {speaker for run in runs for speaker in run.names}
    enrolled = experiment.enrollment(experiment.original).names
    return [speaker for speaker in enrolled if speaker not in covered] if runs else []


def _release_p(experiment: Experiment, seed: int) -> float | None:
    """How often chance would link released recordings to released ones as well: of everybody, or of those whom no run
    of the attackers covers. Twice the smaller probability where both are looked at."""
    known, tried = experiment.enrollment(experiment.anonymized), experiment.trials(experiment.anonymized)
    probabilities = [release_linking(known, tried, seed=seed)]
    left = set(_without_run(experiment))
    if left:
        rest = [side.take([speaker in left for speaker in side.speakers]) for side in (known, tried)]
        probabilities.append(release_linking(*rest, seed=seed))
    found = [p for p in probabilities if p is not None]
    return min(1.0, len(found) * min(found)) if found else None


def _length_p(experiment: Experiment) -> float | None:
    """How often chance would relate the lengths of vectors as closely as in the closer of two comparisons: of original
    and of anonymized enrollment with the trials. Twice the smaller probability, as two are looked at."""
    tried = experiment.trials(experiment.anonymized)
    enrolled = [experiment.enrollment(experiment.original)]
    with suppress(NotPossibleError):
        enrolled.append(experiment.copies().vectors)
    probabilities = [related[1] for side in enrolled if (related := length_correlation(side, tried)) is not None]
    return min(1.0, 2 * min(probabilities)) if probabilities else None


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


def _unrequested_measures(settings: Settings) -> list[Finding]:
    """A remark on measures that were not asked for."""
    added = [family for family in NEEDED_BY_CHECKS if family not in settings.measures]
    return [Finding.of("measured_for_checks", families=tuple(added))] if added else []


def _title(speech: Mapping[str, Speech]) -> str:
    def short(role: str) -> str:
        paths = speech[role].facts.path.split(", ")
        return Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")

    names: dict[str, Any] = {role: short(role) for role in ("anonymized", "original")}
    variant = speech["anonymized"].facts.variant
    if names["anonymized"] == names["original"] and variant:
        names["anonymized"] += f" ({variant})"
    return f"{names['anonymized']} against {names['original']}"


@dataclass(frozen=True, slots=True)
class DuplicateAudio:
    """Recordings that are copies of each other but for level, delay or coding, which their vectors can't show.

    `unchanged` are the ids of originals whose anonymized recording is a copy, `repeated` those of trials that are also
    in the enrollment set.
    """

    unchanged: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()


def find_duplicate_audio(experiment: Experiment, speech: Mapping[str, Speech], engine: Engine) -> DuplicateAudio | None:
    """None where one of the sides is not audio. The cache keeps the result as long as the files stay the same."""
    sides = [speech[role].corpora for role in ("original", "anonymized") if role in speech]
    if len(sides) != 2 or not all(sides):
        return None
    original, anonymized = (join_corpora(side).by_id for side in sides)
    partner = match_ids(original, anonymized).partner
    assessed = [name for name in experiment.original.utterances if name in partner]
    pairs = [(original[name], anonymized[partner[name]]) for name in assessed]
    enrolled = [original[name] for name in experiment.protocol.enrollment if name in original]
    tried = [original[name] for name in experiment.protocol.trials if name in original]
    files = [_mark(utterance) for group in (*pairs, enrolled, tried) for utterance in group]
    place = cache_folder() / "copies" / f"{key_of(find_duplicate_audio, files, [len(pairs), len(enrolled)])}.json"
    kept = _kept(place)
    if kept is None:
        unchanged = unchanged_speech(pairs, engine).copies
        repeated = tuple(pair.second for pair in same_recordings(enrolled, tried, engine))
        kept = DuplicateAudio(frozenset(unchanged), frozenset(repeated))
        make_folder(place.parent)
        write_json(place, {"unchanged": sorted(kept.unchanged), "repeated": sorted(kept.repeated)})
    return kept


def _kept(place: Path) -> DuplicateAudio | None:
    """The cached result; a damaged file counts as missing."""
    try:
        form = json.loads(place.read_text(encoding="utf-8"))
        return DuplicateAudio(frozenset(map(str, form["unchanged"])), frozenset(map(str, form["repeated"])))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _mark(utterance: Utterance) -> str:
    """A recording by its file and part: when these change, it is compared again."""
    try:
        status = utterance.path.stat()
        mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    except OSError:
        mark = "gone"
    return f"{utterance.id}\0{mark}{utterance.stretch}"


COLUMNS = ("target_voice", "target_speaker", "target", "pseudo_speaker", "pseudo_voice", "pseudonym")
BINS = 5  # of a number that was drawn, such as a coefficient


def target_voices(
    experiment: Experiment, jobs: Mapping[AttackerId, Job], done: Done, folders: Sequence[Path], *, seed: int
) -> TargetVoices | None:
    """How much of the attackers' error is due to the target voices of the release: from a list, from the manifest, or
    clustered. `folders` are where the release was read from. None where nothing is drawn, or no two people share a
    target voice."""
    released = experiment.trials(experiment.anonymized)
    entries = _manifests(folders)
    drawn = {entry.draw for entry in entries.values()}
    if drawn == {Draw.NONE.value}:
        return None
    scores, own = {}, {}
    rows: NDArray[np.int64] | None = None
    tried_in: dict[Any, tuple[NDArray[np.int64], NDArray[np.intp]]] = {}
    for attacker, job in jobs.items():
        name = str(attacker)
        arrays = done[TaskId(TaskKind.ATTACKER, name)][1]
        if name in experiment.own or job.attacker.apart or not job.attacker.is_attack or "scores" not in arrays:
            continue
        if 1 not in job.options.lengths:
            continue
        setting = (tuple(job.test.utterances), job.scoring.names, job.options.seed)
        if setting not in tried_in:
            tried_in[setting] = _single_trials(job)
        heard, kept = tried_in[setting]
        table = arrays["scores"]
        if table.shape[1] == len(heard):
            table = table[:, kept]
        elif table.shape[1] != len(kept):
            continue
        code = {speaker: row for row, speaker in enumerate(job.scoring.names)}
        if rows is None:
            rows = heard[kept]
        elif not np.array_equal(rows, heard[kept]):
            continue  # other people are enrolled: what it finds can't be compared
        scores[name] = np.asarray(table, np.float64)
        own[name] = np.array([code[job.test.speakers[row]] for row in rows], np.int64)
    if rows is None or not len(rows):
        return None
    tried = released.take(rows)
    first = next(iter(own.values()))
    given = target_voice_labels(tried, entries)
    if given is not None and shared(given, first) > 0:
        return target_voice_effect(scores, own, given, known=True)
    return target_voice_effect(scores, own, found_target_voices(tried.vectors, seed=seed), known=False)


def _single_trials(job: Job) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The recordings that were tried one by one, and the places of those in which attackers are compared."""
    spoken = trial_conversations(job.test, 1, len(job.scoring.names), job.options.seed)
    if spoken is None:
        return np.zeros(0, np.int64), np.zeros(0, np.intp)
    return spoken.utterances[:, 0], trials_to_compare(job.test, spoken, job.scoring.names)


def target_voice_labels(tried: Embeddings, entries: Mapping[str, Entry]) -> NDArray[np.int64] | None:
    """Each recording's target voice as a number, by a column of the anonymized side or by the manifest; a single number
    that was drawn is cut into a few ranges. None where neither has it."""
    for name in (form for column in COLUMNS for form in (column, f"pseudo_{column}")):
        column = tried.attributes.get(name)
        if column is not None and all(column) and len(set(column)) > 1:
            return _codes(list(column))
    known = [entries.get(str(utterance)) for utterance in tried.utterances]
    listed = [entry for entry in known if entry is not None]
    if len(listed) < len(known) or not listed:
        return None
    if all(entry.pseudo_speaker for entry in listed):
        return _codes([str(entry.pseudo_speaker) for entry in listed])
    names = sorted(set.intersection(*(set(entry.parameters) for entry in listed)))
    varying = [name for name in names if len({str(entry.parameters[name]) for entry in listed}) > 1]
    if len(varying) == 1 and all(_is_number(entry.parameters[varying[0]]) for entry in listed):
        values = np.array([float(entry.parameters[varying[0]]) for entry in listed])
        edges = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1])
        return np.searchsorted(edges, values).astype(np.int64)
    return _codes([str([entry.parameters[name] for name in varying]) for entry in listed]) if varying else None


def _manifests(folders: Sequence[Path]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for place in map(manifest_path, folders):
        with suppress(InputError):
            entries |= read_manifest(place) if place.is_file() else {}
    return entries


def _codes(names: list[str]) -> NDArray[np.int64]:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
    for attacker, job in jobs.items():
        _, arrays = done[TaskId(TaskKind.ATTACKER, str(attacker))]
        if "scores" in arrays and write_scores(folder / f"scores-{attacker}.parquet", job, arrays["scores"]):
            written.add(f"scores-{attacker}.parquet")
    if matrices is not None:
        write_matrices(folder / MATRICES, matrices)
        written.add(MATRICES)
    return written


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
    """One row per speaker, attacker and conversation length: how often they are linked among all enrolled."""
    from veilmeter.core.intervals import wilson

    rows = []
    for attacker in attackers:
        for person in attacker.people:
            low, high = wilson(person.linked * person.conversations, person.conversations)
            mark = (person.speaker, genders.get(person.speaker, ""), attacker.name, person.length)
            rows.append((*mark, person.linked, low, high, person.conversations, person.among))
    names = ("speaker", "gender", "attacker", "length", "linked", "low", "high", "conversations", "among")
    write_table(path, {name: [row[i] for row in rows] for i, name in enumerate(names)})
