"""The workflows in examples/ci are YAML, and what they run exists with the options they give."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from veilmeter.cli.main import COMMANDS, app

FOLDER = Path(__file__).parents[1] / "examples" / "ci"
FILES = sorted(FOLDER.glob("*.yml"))


def lines_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [line for item in value.values() for line in lines_of(item)]
    if isinstance(value, list):
        return [line for item in value for line in lines_of(item)]
    return [part for line in str(value).splitlines() for part in re.split(r"\s*&&\s*", line)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_a_workflow_runs_exists(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    called = []
    for line in lines_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
        words = shlex.split(line.split(" >> ")[0])
        if words and Path(words[0]).name == "veilmeter":
            called.append(words[1])
            assert words[1] in COMMANDS
            command = typer.main.get_command(app).get_command(None, words[1])  # type: ignore[attr-defined]
            known = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known, line
    assert called == ["anonymize", "assess", "gate"]
    text = path.read_text(encoding="utf-8")
    assert all(option in text for option in ("--baseline", "--junit", "--summary"))


def test_there_is_one_for_each_service() -> None:
    assert [path.stem for path in FILES] == ["github", "gitlab"]
