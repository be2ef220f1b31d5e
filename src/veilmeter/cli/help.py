"""Help that a person can read: what the command does, examples in one piece, options by purpose with their defaults.

`--help` shows the common options of a command, `--help-all` all of them.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from veilmeter.core.option_groups import LATER
from veilmeter.core.options import Option

WIDEST = 100
MOST_LINES = 60
NAMES = 27  # columns for the names of options
_KINDS = {int: "N", float: "NUMBER", Path: "PATH"}
_MARKUP = re.compile(r"\[/?(?:bold|dim|italic|cyan)\]")


def help_text(ctx: Any, command: Any, *, everything: bool = False) -> str:
    """The help of a command: its common parameters, or everything."""
    names = [parameter.name for parameter in command.params] if everything else _fitting(ctx, command)
    return "\n".join(_lines(ctx, command, names, min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)))


def _fitting(ctx: Any, command: Any) -> list[str]:
    """The parameters that make a help of one page: the common ones, without those for which there is `--help-all`."""
    shown = [p for p in command.params if p.name not in command.declared or command.declared[p.name].common]
    for title in LATER:
        if len(_lines(ctx, command, [p.name for p in shown], WIDEST)) <= MOST_LINES:
            break
        shown = [p for p in shown if getattr(p, "rich_help_panel", None) != title]
    return [p.name for p in shown]


def _lines(ctx: Any, command: Any, names: Sequence[str], width: int) -> list[str]:
    about, examples = split_examples(command.help or "")
    lines = [f"Usage: {ctx.command_path} {usage(command)}", ""]
    lines += _paragraphs(about, width)
    shown = [p for p in command.params if p.name in names or _is_argument(p)]
    for title, parameters in _by_purpose(p for p in shown if not getattr(p, "hidden", False)):
        lines += ["", f"{title}:"]
        for parameter in parameters:
            lines += _entry(parameter, command.declared.get(parameter.name), width)
    if examples:
        lines += ["", "Examples:", *(f"  {line}" for line in examples)]
    more = len(command.params) - len(shown)
    if more:
        lines += ["", f"{more} more options: {ctx.command_path} --help-all"]
    return lines


def usage(command: Any) -> str:
    """How the command is called, with the names that its arguments have below."""
    pieces = ["[OPTIONS]"]
    for argument in filter(_is_argument, command.params):
        name = _names(argument, None).removesuffix("...") + ("..." if getattr(argument, "nargs", 1) == -1 else "")
        pieces.append(name if getattr(argument, "required", True) else f"[{name}]")
    return " ".join(pieces)


def group_text(ctx: Any, group: Any, sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The help of `veilmeter` itself: its commands by purpose, one line each."""
    lines = [f"Usage: {ctx.command_path} [--version] COMMAND ...", "", *_paragraphs(group.help or "", WIDEST)]
    for title, names in sections:
        lines += ["", f"{title}:"]
        for name in names:
            command = group.get_command(ctx, name)
            lines.append(f"  {name:14} {summary(command.help or '')}")
    return "\n".join([*lines, "", "veilmeter COMMAND --help says more."])


def summary(text: str) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(_MARKUP.sub("", text).strip().split("\n\n")[0].split())


def split_examples(text: str) -> tuple[str, list[str]]:
    """The words of a docstring and the example lines behind `Examples:`."""
    about, _, rest = textwrap.dedent(text).partition("Examples:")
    return about.strip(), [line.strip() for line in rest.splitlines() if line.strip()]


def _paragraphs(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for paragraph in _MARKUP.sub("", text).split("\n\n"):
        if paragraph.strip():
            lines += ([""] if lines else []) + textwrap.wrap(" ".join(paragraph.split()), width)
    return lines


def _is_argument(parameter: Any) -> bool:
    return getattr(parameter, "param_type_name", "") == "argument"


def _by_purpose(parameters: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Parameters by heading, in the order of declaration; those without a heading first, output last."""
    groups: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for parameter in parameters:
        title = "Arguments" if _is_argument(parameter) else getattr(parameter, "rich_help_panel", None) or "Options"
        groups.setdefault(title, []).append(parameter)
    last = groups.pop("Output", [])
    return [(title, rows) for title, rows in [*groups.items(), ("Output", last)] if rows]


def _entry(parameter: Any, declared: Option | None, width: int) -> list[str]:
    text = " ".join(_MARKUP.sub("", getattr(parameter, "help", None) or "").split())
    default = "" if declared is None else default_text(declared)
    text += f" [default: {default}]" if default else ""
    names = _names(parameter, declared)
    indent = " " * (NAMES + 2)
    if len(names) > NAMES:
        return [f"  {names}", *textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)]
    first = f"  {names:{NAMES}}"
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=indent) or [first.rstrip()]


def _names(parameter: Any, declared: Option | None) -> str:
    if _is_argument(parameter):
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join(parameter.opts)
    return names if declared is None or declared.is_flag else f"{names} {metavar(declared)}"


def metavar(declared: Option) -> str:
    """The placeholder for a value."""
    return declared.metavar or _KINDS.get(declared.item, "PATH" if declared.path is True else "TEXT")


def default_text(declared: Option) -> str:
    """The default as the help shows it; nothing where there is none."""
    if declared.default_text or declared.is_flag:
        return declared.default_text
    value = declared.default
    if value in (None, (), "", {}):
        return ""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
