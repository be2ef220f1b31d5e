"""Datasets of the hub with the audio inside: Parquet files (`data/train-00000-of-00002.parquet`) and folders that
`save_to_disk` wrote (`dataset_info.json`, `state.json`, Arrow files).

The audio is a column of {bytes, path}. It is unpacked once into the cache, in a process with limited memory, and read
from there. Ids are those of a column, or else the names of the files inside, if these differ; never numbers of rows.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import PRIVATE_FILE, cache_folder, make_folder, only_one, read_input_json, real_path
from veilmeter.core.processes import run_confined
from veilmeter.data.formats.json_lines import as_text, read_objects
from veilmeter.data.formats.table import find_columns, read_rows
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions

INDEX = "index.jsonl"
_ROWS = 8  # decoded at a time
_LARGEST_TEXT = 1 << 16
_MAGIC = {b"RIFF": ".wav", b"fLaC": ".flac", b"OggS": ".ogg", b"ID3": ".mp3", b"\xff\xfb": ".mp3", b"\xff\xf3": ".mp3"}


def recognizes(path: Path) -> bool:
    return bool(_arrow_files(path)) or any(holds_audio(file) for file in _parquet_files(path)[:1])


def read(path: Path, options: ReadOptions) -> Reading:
    """All files, or those of the split that `part` names."""
    files = [file for split, file in _files(path) if options.part in (None, split)]
    if not files:
        raise InputError(f"no split {options.part!r}", path=path)
    reading = Reading()
    for file in files:
        folder = _unpack_audio(file)
        indexed = _read_index(folder, file, options)
        reading.utterances += indexed.utterances
        reading.problems += indexed.problems
    what = f"the audio of {len(reading.utterances)} rows was unpacked into {cache_folder() / 'unpacked'}"
    fix = "`veilmeter cache clear` removes it"
    reading.problems.append(Problem("unpacked", what, str(path), fix=fix, fatal=False))
    return reading


def holds_audio(file: Path) -> bool:
    """Whether a Parquet file has a column of audio; the data are not read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _audio_column(pq.read_schema(file)) is not None
    except (pa.ArrowException, OSError, ValueError):
        return False


def _audio_column(schema: Any) -> str | None:
    import pyarrow as pa

    for field in schema:
        if pa.types.is_struct(field.type) and {"bytes", "path"} <= {child.name for child in field.type}:
            return str(field.name)
    return None


def _files(path: Path) -> list[tuple[str, Path]]:
    """(split, file) of a dataset."""
    if saved := _arrow_files(path):
        return saved
    return [(file.name.split("-")[0].removesuffix(".parquet"), file) for file in _parquet_files(path)]


def _parquet_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".parquet" else []
    return sorted(file for base in (path, path / "data") for file in base.glob("*.parquet") if file.is_file())


def _arrow_files(path: Path) -> list[tuple[str, Path]]:
    """The Arrow files of a folder that `save_to_disk` wrote, or of its splits."""
    if not path.is_dir():
        return []
    if (path / "dataset_dict.json").is_file():
        return [(split.name, file) for split in sorted(path.iterdir()) for _, file in _arrow_files_of_split(split)]
    return _arrow_files_of_split(path)


def _arrow_files_of_split(path: Path) -> list[tuple[str, Path]]:
    if not (path / "state.json").is_file():
        return []
    try:
        state = read_input_json(path / "state.json")
        names = [Path(entry["filename"]).name for entry in state["_data_files"]]
    except (InputError, ValueError, TypeError, KeyError):
        return []
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InputError("a table of row numbers goes with it, which is not read", path=path,
                         fix="save it again after dataset.flatten_indices()")  # fmt: skip
    return [(path.name, path / name) for name in names]


def _unpack_audio(file: Path) -> Path:
    """The folder with the audio of a file, unpacked unless that was done before."""
    try:
        status = file.stat()
    except OSError as error:
        raise InputError(f"the file can't be read: {error.strerror}", path=file) from None
    facts = f"{real_path(file)}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}"
    key = hashlib.sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:20]
    folder = make_folder(cache_folder() / "unpacked") / key
    with only_one(folder.with_suffix(".lock"), folder, wait=lambda: None):
        if not (folder / INDEX).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            make_folder(folder)
            run_confined("veilmeter.data.formats.dataset:unpack", file, [str(folder)], "dataset")
    return folder


def unpack(path: str, folder: str) -> dict[str, Any]:
    """Write every row's audio as a file, and the other columns as lines of JSON; run in a child process."""
    target = Path(folder)
    count = 0
    with open(target / (INDEX + ".part"), "w", encoding="utf-8") as index:
        for name, rows in _batches(Path(path)):
            for row in rows:
                sound = row.pop(name) or {}
                facts = {key: as_text(value)[:_LARGEST_TEXT] for key, value in row.items()}
                inner, data = as_text(sound.get("path")), sound.get("bytes")
                facts["inner"] = inner
                if data:
                    suffix = Path(inner).suffix.lower() or _suffix(data)
                    written = target / f"{count:08d}{suffix[:8]}"
                    written.write_bytes(data)
                    written.chmod(PRIVATE_FILE)
                    facts["unpacked"] = written.name
                index.write(json.dumps(facts) + "\n")
                count += 1
    (target / (INDEX + ".part")).chmod(PRIVATE_FILE)
    (target / (INDEX + ".part")).rename(target / INDEX)
    return {"rows": count}


def _batches(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The name of the audio column, and rows a few at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        with pq.ParquetFile(path, pre_buffer=False) as opened:
            name = _audio_column(opened.schema_arrow)
            if name is None:
                raise ValueError("no column of audio")
            for batch in opened.iter_batches(batch_size=_ROWS, use_threads=False):
                yield name, batch.to_pylist()
        return
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
        name = _audio_column(stream.schema)
        if name is None:
            raise ValueError("no column of audio")
        for batch in stream:
            for start in range(0, batch.num_rows, _ROWS):
                yield name, batch.slice(start, _ROWS).to_pylist()


def _suffix(data: bytes) -> str:
    return next((suffix for magic, suffix in _MAGIC.items() if data.startswith(magic)), ".wav")


def _read_index(folder: Path, file: Path, options: ReadOptions) -> Reading:
    """The rows of an unpacked file as utterances. A row without bytes names a file beside the dataset."""
    names = list(dict.fromkeys(key for _, row in read_objects(folder / INDEX) for key in row))
    shown = [name for name in names if name not in ("unpacked", "inner")]
    named, lenient = {"path": "audio", **options.columns}, options.own_names
    columns = find_columns([*shown, "audio"], named, file, own_names=lenient)
    stems = [Path(row["inner"]).stem for _, row in read_objects(folder / INDEX)]
    if "utterance" not in columns.of and (len(set(stems)) < len(stems) or "" in stems):
        raise InputError(
            "its rows have no ids: neither a column id nor names of the files inside",
            path=file,
            fix="say which column holds the ids, as in --columns utterance=NAME",
        )
    id_column = columns.of.get("utterance", "id")

    def rows(inside: bool) -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, row in read_objects(folder / INDEX):
            if bool(row.get("unpacked")) is inside:
                name = row.get(id_column) or Path(row["inner"]).stem
                yield number, {**row, id_column: name, "audio": row.get("unpacked") or row["inner"]}

    columns = find_columns([*dict.fromkeys([*shown, id_column]), "audio"], named, file, own_names=lenient)
    own = read_rows(rows(True), columns, folder / INDEX, ReadOptions())
    beside = read_rows(rows(False), columns, file, options, absolute=False)
    return Reading(own.utterances + beside.utterances, own.problems + beside.problems)


LAYOUT = Layout(recognizes, read, Evidence.LISTS, frozenset({"part", "roots", "columns"}), has_lists=True)
