"""Parquet tables of a run: one row a trial, a speaker, a pair of speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.core.files import whole_file
from veilmeter.results.run_folder import write_table

if TYPE_CHECKING:
    from veilmeter.assessment.measuring import Job


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
    from veilmeter.core.intervals import wilson

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
    """The similarity matrices in long form: quadrant, row, column, similarity; one row group a quadrant.

    Ids stand once, in a dictionary: of 5,000 speakers there are 25 million pairs.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = len(names)
    people, kinds = pa.array(list(names), pa.string()), pa.array(sorted(matrices), pa.string())
    codes = np.arange(n, dtype=np.int32)
    rows, columns = (
        pa.DictionaryArray.from_arrays(index, people) for index in (np.repeat(codes, n), np.tile(codes, n))
    )
    with whole_file(path) as temporary:
        writer = None
        for number, kind in enumerate(sorted(matrices)):
            quadrant = pa.DictionaryArray.from_arrays(np.full(n * n, number, np.int32), kinds)
            values = np.asarray(matrices[kind], float).ravel()
            table = pa.table({"quadrant": quadrant, "row": rows, "column": columns, "similarity": values})
            writer = writer or pq.ParquetWriter(temporary, table.schema, compression="zstd")
            writer.write_table(table, row_group_size=max(1, n * n))
        if writer is not None:
            writer.close()
