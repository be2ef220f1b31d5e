"""A program of the user's, run without a shell: no id, path or file name is ever interpreted.

The line is split once, as a shell would split it; `{input}` and the like stand for values, whole arguments or parts of
one.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.processes import run_program
from veilmeter.core.watched_files import WatchedFiles, watched_files

_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Program:
    """`watched` are the files that its line names; their content is its version, unless the user gave one."""

    arguments: tuple[str, ...]
    timeout: float
    watched: WatchedFiles
    given_version: str = ""

    @classmethod
    def parse(
        cls, command: str, *, known: Sequence[str], needed: Collection[str], timeout: float, version: str = ""
    ) -> Program:
        """The program of a command line with these placeholders, of which some are needed.

        >>> Program.parse("cp --no-clobber {input} {output}", known=["input", "output"], needed=["input"],
        ...               timeout=9).arguments
        ('cp', '--no-clobber', '{input}', '{output}')
        """
        try:
            arguments = tuple(shlex.split(command))
        except ValueError as error:
            raise InputError(f"the command can't be split into arguments: {error}", fix="mend its quotes") from None
        example = "program " + " ".join("{" + name + "}" for name in needed)
        if not arguments:
            raise InputError("the command is empty", fix=f"give '{example}'")
        used = placeholders(arguments)
        if unknown := sorted(used - set(known)):
            raise InputError(
                f"the command has the unknown placeholder {{{unknown[0]}}}",
                fix=f"known are {', '.join('{' + name + '}' for name in known)}",
            )
        if missing := sorted(set(needed) - used):
            raise InputError(f"the command has no {{{missing[0]}}}", fix=f"it should look like '{example}'")
        if _FIELD.search(arguments[0]):
            raise InputError("the program itself can't be a placeholder", fix="name it")
        if not (isinstance(timeout, int | float) and timeout > 0):
            raise InputError(f"a time limit of {timeout!r} s makes no sense", fix="give a positive number")
        fixed = [argument for argument in arguments[1:] if not _FIELD.search(argument)]
        watched = watched_files(arguments[0], fixed, look_inside=not version)
        if os.sep in arguments[0]:
            arguments = (watched.paths[0], *arguments[1:])
        return cls(arguments, timeout, watched, version)

    @property
    def version(self) -> str:
        return f"given-{self.given_version}" if self.given_version else self.watched.digest

    def describe(self) -> str:
        """What decides whether what it made in an earlier run still holds."""
        if self.given_version:
            return f"what it makes is kept as long as you say --version {self.given_version}"
        return self.watched.describe()

    def run(self, values: Mapping[str, Any], folder: str | Path, *, ids: Collection[str] = ()) -> str:
        """What it prints on standard output when its placeholders have these values; it works in `folder`.

        The values of `ids` come from strangers, and none may turn into an option.
        """
        arguments = [_filled(argument, values, ids) for argument in self.arguments]
        return run_program(arguments, Path(folder), self.timeout)


def placeholders(arguments: Sequence[str]) -> set[str]:
    """The names in braces."""
    return {name for argument in arguments for name in _FIELD.findall(argument)}


def _filled(argument: str, values: Mapping[str, Any], ids: Collection[str]) -> str:
    """The argument with its placeholders filled, all at once: a value that looks like a placeholder stays as it is."""
    first = _FIELD.match(argument)
    if first and first[1] in ids and str(values[first[1]]).startswith("-"):
        raise InputError(f"the id {values[first[1]]!r} would be taken for an option", fix="rename it")
    return _FIELD.sub(lambda match: str(values[match[1]]), argument)
