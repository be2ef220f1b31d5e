"""assess under faults: nothing done is lost, nothing half-written is believed, and the bytes are always the same."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Arguments = Callable[..., list[str]]
Command = Callable[..., tuple[int, str, str]]
Background = Callable[..., "subprocess.Popen[str]"]


def finished(out: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of every finished stage."""
    found = {}
    for file in (out / "stages").glob("*.json"):
        json.loads(file.read_text())  # never half a file
        found[file.name] = (file.stat().st_ino, file.stat().st_mtime_ns)
    return found


def wait_for_stages(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 120
    while len(list((out / "stages").glob("*.json"))) < count:
        if process.poll() is not None or time.monotonic() > limit:
            raise AssertionError(process.communicate(timeout=10))
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("where", [["--jobs", 4], ["--cluster", "local", "--jobs", 3]], ids=["pool-4", "dask-3"])
def test_the_same_bytes_wherever_it_runs(
    assessment: Arguments, command: Command, undisturbed: bytes, tmp_path: Path, where: list[Any]
) -> None:
    """One process made `undisturbed`; four, and a Dask cluster of three workers, give the same results.json."""
    if "--cluster" in where:
        pytest.importorskip("distributed")
    code, _, err = command(*assessment(tmp_path / "run", *where))
    assert code == 0, err
    assert (tmp_path / "run" / "results.json").read_bytes() == undisturbed
    about = json.loads((tmp_path / "run" / "timings.json").read_text())
    assert about["workers"] == where[-1]
    assert [str(word) for word in where] == about["command"][-len(where) :]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "jobs"), [(signal.SIGKILL, 1), (signal.SIGKILL, 2), (signal.SIGTERM, 2)])
def test_killed_or_stopped_it_goes_on_where_it_was(
    assessment: Arguments, command: Command, background: Background, undisturbed: bytes, tmp_path: Path,
    how: signal.Signals, jobs: int,
) -> None:  # fmt: skip
    out = tmp_path / "run"
    process = background(*assessment(out, "--jobs", jobs))
    wait_for_stages(out, 1, process)
    process.send_signal(how)
    _, err = process.communicate(timeout=240)
    if how is signal.SIGTERM:
        assert process.returncode == 130
        assert "the same command goes on" in err
        assert "Traceback" not in err
    else:
        assert process.returncode == -signal.SIGKILL
    before = finished(out)
    assert before
    assert not (out / "results.json").exists()
    (out / "stages" / ".informed.json.x1.part").write_text('{"half')  # as a kill while writing leaves it
    code, _, err = command(*assessment(out, "--jobs", 1))
    assert code == 0, err
    after = finished(out)
    assert all(after[name] == was for name, was in before.items())
    assert len(after) > len(before)
    assert (out / "results.json").read_bytes() == undisturbed
    assert not list(out.rglob(".*"))


@pytest.fixture
def done(whole_run: Path, tmp_path: Path) -> Path:
    """A finished run of its own to damage."""
    return Path(shutil.copytree(whole_run, tmp_path / "run"))


@pytest.mark.slow
def test_damaged_and_backdated_stages(done: Path, assessment: Arguments, command: Command, undisturbed: bytes) -> None:
    """A changed digit, a cut file, nonsense: made again. A clock that jumped, times in the future or long ago: kept."""
    texts = sorted((done / "stages").glob("*.json"))
    arrays = sorted((done / "stages").glob("*.npz"))
    one = texts[0].read_text()
    at = one.index('"value": ') + len('"value": ') + 2
    texts[0].write_text(one[:at] + str((int(one[at]) + 1) % 10 if one[at].isdecimal() else 1) + one[at + 1 :])
    json.loads(texts[0].read_text())
    texts[1].write_bytes(texts[1].read_bytes()[:-20])
    flipped = bytearray(arrays[-1].read_bytes())
    flipped[len(flipped) // 2] ^= 0x10
    arrays[-1].write_bytes(flipped)
    whole = [file for file in texts[2:] if file.with_suffix(".npz") != arrays[-1]]
    assert whole
    for number, file in enumerate(whole):
        when = (0, 4_102_444_800)[number % 2]  # 1970, 2100
        os.utime(file, (when, when))
    before = finished_times(whole)
    (done / "results.json").unlink()
    code, _, err = command(*assessment(done, "--jobs", 1))
    assert code == 0, err
    assert (done / "results.json").read_bytes() == undisturbed
    assert finished_times(whole) == before, "good stages were made again"


def finished_times(files: list[Path]) -> list[int]:
    return [file.stat().st_mtime_ns for file in files]


def test_a_second_run_is_refused(assessment: Arguments, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    lock = os.open(out / ".lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    code, printed, err = command(*assessment(out, "--jobs", 1))
    assert (code, printed) == (2, "")
    assert f"{out}: another run is writing to this output folder" in err
    assert "wait until it has ended" in err
    assert [file.name for file in out.iterdir()] == [".lock"]
    os.close(lock)


@pytest.mark.slow
def test_a_full_disk(assessment: Arguments, command: Command, undisturbed: bytes, disk: Any) -> None:
    """It ends with a message, keeps what fitted, and goes on when there is room."""
    out = disk.folder / "run"
    disk.again("size=160k")  # the first task fits, not all
    code, _, err = command(*assessment(out, "--jobs", 1))
    assert code == 2
    assert "the disk is full (free some space and run the same command again; what was done is kept)" in err, err
    kept = finished(out)
    assert kept
    assert not (out / "results.json").exists()
    assert not list(out.rglob("*.part"))
    disk.again("size=64m")
    code, _, err = command(*assessment(out, "--jobs", 1))
    assert code == 0, err
    assert (out / "results.json").read_bytes() == undisturbed
    after = finished(out)
    assert all(after[name] == was for name, was in kept.items())


@pytest.mark.slow
def test_a_read_only_folder(done: Path, assessment: Arguments, command: Command, disk: Any) -> None:
    out = disk.folder / "run"
    shutil.copytree(done, out)
    disk.again("ro")
    for arguments in (assessment(out, "--jobs", 1), ["report", str(out)]):
        code, _, err = command(*arguments)
        assert code == 2
        assert "this file system is read-only (choose another folder)" in err
        assert "Traceback" not in err
