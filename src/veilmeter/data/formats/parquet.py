"""Our own store of vectors: a folder of Parquet shards, each whole in itself, so that a broken one costs only itself.

Columns: `utterance`, `speaker`, one for each attribute, `duration`, and `vector` (fixed-size list of float32). The
schema's metadata holds JSON under the key `veilmeter`. Pages carry checksums, which are verified when read.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import make_folder, whole_file
from veilmeter.core.parquet_bounds import arrow_errors, largest_size, refuse_expansion, refuse_nested, texts
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import RawVectors

METADATA_KEY = b"veilmeter"
ROW_GROUP = 4096  # rows decoded at a time; with 256 numbers each, some megabytes
_RESERVED = ("utterance", "speaker", "duration", "vector")
# Above this many bytes of vectors a store is put into a memory map instead of into memory.
MAP_ABOVE = 1 << 29


@dataclass(frozen=True, slots=True)
class Shard:
    """One readable shard: its file, how many vectors of which length, and the metadata it was written with."""

    path: Path
    rows: int
    dimension: int
    columns: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)


def write_shard(
    path: str | Path,
    embeddings: Embeddings,
    columns: Mapping[str, Sequence[str]] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Write one shard (or a store of a single file); it appears whole or not at all, readable by its owner only."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    more = {**embeddings.attributes, **(columns or {})}
    for name, column in more.items():
        if name in _RESERVED or not name:
            raise InputError(f"a further column can't be called {name!r}", path=path)
        if len(column) != len(embeddings):
            raise InputError(f"column {name!r} has {len(column)} entries for {len(embeddings)} vectors", path=path)
    arrays: dict[str, Any] = {
        "utterance": pa.array(embeddings.utterances, pa.string()),
        "speaker": pa.array(embeddings.speakers, pa.string()),
        **{name: pa.array([str(value) for value in column], pa.string()) for name, column in more.items()},
    }
    if embeddings.durations is not None:
        arrays["duration"] = pa.array(embeddings.durations, pa.float64())
    flat = pa.array(np.ascontiguousarray(embeddings.vectors, np.float32).reshape(-1))
    arrays["vector"] = pa.FixedSizeListArray.from_arrays(flat, embeddings.dimension)
    table = pa.table(arrays)
    table = table.replace_schema_metadata({METADATA_KEY: json.dumps(dict(metadata or {})).encode()})
    with whole_file(path) as temporary:
        pq.write_table(
            table,
            temporary,
            row_group_size=ROW_GROUP,
            compression={name: "none" if name == "vector" else "zstd" for name in arrays}
            | {"vector.list.element": "none"},
            use_dictionary=[name for name in arrays if name not in ("vector", "duration", "utterance")],
            write_statistics=False,
            write_page_checksum=True,
        )
    return Path(path)


def write_store(
    folder: str | Path, embeddings: Embeddings, *, shard_rows: int = 65536, metadata: Mapping[str, Any] | None = None
) -> None:
    """A whole store at once: part-00000.parquet, part-00001.parquet..."""
    make_folder(folder)
    for number, start in enumerate(range(0, len(embeddings), shard_rows)):
        rows = np.arange(start, min(start + shard_rows, len(embeddings)))
        write_shard(Path(folder) / f"part-{number:05d}.parquet", embeddings.take(rows), metadata=metadata)


def shard_files(path: str | Path) -> list[Path]:
    """The shards of a folder in the order of their names, or the file itself."""
    root = Path(path)
    return [root] if root.is_file() else sorted(p for p in root.glob("*.parquet") if p.is_file())


def open_shards(path: str | Path) -> tuple[list[Shard], list[Problem]]:
    """The shards whose footers can be read, and those that can't. The vectors themselves are not read yet."""
    shards, problems = [], []
    for file in shard_files(path):
        try:
            shards.append(_open_shard(file))
        except InputError as error:
            problems.append(Problem("corrupt-shard", error.what, str(file), fix=error.fix or "remove the file"))
    return shards, problems


def _open_shard(file: Path) -> Shard:
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_expansion(file)
    with arrow_errors(file), pq.ParquetFile(file) as opened:
        schema, rows = opened.schema_arrow, int(opened.metadata.num_rows)
        names = tuple(str(name) for name in schema.names)
        for name in ("utterance", "speaker", "vector"):
            if names.count(name) != 1:
                raise InputError(
                    f"no single column {name!r}",
                    path=file,
                    fix="vectors are in columns utterance, speaker, vector",
                )
        kind = schema.field("vector").type
        listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)  # as pandas writes them
        if not (listed or pa.types.is_fixed_size_list(kind)) or not pa.types.is_floating(kind.value_type):
            raise InputError(
                f"column 'vector' holds {kind}, not vectors",
                path=file,
                fix="write it as lists of float32, all of one length",
            )
        refuse_nested(schema, (name for name in names if name != "vector"), file)
        _refuse_wordy_durations(schema, file)
        dimension = _first_length(opened) if listed else int(kind.list_size)
        if rows < 0 or dimension < 1:
            raise InputError(f"it claims {rows} vectors of {dimension} numbers", path=file)
        if rows * dimension * 4 > largest_size(file):
            raise InputError(f"it claims {rows} vectors, far more than the file can hold", path=file)
        try:
            metadata = json.loads((schema.metadata or {}).get(METADATA_KEY, b"{}"))
        except (ValueError, RecursionError):
            metadata = {}
        return Shard(file, rows, dimension, names, metadata if isinstance(metadata, dict) else {})


def _refuse_wordy_durations(schema: Any, file: Path) -> None:
    import pyarrow as pa

    if "duration" in schema.names:
        kind = schema.field("duration").type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            what = f"column 'duration' holds {str(kind)[:80]}, not seconds"
            raise InputError(what, path=file, fix="write it as float64")


def _first_length(opened: Any) -> int:
    """How many numbers the first vector of a column of lists has."""
    for batch in opened.iter_batches(batch_size=1, columns=["vector"], use_threads=False):
        return int(batch.column(0).value_lengths()[0].as_py() or 0)
    return 0


def read_columns(shard: Shard, names: Sequence[str]) -> dict[str, list[str]]:
    """Text columns of a shard (the ids of what is done already, for one), without its vectors."""
    import pyarrow.parquet as pq

    missing = [name for name in names if name not in shard.columns]
    if missing:
        raise InputError(f"no column {missing[0]!r}", path=shard.path)
    with arrow_errors(shard.path):
        table = pq.read_table(
            shard.path, columns=list(names), read_dictionary=list(names), page_checksum_verification=True
        )
        return {name: texts(_as_text(table.column(name)), shard.path) for name in names}


def read_vectors(shard: Shard) -> Iterator[NDArray[np.float32]]:
    """The vectors of a shard, some thousand rows at a time."""
    import pyarrow.parquet as pq

    with (
        arrow_errors(shard.path),
        pq.ParquetFile(shard.path, page_checksum_verification=True, pre_buffer=False) as opened,
    ):
        for batch in opened.iter_batches(batch_size=ROW_GROUP, columns=["vector"], use_threads=False):
            column = batch.column(0)
            if column.null_count:
                raise InputError("some rows have no vector", path=shard.path)
            if hasattr(column, "value_lengths"):
                lengths = column.value_lengths().to_numpy(zero_copy_only=False)
                if (lengths != shard.dimension).any():
                    other = int(lengths[lengths != shard.dimension][0])
                    what = f"its vectors differ in length: the first has {shard.dimension} numbers, another {other}"
                    raise InputError(what, path=shard.path)
            flat = column.flatten().to_numpy(zero_copy_only=False)
            yield flat.reshape(len(column), shard.dimension).astype(np.float32, copy=False)


def read_store(path: str | Path, *, memory_map: bool | None = None) -> RawVectors:
    """All shards as one. Corrupt ones are skipped and named.

    With `memory_map` (by default above half a gigabyte of vectors) the vectors are put one row group after the other
    into a temporary file (where TMPDIR says) that is mapped, so that a million of them needs little memory; the file
    has no name any more and vanishes with the array.
    """
    root = Path(path)
    shards, problems = open_shards(root)
    if (root / ".unfinished").is_dir():
        what = "the extraction that writes this store has not finished"
        raise InputError(what, path=root, fix="run the same `veilmeter embed` again")
    if not shards:
        return RawVectors(root, [], [], problems=problems)
    dimensions, counts = np.unique([s.dimension for s in shards], return_counts=True)
    dimension = int(dimensions[np.argmax(counts)])
    good: list[Shard] = []
    for shard in shards:
        if shard.dimension == dimension:
            good.append(shard)
        else:
            what = f"its {shard.rows} vectors have {shard.dimension} numbers, those of most shards {dimension}"
            problems.append(Problem("differing-length", what, str(shard.path), fix="extract them again"))
    total = sum(shard.rows for shard in good)
    mapped = total * dimension * 4 > MAP_ABOVE if memory_map is None else memory_map
    table = _map_memory(total, dimension) if mapped and total else np.empty((total, dimension), np.float32)
    columns: dict[str, list[str]] = {"utterance": [], "speaker": []}
    durations: list[NDArray[np.float64]] = []
    filled = 0
    for shard in good:
        try:
            part, seconds = _read_rows(shard)
            end = filled
            for vectors in read_vectors(shard):
                if end + len(vectors) > filled + shard.rows:
                    raise InputError("it holds more vectors than it says", path=shard.path)
                table[end : end + len(vectors)] = vectors
                end += len(vectors)
            if end - filled != shard.rows or len(part["utterance"]) != shard.rows:
                raise InputError("its columns differ in length", path=shard.path)
        except InputError as error:
            problems.append(Problem("corrupt-shard", error.what, str(shard.path), fix="make this shard again"))
            continue
        for name in part:  # in the file's order, the same in every process
            columns.setdefault(name, [""] * filled)
        for name, column in columns.items():
            column.extend(part.get(name, [""] * shard.rows))
        durations.append(seconds)
        filled = end
    speakers, utterances = columns.pop("speaker"), columns.pop("utterance")
    seconds = np.concatenate(durations) if durations else np.zeros(0)
    known = seconds if np.isfinite(seconds).any() else None
    return RawVectors(root, utterances, table[:filled], speakers, columns, known, problems)


def _read_rows(shard: Shard) -> tuple[dict[str, list[str]], NDArray[np.float64]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with arrow_errors(shard.path):
        wanted = [name for name in shard.columns if name != "vector"]
        words = [name for name in wanted if name != "duration"]
        table = pq.read_table(shard.path, columns=wanted, read_dictionary=words, page_checksum_verification=True)
        columns = {name: texts(_as_text(table.column(name)), shard.path) for name in words}
        if "duration" in table.column_names:
            seconds = table.column("duration").cast(pa.float64()).to_numpy().astype(np.float64)
        else:
            seconds = np.full(table.num_rows, np.nan)
        return columns, seconds


def _as_text(column: Any) -> Any:
    """Numbers and dates as words; words as they are, each distinct one once."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def _map_memory(rows: int, dimension: int) -> NDArray[np.float32]:
    with tempfile.TemporaryFile(prefix="veilmeter-") as handle:
        handle.truncate(rows * dimension * 4)
        return np.memmap(handle, np.float32, "r+", shape=(rows, dimension))
