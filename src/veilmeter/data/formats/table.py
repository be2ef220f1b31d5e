"""Tables with one row per recording, or per part of one: `path, speaker`, optionally more.

Which column means what, and rows as utterances, whatever the table is stored as; and the layout of CSV and TSV files.
"""

from __future__ import annotations

import csv
import difflib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance, gender_code
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, inside, locate, read_lines

# The meanings of columns and their names, the most specific first. Other columns are attributes.
MEANINGS: Mapping[str, tuple[str, ...]] = {
    "path": ("path", "file_name", "filename", "file", "audio_path", "audio_filepath", "audio_file", "wav_path",
             "filepath", "wav", "audio"),
    "speaker": ("speaker", "speaker_id", "speaker_name", "client_id", "spk_id", "spk"),
    "utterance": ("utterance", "utterance_id", "utt_id", "utt", "segment_id", "id"),
    "gender": ("gender", "sex"),
    "session": ("session", "session_id"),
    "start": ("start", "start_time", "begin", "offset"),
    "end": ("end", "end_time"),
    "duration": ("duration",),
    "channel": ("channel",),
    "text": ("text", "transcript", "transcription", "sentence", "normalized_text"),
}  # fmt: skip
# Names that would change which samples are used if they were understood, and are not.
_NOT_UNDERSTOOD = {
    "stop": "in SpeechBrain's lists it counts samples; give the column `end` in seconds",
    "side": "give the column `channel`, counted from 0",
    **{
        name: f"if it counts {unit}, say so: --columns {meaning}={name}"
        for meaning, unit, names in (
            ("start", "seconds", ("t_start", "tmin", "onset", "start_s", "start_sec", "start_seconds")),
            ("end", "seconds", ("t_end", "tmax", "end_s", "end_sec", "end_seconds")),
            ("channel", "channels from 0", ("chan", "ch", "channel_id")),
        )
        for name in names
    },
}
_LONGEST = 1e9  # seconds: 30 years
_SIDES = {"a": 0, "b": 1, "left": 0, "right": 1}


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column of a table has which meaning."""

    of: Mapping[str, str]
    attributes: tuple[str, ...]

    def cell(self, row: Mapping[str, str], meaning: str) -> str:
        column = self.of.get(meaning)
        return row.get(column, "").strip() if column is not None else ""


def parse_columns(words: Iterable[str] | None) -> dict[str, str]:
    """The names of columns, as given by the user.

    >>> parse_columns(["path=audio_path,speaker=speaker_id", "text=words"])
    {'path': 'audio_path', 'speaker': 'speaker_id', 'text': 'words'}
    """
    chosen: dict[str, str] = {}
    for word in ",".join(words or []).split(","):
        meaning, equals, column = (part.strip() for part in word.partition("="))
        if not word.strip():
            continue
        if not equals or not meaning or not column:
            raise InputError(f"--columns {word.strip()!r} is not understood", fix="as in --columns path=audio_path")
        if chosen.setdefault(meaning, column) != column:
            raise InputError(f"--columns names two columns for {meaning!r}", fix="name one")
    return chosen


def is_table(header: Iterable[str]) -> bool:
    """Whether these columns name recordings and speakers."""
    known = {name.strip().lower() for name in header}
    return all(known & set(MEANINGS[meaning]) for meaning in ("path", "speaker"))


def find_columns(
    header: Sequence[str],
    chosen: Mapping[str, str],
    file: Path,
    line: int | None = None,
    *,
    own_names: bool = False,
) -> Columns:
    """The meanings of the columns, as the user states them or else by their names. With `own_names`, a column that the
    user names and the table lacks may go by a common name instead."""
    by_name = {name.strip().lower(): name for name in header}
    if own_names:
        known = {meaning for meaning, names in MEANINGS.items() if any(name in by_name for name in names)}
        chosen = {m: column for m, column in chosen.items() if column.strip().lower() in by_name or m not in known}
    meanings: dict[str, str] = {}
    for meaning, column in chosen.items():
        if meaning not in MEANINGS:
            raise InputError(f"--columns: unknown column {meaning!r}", fix=f"choose from {', '.join(MEANINGS)}")
        if column.strip().lower() not in by_name:
            near = difflib.get_close_matches(column, header, 1)
            raise InputError(
                f"no column {column!r} for {meaning!r}",
                path=file,
                line=line,
                fix=f"did you mean {near[0]!r}?" if near else f"there are {', '.join(header)}",
            )
        meanings[meaning] = by_name[column.strip().lower()]
    for meaning, names in MEANINGS.items():
        free = [by_name[name] for name in names if name in by_name and by_name[name] not in meanings.values()]
        if meaning not in meanings and free:
            meanings[meaning] = free[0]
    if "path" not in meanings or "speaker" not in meanings:
        missing = [meaning for meaning in ("path", "speaker") if meaning not in meanings]
        are = "is" if len(missing) == 1 else "are"
        raise InputError(
            f"the first line must name the columns path and speaker; {' and '.join(missing)} {are} missing",
            path=file,
            line=line,
            fix="say which columns they are, as in --columns path=audio_path,speaker=speaker_id",
        )
    used = set(meanings.values())
    for column in meanings.values():
        if sum(name.strip().lower() == column.strip().lower() for name in header) > 1:
            raise InputError(f"there are two columns {column!r}", path=file, line=line, fix="rename or remove one")
    for name, advice in _NOT_UNDERSTOOD.items():
        if name in by_name and by_name[name] not in used:
            raise InputError(f"the column {by_name[name]!r} is not understood", path=file, line=line, fix=advice)
    return Columns(meanings, tuple(name for name in header if name not in used and name.strip()))


def read_rows(
    rows: Iterable[tuple[int, Mapping[str, str]]],
    columns: Columns,
    file: Path,
    options: ReadOptions,
    *,
    absolute: bool = True,
) -> Reading:
    """Utterances from rows (with their line): paths are sought below the table's folder; see `locate`."""
    reading = Reading()
    channels: set[int] = set()
    for line, row in rows:
        path, speaker = columns.cell(row, "path"), columns.cell(row, "speaker")
        if not path or not speaker:
            reading.problems.append(Problem("bad-line", "a path or a speaker is missing", str(file), line))
            continue
        place = locate(path, file.parent, options.roots, absolute=absolute)
        if not isinstance(place, Path):
            kind, what = place
            reading.problems.append(Problem(kind, f"{path}: {what}", str(file), line))
            continue
        try:
            utterance = _utterance(columns, row, place)
        except ValueError as error:
            reading.problems.append(Problem("bad-line", str(error), str(file), line))
            continue
        if utterance.channel is not None:
            channels.add(utterance.channel)
        reading.utterances.append(utterance)
    if channels and max(channels) > 1 and 0 not in channels:
        raise InputError(
            f"the channels of this list are {', '.join(map(str, sorted(channels)))}, without 0",
            path=file,
            fix="channels are counted from 0: subtract 1",
        )
    reading.utterances = _with_ids(reading.utterances, file.parent)
    return reading


def _utterance(columns: Columns, row: Mapping[str, str], path: Path) -> Utterance:
    """One row; the id is empty where the table gives none."""
    start, end = _seconds(columns.cell(row, "start"), "start"), _seconds(columns.cell(row, "end"), "end")
    length = _seconds(columns.cell(row, "duration"), "duration")
    if end is None and length is not None and start is not None:
        end = start + length  # without a start, a duration is that of the file
    if end is not None and end < 0:
        end = None  # Kaldi's -1: to the end of the recording
    if end is not None and end <= (start or 0.0):
        raise ValueError(f"it ends at {end:g} s, before it starts")
    attributes = {name.strip().lower(): row.get(name, "") for name in columns.attributes}
    return Utterance(
        columns.cell(row, "utterance"),
        columns.cell(row, "speaker"),
        path,
        gender_code(columns.cell(row, "gender")),
        columns.cell(row, "session"),
        attributes,
        columns.cell(row, "text"),
        start or 0.0,
        end,
        channel_number(columns.cell(row, "channel")),
    )


def _seconds(text: str, what: str) -> float | None:
    if not text:
        return None
    value = parse_seconds(text, what)
    if value < 0 and what != "end":
        raise ValueError(f"the {what} {text[:40]!r} is negative")
    return value


def parse_seconds(value: object, what: str) -> float:
    """A time in a list, in seconds; a ValueError where no recording has it.

    >>> parse_seconds("1.5", "start"), parse_seconds(2, "end")
    (1.5, 2.0)
    """
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        seconds = math.nan
    if not abs(seconds) < _LONGEST:
        raise ValueError(f"the {what} {str(value)[:40]!r} is not a number of seconds")
    return seconds


def channel_number(text: str) -> int | None:
    """A channel as a number from 0; sides of telephone calls are A and B, or left and right.

    >>> [channel_number(text) for text in ("", "1", "A", "right")]
    [None, 1, 0, 1]
    """
    word = text.strip().lower()
    if not word:
        return None
    if word in _SIDES:
        return _SIDES[word]
    if word.removesuffix(".0").isdecimal() and len(word) < 5:
        return int(word.removesuffix(".0"))
    raise ValueError(f"the channel {text[:40]!r} is not a number from 0 up")


def _with_ids(utterances: Sequence[Utterance], base: Path) -> list[Utterance]:
    """Where the table gives no ids: the path below the table's folder without its extension; for recordings elsewhere,
    the path below the folder that all of these share."""
    top = os.path.abspath(base)
    elsewhere = [path for u in utterances if not u.id and not inside(path := os.path.abspath(u.path), [top])]
    other = os.path.commonpath([os.path.dirname(path) for path in elsewhere]) if elsewhere else top

    def with_id(utterance: Utterance) -> Utterance:
        place = top if inside(os.path.abspath(utterance.path), [top]) else other
        return utterance if utterance.id else replace(utterance, id=_part_id(utterance, place))

    return [with_id(utterance) for utterance in utterances]


def _part_id(utterance: Utterance, top: str) -> str:
    """An id from where a recording lies and which part of it this is."""
    name = PurePath(os.path.relpath(os.path.abspath(utterance.path), top)).with_suffix("").as_posix()
    if utterance.channel is not None:
        name += f"-{utterance.channel}"
    if utterance.start or utterance.end is not None:
        end = "" if utterance.end is None else f"{round(utterance.end * 1000):07d}"
        name += f"-{round(utterance.start * 1000):07d}-{end}"
    return name


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
            if "\r" in line:
                what, fix = "the line has a carriage return (CR) inside", "end lines with LF or CRLF"
                raise InputError(what, path=file, line=number, fix=fix) from None
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
