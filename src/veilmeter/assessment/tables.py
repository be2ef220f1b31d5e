"""Parquet tables of a run: one row per trial, per speaker, per pair of speakers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.measuring import Job
from veilmeter.assessment.tasks import ATTACKER, Arrays, TaskResult
from veilmeter.core.files import whole_file
from veilmeter.results.model import AttackerResult, Results
from veilmeter.results.run_folder import write_table


def write_tables(
    folder: Path, results: Results, jobs: Mapping[str, Job], done: Mapping[str, tuple[TaskResult, Arrays]]
) -> set[str]:
    """Every table of a run; the names of the files."""
    genders = {person.speaker: person.gender for person in results.people.persons}
    write_speakers(folder / "speakers.parquet", results.attackers.values(), genders)
    written = {"speakers.parquet"}
    for name, job in jobs.items():
        _, arrays = done[f"{ATTACKER}{name}"]
        if "scores" in arrays and write_scores(folder / f"scores-{name}.parquet", job, arrays["scores"]):
            written.add(f"scores-{name}.parquet")
    if "similarity" in done and not done["similarity"][0].not_possible:
        measured, arrays = done["similarity"]
        write_matrices(folder / "matrices.parquet", measured.names, arrays)
        written.add("matrices.parquet")
    return written


def write_scores(path: Path, job: Job, scores: NDArray[np.float64]) -> bool:
    """One row per trial of one utterance: enrolled speaker, utterance, target, score. Nothing is written where
    utterances were drawn, or the shortest conversation is longer than one."""
    import pyarrow as pa

    enrolled, tested = list(job.scoring.names), list(job.test.names)

    def coded(names: list[str], codes: NDArray[np.integer]) -> Any:
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
            "enrolment_speaker": coded(enrolled, rows),
            "utterance": coded(job.test.utterances[order].tolist(), columns),
            "trial_speaker": coded(tested, spoken),
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


def write_matrices(path: Path, names: Sequence[str], matrices: Mapping[str, Any]) -> None:
    """The similarity matrices in long form: quadrant, row, column, similarity; one row group per quadrant.

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
            packed = {name: "none" if name == "similarity" else "zstd" for name in table.column_names}
            writer = writer or pq.ParquetWriter(
                temporary,
                table.schema,
                compression=packed,
                use_dictionary=["quadrant", "row", "column"],
                write_statistics=False,
            )
            writer.write_table(table, row_group_size=max(1, n * n))
        if writer is not None:
            writer.close()
