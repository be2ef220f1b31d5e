"""Large pieces of plain files read by Arrow: one blank or tab between columns, nothing odd. What is odd is left to the
reader that knows every error; here it is only noticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
