"""Parquet files of strangers: how large one becomes in memory is known from its footer, before anything is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.parquet_footer import claimed_bytes

SMALL = 1 << 26  # bytes that any file may become
LARGEST_EXPANSION = 50  # times its size beyond that: encodings shrink honest numbers less
LONGEST_TEXT = 1 << 16
LONGEST_FIXED = 64  # bytes of what has one length in every row, such as a digest


def allowed(path: Path) -> int:
    """How many bytes a file may become."""
    return max(SMALL, LARGEST_EXPANSION * path.stat().st_size)


def refuse_expansion(path: Path) -> None:
    """Refuses a file that claims more values, or more bytes, than one of its size may hold."""
    total = claimed_bytes(path)
    if total > allowed(path):
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
                raise InputError(f"there is no single column {name!r}", path=path)
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
            table.validate(full=True)  # words that are no UTF-8, places of a dictionary that it does not have
            if any(table.column(name).null_count for name in (*words, *numbers)):
                raise InputError("some of its cells are empty", path=path)
            yield table


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Whatever Arrow says about a broken file, said as an error of the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"this is no sound Parquet file: {first}", path=path) from None


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
