"""Progress of long work on standard error: a bar with speed and time left on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

LINE_SECONDS = 10.0


@contextmanager
def shown(title: str, *, unit: str = "utterances", quiet: bool = False) -> Iterator[Progress]:
    """A `Progress` that shows itself while the block runs. The first call may start above 0: what an earlier run did
    does not count for the speed."""
    if quiet:
        yield lambda done, total: None
    elif sys.stderr.isatty():
        with _bar(title, unit) as progress:
            yield progress
    else:
        yield _Lines(title, unit)


def stages(*, quiet: bool = False) -> Callable[[str], None]:
    """What says a line a stage on standard error, with the time since now."""
    from veilmeter.core.text import clean

    start = time.monotonic()

    def say(text: str) -> None:
        if not quiet:
            seconds = int(time.monotonic() - start)
            print(f"[{seconds // 60}:{seconds % 60:02}] {clean(text)}", file=sys.stderr, flush=True)

    return say


class _Lines:
    """For log files: one line at the start, one every ten seconds, one at the end."""

    def __init__(self, title: str, unit: str) -> None:
        self._title, self._unit = title, unit
        self._started: tuple[float, int] | None = None
        self._said = -LINE_SECONDS
        self._finished = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._started is None:
            self._started = now, done
        if self._finished or (now - self._said < LINE_SECONDS and done < total):
            return
        self._said, self._finished = now, done >= total
        print(
            f"{self._title}: {done} of {total} {self._unit}{self._pace(now, done, total)}", file=sys.stderr, flush=True
        )

    def _pace(self, now: float, done: int, total: int) -> str:
        assert self._started is not None
        start, before = self._started
        if done == before or now <= start:
            return ""
        pace = (done - before) / (now - start)
        left = f", {duration((total - done) / pace)} left" if done < total else f" in {duration(now - start)}"
        return f", {pace:.3g}/s{left}"


@contextmanager
def _bar(title: str, unit: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit),
        TextColumn("{task.fields[pace]}"), TimeRemainingColumn(compact=True),
    )  # fmt: skip
    task: TaskID | None = None
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:

        def progress(done: int, total: int) -> None:
            nonlocal task
            if task is None:
                task = bar.add_task(title, total=total, completed=done, pace="")
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=total, pace=f"{speed:.3g}/s" if speed else "")

        yield progress


def duration(seconds: float) -> str:
    """As a person says it.

    >>> duration(42.4), duration(125), duration(7300)
    ('42 s', '2 min 5 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
