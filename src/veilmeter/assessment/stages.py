"""The stages of an assessment: what it is doing, how long each stage took, and how long the rest will take.

The time left follows from the work that is expected, in seconds of an ordinary core, and from the speed of this machine
at each kind of work: that of earlier runs, which the cache keeps, and that of this run as soon as it is known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from veilmeter.core.engine import Progress, Say
from veilmeter.core.errors import InputError
from veilmeter.core.files import cache_folder, read_input_json, write_json
from veilmeter.core.text import rough_duration


class Stage(StrEnum):
    """The stages of an assessment, by which its time is recorded; the values are what the user sees."""

    INPUTS = "checking the inputs"
    RELEASE = "anonymizing the release"
    TRAINING = "anonymizing training speech as the attackers do"
    READING = "reading"
    PROTOCOL = "choosing enrollment and trials"
    ATTACKER_RUNS = "anonymizing the enrollment as the attackers do"
    READING_RUNS = "reading the attackers' runs"
    FINE_TUNING = "fine-tuning"
    MEASURING = "measuring"
    UTILITY = "measuring utility"
    DUPLICATES = "looking for duplicate recordings"
    CONCLUDING = "drawing conclusions"
    FIRST = "first verdict"
    DONE = "done"


LEAST_TOLD = 5.0  # seconds: less is not worth telling
SPEEDS = "speeds.json"
_TRUSTED = 2.0  # seconds of work after which this run's own speed counts as much as what was known before
_KEPT = 0.1  # of the time that work was expected to take
_SLOWEST = 1e4  # times an ordinary core; what the cache says beyond that is damaged


@dataclass(frozen=True, slots=True)
class Work:
    """Work that is expected: its stage, as it is told to the user; the kind, by which the speed of the machine is
    known; and the seconds that an ordinary core takes for it. `after` the first verdict or before. Work without a kind
    says nothing of the speed, as part of it may be kept from an earlier run."""

    stage: Stage
    kind: str
    seconds: float
    details: str = ""
    items: int = 0
    after: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an assessment was at the time `told`: its stage, how many of the stage's items are done, the seconds
    since it began, and those left, None where nothing is known of what is to come; `least` of them are for what follows
    the stage."""

    stage: str
    done: int
    total: int
    elapsed: float
    left: float | None
    least: float
    told: float

    def remaining_at(self, now: float) -> float:
        """Seconds left at a later time, if nothing else was told since."""
        return max(self.least, (self.left or 0.0) - (now - self.told))

    def share_at(self, now: float) -> float:
        """The share of the time that is over, from 0 to 1."""
        elapsed = self.elapsed + now - self.told
        return elapsed / max(elapsed + self.remaining_at(now), 1e-9)


class _Running:
    """The work that is being done, and how far it is: several corpora may be worked on one after the other.

    Its speed is that from the first finished item on, as processes take seconds to start.
    """

    def __init__(self, work: Work, now: float) -> None:
        self.work, self.started = work, now
        self._kept = self._before = self._done = self._total = 0
        self._first: int | None = None  # what was done when the clock was started
        self._is_new = True

    def begin(self) -> None:
        """What follows is counted from the start."""
        self._before += self._total
        self._done = self._total = 0
        self._is_new = True

    def count(self, done: int, total: int) -> None:
        if done < self._done:
            self.begin()
        if self._is_new:
            self._kept += done  # by an earlier run: that took no time
            self._is_new = False
        self._done, self._total = done, total
        if self._first is None and self.done > self._kept:
            self.started, self._first = time.monotonic(), self.done

    @property
    def done(self) -> int:
        return self._before + self._done

    @property
    def total(self) -> int:
        return max(self.work.items, self._before + self._total) if self._total else 0

    @property
    def is_counted(self) -> bool:
        return bool(self.total)

    @property
    def seconds_left(self) -> float:
        """Expected for what is not done yet, where items are counted."""
        return self.work.seconds * (1 - self.done / self.total) if self.is_counted else self.work.seconds

    def spent(self, now: float) -> tuple[float, float]:
        """Seconds expected for what was done since the clock was started, and seconds since then."""
        if not self.work.kind or not self.is_counted or self._first is None:
            return 0.0, 0.0
        return self.work.seconds * (self.done - self._first) / self.total, now - self.started


class Forecast:
    """The work of an assessment, or of several such as the sets of a challenge, and the time that it will take."""

    def __init__(self, show: Callable[[Standing], None] | None = None, speeds: Mapping[str, float] | None = None):
        self._show = show or (lambda standing: None)
        self._known = dict(read_speeds() if speeds is None else speeds)
        self._waiting: dict[str, list[Work]] = {}  # by part of the assessment
        self._spent: dict[str, tuple[float, float]] = {}  # by kind: seconds expected, and seconds taken
        self._running: _Running | None = None
        self._stage = ""
        self._started = time.monotonic()
        self.is_told = False

    def expect(self, part: str, work: Iterable[Work], workers: int) -> None:
        """The work of a part, once: what is expected a second time is what a run repeats that goes on."""
        if part not in self._waiting:
            self._waiting[part] = [replace(entry, seconds=entry.seconds / workers) for entry in work]

    def begin(self, part: str, stage: Stage, details: str) -> None:
        """A stage begins, and the work before it is done. With a verdict, nothing is left that was to come before."""
        now = time.monotonic()
        if self._running is not None:
            self._end(self._running, now)
        waiting = self._waiting.get(part, [])
        if stage in (Stage.FIRST, Stage.DONE):
            waiting[:] = [work for work in waiting if work.after and stage is Stage.FIRST]
        own = [work for work in waiting if work.stage is stage and work.details in ("", details)]
        self._running = None
        if own:
            waiting.remove(own[0])
            self._running = _Running(own[0], now)
        self._stage = ": ".join(filter(None, (part, str(stage), "" if stage is Stage.MEASURING else details)))
        self.show()

    def _end(self, running: _Running, now: float) -> None:
        """Learn the speed at this kind of work; where nothing is counted, from all of it, unless it took so little time
        that it must have been kept from an earlier run."""
        work = running.work
        expected, taken = running.spent(now)
        if not running.is_counted and now - running.started > _KEPT * self._seconds(work):
            expected, taken = work.seconds, now - running.started
        if work.kind and expected:
            before = self._spent.get(work.kind, (0.0, 0.0))
            self._spent[work.kind] = before[0] + expected, before[1] + taken

    def begin_count(self) -> None:
        """What is counted next is counted from the start."""
        if self._running is not None:
            self._running.begin()

    def count(self, done: int, total: int) -> None:
        """So many of the items of the stage are done."""
        if self._running is None:
            self._running = _Running(Work(Stage.READING, "", 0.0), time.monotonic())
        self._running.count(done, total)
        self.show()

    def show(self) -> None:
        """Show how far the assessment is."""
        now = time.monotonic()
        least = sum(self._seconds(work) for work in self._all_waiting())
        left = least + self._remaining_of_running(now)
        counted = (0, 0) if self._running is None else (self._running.done, self._running.total)
        self._show(Standing(self._stage, *counted, now - self._started, left if left > 0 else None, least, now))

    def _all_waiting(self) -> Iterator[Work]:
        for waiting in self._waiting.values():
            yield from waiting

    def remaining(self) -> float:
        """Seconds until everything is done."""
        return sum(self._seconds(work) for work in self._all_waiting()) + self._remaining_of_running(time.monotonic())

    def _remaining_of_running(self, now: float) -> float:
        running = self._running
        if running is None:
            return 0.0
        seconds = running.seconds_left * self.speed(running.work.kind)
        return seconds if running.is_counted else max(0.0, seconds - (now - running.started))

    def _seconds(self, work: Work) -> float:
        return work.seconds * self.speed(work.kind)

    def speed(self, kind: str) -> float:
        """Seconds that this machine takes for what an ordinary core does in one: as it was known before, by how much
        this run is slower than was known so far, and by this run's own speed at this kind of work."""
        spent = self._spent_until_now()
        predicted = sum(expected * self._known.get(other, 1.0) for other, (expected, _) in spent.items())
        drift = (_TRUSTED + sum(taken for _, taken in spent.values())) / (_TRUSTED + predicted)
        expected, taken = spent.get(kind, (0.0, 0.0))
        return (taken + _TRUSTED * drift * self._known.get(kind, 1.0)) / (expected + _TRUSTED)

    def _spent_until_now(self) -> dict[str, tuple[float, float]]:
        """With the work that is being done."""
        spent = dict(self._spent)
        if self._running is not None:
            kind, (expected, taken) = self._running.work.kind, self._running.spent(time.monotonic())
            if expected:
                before = spent.get(kind, (0.0, 0.0))
                spent[kind] = before[0] + expected, before[1] + taken
        return spent

    def estimate(self) -> str:
        """How long the whole will take, for the user, once; empty before the speed of this machine is known, and where
        it is not worth telling."""
        waiting = [*([self._running.work] if self._running is not None else []), *self._all_waiting()]
        taken = sum(taken for _, taken in self._spent_until_now().values())
        first = next((work.kind for work in waiting if work.seconds), "")
        if self.is_told or not first or not (first in self._known or taken >= _TRUSTED):
            return ""
        self.is_told = True
        left = self.remaining()
        if left < LEAST_TOLD:
            return ""
        told = [f"about {rough_duration(left)}"]
        after = [work for work in self._all_waiting() if work.after]
        utility = sum(self._seconds(work) for work in after if work.stage is Stage.UTILITY)
        if after:
            told.append(f"first verdict: {rough_duration(left - sum(map(self._seconds, after)))}")
        if utility:
            told.append(f"--no-utility: {rough_duration(left - utility)}")
        return "; ".join(told)

    def keep_speeds(self) -> None:
        """Keep the speed of this machine for later runs, where there is a cache."""
        fresh = {kind: taken / expected for kind, (expected, taken) in self._spent.items() if kind and taken >= 1.0}
        if fresh and cache_folder().is_dir():
            with suppress(OSError):
                write_json(cache_folder() / SPEEDS, read_speeds() | fresh)


def read_speeds() -> dict[str, float]:
    """The speed of this machine in earlier runs, by kind of work; empty where nothing sound is kept."""
    with suppress(InputError, OSError, AttributeError):
        kept = read_input_json(cache_folder() / SPEEDS)
        return {
            str(kind): float(speed)
            for kind, speed in kept.items()
            if isinstance(speed, int | float) and math.isfinite(speed) and 1 / _SLOWEST < speed < _SLOWEST
        }
    return {}


class StageLog:
    """Tells what an assessment is doing, and records the seconds of each stage."""

    def __init__(self, say: Say, forecast: Forecast | None = None, part: str = "") -> None:
        self.say = say
        self.forecast = Forecast() if forecast is None else forecast
        self.part = part
        self.timings: dict[Stage, float] = {}
        self.started = time.monotonic()
        self._last: Stage | None = None

    def expect(self, work: Sequence[Work], workers: int) -> None:
        """The work of this assessment, unless it was told before."""
        self.forecast.expect(self.part, work, workers)
        self._tell()

    def _tell(self) -> None:
        if estimate := self.forecast.estimate():
            self.say(estimate)

    def stage(self, stage: Stage, details: str = "") -> None:
        """Begin a stage, and record the time of the one before."""
        now = time.monotonic()
        if self._last is not None:
            before = self.timings.get(self._last, 0.0)
            self.timings[self._last] = round(before + now - self.started - sum(self.timings.values()), 3)
        self._last = stage
        self.forecast.begin(self.part, stage, details)
        self._tell()
        left = self.forecast.remaining()
        told = f" (about {rough_duration(left)} left)" if left >= LEAST_TOLD and self.forecast.is_told else ""
        self.say((f"{stage}: {details}" if details else str(stage)) + told)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Counts what is done of the stage."""
        self.forecast.begin_count()
        yield self.count

    def count(self, done: int, total: int) -> None:
        """So many items of the stage are done."""
        self.forecast.count(done, total)
        self._tell()
