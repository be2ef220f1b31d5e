"""Small files that would fill the memory: refused before they are unpacked, within a gigabyte and a half."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmeter.core.errors import InputError
from veilmeter.core.files import make_folder
from veilmeter.data.formats.vectors import load_embeddings

_PEAK = """
import re, resource, sys
from pathlib import Path
from veilmeter.core.errors import InputError
from veilmeter.data.formats.vectors import load_embeddings
try:
    load_embeddings(sys.argv[1])
except InputError as error:
    print(error)
# Not ru_maxrss of this process: it starts with the memory of whoever forked it, here the test runner's.
ours = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(max(ours, children) // 1024)
"""


def refusal(path: Path) -> str:
    """What reading embeddings says, in a process whose memory is watched."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)], capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *words, megabytes = done.stdout.splitlines()
    assert int(megabytes) < 1500, f"{megabytes} MB"
    return " ".join(words)


def test_chunks_of_hdf5_that_were_never_written(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(600):
            dataset = file.create_dataset(f"u{number}", shape=(1 << 20,), chunks=(1 << 20,), dtype="f4", fillvalue=1.0)
            dataset.attrs["speaker"] = f"s{number % 3}"
    assert (tmp_path / "a.h5").stat().st_size < 1 << 20
    assert "far more than the file holds of it" in refusal(tmp_path / "a.h5")


def test_an_attribute_of_hdf5_as_long_as_a_book(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        dataset = file.create_dataset("u", data=np.ones(4, np.float32))
        dataset.attrs.create("speaker", np.bytes_(b"x" * (1 << 20)))
    with pytest.raises(InputError, match="longer than 65536 bytes"):
        load_embeddings(tmp_path / "a.h5")


@pytest.mark.parametrize("kind", ["list", "fixed"])
def test_vectors_of_parquet_that_are_one_number_repeated(tmp_path: Path, kind: str) -> None:
    length = 1 << 26
    flat = pa.array(np.zeros(length, np.float32))
    vectors = (
        pa.FixedSizeListArray.from_arrays(flat, length)
        if kind == "fixed"
        else pa.ListArray.from_arrays(pa.array([0, length], pa.int32()), flat)
    )
    pq.write_table(pa.table({"utterance": ["u"], "speaker": ["s"], "vector": vectors}), tmp_path / "a.parquet")
    del flat, vectors
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 16
    assert "far more than the file can hold" in refusal(tmp_path / "a.parquet")


def test_a_text_of_a_megabyte_in_every_row(tmp_path: Path) -> None:
    rows = 3000
    words = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * (1 << 20)]))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(4 * rows, np.float32)), 4)
    names = [f"u{i}" for i in range(rows)]
    made = pa.table({"utterance": names, "speaker": ["a", "b"] * (rows // 2), "accent": words, "vector": vectors})
    pq.write_table(made, tmp_path / "a.parquet")
    assert "a text in it is longer than 65,536 characters" in refusal(tmp_path / "a.parquet")


def test_texts_that_repeat_are_kept_once(tmp_path: Path) -> None:
    """What is allowed costs little: a long text in many rows is one string."""
    rows = 2000
    accent = pa.DictionaryArray.from_arrays(pa.array([0, None] * (rows // 2), pa.int32()), pa.array(["y" * 60000]))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(4 * rows, np.float32)), 4)
    names = [f"u{i}" for i in range(rows)]
    made = pa.table({"utterance": names, "speaker": ["a", "b"] * (rows // 2), "accent": accent, "vector": vectors})
    pq.write_table(made, tmp_path / "a.parquet")
    found = load_embeddings(tmp_path / "a.parquet").embeddings
    assert len({id(text) for text in found.attributes["accent"]}) == 2
    assert found.attributes["accent"][1] == ""


def table(rows: int, **columns: object) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(4 * rows, np.float32)), 4)
    speakers = [f"s{number % 2}" for number in range(rows)]
    return pa.table({"utterance": [f"u{i}" for i in range(rows)], "speaker": speakers, **columns, "vector": vectors})


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("accent", lambda texts: pa.ListArray.from_arrays(pa.array(np.arange(len(texts) + 1), pa.int32()), texts)),
        ("accent", lambda texts: pa.StructArray.from_arrays([texts], ["inner"])),
        ("accent", lambda texts: pa.array([b"x" * 100] * len(texts), pa.binary(100))),
        ("duration", lambda texts: texts),
    ],
    ids=["list", "record", "fixed", "duration"],
)
def test_texts_where_none_can_be_kept_once(tmp_path: Path, name: str, wrap: Callable[[pa.Array], pa.Array]) -> None:
    """A file of one megabyte with 200,000 rows took six gigabytes: the type alone is enough to refuse it."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 10, pa.int32()), pa.array(["x" * 100]))
    pq.write_table(table(10, **{name: wrap(texts)}), tmp_path / "a.parquet", store_schema=False)
    with pytest.raises(InputError, match=f"column '{name}' holds"):
        load_embeddings(tmp_path / "a.parquet")


def zigzag(number: int) -> bytes:
    """A number as compact Thrift has it."""
    left, encoded = number << 1, bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*encoded, left])


@pytest.mark.parametrize("kind", ["data", "dictionary"])
def test_the_header_of_a_page_that_claims_two_gigabytes(tmp_path: Path, kind: str) -> None:
    """The footer is honest; memory is reserved by the header of each page."""
    path = tmp_path / "a.parquet"
    pq.write_table(table(300), path, compression="zstd", use_dictionary=kind == "dictionary")
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    start = column.dictionary_page_offset or column.data_page_offset
    data = path.read_bytes()
    own = b"\x15" + zigzag({"data": 0, "dictionary": 2}[kind]) + b"\x15"
    at = data.index(own, start) + len(own)
    if kind == "data":
        honest, size = len(zigzag(column.total_uncompressed_size)), zigzag(2**31 - 1)
        data = data[:at] + size + data[at + honest :]
    else:
        # A separate header states the number of values: 2**31 of four bytes each.
        inner = data.index(b"\x4c\x15", at) + 2
        data = data[:inner] + zigzag(2**31 - 1) + data[inner + 1 :]
    path.write_bytes(data)
    with pytest.raises(InputError, match="far more than the file can hold"):
        load_embeddings(path)


@pytest.mark.parametrize(
    "texts",
    [
        pa.array([["x"]] * 4),
        pa.array(["x", None, "y", "y"]),
        pa.array([1, 2, 3, 4]),
        pa.array([b"\xff"] * 4, pa.binary()),
    ],
    ids=["lists", "gaps", "numbers", "bytes"],
)
def test_a_table_of_a_run_with_other_columns(tmp_path: Path, texts: pa.Array) -> None:
    from veilmeter.results.run_folder import read_matrices

    words = pa.array(["OP"] * 4)
    columns = {"quadrant": words, "row": texts, "column": words, "similarity": np.ones(4)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", store_schema=False)
    with pytest.raises(InputError):
        read_matrices(tmp_path / "a.parquet")


def test_two_arrays_of_one_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", ids=["u"], vectors=np.ones((1, 2), np.float32), speakers=["s"])
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("ids.npy", archive.read("speakers.npy"))
    with pytest.raises(InputError, match="two of its arrays have one name"):
        load_embeddings(tmp_path / "a.npz")


def test_a_torch_file_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.zeros(1 << 25)}, tmp_path / "plain.pt")
    with zipfile.ZipFile(tmp_path / "plain.pt") as plain, zipfile.ZipFile(tmp_path / "x.pt", "w", 8) as packed:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    with pytest.raises(InputError, match="unpacked it would be"):
        load_embeddings(tmp_path / "x.pt")


def test_folders_above_the_output_are_the_owners_too(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        make_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    for name in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    from veilmeter.core.errors import VeilmeterError
    from veilmeter.core.files import cache_folder

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("VEILMETER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(VeilmeterError, match="set VEILMETER_CACHE"):
        cache_folder()


def test_a_list_that_a_stranger_wrote_reads_nothing_outside_with_root(tmp_path: Path) -> None:
    from veilmeter.data.corpus import read_corpus

    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary.wav").write_bytes(b"x")
    foreign = tmp_path / "foreign"
    (foreign / "wav").mkdir(parents=True)
    (foreign / "wav" / "u1.wav").write_bytes(b"x")
    diary = tmp_path / "private" / "diary.wav"
    (foreign / "wav.scp").write_text(f"u1 wav/u1.wav\nu2 {diary}\nu3 ../private/diary.wav\n")
    (foreign / "utt2spk").write_text("u1 a\nu2 b\nu3 c\n")
    own = read_corpus(foreign, "kaldi")  # absolute paths are the author's word; relative ones are sought above, too
    assert own.by_id["u2"].path == diary
    confined = read_corpus(foreign, "kaldi", roots=[foreign])
    assert list(confined.by_id) == ["u1"]
    assert {problem.kind for problem in confined.problems} == {"outside-root"}


@pytest.mark.parametrize("start", [b"", b"a b 1\n", b"a [ 1 2", b"a \0BFV \4\xff\xff\xff\x7f"])
def test_an_ark_of_a_terabyte_that_holds_nothing(tmp_path: Path, start: bytes) -> None:
    with open(tmp_path / "a.ark", "wb") as file:
        file.write(start)
        file.truncate(1 << 40)
    assert "a.ark" in refusal(tmp_path / "a.ark")


def test_an_scp_that_names_one_long_vector_again_and_again(tmp_path: Path) -> None:
    data = np.zeros(1 << 20, "<f4").tobytes()
    (tmp_path / "a.ark").write_bytes(b"u \0BFV \4" + (1 << 20).to_bytes(4, "little") + data)
    (tmp_path / "a.scp").write_text("".join(f"u{number} a.ark:2\n" for number in range(3000)))
    assert "far larger than their ark files" in refusal(tmp_path / "a.scp")


def test_an_scp_of_nothing_but_problems(tmp_path: Path) -> None:
    (tmp_path / "a.scp").write_text("".join(f"u{number} none.ark:2\n" for number in range(100_002)))
    with pytest.raises(InputError, match=r"more than 100,000 entries .*none\.ark"):
        load_embeddings(tmp_path / "a.scp")
