"""The key of a piece of work, derived from everything it is given, so that no second list can fall behind.

Arrays and files count by their content, dataclasses by their fields, functions by their name; what is not veilmeter's
own counts by its source too. Where something can't be told apart by its content, that is an error: a wrong key is a
wrong number.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from veilmeter._version import __version__
from veilmeter.core.files import sha256
from veilmeter.core.user_code import foreign_version

FORM = 6  # grows when what is kept under a key changes its form


@runtime_checkable
class HasKey(Protocol):
    """Something that says what its results depend on, such as a loaded model: its name and version."""

    def key(self) -> Any: ...


def key_of(function: Callable[..., Any], *arguments: Any) -> str:
    """A name for the work `function(*arguments)`.

    >>> key_of(len, [1, 2]) == key_of(len, [1, 2]), key_of(len, [1, 2]) == key_of(len, [2, 1])
    (True, False)
    """
    digest = hashlib.sha256()
    _feed(digest, (FORM, __version__, function, arguments))
    return digest.hexdigest()[:32]


def _feed(digest: Any, value: Any) -> None:
    """Every kind has its own mark and a length, so that no two values run into each other."""

    def put(mark: bytes, content: bytes = b"") -> None:
        digest.update(mark + struct.pack("<q", len(content)) + content)

    if value is None or isinstance(value, bool | int):
        put(b"i", repr(value).encode())
    elif isinstance(value, float):
        put(b"f", struct.pack("<d", value))
    elif isinstance(value, enum.Enum):
        put(b"e", repr(value).encode())
    elif isinstance(value, str):
        put(b"s", value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        put(b"b", value)
    elif isinstance(value, np.generic):
        _feed(digest, value.item())
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            put(b"o", repr(value.shape).encode())
            _feed(digest, value.ravel().tolist())
        else:
            array = np.ascontiguousarray(value)
            put(b"a", f"{array.dtype.str}{array.shape}".encode())
            digest.update(array.data if array.size else b"")
    elif isinstance(value, Path):
        _feed(digest, file_digest(value))
    elif isinstance(value, HasKey) and not isinstance(value, type):
        put(b"k", _code(type(value)))
        _feed(digest, value.key())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        put(b"d", _code(type(value)))
        for field in dataclasses.fields(value):
            put(b"n", field.name.encode())
            _feed(digest, getattr(value, field.name))
    elif isinstance(value, Mapping):
        put(b"m", str(len(value)).encode())
        for key in sorted(value, key=repr):
            _feed(digest, key)
            _feed(digest, value[key])
    elif isinstance(value, set | frozenset):
        put(b"u", str(len(value)).encode())
        for item in sorted(value, key=repr):
            _feed(digest, item)
    elif isinstance(value, tuple | list):
        put(b"l", str(len(value)).encode())
        if value and all(type(item) is str for item in value):  # thousands of ids: their lengths, and all at once
            texts = [item.encode("utf-8", "surrogatepass") for item in value]
            put(b"t", struct.pack(f"<{len(texts)}q", *map(len, texts)))
            put(b"s", b"".join(texts))
        else:
            for item in value:
                _feed(digest, item)
    elif callable(value) and hasattr(value, "__qualname__"):
        put(b"c", _code(value))
    else:
        raise TypeError(f"a {type(value).__name__} has no key: say what it depends on with a method `key`")


def _code(thing: Any) -> bytes:
    """A function or a class: its name, and the version of its source where that is not ours."""
    return f"{thing.__module__}.{thing.__qualname__} {foreign_version(thing)}".encode()


def file_digest(path: Path) -> str:
    """The content of a file, or of all files of a folder with their names; a missing one is marked as such."""
    if path.is_dir():
        digest = hashlib.sha256()
        for file in sorted(path.rglob("*")):
            if file.is_file():
                _feed(digest, (file.relative_to(path).as_posix(), sha256(file)))
        return digest.hexdigest()
    return sha256(path) if path.is_file() else f"missing: {path}"
