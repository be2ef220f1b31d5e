"""A piece of an assessment's work, with a key that is derived from what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.keys import key_of

NOT_POSSIBLE = "not_possible"
Values = dict[str, Any]
Result = tuple[Values, dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Task:
    """`function(*arguments)`, which gives plain values and arrays: the engine runs it anywhere, a stage keeps it.

    Everything the result depends on is an argument; files are given as `Path` and count by their content. A task that
    is not `needed` may turn out impossible with these voices; the run goes on and says so.
    """

    name: str
    function: Callable[..., Result]
    arguments: tuple[Any, ...]
    needed: bool = False

    @cached_property
    def key(self) -> str:
        return key_of(self.function, *self.arguments)


def perform(task: Task) -> Result:
    """What the engine runs. Linear algebra in one thread, as in every other process of the run."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        try:
            return task.function(*task.arguments)
        except InputError as error:
            if task.needed:
                raise
            return {NOT_POSSIBLE: str(error)}, {}
