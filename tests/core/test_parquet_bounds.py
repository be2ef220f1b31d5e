"""The footer is read as pyarrow reads it, and damage in it is an error, never the end of the process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmeter.core.errors import InputError
from veilmeter.core.parquet_bounds import column_claims


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a", "b", None] * 50, "vector": [[1.0, 2.0]] * 150, "number": np.arange(150)})
    pq.write_table(table, path, row_group_size=40, compression="zstd")
    return path


def test_as_pyarrow_reads_it(file: Path) -> None:
    metadata = pq.ParquetFile(file).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [group.column(index) for group in groups for index in range(group.num_columns)]
    claims = list(column_claims(file))
    assert [claim.values for claim in claims] == [column.num_values for column in columns]
    assert [claim.uncompressed for claim in claims] == [column.total_uncompressed_size for column in columns]
    names = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY"]
    assert [names[claim.physical_type] for claim in claims] == [column.physical_type for column in columns]


def test_any_flipped_bit_is_read_or_refused(file: Path) -> None:
    good = file.read_bytes()
    refused = 0
    for place in range(len(good) - 600, len(good)):
        damaged = bytearray(good)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        try:
            list(column_claims(file))
        except InputError:
            refused += 1
    assert refused > 25  # how many depends on what the version of pyarrow writes there


def test_cut_and_empty_files_are_refused(file: Path) -> None:
    good = file.read_bytes()
    for size in (0, 3, 8, len(good) // 2, len(good) - 1):
        file.write_bytes(good[:size])
        with pytest.raises(InputError, match="footer is damaged"):
            list(column_claims(file))
