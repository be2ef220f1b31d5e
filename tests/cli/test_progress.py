"""Progress on standard error, where there is no terminal."""

from __future__ import annotations

import pytest

from veilmeter.cli import terminal as module
from veilmeter.cli.terminal import show_progress, stages


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
