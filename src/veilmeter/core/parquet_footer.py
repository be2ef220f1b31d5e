"""What a Parquet file claims of its columns and their pages, read from its footer and the pages' headers (compact
Thrift) before anything is decoded.

pyarrow has some of these figures, but ends the whole process on a footer that lacks some of them.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError

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


def claimed_bytes(path: Path) -> int:
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
        what = "this is no sound Parquet file: its footer is damaged"
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
    """What the pages of a column become: memory is reserved for as much as each page's own header says, whatever the
    footer has. They are read, as pyarrow does, until there are as many values as the footer says."""
    total = seen = 0
    place, end = claim.start, min(len(data), claim.start + claim.compressed)
    while seen < claim.values and 0 <= place < end:
        header = _Compact(data, place)
        page = header.struct()
        size, own = page[_PAGE_UNCOMPRESSED], page.get(_KINDS_OF_PAGES.get(page[_PAGE_TYPE], 0), {})
        values = own.get(_PAGE_VALUES, 0)
        if min(size, page[_PAGE_COMPRESSED], values) < 0:
            raise ValueError("a page is smaller than nothing")
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
            raise ValueError(f"there is no type {kind}")
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
