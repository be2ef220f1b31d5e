"""JSON Lines, plain or gzipped: one object per line, never trusted with memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.files import LARGEST_LIST, open_input
from veilmeter.data.formats.table import find_columns, is_table, read_rows
from veilmeter.data.layouts import LONGEST_LINE, Evidence, Layout, Reading, ReadOptions


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, object) of every line that is not blank."""
    try:
        with open_input(path, most=LARGEST_LIST, unpack=True) as handle:
            number = 0
            while line := handle.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError("the line has more than a million bytes", path=path, line=number)
                if line.strip():
                    yield number, _object(line, path, number)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the file can't be read: {getattr(error, 'strerror', None) or error}", path=path) from None


def first_object(path: Path) -> dict[str, Any]:
    """The first object; an empty one where the file holds none."""
    try:
        return next(read_objects(path), (0, {}))[1]
    except InputError:
        return {}


def _object(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("invalid JSON", path=path, line=number) from None
    if not isinstance(parsed, dict):
        raise InputError("not a JSON object", path=path, line=number)
    return parsed


def as_text(value: Any) -> str:
    """A value as a cell of a table; lists and objects say nothing there.

    >>> [as_text(value) for value in ("a", 2.0, None, True, [1])]
    ['a', '2.0', '', 'true', '']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""


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
