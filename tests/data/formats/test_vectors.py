"""Embeddings in every format: what is written comes back, what is wrong is named, and nothing in a file is run."""

from __future__ import annotations

import io
import pickle
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.checks import check
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import is_embeddings, load_embeddings, read_embeddings, write_embeddings

FORMS = [("a.npz", None), ("a.h5", None), ("a.parquet", None), ("store", None), ("x", "kaldi"), ("k/v.scp", None)]


def example(n: int = 12, d: int = 5, *, seed: int = 0) -> Embeddings:
    rng = np.random.default_rng(seed)
    speakers = [f"s{i // 4}" for i in range(n)]
    return Embeddings(
        rng.normal(size=(n, d)),
        [f"{s}-é{i}" for i, s in enumerate(speakers)],
        speakers,
        {"gender": ["f" if s == "s1" else "m" for s in speakers], "session": [f"k{i % 2}" for i in range(n)]},
        rng.uniform(1, 9, size=n),
    )


def same(a: Embeddings, b: Embeddings) -> None:
    rows = [b.utterance_rows[u] for u in a.utterances]
    assert len(a) == len(b)
    assert np.array_equal(a.vectors, np.asarray(b.vectors)[rows])
    assert list(a.speakers) == list(b.speakers[rows])
    assert {k: list(v) for k, v in a.attributes.items()} == {k: list(v[rows]) for k, v in b.attributes.items()}
    assert a.durations is not None
    assert b.durations is not None
    assert np.array_equal(a.durations, b.durations[rows])


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_what_is_written_comes_back(tmp_path: Path, name: str, form: str | None) -> None:
    write_embeddings(example(), tmp_path / name, form=form)
    assert is_embeddings(tmp_path / name)
    same(example(), read_embeddings(tmp_path / name))
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert {oct(p.stat().st_mode)[-3:] for p in files} == {"600"}


@pytest.mark.parametrize(("name", "form"), [*FORMS[:3], *FORMS[4:]])
def test_bad_vectors_are_counted_and_named(tmp_path: Path, name: str, form: str | None) -> None:
    vectors = example().vectors.copy()
    e = example()
    object.__setattr__(e, "vectors", vectors)  # a table that could not be made is written as another tool would
    vectors[2, 1] = np.nan
    vectors[5] = 0
    vectors[7, 0] = np.inf
    write_embeddings(e, tmp_path / name, form=form)
    loaded = load_embeddings(tmp_path / name)
    assert len(loaded.embeddings) == 9
    assert sorted(p.kind for p in loaded.problems) == ["not-finite", "not-finite", "zero-vector"]
    assert any(e.utterances[5] in p.what for p in loaded.problems)
    assert len(loaded.findings()) == 2
    with pytest.raises(InputError, match="there are 2 more problems"):
        read_embeddings(tmp_path / name)
    assert read_embeddings(tmp_path / name, strict=False).dimension == 5
    found = check(tmp_path / name)
    assert not found.usable
    assert found.facts["problems"] == {"not-finite": 2, "zero-vector": 1}


def test_real_xvector_folder(vpc2020: Path) -> None:
    e = read_embeddings(vpc2020 / "extractor-original" / "xvect_libri_test_trials_f")
    assert (len(e), len(e.names), e.dimension) == (734, 20, 512)
    assert set(e.attributes["gender"]) == {"f"}
    assert e.durations is not None
    assert e.durations[0] == 17.695
    assert check(vpc2020 / "extractor-original" / "xvect_libri_test_trials_f").usable


def test_no_speakers_no_vectors_no_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", ids=np.array(["u"]), vectors=np.ones((1, 3)))
    with pytest.raises(InputError, match="the speakers of these utterances are unknown"):
        read_embeddings(tmp_path / "a.npz")
    (tmp_path / "utt2spk").write_text("u s\n")
    assert read_embeddings(tmp_path / "a.npz").names == ("s",)
    with pytest.raises(InputError, match="no such file"):
        read_embeddings(tmp_path / "b.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no vectors are recognized"):
        read_embeddings(tmp_path / "empty")
    with pytest.raises(InputError, match="can't be written as"):
        write_embeddings(example(), tmp_path / "a.docx")


def test_missing_speakers_are_left_out(tmp_path: Path) -> None:
    write_embeddings(example(), tmp_path / "x", form="kaldi")
    lines = (tmp_path / "x/meta/utt2spk").read_text().splitlines()
    (tmp_path / "x/meta/utt2spk").write_text("\n".join(lines[2:]) + "\n")
    loaded = load_embeddings(tmp_path / "x")
    assert [p.kind for p in loaded.problems] == ["no-speaker"] * 2
    assert len(loaded.embeddings) == 10


def test_pickles_are_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "run",))

    np.savez(tmp_path / "a.npz", ids=np.array([Evil()], object), vectors=np.ones((1, 2)), speakers=np.array(["s"]))
    with pytest.raises(InputError, match="never loaded"):
        read_embeddings(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError, match="a pickle can run code"):
        read_embeddings(tmp_path / "b.npz")
    assert not (tmp_path / "run").exists()


def test_npz_bombs_and_lies(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 4)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("vectors.npy", header.getvalue())
        archive.writestr("ids.npy", header.getvalue())
    with pytest.raises(InputError, match="length it claims"):
        read_embeddings(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vectors.npy", bytes(1 << 25))
        archive.writestr("ids.npy", b"")
    with pytest.raises(InputError, match="far more"):
        read_embeddings(tmp_path / "b.npz")


def test_npz_forms(tmp_path: Path) -> None:
    """Doubles, column-major tables and compressed files are read too; plain float32 is mapped, not loaded."""
    x = np.arange(6.0).reshape(3, 2) + 1
    speakers = np.array([b"a", b"a", b"b"])
    np.savez_compressed(tmp_path / "a.npz", ids=np.arange(3), vectors=np.asfortranarray(x), speakers=speakers)
    e = read_embeddings(tmp_path / "a.npz")
    assert e.utterances.tolist() == ["0", "1", "2"]
    assert np.array_equal(e.vectors, x.astype(np.float32))
    np.savez(tmp_path / "b.npz", ids=np.arange(3), vectors=x.astype(np.float32), speakers=speakers)
    mapped = read_embeddings(tmp_path / "b.npz").vectors
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(mapped, x.astype(np.float32))


def test_h5_does_not_reach_other_files(tmp_path: Path) -> None:
    write_embeddings(example(), tmp_path / "other.h5")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["u1"] = np.ones(3)
        file["u1"].attrs["speaker"] = "a"
        file["away"] = h5py.ExternalLink("other.h5", "/s0-é0")
        file["soft"] = h5py.SoftLink("/u1")
        file["bytes"] = np.array([b"x"])
        file["matrix"] = np.ones((2, 3))
        file["bomb"] = h5py.Empty("f4")
        file.create_dataset("huge", shape=(1 << 40,), chunks=(1024,), dtype="f4")
        layout = h5py.VirtualLayout(shape=(3,), dtype="f4")
        layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "s0-é0", shape=(5,))[:3]
        file.create_virtual_dataset("virtual", layout)
    loaded = load_embeddings(tmp_path / "a.h5")
    assert loaded.embeddings.utterances.tolist() == ["u1"]
    assert {p.kind for p in loaded.problems} == {"bad-vector"}
    assert len(loaded.problems) == 5


def test_ids_that_are_no_text(tmp_path: Path) -> None:
    ids = np.array(["a", "b\ud800", "", "c"])
    np.savez(tmp_path / "a.npz", ids=ids, vectors=np.ones((4, 2)), speakers=np.array(["s"] * 4))
    loaded = load_embeddings(tmp_path / "a.npz")
    assert loaded.embeddings.utterances.tolist() == ["a", "c"]
    assert [p.kind for p in loaded.problems] == ["bad-id"] * 2


@cache
def valid() -> dict[str, bytes]:
    folder = Path(tempfile.mkdtemp())
    made = {}
    for name in ("a.npz", "a.h5", "a.parquet", "a.ark"):
        write_embeddings(example(6, 3), folder / name)
        made[name] = (folder / name).read_bytes()
    scp = (folder / "a.scp").read_bytes()
    shutil.rmtree(folder)
    text = b"u1  [ 1 2 3 ]\nu2  [ 4 5 6 ]\n"
    return made | {"text.ark": text, "a.scp": scp}


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.ark", "text.ark", "a.scp"])
@settings(max_examples=80)
@given(data=st.data())
def test_broken_files_give_errors_of_ours(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    broken(tmp_path_factory.mktemp("fuzz"), name, data)


@settings(max_examples=15)  # each is read in a process of its own
@given(data=st.data())
def test_broken_h5_files_give_errors_of_ours(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    broken(tmp_path_factory.mktemp("fuzz"), "a.h5", data)


def test_a_crash_of_the_h5_library_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.h5").write_bytes(valid()["a.h5"])
    crash = tmp_path / "crash"
    crash.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crash.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(crash))
    with pytest.raises(InputError, match="failed \\(signal 11\\)"):
        read_embeddings(tmp_path / "a.h5")


def broken(folder: Path, name: str, data: st.DataObject) -> None:
    raw = bytearray(valid()[name])
    if data.draw(st.booleans(), "keep most"):
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        raw = raw[: data.draw(st.integers(1, len(raw)))] if data.draw(st.booleans(), "cut") else raw
    else:
        raw = bytearray(data.draw(st.binary(max_size=300)))
    (folder / "utt2spk").write_text("u1 a\nu2 b\n")
    (folder / "a.ark").write_bytes(valid()["a.ark"])
    (folder / name).write_bytes(raw)
    try:
        found = load_embeddings(folder / name).embeddings
    except VeilmeterError:
        return
    assert np.isfinite(found.vectors).all()
