"""Files from strangers that run code, expand, nest or lead astray: refused with a message, cheaply."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pickle
import resource
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.results.sample_results import sample

from veilmeter.assessment import make_settings, read_results, read_settings
from veilmeter.attacks.inversion.attack import load_map
from veilmeter.core import processes
from veilmeter.core.engine import open_engine
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.corpus import read_corpus
from veilmeter.report.public import reported
from veilmeter.results.run_folder import write_results

soundfile = pytest.importorskip("soundfile")
Make = Callable[..., np.ndarray]


class Evil:
    """Leaves a mark when somebody unpickles it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.mark),)


def limited(gigabytes: float, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`veilmeter ...` with so much address space and no more: what would take memory without end fails."""
    size = int(gigabytes * 2**30)
    return subprocess.run(
        [sys.executable, "-m", "veilmeter.cli.main", *map(str, arguments)],
        capture_output=True, text=True, timeout=400, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )  # fmt: skip


def children_seconds() -> float:
    """The processor's time of all commands that ended; that of the clock depends on what else runs here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_ten_hours_of_flac_among_good_recordings(tmp_path: Path, speechlike: Make) -> None:
    """576 million samples from a small file: the command leaves it out, quickly and in little memory."""
    corpus = tmp_path / "corpus" / "s1"
    corpus.mkdir(parents=True)
    bomb = corpus / "bomb.flac"
    with soundfile.SoundFile(bomb, "w", 16000, 1, "PCM_16") as out:
        hour = np.zeros(16000 * 600, np.int16)
        for _ in range(60):
            out.write(hour)
    assert soundfile.info(bomb).duration == 36000
    assert bomb.stat().st_size < 3_000_000
    soundfile.write(corpus / "good.wav", speechlike(1.0, 1), 16000)
    started = children_seconds()
    done = limited(3, "anonymize", tmp_path / "corpus", tmp_path / "out", "--jobs", 1, "--quiet", "--json")
    assert done.returncode == 3, done.stderr
    assert children_seconds() - started < 60
    problems = json.loads(done.stdout)["anonymized"]["problems"]
    assert [problem["kind"] for problem in problems] == ["too-long"]
    assert sorted(file.name for file in (tmp_path / "out").rglob("*.flac")) == ["good.flac"]


@pytest.mark.parametrize("size", [2**31 - 2, 2**31, 2**32 - 100, 2**32 - 1])
def test_a_wav_header_that_promises_too_much(tmp_path: Path, speechlike: Make, size: int) -> None:
    """Up to 2^31 frames of which nearly none are there; the largest sizes are what programs write that stream."""
    from veilmeter.speech.audio import AudioError, read_audio

    path = tmp_path / "liar.wav"
    soundfile.write(path, speechlike(1.0, 1), 16000)
    data = bytearray(path.read_bytes())
    data[40:44] = size.to_bytes(4, "little")
    path.write_bytes(data)
    tracemalloc.start()
    if size > 2**31:
        assert len(read_audio(path)) == 16000
    else:
        with pytest.raises(AudioError) as caught:
            read_audio(path)
        assert caught.value.kind == "truncated"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_links_that_go_round(tmp_path: Path, speechlike: Make) -> None:
    root = tmp_path / "corpus"
    for speaker in ("s1", "s2"):
        (root / speaker).mkdir(parents=True)
        soundfile.write(root / speaker / "u.wav", speechlike(1.0, 1), 16000)
    (root / "s1" / "round").symlink_to(root, target_is_directory=True)
    (root / "s2" / "self.wav").symlink_to("self.wav")
    (root / "s2" / "one").symlink_to("two")
    (root / "s2" / "two").symlink_to("one")
    (root / "up").symlink_to(tmp_path, target_is_directory=True)
    found = read_corpus(root)
    assert sorted(u.path.relative_to(root).as_posix() for u in found) == ["s1/u.wav", "s2/u.wav"]


def test_torch_files_with_code_run_nothing(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from veilmeter.speech.extractors.campplus import load_model

    for number, write in enumerate((lambda path, what: torch.save(what, path),
                                    lambda path, what: path.write_bytes(pickle.dumps(what)))):  # fmt: skip
        file, mark = tmp_path / f"{number}.pt", tmp_path / f"mark{number}"
        write(file, {"weight": Evil(mark)})
        with pytest.raises(InputError, match="not weights"):
            load_model(file)
        assert not mark.exists()
        pickle.loads(pickle.dumps(Evil(mark)))  # the trap does work
        assert mark.exists()


def test_no_code_reads_pickles() -> None:
    """Every loader in the source says so itself: one that forgets is found here."""
    source = Path(__file__).parents[2] / "src" / "veilmeter"
    for file in source.rglob("*.py"):
        text = file.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{file.name}:{number}"
            if "torch.load(" in line:
                assert "weights_only=True" in line, place
            if "np.load(" in line:
                assert "allow_pickle=False" in line, place
            if "pickle.load" in line:
                assert "made by this program" in line, place
            assert "shell=True" not in line, place
            assert "yaml.load(" not in line, place
            assert "extractall" not in line, place


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "[" * 900 + "]" * 900, "[" + "a." * 5000 + "b]",
                                  "x = 1\n" * 300_000, "a = \xff"])  # fmt: skip
def test_toml_that_nests_or_never_ends(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(text.encode("latin-1"))
    started = time.process_time()
    with pytest.raises(VeilmeterError):
        make_settings(read_settings(file), where=file)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("text", ["[" * 50_000, "a: " * 30_000, "a: &a [b]\njobqueue: *a", "!!python/object/apply:os.x",
                                  "x" * 200_000])  # fmt: skip
def test_yaml_that_nests_expands_or_runs(tmp_path: Path, text: str) -> None:
    pytest.importorskip("dask_jobqueue")
    file = tmp_path / "slurm.yaml"
    file.write_text(text)
    with pytest.raises(InputError):
        open_engine(cluster=f"slurm:{file}")


@pytest.mark.parametrize("text", ["[" * 200_000, '{"schema": 1, "a": ' * 50_000, "\x00", "null", "1e999"])
def test_results_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    for read in (read_results, reported):
        with pytest.raises(InputError):
            read(tmp_path)


def test_timings_that_are_none_do_not_matter(tmp_path: Path) -> None:
    write_results(tmp_path, sample())
    (tmp_path / "timings.json").write_text("[" * 100_000)
    assert reported(tmp_path).created == ""


def test_maps_that_expand_lie_or_hold_code(tmp_path: Path) -> None:
    path = tmp_path / "map.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("about.npy", "w") as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": (1 << 28,)})
        for _ in range(16):
            out.write(bytes(1 << 24))
    assert path.stat().st_size < 400_000
    with pytest.raises(InputError, match="unpacked it would be"):
        load_map(path)
    with zipfile.ZipFile(path, "w") as archive, archive.open("about.npy", "w") as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (1 << 50,)})
    with pytest.raises(InputError, match="not an inversion map"):
        load_map(path)
    mark = tmp_path / "mark"
    with open(path, "wb") as out:
        np.savez(out, about=np.array([Evil(mark)], object), allow_pickle=True)
    with pytest.raises(InputError, match="not an inversion map"):
        load_map(path)
    assert not mark.exists()


def broken_archives() -> list[bytes]:
    """Archives that fuzzing found: a name that is not UTF-8, an unknown compression, a header that is not Python."""
    import io

    made = []
    for change in ("name", "method", "header"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name in ("about", "ids", "vectors"):
                data = io.BytesIO()
                np.save(data, np.zeros((2, 3), np.float32))
                text = data.getvalue()
                archive.writestr(f"{name}.npy", text.replace(b"(2, 3)", b"((2, 3") if change == "header" else text)
        whole = bytearray(out.getvalue())
        central = whole.index(b"PK\1\2")
        if change == "name":
            whole[central + 9] |= 0x08  # says that the name is UTF-8
            whole[central + 46] = 0x8E
        if change == "method":
            whole[central + 10] = 77
            whole[8] = 77
        made.append(bytes(whole))
    return made


@pytest.mark.parametrize("number", range(3))
def test_archives_that_fuzzing_found(tmp_path: Path, number: int) -> None:
    from veilmeter.assessment.tasks import Stages, TaskId, TaskKind, TaskResult
    from veilmeter.data.formats.vectors import load_embeddings

    path = tmp_path / "x.npz"
    path.write_bytes(broken_archives()[number])
    for read in (load_embeddings, load_map):
        with pytest.raises(InputError):
            read(path)
    stages, task = Stages(tmp_path), TaskId(TaskKind.ANALYSIS, "a")
    stages.put(task, "k", TaskResult(names=("x",)), {"x": np.arange(3)})
    assert stages.get(task, "k") is not None
    (tmp_path / "a-k.npz").write_bytes(path.read_bytes())
    assert stages.get(task, "k") is None


def test_scores_that_unpack_to_gigabytes(tmp_path: Path) -> None:

    bomb = tmp_path / "scores.gz"
    with gzip.open(bomb, "wb", 9) as out:
        for _ in range(100):
            out.write(b"a" * (1 << 22))
    started = children_seconds()
    for arguments in (["measure", bomb], ["measure", bomb, "--stream"], ["check", bomb]):
        done = limited(2, *arguments)
        assert done.returncode in (1, 2), done.stderr
        assert ("times as large" in done.stderr) == (arguments[0] == "measure")
    assert children_seconds() - started < 60


# Found by fuzzing: a few bits of a sound HDF5 file changed, and the library goes round for ever.
ENDLESS = (
    "H4sIAAAAAAACA+v0cHHj5ZLiYgABDg4GFgYBBmTwHwoqNFH5MPkEKM0IpTug9AommDgjWE4CKi4INR9dXUiQqysDAxPcfHR7DFggNMx1BhoQ2o"
    "NhFIwE4OHqGACiN0D5AVB6ghxt7WVkYIOkbUYYH5KSGRkhAtBkCaeZgfIgGUEFeaiYAoM4B4N4PVSelYEDLM/ExAQ2gANqHjMjkImSwiGAh8EB"
    "ai8HgwgQFxekJmanFjFIAu0XgKqGuIQDJR+CspUAByJvIsxhB5uTnpqXAjSGoDmMSOaAzAz283dhBPoMKsSgwIw//BRg+VUCvzoLWHkijV8dLH"
    "QqWId2eqZfuhKQoFW6YqZSumKha3go0Cw8WKkUHmx0TIc5+xns6t3Y9+39pGx//+o1W3dnfx9GpOBB9icIFBug8mHyaQyINIGi3hA13tDVs6Kr"
    "N0INA3T17Djcw4FDPScO93DhUM+Nwz08ONTz4nAPHw71/DjcI4BDvSCa+lEwCkbBKBgFo2AotHJHK69RMApGwSgYBaNg8IOFipz7/yrttKt8uc"
    "z+WXGR/T91k/2hPxfuf9Unvz/PVdOWfuM0BgqoPWNYP9wBai/54zTsDNQZp+FgoOe4lQPNwoOTSuHBRdfwCKBZeHBTKTx46BoeCTQLD14qhQcf"
    "XcOjgGbhwU+l8BCga3g00Cw8BKkUHkJI7io20C0FDaUWG+qWgoZIi410S42g4sZQcROouClU3Awqbg4Vt0CyJ2GI1sc/B5l7/M6KHHjDlbCPuW"
    "r+/gel1vv7Q7j3S3xauM/24CU7kcJW++nzmPe5vVhnb+yltV/x52a7S57p9q2dB2x/hNrtN/qWvZ8r+tW+q1WJdtrWjfvljcL2PeJW3ne7hMt+"
    "1vlou8zPW+1GW2CjYBSMglEwCkbB4AOQ9T+sDNDldwwOkvjVO0DpAhn86mDLgzoILH6ATq8zBEjhVwdbF9ggOzjDEQA6M1qFeCkAAA=="
)


def test_a_file_that_keeps_the_h5_library_busy_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from veilmeter.data.formats.vectors import load_embeddings

    path = tmp_path / "endless.h5"
    path.write_bytes(gzip.decompress(base64.b64decode(ENDLESS)))
    monkeypatch.setattr("veilmeter.core.processes.CONFINED_SECONDS", 2)
    with pytest.raises(InputError, match="takes more than 2 s"):
        load_embeddings(path)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_no_child_outlives_a_process_that_is_killed_while_it_waits(tmp_path: Path) -> None:
    path = tmp_path / "endless.h5"
    path.write_bytes(gzip.decompress(base64.b64decode(ENDLESS)))
    code = "import sys\nfrom veilmeter.data.formats.vectors import load_embeddings\nload_embeddings(sys.argv[1])"
    mark = {processes.MARK: str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code, str(path)], env={**os.environ, **mark}) as process:
        deadline = time.monotonic() + 60
        while len(processes._find_marked(tmp_path)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)  # from the fork to the child's own program
        process.kill()
    time.sleep(1.0)
    assert processes._find_marked(tmp_path) == []


def test_a_parquet_file_of_less_than_nothing(tmp_path: Path) -> None:
    """The number of rows in the footer, in Thrift's zigzag: 3 is written 6, and 5 would be -3."""
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import load_embeddings, write_embeddings

    write_embeddings(Embeddings(np.eye(3), ["a", "b", "c"], ["s", "s", "t"]), tmp_path / "x.parquet")
    good = (tmp_path / "x.parquet").read_bytes()
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    refused = 0
    for place in [at for at in range(footer, len(good) - 8) if good[at] == 6]:
        damaged = bytearray(good)
        damaged[place] = 5
        (tmp_path / "x.parquet").write_bytes(damaged)
        try:
            load_embeddings(tmp_path / "x.parquet")
        except InputError:
            refused += 1
    assert refused
