"""Untrusted Parquet files: how large one becomes in memory is read from its footer before anything is decoded.

Hand-written: pyarrow does not show the sizes of pages, and reading in a confined child (`processes.run_confined`) takes
0.65 s for every table or shard, where this takes 0.005 s; its memory limit would also be missing outside of Linux.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError

SMALL = 1 << 26  # bytes that any file may become
LARGEST_EXPANSION = 50  # times its size beyond that: encodings shrink honest numbers less
LONGEST_TEXT = 1 << 16
LONGEST_FIXED = 64  # bytes of what has one length in every row, such as a digest
MAGIC = b"PAR1"
LARGEST_FOOTER = 1 << 25
# Numbers of the fields in parquet.thrift: FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData.
_SCHEMA, _ROW_GROUPS, _COLUMNS, _META_DATA = 2, 4, 1, 3
_TYPE_LENGTH, _CHILDREN = 2, 5
_TYPE, _NUM_VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGES, _DICTIONARY = 1, 5, 6, 7, 9, 11
# PageHeader, and in all three kinds of headers inside it the number of values.
_PAGE_TYPE, _PAGE_UNCOMPRESSED, _PAGE_COMPRESSED, _PAGE_VALUES = 1, 2, 3, 1
_KINDS_OF_PAGES = {0: 5, 2: 7, 3: 8}  # data, dictionary, data of version 2: where its own header stands
_DICTIONARY_PAGE = 2
_FIXED_LENGTH = 7  # the physical type whose width the schema says
_WIDTHS = (1, 4, 8, 12, 4, 8, 8)  # of the others: BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY
_WIDEST = 16


@dataclass(frozen=True, slots=True)
class ColumnClaim:
    """One column of one row group: its physical type by number, how many values it has and how wide they are, their
    bytes, and where its pages lie."""

    physical_type: int
    width: int
    values: int
    uncompressed: int
    start: int
    compressed: int

    @property
    def unpacked(self) -> int:
        """Bytes when read, by what the footer says."""
        return max(self.uncompressed, self.values * self.width, 0)


def count_claimed_bytes(path: Path) -> int:
    """How many bytes the file claims to be when read, by its footer or the headers of its pages, whichever is more; an
    InputError where these are damaged."""
    total = 0
    with _reading(path), open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for claim in _claims(data):
            total += max(claim.unpacked, _page_bytes(data, claim))
    return total


def column_claims(path: Path) -> Iterator[ColumnClaim]:
    """Every column of every row group, as the footer has them; an InputError where it is damaged."""
    with _reading(path), open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield from _claims(data)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        what = "corrupt Parquet file: its footer is damaged"
        raise InputError(what, path=path, fix="write it again") from None
    except OSError as error:
        raise InputError(f"the file can't be read: {error.strerror}", path=path) from None


def _claims(data: mmap.mmap) -> Iterator[ColumnClaim]:
    footer = _Compact(_footer(data)).struct()
    leaves = [element for element in footer[_SCHEMA] if not element.get(_CHILDREN)]
    for group in footer.get(_ROW_GROUPS, []):
        for element, chunk in zip(leaves, group[_COLUMNS], strict=True):
            facts = chunk[_META_DATA]
            kind, first = facts[_TYPE], facts[_DATA_PAGES]
            start = min(first, facts[_DICTIONARY]) if facts.get(_DICTIONARY, 0) > 0 else first
            width = element.get(_TYPE_LENGTH, 0) if kind == _FIXED_LENGTH else 0
            width = max(width, _WIDTHS[kind] if 0 <= kind < len(_WIDTHS) else _WIDEST)
            yield ColumnClaim(kind, width, facts[_NUM_VALUES], facts[_UNCOMPRESSED], start, facts[_COMPRESSED])


def _page_bytes(data: mmap.mmap, claim: ColumnClaim) -> int:
    """Unpacked size of the pages of a column. Memory is reserved for as much as each page's own header states, whatever
    the footer states. Pages are read, as pyarrow does, until there are as many values as the footer says."""
    total = seen = 0
    place, end = claim.start, min(len(data), claim.start + claim.compressed)
    while seen < claim.values and 0 <= place < end:
        header = _Compact(data, place)
        page = header.struct()
        size, own = page[_PAGE_UNCOMPRESSED], page.get(_KINDS_OF_PAGES.get(page[_PAGE_TYPE], 0), {})
        values = own.get(_PAGE_VALUES, 0)
        if min(size, page[_PAGE_COMPRESSED], values) < 0:
            raise ValueError("a page has a negative size")
        if page[_PAGE_TYPE] == _DICTIONARY_PAGE:
            size = max(size, values * claim.width)
        else:
            seen += values
        total += size
        place = header.place + page[_PAGE_COMPRESSED]
    return total


def _footer(data: mmap.mmap) -> bytes:
    length, magic = struct.unpack("<I4s", data[-8:])
    if magic != MAGIC or length > min(len(data) - 8, LARGEST_FOOTER):
        raise ValueError("no footer")
    return data[len(data) - 8 - length : len(data) - 8]


class _Compact:
    """Reads Thrift's compact protocol into dictionaries by field number and lists."""

    def __init__(self, data: bytes | mmap.mmap, place: int = 0) -> None:
        self.data = data
        self.place = place

    def byte(self) -> int:
        value = self.data[self.place]
        self.place += 1
        return value

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, count: int) -> None:
        if count < 0 or self.place + count > len(self.data):
            raise ValueError("it ends too early")
        self.place += count

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while True:
            header = self.byte()
            kind = header & 0x0F
            if kind == 0:
                return fields
            number = number + (header >> 4) if header >> 4 else self.integer()
            fields[number] = kind == 1 if kind in (1, 2) else self.value(kind)

    def value(self, kind: int) -> Any:
        if kind in (4, 5, 6):
            return self.integer()
        if kind in (1, 2, 3):  # in a list, a truth value takes a byte
            return self.byte()
        if kind == 12:
            return self.struct()
        if kind in (9, 10):
            return self.items()
        if kind == 7:
            self.skip(8)
        elif kind == 8:
            self.skip(self.varint())
        elif kind == 11:
            self.pairs()
        else:
            raise ValueError(f"unknown type {kind}")
        return None

    def items(self) -> list[Any]:
        header = self.byte()
        count = header >> 4 if header >> 4 != 15 else self.varint()
        if count > len(self.data) - self.place:
            raise ValueError("a list is longer than the footer")
        return [self.value(header & 0x0F) for _ in range(count)]

    def pairs(self) -> None:
        count = self.varint()
        if count:
            kinds = self.byte()
            for _ in range(count):
                self.value(kinds >> 4)
                self.value(kinds & 0x0F)


def largest_size(path: Path) -> int:
    """How many bytes a file may become."""
    return max(SMALL, LARGEST_EXPANSION * path.stat().st_size)


def refuse_expansion(path: Path) -> None:
    """Refuses a file that claims more values, or more bytes, than one of its size may hold."""
    total = count_claimed_bytes(path)
    if total > largest_size(path):
        raise InputError(f"it claims to be {total:,} bytes when read, far more than the file can hold", path=path)


def refuse_nested(schema: Any, names: Iterable[str], path: Path) -> None:
    """Refuses columns that should hold a word or a number per row and hold lists or records of them, or words of a
    fixed great length. What repeats inside of these can't be kept once, so that a small file may become any size."""
    import pyarrow as pa

    for name in names:
        kind = schema.field(name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        wide = pa.types.is_fixed_size_binary(plain) and plain.byte_width > LONGEST_FIXED
        if pa.types.is_nested(plain) or wide:
            fix = "write a word or a number per row"
            raise InputError(f"column {name!r} holds {str(kind)[:80]}", path=path, fix=fix)


def read_table(path: Path, words: Sequence[str], numbers: Sequence[str]) -> Iterator[Any]:
    """The row groups of a table with these columns: words, each distinct one once, and numbers or truth values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_expansion(path)
    # Opened by Python: a path that the locale can't spell is none for Arrow.
    with arrow_errors(path), open(path, "rb") as file, pq.ParquetFile(file, read_dictionary=list(words)) as opened:
        schema = opened.schema_arrow
        for name in (*words, *numbers):
            if schema.names.count(name) != 1:
                raise InputError(f"no single column {name!r}", path=path)
        refuse_nested(schema, words, path)
        for name in words:
            kind = schema.field(name).type
            if not (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)):
                raise InputError(f"column {name!r} holds {str(kind)[:80]}, not words", path=path)
        for name in numbers:
            kind = schema.field(name).type
            if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise InputError(f"column {name!r} holds {str(kind)[:80]}, not numbers", path=path)
        for number in range(opened.num_row_groups):
            table = opened.read_row_group(number, columns=[*words, *numbers])
            table.validate(full=True)  # invalid UTF-8, indices outside a dictionary
            if any(table.column(name).null_count for name in (*words, *numbers)):
                raise InputError("some of its cells are empty", path=path)
            yield table


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Arrow's errors about a corrupt file, as errors of the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"corrupt Parquet file: {first}", path=path) from None


def texts(column: Any, path: Path) -> list[str]:
    """The strings of a column that was read as a dictionary, one Python string per distinct value: what repeats a
    thousand times costs once. Missing ones are empty."""
    import pyarrow as pa

    values: list[str] = []
    known: dict[str, str] = {}
    with arrow_errors(path):
        column.validate(full=True)
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        distinct = [
            known.setdefault(text, text) for text in (str(value or "") for value in chunk.dictionary.to_pylist())
        ]
        if any(len(text) > LONGEST_TEXT for text in distinct):
            raise InputError(f"a text in it is longer than {LONGEST_TEXT:,} characters", path=path)
        indices = chunk.indices.fill_null(len(distinct)).to_pylist()
        distinct.append("")
        values += [distinct[index] for index in indices]
    return values
