"""Kaldi's files: every layout that the challenges left behind, and none of their shell commands."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import kaldiio
import numpy as np
import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.kaldi import Ark, read_ark
from veilmeter.data.formats.vectors import load_embeddings, read_embeddings, write_embeddings


@pytest.fixture
def xvectors(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    speakers = ["b", "b", "a", "a"]
    e = Embeddings(rng.normal(size=(4, 3)), ["b-1", "b-2", "a-1", "a-2"], speakers, {"gender": ["f", "f", "m", "m"]})
    write_embeddings(e, tmp_path / "x", form="kaldi")
    return tmp_path / "x"


def rewritten(folder: Path, place: str) -> Path:
    scp = folder / "xvector.scp"
    scp.write_text(scp.read_text().replace("xvector.ark", place))
    return folder


def test_another_reader_agrees(xvectors: Path) -> None:
    mine = read_embeddings(xvectors)
    theirs = dict(kaldiio.load_ark(str(xvectors / "xvector.ark")))
    assert list(theirs) == mine.utterances.tolist()
    assert all(np.array_equal(theirs[u], v) for u, v in zip(mine.utterances, mine.vectors, strict=True))


def test_what_another_writer_wrote(tmp_path: Path) -> None:
    vectors = {f"u{i}": np.random.default_rng(i).normal(size=4).astype(np.float32) for i in range(3)}
    kaldiio.save_ark(str(tmp_path / "t.ark"), vectors, text=True)
    kaldiio.save_ark(str(tmp_path / "d.ark"), {k: v.astype(np.float64) for k, v in vectors.items()})
    kaldiio.save_ark(str(tmp_path / "m.ark"), {k: v[None] for k, v in vectors.items()})
    for name in ("t.ark", "d.ark", "m.ark"):
        found = read_ark(tmp_path / name)
        assert found.utterances == list(vectors)
        assert np.allclose(np.stack(found.vectors), np.stack(list(vectors.values())), atol=1e-5)


def test_stale_paths(xvectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_embeddings(xvectors).vectors
    for place in ("/home/somebody/exp/xvector.ark", "exp/nnet/xvector.ark", str(xvectors / "xvector.ark")):
        moved = rewritten(xvectors, place)
        assert np.array_equal(read_embeddings(moved).vectors, before)
        rewritten(xvectors, "")
        scp = xvectors / "xvector.scp"
        scp.write_text("".join(f"{line.split()[0]} xvector.ark:{line.rsplit(':')[-1]}" for line in
                               scp.read_text().splitlines(True)))  # fmt: skip
    (tmp_path / "work/exp").mkdir(parents=True)
    os.rename(xvectors / "xvector.ark", tmp_path / "work/exp/elsewhere.ark")
    rewritten(xvectors, "exp/elsewhere.ark")
    monkeypatch.chdir(tmp_path / "work")
    assert np.array_equal(read_embeddings(xvectors).vectors, before)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is not there"):
        read_embeddings(xvectors)


def test_pieces_in_the_order_of_their_numbers(xvectors: Path) -> None:
    lines = (xvectors / "xvector.scp").read_text().splitlines(True)
    (xvectors / "xvector.scp").unlink()
    for number, line in zip((2, 1, 10, 9), lines, strict=True):
        (xvectors / f"xvector.{number}.scp").write_text(line)
    assert read_embeddings(xvectors).utterances.tolist() == ["b-2", "b-1", "a-2", "a-1"]


def test_pipes_are_never_run(xvectors: Path, tmp_path: Path) -> None:
    (xvectors / "xvector.scp").write_text(f"b-1 touch {tmp_path}/run; cat xvector.ark |\n")
    with pytest.raises(InputError, match="never run"):
        read_embeddings(xvectors)
    (xvectors / "xvector.scp").write_text(f"b-1 | touch {tmp_path}/run\n")
    with pytest.raises(InputError, match="never run"):
        read_embeddings(xvectors)
    assert not (tmp_path / "run").exists()


def test_every_bad_line_is_named(xvectors: Path) -> None:
    scp = xvectors / "xvector.scp"
    good = scp.read_text().splitlines()
    extra = np.ones(7, "<f4")
    at = (xvectors / "xvector.ark").stat().st_size
    with open(xvectors / "xvector.ark", "ab") as ark:
        ark.write(b"c-1 \0BFV \4" + struct.pack("<i", 7) + extra.tobytes())
    lines = [*good, good[0], "lonely", "b-9 gone.ark:3", "b-8 xvector.ark:1", "b-7 xvector.ark:99999999", ""]
    scp.write_text("\n".join([*lines, f"b-2-long xvector.ark:{at + 4}"]) + "\n")
    (xvectors / "meta/utt2spk").write_text("".join(f"{u} {u[0]}\n" for u in ("b-1", "b-2", "a-1", "a-2", "b-2-long")))
    loaded = load_embeddings(xvectors)
    kinds = {p.line: p.kind for p in loaded.problems}
    assert kinds == {5: "same-id-twice", 6: "bad-line", 7: "missing-ark", 8: "bad-vector", 9: "bad-vector",
                     11: "differing-length"}  # fmt: skip
    assert len(loaded.embeddings) == 4
    assert all(str(p).startswith(str(scp)) for p in loaded.problems)


@pytest.mark.parametrize(
    "body",
    [
        b"u \0BFV \4\xff\xff\xff\x7f",  # two thousand million numbers
        b"u \0BFV \4\xff\xff\xff\xff",  # minus one
        b"u \0BFV \4\0\0\0\0",
        b"u \0BFV \3\1\0",
        b"u \0BCM \4\1\0\0\0",
        b"u \0BFM \4\2\0\0\0\4\2\0\0\0" + bytes(16),
        b"u  [ 1 2",
        b"u  [ 1 x ]",
        b"u  [ ]",
        b"u  1 2 ]",
        b"nothing",
        b"\xff\xfe \0BFV \4\1\0\0\0\0\0\0\0",
        b" " * 5000 + b"u",
    ],
)
def test_broken_arks(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "a.ark").write_bytes(body)
    with pytest.raises(InputError):
        read_ark(tmp_path / "a.ark")


def test_an_empty_ark_and_bad_offsets(tmp_path: Path) -> None:
    (tmp_path / "a.ark").write_bytes(b"")
    assert read_ark(tmp_path / "a.ark").utterances == []
    with pytest.raises(InputError, match="outside"):
        Ark(tmp_path / "a.ark").at(0)


def test_ids_that_kaldi_can_not_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="white space"):
        write_embeddings(Embeddings([[1.0]], ["a b"], ["s"]), tmp_path / "x", form="kaldi")
    with pytest.raises(InputError, match="name of a Kaldi file"):
        write_embeddings(Embeddings([[1.0]], ["a"], ["s"], {"../x": ["1"]}), tmp_path / "x", form="kaldi")


def test_speakers_from_spk2utt_alone(tmp_path: Path) -> None:
    made = Embeddings([[1, 0], [0, 1], [1, 1]], ["a-1", "a-2", "b-1"], ["a", "a", "b"], {"gender": ["f", "f", "m"]})
    write_embeddings(made, tmp_path / "x", form="kaldi")
    (tmp_path / "x" / "meta" / "utt2spk").unlink()
    (tmp_path / "x" / "meta" / "spk2utt").write_text("a a-1 a-2\nb b-1\n")
    found = read_embeddings(tmp_path / "x")
    assert found.speakers.tolist() == ["a", "a", "b"]
    assert found.attributes["gender"].tolist() == ["f", "f", "m"]


def test_an_utterance_of_two_speakers_is_a_problem(tmp_path: Path) -> None:
    write_embeddings(Embeddings([[1, 0], [0, 1]], ["a-1", "b-1"], ["a", "b"]), tmp_path / "x", form="kaldi")
    with open(tmp_path / "x" / "meta" / "utt2spk", "a") as file:
        file.write("a-1 b\n")
    with pytest.raises(InputError, match="'a-1' occurs twice, as 'a' and as 'b'"):
        read_embeddings(tmp_path / "x")
