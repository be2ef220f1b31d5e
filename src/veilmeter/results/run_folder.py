"""The folder of a run: the only module that knows how `Results` are stored in results.json and in tables."""

from __future__ import annotations

import dataclasses
import math
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, MissingInput
from veilmeter.core.estimate import Estimate
from veilmeter.core.files import read_input_json, sha256, to_json, whole_file, write_text
from veilmeter.core.parquet_bounds import read_table
from veilmeter.core.typed_json import MalformedError, decode, encode
from veilmeter.metrics.measure import label_of, measure_behind
from veilmeter.metrics.similarity.matrices import KINDS, Kind
from veilmeter.results.criteria import strongest
from veilmeter.results.levels import ORDER
from veilmeter.results.model import AttackerResult, Criterion, People, Results, Verdict
from veilmeter.results.trust import doubting_checks

SCHEMA = 4
RESULTS, TIMINGS = "results.json", "timings.json"
LARGEST_RESULTS = 1 << 27  # bytes; results of 10,000 people have a tenth of that
TABLES = "tables"
ESTIMATES = "estimates.parquet"
MATRICES = "matrices.parquet"
GROUPS = "groups.parquet"
RENAMED = {"settings": "parameters"}  # what a field is called in the file


@dataclass(frozen=True, eq=False)
class Matrices:
    """The similarity matrices, all with the same speakers in the same order."""

    speakers: tuple[str, ...]
    quadrants: Mapping[Kind, NDArray[np.float64]]


def results_to_json(results: Results) -> dict[str, Any]:
    """As results.json has them."""
    form = encode(results, labels=label_of)
    return {"schema": SCHEMA} | {RENAMED.get(name, name): value for name, value in form.items()}


def results_from_json(form: Any, *, path: str | Path | None = None) -> Results:
    """The reverse of `results_to_json`, in any order of the keys; an InputError where the form is broken or contradicts
    itself."""
    again = "run the assessment again"
    if not isinstance(form, dict):
        raise InputError("this is not the result of an assessment", path=path, fix="give the folder of `assess --out`")
    schema = form.get("schema")
    if isinstance(schema, int) and not isinstance(schema, bool) and schema < SCHEMA:
        raise InputError(f"written by an earlier version (schema {schema}); {again}", path=path)
    if isinstance(schema, int) and not isinstance(schema, bool) and schema > SCHEMA:
        raise InputError("this run was written by a newer version", path=path, fix="update veilmeter")
    if schema != SCHEMA:
        raise InputError("this is not the result of an assessment", path=path, fix="give the folder of `assess --out`")
    original = {name: field for field, name in RENAMED.items()}
    fields = {original.get(name, name): value for name, value in form.items() if name != "schema"}
    try:
        results = cast(Results, decode(Results, fields, labels=label_of))
        _refuse_contradictions(results)
    except MalformedError as problem:
        raise InputError(f"these results are broken: {problem}", path=path, fix=again) from None
    return results


def read_results(folder: str | Path) -> Results:
    """The results of a run, from its folder or from results.json itself.

    Parameters
    ----------
    folder : str or Path
        The folder that `assess` wrote, or its results.json.

    Returns
    -------
    Results
        Everything that was measured and concluded.

    Raises
    ------
    InputError
        If results are missing, broken or of another version.

    Examples
    --------
    >>> read_results("run/").verdict.level  # doctest: +SKIP
    'high'
    """
    path = Path(folder)
    file = path / RESULTS if path.is_dir() else path
    try:
        form = read_input_json(file, most=LARGEST_RESULTS)
    except MissingInput:
        raise InputError("no results found", path=file, fix="run `veilmeter assess ... --out RUN` first") from None
    return results_from_json(form, path=file)


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """A finished assessment: what `assess` gives.

    Attributes
    ----------
    results : Results
        Everything that was measured and concluded.
    folder : Path or None
        The folder that they were written to, if any.
    timings : mapping
        Seconds of each stage; they differ between runs, results do not.
    left_out : int
        The number of recordings that were given and could not be assessed.
    real_time_factor : float or None
        Processor seconds per second of speech, where veilmeter ran the anonymizer.
    matrices : Matrices or None
        Similarity matrices, for the report.
    created : str
        When it was made.
    """

    results: Results
    folder: Path | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    left_out: int = 0
    real_time_factor: float | None = None
    matrices: Matrices | None = None
    created: str = ""

    @property
    def trustworthy(self) -> bool:
        """Whether every check that the assessment made of itself has passed."""
        return self.results.verdict.trustworthy

    @property
    def headline(self) -> str:
        """The verdict in words."""
        return self.results.headline

    @property
    def verdict(self) -> Verdict:
        """The level of the worst case, whether it can be relied on, and what is found."""
        return self.results.verdict

    @property
    def attackers(self) -> Mapping[str, AttackerResult]:
        """By attacker, what it has, how it compared, and its `estimates`."""
        return self.results.attackers

    @property
    def people(self) -> People:
        """Everybody by falling risk; `people.to_frame()` names them."""
        return self.results.people

    def to_frame(self) -> Any:
        """Every estimate, one row per attacker or part, group, measure and point."""
        return self.results.to_frame()

    def report(self, out: str | Path, **options: Any) -> Path:
        """Write the report; see `veilmeter.write_report`, whose options `options` are."""
        import veilmeter  # the report is made from an assessment, never the other way round, but for this

        return veilmeter.write_report(self, out, **options)

    def __repr__(self) -> str:
        return f"Assessment({repr(self.results).removeprefix('Results(')}"

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


RunLike = str | Path | Results | Assessment


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run's results, and the folder that holds its tables, if there is one."""

    results: Results
    folder: Path | None = None


def open_run(run: RunLike) -> OpenRun:
    """A run that is given as a folder, its results.json, results, or an assessment in memory."""
    if isinstance(run, Results):
        return OpenRun(run)
    if isinstance(run, str | Path):
        path = Path(run)
        return OpenRun(read_results(path), path.parent if path.is_file() else path)
    if not isinstance(run, Assessment):
        raise InputError(f"a {type(run).__name__} is not a run", fix="give what assess() gave, or the folder of a run")
    return OpenRun(run.results, run.folder)


def write_results(folder: Path, results: Results) -> Results:
    """Writes results.json and tables/estimates.parquet; gives the results with the digests of all tables."""
    tables = folder / TABLES
    write_table(tables / ESTIMATES, results.columns())
    digests = {file.name: sha256(file) for file in sorted(tables.glob("*.parquet"))}
    with_digests = dataclasses.replace(results, tables=digests)
    write_text(folder / RESULTS, to_json(results_to_json(with_digests)) + "\n")
    return with_digests


@dataclass(eq=False)
class Costs:
    """The cost of a run: processor seconds by task; those for extracting vectors, with the number of recordings; those
    of the anonymizer per second of speech, where veilmeter ran it; and the machine. It is not part of the results."""

    seconds: dict[str, float] = field(default_factory=dict)
    extracted: tuple[float, int] = (0.0, 0)
    anonymizer: float | None = None
    machine: str = ""

    def add_extraction(self, extracted: tuple[float, int]) -> None:
        """Vectors that are kept cost nothing: what an earlier run took for them stays."""
        self.extracted = extracted if extracted[1] else self.extracted

    def to_json(self, tasks: Iterable[object]) -> dict[str, Any]:
        seconds, recordings = self.extracted
        return {
            "processor_seconds": {str(task): self.seconds.get(str(task)) for task in tasks},
            "extraction": {"processor_seconds": round(seconds, 3), "recordings": recordings},
            "machine": _machine(),
        }


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def read_costs(folder: Path) -> Costs:
    """What timings.json tells; nothing where it is missing or damaged."""
    with suppress(InputError, AttributeError, KeyError, TypeError, ValueError):
        form = read_input_json(folder / TIMINGS)
        seconds, factor = form.get("processor_seconds", {}), form.get("real_time_factor")
        extraction = form.get("extraction") or {"processor_seconds": 0.0, "recordings": 0}
        return Costs(
            {str(task): float(took) for task, took in seconds.items() if isinstance(took, int | float)},
            (float(extraction["processor_seconds"]), int(extraction["recordings"])),
            float(factor) if isinstance(factor, int | float) else None,
            str(form.get("machine", "")),
        )
    return Costs()


def table_of(folder: Path, results: Results, name: str) -> Path | None:
    """A table of the run, such as speakers.parquet; None where the run has none. One that was changed is refused."""
    if name not in results.tables:
        return None
    path = folder / TABLES / name
    if not path.is_file():
        raise InputError("this table of the run is missing", path=path, fix="run the assessment again")
    if sha256(path) != results.tables[name]:
        raise InputError("this table is not the one that the run wrote", path=path, fix="run the assessment again")
    return path


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Columns as Parquet; whole or not at all. A column of words and numbers is written as words."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def uniform(column: Any) -> Any:
        if isinstance(column, list) and any(isinstance(cell, str) for cell in column):
            return [None if cell is None else str(cell) for cell in column]
        return column

    with whole_file(path) as temporary:
        table = pa.table({name: uniform(column) for name, column in columns.items()})
        words = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
        # Scores are as good as random in their last digits: packing them takes time and spares hardly any room.
        packed = {field.name: "zstd" if field.name in words else "none" for field in table.schema}
        # The least and the greatest id of every page tell nobody anything and take longer than all the rest.
        bounded = [field.name for field in table.schema if not pa.types.is_dictionary(field.type)]
        pq.write_table(table, temporary, compression=packed, use_dictionary=words, write_statistics=bounded)


def write_matrices(path: Path, matrices: Matrices) -> None:
    """The similarity matrices in long form: quadrant, row, column, similarity; one row group per quadrant.

    Ids are written once, in a dictionary: 5,000 speakers make 25 million pairs.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, kinds = len(matrices.speakers), sorted(matrices.quadrants)
    people, words = pa.array(list(matrices.speakers), pa.string()), pa.array(kinds, pa.string())
    codes = np.arange(n, dtype=np.int32)
    rows, columns = (
        pa.DictionaryArray.from_arrays(index, people) for index in (np.repeat(codes, n), np.tile(codes, n))
    )
    with whole_file(path) as temporary:
        writer = None
        for number, kind in enumerate(kinds):
            quadrant = pa.DictionaryArray.from_arrays(np.full(n * n, number, np.int32), words)
            values = np.asarray(matrices.quadrants[kind], float).ravel()
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
    quadrants = {name: np.full((len(names), len(names)), np.nan) for name in KINDS}
    for kinds, rows, columns, values in cells:
        for name, matrix in quadrants.items():
            of_this_kind = kinds == name
            matrix[rows[of_this_kind], columns[of_this_kind]] = values[of_this_kind]
    return Matrices(tuple(names), quadrants)


def _refuse_contradictions(results: Results) -> None:
    """A file may be whole and still say two things at once."""
    for kind, holders in (("attackers", results.attackers), ("parts", results.parts), ("criteria", results.criteria)):
        for name, holder in cast(Mapping[str, Any], holders).items():
            if holder.name != name:
                raise MalformedError(f"{kind}.{name}", f"its own name is {holder.name!r}")
    verdict = results.verdict
    doubted = [check.name for check in doubting_checks(results)]
    if verdict.trustworthy and doubted:
        raise MalformedError("verdict", f"it is called trustworthy, yet the check {doubted[0]!r} failed")
    _refuse_milder_verdict(results)
    for place, estimates in results.places():
        for point in estimates:
            _refuse_impossible_value(place, point)
    for name, criterion in results.criteria.items():
        _refuse_foreign_figure(results, name, criterion)


def _refuse_milder_verdict(results: Results) -> None:
    """The verdict's level is the worst of the risks, and never low where somebody is unprotected."""
    verdict = results.verdict
    risks = {name: criterion.level for name, criterion in results.criteria.items() if criterion.risk}
    if risks:
        worst = max(risks, key=lambda name: ORDER.index(risks[name]))
        if ORDER.index(verdict.level) < ORDER.index(risks[worst]):
            raise MalformedError("verdict", f"its level is {verdict.level}, yet that of {worst} is {risks[worst]}")
    if verdict.level == "low" and results.people.unprotected:
        raise MalformedError("verdict", f"its level is low, yet {results.people.unprotected[0]!r} is unprotected")


def _refuse_impossible_value(place: str, point: Estimate) -> None:
    entry = measure_behind(point)
    # Shares are bounded by their definition; estimates of information and predicted quality may leave a scale a little.
    if entry is None or not math.isfinite(point.value) or entry.unit != "percent":
        return
    slack = 1e-6 * max(1.0, abs(point.value))
    if not entry.low - slack <= point.value <= entry.high + slack:
        raise MalformedError(f"{place}.{point.name}", f"{point.label} can't be {point.value:g}")


OF_ATTACKERS = ("linking", "singling_out", "disclosure")  # criteria whose figure is an attacker's


def _refuse_foreign_figure(results: Results, name: str, criterion: Criterion) -> None:
    """The figure that a criterion rests on is one that its attacker has."""
    holder = results.attackers.get(criterion.attacker)
    if holder is None:
        if name in OF_ATTACKERS:
            raise MalformedError(f"criteria.{name}", f"its attacker {criterion.attacker!r} is not in the results")
        return
    estimates = [holder.estimates, *(group for groups in holder.by.values() for group in groups.values())]
    figure = criterion.estimate
    alike = [point for measured in estimates for point in measured.points(figure.name) if point.at == figure.at]
    if alike and not any(point.value == figure.value or math.isnan(point.value) for point in alike):
        chosen = strongest(results) if name == "linking" and not criterion.group else None
        if chosen is not None and math.isclose(chosen.estimate.value, figure.value, rel_tol=1e-9):
            return  # its attacker was chosen on other people than it is evaluated on
        raise MalformedError(
            f"criteria.{name}", f"it rests on {figure.value:g}, yet {criterion.attacker} has {alike[0].value:g} there"
        )
