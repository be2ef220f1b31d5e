"""Files in and out. A user's file is read only if it is a regular one of bounded size (`open_input`); ours appear whole
or not at all, readable by their owner only: embeddings and scores are biometric data."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

from veilmeter.core.errors import InputError, MissingInput, VeilmeterError

PRIVATE_FILE = 0o600
# All that Python's zip reader and NumPy raise on archives that are damaged, encrypted or made up.
BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RuntimeError, ValueError, KeyError,
                  TypeError, AttributeError, IndexError, SyntaxError, TokenError, MemoryError,
                  OverflowError)  # fmt: skip
PRIVATE_FOLDER = 0o700
INDENTED = 4  # levels of a JSON file that are laid out on lines of their own
LARGEST_INPUT = 1 << 28  # bytes of a text or JSON file that is read as a whole
MOST_VALUES = 1 << 23  # of a JSON file: an empty list has two bytes, and 64 in memory
LARGEST_LIST = 1 << 29  # bytes of a list whose lines are all kept; of scores only numbers are kept, which have no limit
# Unpacked bytes of a gzip file, per packed byte and beyond: lists shrink to a thirtieth, bombs to a thousandth.
_MOST_UNPACKED, _UNPACKED_FREELY = 100, 1 << 22
_IN_USE = ".veilmeter-in-use"  # the lock in a temporary folder
_COMMANDS = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def open_input(path: str | Path, *, most: int | None = None, unpack: bool = False) -> IO[bytes]:
    """A user's file for reading: a regular one, of at most `most` bytes. Opening a pipe would wait for a writer, and a
    device never ends. With `unpack` a gzip file is read as what it holds, unless that is absurdly much.

    >>> open_input("/dev/zero")
    Traceback (most recent call last):
    ...
    veilmeter.core.errors.InputError: /dev/zero: not a regular file (copy the content to a file)
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise unreadable_input(error, path) from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        if stat.S_ISDIR(status.st_mode):
            raise InputError("this is a folder, not a file", path=path)
        raise InputError("not a regular file", path=path, fix="copy the content to a file")
    if most is not None and status.st_size > most:
        os.close(handle)
        raise InputError(f"the file is too large: {status.st_size:,} bytes, and at most {most:,} are read", path=path)
    opened = os.fdopen(handle, "rb")
    try:
        is_packed = opened.peek(2)[:2] == b"\x1f\x8b"
    except OSError as error:  # what the system shows as a file may not be one, such as /proc/self/mem
        opened.close()
        raise unreadable_input(error, path) from None
    if unpack and is_packed:
        return io.BufferedReader(_Unpacked(opened, path), 1 << 18)
    return opened


def unreadable_input(error: OSError | ValueError, path: str | Path) -> InputError:
    """Why the system can't open a user's file, in plain words."""
    if isinstance(error, FileNotFoundError):
        what = "this link leads nowhere" if os.path.islink(path) else "there is no such file"
        return MissingInput(what, path=path)
    if isinstance(error, ValueError):
        return InputError("the name holds a zero byte", path=str(path).replace("\0", "\\0"))
    if error.errno == errno.ELOOP:
        return InputError("this link leads back to itself", path=path)
    if error.errno == errno.ENXIO:  # a socket
        return InputError("not a regular file", path=path)
    return InputError(f"the file can't be read: {error.strerror}", path=path)


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, with an error where it grows as only a bomb does."""

    def __init__(self, packed: IO[bytes], path: str | Path) -> None:
        self._packed, self._path, self._count = packed, path, 0
        self._content = gzip.GzipFile(fileobj=packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._content.readinto(buffer)
        self._count += count
        if self._count > _UNPACKED_FREELY + _MOST_UNPACKED * self._packed.tell():
            raise InputError(f"unpacked it is more than {_MOST_UNPACKED} times as large", path=self._path)
        return count

    def close(self) -> None:
        self._packed.close()
        super().close()


def check_input(path: str | Path, *, most: int | None = None) -> None:
    """The checks of `open_input`, for a file that a library opens by its name."""
    open_input(path, most=most).close()


def is_present(path: str | Path) -> bool:
    """Whether an optional file is there. A pipe, a device or a broken link in its place is an error: what the file
    should have said would be missing without a word."""
    if os.path.isfile(path) or os.path.isdir(path) or not os.path.lexists(path):
        return os.path.isfile(path)
    check_input(path)
    return True


def read_input(path: str | Path, *, most: int = LARGEST_INPUT) -> bytes:
    """All bytes of an input file."""
    with open_input(path, most=most) as handle:
        try:
            data = handle.read(most + 1)
        except OSError as error:
            raise unreadable_input(error, path) from None
    if len(data) > most:  # what the system shows as a file may have no size
        raise InputError(f"the file is too large: more than {most:,} bytes", path=path)
    return data


def read_input_text(path: str | Path, *, most: int = LARGEST_INPUT) -> str:
    try:
        return read_input(path, most=most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text", path=path, fix="convert it, e.g. with iconv") from None


def read_input_json(path: str | Path, *, most: int = LARGEST_INPUT) -> Any:
    """The value in a user's JSON file."""
    text = read_input_text(path, most=most)
    if (count := sum(map(text.count, ",[{"))) > MOST_VALUES:
        raise InputError(f"the file holds too many values: {count:,}, and at most {MOST_VALUES:,} are read", path=path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"invalid JSON: {syntax_problem(error)}", path=path) from None


def syntax_problem(error: ValueError | RecursionError) -> str:
    """Why a text can't be parsed, without the advice that Python gives to programmers."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number has thousands of digits" if "set_int_max_str_digits" in str(error) else str(error)


def real_path(path: str | Path) -> Path:
    """The path without links; one that leads back to itself stays as it is, where `Path.resolve` would fail."""
    return Path(os.path.realpath(path))


def make_folder(path: str | Path) -> Path:
    """The folder, made if missing; it and the folders above it have mode 0700 where we made them."""
    folder = Path(path)
    try:
        missing = [folder]
        while not missing[-1].parent.exists():  # `mkdir(parents=True)` would leave these to the umask
            missing.append(missing[-1].parent)
        for place in reversed(missing):
            place.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    except OSError as error:
        raise as_veilmeter_error(error, folder) from None
    return folder


def cache_folder() -> Path:
    """`VEILMETER_CACHE`, else `veilmeter` in the user's cache folder. Not made yet."""
    if chosen := os.environ.get("VEILMETER_CACHE"):
        return Path(chosen).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "veilmeter"
    try:
        return Path.home() / ".cache" / "veilmeter"
    except RuntimeError:  # no HOME, and a user whom the system does not know, as in some containers
        raise VeilmeterError("no home folder for the cache", fix="set VEILMETER_CACHE to a folder") from None


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to; when the block ends well it is synced and renamed to `path`, else it is removed.

    >>> import tempfile; folder = tempfile.mkdtemp()
    >>> with whole_file(folder + "/a.txt") as temporary:
    ...     _ = temporary.write_text("hello")
    >>> Path(folder, "a.txt").read_text()
    'hello'
    """
    target = Path(path)
    if _is_stream(target):
        try:
            with _with_reader(target):
                yield target
        except OSError as error:
            raise as_veilmeter_error(error, target) from None
        return
    make_folder(target.parent)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:80]}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise as_veilmeter_error(error, target) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.chmod(temporary, PRIVATE_FILE)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise as_veilmeter_error(error, target) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_stream(path: Path) -> bool:
    """Whether it is a pipe, a device or /dev/stdout: written to, never replaced."""
    if str(path).startswith(("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _with_reader(stream: Path) -> Iterator[None]:
    """Holds a pipe open, so that who reads it waits for what is written; where nobody does, writing would wait."""
    if not stream.is_fifo():
        yield
        return
    try:
        handle = os.open(stream, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        what = "no program reads this pipe"
        raise VeilmeterError(what, path=stream, fix="start the program that reads it first, or name a file") from None
    try:
        yield
    finally:
        os.close(handle)


@contextmanager
def only_one(path: Path, where: str | Path | None = None, *, wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock file, or say that another run does. The system frees it however the run ends.

    With `wait`, that is called if another run holds it, and then this one waits until it is free.
    """
    try:
        handle = _lock(path, wait)
    except BlockingIOError:
        raise VeilmeterError(
            "another run is writing to this output folder",
            path=where or path,
            fix="wait until it has ended, stop it, or choose another folder",
        ) from None
    except OSError as error:
        raise as_veilmeter_error(error, path) from None
    try:
        yield
    finally:
        try:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        finally:  # also when Ctrl-C comes in between
            os.close(handle)


def _lock(path: Path, wait: Callable[[], None] | None = None) -> int:
    """An open, locked file. One that was removed between opening and locking protects nobody: then once more."""
    announced = False
    while True:
        make_folder(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
        try:
            try:
                import fcntl
            except ImportError:  # no such locks on this system
                return handle
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if wait is None:
                    raise
                if not announced:
                    wait()
                    announced = True
                fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextmanager
def scratch_folder(place: str | Path | None = None, *, prefix: str = "veilmeter-") -> Iterator[Path]:
    """A temporary folder that only its owner can read, in TMPDIR or `place`. The system frees its lock however this
    process ends: what a killed one left behind is removed by the next that makes a folder there."""
    try:
        where = Path(place or tempfile.gettempdir())
        _remove_abandoned(where, prefix)
        unlocked = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=where))
        handle = _lock(unlocked / _IN_USE, None)
        folder = unlocked.rename(where / unlocked.name[1:])
    except OSError as error:
        raise as_veilmeter_error(error, place or "TMPDIR") from None
    try:
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _remove_abandoned(where: Path, prefix: str) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    for mark in where.glob(f"{prefix}*/{_IN_USE}"):
        with suppress(OSError):  # somebody else's, in use, or removed just now
            handle = os.open(mark, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.parent, ignore_errors=True)
            finally:
                os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Half-written files of a process that was killed while it wrote; only for who holds the folder's lock."""
    for left in folder.glob(".*.part"):
        left.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, data: bytes) -> None:
    with whole_file(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: str | Path, value: Any) -> None:
    write_text(path, to_json(value) + "\n")


def short_digest(*texts: str) -> str:
    """Eight characters that tell these texts from others, for people to compare.

    >>> short_digest("a", "b") == short_digest("ab"), len(short_digest("a"))
    (False, 8)
    """
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def to_json(value: Any, *, indent: int | None = 1) -> str:
    """JSON that any parser reads: numpy numbers become numbers, NaN and infinities become null or a word.

    Characters that command a terminal or turn the direction of writing are escaped: ids are untrusted.

    >>> to_json("Zoë\\x9b31m")
    '"Zoë\\\\u009b31m"'
    """
    text = _laid_out(value, "" if indent is None else "\n", indent or 0, INDENTED if indent else 0)
    if text.isascii():
        return text
    text = text.encode("utf-8", "replace").decode()  # names of files may hold bytes that are not UTF-8
    return _COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _laid_out(value: Any, line: str, indent: int, levels: int) -> str:
    """The outer levels on separate lines, deeper ones on one line: the encoder in C indents nothing."""
    if type(value) not in (dict, list):
        value = plain(value)
    if not levels or not value or not isinstance(value, dict | list):
        return _on_one_line(value)
    inner = line + " " * indent
    if isinstance(value, dict):
        items = [
            f"{json.dumps(str(key), ensure_ascii=False)}: {_laid_out(item, inner, indent, levels - 1)}"
            for key, item in value.items()
        ]
    else:
        items = [_laid_out(item, inner, indent, levels - 1) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}{inner}{f',{inner}'.join(items)}{line}{closing}"


def _on_one_line(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):  # it holds something that JSON has no word for
        return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """`value` as dicts, lists, strings and numbers.

    >>> import numpy as np
    >>> plain({"a": np.float32(0.5), "b": float("nan"), "c": (1, np.int64(2)), "d": float("inf")})
    {'a': 0.5, 'b': None, 'c': [1, 2], 'd': 'inf'}
    """
    kind = type(value)  # nearly everything is one of these, and asking for an abstract class takes long
    if kind is dict:
        return {str(key): plain(item) for key, item in value.items()}
    if kind is float:
        return value if math.isfinite(value) else None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if kind is list or kind is tuple:
        if {*map(type, value)} == {float} and all(map(math.isfinite, value)):  # a long curve, most of the time
            return list(value)
        return [plain(item) for item in value]
    if isinstance(value, str):  # names of files may hold bytes that are not UTF-8
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        return plain(float(value))
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if isinstance(value, Mapping):
        return plain(dict(value))
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Sequence | set | frozenset):
        return plain(list(value))
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, or of all files under a folder with their relative names."""
    root = Path(path)
    if root.is_file():
        with open(root, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    digest = hashlib.sha256()
    for file in sorted(p for p in root.rglob("*") if p.is_file()):
        digest.update(file.relative_to(root).as_posix().encode("utf-8", "surrogateescape") + b"\0")
        digest.update(sha256(file).encode())
    return digest.hexdigest()


def as_veilmeter_error(error: OSError, path: str | Path) -> VeilmeterError:
    """The system's error in plain words."""
    if error.errno == errno.ENOSPC:
        return VeilmeterError(
            "the disk is full", path=path, fix="free some space and run the same command again; what was done is kept"
        )
    if error.errno in (errno.ENAMETOOLONG, errno.EILSEQ):  # this file can't be written, others can
        what = "this file system can't hold such a name" + (", it is too long" * (error.errno == errno.ENAMETOOLONG))
        return InputError(what, path=path, fix="shorten or rename it")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        what = "this link leads nowhere" if os.path.islink(path) else "this is a file, not a folder"
        return VeilmeterError(what, path=path, fix="choose another output folder")
    if error.errno == errno.EROFS:
        return VeilmeterError("this file system is read-only", path=path, fix="choose another folder")
    if error.errno in (errno.EACCES, errno.EPERM):  # of reading or writing
        return VeilmeterError("permission denied", path=path, fix="change the permissions, or choose another folder")
    return VeilmeterError(error.strerror or str(error), path=path)


class Journal:
    """Open it with what is known, add lines as they come, close it at the end. A kill leaves at most one broken line,
    at the end of the file; `whole_lines` leaves it out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def open(self, lines: Iterable[str]) -> None:
        """Write the file again with these lines, and keep it open for more."""
        write_text(self.path, "".join(lines))
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def add(self, lines: Iterable[str]) -> None:
        """Hand the lines to the system at once: they survive the end of this process, whatever ends it."""
        assert self._handle is not None
        data = "".join(lines).encode()
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            raise as_veilmeter_error(error, self.path) from None

    def close(self, *, remove: bool = False) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if remove:
            self.path.unlink(missing_ok=True)


def whole_lines(path: Path) -> Iterator[str]:
    """The lines of a journal without one that was cut off by a kill."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield line
