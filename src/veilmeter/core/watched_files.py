"""The files that a command names: their content decides whether what it made before still holds."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilmeter.core.errors import InputError
from veilmeter.core.files import sha256

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
