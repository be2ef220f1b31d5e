"""Vectors in HDF5: one dataset an utterance id, its speaker and attributes as the dataset's attributes.

Links that lead into other files are not followed. The HDF5 library can be crashed by a broken file, and would take the
whole run with it: files are read in a process of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.extras import need
from veilmeter.core.files import whole_file
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.kaldi import with_meta
from veilmeter.data.formats.vector_file import Found

_LONGEST = 1 << 20
SECONDS, BYTES_A_SECOND = 30, 1 << 20  # of work on a file: far more than a sound one needs
_BROKEN = (OSError, ValueError, TypeError, RuntimeError, KeyError, UnicodeError, MemoryError)


def read_h5(path: Path) -> Found:
    need("h5py")
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        child = (
            "import sys; from veilmeter.data.formats import h5; h5.limit(int(sys.argv[3])); h5.unpack(*sys.argv[1:3])"
        )
        seconds = SECONDS + path.stat().st_size // BYTES_A_SECOND
        command = [sys.executable, "-P", "-c", child, str(path), folder, str(seconds)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        made = Path(folder, "facts.json")
        if not made.is_file():
            how = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
            raise InputError(f"this is no sound HDF5 file: its library broke off ({how})", path=path)
        facts = json.loads(made.read_text())
        if "error" in facts:
            raise InputError(f"this is no sound HDF5 file: {facts['error']}", path=path)
        flat = np.load(Path(folder, "vectors.npy"), allow_pickle=False)
    vectors = np.split(flat, np.cumsum(facts["lengths"])[:-1]) if facts["lengths"] else []
    problems = [Problem("bad-vector", what, str(path), fix="write it anew") for what in facts["problems"]]
    found = Found(path, facts["ids"], vectors, problems=problems)
    about: list[dict[str, str]] = facts["about"]
    names = {key for one in about for key in one}
    if "speaker" not in names:
        return with_meta(found, path.parent)
    found.speakers = [one.get("speaker", "") for one in about]
    for name in sorted(names - {"speaker", "duration"}):
        found.attributes[name] = [one.get(name, "") for one in about]
    if "duration" in names:
        found.durations = np.array([_number(one.get("duration", "")) for one in about])
    return found


def limit(seconds: int) -> None:
    """Ends this process after so many seconds of work: a broken file can also keep the library busy for ever."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def unpack(path: str, folder: str) -> None:
    """What is in an HDF5 file as facts.json and vectors.npy in the folder; run in a process of its own."""
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
            keys = [key for key in item.attrs if isinstance(key, str)]
            facts = {key: text for key in keys if (text := _text(item.attrs[key])) is not None}
        except _BROKEN as error:
            problems.append(f"the dataset {name!r} can't be used: {error}")
            return
        ids.append(name)
        vectors.append(vector)
        about.append(facts)

    lengths: list[int] = []
    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)  # does not follow soft and external links
        lengths = [len(vector) for vector in vectors]
        np.save(Path(folder, "vectors.npy"), np.concatenate(vectors) if vectors else np.zeros(0, np.float32))
        found: dict[str, Any] = {"ids": ids, "lengths": lengths, "about": about, "problems": problems}
    except _BROKEN as error:
        found = {"error": str(error)}
    Path(folder, "facts.json").write_text(json.dumps(found))


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
