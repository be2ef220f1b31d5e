"""Child processes: a user's program, and our own functions on untrusted files.

A program runs without a shell, so that no id, path or file name is ever interpreted: its line is split once, as a shell
would split it, and `{input}` and the like are replaced by values. It has a time limit, little of its output is kept,
and none of its processes outlives it. It may start others in their own sessions, so all inherit an environment variable
by which they are found and ended: when the program ends or its time is over, and, if veilmeter itself was killed, when
the next run begins. psutil would bring the search alone, and only the cluster extra installs it.

A function that reads an untrusted file with a C library runs in a child with limits of time and memory: a corrupt file
may crash the library, keep it busy forever, or make it ask for all memory.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import scratch_folder, sha256

MARK = "VEILMETER_WORK"
MOST_PRINTED, MOST_ERRORS = 1 << 20, 8000  # bytes kept from the end of a program's two output streams
TAIL = 2000  # characters of these in an error
MOST_FILES, MOST_BYTES = 10_000, 20 << 30  # of a program that are hashed
CONFINED_MEMORY = 3 << 30  # bytes of address space beyond a multiple of the file's size
CONFINED_SECONDS, BYTES_PER_SECOND = 10, 1 << 20  # far more time than an intact file needs
_PATIENCE = 20  # times that, where a child waits instead of working, or for a processor
_CHILD = "import sys; from veilmeter.core.processes import child; child(sys.argv[1:])"
_BROKEN = (OSError, ValueError, TypeError, RuntimeError, KeyError, UnicodeError, MemoryError, ArithmeticError)
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_ATTEMPTS = 20
_FIELD = re.compile(r"\{([^{}]*)\}")
_INTERPRETERS = ("python", "pypy", "perl", "ruby", "node", "Rscript", "julia", "bash", "sh", "zsh", "java", "conda")


def run_program(arguments: Sequence[str], mark: Path, timeout: float) -> str:
    """Run it to its end and give back what it printed; an InputError says how it failed and the last it printed.

    `mark` is its working folder.
    """
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, MARK: str(mark)},
            preexec_fn=_end_with_parent(),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InputError(f"{arguments[0]} can't be run: {getattr(error, 'strerror', None) or error}") from None
    assert process.stdout is not None
    assert process.stderr is not None
    printed, errors = _Tail(process.stdout, MOST_PRINTED), _Tail(process.stderr, MOST_ERRORS)
    try:
        code = process.wait(timeout=timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end_all(process, mark)
    if code == 0:
        return printed.text()
    how = f"was ended by signal {-code}" if code and code < 0 else f"ended with exit code {code}"
    if code is None:
        how = f"was still running after {timeout:g} s and was ended"
    words = (printed.text()[-TAIL:] + errors.text()).strip()[-TAIL:]
    raise InputError(
        f"{arguments[0]} {how}" + (f"; it said: {words}" if words else ""),
        fix="allow more with --timeout" if code is None else None,
    )


def end_marked(mark: Path) -> int:
    """End every process that was started with this mark, or for a folder below it; how many there were.

    Again until none is left, as one may just have started another. Only where the system has /proc.
    """
    ended: set[int] = set()
    for _ in range(_ATTEMPTS):
        running = [number for number in _find_marked(mark) if number != os.getpid()]
        if not running:
            break
        for number in running:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        ended.update(running)
        time.sleep(0.01)
    return len(ended)


def _find_marked(mark: Path) -> list[int]:
    wanted = f"{MARK}={mark}".encode("utf-8", "surrogateescape")
    marked = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or is somebody else's
            continue
        if any(line == wanted or line.startswith(wanted + b"/") for line in environment):
            marked.append(int(entry.name))
    return marked


def _end_all(process: subprocess.Popen[bytes], mark: Path) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    end_marked(mark)


def _end_with_parent() -> Callable[[], None] | None:
    """On Linux the program is ended by the system when this process is killed, so that none goes on without us."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up here: little may be done between fork and exec
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_DIE_WITH_PARENT, signal.SIGKILL)


class _Tail:
    """Reads a pipe to its end in a separate thread, so that the program never waits, and keeps the last of it."""

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        self._pipe, self._most = pipe, most
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError), self._pipe:
            while block := os.read(self._pipe.fileno(), 1 << 16):
                self._kept = (self._kept + block)[-self._most :]

    def text(self) -> str:
        self._thread.join(timeout=1.0)
        return self._kept.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """The files that a command names, and one hash of all. `modules` are named with -m and were not looked for."""

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


def watch_files(program: str, fixed: Sequence[str], *, look_inside: bool = True) -> WatchedFiles:
    """The program, found as the system would find it, and every file or folder that an argument names, whole or after
    a `=`; `fixed` are the arguments without placeholders. Without `look_inside` their content is not read."""
    executable = shutil.which(program)
    if executable is None:
        raise InputError(f"no program {program}", fix="install it, or give its full path")
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
            raise InputError(f"the command can't be split into arguments: {error}", fix="fix its quotes") from None
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
            raise InputError(f"the time limit must be a positive number of seconds (got {timeout!r})")
        fixed = [argument for argument in arguments[1:] if not _FIELD.search(argument)]
        watched = watch_files(arguments[0], fixed, look_inside=not version)
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

        The values of `ids` are untrusted, and none may turn into an option.
        """
        arguments = [_fill(argument, values, ids) for argument in self.arguments]
        return run_program(arguments, Path(folder), self.timeout)


def placeholders(arguments: Sequence[str]) -> set[str]:
    """The names in braces."""
    return {name for argument in arguments for name in _FIELD.findall(argument)}


def _fill(argument: str, values: Mapping[str, Any], ids: Collection[str]) -> str:
    """The argument with its placeholders filled, all at once: a value that looks like a placeholder stays as it is."""
    first = _FIELD.match(argument)
    if first and first[1] in ids and str(values[first[1]]).startswith("-"):
        raise InputError(f"the id {values[first[1]]!r} would be taken for an option", fix="rename it")
    return _FIELD.sub(lambda match: str(values[match[1]]), argument)


def run_confined(
    function: str, path: Path, arguments: Sequence[str], what: str, *, beside: Sequence[Path] = ()
) -> dict[str, Any]:
    """What `module:function` returns when it is called with the path and the arguments: facts that JSON can hold.

    `what` is what the file should be, for the error: the function failed, died, or took too much time or memory. The
    limits follow from the sizes of the file and of those `beside` it that it needs.
    """
    size = sum(map(_size, (*(file for file in (path, *path.rglob("*")) if file.is_file()), *beside)))
    limits = (CONFINED_SECONDS + size // BYTES_PER_SECOND, CONFINED_MEMORY + 4 * min(size, 8 << 30))
    with scratch_folder() as folder:
        answer = folder / "answer.json"
        command = [sys.executable, "-P", "-c", _CHILD, function, str(answer), *map(str, limits), str(path), *arguments]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PATIENCE * limits[0],
                preexec_fn=_end_with_parent(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise InputError(f"corrupt {what}: its library did not answer", path=path) from None
        if not answer.is_file():
            how = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
            if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                raise InputError(f"this {what} takes more than {limits[0]} s to read, or too much memory", path=path)
            raise InputError(f"corrupt {what}: its library failed ({how})", path=path)
        facts: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in facts:
        raise InputError(f"corrupt {what}: {facts['error']}", path=path)
    if "refused" in facts:
        raise InputError(facts["refused"], path=path, fix=facts["fix"])
    return facts


def child(arguments: Sequence[str]) -> None:
    """The process's own work: limits first, then the function, then the answer."""
    import importlib

    function, answer, seconds, memory, *rest = arguments
    module, _, name = function.partition(":")
    called = getattr(importlib.import_module(module), name)
    _limit(int(seconds), int(memory))
    try:
        facts = called(*rest)
    except MemoryError:
        facts = {"error": "it asks for more memory than a file of its size may"}
    except VeilmeterError as error:
        facts = {"refused": error.what, "fix": error.fix}
    except _BROKEN as error:
        facts = {"error": str(error) or type(error).__name__}
    Path(answer).write_text(json.dumps(facts), encoding="utf-8")


def _limit(seconds: int, memory: int) -> None:
    """Ends this process after so many seconds of work, and refuses it more memory than that."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
