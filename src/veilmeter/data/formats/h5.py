"""Vectors in HDF5: one dataset per utterance id, its speaker and attributes as the dataset's attributes.

Links that lead into other files are not followed. The HDF5 library can be crashed by a broken file, and would take the
whole run with it: files are read in a separate process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem, need
from veilmeter.core.files import scratch_folder, whole_file
from veilmeter.core.processes import run_confined
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.kaldi import with_meta
from veilmeter.data.formats.vectors import LONGEST_VECTOR, RawVectors

_LONGEST_TEXT = 1 << 16
# Chunks that were never written are read as zeros, however many are claimed; compression shrinks vectors hardly at all.
_SMALL, _LARGEST_EXPANSION = 1 << 14, 100
_BROKEN = (OSError, ValueError, TypeError, RuntimeError, KeyError, UnicodeError, MemoryError)


def read_h5(path: Path) -> RawVectors:
    need("h5py")
    with scratch_folder() as folder:
        facts = run_confined("veilmeter.data.formats.h5:unpack", path, [str(folder)], "HDF5 file")
        flat = np.load(folder / "vectors.npy", allow_pickle=False)
    vectors = np.split(flat, np.cumsum(facts["lengths"])[:-1]) if facts["lengths"] else []
    problems = [Problem("bad-vector", what, str(path), fix="write it again") for what in facts["problems"]]
    raw = RawVectors(path, facts["ids"], vectors, problems=problems)
    about: list[dict[str, str]] = facts["about"]
    names = {key for attributes in about for key in attributes}
    if "speaker" not in names:
        return with_meta(raw, path.parent)
    raw.speakers = [attributes.get("speaker", "") for attributes in about]
    for name in sorted(names - {"speaker", "duration"}):
        raw.attributes[name] = [attributes.get(name, "") for attributes in about]
    if "duration" in names:
        raw.durations = np.array([_number(attributes.get("duration", "")) for attributes in about])
    return raw


def unpack(path: str, folder: str) -> dict[str, Any]:
    """The content of an HDF5 file, its numbers as vectors.npy in the folder; run in a child process."""
    import h5py

    ids: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    about: list[dict[str, str]] = []
    problems: list[str] = []

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        try:
            vector = _vector(item)
            facts = _attributes(item)
        except _BROKEN as error:
            problems.append(f"the dataset {name!r} can't be used: {error}")
            return
        ids.append(name)
        vectors.append(vector)
        about.append(facts)

    with h5py.File(path, "r") as file:
        file.visititems(visit)  # does not follow soft and external links
    lengths = [len(vector) for vector in vectors]
    np.save(Path(folder, "vectors.npy"), np.concatenate(vectors) if vectors else np.zeros(0, np.float32))
    return {"ids": ids, "lengths": lengths, "about": about, "problems": problems}


def _attributes(item: Any) -> dict[str, str]:
    facts = {}
    for key in item.attrs:
        if isinstance(key, str):
            if item.attrs.get_id(key).get_storage_size() > _LONGEST_TEXT:
                raise ValueError(f"its attribute {key[:40]!r} is longer than {_LONGEST_TEXT} bytes")
            text = _text(item.attrs[key])
            if text is not None:
                facts[key] = text
    return facts


def _vector(dataset: Any) -> NDArray[np.float32]:
    if dataset.external is not None or dataset.is_virtual:
        raise ValueError("its data is stored in another file")
    if dataset.dtype.kind not in "fiu":
        raise ValueError(f"it holds {dataset.dtype}, not numbers")
    shape = [length for length in dataset.shape or () if length != 1] or [1]
    if len(shape) != 1 or not 0 < shape[0] <= LONGEST_VECTOR:
        raise ValueError(f"its shape {dataset.shape} is not that of a vector")
    if dataset.nbytes > _SMALL + _LARGEST_EXPANSION * dataset.id.get_storage_size():
        raise ValueError(f"it claims {dataset.nbytes} bytes, far more than the file holds of it")
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
    need("h5py")
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
