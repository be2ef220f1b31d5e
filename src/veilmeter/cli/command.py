"""A command: its parameters from declared options, its parsing, its help, and the options that were given.

`--help` shows the common options of a command, `--help-all` all of them. Lists have one syntax everywhere:
`--lengths 1,3`, repeated, or both.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
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


def _width() -> int:
    return min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)


def help_text(ctx: Any, command: Any, *, everything: bool = False) -> str:
    """The help of a command: its common parameters, or everything."""
    names = [parameter.name for parameter in command.params] if everything else _fitting(ctx, command)
    return "\n".join(_lines(ctx, command, names, _width()))


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
        lines += ["", f"{more} more {'option' if more == 1 else 'options'}: {ctx.command_path} --help-all"]
    return lines


def usage(command: Any) -> str:
    """How the command is called, with the names that its arguments have below."""
    pieces = ["[OPTIONS]"]
    for argument in filter(_is_argument, command.params):
        name = _names(argument, None).removesuffix("...") + ("..." if getattr(argument, "nargs", 1) == -1 else "")
        pieces.append(name if getattr(argument, "required", True) else f"[{name}]")
    return " ".join(pieces)


def group_text(ctx: Any, group: Any, sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The help of a command with subcommands: these by purpose, then its own options."""
    width = _width()
    lines = [f"Usage: {ctx.command_path} [OPTIONS] COMMAND ...", "", *_paragraphs(group.help or "", width)]
    for title, names in sections:
        rows = [(name, summary(group.get_command(ctx, name).help or "")) for name in names]
        lines += ["", f"{title}:", *(line for row in rows for line in _row(*row, 15, width))]
    options = [(", ".join(sorted(parameter.opts)), parameter.help or "") for parameter in group.get_params(ctx)]
    lines += ["", "Options:", *(line for row in options for line in _row(*row, 22, width))]
    return "\n".join([*lines, "", f"Help on one command: {ctx.command_path} COMMAND --help"])


def _row(names: str, text: str, column: int, width: int) -> list[str]:
    """Names, then the text in its own column; it begins on the next line where the names are too long."""
    indent = " " * (column + 2)
    head = [f"  {names}"] if len(names) > column - 2 else []
    first = indent if head else f"  {names:{column}}"
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return [*head, *(lines or [first.rstrip()])]


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
    return _row(_names(parameter, declared), text, NAMES, width)


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
        if (not args or args[0] == "--help-all") and not ctx.resilient_parsing:
            print(self.get_help(ctx))
            ctx.exit()
        with _one_line_errors(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], names, 1)
            fix = f"did you mean {near[0]!r}?" if near else f"{ctx.command_path} --help lists the commands"
            raise InputError(f"no such command: {args[0]!r}", fix=fix)
        with _one_line_errors(ctx):
            return super().resolve_command(ctx, args)

    def get_help(self, ctx: Any) -> str:
        return group_text(ctx, self, [("Commands", self.list_commands(ctx))])


# The framework keeps its own copy of click, whose errors have no public name but this.
_UsageError: Any = typer.BadParameter.__base__


@contextmanager
def _one_line_errors(ctx: Any) -> Iterator[None]:
    """Turns the framework's errors about the words of a command into ours, which are one line."""
    try:
        yield
    except _UsageError as error:
        parameter = getattr(error, "param", None)
        fix = f"see {ctx.command_path} --help"
        if type(error).__name__ == "MissingParameter" and parameter is not None:
            raise InputError(f"{_names(parameter, None).removesuffix('...')} is required", fix=fix) from None
        if type(error).__name__ == "NoSuchOption":
            given = str(getattr(error, "option_name", "")).lstrip("-")
            known = {name.lstrip("-"): name for name in getattr(error, "possibilities", None) or ()}
            near = difflib.get_close_matches(given, known, 1)  # without the dashes, which all options share
            fix = f"did you mean {known[near[0]]}?" if near else fix
            raise InputError(f"no such option: {error.option_name}", fix=fix) from None
        message = error.format_message().rstrip(".").replace("Got unexpected extra argument(s)", "Unexpected argument")
        raise InputError(message[:1].lower() + message[1:], fix=fix) from None


class CommaCommand(TyperCommand):
    """Every repeatable option takes commas too."""

    declared: Mapping[str, Option] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if asks_for_everything(args):
            print(help_text(ctx, self, everything=True))
            ctx.exit()
        words = split_values(args, self._repeatable())
        with _one_line_errors(ctx):
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
        return super().parse_args(ctx, repeat_names(args, self._repeatable(), self.is_argument))

    def is_argument(self, word: str) -> bool:
        """Whether a word among the values of an option is an argument all the same."""
        return False


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


def repeat_names(
    args: list[str], several: set[str], is_argument: Callable[[str], bool] = lambda word: False
) -> list[str]:
    """Repeat the option's name before each of its values.

    >>> repeat_names(["a", "--lengths", "1", "3", "--out", "b", "c"], {"--lengths"})
    ['a', '--lengths', '1', '--lengths', '3', '--out', 'b', 'c']
    >>> repeat_names(["--lengths", "1", "3", "b"], {"--lengths"}, str.isalpha)
    ['--lengths', '1', '--lengths', '3', 'b']
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
        elif current is not None and taken and is_argument(word):
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
