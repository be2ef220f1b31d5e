"""The kinds of command there are. Lists have one syntax everywhere: `--lengths 1,3`, repeated, or both."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

from veilmeter.cli.help import help_text, usage
from veilmeter.core.errors import InputError
from veilmeter.core.options import Option


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
