"""A CSV or TSV with one row per recording, or per part of one: `path, speaker`, optionally more; see `table`."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.formats.table import find_columns, is_table, read_rows
from veilmeter.data.formats.text_lines import read_lines
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions

_SUFFIXES = (".csv", ".tsv")


def recognizes(path: Path) -> bool:
    """A list, or a folder with one list of recordings and speakers; tables of other things may lie beside it."""
    return path.suffix.lower() in _SUFFIXES if path.is_file() else len(_lists(path)) == 1


def read(path: Path, options: ReadOptions) -> Reading:
    """The id is the column `utterance`, or else the path without its extension."""
    file = _only_list(path) if path.is_dir() else path
    records = _records(file)
    first_line, header = next(records, (1, []))
    names = [name.strip() for name in header]
    columns = find_columns(names, options.columns, file, first_line, own_names=options.own_names)
    problems: list[Problem] = []

    def rows() -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, fields in records:
            if len(fields) != len(names):
                what = f"there are {len(fields)} fields for {len(names)} columns"
                problems.append(Problem("bad-line", what, str(file), number))
            else:
                yield number, dict(zip(names, (_unguard_cell(field.strip()) for field in fields), strict=True))

    reading = read_rows(rows(), columns, file, options)
    return Reading(reading.utterances, sorted([*problems, *reading.problems], key=lambda problem: problem.line or 0))


_FORMULA = ("=", "+", "-", "@")


def guard_cell(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula; reading gives the cell itself.

    >>> guard_cell("=1+1"), _unguard_cell(guard_cell("=1+1"))
    ("'=1+1", '=1+1')
    """
    return "'" + cell if cell.startswith(_FORMULA) else cell


def _unguard_cell(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def _records(file: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, fields). One record per line: an unclosed quote must not eat the rest of the file."""
    delimiter = ""
    for number, line in read_lines(file):
        delimiter = delimiter or max(",\t;", key=line.count)
        try:
            yield number, next(csv.reader([line], delimiter=delimiter, strict=True))
        except (csv.Error, StopIteration) as error:
            raise InputError(f"this is not CSV: {error}", path=file, line=number) from None


def _only_list(folder: Path) -> Path:
    lists = _lists(folder)
    if len(lists) != 1:
        names = f" ({', '.join(p.name for p in lists[:5])})" if lists else ""
        what = f"there are {len(lists)} lists with the columns path and speaker here{names}, not one"
        raise InputError(what, path=folder, fix="give the CSV file itself")
    return lists[0]


def _lists(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if is_list(path))


def is_list(file: Path) -> bool:
    """Whether it is a list of recordings and their speakers, by its first line."""
    if file.suffix.lower() not in _SUFFIXES or not file.is_file():
        return False
    try:
        _, header = next(_records(file), (1, []))
    except InputError:
        return False
    return is_table(header)


LAYOUT = Layout(recognizes, read, Evidence.TABLE, frozenset({"roots", "columns"}), has_lists=True)
