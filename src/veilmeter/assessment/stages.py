"""Finished tasks of a run, kept by what they depend on, so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.tasks import Arrays, TaskResult
from veilmeter.core.files import BROKEN_ARCHIVE, to_json, whole_file, write_text
from veilmeter.core.typed_json import MalformedError, decode, encode
from veilmeter.metrics.registry import label_of


class Stages:
    """A folder of finished tasks, or none (`folder` None), where nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, name: str, key: str) -> tuple[TaskResult, Arrays] | None:
        """What was kept; a file that is damaged counts as missing and is made again."""
        if self.folder is None:
            return None
        text, arrays = self._paths(name, key)
        try:
            form = json.loads(text.read_text(encoding="utf-8"))
            if not isinstance(form, dict) or form.get("key") != key or form.get("check") != _check(form):
                return None
            kept: dict[str, NDArray[Any]] = {}
            if form["arrays"]:
                with np.load(arrays, allow_pickle=False) as loaded:
                    kept = {array: loaded[array] for array in form["arrays"]}
            return _decoded(form["measured"]), kept
        except (MalformedError, *BROKEN_ARCHIVE):
            return None

    def put(self, name: str, key: str, measured: TaskResult, arrays: Arrays) -> TaskResult:
        """Keep what was measured; gives it back as a later `get` would, so that both ways lead to the same bytes."""
        held = {"key": key, "arrays": sorted(arrays), "measured": encode(measured, labels=label_of)}
        form = json.loads(to_json(held, indent=None))
        if self.folder is not None:
            text_path, array_path = self._paths(name, key)
            if arrays:
                # The arrays first: the text is what says that the task is finished.
                with whole_file(array_path) as temporary, open(temporary, "wb") as handle:
                    np.savez(handle, **{array: np.asarray(value) for array, value in arrays.items()})  # type: ignore[arg-type]
            write_text(text_path, to_json({"check": _check(form), **form}, indent=None))
        return _decoded(form["measured"])

    def _paths(self, name: str, key: str) -> tuple[Path, Path]:
        assert self.folder is not None
        stem = f"{name}-{key}"
        return self.folder / f"{stem}.json", self.folder / f"{stem}.npz"


def _decoded(form: Any) -> TaskResult:
    return cast(TaskResult, decode(TaskResult, form, labels=label_of))


def _check(form: Mapping[str, Any]) -> str:
    """A disk may change a digit and leave the file good JSON."""
    text = to_json([form["arrays"], form["measured"]], indent=None)
    return hashlib.sha256(text.encode()).hexdigest()
