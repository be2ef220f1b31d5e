"""What a report is about: results in memory or of a run folder, the similarity matrices, and the day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.parquet_bounds import read_table
from veilmeter.metrics.similarity.matrices import Kind
from veilmeter.results.model import Results
from veilmeter.results.run_folder import read_results, table_of

if TYPE_CHECKING:
    from veilmeter.assessment import Assessment

Subject: TypeAlias = "str | Path | Results | Assessment"
QUADRANTS: tuple[Kind, ...] = ("OO", "OP", "PP")
MATRICES = "matrices.parquet"


@dataclass(frozen=True, eq=False)
class Matrices:
    """The similarity matrices, all with the same speakers in the same order."""

    speakers: tuple[str, ...]
    quadrants: Mapping[Kind, NDArray[np.float64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported:
    """`folder` is where the run lies, if anywhere; `created` the day on which it was made, if that is known."""

    results: Results
    matrices: Matrices | None = None
    folder: Path | None = None
    created: str = ""


def reported(subject: Subject) -> Reported:
    """A run folder is read; results that are in memory are taken as they are."""
    if isinstance(subject, Results):
        return Reported(results=subject)
    if isinstance(subject, str | Path):
        folder = Path(subject)
        if folder.is_file():
            folder = folder.parent
        results = read_results(folder)
    else:
        results = subject.results
        if subject.folder is None:
            return Reported(results=results)
        folder = subject.folder
    path = table_of(folder, results, MATRICES)
    matrices = None if path is None else read_matrices(path)
    return Reported(results=results, matrices=matrices, folder=folder, created=_day(folder))


def _day(folder: Path) -> str:
    with suppress(OSError, ValueError, AttributeError, RecursionError):  # the page does without the day
        return str(json.loads((folder / "timings.json").read_text(encoding="utf-8")).get("created", ""))[:10]
    return ""


def read_matrices(path: Path) -> Matrices:
    """The table that the assessment wrote, one row group per quadrant."""
    names: dict[str, int] = {}
    cells = []
    for table in read_table(path, ("quadrant", "row", "column"), ("similarity",)):
        kind, row, column = (table.column(name).combine_chunks() for name in ("quadrant", "row", "column"))
        # Arrow's own way to numpy would import pandas, which takes longer than reading the table.
        labels = [
            np.array([names.setdefault(speaker, len(names)) for speaker in side.dictionary.to_pylist()], np.int64)
            for side in (row, column)
        ]
        places = [label[np.from_dlpack(side.indices)] for label, side in zip(labels, (row, column), strict=True)]
        kinds = np.array(kind.dictionary.to_pylist(), object)[np.from_dlpack(kind.indices)]
        cells.append((kinds, *places, np.from_dlpack(table.column("similarity").combine_chunks())))
    if sum(len(kinds) for kinds, *_ in cells) < len(names) ** 2:
        raise InputError("it names more people than it compares", path=path, fix="run the assessment again")
    quadrants = {name: np.full((len(names), len(names)), np.nan) for name in QUADRANTS}
    for kinds, rows, columns, values in cells:
        for name, matrix in quadrants.items():
            of_this_kind = kinds == name
            matrix[rows[of_this_kind], columns[of_this_kind]] = values[of_this_kind]
    return Matrices(tuple(names), quadrants)
