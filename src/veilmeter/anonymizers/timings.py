"""How long an anonymizer worked, beside what it made and never in it: a run repeated gives the same bytes, not the same
times."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.engine import Engine, Item, Result
from veilmeter.core.files import write_json


def processor_seconds() -> float:
    """Since the process began; only differences mean anything."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class ProcessorClock:
    """Adds up the processor time of some blocks, without what is paused within them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lap = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        started = processor_seconds()
        try:
            yield
        finally:
            self.seconds += processor_seconds() - started

    @contextmanager
    def pause(self) -> Iterator[None]:
        started = processor_seconds()
        try:
            yield
        finally:
            self.seconds -= processor_seconds() - started

    def lap(self) -> float:
        """The seconds since it was asked last."""
        seconds, self._lap = self.seconds - self._lap, self.seconds
        return max(0.0, seconds)


@dataclass(frozen=True, slots=True)
class _TimedTask:
    task: Callable[[Any], Any]

    def __call__(self, item: Any) -> tuple[Any, float]:
        clock = ProcessorClock()
        with clock.running():
            result = self.task(item)
        return result, clock.seconds


class TimedEngine:
    """An engine that adds up what its workers' processors spend on tasks, wherever they run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seconds = 0.0

    @property
    def workers(self) -> int:
        return self._engine.workers

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        for number, (result, seconds) in self._engine.run(_TimedTask(task), items):
            self.seconds += seconds
            yield number, result

    def close(self) -> None:
        self._engine.close()


@dataclass(frozen=True, slots=True)
class Effort:
    """Processor seconds that were spent on so many seconds of speech."""

    processor_seconds: float = 0.0
    speech_seconds: float = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.processor_seconds + other.processor_seconds, self.speech_seconds + other.speech_seconds)

    @property
    def rate(self) -> float:
        return self.processor_seconds / self.speech_seconds if self.speech_seconds > 0 else 0.0


NO_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Timings:
    """What went into an output folder: `preparing` over the whole corpus, such as listening to every speaker first, and
    `anonymizing` one recording after the other. Reading and writing audio files is not counted."""

    system: str
    version: str
    preparing: Effort = NO_EFFORT
    anonymizing: Effort = NO_EFFORT

    @property
    def real_time_factor(self) -> float | None:
        """Processor seconds for a second of speech; None where nothing was timed."""
        return self.preparing.rate + self.anonymizing.rate if self.anonymizing.speech_seconds > 0 else None

    def after(self, earlier: Timings | None) -> Timings:
        """Including the earlier runs that this one continued. Each run prepares again: the longest counts."""
        if earlier is None or (earlier.system, earlier.version) != (self.system, self.version):
            return self
        preparing = max(self.preparing, earlier.preparing, key=lambda effort: effort.rate)
        return Timings(self.system, self.version, preparing, earlier.anonymizing + self.anonymizing)


def timings_path(out: str | Path) -> Path:
    """Where the timings of an output folder lie: beside it, as the manifest does.

    >>> timings_path("data/libri-anon").as_posix()
    'data/libri-anon.timings.json'
    """
    folder = Path(os.path.abspath(out)) if Path(out).name in ("", "..") else Path(out)
    return folder.with_name(folder.name + ".timings.json")


def read_timings(out: str | Path) -> Timings | None:
    """The timings of a folder that veilmeter made; None without any, or where they can't be read: nothing rests on
    them."""
    try:
        form = json.loads(timings_path(out).read_text(encoding="utf-8"))
        efforts = (Effort(**{key: float(value) for key, value in form[name].items()}) for name in _EFFORTS)
        return Timings(str(form["system"]), str(form["version"]), *efforts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def real_time_factor(folders: Iterable[str | Path]) -> float | None:
    """The mean over the folders that veilmeter made, weighted by their speech; None if it made none of them."""
    known = [timings for timings in map(read_timings, folders) if timings is not None]
    timed = [(timings.real_time_factor, timings.anonymizing.speech_seconds) for timings in known]
    total = sum(seconds for factor, seconds in timed if factor is not None)
    return sum(factor * seconds for factor, seconds in timed if factor is not None) / total if total else None


def write_timings(out: str | Path, timings: Timings) -> None:
    write_json(timings_path(out), {**asdict(timings), "real_time_factor": timings.real_time_factor})


_EFFORTS = ("preparing", "anonymizing")
