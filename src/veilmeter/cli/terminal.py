"""The terminal: streams that never fail on a character or a closed pipe, progress, and exit codes."""

from __future__ import annotations

import codecs
import errno
import os
import select
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

from veilmeter.core.text import duration, rough_duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from veilmeter.assessment.stages import Standing

_SPELLED = {
    "→": "->", "←": "<-", "↔": "<->", "↑": "^", "↓": "v", "–": "-", "—": "-", "−": "-", "·": ".", "×": "x", "…": "...",
    "≤": "<=", "≥": ">=", "≈": "~", "±": "+-", "“": '"', "”": '"', "‘": "'", "’": "'", "•": "*",
    "π": "pi", "α": "alpha", "█": "#", "░": ".", "✓": "ok", "✗": "x",
}  # fmt: skip
_NAME = "veilmeter-spell"


def to_ascii(text: str) -> str:
    """The text with nothing but ASCII in it.

    >>> to_ascii("Noé → 5 ≥ 3")
    'Noe -> 5 >= 3'
    """
    return "".join(_one(character) for character in text)


def _one(character: str) -> str:
    if character.isascii():
        return character
    if character in _SPELLED:
        return _SPELLED[character]
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "?"


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return to_ascii(error.object[error.start : error.end]), error.end


def prepare_streams() -> None:
    """A terminal that knows only ASCII gets ASCII; it must not end a run that has done its work."""
    codecs.register_error(_NAME, _spell)
    # Python has no stream at all where a shell closed it (`>&-`); nobody wants to read it.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_NAME)


def output_is_closed() -> bool:
    """Whether nobody reads standard output any more. What was still to be written is then dropped, so that Python does
    not complain about it when it ends."""
    try:
        number = sys.stdout.fileno()
        poll = select.poll()
        poll.register(number, 0)
        closed = any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):  # not a real stream, or a system without poll
        return False
    if closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return closed


def console() -> Console:
    """Where tables go. Rich's own way with a closed pipe is to end with 1 and to hide that it was closed."""
    from rich.console import Console

    class OutputConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return OutputConsole(highlight=False)


Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

LINE_SECONDS, ASSESSMENT_SECONDS = 10.0, 30.0  # between two lines of a log


@contextmanager
def show_progress(title: str, *, unit: str = "utterances", quiet: bool = False) -> Iterator[Progress]:
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


class AssessmentDisplay:
    """An assessment on standard error: a line for what it says and, below, one bar for the whole with the time left,
    and how far its stage is. Without a terminal, a line tells that from time to time instead of the bar."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._print = stages(quiet=quiet)
        self._live: Live | None = None
        self._quiet = quiet
        self._standing: Standing | None = None
        self._said = time.monotonic()

    def __enter__(self) -> AssessmentDisplay:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            # Standard output stays as it is: results are printed there, maybe into a file.
            self._live = Live(
                console=Console(stderr=True), get_renderable=self._render, transient=True, redirect_stdout=False,
                redirect_stderr=True,
            )  # fmt: skip
            self._live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._live is not None:
            self._live.stop()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Without the bar while results are printed."""
        if self._live is None:
            yield
            return
        self._live.stop()
        yield
        self._live.start()

    def say(self, text: str) -> None:
        """Print a line."""
        self._said = time.monotonic()
        self._print(text)

    def show(self, standing: Standing) -> None:
        """Take note of how far the assessment is."""
        self._standing = standing
        if self._live is None and standing.total and standing.told - self._said >= ASSESSMENT_SECONDS:
            self.say("; ".join(filter(None, (_time_left(standing, standing.told), _stage_line(standing)))))

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        standing = self._standing
        if standing is None:
            return Text("")
        now, whole = time.monotonic(), Table.grid(padding=(0, 1, 0, 0))
        if standing.left is not None:
            bar = ProgressBar(total=1.0, completed=standing.share_at(now), width=min(40, self._live_width() // 2))
            whole.add_row(bar, Text(_time_left(standing, now), no_wrap=True))
        return Group(whole, Text(f"  {_stage_line(standing)}", no_wrap=True, overflow="ellipsis", style="dim"))

    def _live_width(self) -> int:
        return 80 if self._live is None else self._live.console.width


def _time_left(standing: Standing, now: float) -> str:
    if standing.left is None:
        return ""
    return f"{100 * standing.share_at(now):.0f} %, about {rough_duration(standing.remaining_at(now))} left"


def _stage_line(standing: Standing) -> str:
    from veilmeter.core.text import clean

    counted = f", {standing.done} of {standing.total}" if standing.total else ""
    return clean(f"{standing.stage}{counted}")


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


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    LIMIT_BROKEN = 1
    WRONG_INPUT = 2
    LEFT_OUT = 3
    OUR_MISTAKE = 70
    STOPPED = 130
    PIPE_CLOSED = 141


MEANINGS = {
    Exit.DONE: "success; for `gate`: every limit holds",
    Exit.LIMIT_BROKEN: "`gate`: a limit is broken, a figure is significantly worse, or a trust check failed",
    Exit.WRONG_INPUT: "invalid input: one line names the file or option, the problem and the fix",
    Exit.LEFT_OUT: "success, but some recordings could not be used; they are listed",
    Exit.OUR_MISTAKE: "a bug in veilmeter: please report it",
    Exit.STOPPED: "stopped by Ctrl-C or SIGTERM; the same command continues from there",
    Exit.PIPE_CLOSED: "the reader of the output stopped reading, as `head` does",
}
