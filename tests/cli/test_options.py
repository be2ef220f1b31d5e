"""What several commands offer is called and explained the same way everywhere."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from typing import Any

import click
import typer

from veilmeter.cli.main import COMMANDS, app

EVERYWHERE = ("--json", "--csv", "--markdown", "--latex", "--quiet", "--jobs", "--cluster", "--offline", "--seed",
              "--no-intervals", "--eer-method", "--strict", "--max-seconds", "--enroll", "--beside", "--part",
              "--root")  # fmt: skip
OWN_WORDS = {("assess", "--json"), ("assess", "--enroll"), ("invert", "--enroll")}  # they take or give something else
OWN_WORDS |= {("assess", "--eer-method")}  # it is among the measures there


def _commands() -> dict[str, Any]:
    group = typer.main.get_command(app)
    return {name: group.get_command(click.Context(group), name) for name in COMMANDS}  # type: ignore[attr-defined]


def test_a_shared_option_has_one_text_and_one_panel() -> None:
    seen: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command in _commands().items():
        for one in command.params:
            for word in one.opts:
                if word in EVERYWHERE and (name, word) not in OWN_WORDS:
                    seen[word][(one.help, one.rich_help_panel)].append(name)
    assert set(seen) == set(EVERYWHERE)
    assert {word: dict(texts) for word, texts in seen.items() if len(texts) > 1} == {}


def test_every_option_says_what_it_is_for() -> None:
    silent = [f"{name} {one.name}" for name, command in _commands().items() for one in command.params
              if one.param_type_name == "option" and one.name != "help" and not one.help]  # fmt: skip
    assert silent == []


def test_commands_load_without_what_is_heavy() -> None:
    heavy = {"numpy", "scipy", "multiprocessing", "concurrent.futures", "veilmeter.core.engine"}
    modules = ", ".join(f"veilmeter.cli.{name.replace('-', '_')}" for name in COMMANDS)
    loaded = f"{heavy!r} & set(sys.modules) - before"  # a measurement of coverage brings modules of its own
    code = f"import sys; before = set(sys.modules); import {modules}; print(sorted({loaded}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
