"""A CSV (or TSV) with the columns `path, speaker`, optionally `utterance, gender, session, text`.

All other columns are attributes.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance, clean_id, gender_code
from veilmeter.data.formats.text_lines import read_lines
from veilmeter.data.formats.walk import inside

_KNOWN = ("path", "speaker", "utterance", "gender", "session", "text")


def recognise(root: Path) -> bool:
    """A folder with one list that names recordings and speakers; tables of other things may lie beside it."""
    return len(_lists(root)) == 1


def read(
    root: Path, *, roots: Sequence[Path] = (), part: str | None = None, suffix: str | None = None
) -> tuple[list[Utterance], list[Problem]]:
    """Paths are relative to the list's folder and stay below it or below one of `roots`.

    The id is the column `utterance`, or else the path without its extension.
    """
    file = _only_list(root) if root.is_dir() else root
    base = file.parent
    allowed = [os.path.realpath(r) for r in (base, *roots)]
    records = _records(file)
    first_line, header = next(records, (1, []))
    columns = [name.strip().lower() for name in header]
    if "path" not in columns or "speaker" not in columns:
        raise InputError(
            "the first line must name the columns path and speaker", path=file, line=first_line,
            fix="optional columns are utterance, gender, session, text and attributes of your own",
        )  # fmt: skip
    utterances: list[Utterance] = []
    problems: list[Problem] = []

    def say(kind: str, what: str, line: int, fix: str = "") -> None:
        problems.append(Problem(kind, what, str(file), line, fix))

    for number, fields in records:
        if len(fields) != len(columns):
            say("bad-line", f"there are {len(fields)} fields for {len(columns)} columns", number)
            continue
        row = dict(zip(columns, (_unguarded(field.strip()) for field in fields), strict=True))
        if not row["path"] or not row["speaker"] or "\0" in row["path"]:
            say("bad-line", "a path or a speaker is missing", number)
            continue
        path = base / row["path"]
        if not inside(os.path.realpath(path), allowed):
            fix = "give the folder with --root if you trust it"
            say("outside-root", f"{row['path']} leads out of the list's folder", number, fix)
        elif not path.is_file():
            say("missing-audio", f"{row['path']} is not there", number)
        else:
            name = row.get("utterance") or PurePath(row["path"]).with_suffix("").as_posix()
            utterances.append(
                Utterance(
                    clean_id(name),
                    clean_id(row["speaker"]),
                    path,
                    gender_code(row.get("gender", "")),
                    row.get("session", ""),
                    {key: value for key, value in row.items() if key and key not in _KNOWN},
                    row.get("text", ""),
                )
            )
    return utterances, problems


_FORMULA = ("=", "+", "-", "@")


def guarded(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula; reading gives the cell itself.

    >>> guarded("=1+1"), _unguarded(guarded("=1+1"))
    ("'=1+1", '=1+1')
    """
    return "'" + cell if cell.startswith(_FORMULA) else cell


def _unguarded(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def _records(file: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, fields). One record a line: an unclosed quote must not eat the rest of the file."""
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
    if file.suffix.lower() not in (".csv", ".tsv") or not file.is_file():
        return False
    try:
        _, header = next(_records(file), (1, []))
    except InputError:
        return False
    return {"path", "speaker"} <= {name.strip().lower() for name in header}
