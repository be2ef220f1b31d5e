"""Recordings as worker processes read and describe them, whatever a model does with one."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import VeilmeterError
from veilmeter.data.corpus import WHOLE, Stretch, Utterance
from veilmeter.speech.audio import REMEDIES, AudioError, RecordingStream, is_silent, read_recording

# Part of everything that is kept about recordings: raise it when reading the same file may give other samples.
AUDIO = 1

LONG_SECONDS = 600.0  # recordings beyond are not kept in memory where the model takes them by blocks

Samples = NDArray[np.float32]
Finding = TypeVar("Finding")


@dataclass(frozen=True, slots=True)
class Source:
    """One recording: what is known of its content from an earlier run is its hash."""

    utterance: str
    path: str
    known_sha256: str = ""
    stretch: Stretch = WHOLE

    @classmethod
    def of(cls, utterance: Utterance, known: Record | None = None) -> Source:
        """The source of an utterance; what is known of it counts if it was usable, and the same stretch of its file."""
        same = known is not None and known.usable and known.stretch == str(utterance.stretch)
        return cls(utterance.id, str(utterance.path), known.sha256 if known and same else "", utterance.stretch)


@dataclass(frozen=True, slots=True)
class Record:
    """What was found about one recording: either it is usable (`kind` is "" or "clipped"), or `kind` says why not."""

    utterance: str
    size: int
    mtime_ns: int
    sha256: str
    seconds: float
    kind: str = ""
    what: str = ""
    ctime_ns: int = 0  # nobody can set it: archives give many files the same size and time
    stretch: str = ""  # which part of the file, if not all of it

    @property
    def usable(self) -> bool:
        return self.kind in ("", "clipped")

    @property
    def remedy(self) -> str:
        """What to do about it, or nothing."""
        return REMEDIES.get(self.kind, "")


@dataclass(frozen=True, slots=True)
class Examined(Generic[Finding]):
    """`finding` is None if the recording is not usable, or if its content is what it was (`unchanged`)."""

    record: Record
    finding: Finding | None = None
    unchanged: bool = False


def examine(
    source: Source,
    model: Callable[[Samples], Finding],
    *,
    max_seconds: float,
    by_blocks: Callable[[Iterable[Samples], int], Finding] | None = None,
    allow: Collection[str] = (),
    failure: str = "model-failed",
) -> Examined[Finding]:
    """Read a recording and give its samples to the model; whatever goes wrong is noted, and nothing is raised.

    Kinds in `allow` (of `short`, `silent`) are noted without an error; the model does not hear silence. A model that
    takes a recording `by_blocks`, with its length, gets long ones like that: they are read twice and never kept.
    """
    blank = Record(source.utterance, 0, 0, "", 0.0, stretch=str(source.stretch))
    try:
        try:
            # Before the content is read: a change during the reading makes the next run look again.
            status = os.stat(source.path)
            blank = replace(blank, size=status.st_size, mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns)
        except (OSError, ValueError):
            pass  # read_recording says it in words
        recording = read_recording(
            source.path,
            stretch=source.stretch,
            max_seconds=max_seconds,
            allow=allow,
            keep_seconds=math.inf if by_blocks is None else LONG_SECONDS,
        )
        blank = replace(blank, sha256=_sha256(source.path))
        record = replace(blank, seconds=recording.seconds)
        if recording.is_clipped:
            what = f"{100 * recording.clipped:.1f} % of its samples are clipped"
            record = replace(record, kind="clipped", what=what)
        if "silent" in allow and len(recording.samples) and is_silent(recording.samples):
            return Examined(replace(record, kind="silent", what="it holds nothing but silence"))
        if blank.sha256 == source.known_sha256:
            return Examined(record, unchanged=True)
        if by_blocks is not None and len(recording.samples) < recording.length:
            stream = RecordingStream(source.path, stretch=source.stretch, max_seconds=max_seconds, allow=allow)
            return Examined(record, by_blocks(stream, recording.length))
        return Examined(record, model(recording.samples))
    except AudioError as error:
        return Examined(replace(blank, kind=error.kind, what=str(error.what)))
    except Exception as error:  # a model's own trouble with one recording must not end the run
        text = error.what if isinstance(error, VeilmeterError) else f"{type(error).__name__}: {error}"
        return Examined(replace(blank, kind=failure, what=text[:500]))


def still_holds(record: Record, utterance: Utterance, max_seconds: float) -> bool:
    """Whether an earlier run's record is what this run would find without reading the file again: it has the size and
    times it had, the same part is meant, and it was usable and is within the limit. What was not usable is looked at
    again: a limit may have been raised, a model's trouble may be over."""
    if not (record.usable or record.kind == "silent") or record.seconds > max_seconds:
        return False
    try:
        status = utterance.path.stat()
    except (OSError, ValueError):
        return False
    now = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return now == (record.size, record.mtime_ns, record.ctime_ns) and record.stretch == str(utterance.stretch)


def _sha256(path: str) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
