"""Finished stages of a run, kept by what they depend on, so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.files import BROKEN_ARCHIVE, plain, to_json, whole_file, write_text

_Arrays = dict[str, NDArray[np.float64]]


class Stages:
    """A folder of finished stages, or none (`folder` None), where nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, name: str, key: str) -> tuple[Any, _Arrays] | None:
        """What was kept; a file that is damaged counts as missing and is made again."""
        if self.folder is None:
            return None
        text, arrays = self._paths(name, key)
        try:
            values = json.loads(text.read_text(encoding="utf-8"))
            if not isinstance(values, dict) or values.get("key") != key or values.get("check") != _check(values):
                return None
            kept: _Arrays = {}
            if values["arrays"]:
                with np.load(arrays, allow_pickle=False) as loaded:
                    kept = {array: loaded[array] for array in values["arrays"]}
        except BROKEN_ARCHIVE:
            return None
        return values["values"], kept

    def put(self, name: str, key: str, values: Any, arrays: Mapping[str, NDArray[Any]] | None = None) -> Any:
        """Keep the values; gives them back as a later `get` would, so that both ways lead to the same bytes."""
        arrays = arrays or {}
        kept = {"key": key, "arrays": sorted(arrays), "values": plain(values)}
        form = to_json({"check": _check(kept), **kept}, indent=None)
        if self.folder is not None:
            text_path, array_path = self._paths(name, key)
            if arrays:
                # The arrays first: the text is what says that the stage is finished.
                with whole_file(array_path) as temporary, open(temporary, "wb") as handle:
                    np.savez(handle, **{array: np.asarray(value) for array, value in arrays.items()})  # type: ignore[arg-type]
            write_text(text_path, form)
        return json.loads(form)["values"]

    def _paths(self, name: str, key: str) -> tuple[Path, Path]:
        assert self.folder is not None
        stem = f"{name}-{key}"
        return self.folder / f"{stem}.json", self.folder / f"{stem}.npz"


def _check(values: Mapping[str, Any]) -> str:
    """A disk may change a digit and leave the file good JSON."""
    text = to_json([values["arrays"], values["values"]], indent=None)
    return hashlib.sha256(text.encode()).hexdigest()
