"""JSON Lines with one object per recording, or per part of one, as NeMo and many companies write them; see `table`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from veilmeter.core.errors import InputError
from veilmeter.data.formats.json_lines import as_text, first_object, read_objects
from veilmeter.data.formats.table import find_columns, is_table, read_rows
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions

_SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".ndjson")


def is_jsonl(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(_SUFFIXES)


def recognizes(path: Path) -> bool:
    """A file whose first object names a recording and a speaker, or a folder with one such file."""
    if path.is_dir():
        return len(_lists(path)) == 1
    return is_jsonl(path) and "{root}" not in str(first := first_object(path)) and is_table(first)


def read(path: Path, options: ReadOptions) -> Reading:
    file = path
    if path.is_dir():
        lists = _lists(path)
        if len(lists) != 1:
            raise InputError(
                f"there are {len(lists)} lists of recordings here, not one", path=path, fix="give the file"
            )
        file = lists[0]
    return read_objects_as_rows(file, options)


def read_objects_as_rows(file: Path, options: ReadOptions) -> Reading:
    names: dict[str, None] = {}
    for _, entry in read_objects(file):  # once for the columns: an object may lack some
        names.update(dict.fromkeys(entry))

    def rows() -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, entry in read_objects(file):
            yield number, {name: as_text(entry.get(name)) for name in names}

    columns = find_columns(list(names), options.columns, file, 1, own_names=options.own_names)
    return read_rows(rows(), columns, file, options)


def _lists(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if is_jsonl(path) and recognizes(path))


LAYOUT = Layout(recognizes, read, Evidence.TABLE, frozenset({"roots", "columns"}), has_lists=True, suffixes=_SUFFIXES)
