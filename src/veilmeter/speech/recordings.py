"""Tasks mapped over the recordings of a corpus: one way for embedding, transcribing, rating and anonymizing.

A task gets a few items at a time, in any process, reads their recordings, and returns one result per item. `map_corpus`
cuts the items into chunks, runs them on the engine, hands over results as they come so that they can be stored, and
reports progress. `to_do` lists the recordings that an earlier run left to do; `problem_of` and `refusal` describe those
that can't be used.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Progress
from veilmeter.core.errors import InputError, Problem, Stopped, VeilmeterError, describe_error, refuse
from veilmeter.data.corpus import WHOLE, Corpus, Stretch, Utterance
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
    """Facts about one recording: either it is usable (`kind` is "" or "clipped"), or `kind` says why not."""

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
    except (KeyboardInterrupt, Stopped):
        raise
    except BaseException as error:  # a model's own trouble with one recording must not end the run
        text = error.what if isinstance(error, VeilmeterError) else describe_error(error)
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


LARGEST_CHUNK = 8
CHUNKS_PER_WORKER = 16  # at least, so that no process waits long for another at the end

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_corpus(
    task: Callable[[tuple[Item, ...]], Sequence[Result]],
    items: Sequence[Item],
    store: Callable[[Sequence[Result]], None],
    *,
    engine: Engine,
    path: Callable[[Item], Path],
    part: Callable[[Item], int] = lambda item: 0,
    chunk: int | None = None,
    total: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Run `task` on all items and give each chunk's results to `store`, in the order in which they are finished.

    Items go out part by part, so that parts are completed early, and within a part the largest files first: file size
    stands for duration. `chunk` fixes the number of items per call; `total` counts items that were done before, too.
    """
    size = chunk or max(1, min(LARGEST_CHUNK, len(items) // (CHUNKS_PER_WORKER * engine.workers)))
    queue = sorted(items, key=lambda item: (part(item), -_file_size(path(item))))  # stable: the corpus's order
    chunks = [tuple(queue[start : start + size]) for start in range(0, len(queue), size)]
    total = len(items) if total is None else total
    done = total - len(items)
    report = progress or (lambda done, total: None)
    report(done, total)
    for _, results in engine.run(task, chunks):
        store(results)
        done += len(results)
        report(done, total)


def to_do(corpus: Corpus, known: Mapping[str, Record], max_seconds: float) -> list[Source]:
    """The recordings that an earlier run did not do, or whose files have changed since."""
    return [
        Source.of(utterance, known.get(utterance.id))
        for utterance in corpus
        if utterance.id not in known or not still_holds(known[utterance.id], utterance, max_seconds)
    ]


def refuse_unusable(corpus: Corpus, *, strict: bool) -> None:
    """An empty corpus can't be mapped over; in strict mode, neither can one with broken entries."""
    if not len(corpus):
        raise InputError("no utterances in this corpus", path=corpus.root)
    if strict:
        refuse(corpus.problems)


def problem_of(corpus: Corpus, record: Record, *, fatal: bool) -> Problem:
    """A recording's problem, as it is listed."""
    path = str(corpus.by_id[record.utterance].path)
    return Problem(record.kind, record.what, path, fix=record.remedy, fatal=fatal)


def refusal(problem: Problem) -> InputError:
    """The error that ends a strict run."""
    what = f"{problem.what} [{problem.kind}]"
    fix = problem.fix or "fix it, or run without --strict to leave it out"
    return InputError(what, path=problem.path, line=problem.line, fix=fix)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0
