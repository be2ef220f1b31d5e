"""What was done to each utterance, as JSON lines: to repeat a run, to audit it, to go on after a stop.

The manifest links every anonymized recording to its source and its parameters. Anyone who has it can undo much of the
protection, so it is written beside the anonymized corpus and not into it, readable by its owner only.

While a run is under way a journal grows beside it, one line per utterance. At the end both become one sorted manifest,
so a run that was killed and started again ends with the same bytes as one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.files import to_json, write_text
from veilmeter.data.corpus import Utterance


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
        if not isinstance(form, dict) or set(form) != set(cls.__slots__):
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


@dataclass(frozen=True, slots=True)
class Item:
    """An utterance to do: the plan, what an earlier run did to it, and why the system refuses it if it does."""

    utterance: Utterance
    planned: Entry
    earlier: Entry | None
    refusal: str = ""


def read_manifest(path: str | Path) -> dict[str, Entry]:
    """The entries of a finished run by utterance."""
    return dict(_entries(Path(path), whole=True))


def read_journal(path: Path) -> dict[str, Entry]:
    """The entries of a run that was stopped; none without a journal."""
    return dict(_entries(path, whole=False)) if path.exists() else {}


def write_manifest(path: Path, entries: Iterable[Entry]) -> None:
    write_text(path, "".join(entry.line() for entry in sorted(entries, key=lambda entry: entry.utterance)))


def _entries(path: Path, *, whole: bool) -> Iterator[tuple[str, Entry]]:
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith("\n") and not whole:
                    return  # a run was killed while it wrote this line
                try:
                    entry = Entry.from_json(json.loads(line))
                except (ValueError, TypeError, KeyError, RecursionError):
                    raise InputError(
                        "not a line of a manifest",
                        path=path,
                        line=number,
                        fix="restore the file, or remove it and the output folder",
                    ) from None
                yield entry.utterance, entry
    except UnicodeDecodeError:
        raise InputError("not a manifest: it is not UTF-8 text", path=path) from None
    except OSError as error:
        raise InputError(f"the manifest can't be read: {error.strerror}", path=path) from None
