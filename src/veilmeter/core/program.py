"""A program of the user's, run without a shell: no id, path or file name is ever interpreted.

The line is split once, as a shell would split it; `{input}` and the like stand for values, whole arguments or parts of
one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError

TAIL = 2000  # characters of what the program said that an error repeats
_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Program:
    """`version` is a hash of the program's own file."""

    arguments: tuple[str, ...]
    version: str
    timeout: float

    @classmethod
    def parse(cls, command: str, *, known: Sequence[str], needed: Collection[str], timeout: float) -> Program:
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
        path = shutil.which(arguments[0])
        if path is None:
            raise InputError(f"there is no program {arguments[0]}", fix="install it, or give its full path")
        if not (isinstance(timeout, int | float) and timeout > 0):
            raise InputError(f"a time limit of {timeout!r} s makes no sense", fix="give a positive number")
        if os.sep in arguments[0]:
            arguments = (os.path.abspath(path), *arguments[1:])
        return cls(arguments, _digest(path), timeout)

    def run(self, values: Mapping[str, Any], folder: str | Path, *, ids: Collection[str] = ()) -> str:
        """What it prints on standard output when its placeholders have these values; scratch files go to `folder`.

        The values of `ids` come from strangers, and none may turn into an option.
        """
        printed, said = Path(folder, "printed.txt"), Path(folder, "said.txt")
        arguments = [_filled(argument, values, ids) for argument in self.arguments]
        with open(printed, "wb") as out, open(said, "wb") as errors:
            try:
                # A session of its own, so that a program that starts others can be ended with all of them.
                process = subprocess.Popen(
                    arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, start_new_session=True
                )
            except (OSError, ValueError) as error:
                raise InputError(f"{arguments[0]} can't be run: {getattr(error, 'strerror', None) or error}") from None
            try:
                code = process.wait(timeout=self.timeout)
            except subprocess.TimeoutExpired:
                raise InputError(
                    f"{arguments[0]} was still running after {self.timeout:g} s and was ended{_tail(printed, said)}",
                    fix="allow more with --timeout",
                ) from None
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # whatever it left behind
                process.wait()
        if code != 0:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise InputError(f"{arguments[0]} {how}{_tail(printed, said)}")
        return printed.read_bytes().decode("utf-8", "replace")


def placeholders(arguments: Sequence[str]) -> set[str]:
    """The names in braces."""
    return {name for argument in arguments for name in _FIELD.findall(argument)}


def _filled(argument: str, values: Mapping[str, Any], ids: Collection[str]) -> str:
    """The argument with its placeholders filled, all at once: a value that looks like a placeholder stays as it is."""
    first = _FIELD.match(argument)
    if first and first[1] in ids and str(values[first[1]]).startswith("-"):
        raise InputError(f"the id {values[first[1]]!r} would be taken for an option", fix="rename it")
    return _FIELD.sub(lambda found: str(values[found[1]]), argument)


def _tail(*files: Path) -> str:
    text = ""
    for file in files:
        with open(file, "rb") as handle:
            handle.seek(max(0, file.stat().st_size - 4 * TAIL))
            text += handle.read().decode("utf-8", "replace")
    text = text.strip()[-TAIL:]
    return f"; it said: {text}" if text else ""


def _digest(program: str) -> str:
    try:
        with open(program, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()[:16]
    except OSError:
        return "unknown"
