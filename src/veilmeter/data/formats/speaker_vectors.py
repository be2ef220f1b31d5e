"""Embeddings as the VoicePrivacy challenge's tools keep them: `speaker_vectors.pt` with `id2idx` and `idx2spk`.

The tensor is loaded without running what may be in the file. Indices are read as numbers: the tools sort them as text
(0, 1, 10, 2), so that the order of lines says nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem, missing_extra
from veilmeter.data.formats.kaldi import read_map
from veilmeter.data.formats.vector_file import RawVectors

NAME = "speaker_vectors.pt"
_LARGEST = 1 << 33  # bytes of a file of vectors


def is_vector_folder(folder: Path) -> bool:
    return (folder / NAME).is_file()


def read_vector_folder(folder: Path) -> RawVectors:
    """One vector per utterance (`utt-level`) or per speaker (`spk-level`)."""
    vectors = _tensor(folder / NAME)
    problems: list[Problem] = []
    rows = _numbers(read_map(folder / "id2idx", problems), folder / "id2idx", len(vectors))
    speakers = read_map(folder / "idx2spk", problems)
    who = {_number(index, folder / "idx2spk", len(vectors)): speaker for index, speaker in speakers.items()}
    if len(set(rows.values())) != len(rows):
        raise InputError("two ids have one index", path=folder / "id2idx", fix="extract the vectors again")
    ids = sorted(rows, key=lambda name: rows[name])
    index = np.array([rows[name] for name in ids], np.int64)
    genders = read_map(folder / "spk2gender", problems) if (folder / "spk2gender").is_file() else {}
    raw = RawVectors(folder, ids, vectors[index], [who.get(int(row), "") for row in index], problems=problems)
    if genders:
        raw.attributes["gender"] = [genders.get(speaker, "").lower() for speaker in raw.speakers or []]
    unnamed = len(vectors) - len(ids)
    if unnamed:
        what = f"{unnamed} of {len(vectors)} vectors have no id in id2idx"
        raw.problems.append(Problem("no-id", what, str(folder / NAME), fix="extract the vectors again"))
    return raw


def _tensor(path: Path) -> NDArray[np.float32]:
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "audio") from None
    if path.stat().st_size > _LARGEST:
        raise InputError("the file is larger than 8 GB", path=path)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a stranger's file: torch raises whatever its parts do
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"this is no tensor that can be loaded safely: {first}", path=path) from None
    if not isinstance(loaded, torch.Tensor) or loaded.ndim != 2 or not loaded.is_floating_point():
        raise InputError("this is no table of vectors", path=path)
    expanded = loaded.shape[0] * loaded.shape[1] * loaded.element_size()
    if expanded > path.stat().st_size:  # strides of 0 make a table of any size from one number
        raise InputError("it claims more vectors than the file holds", path=path)
    return np.asarray(loaded.detach().to(torch.float32).numpy(), np.float32)


def _numbers(table: dict[str, str], path: Path, count: int) -> dict[str, int]:
    return {name: _number(index, path, count) for name, index in table.items()}


def _number(text: str, path: Path, count: int) -> int:
    if not text.isdecimal() or int(text) >= count:
        raise InputError(f"{text[:40]!r} is no index of the {count} vectors", path=path)
    return int(text)
