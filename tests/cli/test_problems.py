"""How commands say what they could not use."""

from __future__ import annotations

import pytest

from veilmeter.cli.output import print_problems, problem_lines
from veilmeter.core.errors import Problem


def test_a_long_list_is_cut_and_says_where_all_of_it_is() -> None:
    problems = [Problem("silent", "it holds nothing but silence", f"{n}.wav") for n in range(150)]
    lines = problem_lines("left out", [*problems, Problem("nan", "it holds NaN", "x.wav")], "the manifest")
    assert lines[0] == "151 left out: 150 silent, 1 nan"
    assert lines[1] == "  silent: 0.wav: it holds nothing but silence"
    assert lines[-1] == "  ... and 51 more, see the manifest"
    assert problem_lines("left out", [], "the manifest") == []


def test_what_is_left_out_comes_first_and_nothing_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    fine = Problem("clipped", "it is clipped", "b.wav", fatal=False)
    print_problems([fine, Problem("silent", "silence", "a\x1b[2J.wav")], "inputs.jsonl")
    assert capsys.readouterr().out.splitlines() == [
        "1 left out: 1 silent",
        "  silent: a?[2J.wav: silence",
        "1 used all the same: 1 clipped",
        "  clipped: b.wav: it is clipped",
    ]
