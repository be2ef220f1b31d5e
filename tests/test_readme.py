"""The README says what is true: its table is the registry's, its Python runs, its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from veilmeter.cli.main import COMMANDS
from veilmeter.metrics.registry import MEASURES

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
_WORDS = {"higher": "higher", "lower": "lower", "neither": "depends"}


def test_every_measure_stands_in_the_table() -> None:
    for m in MEASURES.values():
        label = m.label.replace("|", "\\|")  # a bar ends a cell
        assert f"| {label} | {m.meaning} | {_WORDS[m.better]} | {m.source} |" in README


def test_the_table_has_no_other_measures() -> None:
    table = README.split("## What is measured")[1].split("\n\n")[1]
    assert len(table.strip().splitlines()) - 2 == len(MEASURES)


def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("EER ")


def test_every_command_it_names_exists() -> None:
    shown = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
    named = set(re.findall(r"^veilmeter ([a-z-]+)", shown, re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_file_it_links_is_there(link: str) -> None:
    assert (Path(__file__).parents[1] / link).exists()
