"""How long processors worked: this process with all its threads, and the programs it started and waited for."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from veilmeter.core.engine import Engine, Item, Result


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
    def paused(self) -> Iterator[None]:
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
