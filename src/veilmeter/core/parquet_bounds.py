"""Parquet files of strangers: how large one becomes in memory is known from its footer, before anything is decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError

SMALL = 1 << 26  # bytes that any file may become
LARGEST_EXPANSION = 200  # times its size beyond that: encodings shrink honest numbers less
LONGEST_TEXT = 1 << 16
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 8}


def allowed(path: Path) -> int:
    """How many bytes a file may become."""
    return max(SMALL, LARGEST_EXPANSION * path.stat().st_size)


def refuse_expansion(opened: Any, path: Path) -> None:
    """Refuses an open `ParquetFile` that claims more values, or more bytes, than a file of its size may hold."""
    metadata = opened.metadata
    total = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            column = group.column(index)
            width = _WIDTHS.get(column.physical_type, 16)
            total += max(int(column.total_uncompressed_size), int(column.num_values) * width, 0)
    if total > allowed(path):
        raise InputError(f"it claims to be {total:,} bytes when read, far more than the file can hold", path=path)


def texts(column: Any, path: Path) -> list[str]:
    """The strings of a column that was read as a dictionary, one Python string per distinct value: what repeats a
    thousand times costs once. Missing ones are empty."""
    import pyarrow as pa

    values: list[str] = []
    known: dict[str, str] = {}
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
