"""Progress on standard error, in a terminal and without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from veilmeter.assessment.stages import Standing
from veilmeter.cli import terminal as module
from veilmeter.cli.terminal import AssessmentDisplay, show_progress, stages


def test_progress_without_a_terminal_is_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("work", unit="things") as progress:
        for done in range(101):
            progress(done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "work: 0 of 100 things"
    assert lines[-1].startswith("work: 100 of 100 things")
    assert len(lines) == 2
    with show_progress("work", quiet=True) as progress:
        progress(1, 2)
    assert capsys.readouterr().err == ""


def test_speed_counts_only_what_this_run_did(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 20.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    lines = module._Lines("work", "things")
    lines(900, 1000)
    lines(940, 1000)
    assert capsys.readouterr().err.splitlines()[1] == "work: 940 of 1000 things, 2/s, 30 s left"


def test_stages_come_with_the_time_since_the_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([100.0, 103.9, 165.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    say = stages()
    say("reading")
    say("a\x1b[2J name")
    assert capsys.readouterr().err.splitlines() == ["[0:03] reading", "[1:05] a?[2J name"]


def test_quiet_stages_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    stages(quiet=True)("reading")
    assert capsys.readouterr().err == ""


HALFWAY = Standing("reading: original", 50, 100, elapsed=60.0, left=60.0, least=20.0, told=1000.0)


def test_an_assessment_without_a_terminal_says_now_and_then_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.time, "monotonic", lambda: 995.0)
    with AssessmentDisplay() as display:
        display.show(HALFWAY)
        assert capsys.readouterr().err == ""
        display.show(replace(HALFWAY, told=1025.0))
        display.show(replace(HALFWAY, told=1060.0, total=0))  # nothing new
    assert capsys.readouterr().err == "[0:00] 50 %, about 60 s left; reading: original, 50 of 100\n"
    with AssessmentDisplay(quiet=True) as display:
        display.say("something")
        display.show(replace(HALFWAY, told=2000.0))
    assert capsys.readouterr().err == ""


def test_the_time_left_goes_on_but_never_below_what_follows_the_stage() -> None:
    assert HALFWAY.remaining_at(1010.0) == 50.0
    assert HALFWAY.remaining_at(1500.0) == 20.0
    assert HALFWAY.share_at(1000.0) == 0.5
    assert HALFWAY.share_at(1010.0) == pytest.approx(70 / 120)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_one_bar_in_a_terminal_and_results_untouched_on_standard_output(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"s{person}" for person in range(60) for _ in range(8)]  # so many that measuring takes a second
    for side in ("original", "anonymized"):
        ids = [f"{name}-{number}" for number, name in enumerate(names)]
        np.savez(tmp_path / f"{side}.npz", vectors=rng.standard_normal((480, 8)), ids=ids, speakers=names)
    words = ["assess", "--original", "original.npz", "--anonymized", "anonymized.npz", "--out", "run", "--jobs", "1"]
    words += ["--json", "--no-report", "--attackers", "ignorant", "lazy-informed", "--measures", "scores"]
    master, slave = os.openpty()
    with open(tmp_path / "stdout", "wb") as out:
        running = subprocess.Popen(
            [sys.executable, "-m", "veilmeter.cli.main", *words], cwd=tmp_path, stdout=out, stderr=slave,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
        )  # fmt: skip
        os.close(slave)
        shown = b""
        with suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(master, 1 << 16):
                shown += piece
        os.close(master)
        assert running.wait() == 0, shown
    assert json.loads((tmp_path / "stdout").read_text())["schema"]
    text = shown.decode()
    assert "measuring, 0 of " in text
    assert " left" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is back
