"""embed and anonymize on full and read-only disks, with a damaged cache and a clock that jumps."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
from veilmeter.anonymizers.base import load_anonymizer
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.files import sha256
from veilmeter.data.corpus import read_corpus
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.speech.audio import write_audio
from veilmeter.speech.extractors import embed_corpus as extraction_run
from veilmeter.speech.extractors.embed_corpus import embed_corpus

Command = Callable[..., tuple[int, str, str]]
YEARS = (1, 4_102_444_800)  # 1970 and 2100


def embedding(speech: Path, out: Path, own: str) -> list[object]:
    return ["embed", speech, out, "--extractor", own, "--jobs", 1, "--quiet"]


def anonymizing(speech: Path, out: Path) -> list[object]:
    return ["anonymize", speech, out, "--jobs", 1, "--quiet", "--manifest", out.with_name("manifest.jsonl")]


@pytest.mark.parametrize("what", ["embed", "anonymize"])
def test_a_full_disk(speech: Path, own_extractor: str, tmp_path: Path, command: Command, disk: Any, what: str) -> None:
    """The message says it, nothing is half-written, and with room again it ends as if nothing had been."""

    def arguments(out: Path) -> list[object]:
        return embedding(speech, out, own_extractor) if what == "embed" else anonymizing(speech, out)

    out = disk.folder / "out"
    filler = disk.folder / "filler"
    disk.again("size=256k")
    with open(filler, "wb") as handle:
        handle.write(bytes(160 * 1024 if what == "anonymize" else 252 * 1024))
    code, _, err = command(*arguments(out))
    assert code == 2, err
    assert "the disk is full (free some space and run the same command again; what was done is kept)" in err, err
    assert not list(out.rglob("*.part"))
    kept = {file: file.stat().st_ino for file in out.rglob("*.flac")}
    assert bool(kept) == (what == "anonymize")
    filler.unlink()
    disk.again("size=64m")
    code, _, err = command(*arguments(out))
    assert code == 0, err
    assert {file: file.stat().st_ino for file in kept} == kept
    (tmp_path / "plain").mkdir()
    plain = tmp_path / "plain" / "out"
    code, _, err = command(*arguments(plain))
    assert code == 0, err
    assert sha256(out) == sha256(plain)


@pytest.mark.parametrize("what", ["embed", "anonymize"])
def test_a_read_only_folder(speech: Path, own_extractor: str, command: Command, disk: Any, what: str) -> None:
    out = disk.folder / "out"
    out.mkdir()
    disk.again("ro")
    arguments = embedding(speech, out, own_extractor) if what == "embed" else anonymizing(speech, out)
    code, _, err = command(*arguments)
    assert code == 2
    assert "this file system is read-only (choose another folder)" in err
    assert "Traceback" not in err
    assert not list(out.iterdir())


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many recordings the extractor heard since the last time; the probe at its loading is one."""
    log = tmp_path / "log"
    monkeypatch.setenv("EXTRACTOR_LOG", str(log))

    def count() -> int:
        found = len(log.read_text()) if log.exists() else 0
        log.write_text("")
        return found

    return count


def test_any_flipped_bit_of_the_cache_is_noticed(
    speech: Path, own_extractor: str, tmp_path: Path, calls: Callable[[], int]
) -> None:
    """Wherever the damage is, the store ends as it was, or with an error; never with other vectors."""
    out = tmp_path / "out"
    corpus = read_corpus(speech)
    embed_corpus(corpus, out, own_extractor)
    shard = out / "part-00000.parquet"
    good = shard.read_bytes()
    vectors = read_embeddings(out).vectors
    calls()
    remade = 0
    for place in np.linspace(0, len(good) - 1, 40).astype(int):
        damaged = bytearray(good)
        damaged[place] ^= 1 << int(place) % 8
        shard.write_bytes(damaged)
        embed_corpus(corpus, out, own_extractor)
        remade += calls() > 1
        np.testing.assert_array_equal(read_embeddings(out).vectors, vectors, err_msg=f"byte {place}")
    assert remade > 20


def test_a_clock_that_jumps(
    speech: Path, own_extractor: str, tmp_path: Path, calls: Callable[[], int], monkeypatch: pytest.MonkeyPatch,
    speechlike: Callable[..., np.ndarray],
) -> None:  # fmt: skip
    """Files of the future and of long ago, and a clock that goes backwards: only content decides."""
    root, out = tmp_path / "speech", tmp_path / "out"
    shutil.copytree(speech, root)
    files = sorted(root.rglob("*.wav"))
    for number, file in enumerate(files):
        os.utime(file, (YEARS[number % 2],) * 2)
    embed_corpus(read_corpus(root), out, own_extractor)
    calls()
    for file in out.iterdir():
        os.utime(file, (YEARS[0],) * 2)  # older than everything it was made from
    found = embed_corpus(read_corpus(root), out, own_extractor)
    assert (found.computed, found.reused) == (0, 12)
    write_audio(files[0], speechlike(0.8, 99))
    os.utime(files[0], (0, 0))  # changed, and older than ever
    found = embed_corpus(read_corpus(root), out, own_extractor)
    assert (found.computed, found.reused) == (1, 11)
    moments = iter(np.tile([5e9, 10.0, 2e9], 100_000))
    monkeypatch.setattr(extraction_run.time, "time", lambda: next(moments))
    embed_corpus(read_corpus(root), tmp_path / "jumping", own_extractor)
    assert sha256(tmp_path / "jumping") == sha256(out)

    system = load_anonymizer("mcadams", {})
    anonymize_corpus(read_corpus(root), tmp_path / "anon", system)
    for file in (tmp_path / "anon").rglob("*.flac"):
        os.utime(file, (YEARS[0],) * 2)
    again = anonymize_corpus(read_corpus(root), tmp_path / "anon", system)
    assert (again.written, again.kept) == (0, 12)


@pytest.mark.slow
def test_a_cluster_gives_the_same_vectors(speech: Path, own_extractor: str, tmp_path: Path, command: Command) -> None:
    pytest.importorskip("distributed")
    alone, shared = tmp_path / "alone", tmp_path / "cluster"
    for out, where in ((alone, ["--jobs", 1]), (shared, ["--cluster", "local", "--jobs", 2])):
        code, _, err = command("embed", speech, out, "--extractor", own_extractor, "--quiet", *where)
        assert code == 0, err
    assert sha256(alone) == sha256(shared)


def test_a_second_embed_is_refused(speech: Path, own_extractor: str, tmp_path: Path, command: Command) -> None:
    from veilmeter.speech.extractors.store import Store

    store = Store(tmp_path / "out", {})
    code, _, err = command(*embedding(speech, tmp_path / "out", own_extractor))
    assert code == 2
    assert "another run is writing to this output folder" in err
    store.close()


def test_files_are_for_their_owner_only(
    speech: Path, own_extractor: str, whole_run: Path, voices: Path, tmp_path: Path, command: Command
) -> None:
    """Whatever the umask says: the outputs of embed, anonymize, similarity, assess and report."""
    before = os.umask(0)
    try:
        work: list[list[object]] = [
            embedding(speech, tmp_path / "embedded", own_extractor),
            anonymizing(speech, tmp_path / "anonymized" / "out"),
            ["similarity", "--original", voices / "original.npz", "--anonymized", voices / "anonymized.npz",
             "--no-intervals", "--figures", tmp_path / "figures"],
            ["report", shutil.copytree(whole_run, tmp_path / "run"), "--figures", tmp_path / "page"],
        ]  # fmt: skip
        for arguments in work:
            code, _, err = command(*arguments)
            assert code == 0, err
    finally:
        os.umask(before)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {".parquet", ".flac", ".jsonl", ".html", ".json", ".csv", ".png"} <= {file.suffix for file in files}
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600, file
    for folder in ("embedded", "anonymized/out", "figures", "page", "run/stages", "run/tables"):
        assert (tmp_path / folder).stat().st_mode & 0o077 == 0, folder


def test_a_journal_that_is_cut_off(speech: Path, own_extractor: str, tmp_path: Path) -> None:
    """The unfinished line of a killed anonymization is as if it were not there."""
    system = load_anonymizer("mcadams", {})
    corpus = read_corpus(speech)
    anonymize_corpus(corpus, tmp_path / "out", system)
    manifest = tmp_path / "out.manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True)
    manifest.unlink()
    (tmp_path / "out.manifest.jsonl.part").write_text("".join(lines[:5]) + lines[5][:40])
    done = anonymize_corpus(corpus, tmp_path / "out", system)
    assert (done.kept, done.written) == (5, 7)
    assert [json.loads(line) for line in manifest.read_text().splitlines()] == [json.loads(line) for line in lines]


def test_a_store_that_nobody_finished_is_no_store(speech: Path, own_extractor: str, tmp_path: Path) -> None:
    embed_corpus(read_corpus(speech), tmp_path / "out", own_extractor)
    (tmp_path / "out" / ".unfinished").mkdir()
    with pytest.raises(VeilmeterError, match="has not finished"):
        read_embeddings(tmp_path / "out")
