"""Runs of the command that are killed, stopped, doubled or fed nonsense, as processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from veilmeter.core.files import sha256

SLOW = """
import os, time
def slow(samples, log, pause):
    with open(log, "a") as out:
        out.write("x")
    time.sleep(pause)
    return samples[::-1] * 0.9
"""


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "slow_system.py").write_text(SLOW)

    def run(*arguments: object) -> subprocess.Popen[str]:
        environment = {
            **os.environ, "PYTHONPATH": str(tmp_path / "own"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "veilmeter.cli.main", "anonymize", *map(str, arguments)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        )  # fmt: skip

    return run


def lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def wait_for(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 240
    while lines(path) < count:
        if process.poll() is not None or time.monotonic() > limit:
            raise AssertionError(process.communicate(timeout=10))
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_was_killed_goes_on_where_it_was(
    how: signal.Signals, folder_corpus: Path, tmp_path: Path, start: Callable[..., Any]
) -> None:
    def options(name: str, pause: float) -> list[object]:
        # The log's name is a parameter of the system: the same for both folders.
        log = f"log={tmp_path / 'log'}"
        return [folder_corpus, tmp_path / name, "--system", "slow_system:slow", "--option", log,
                "--option", f"pause={pause}", "--quiet"]  # fmt: skip

    log, journal = tmp_path / "log", tmp_path / "out.manifest.jsonl.part"
    first = start(*options("out", 0.25), "--jobs", 2)
    wait_for(journal, 3, first)
    first.send_signal(how)
    _, errors = first.communicate(timeout=240)
    if how is signal.SIGTERM:
        assert first.returncode == 130
        assert errors.startswith("stopped; the same command goes on")
        assert "Traceback" not in errors
    else:
        assert first.returncode == -signal.SIGKILL
    time.sleep(0.6)  # workers notice that nobody is there any more
    done = [json.loads(line)["output"] for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
    assert 3 <= len(done) < 12
    (tmp_path / "out" / "s0" / ".u0.flac.abcd1234.part").write_bytes(b"half a file")
    before = {
        name: ((tmp_path / "out" / name).stat().st_ino, (tmp_path / "out" / name).stat().st_mtime_ns) for name in done
    }
    calls = len(log.read_text())

    second = start(*options("out", 0.25), "--jobs", 1)
    _, errors = second.communicate(timeout=240)
    assert second.returncode == 0, errors
    assert len(log.read_text()) - calls == 12 - len(done)
    for name, was in before.items():
        assert ((tmp_path / "out" / name).stat().st_ino, (tmp_path / "out" / name).stat().st_mtime_ns) == was
    log.unlink()
    undisturbed = start(*options("whole", 0.25), "--jobs", 2)
    undisturbed.communicate(timeout=240)
    assert sha256(tmp_path / "out") == sha256(tmp_path / "whole")
    assert (tmp_path / "out.manifest.jsonl").read_bytes() == (tmp_path / "whole.manifest.jsonl").read_bytes()
    assert not journal.exists()
    assert not (tmp_path / "out.manifest.jsonl.lock").exists()


@pytest.mark.slow
def test_a_second_run_into_the_same_folder_is_told_so(
    folder_corpus: Path, tmp_path: Path, start: Callable[..., Any]
) -> None:
    slow = [folder_corpus, tmp_path / "out", "--system", "slow_system:slow", "--option", f"log={tmp_path / 'log'}",
            "--option", "pause=1", "--jobs", 1, "--quiet"]  # fmt: skip
    first = start(*slow)
    wait_for(tmp_path / "out.manifest.jsonl.part", 1, first)
    second = start(*slow)
    _, errors = second.communicate(timeout=240)
    assert second.returncode == 2
    assert "another run is writing" in errors
    first.kill()
    first.communicate(timeout=240)


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "veilmeter.cli.main", "anonymize", *map(str, arguments)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_exit_codes_and_summary(folder_corpus: Path, tmp_path: Path) -> None:
    good = command(folder_corpus, tmp_path / "out", "--jobs", 1, "--format", "wav")
    assert good.returncode == 0, good.stderr
    assert "12 utterances of 3 speakers" in good.stdout
    assert "keep it private" in good.stdout
    assert "12 of 12 utterances" in good.stderr
    (folder_corpus / "s1" / "b\x1bad.wav").write_bytes(b"nothing")
    partly = command(folder_corpus, tmp_path / "out", "--jobs", 1, "--format", "wav", "--json")
    assert partly.returncode == 3
    facts = json.loads(partly.stdout)["anonymized"]
    assert (facts["utterances"], facts["kept"], facts["made"], facts["left_out"]) == (12, 12, 0, 1)
    assert facts["problems"][0]["kind"] == "unreadable"
    said = command(folder_corpus, tmp_path / "out", "--jobs", 1, "--format", "wav")
    assert "1 left out: 1 unreadable" in said.stdout
    assert "\x1b" not in said.stdout + said.stderr
    strict = command(folder_corpus, tmp_path / "out", "--jobs", 1, "--format", "wav", "--strict")
    assert strict.returncode == 2
    assert strict.stderr.splitlines()[-1].startswith("error: ")
    other = command(folder_corpus, tmp_path / "out", "--jobs", 1, "--format", "wav", "--alpha", 0.7)
    assert other.returncode == 2
    assert "alpha 0.8" in other.stderr
    assert "alpha 0.7" in other.stderr


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "speech" / "s").mkdir(parents=True)
    (tmp_path / "speech" / "s" / "a.wav").write_bytes(b"nothing")
    done = command(tmp_path / "speech", tmp_path / "out", "--jobs", 1)
    assert done.returncode == 2
    assert "no recording could be anonymized" in done.stderr


def test_options_reach_the_system(folder_corpus: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder_corpus / "s2")
    drawn = command(
        folder_corpus, tmp_path / "out", "--system", "mcadams-random", "--alpha-range", 0.7, 0.9, "--per", "speaker",
        "--seed", 5, "--jobs", 1, "--manifest", tmp_path / "private" / "key.jsonl",
    )  # fmt: skip
    assert drawn.returncode == 0, drawn.stderr
    entries = [json.loads(line) for line in (tmp_path / "private" / "key.jsonl").read_text().splitlines()]
    assert len({entry["parameters"]["alpha"] for entry in entries}) == 2
    assert all(entry["parameters"]["seed"] == 5 for entry in entries)
    assert all(0.7 <= entry["parameters"]["alpha"] <= 0.9 for entry in entries)
    wrong = command(folder_corpus, tmp_path / "x", "--alpha-range", 0.7, 0.9)
    assert wrong.returncode == 2
    assert "mcadams has no option alpha_range" in wrong.stderr


def test_no_network(folder_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.anonymizers.base import load_anonymizer
    from veilmeter.data.corpus import read_corpus

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a network connection was tried")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    for system, options in (("mcadams", {}), ("mcadams-random", {}), ("command", {"command": "cp {input} {output}"})):
        done = anonymize_corpus(
            read_corpus(folder_corpus), tmp_path / system, load_anonymizer(system, {**options, "offline": True})
        )
        assert done.done == 12
