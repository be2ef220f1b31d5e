"""Vectors in HDF5: one dataset an utterance id, its speaker and attributes as the dataset's attributes.

Links that lead into other files are not followed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.embeddings import Embeddings
from veilmeter.errors import InputError, Problem
from veilmeter.files import whole_file
from veilmeter.formats.found import Found
from veilmeter.formats.kaldi import with_meta

_LONGEST = 1 << 20


def read_h5(path: Path) -> Found:
    import h5py

    ids: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    about: list[dict[str, str]] = []
    problems: list[Problem] = []

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        try:
            vector = _vector(item)
            keys = [key for key in item.attrs if isinstance(key, str)]
            facts = {key: text for key in keys if (text := _text(item.attrs[key])) is not None}
        except (OSError, ValueError, TypeError, RuntimeError, KeyError, UnicodeError, MemoryError) as error:
            what = f"the dataset {name!r} can't be used: {error}"
            problems.append(Problem("bad-vector", what, str(path), fix="write it anew"))
            return
        ids.append(name)
        vectors.append(vector)
        about.append(facts)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)  # does not follow soft and external links
    except (OSError, ValueError, TypeError, RuntimeError, KeyError, UnicodeError, MemoryError) as error:
        raise InputError(f"this is no sound HDF5 file: {error}", path=path) from None
    found = Found(path, ids, vectors, problems=problems)
    names = {key for facts in about for key in facts}
    if "speaker" not in names:
        return with_meta(found, path.parent)
    found.speakers = [facts.get("speaker", "") for facts in about]
    for name in sorted(names - {"speaker", "duration"}):
        found.attributes[name] = [facts.get(name, "") for facts in about]
    if "duration" in names:
        found.durations = np.array([_number(facts.get("duration", "")) for facts in about])
    return found


def _vector(dataset: Any) -> NDArray[np.float32]:
    if dataset.external is not None or dataset.is_virtual:
        raise ValueError("its data lie in another file")
    if dataset.dtype.kind not in "fiu":
        raise ValueError(f"it holds {dataset.dtype}, not numbers")
    shape = [length for length in dataset.shape or () if length != 1] or [1]
    if len(shape) != 1 or not 0 < shape[0] <= _LONGEST:
        raise ValueError(f"its shape {dataset.shape} is not that of a vector")
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(dataset[()], np.float32).reshape(-1)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, str):
        return value
    return str(value) if np.isscalar(value) else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def write_h5(embeddings: Embeddings, path: Path) -> None:
    import h5py

    for name in embeddings.attributes:
        if name in ("speaker", "duration"):
            raise InputError(f"a further column can't be called {name!r}", path=path)
    with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
        for row, utterance in enumerate(embeddings.utterances):
            try:
                dataset = file.create_dataset(utterance, data=np.asarray(embeddings.vectors[row], np.float32))
            except (ValueError, OSError, TypeError) as error:
                raise InputError(f"{utterance!r} can't be the name of a dataset: {error}", path=path) from None
            dataset.attrs["speaker"] = embeddings.speakers[row]
            for name, column in embeddings.attributes.items():
                if column[row]:
                    dataset.attrs[name] = column[row]
            if embeddings.durations is not None and np.isfinite(embeddings.durations[row]):
                dataset.attrs["duration"] = float(embeddings.durations[row])
