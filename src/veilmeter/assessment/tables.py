"""Parquet tables of a run: one row a trial, a speaker, a pair of speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.files import whole_file

if TYPE_CHECKING:
    from veilmeter.assessment.measuring import Job


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with whole_file(path) as temporary:
        pq.write_table(pa.table(dict(columns)), temporary, compression="zstd")


def write_scores(path: Path, job: Job, scores: Any) -> None:
    """One row a trial of one utterance: enrolment speaker, utterance, target, score."""
    import pyarrow as pa

    enrolled = np.array(job.enrol.names, object)
    if scores.shape != (len(enrolled), len(job.test)):
        return  # utterances were drawn, or the shortest conversation is longer than one
    keep = np.ones(scores.shape, bool) if job.mask is None else job.mask
    rows, columns = np.nonzero(keep)
    # The columns of a matrix are conversations in the order of speakers; those of length 1 are single utterances.
    order = np.argsort(job.test.codes, kind="stable")
    if job.mask is not None:
        rows, columns = np.nonzero(job.mask[:, order])
    utterances = job.test.utterances[order][columns]
    write_table(
        path,
        {
            "enrolment_speaker": pa.array(enrolled[rows].tolist()).dictionary_encode(),
            "utterance": pa.array(utterances.tolist()).dictionary_encode(),
            "trial_speaker": pa.array(job.test.speakers[order][columns].tolist()).dictionary_encode(),
            "target": enrolled[rows] == job.test.speakers[order][columns],
            "score": scores[rows, columns],
        },
    )


def write_speakers(path: Path, people: Mapping[str, Sequence[Mapping[str, Any]]], genders: Mapping[str, str]) -> None:
    """One row a speaker, attacker and conversation length: how often they are linked among all enrolled."""
    from veilmeter.intervals import wilson

    rows = []
    for attacker, found in people.items():
        for one in found:
            n = int(one["conversations"])
            low, high = wilson(float(one["linked"]) * n, n)
            mark = (one["speaker"], genders.get(one["speaker"], ""), attacker, one["length"])
            rows.append((*mark, one["linked"], low, high, n, one["among"]))
    names = ("speaker", "gender", "attacker", "length", "linked", "low", "high", "conversations", "among")
    write_table(path, {name: [row[i] for row in rows] for i, name in enumerate(names)})


def write_matrices(path: Path, names: Sequence[str], matrices: Mapping[str, Any]) -> None:
    """The similarity matrices in long form: quadrant, row speaker, column speaker, similarity."""
    import pyarrow as pa

    n = len(names)
    people = np.array(list(names), object)
    write_table(
        path,
        {
            "quadrant": pa.array([kind for kind in sorted(matrices) for _ in range(n * n)]).dictionary_encode(),
            "row": pa.array(np.tile(np.repeat(people, n), len(matrices)).tolist()).dictionary_encode(),
            "column": pa.array(np.tile(np.tile(people, n), len(matrices)).tolist()).dictionary_encode(),
            "similarity": np.concatenate([np.asarray(matrices[kind]).ravel() for kind in sorted(matrices)]),
        },
    )
