"""Embedding a corpus: nothing good is lost, nothing bad ends it, and a killed run ends in the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from veilmeter.core.engine import Pool
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.corpus import read_corpus
from veilmeter.data.formats.vectors import load_embeddings, read_embeddings
from veilmeter.speech.audio import write_audio
from veilmeter.speech.extractors import embed_corpus as run_module
from veilmeter.speech.extractors import store as store_module
from veilmeter.speech.extractors.embed_corpus import embed_corpus

pytest.importorskip("soundfile")

Make = Callable[..., NDArray[np.float32]]

# An extractor that is quick, and tells in a file which samples it was given.
OWN = """
import hashlib, os, time
import numpy as np

def embed(samples):
    if log := os.environ.get("EXTRACTOR_LOG"):
        line = hashlib.sha256(samples.tobytes()).hexdigest()[:16] + "\\n"
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(handle, line.encode())
        os.close(handle)
        time.sleep(float(os.environ.get("EXTRACTOR_SECONDS", 0)))
    spectrum = np.abs(np.fft.rfft(samples[:8000]))
    return np.log1p(spectrum[:4000].reshape(16, 250).mean(axis=1))
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(OWN)
    return f"{tmp_path / 'own.py'}:embed"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXTRACTOR_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def calls(log: Path) -> Counter[str]:
    """How often each recording went through the extractor; the second of noise that tries it out does not count."""
    probe = np.random.default_rng(0).standard_normal(16_000).astype(np.float32) * np.float32(0.1)
    found = Counter(log.read_text().split()) if log.exists() else Counter()
    found.pop(hashlib.sha256(probe.tobytes()).hexdigest()[:16], None)
    return found


def fill(root: Path, speechlike: Make, speakers: int, each: int) -> None:
    for speaker in range(speakers):
        for number in range(each):
            seconds = 0.6 + 0.05 * ((7 * number + speaker) % 9)
            path = root / f"s{speaker:02d}" / f"{number:03d}.{'flac' if number % 2 else 'wav'}"
            write_audio(path, speechlike(seconds, 1000 * speaker + number))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_corpus_becomes_embeddings(tmp_path: Path, speechlike: Make, own: str) -> None:
    fill(tmp_path / "corpus", speechlike, 3, 4)
    seen: list[tuple[int, int]] = []
    done = embed_corpus(
        read_corpus(tmp_path / "corpus"), tmp_path / "out", own, progress=lambda done, total: seen.append((done, total))
    )
    assert (done.utterances, done.speakers, done.computed, done.reused, done.problems) == (12, 3, 12, 0, ())
    found = read_embeddings(tmp_path / "out")
    assert list(found.utterances) == sorted(u.id for u in read_corpus(tmp_path / "corpus"))
    assert found.names == ("s00", "s01", "s02")
    assert found.durations is not None
    assert found.durations[0] == pytest.approx(0.6, abs=1e-3)
    assert seen[0] == (0, 12)
    assert seen[-1] == (12, 12)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "embeddings.json",
        "inputs.jsonl",
        "part-00000.parquet",
    ]
    assert all(p.stat().st_mode & 0o77 == 0 for p in [tmp_path / "out", *(tmp_path / "out").iterdir()])


def test_attributes_become_columns(tmp_path: Path, speechlike: Make, own: str) -> None:
    fill(tmp_path, speechlike, 2, 2)
    (tmp_path / "list.csv").write_text(
        "path,speaker,gender,session,region,duration\ns00/000.wav,a,f,mon,north,9\ns01/000.wav,b,m,,south,9\n"
    )
    embed_corpus(read_corpus(tmp_path / "list.csv"), tmp_path / "out", own)
    found = read_embeddings(tmp_path / "out")
    assert {key: list(column) for key, column in found.attributes.items()} == {
        "gender": ["f", "m"], "session": ["mon", ""], "region": ["north", "south"],
    }  # fmt: skip


@pytest.mark.slow
def test_sixty_broken_files_among_three_hundred(
    tmp_path: Path, speechlike: Make, own: str, break_audio: Callable[..., Path], broken_kinds: dict[str, str]
) -> None:
    """All good ones processed, all bad ones listed with the reason, exit code and summary say so."""
    root = tmp_path / "corpus"
    fill(root, speechlike, 10, 30)
    expected = {}
    ways = list(broken_kinds)
    for number in range(60):
        way = ways[number % len(ways)]
        expected[str(break_audio(root / f"s{number % 10:02d}" / f"bad{number}", way, number))] = broken_kinds[way]
    unusable = {path: kind for path, kind in expected.items() if kind != "clipped"}
    command = [sys.executable, "-m", "veilmeter.cli.main", "embed", str(root), str(tmp_path / "out"),
               "--extractor", own, "--jobs", "2", "--json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 3, done.stderr
    facts = json.loads(done.stdout)["embedded"]
    assert facts["utterances"] == 300 + 60 - len(unusable)
    assert facts["left_out"] == len(unusable) == 56
    assert {problem["path"]: problem["kind"] for problem in facts["problems"]} == expected
    assert all(problem["what"] for problem in facts["problems"])
    assert {p["path"] for p in facts["problems"] if not p["fatal"]} == expected.keys() - unusable.keys()
    good = {f"s{speaker:02d}/{number:03d}" for speaker in range(10) for number in range(30)}
    found = set(read_embeddings(tmp_path / "out").utterances)
    assert good <= found
    assert len(found) == facts["utterances"]
    listed = [json.loads(line) for line in (tmp_path / "out" / "inputs.jsonl").read_text().splitlines()]
    assert len(listed) == 360
    assert sum("kind" in line for line in listed) == 60

    said = subprocess.run(command[:-1], capture_output=True, text=True, timeout=200, check=False)
    assert said.returncode == 3
    assert "304 utterances of 10 speakers" in said.stdout
    assert "304 of them from before" in said.stdout
    assert "56 left out: " in said.stdout
    for path in unusable:
        assert path in said.stdout

    strict = subprocess.run([*command, "--strict"], capture_output=True, text=True, timeout=200, check=False)
    assert strict.returncode == 2
    assert strict.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in strict.stderr


def test_nothing_usable_is_an_error(tmp_path: Path, own: str) -> None:
    write_audio(tmp_path / "corpus" / "a" / "1.wav", np.zeros(16000))
    with pytest.raises(InputError, match=r"no recording could be used.*silence"):
        embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "out", own)


@pytest.mark.parametrize("shard", [4096, 7])
def test_the_bytes_do_not_depend_on_processes_or_the_past(
    tmp_path: Path, speechlike: Make, own: str, monkeypatch: pytest.MonkeyPatch, shard: int
) -> None:
    """One process or two, in one go or after other corpora in the same folder: the same files."""
    monkeypatch.setattr(store_module, "SHARD", shard)
    root = tmp_path / "corpus"
    fill(root, speechlike, 4, 6)
    corpus = read_corpus(root)
    embed_corpus(corpus, tmp_path / "plain", own)
    expected = tree(tmp_path / "plain")
    assert len([name for name in expected if name.startswith("part-")]) == -(-24 // shard)

    pool = Pool(2)
    try:
        embed_corpus(corpus, tmp_path / "pool", own, engine=pool)
    finally:
        pool.close()
    assert tree(tmp_path / "pool") == expected

    some = corpus.take([u.id for number, u in enumerate(corpus) if number % 3])
    first = embed_corpus(some, tmp_path / "grown", own)
    second = embed_corpus(corpus, tmp_path / "grown", own)
    assert (first.computed, second.computed, second.reused) == (16, 8, 16)
    assert tree(tmp_path / "grown") == expected

    embed_corpus(some, tmp_path / "pool", own)  # and smaller again
    assert embed_corpus(some, tmp_path / "other", own).computed == 16
    assert tree(tmp_path / "pool") == tree(tmp_path / "other")


def test_only_what_changed_is_computed_again(tmp_path: Path, speechlike: Make, own: str, log: Path) -> None:
    root = tmp_path / "corpus"
    fill(root, speechlike, 2, 5)
    out = tmp_path / "out"

    def run(extractor: str = own) -> tuple[int, int]:
        before = calls(log).total()
        done = embed_corpus(read_corpus(root), out, extractor)
        assert calls(log).total() - before == done.computed
        return done.computed, done.reused

    assert run() == (10, 0)
    assert run() == (0, 10)
    os.utime(root / "s00" / "000.wav", (1, 1))  # touched, the same content
    before = (out / "part-00000.parquet").read_bytes()
    assert run() == (0, 10)
    assert (out / "part-00000.parquet").read_bytes() == before
    write_audio(root / "s00" / "000.wav", speechlike(1, 77))
    assert run() == (1, 9)
    (root / "s01" / "004.wav").rename(root / "s01" / "zzz.wav")  # another id: another utterance
    assert run() == (1, 9)
    (root / "s01" / "zzz.wav").unlink()
    assert run() == (0, 9)
    other = tmp_path / "other.py"
    other.write_text(OWN)
    assert run(f"{other}:embed") == (9, 0)  # another extractor
    other.write_text(OWN + "\n# another version\n")
    assert run(f"{other}:embed") == (9, 0)
    assert len(read_embeddings(out)) == 9


@pytest.mark.slow
def test_killed_and_started_again(tmp_path: Path, speechlike: Make, own: str) -> None:
    """SIGKILL in the middle, twice: the same bytes as an undisturbed run, and hardly anything done twice."""
    root = tmp_path / "corpus"
    fill(root, speechlike, 4, 20)

    def command(out: str) -> list[str]:
        return [sys.executable, "-m", "veilmeter.cli.main", "embed", str(root), str(tmp_path / out),
                "--extractor", own, "--jobs", "2", "--quiet"]  # fmt: skip

    subprocess.run(command("plain"), check=True, timeout=200)
    log = tmp_path / "log"
    slow = {**os.environ, "EXTRACTOR_LOG": str(log), "EXTRACTOR_SECONDS": "0.2"}
    for enough in (30, 60):
        process = subprocess.Popen(command("killed"), env=slow, start_new_session=True)
        deadline = time.monotonic() + 240
        while len(calls(log)) < enough and time.monotonic() < deadline:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert (tmp_path / "killed" / ".unfinished").is_dir()
        with pytest.raises(VeilmeterError):
            read_embeddings(tmp_path / "killed")
    subprocess.run(command("killed"), env=slow, check=True, timeout=200)
    assert tree(tmp_path / "killed") == tree(tmp_path / "plain")
    found = calls(log)
    assert len(found) == 80
    # Lost is what was under way: for each kill, of two processes a second of results not yet kept and a chunk of two.
    lost = 2 * 2 * (run_module.JOURNAL_SECONDS / 0.2 + 2)
    assert found.total() - 80 <= lost


@pytest.mark.parametrize("moment", range(8))
def test_killed_at_any_step_of_the_end(
    tmp_path: Path, speechlike: Make, own: str, log: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Whatever file operation of the last steps is the last one, the next run finishes without computing anything."""
    monkeypatch.setattr(store_module, "SHARD", 3)
    root = tmp_path / "corpus"
    fill(root, speechlike, 2, 4)
    corpus = read_corpus(root)
    embed_corpus(corpus, tmp_path / "plain", own)
    embed_corpus(corpus.take([u.id for u in corpus][:5]), tmp_path / "out", own)  # there was an older state
    left = moment

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **named: object) -> object:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            return real(*arguments, **named)

        return step

    with monkeypatch.context() as patched:
        real = store_module.Store.finish

        def finish(self: store_module.Store, *arguments: object) -> object:
            patched.setattr(store_module.os, "replace", dying(os.replace))
            patched.setattr(store_module.shutil, "rmtree", dying(shutil.rmtree))
            patched.setattr(Path, "unlink", dying(Path.unlink))
            return real(self, *arguments)  # type: ignore[arg-type]

        patched.setattr(store_module.Store, "finish", finish)
        try:
            embed_corpus(corpus, tmp_path / "out", own)
            survived = True
        except KeyboardInterrupt:
            survived = False
    before = calls(log).total()
    done = embed_corpus(corpus, tmp_path / "out", own)
    assert done.computed == 0, f"survived: {survived}"
    assert calls(log).total() == before
    assert tree(tmp_path / "out") == tree(tmp_path / "plain")


def test_damaged_files_of_an_earlier_run_are_made_anew(tmp_path: Path, speechlike: Make, own: str) -> None:
    root, out = tmp_path / "corpus", tmp_path / "out"
    fill(root, speechlike, 2, 4)
    embed_corpus(read_corpus(root), out, own)
    expected = tree(out)
    for name, damage in (
        ("part-00000.parquet", b"PAR1 nonsense"), ("inputs.jsonl", b"\xff\xfe"), ("embeddings.json", b"[[["),
    ):  # fmt: skip
        (out / name).write_bytes(damage)
        embed_corpus(read_corpus(root), out, own)
        assert tree(out) == expected


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path, speechlike: Make, own: str) -> None:
    fill(tmp_path / "corpus", speechlike, 1, 2)
    store = store_module.Store(tmp_path / "out", {})
    with pytest.raises(VeilmeterError, match="another run is writing"):
        embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "out", own)
    store.close()
    embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "out", own)


def test_another_corpus_of_the_same_sizes_and_times_is_not_taken_for_the_first(
    tmp_path: Path, speechlike: Make, own: str
) -> None:
    """As archives have them that set every time to one: only what the file system itself notes tells them apart."""
    for name, seed in (("first", 0), ("second", 1)):
        for number in range(3):
            path = tmp_path / name / "s" / f"{number}.wav"
            write_audio(path, speechlike(0.8, 10 * seed + number))
            os.utime(path, (0, 0))
    embed_corpus(read_corpus(tmp_path / "first"), tmp_path / "out", own)
    done = embed_corpus(read_corpus(tmp_path / "second"), tmp_path / "out", own)
    assert (done.computed, done.reused) == (3, 0)
    embed_corpus(read_corpus(tmp_path / "second"), tmp_path / "alone", own)
    assert tree(tmp_path / "out") == tree(tmp_path / "alone")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, speechlike: Make, own: str) -> None:
    fill(tmp_path / "corpus", speechlike, 1, 2)
    embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "first", own)
    from veilmeter.data.formats.vectors import write_embeddings

    write_embeddings(read_embeddings(tmp_path / "first"), tmp_path / "foreign")
    before = tree(tmp_path / "foreign")
    with pytest.raises(InputError, match="something else"):
        embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "foreign", own)
    assert tree(tmp_path / "foreign") == before
    assert len(read_embeddings(tmp_path / "foreign")) == 2  # and not called unfinished from now on


def test_an_unfinished_store_is_not_taken_for_a_whole_one(tmp_path: Path, speechlike: Make, own: str) -> None:
    fill(tmp_path / "corpus", speechlike, 1, 3)
    embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "out", own)
    (tmp_path / "out" / ".unfinished").mkdir()
    for read in (read_embeddings, load_embeddings):
        with pytest.raises(InputError, match="not finished"):
            read(tmp_path / "out")


def test_names_that_are_no_utf8(tmp_path: Path, speechlike: Make, own: str) -> None:
    fill(tmp_path / "corpus", speechlike, 1, 2)
    try:
        odd = os.fsdecode(os.fsencode(tmp_path / "corpus" / "s00") + b"/\xff.wav")
        write_audio(odd, np.zeros(16000))
    except OSError:
        pytest.skip("this file system takes no such names")
    command = [sys.executable, "-m", "veilmeter.cli.main", "embed", str(tmp_path / "corpus"), str(tmp_path / "out"),
               "--extractor", own, "--jobs", "1"]  # fmt: skip
    for form in ([], ["--json"]):
        done = subprocess.run([*command, *form], capture_output=True, text=True, timeout=200, check=False)
        assert "Traceback" not in done.stderr
        assert done.returncode == 3
    assert (tmp_path / "out" / "inputs.jsonl").read_text(encoding="utf-8").count("silent") == 1


BAD = """
import numpy as np
def embed(samples):
    if len(samples) == 16000:
        return np.ones(4)
    if len(samples) == 10400:
        raise MemoryError("no")
    if len(samples) == 11200:
        return np.full(4, np.nan)
    if len(samples) == 12000:
        return np.ones(5)
    return np.arange(1, 5)
"""


def test_an_extractor_that_fails_on_some(tmp_path: Path, speechlike: Make) -> None:
    fill(tmp_path / "corpus", speechlike, 1, 9)
    (tmp_path / "bad.py").write_text(BAD)
    done = embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "out", f"{tmp_path / 'bad.py'}:embed")
    assert done.utterances == 6
    assert sorted(p.kind for p in done.skipped) == ["bad-vector", "bad-vector", "extractor-failed"]
    with pytest.raises(InputError, match="--strict"):
        embed_corpus(read_corpus(tmp_path / "corpus"), tmp_path / "out2", f"{tmp_path / 'bad.py'}:embed", strict=True)


def test_a_corpus_of_nothing(tmp_path: Path) -> None:
    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.anonymizers.base import load_anonymizer
    from veilmeter.data.corpus import Corpus

    nothing = Corpus(tmp_path, "folder", ())
    with pytest.raises(InputError, match="no utterances"):
        embed_corpus(nothing, tmp_path / "out")
    with pytest.raises(InputError, match="no utterances"):
        anonymize_corpus(nothing, tmp_path / "out", load_anonymizer("mcadams"))
    assert not (tmp_path / "out").exists()


def test_a_used_folder_knows_the_limit_of_this_run(tmp_path: Path, speechlike: Make, own: str) -> None:
    """Lowered in a used folder, what is too long goes; raised again, it comes back."""
    for number, seconds in enumerate((0.8, 1.2, 2.5, 3.0)):
        write_audio(tmp_path / "corpus" / f"s{number % 2}" / f"{number}.wav", speechlike(seconds, number))
    corpus = read_corpus(tmp_path / "corpus")
    for limit, usable in [(3600.0, 4), (2.0, 2), (2.0, 2), (2.7, 3), (3600.0, 4)]:
        used = embed_corpus(corpus, tmp_path / "used", own, max_seconds=limit)
        fresh = embed_corpus(corpus, tmp_path / f"fresh-{limit}", own, max_seconds=limit)
        assert used.utterances == usable
        assert used.problems == fresh.problems
        for name in ("part-00000.parquet", "inputs.jsonl", "embeddings.json"):
            assert (used.folder / name).read_bytes() == (fresh.folder / name).read_bytes()
