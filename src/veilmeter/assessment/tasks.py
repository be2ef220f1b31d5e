"""A piece of an assessment's work, with a key that is derived from what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.keys import key_of
from veilmeter.metrics.legal.chance import FigureKey
from veilmeter.results.model import AttackerResult, Part

Arrays = Mapping[str, NDArray[Any]]


class TaskKind(StrEnum):
    """What a task measures."""

    ATTACKER = "attacker"  # an attacker that compares vectors
    SCORES = "scores"  # scores that were given for an attacker
    CONTROL = "control"  # a channel on original speech
    SHUFFLED = "shuffled"  # a channel with people shuffled
    ANALYSIS = "analysis"  # anything beside the attackers


@dataclass(frozen=True, slots=True)
class TaskId:
    """A task by what it measures and of what: an attacker as printed, a channel, or the name of an analysis.

    >>> print(TaskId(TaskKind.ATTACKER, "ignorant"), TaskId(TaskKind.ANALYSIS, "zebra"))
    attacker-ignorant zebra
    """

    kind: TaskKind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind is TaskKind.ANALYSIS else f"{self.kind}-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What a task measured: an attacker, or a part of the assessment beside the attackers, with what to say about it.

    `not_possible` says why nothing was measured; `names` are the rows of the arrays that come with it, as are `figures`
    and `enrolled` of those that say what luck alone would give.
    """

    attacker: AttackerResult | None = None
    part: Part | None = None
    warnings: tuple[str, ...] = ()
    not_tested: tuple[str, ...] = ()
    not_possible: str = ""
    names: tuple[str, ...] = ()
    figures: tuple[FigureKey, ...] = ()
    enrolled: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Task:
    """`function(*arguments)`, which gives something measured and arrays: the engine runs it anywhere, a stage keeps it.

    Everything the result depends on is an argument; files are given as `Path` and count by their content. A task that
    is not `needed` may turn out impossible with these voices; the run goes on and says so.
    """

    id: TaskId
    function: Callable[..., tuple[TaskResult, Arrays]]
    arguments: tuple[Any, ...]
    needed: bool = False

    @cached_property
    def key(self) -> str:
        return key_of(self.function, *self.arguments)


Done = Mapping[TaskId, tuple[TaskResult, Arrays]]  # the results of tasks, in the order in which they were planned


def perform(task: Task) -> tuple[TaskResult, Arrays]:
    """What the engine runs. Linear algebra in one thread, as in every other process of the run."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        try:
            return task.function(*task.arguments)
        except InputError as error:
            if task.needed:
                raise
            return TaskResult(not_possible=str(error)), {}
