"""Parquet files of strangers: how large one becomes in memory is known from its footer, before anything is decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.parquet_footer import column_claims

SMALL = 1 << 26  # bytes that any file may become
LARGEST_EXPANSION = 200  # times its size beyond that: encodings shrink honest numbers less
LONGEST_TEXT = 1 << 16
_WIDTHS = (1, 4, 8, 12, 4, 8, 8)  # of physical types by number: BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY
_WIDEST = 16


def allowed(path: Path) -> int:
    """How many bytes a file may become."""
    return max(SMALL, LARGEST_EXPANSION * path.stat().st_size)


def refuse_expansion(path: Path) -> None:
    """Refuses a file that claims more values, or more bytes, than one of its size may hold."""
    total = 0
    for claim in column_claims(path):
        known = 0 <= claim.physical_type < len(_WIDTHS)
        width = _WIDTHS[claim.physical_type] if known else _WIDEST
        total += max(claim.uncompressed, claim.values * width, 0)
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
