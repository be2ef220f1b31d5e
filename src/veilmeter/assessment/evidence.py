"""The evidence behind the trust checks beside the estimates: copied recordings, wrong runs, target voices, overlaps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers.anonymize_corpus import manifest_path
from veilmeter.anonymizers.base import Draw
from veilmeter.anonymizers.manifest import Entry, read_manifest
from veilmeter.assessment.attack import Job, trial_conversations, trials_to_compare
from veilmeter.assessment.experiment import Experiment
from veilmeter.assessment.plan import AssessmentPlan
from veilmeter.assessment.speech import Speech, join_corpora
from veilmeter.assessment.tasks import Done, TaskId, TaskKind
from veilmeter.attacks.attacker import BASELINE, AttackerId
from veilmeter.attacks.material import AttackerRun, NotPossibleError
from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.files import cache_folder, make_folder, write_json
from veilmeter.core.findings import Reference
from veilmeter.core.keys import key_of
from veilmeter.data.corpus import SIDES, SpeechRole, Utterance
from veilmeter.data.embeddings import DRAW_COLUMNS, Embeddings, concatenate, draw_names
from veilmeter.data.matching import match_ids
from veilmeter.metrics.exchanged_ids import duration_correlation, exchanged_ids
from veilmeter.metrics.legal.linkability import better_impostors
from veilmeter.metrics.vector_checks import (
    RepeatedDraws,
    TargetVoices,
    copies,
    find_unchanged,
    found_target_voices,
    length_correlation,
    let_through,
    release_linking,
    released_copies,
    repeated_draws,
    run_difference,
    share_of_shared_voices,
    target_voice_effect,
)
from veilmeter.results.model import AttackerResult
from veilmeter.results.trust import SURE_RUN, TrustFacts
from veilmeter.speech.copies import find_unchanged_speech, same_recordings


@dataclass(frozen=True, slots=True)
class DuplicateAudio:
    """Recordings that are copies of each other but for level, delay or coding, which their vectors can't show.

    `unchanged` are the ids of originals whose anonymized recording is a copy, `let_through` of others whose anonymized
    recording is far more like them than most are, `repeated` those of trials that are also in the enrollment set.
    """

    unchanged: frozenset[str] = frozenset()
    let_through: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()


def find_duplicate_audio(
    experiment: Experiment, speech: Mapping[SpeechRole, Speech], engine: Engine
) -> DuplicateAudio | None:
    """None where one of the sides is not audio. The cache keeps the result as long as the files stay the same."""
    sides = [speech[side].corpora for side in SIDES]
    if not all(sides):
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
        found = find_unchanged_speech(pairs, engine)
        repeated = tuple(pair.second for pair in same_recordings(enrolled, tried, engine))
        kept = DuplicateAudio(frozenset(found.copies), frozenset(found.outliers), frozenset(repeated))
        make_folder(place.parent)
        write_json(place, {name: sorted(getattr(kept, name)) for name in _DUPLICATES})
    return kept


_DUPLICATES = ("unchanged", "let_through", "repeated")


def _kept(place: Path) -> DuplicateAudio | None:
    """The cached result; a damaged file counts as missing."""
    try:
        form = json.loads(place.read_text(encoding="utf-8"))
        return DuplicateAudio(*(frozenset(map(str, form[name])) for name in _DUPLICATES))
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
        spoken, kept = tried_in[setting]
        table = arrays["scores"]
        if table.shape[1] == len(spoken):
            table = table[:, kept]
        elif table.shape[1] != len(kept):
            continue
        code = {speaker: row for row, speaker in enumerate(job.scoring.names)}
        if rows is None:
            rows = spoken[kept]
        elif not np.array_equal(rows, spoken[kept]):
            continue  # other people are enrolled: what it finds can't be compared
        scores[name] = np.asarray(table, np.float64)
        own[name] = np.array([code[job.test.speakers[row]] for row in rows], np.int64)
    if rows is None or not len(rows):
        return None
    tried = released.take(rows)
    first = next(iter(own.values()))
    given = target_voice_labels(tried, entries)
    if given is not None and share_of_shared_voices(given, first) > 0:
        return target_voice_effect(scores, own, given, known=True)
    return target_voice_effect(scores, own, found_target_voices(tried.vectors, seed=seed), known=False)


def _single_trials(job: Job) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The recordings that were tried one by one, and the places of those in which attackers are compared."""
    spoken = trial_conversations(job.test, 1, len(job.scoring.names), job.options.seed)
    if spoken is None:
        return np.zeros(0, np.int64), np.zeros(0, np.intp)
    return spoken.utterances[:, 0], trials_to_compare(job.test, spoken, job.scoring.names)


LEAST_RECORDINGS = 10  # with one value of an attribute: the mean of fewer varies too much


def ahead_on_originals(jobs: Mapping[AttackerId, Job], done: Done) -> tuple[dict[str, float], dict[Reference, float]]:
    """Where nothing was anonymized, the share of other people who fit a recording at least as well as its speaker: the
    mean of each person and, for attributes that vary within people such as a session, of each value."""
    job = jobs.get(AttackerId(BASELINE))
    arrays = {} if job is None else done[TaskId(TaskKind.ATTACKER, BASELINE)][1]
    if job is None or "scores" not in arrays:
        return {}, {}
    rows = _recordings_with_scores(job, arrays["scores"].shape[1])
    code = {speaker: row for row, speaker in enumerate(job.scoring.names)}
    known = np.array([job.test.speakers[row] in code for row in rows], bool)
    if len(code) < 2 or not known.any():
        return {}, {}
    tried, table = job.test.take(rows[known]), arrays["scores"][:, known]
    own = np.array([code[speaker] for speaker in tried.speakers], np.int64)
    ahead = better_impostors(table.T, own) / (len(code) - 1)
    people = {speaker: float(ahead[tried.speakers == speaker].mean()) for speaker in tried.names}
    values: dict[Reference, float] = {}
    for attribute, column in tried.attributes.items():
        pairs = {(speaker, value) for speaker, value in zip(tried.speakers, column, strict=True) if value}
        if len(pairs) == len({speaker for speaker, _ in pairs}):
            continue  # it belongs to people, who are looked at one by one
        for value in sorted({value for _, value in pairs}):
            with_value = np.asarray(column) == value
            if with_value.sum() >= LEAST_RECORDINGS:
                values[Reference("value", str(value), attribute)] = float(ahead[with_value].mean())
    return people, values


def _recordings_with_scores(job: Job, columns: int) -> NDArray[np.int64]:
    """The recording of each column of the scores that were kept, of longer conversations the first one; none where
    that is not known."""
    lengths = sorted(job.options.lengths, key=lambda length: length != 1)
    tried = (trial_conversations(job.test, length, len(job.scoring.names), job.options.seed) for length in lengths)
    spoken = next((some for some in tried if some is not None), None)
    if spoken is None:
        return np.zeros(0, np.int64)
    rows = spoken.utterances[:, 0]
    if len(rows) != columns:
        rows = rows[trials_to_compare(job.test, spoken, job.scoring.names)]
    return rows if len(rows) == columns else np.zeros(0, np.int64)


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
    is_range = len(varying) == 1 and varying[0] not in DRAW_COLUMNS
    if is_range and all(_is_number(entry.parameters[varying[0]]) for entry in listed):
        values = np.array([float(entry.parameters[varying[0]]) for entry in listed])
        edges = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1])
        return np.searchsorted(edges, values).astype(np.int64)
    return _codes([str([entry.parameters[name] for name in varying]) for entry in listed]) if varying else None


def draws_by_name(released: Embeddings) -> int | None:
    """From about how many transformations the anonymizer drew, where the release names them: one pair of different
    people's recordings in so many has the same. None where it does not, where there is one for all, or where no two
    people share one."""
    column = draw_names(released)
    if column is None or not all(column):
        return None
    draws, speakers = _codes([str(value) for value in column]), _codes([str(name) for name in released.speakers])
    together = np.zeros((draws.max() + 1, speakers.max() + 1))
    np.add.at(together, (draws, speakers), 1)
    pairs = np.square(together.sum()) - np.square(together.sum(axis=0)).sum()
    same = np.square(together.sum(axis=1)).sum() - np.square(together).sum()
    return max(2, round(pairs / same)) if 0 < same < pairs else None


def count_draws(experiment: Experiment, attackers: Iterable[AttackerResult]) -> tuple[int, int]:
    """How many draws of a finite set attackers tried on everybody who is enrolled, and how many there are: those that
    people share in the release by its names, or else all that the anonymizer declares. (0, 0) where neither is
    known."""
    own = [run for run in experiment.runs if run.own]
    wanted = {str(number) for run in own for number in range(run.choices)}
    if draws_by_name(experiment.anonymized) is not None:
        wanted = set(map(str, draw_names(experiment.anonymized)))  # type: ignore[arg-type]
    if not any(attacker.details.get("draws_tried") for attacker in attackers):
        return 0, len(wanted)
    people: dict[str, set[str]] = {}
    for run in own:
        draws = draw_names(run.vectors)
        for speaker, draw in zip(run.vectors.speakers, () if draws is None else draws, strict=draws is not None):
            people.setdefault(str(draw), set()).add(str(speaker))
    enrolled = set(map(str, experiment.enrollment(experiment.original).names))
    return sum(enrolled <= people.get(str(draw), set()) for draw in wanted), len(wanted)


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


def trust_facts(
    experiment: Experiment,
    plan: AssessmentPlan,
    done: Done,
    folders: Sequence[Path],
    duplicates: DuplicateAudio | None,
    seed: int,
) -> TrustFacts:
    """The facts that the trust checks need beside the estimates; `folders` are where the release was read from."""
    known, tried = experiment.enrollment(experiment.original), experiment.trials(experiment.original)
    known_copies = duplicates or DuplicateAudio()
    same = find_unchanged(experiment.original, experiment.anonymized)
    if same is not None:
        same |= np.isin(experiment.original.utterances.astype(str), sorted(known_copies.unchanged))
    alike = let_through(experiment.original, experiment.anonymized, seed=seed)
    if alike is not None:
        alike |= np.isin(experiment.original.utterances.astype(str), sorted(known_copies.let_through))
    repeated = copies(known, tried) | np.isin(tried.utterances.astype(str), sorted(known_copies.repeated))
    released = released_copies(experiment.enrollment(experiment.anonymized), experiment.trials(experiment.anonymized))
    assessed = set(experiment.original.names)
    ahead, ahead_of_values = ahead_on_originals(plan.jobs, done)
    release_p, release_share = _release_links(experiment, seed)
    run_p = _run_p(experiment, seed)
    shown = run_p is None or run_p >= SURE_RUN  # a run of something else says nothing about the draws of this one
    own = [run.vectors for run in experiment.runs if run.own and shown and not _has_one_draw(run)]
    draws = repeated_draws(experiment.original, [experiment.anonymized, *own], seed=seed)
    if (named := draws_by_name(experiment.anonymized)) is not None:
        draws = replace(draws or RepeatedDraws(), named=named)
    if draws is not None:
        results = [result.attacker for result, _ in done.values() if result.attacker is not None]
        number, of = count_draws(experiment, results)
        draws = replace(draws, tried=number, set_size=of)
    return TrustFacts(
        compared=len(experiment.original),
        unchanged=None if same is None else int(same.sum()),
        let_through=0 if alike is None or same is None else int((alike & ~same).sum()),
        trials=len(tried),
        copies=int(repeated.sum()),
        released_copies=int((released & ~repeated).sum()) if len(released) == len(repeated) else int(released.sum()),
        overlap={
            str(role): len(assessed & set(experiment.training[role].embeddings.names)) for role in plan.used.training
        },
        own_runs=sum(run.own for run in experiment.runs) if plan.used.copies else 0,
        run_p=run_p,
        not_covered=len(_without_run(experiment)),
        release_p=release_p,
        release_share=release_share,
        length_p=_length_p(experiment),
        draws=draws,
        ids_p=_ids_p(experiment, seed),
        durations=duration_correlation(experiment.original, experiment.anonymized),
        ahead=ahead,
        ahead_of_values=ahead_of_values,
        targets=target_voices(experiment, plan.jobs, done, folders, seed=seed),
    )


def _run_p(experiment: Experiment, seed: int) -> float | None:
    """How often two runs of one anonymizer would differ as much as the least similar of the attackers' runs and the
    release. Runs that were made here are runs of it. Runs with one draw for everybody are compared together, with the
    draw that the release has."""
    given = [run for run in experiment.runs if run.own and not run.made_here]
    single = [run.vectors for run in given if _has_one_draw(run)]
    compared = [run.vectors for run in given if not _has_one_draw(run)]
    if single:
        compared += _with_draws_of(experiment.anonymized, single)
    probabilities = [run_difference(experiment.original, experiment.anonymized, run, seed=seed) for run in compared]
    known = [p for p in probabilities if p is not None]
    return min(1.0, len(known) * min(known)) if known else None


def _has_one_draw(run: AttackerRun) -> bool:
    """Whether everybody has the same named draw in a run, as where the draws of a set are tried one after the other."""
    draws = draw_names(run.vectors)
    return draws is not None and len(set(draws)) == 1


def _with_draws_of(released: Embeddings, runs: Sequence[Embeddings]) -> list[Embeddings]:
    """One run, if there is any, of the copies that have the draw of the released recording; where the release names
    none, of copies from one run after the other."""
    wanted = draw_names(released)
    drawn = [str((draw_names(run))[0]) for run in runs]  # type: ignore[index]
    parts: list[list[str]] = [[] for _ in runs]
    for row, utterance in enumerate(released.utterances):
        there = [number for number, run in enumerate(runs) if utterance in run.utterance_rows]
        if wanted is not None:
            there = [number for number in there if drawn[number] == wanted[row]]
        if there:
            parts[there[row % len(there)]].append(utterance)
    chosen = [run.of_utterances(part) for run, part in zip(runs, parts, strict=True) if part]
    return [concatenate(chosen)] if chosen else []


def _without_run(experiment: Experiment) -> list[str]:
    """The enrolled people whom no run of the attackers covers; nobody where the attackers have no own run."""
    runs = [run.vectors for run in experiment.runs if run.own]
    covered = {speaker for run in runs for speaker in run.names}
    enrolled = experiment.enrollment(experiment.original).names
    return [speaker for speaker in enrolled if speaker not in covered] if runs else []


def _release_links(experiment: Experiment, seed: int) -> tuple[float | None, float]:
    """How often chance would link released recordings to released ones as well: of everybody, or of those whom no run
    of the attackers covers (twice the smaller probability where both are looked at); and how far everybody is linked
    so, from chance (0) to certainty (1)."""
    known, tried = experiment.enrollment(experiment.anonymized), experiment.trials(experiment.anonymized)
    everybody = release_linking(known, tried, seed=seed)
    links = [everybody]
    left = set(_without_run(experiment))
    if left:
        rest = [side.take([speaker in left for speaker in side.speakers]) for side in (known, tried)]
        links.append(release_linking(*rest, seed=seed))
    found = [p for p, _ in filter(None, links)]
    return min(1.0, len(found) * min(found)) if found else None, 0.0 if everybody is None else everybody[1]


def _ids_p(experiment: Experiment, seed: int) -> float | None:
    """How often chance would match released recordings with as many different ones of other people: originals, or those
    of the attackers' first run."""
    run = [run.vectors for run in experiment.runs if run.own][:1]
    groups = list(experiment.groups.values())
    return exchanged_ids([experiment.original, *run], experiment.anonymized, groups, seed=seed)


def _length_p(experiment: Experiment) -> float | None:
    """How often chance would relate the lengths of vectors as closely as in the closer of two comparisons: of original
    and of anonymized enrollment with the trials. Twice the smaller probability, as two are looked at."""
    tried = experiment.trials(experiment.anonymized)
    enrolled = [experiment.enrollment(experiment.original)]
    with suppress(NotPossibleError):
        enrolled.append(experiment.copies().vectors)
    probabilities = [related[1] for side in enrolled if (related := length_correlation(side, tried)) is not None]
    return min(1.0, 2 * min(probabilities)) if probabilities else None
