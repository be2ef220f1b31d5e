"""Columns separated by white space or commas, read fast and never trusted: plain or gzip, UTF-8 or Latin-1.

The file is read in pieces that end at a line's end, so memory is bounded by the piece and by what the caller keeps.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import open_input
from veilmeter.core.findings import Finding, Reference, file_reference, warning

LEAST = 1 << 18  # bytes: below, importing Arrow takes longer than reading
_LONGEST = 1 << 12
_OTHER_SPACE = (b"\x0b", b"\x0c", b"\r")


@dataclass(slots=True)
class ArrowColumn:
    """A column of words, plain or as a dictionary, or of finite numbers."""

    data: Any

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> bytes:
        return str(self.data[row].as_py()).encode()

    def distinct(self) -> tuple[list[bytes], NDArray[np.int32]]:
        """The distinct words in the order of their first appearance, and which of them each row has."""
        import pyarrow as pa

        coded = self.data if pa.types.is_dictionary(self.data.type) else self.data.dictionary_encode()
        chunks = coded.unify_dictionaries().chunks
        words = [word.encode() for word in chunks[0].dictionary.to_pylist()]
        index = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
        return words, index.astype(np.int32, copy=False)

    def numbers(self) -> NDArray[np.float64] | None:
        import pyarrow as pa

        return self.data.to_numpy() if pa.types.is_floating(self.data.type) else None

    def words(self) -> Any:
        """All words as an Arrow array of bytes."""
        import pyarrow as pa

        return self.data.cast(pa.binary()).combine_chunks()


def read_fast(data: bytes, width: int, number: int | None, *, coded: bool = True) -> list[ArrowColumn] | None:
    """The columns of lines that all have this width and one separator, the one at `number` as numbers; None where
    anything is otherwise. Words are `coded` where the same ones come again and again and are to be told apart."""
    import pyarrow as pa
    from pyarrow import compute, csv

    blanks, tabs = b" " in data[:4096], b"\t" in data
    if blanks == tabs or any(space in data for space in _OTHER_SPACE) or (tabs and b" " in data):
        return None
    names = [str(column) for column in range(width)]
    words = pa.dictionary(pa.int32(), pa.string()) if coded else pa.string()
    kinds = dict.fromkeys(names, words)
    if number is not None:
        kinds[names[number]] = pa.float64()
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(column_names=names, block_size=1 << 22),
            parse_options=csv.ParseOptions(
                delimiter="\t" if tabs else " ", quote_char=False, double_quote=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
        )
    except (pa.ArrowException, ValueError):
        return None
    for name in names:
        column = table.column(name)
        if pa.types.is_floating(column.type):
            values = column.to_numpy()
            if not np.isfinite(values).all():
                return None
            continue
        for chunk in column.chunks:
            lengths = compute.min_max(compute.binary_length(chunk.dictionary if coded else chunk))
            if len(chunk) and not (lengths["min"].as_py() > 0 and lengths["max"].as_py() <= _LONGEST):
                return None  # two separators, or one at an end of the line; or a line without end
    return [ArrowColumn(table.column(name)) for name in names]


PIECE = 1 << 24
LONGEST_LINE = 1 << 16


@dataclass(slots=True)
class Piece:
    """Some lines of a file: all tokens in order, how many each line has, and the number of the first line."""

    tokens: list[bytes]
    per_line: NDArray[np.int64]
    first_line: int
    latin1: bool = False

    def line_numbers(self) -> NDArray[np.int64]:
        """The line number of each line that is not blank."""
        return self.first_line + np.flatnonzero(self.per_line)


@dataclass(slots=True)
class Codes:
    """Ids as numbers, in the order in which they were first seen."""

    known: dict[bytes, int] = field(default_factory=dict)

    def encode(self, column: WordColumn) -> NDArray[np.int32]:
        known = self.known
        words, index = column.distinct()
        for word in words:
            if word not in known:
                known[word] = len(known)
        codes = np.fromiter(map(known.__getitem__, words), np.int32, len(words))
        return np.asarray(codes[index])

    def names(self) -> list[str]:
        return [text(token) for token in self.known]


def text(token: bytes) -> str:
    """An id as a string; bytes that are not UTF-8 are taken as Latin-1."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return token.decode("latin-1")


def pieces(path: str | Path, *, size: int = PIECE) -> Iterator[Piece]:
    """The file's lines in pieces; `InputError` if it can't be read or is not text."""
    for data, line, _ in raw_pieces(path, size=size):
        yield _piece(data, path, line)


def raw_pieces(path: str | Path, *, size: int = PIECE) -> Iterator[tuple[bytes, int, int]]:
    """The file in pieces that end at a line's end, all line ends alike and blanks for commas that separate columns,
    with the number of the first line and how many there are."""
    line, has_commas = 1, False
    with open_input(path, unpack=True) as handle:
        rest = b""
        while True:
            try:
                data = handle.read(size)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError(f"the file breaks off or is damaged: {error}", path=path, line=line) from None
            if line == 1 and not rest:
                _check_start(data, path)
                data = data.removeprefix(b"\xef\xbb\xbf")
            whole = rest + data
            if data:
                end = whole.rfind(b"\n") + 1 or whole.rfind(b"\r", 0, -1) + 1
                if not end:
                    if len(whole) > LONGEST_LINE:
                        raise InputError(
                            "the line is longer than 65,536 bytes",
                            path=path,
                            line=line,
                            fix="give a list of trials",
                        )
                    rest = whole
                    continue
                whole, rest = whole[:end], whole[end:]
            if whole:
                if b"\r" in whole:
                    whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                if line == 1:
                    has_commas = is_comma_separated(whole)
                count = whole.count(b"\n") + (not whole.endswith(b"\n"))
                yield _without_commas(whole, path, line) if has_commas else whole, line, count
                line += count
            if not data:
                return


def is_comma_separated(data: bytes) -> bool:
    """Whether commas separate the columns of the first line that is not blank.

    >>> is_comma_separated(b"a,b,0.5"), is_comma_separated(b"a, b, 0.5"), is_comma_separated(b"a,1 b,2 0.5")
    (True, True, False)
    """
    words = data.lstrip()[:LONGEST_LINE].partition(b"\n")[0].split()
    return b"," in b"".join(words) and all(word.endswith(b",") for word in words[:-1])


def _without_commas(data: bytes, path: str | Path, first_line: int) -> bytes:
    """The same lines with blanks between the cells, which hold neither blanks nor nothing."""
    if b'"' not in data and not re.search(rb",[ \t]*,|(?:^|\n),|,[ \t]*(?:\n|$)", data):
        return data.replace(b",", b" ")
    lines = []
    for number, cells in enumerate(csv.reader(io.StringIO(data.decode("latin-1")), skipinitialspace=True)):
        if cells and not all(cells):
            raise InputError("an empty cell", path=path, line=first_line + number, fix="fill it in or remove the line")
        lines.append(" ".join(cells))
    return "\n".join(lines).encode("latin-1") + b"\n" * data.endswith(b"\n")


def _check_start(data: bytes, path: str | Path) -> None:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError("the file is UTF-16", path=path, line=1, fix="save it as UTF-8")
    if b"\0" in data[:4096]:
        raise InputError("this is a binary file, not a list of lines", path=path)


def _piece(data: bytes, path: str | Path, first_line: int) -> Piece:
    latin1 = False
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            data, latin1 = data.decode("latin-1").encode(), True
    raw = np.frombuffer(data, np.uint8)
    space = raw - np.uint8(9) <= 4  # tab to carriage return; with the blank, what bytes.split() splits at
    space |= raw == 32
    starts = ~space
    starts[1:] &= space[:-1]
    ends = np.flatnonzero(raw == 10)
    if not len(ends) or ends[-1] != len(raw) - 1:
        ends = np.append(ends, len(raw) - 1)
    before = np.concatenate([[-1], ends[:-1]])
    if len(ends) and int((ends - before).max()) > LONGEST_LINE:
        where = first_line + int((ends - before).argmax())
        raise InputError("the line is longer than 65,536 bytes", path=path, line=where, fix="give a list of trials")
    begins = np.flatnonzero(starts)
    width, over = divmod(len(begins), len(ends))
    if width and not over:  # the usual case is quick to confirm: the same number of columns in every line
        table = begins.reshape(len(ends), width)
        if (table[:, 0] > before).all() and (table[:, -1] < ends + 1).all():
            return Piece(data.split(), np.full(len(ends), width), first_line, latin1)
    per_line = np.diff(np.searchsorted(begins, ends, side="right"), prepend=0)
    return Piece(data.split(), per_line, first_line, latin1)


@dataclass(slots=True)
class _Kind:
    what: str
    fix: str
    fatal: bool
    path: str
    count: int = 0
    first: list[tuple[int | None, str]] = field(default_factory=list)


@dataclass(slots=True)
class Faults:
    """Problems of files by kind: how often, and the first few places. Memory does not grow with the faults."""

    kinds: dict[tuple[str, str], _Kind] = field(default_factory=dict)
    shown: int = 5

    def add(
        self,
        kind: str,
        what: str,
        path: str | Path,
        lines: Iterable[int | None] = (None,),
        *,
        count: int | None = None,
        details: Sequence[str] = (),
        fix: str = "",
        fatal: bool = True,
    ) -> None:
        """`count` faults of this kind, of which `lines` are the first; `details` say what is there."""
        places = list(lines)
        if not places:
            return
        entry = self.kinds.setdefault((kind, str(path)), _Kind(what, fix, fatal, str(path)))
        entry.count += len(places) if count is None else count
        for number, line in enumerate(places[: self.shown - len(entry.first)]):
            entry.first.append((line, details[number] if number < len(details) else ""))

    def problems(self) -> list[Problem]:
        """One problem a kind, with its count and first places in its words."""
        listed = []
        for (kind, _), entry in self.kinds.items():
            line, detail = entry.first[0]
            what = entry.what + (f": {detail}" if detail else "")
            if entry.count > 1:
                others = ", ".join(str(place) for place, _ in entry.first[1:] if place is not None)
                more = f"; {entry.count:,} times"
                if others:
                    more += f", also in line{'s' if ',' in others else ''} {others}"
                    more += " ..." if entry.count > len(entry.first) else ""
                what += more
            listed.append(Problem(kind, what, entry.path, line, entry.fix, entry.fatal))
        return listed

    def raise_first(self) -> None:
        """The first fatal problem as an error, if there is one."""
        for problem in self.problems():
            if problem.fatal:
                raise InputError(problem.what, path=problem.path, line=problem.line, fix=problem.fix or None)

    def findings(self) -> list[Finding]:
        """Corrections made while reading."""
        return [_finding(kind, fault) for (kind, _), fault in self.kinds.items() if not fault.fatal]


def _finding(kind: str, fault: _Kind) -> Finding:
    line, detail = fault.first[0]
    file, example = file_reference(fault.path), Reference("text", detail)
    match kind:
        case "latin-1":
            return Finding.of("file_as_latin1", file=file)
        case "duplicate-score" | "duplicate-trial":
            return Finding.of(
                "pairs_repeated", what=kind.split("-")[1], file=file, line=line, count=fault.count, example=example
            )
        case "score-without-trial" | "trial-without-score":
            return warning(
                "pairs_left_out", what=kind.split("-")[0], file=file, line=line, count=fault.count, example=example
            )
        case "speakers-joined":
            return warning("speakers_joined", file=file, count=fault.count)
        case "utt2spk":
            return warning("utt2spk_unused", file=file, reason=Reference("text", fault.what))
    raise ValueError(f"no finding is declared for {kind}")


class WordColumn(Protocol):
    """The words of a column, one per line."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> bytes: ...

    def distinct(self) -> tuple[list[bytes], NDArray[np.int32]]:
        """The distinct words in the order of their first appearance, and which of them each row has."""

    def numbers(self) -> NDArray[np.float64] | None:
        """The column as finite numbers, where it was read as such."""

    def words(self) -> Any:
        """All words as an Arrow array of bytes."""


@dataclass(slots=True)
class TokenColumn:
    """A column of tokens, of whatever a line may hold."""

    tokens: list[bytes]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, row: int) -> bytes:
        return self.tokens[row]

    def distinct(self) -> tuple[list[bytes], NDArray[np.int32]]:
        known = {token: code for code, token in enumerate(dict.fromkeys(self.tokens))}
        return list(known), np.fromiter(map(known.__getitem__, self.tokens), np.int32, len(self.tokens))

    def numbers(self) -> NDArray[np.float64] | None:
        return None

    def words(self) -> Any:
        import pyarrow as pa

        return pa.array(self.tokens, pa.binary())


@dataclass(slots=True)
class LineColumns:
    """Lines of one width as columns, with their line numbers."""

    columns: Sequence[WordColumn]
    lines: NDArray[np.int64]


def rows(
    path: str | Path,
    widths: tuple[int, ...],
    what: str,
    findings: Faults,
    *,
    size: int = PIECE,
    number: int | None = None,
    coded: bool = True,
    header: bool = False,
) -> Iterator[LineColumns]:
    """The lines with the file's number of columns, piece by piece; other lines go to `findings`. The column `number`
    should hold numbers: large pieces in which it does are read as such at once. Where ids are only passed by, `coded`
    spares looking for those that are the same. A `header` is left out: the first line that is not blank."""
    width = 0
    empty = True
    for data, first_line, count in raw_pieces(path, size=size):
        if header:
            skipped = len(data) - len(data.lstrip())
            end = data.find(b"\n", skipped) + 1 or len(data)
            lines = data.count(b"\n", 0, end)
            data, first_line, count = data[end:], first_line + lines, count - lines
            header = False
            if not data:
                continue
        fast = _fast(data, (width,) if width else widths, number, coded)
        if fast is not None and len(fast[0]) == count:  # Arrow does not see every empty line
            width, empty = len(fast), False
            yield LineColumns(fast, np.arange(first_line, first_line + count))
            continue
        piece = _piece(data, path, first_line)
        if piece.latin1:
            findings.add("latin-1", "the file is not UTF-8; it was read as Latin-1", path, fatal=False)
        filled = piece.per_line[piece.per_line > 0]
        if not len(filled):
            continue
        empty = False
        if not width:
            counts = [int(np.count_nonzero(filled == w)) for w in widths]
            width = widths[int(np.argmax(counts))]
        columns = _of_width(piece, filled, width, f"{what} has {' or '.join(map(str, widths))} columns", path, findings)
        if len(columns.lines):
            yield columns
    if empty:
        findings.add("empty", "the file is empty", path)


def _fast(data: bytes, widths: Sequence[int], number: int | None, coded: bool) -> Sequence[WordColumn] | None:
    if len(data) < LEAST:
        return None
    width = len(data[: data.find(b"\n")].split())
    return read_fast(data, width, number, coded=coded) if width in widths else None


def _of_width(
    piece: Piece, filled: NDArray[np.int64], width: int, what: str, path: str | Path, findings: Faults
) -> LineColumns:
    """The lines of a piece that have this width; the others are reported."""
    tokens, lines = piece.tokens, piece.line_numbers()
    good = filled == width
    if not good.all():
        bad = np.flatnonzero(~good)
        others = f", others have {width}" if good.any() else ""
        findings.add(
            "columns",
            f"{what} in every line",
            path,
            [int(line) for line in lines[bad[: findings.shown]]],
            count=len(bad),
            details=[f"this one has {int(n)}{others}" for n in filled[bad[: findings.shown]]],
            fix="fix or remove the line" if good.any() else "is this the right file?",
        )
        keep = np.repeat(good, filled)
        tokens = [token for token, kept in zip(tokens, keep.tolist(), strict=True) if kept]
        lines = lines[good]
    return LineColumns([TokenColumn(tokens[column::width]) for column in range(width)], lines)
