"""Commands that are stopped by a signal and run again: nothing partial is left, and the outcome is the same."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Background = Callable[..., "subprocess.Popen[str]"]
Command = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.slow


def wait_for(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 120
    while not ready():
        if process.poll() is not None or time.monotonic() > limit:
            raise AssertionError(process.communicate(timeout=10))
        time.sleep(0.01)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGTERM])
def test_transcribe_leaves_nothing_partial_after_going_on(
    how: signal.Signals, speech: Path, tmp_path: Path, command: Command, background: Background
) -> None:
    (tmp_path / "asr.py").write_text(
        "import os, time\n"
        "def hear(samples):\n"
        "    with open(os.environ['HEARD'], 'a') as log:\n"
        "        log.write('x')\n"
        "    time.sleep(float(os.environ['PAUSE']))\n"
        "    return f'{len(samples)} samples'\n"
    )
    log = tmp_path / "log"
    log.touch()
    words = ["--recognizer", f"{tmp_path}/asr.py:hear", "--jobs", 1, "--quiet"]
    code, _, err = command("transcribe", speech, tmp_path / "whole", *words, HEARD=str(log), PAUSE="0")
    assert code == 0, err
    before = len(log.read_text())
    before_us = signal.signal(how, signal.SIG_DFL)  # nohup ignores it, and so would the command
    process = background("transcribe", speech, tmp_path / "out", *words, HEARD=str(log), PAUSE="0.4")
    signal.signal(how, before_us)
    wait_for(lambda: len(log.read_text()) >= before + 3, process)
    process.send_signal(how)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert not (tmp_path / "out" / "text").exists()
    code, _, err = command("transcribe", speech, tmp_path / "out", *words, HEARD=str(log), PAUSE="0")
    assert code == 0, err
    whole, after = contents(tmp_path / "whole"), contents(tmp_path / "out")
    assert sorted(after) == sorted(whole)
    assert {name for name in whole if whole[name] != after[name]} <= {name for name in whole if name.startswith(".")}


def test_report_after_a_kill_is_that_of_an_undisturbed_run(
    whole_run: Path, tmp_path: Path, command: Command, background: Background
) -> None:
    """Only the date of the page differs, where a day ended between the two."""
    pages = [tmp_path / "whole" / "report.html", tmp_path / "killed" / "report.html"]
    for page in pages:
        page.parent.mkdir()
    code, _, err = command("report", whole_run, "--out", pages[0])
    assert code == 0, err
    for pause in (0.3, 1.0, 1.6):
        process = background("report", whole_run, "--out", pages[1])
        time.sleep(pause)
        process.kill()
        process.communicate(timeout=240)
    code, _, err = command("report", whole_run, "--out", pages[1])
    assert code == 0, err
    assert [path.name for path in pages[1].parent.iterdir()] == ["report.html"]
    first, second = (re.sub(r"\d{4}-\d\d-\d\d", "DATE", page.read_text(encoding="utf-8")) for page in pages)
    assert first == second


@pytest.mark.parametrize("words", ["measure {scores} --stream --jobs 1", "measure {scores} --cluster local --jobs 1"])
def test_temporary_files_of_a_killed_command_are_removed_by_the_next(
    words: str, tmp_path: Path, command: Command, background: Background
) -> None:
    if "--cluster" in words:
        pytest.importorskip("distributed")
    scores, temporary = tmp_path / "scores.txt", tmp_path / "temporary"
    scores.write_text("".join(f"a{n % 20} u{n} {n * 7919 % 1000} {'non' * (n % 4 > 0)}target\n" for n in range(20_000)))
    temporary.mkdir()
    line = words.format(scores=scores).split()
    process = background(*line, TMPDIR=str(temporary))
    wait_for(lambda: any(temporary.glob("veilmeter-*/*")), process)
    process.kill()
    process.communicate(timeout=60)
    assert list(temporary.iterdir())
    code, _, err = command(*line, TMPDIR=str(temporary))
    assert code == 0, err
    assert list(temporary.iterdir()) == []
