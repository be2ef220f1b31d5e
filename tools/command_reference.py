"""`python tools/command_reference.py`: docs/reference/commands.md, from the declared options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from veilmeter.assessment.settings import AttackerSettings, RunOptions, Settings
from veilmeter.assessment.statements import AnnexEntries, Recipient
from veilmeter.cli.command import default_text, metavar, split_examples, summary
from veilmeter.cli.main import SECTIONS
from veilmeter.core.options import Option, all_options, options_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"
INTRODUCTION = """# Commands

Every command with its options, from their declarations; `make reference` writes this page. An option that takes several
values takes them with commas, repeated, or both. The help of a command shows the same.
"""
OF_A_FILE = """
In the TOML file of `assess`, options have the same names without `--` (`lengths = [1, 3]`, `no-intervals = true`), and
relative paths are relative to the file. What is special about one attacker is in a table `[attackers.NAME]`:
"""
OF_THE_ANNEX = """
Entries of the annex are in a table `[annex]`, as text in your own words. What is not there stays a line to fill in:
"""
OF_RECIPIENTS = """
Each recipient of the speech is a table `[[recipients]]`, which says what that recipient has:
"""
IN_A_FILE = ((OF_A_FILE, AttackerSettings), (OF_THE_ANNEX, AnnexEntries), (OF_RECIPIENTS, Recipient))
HEAD = "| option | meaning | default |\n|---|---|---|\n"


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for title, names in SECTIONS:
        parts.append(f"\n## {title}\n")
        for name in names:
            parts.append(_command(name, import_module(f"veilmeter.cli.{name.replace('-', '_')}")))
    return "".join(parts)


def _command(name: str, module: Any) -> str:
    if not hasattr(module, "OPTIONS"):
        functions = [below.callback for below in module.app.registered_commands]
        rows = [f"| `{name} {function.__name__}` | {summary(function.__doc__)} |\n" for function in functions]
        return f"\n### {name}\n\n{module.app.info.help}\n\n| command | |\n|---|---|\n{''.join(rows)}"
    about, examples = split_examples(module.command.__doc__ or "")
    text = f"\n### {name}\n\n{summary(about)}\n"
    if examples:
        text += "\n" + "".join(f"- `{line}`\n" for line in examples)
    declared = all_options(module.OPTIONS)
    for title, options in _groups(declared).items():
        text += f"\n**{title}**\n\n{_table(options, _names)}"
    if RunOptions in module.OPTIONS and Settings in module.OPTIONS:
        for introduction, kind in IN_A_FILE:
            text += introduction + "\n" + _table(options_of(kind).values(), lambda option: f"`{option.name}`")
    return text


def _groups(declared: Mapping[str, Option]) -> dict[str, list[Option]]:
    """The options by heading: arguments and those without a heading first."""
    groups: dict[str, list[Option]] = {"Arguments": [], "Options": []}
    for option in (option for option in declared.values() if not option.in_file):
        groups.setdefault("Arguments" if option.argument else option.group or "Options", []).append(option)
    return {title: options for title, options in groups.items() if options}


def _table(options: Iterable[Option], names: Any) -> str:
    rows = ((names(option), option.help, default_text(option)) for option in options)
    return HEAD + "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _names(option: Option) -> str:
    if option.argument:
        return f"`{option.metavar or option.name.upper()}`"
    value = "" if option.is_flag else f" {metavar(option)}"
    return ", ".join(f"`{flag}{value}`" for flag in option.all_flags)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
