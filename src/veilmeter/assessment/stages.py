"""Finished tasks of a run, kept by what they depend on, so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.tasks import Arrays, TaskId, TaskResult
from veilmeter.core.files import BROKEN_ARCHIVE, to_json, whole_file, write_text
from veilmeter.core.typed_json import MalformedError, decode, encode
from veilmeter.metrics.registry import label_of


class StoredArrays(Mapping[str, NDArray[Any]]):
    """A task's arrays, each read from its file when it is asked for: the scores of all attackers would fill memory."""

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
    """A folder of finished tasks, or none (`folder` None), where nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, task: TaskId, key: str) -> tuple[TaskResult, Arrays] | None:
        """What was kept; a file that is damaged counts as missing and is made again."""
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
            return _decoded(form["measured"]), kept
        except (MalformedError, *BROKEN_ARCHIVE):
            return None

    def put(self, task: TaskId, key: str, measured: TaskResult, arrays: Arrays) -> TaskResult:
        """Keep what was measured; gives it back as a later `get` would, so that both ways lead to the same bytes."""
        text = to_json(encode(measured, labels=label_of), indent=None)
        if self.folder is not None:
            text_path, array_path = self._paths(task, key)
            if arrays:
                # The arrays first: the text is what says that the task is finished.
                with whole_file(array_path) as temporary, open(temporary, "wb") as handle:
                    np.savez(handle, **{array: np.asarray(value) for array, value in arrays.items()})  # type: ignore[arg-type]
            head = to_json({"key": key, "check": _check(sorted(arrays), text), "arrays": sorted(arrays)}, indent=None)
            write_text(text_path, f'{head[:-1]}, "measured": {text}}}')
        return _decoded(json.loads(text))

    def stored(self, task: TaskId, key: str, arrays: Arrays) -> Arrays:
        """What `put` kept, to be read again where it is needed; the arrays themselves where nothing is kept."""
        if self.folder is None or not arrays:
            return arrays
        return StoredArrays(self._paths(task, key)[1], sorted(arrays))

    def _paths(self, task: TaskId, key: str) -> tuple[Path, Path]:
        assert self.folder is not None
        stem = f"{task}-{key}"
        return self.folder / f"{stem}.json", self.folder / f"{stem}.npz"


def _decoded(form: Any) -> TaskResult:
    return cast(TaskResult, decode(TaskResult, form, labels=label_of))


def _check(arrays: Sequence[str], measured: str) -> str:
    """A disk may change a digit and leave the file good JSON."""
    return hashlib.sha256(f"{to_json(arrays, indent=None)} {measured}".encode()).hexdigest()
