"""Our own store: a broken shard costs only itself, and a large store does not go through memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.parquet import open_shards, read_columns, read_store, write_shard, write_store
from veilmeter.data.formats.vectors import load_embeddings, read_embeddings


def part(first: int, n: int = 10, d: int = 4) -> Embeddings:
    rng = np.random.default_rng(first)
    ids = [f"u{i}" for i in range(first, first + n)]
    return Embeddings(rng.normal(size=(n, d)), ids, [f"s{i // 2}" for i in range(first, first + n)])


def test_shards_with_their_metadata(tmp_path: Path) -> None:
    write_shard(tmp_path / "part-1.parquet", part(0), {"accent": ["x"] * 10}, {"extractor": "campplus"})
    write_shard(tmp_path / "part-2.parquet", part(10))
    shards, problems = open_shards(tmp_path)
    assert not problems
    assert [s.rows for s in shards] == [10, 10]
    assert shards[0].metadata == {"extractor": "campplus"}
    assert read_columns(shards[1], ["utterance"])["utterance"][0] == "u10"
    e = read_embeddings(tmp_path)
    assert len(e) == 20
    assert e.attributes["accent"].tolist() == ["x"] * 10 + [""] * 10
    assert np.array_equal(e.vectors[10:], part(10).vectors)
    with pytest.raises(InputError, match="column 'nothing'"):
        read_columns(shards[0], ["nothing"])
    with pytest.raises(InputError, match="can't be called"):
        write_shard(tmp_path / "x.parquet", part(0), {"vector": ["x"] * 10})
    with pytest.raises(InputError, match="3 entries"):
        write_shard(tmp_path / "x.parquet", part(0), {"accent": ["x"] * 3})


def test_broken_shards_are_skipped_and_named(tmp_path: Path) -> None:
    for number in range(6):
        write_shard(tmp_path / f"part-{number}.parquet", part(10 * number, d=64))
    data = (tmp_path / "part-1.parquet").read_bytes()
    (tmp_path / "part-1.parquet").write_bytes(data[: len(data) // 2])
    (tmp_path / "part-2.parquet").write_bytes(b"")
    flipped = bytearray((tmp_path / "part-3.parquet").read_bytes())
    place = flipped.index(np.ascontiguousarray(part(30, d=64).vectors[5]).tobytes()[:16])
    flipped[place] ^= 1  # one bit of one number: only the page's checksum tells
    (tmp_path / "part-3.parquet").write_bytes(flipped)
    pq.write_table(pa.table({"utterance": ["a"]}), tmp_path / "part-4.parquet")
    write_shard(tmp_path / "part-5.parquet", part(50, d=3))
    loaded = load_embeddings(tmp_path)
    assert loaded.embeddings.utterances.tolist() == [f"u{i}" for i in range(10)]
    assert {Path(p.path).name: p.kind for p in loaded.problems} == {
        "part-1.parquet": "corrupt-shard",
        "part-2.parquet": "corrupt-shard",
        "part-3.parquet": "corrupt-shard",
        "part-4.parquet": "corrupt-shard",
        "part-5.parquet": "differing-length",
    }
    with pytest.raises(InputError):
        read_embeddings(tmp_path)


def test_a_store_of_broken_shards_only(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="corrupt Parquet"):
        read_embeddings(tmp_path)


def test_a_small_file_that_claims_to_be_huge(tmp_path: Path) -> None:
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(1 << 25, np.float32)), 1 << 12)
    n = len(zeros)
    table = pa.table({"utterance": ["u"] * n, "speaker": ["s"] * n, "vector": zeros})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 17
    with pytest.raises(InputError, match="far more than the file can hold"):
        read_embeddings(tmp_path / "a.parquet")


def test_mapped_is_the_same(tmp_path: Path) -> None:
    e = part(0, 1000, 16)
    write_store(tmp_path, e, shard_rows=300)
    assert len(list(tmp_path.glob("part-*.parquet"))) == 4
    found = read_store(tmp_path, memory_map=True)
    assert isinstance(found.vectors, np.memmap)
    assert np.array_equal(found.vectors, e.vectors)
    loaded = Embeddings(found.vectors, found.utterances, found.speakers or [])
    assert isinstance(loaded.vectors, np.memmap)
    assert np.allclose(np.linalg.norm(loaded.unit, axis=1), 1)


_MEASURE = """
import sys, numpy as np
from pathlib import Path
from veilmeter.data.formats.parquet import read_store

def own():
    return {k: int(v.split()[0]) for k, v in (l.split(":") for l in open("/proc/self/status") if "kB" in l)}["RssAnon"]

read_store(Path(sys.argv[2]))
before = own()
found = read_store(Path(sys.argv[1]), memory_map=True)
print(own() - before, found.vectors.shape[0], float(found.vectors[-1, 0]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_a_large_store_does_not_go_through_memory(tmp_path: Path) -> None:
    """120,000 vectors of 256 numbers, a tenth of Common Voice, are 123 MB; Arrow alone takes some 40 MB."""
    rng = np.random.default_rng(0)
    rows = 15_000
    for number in range(8):
        ids = [f"u{number * rows + i}" for i in range(rows)]
        e = Embeddings(rng.normal(size=(rows, 256)), ids, [u[:4] for u in ids])
        write_shard(tmp_path / "big" / f"part-{number}.parquet", e)
    write_shard(tmp_path / "small.parquet", part(0))
    command = [sys.executable, "-c", _MEASURE, str(tmp_path / "big"), str(tmp_path / "small.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kilobytes, count, last = done.stdout.split()
    assert int(count) == 8 * rows
    assert float(last) == pytest.approx(float(e.vectors[-1, 0]))
    assert int(kilobytes) < 75_000


def test_lists_as_pandas_writes_them(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    ids, who = list("abcde"), ["s", "s", "t", "t", "t"]
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.float32())):
        table = pa.table({"utterance": ids, "speaker": who, "vector": pa.array(rows.tolist(), kind)})
        pq.write_table(table, tmp_path / "x.parquet")
        found = read_embeddings(tmp_path / "x.parquet")
        np.testing.assert_array_equal(found.vectors, rows)
        assert found.speakers.tolist() == who
    uneven = [row.tolist()[: 2 + (i != 3)] for i, row in enumerate(rows)]
    pq.write_table(pa.table({"utterance": ids, "speaker": who, "vector": uneven}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="differ in length: the first has 3 numbers, another 2"):
        read_embeddings(tmp_path / "x.parquet")
    pq.write_table(pa.table({"utterance": ids, "speaker": who, "vector": ids}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="write it as lists of float32"):
        read_embeddings(tmp_path / "x.parquet")


def test_columns_come_in_the_order_of_the_file_in_every_process(tmp_path: Path) -> None:
    """The order of a set of names differs from process to process, and with it went the digest of the contents."""
    names = ["session", "gender", "part", "accent", "age"]
    made = Embeddings(np.eye(3), ["a", "b", "c"], ["s", "s", "t"], {name: ["x", "y", "z"] for name in names})
    write_store(tmp_path / "store", made)
    code = (
        "import sys; from veilmeter.data.formats.vectors import read_embeddings as r\n"
        "from veilmeter.assessment.speech import content_digest as d\n"
        "e = r(sys.argv[1]); print(list(e.attributes), d(e))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "store")],
            env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in range(1, 5)
    }  # fmt: skip
    assert len(said) == 1
    assert str(names) in said.pop()
