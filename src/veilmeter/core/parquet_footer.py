"""What a Parquet file claims of its columns, read from its footer (compact Thrift) before anything is decoded.

pyarrow has the same figures, but ends the whole process on a footer that lacks some of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError

MAGIC = b"PAR1"
LARGEST_FOOTER = 1 << 27
# Numbers of the fields in parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
_ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE, _NUM_VALUES, _UNCOMPRESSED = 4, 1, 3, 1, 5, 6


@dataclass(frozen=True, slots=True)
class ColumnClaim:
    """One column of one row group: its physical type by number, how many values it has, and their bytes."""

    physical_type: int
    values: int
    uncompressed: int


def column_claims(path: Path) -> Iterator[ColumnClaim]:
    """Every column of every row group, as the footer has them; an InputError where it is damaged."""
    damaged = InputError("this is no sound Parquet file: its footer is damaged", path=path, fix="write it again")
    try:
        footer = _Compact(_footer(path)).struct()
        for group in footer.get(_ROW_GROUPS, []):
            for chunk in group[_COLUMNS]:
                facts = chunk[_META_DATA]
                claim = ColumnClaim(facts[_TYPE], facts[_NUM_VALUES], facts[_UNCOMPRESSED])
                if not all(isinstance(number, int) for number in (claim.physical_type, claim.values)):
                    raise damaged
                yield claim
    except (struct.error, IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise damaged from None


def _footer(path: Path) -> bytes:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        length, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC or length > min(size, LARGEST_FOOTER):
            raise ValueError("no footer")
        file.seek(size - 8 - length)
        return file.read(length)


class _Compact:
    """Reads Thrift's compact protocol into dictionaries by field number and lists."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

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
