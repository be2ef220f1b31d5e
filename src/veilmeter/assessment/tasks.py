"""Tasks of an assessment: their identity, their results, and the folder in which finished ones are kept.

The key of a task is derived from what it depends on, so that an interrupted run is continued.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.files import BROKEN_ARCHIVE, to_json, whole_file, write_text
from veilmeter.core.findings import Finding, not_possible
from veilmeter.core.keys import key_of
from veilmeter.core.typed_json import MalformedError, decode, encode
from veilmeter.core.user_code import files_to_load, load_files
from veilmeter.metrics.legal.chance import FigureKey
from veilmeter.metrics.measure import label_of
from veilmeter.results.model import AttackerResult, Part

Arrays = Mapping[str, NDArray[Any]]


class TaskKind(StrEnum):
    """The kinds of task, by what they measure."""

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
    """The result of a task: an attacker's, or a part of the results beside the attackers.

    `findings` are what a reader must know, `not_tested` what could not be measured of it, and `not_possible` why
    nothing was. `names` label the rows of the task's arrays; `figures` and
    `enrolled` label those of the arrays with people relabeled at random.
    """

    attacker: AttackerResult | None = None
    part: Part | None = None
    findings: tuple[Finding, ...] = ()
    not_tested: tuple[Finding, ...] = ()
    not_possible: Finding | None = None
    names: tuple[str, ...] = ()
    figures: tuple[FigureKey, ...] = ()
    enrolled: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Task:
    """`function(*arguments)`, which returns a result and arrays: the engine runs it anywhere.

    Everything the result depends on is an argument; a `Path` counts by the content of the file. A task that is not
    `needed` may turn out impossible with these voices; the run goes on and reports it.
    """

    id: TaskId
    function: Callable[..., tuple[TaskResult, Arrays]]
    arguments: tuple[Any, ...]
    needed: bool = False

    @cached_property
    def key(self) -> str:
        return key_of(self.function, *self.arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Where it holds code from a user's file, another process must load the file before it unpickles that code."""
        fields = (self.id, self.function, self.arguments, self.needed)
        files = files_to_load()
        return (_open_task, (files, pickle.dumps(fields))) if files else (Task, fields)


def _open_task(files: tuple[str, ...], fields: bytes) -> Task:
    load_files(files)
    return Task(*pickle.loads(fields))  # made by this program, for its own processes


Done = Mapping[TaskId, tuple[TaskResult, Arrays]]  # the results of tasks, in the order in which they were planned


def perform(task: Task) -> tuple[TaskResult, Arrays, float]:
    """Run a task; its result, its arrays, and the processor seconds it took. The engine calls this in every process."""
    before = time.process_time()
    try:
        measured, arrays = task.function(*task.arguments)
    except InputError as error:
        if task.needed:
            raise
        measured, arrays = TaskResult(not_possible=not_possible(error)), {}
    return measured, arrays, round(time.process_time() - before, 3)


class StoredArrays(Mapping[str, NDArray[Any]]):
    """A task's arrays, each read from its file when it is accessed: the scores of all attackers would fill memory."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names = path, tuple(names)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise KeyError(name)
        with np.load(self.path, allow_pickle=False) as loaded:
            return np.asarray(loaded[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class Stages:
    """A folder of finished tasks; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, task: TaskId, key: str) -> tuple[TaskResult, Arrays] | None:
        """The kept result of a task; a damaged file counts as missing."""
        if self.folder is None:
            return None
        text, arrays = self._paths(task, key)
        try:
            form = json.loads(text.read_text(encoding="utf-8"))
            if not isinstance(form, dict) or form.get("key") != key:
                return None
            if form["check"] != _check(form["arrays"], to_json(form["measured"], indent=None)):
                return None
            kept = StoredArrays(arrays, form["arrays"])
            for array in kept:
                kept[array]  # a damaged file is found here
            return _decode(form["measured"]), kept
        except (MalformedError, *BROKEN_ARCHIVE):
            return None

    def put(self, task: TaskId, key: str, measured: TaskResult, arrays: Arrays) -> TaskResult:
        """Keep a result; returns it as a later `get` would, so that both ways lead to the same bytes."""
        text = to_json(encode(measured, labels=label_of), indent=None)
        if self.folder is not None:
            text_path, array_path = self._paths(task, key)
            if arrays:
                # The arrays first: the text is what says that the task is finished.
                with whole_file(array_path) as temporary, open(temporary, "wb") as handle:
                    np.savez(handle, **{array: np.asarray(value) for array, value in arrays.items()})  # type: ignore[arg-type]
            head = to_json({"key": key, "check": _check(sorted(arrays), text), "arrays": sorted(arrays)}, indent=None)
            write_text(text_path, f'{head[:-1]}, "measured": {text}}}')
        return _decode(json.loads(text))

    def arrays_of(self, task: TaskId, key: str, arrays: Arrays) -> Arrays:
        """The arrays that `put` kept, read where they are needed; the arrays themselves where nothing is kept."""
        if self.folder is None or not arrays:
            return arrays
        return StoredArrays(self._paths(task, key)[1], sorted(arrays))

    def _paths(self, task: TaskId, key: str) -> tuple[Path, Path]:
        assert self.folder is not None
        stem = f"{task}-{key}"
        return self.folder / f"{stem}.json", self.folder / f"{stem}.npz"


def _decode(form: Any) -> TaskResult:
    return cast(TaskResult, decode(TaskResult, form, labels=label_of))


def _check(arrays: Sequence[str], measured: str) -> str:
    """A checksum: a disk may change a digit and leave the file valid JSON."""
    return hashlib.sha256(f"{to_json(arrays, indent=None)} {measured}".encode()).hexdigest()
