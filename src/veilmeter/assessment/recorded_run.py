"""A run of an assessment whatever it is of: its stages, the tasks that are kept, the folder that it owns."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from veilmeter.assessment.conclude import write_tables
from veilmeter.assessment.measuring import Job
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.stages import Stages
from veilmeter.assessment.tasks import Arrays, Done, Task, TaskId, TaskKind, TaskResult, perform
from veilmeter.core.engine import Engine, Say, ShowProgress
from veilmeter.core.errors import InputError
from veilmeter.core.files import make_folder, only_one, remove_leftovers, write_json
from veilmeter.results.model import AttackerId, Results
from veilmeter.results.run_folder import RESULTS, read_results, write_results

LEFT_OUT = "left_out.jsonl"
# Analyses that take less time than the others.
QUICK = {TaskId(TaskKind.ANALYSIS, name) for name in ("similarity", "sessions", "inference", "added")}


@dataclass(frozen=True, eq=False)
class Assessment:
    """`results` are what was found; `folder` is where they were written, if anywhere; `left_out` how many recordings
    were given and could not be assessed. `timings` are the seconds of each stage and `real_time_factor` the processor
    seconds for a second of speech, where veilmeter ran the anonymizer; both differ between runs, results do not."""

    results: Results
    folder: Path | None = None
    timings: dict[str, float] = field(default_factory=dict)
    left_out: int = 0
    real_time_factor: float | None = None

    @property
    def trustworthy(self) -> bool:
        return self.results.verdict.trustworthy

    @property
    def headline(self) -> str:
        return self.results.verdict.headline

    def __repr__(self) -> str:
        doubt = "" if self.trustworthy else "not trustworthy: "
        return f"Assessment({doubt}{self.headline})"

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


class RecordedRun(ABC):
    """One assessment, stage by stage: it says where it is, keeps what is finished, and owns its folder."""

    def __init__(
        self,
        settings: Settings,
        out: str | Path | None,
        engine: Engine,
        say: Say,
        progress: ShowProgress,
        argv: tuple[str, ...],
    ) -> None:
        self.settings = settings
        self.folder = None if out is None else make_folder(out)
        self.engine = engine
        self.argv = argv
        self._say = say
        self._progress = progress
        self.stages = Stages(None if self.folder is None else self.folder / "stages")
        self.timings: dict[str, float] = {}
        self.started = time.monotonic()
        self._last = ""

    def stage(self, name: str) -> None:
        now = time.monotonic()
        if self._last:
            before = self.timings.get(self._last, 0.0)
            self.timings[self._last] = round(before + now - self.started - sum(self.timings.values()), 3)
        self._last = name
        self._say(name)

    def go(self) -> Assessment:
        if self.folder is None:
            return self.assessed()
        with only_one(self.folder / ".lock", self.folder):
            refuse_late_threshold(self.folder, self.settings.threshold)
            for folder in (self.folder, make_folder(self.folder / "stages"), self.folder / "tables"):
                remove_leftovers(folder)
            return self.assessed()

    @abstractmethod
    def assessed(self) -> Assessment:
        """Measure, conclude and write."""

    def perform(self, tasks: Sequence[Task]) -> Done:
        """Do every task that is not kept from an earlier run; wherever the engine runs them."""
        done: dict[TaskId, tuple[TaskResult, Arrays]] = {}
        for task in tasks:
            kept = self.stages.get(task.id, task.key)
            if kept is not None:
                done[task.id] = kept
        left = [task for task in tasks if task.id not in done]
        if done:
            self._say(f"{len(done)} of {len(tasks)} parts are kept from an earlier run")
        if left:
            self.stage(f"measuring {len(left)} parts: {', '.join(str(task.id) for task in left)}")
        left = _longest_first(left)
        for number, (measured, arrays) in self.engine.run(perform, left):
            task = left[number]
            as_kept = self.stages.put(task.id, task.key, measured, arrays)
            done[task.id] = as_kept, self.stages.stored(task.id, task.key, arrays)
            del arrays
            self._say(f"measured: {task.id} ({len(done)} of {len(tasks)})")
        return {task.id: done[task.id] for task in tasks}  # in one order, wherever they ran

    def write(
        self,
        results: Results,
        jobs: Mapping[AttackerId, Job],
        done: Done,
        factor: float | None = None,
    ) -> Results:
        """The tables, the results, and how long it took. The folder is this run's: what an earlier one wrote goes."""
        assert self.folder is not None
        written = write_tables(self.folder / "tables", results, jobs, done)
        for file in (self.folder / "tables").glob("*.parquet"):
            if file.name not in written:
                file.unlink()
        (self.folder / "report.html").unlink(missing_ok=True)
        results = write_results(self.folder, results)
        self.stage("done")
        write_json(
            self.folder / "timings.json",
            {
                "seconds": self.timings,
                "total": round(time.monotonic() - self.started, 3),
                "real_time_factor": factor,
                "command": self.argv,
                "workers": self.engine.workers,
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            },
        )
        return results


def _longest_first(tasks: Sequence[Task]) -> list[Task]:
    """A long task that comes last is waited for by all workers but one. Attackers are planned from the simplest to the
    one that tries most."""
    attacks = [task for task in tasks if task.id.kind is TaskKind.ATTACKER]
    others = [task for task in tasks if task.id.kind is not TaskKind.ATTACKER]
    return [*reversed(attacks), *sorted(others, key=lambda task: task.id in QUICK)]


def refuse_late_threshold(folder: Path, threshold: float | None) -> None:
    """A limit stands in the settings of a run because it was chosen before its results were known."""
    if threshold is None or not (folder / RESULTS).is_file():
        return
    before = None
    with suppress(InputError):
        before = read_results(folder).settings.get("threshold")
    if before != threshold:
        raise InputError(
            f"this folder holds results already, and not with the limit {threshold:g}: it was not chosen beforehand",
            path=folder / RESULTS,
            fix=f"name it in the report (`report RUN --threshold {threshold:g}`), or assess into a new folder",
        )


# Options of the command that say where it runs and what it prints. Results must not depend on them, to the byte.
PLACE = {"--out": 1, "--jobs": 1, "--cluster": 1, "--quiet": 0, "--json": 0, "--no-report": 0}


def without_place(command: Sequence[str]) -> tuple[str, ...]:
    """The command without what can't change a result.

    >>> without_place(["veilmeter", "assess", "a.toml", "--jobs", "4", "--out=run", "--seed", "1", "--quiet"])
    ('veilmeter', 'assess', 'a.toml', '--seed', '1')
    """
    kept: list[str] = []
    words = iter(command)
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in PLACE:
            kept.append(word)
        elif PLACE[name] and not equals:
            next(words, None)
    return tuple(kept)
