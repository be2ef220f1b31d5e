"""A command: its parameters from declared options, its parsing, its help, and the options that were given.

`--help` shows the common options of a command, `--help-all` all of them. Lists have one syntax everywhere:
`--lengths 1,3`, repeated, or both.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from typer.core import TyperCommand, TyperGroup

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.core.option_groups import LATER
from veilmeter.core.options import Option, build, option_without_effect, options_of, parse_words

if TYPE_CHECKING:
    from typer import Context

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


def asks_for_everything(args: Sequence[str]) -> bool:
    """Whether the whole help is asked for, and not after `--`, where words are values."""
    return "--help-all" in (args[: args.index("--")] if "--" in args else args)


class CommandGroup(TyperGroup):
    """A command with subcommands, such as `cache clear`: all of its help is one page."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["--help-all"]:
            print(self.get_help(ctx))
            ctx.exit()
        return super().parse_args(ctx, args)


class CommaCommand(TyperCommand):
    """Every repeatable option takes commas too."""

    declared: Mapping[str, Option] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if asks_for_everything(args):
            print(help_text(ctx, self, everything=True))
            ctx.exit()
        words = split_values(args, self._repeatable())
        self._refuse_twice(ctx, words)
        return super().parse_args(ctx, words)

    def _refuse_twice(self, ctx: Any, args: list[str]) -> None:
        """An option that takes one value and is given two: the first would be passed over in silence."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(id(given) for given in order)
        for option in self.params:
            one_value = not option.multiple and not getattr(option, "is_flag", False)
            if option.param_type_name == "option" and one_value and counts[id(option)] > 1:
                names = " or ".join(option.opts)
                raise InputError(f"{names} is given {counts[id(option)]} times", fix="give it once")

    def get_help(self, ctx: Any) -> str:
        return help_text(ctx, self)

    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {ctx.command_path} {usage(self)}"

    def _repeatable(self) -> set[str]:
        return {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}


class Lists(CommaCommand):
    """Every repeatable option takes all words that follow it as well, up to the next option or `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, repeat_names(args, self._repeatable()))


def split_values(args: list[str], several: set[str]) -> list[str]:
    """The values of repeatable options, each by itself.

    >>> split_values(["a,b", "--lengths", "1,3", "--out=c,d", "--lengths=7"], {"--lengths"})
    ['a,b', '--lengths', '1', '--lengths', '3', '--out=c,d', '--lengths', '7']
    """
    result: list[str] = []
    words = iter(enumerate(args))
    for place, word in words:
        if word == "--":
            return result + args[place:]
        name, has_value, value = word.partition("=")
        if name in several and has_value:
            result += [item for piece in pieces(value) for item in (name, piece)]
        elif word in several and place + 1 < len(args):
            _, value = next(words)
            result += [item for piece in pieces(value) for item in (word, piece)]
        else:
            result.append(word)
    return result


def pieces(value: str) -> list[str]:
    """A value cut at its commas, unless it is the name of a file or a single NAME=VALUE.

    >>> pieces("1,3"), pieces("eer=30,deid=95"), pieces("range=[1,2]"), pieces("eer,linkability@20,L3")
    (['1', '3'], ['eer=30', 'deid=95'], ['range=[1,2]'], ['eer', 'linkability@20,L3'])
    """
    parts = [part.strip() for part in re.split(r",(?!L=?[0-9])", value) if part.strip()]
    if len(parts) < 2 or os.path.exists(value) or ("=" in value and not all("=" in part for part in parts)):
        return [value]
    return parts


def repeat_names(args: list[str], several: set[str]) -> list[str]:
    """Repeat the option's name before each of its values.

    >>> repeat_names(["a", "--lengths", "1", "3", "--out", "b", "c"], {"--lengths"})
    ['a', '--lengths', '1', '--lengths', '3', '--out', 'b', 'c']
    """
    result: list[str] = []
    current: str | None = None
    taken = 0
    for number, word in enumerate(args):
        if word == "--":
            return result + args[number:]
        if word in several:
            current, taken = word, 0
            result.append(word)
        elif word.startswith("--") or (word.startswith("-") and not _is_number(word)):
            current = None
            result.append(word)
        else:
            if current is not None and taken:
                result.append(current)
            taken += 1
            result.append(word)
    return result


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


T = TypeVar("T")


class Given:
    """The options of a command that were given on the command line, also those with the value of their default."""

    def __init__(self, ctx: Context, declared: Mapping[str, Option]) -> None:
        self.declared = declared
        self.words: dict[str, Any] = {
            name: ctx.params[name]
            for name in declared
            if (source := ctx.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
        }

    def __contains__(self, name: str) -> bool:
        return name in self.words

    def values(self, kind: type) -> dict[str, Any]:
        """The plain values that were given for the options of this class."""
        return {name: parse_words(self.declared[name], self.words[name]) for name in options_of(kind) if name in self}

    def build(self, kind: type[T]) -> T:
        """The options of this class, with defaults for those that were not given."""
        built: T = build(kind, self.values(kind))
        return built

    def spell(self, name: str) -> str:
        """The option as it was written, with its value."""
        return " ".join(self.declared[name].spell(self.words[name]))

    def without_effect(self, reasons: Mapping[str, str]) -> list[Finding]:
        """One for every option that was given and has a reason here for having had no effect."""
        return [
            option_without_effect(*self.declared[name].spell(self.words[name]), reason=reason)
            for name, reason in reasons.items()
            if reason and name in self
        ]

    def find_unused(self, settings: Any, facts: Any) -> list[Finding]:
        """One for every option that was given and, by its declaration, had no effect."""
        return self.without_effect({name: self.declared[name].idle_reason(settings, facts) for name in self.words})

    def refuse(self, names: Iterable[str], reason: str, *, fix: str, path: Path | None = None) -> None:
        """An error if one of these options was given."""
        named = [self.spell(name) for name in names if name in self]
        if named:
            raise InputError(f"{', '.join(named)} can't act here: {reason}", path=path, fix=fix)
