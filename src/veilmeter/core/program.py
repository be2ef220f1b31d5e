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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.files import sha256
from veilmeter.core.processes import run_program

MOST_FILES = 10_000
MOST_BYTES = 20 << 30
_INTERPRETERS = ("python", "pypy", "perl", "ruby", "node", "Rscript", "julia", "bash", "sh", "zsh", "java", "conda")


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """What was found in a command, and one hash of all of it. `modules` are named with -m and were not looked for."""

    paths: tuple[str, ...]
    digest: str
    modules: tuple[str, ...] = ()

    def describe(self) -> str:
        """For the user: what a change of would be noticed, and what would not.

        >>> WatchedFiles(("/usr/bin/cp",), "1f").describe()
        'what it makes is kept as long as these are unchanged: /usr/bin/cp'
        """
        text = "what it makes is kept as long as these are unchanged: " + ", ".join(self.paths)
        interpreted = Path(self.paths[0]).name.startswith(_INTERPRETERS)
        others = [f"the module {name}" for name in self.modules] + (["what it imports"] if interpreted else [])
        return text + (f"; not watched: {', '.join(others)} (say --version when it changes)" if others else "")


def watched_files(program: str, fixed: Sequence[str], *, look_inside: bool = True) -> WatchedFiles:
    """The program, found as the system would find it, and every file or folder that an argument names, whole or after
    a `=`; `fixed` are the arguments without placeholders. Without `look_inside` their content is not read."""
    executable = shutil.which(program)
    if executable is None:
        raise InputError(f"there is no program {program}", fix="install it, or give its full path")
    paths = [Path(os.path.abspath(executable))]
    for argument in fixed:
        for candidate in dict.fromkeys((argument, argument.partition("=")[2])):
            path = Path(candidate)  # as the program gets it: no shell turns ~ into a folder
            if candidate and len(candidate) < 4096 and _exists(path):
                paths.append(Path(os.path.abspath(path)))
    modules = tuple(fixed[place + 1] for place, word in enumerate(fixed[:-1]) if word == "-m")
    paths = list(dict.fromkeys(paths))
    digest = hashlib.sha256()
    for path in paths if look_inside else ():
        digest.update(f"{path.name}\0{_content(path)}\0".encode("utf-8", "surrogateescape"))
    return WatchedFiles(tuple(map(str, paths)), digest.hexdigest()[:16], modules)


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or path.is_dir()
    except (OSError, ValueError):
        return False


def _content(path: Path) -> str:
    if path.is_file():
        return _file_content(path)
    digest, files, size = hashlib.sha256(), 0, 0
    for file in _files_below(path):
        files, size = files + 1, size + _size(file)
        if files > MOST_FILES or size > MOST_BYTES:
            raise InputError(
                f"the command names a folder that is too large to watch (over {MOST_FILES} files or 20 GiB)",
                path=path,
                fix="say --version yourself, and change it when the folder changes",
            )
        digest.update(f"{file.relative_to(path)}\0{_file_content(file)}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files_below(path: Path) -> Iterator[Path]:
    """In a fixed order, without what Python and version control leave behind."""
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name not in ("__pycache__", ".git"))
        yield from (Path(folder, name) for name in sorted(files))


def _file_content(path: Path) -> str:
    try:
        return sha256(path) if path.is_file() else "not a file"
    except OSError:  # such as a program that may be run and not read
        return f"unreadable, {_size(path)} bytes"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


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
