"""The target voices of what was released: from a list, from the manifest, or found where recordings lie together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers.anonymize_corpus import manifest_path
from veilmeter.anonymizers.base import Draw
from veilmeter.anonymizers.manifest import Entry, read_manifest
from veilmeter.assessment.case import AssessmentCase
from veilmeter.assessment.drawing import compared_trials, trial_conversations
from veilmeter.assessment.measuring import Job
from veilmeter.assessment.tasks import Arrays
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.target_voices import TargetVoices, found_target_voices, shared, target_voice_effect

COLUMNS = ("target_voice", "target_speaker", "target", "pseudo_speaker", "pseudo_voice", "pseudonym")
BINS = 5  # of a number that was drawn, such as a coefficient


def target_voices(
    case: AssessmentCase, jobs: Mapping[str, Job], arrays: Mapping[str, Arrays], folders: Sequence[Path], *, seed: int
) -> TargetVoices | None:
    """How much of the attackers' error comes from where the target voices of the release lie. `arrays` are what the
    attackers' tasks gave, `folders` where the release was read from. None where nothing is drawn, or nobody shares."""
    released = case.tried(case.anonymized)
    entries = _manifests(folders)
    drawn = {entry.draw for entry in entries.values()}
    if drawn == {Draw.NONE.value}:
        return None
    scores, own = {}, {}
    rows: NDArray[np.int64] | None = None
    tried_in: dict[Any, tuple[NDArray[np.int64], NDArray[np.intp]]] = {}
    for name, job in jobs.items():
        if name in case.own or job.attacker.apart or not job.attacker.is_attack or "scores" not in arrays.get(name, {}):
            continue
        if 1 not in job.asked.lengths:
            continue
        case_of = (tuple(job.test.utterances), job.scoring.names, job.asked.seed)
        if case_of not in tried_in:
            tried_in[case_of] = _compared(job)
        heard, kept = tried_in[case_of]
        table = arrays[name]["scores"]
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
    given = known_target_voices(tried, entries)
    if given is not None and shared(given, first) > 0:
        return target_voice_effect(scores, own, given, known=True)
    return target_voice_effect(scores, own, found_target_voices(tried.vectors, seed=seed), known=False)


def _compared(job: Job) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The recordings that were tried one by one, and the places of those in which attackers are compared."""
    spoken = trial_conversations(job.test, 1, len(job.scoring.names), job.asked.seed)
    if spoken is None:
        return np.zeros(0, np.int64), np.zeros(0, np.intp)
    return spoken.utterances[:, 0], compared_trials(job.test, spoken, job.scoring.names)


def known_target_voices(tried: Embeddings, entries: Mapping[str, Entry]) -> NDArray[np.int64] | None:
    """Each recording's target voice as a number, by a column of the anonymized side or by the manifest; a single number
    that was drawn is cut into a few ranges. None where neither says it."""
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
