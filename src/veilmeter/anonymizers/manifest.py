"""What was done to each utterance, as JSON lines: to repeat a run, to audit it, to go on after a stop.

The manifest links every anonymized recording to its source and its parameters. Whoever has it can undo much of the
protection, so it lies beside the anonymized corpus and not in it, readable by its owner only.

While a run is under way a journal grows beside it, a line an utterance. When all is done both become one sorted
manifest, written whole; so a run that was killed ends, after it was started again, with the same bytes as one that
was not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import to_json, write_text


@dataclass(frozen=True, slots=True)
class Entry:
    """One utterance: paths are relative to the corpus and to the output folder.

    `output` and its hash are None if it could not be done; then `problems` says why. `gain` is below 1 where the
    anonymized samples were beyond full scale and were scaled to fit. `draw` says what had a draw of its own (`Draw`),
    `part` which part of its file the utterance is, if not all of it; `rate` the sampling rate that was asked for, if it
    is not to be the source's.
    """

    utterance: str
    speaker: str
    source: str
    source_sha256: str | None
    output: str | None
    output_sha256: str | None
    system: str
    version: str
    parameters: Mapping[str, Any]
    pseudo_speaker: str | None = None
    seconds: float | None = None
    gain: float = 1.0
    problems: tuple[Mapping[str, str], ...] = field(default=())
    draw: str = "unknown"
    part: str = ""
    rate: int | None = None

    def same_treatment(self, other: Entry) -> bool:
        """Whether both say that the same is done to the same utterance and put into the same place."""
        return self.version == other.version and self.same_settings(other)

    def same_settings(self, other: Entry) -> bool:
        """The same, whatever version of the system does it."""
        names = ("utterance", "system", "parameters", "output", "part", "rate")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, form: Any) -> Entry:
        optional = {"draw", "part", "rate"}  # manifests of before have none
        if not isinstance(form, dict) or set(form) | optional != set(cls.__slots__):
            raise ValueError("not an entry")
        if not isinstance(form["parameters"], dict):
            raise ValueError("its parameters are not an object")
        for name in ("utterance", "speaker", "source", "system", "version"):
            if not isinstance(form[name], str):
                raise ValueError(f"{name} is not a text")
        for name in ("source_sha256", "output", "output_sha256"):
            if not isinstance(form[name], str | None):
                raise ValueError(f"{name} is not a text")
        return cls(**{**form, "problems": tuple(form["problems"])})

    def line(self) -> str:
        return to_json(self, indent=None) + "\n"


def read_manifest(path: str | Path) -> dict[str, Entry]:
    """The entries of a finished run by utterance."""
    return dict(_entries(Path(path), whole=True))


def write_manifest(path: Path, entries: Iterable[Entry]) -> None:
    write_text(path, "".join(entry.line() for entry in sorted(entries, key=lambda entry: entry.utterance)))


class Journal:
    """The entries of a run under way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def read(self) -> dict[str, Entry]:
        return dict(_entries(self.path, whole=False)) if self.path.exists() else {}

    def open(self, entries: Iterable[Entry]) -> None:
        """Begin with what is known, without the broken line that a killed run may have left."""
        write_text(self.path, "".join(entry.line() for entry in entries))
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def add(self, entry: Entry) -> None:
        assert self._handle is not None
        try:
            _write_all(self._handle, entry.line().encode())
        except OSError as error:
            raise VeilmeterError(
                error.strerror or str(error),
                path=self.path,
                fix="mend it and run the same command again; what was done is kept",
            ) from None

    def close(self, *, remove: bool) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if remove:
            self.path.unlink(missing_ok=True)


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _entries(path: Path, *, whole: bool) -> Iterator[tuple[str, Entry]]:
    try:
        with open(path, encoding="utf-8") as handle:
            for number, line in enumerate(handle, start=1):
                if not line.endswith("\n") and not whole:
                    return  # the end of a killed run
                try:
                    entry = Entry.from_json(json.loads(line))
                except (ValueError, TypeError, KeyError, RecursionError):
                    raise InputError(
                        "this is no line of a manifest",
                        path=path,
                        line=number,
                        fix="restore the file, or remove it and the output folder",
                    ) from None
                yield entry.utterance, entry
    except UnicodeDecodeError:
        raise InputError("this is no manifest: not UTF-8 text", path=path) from None
    except OSError as error:
        raise InputError(f"the manifest can't be read: {error.strerror}", path=path) from None
