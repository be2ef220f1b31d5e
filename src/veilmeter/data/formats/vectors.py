"""Embeddings from and to any format that is known, recognized by what is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem, missing_extra, refuse
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.kaldi import read_map
from veilmeter.data.formats.vector_file import Loaded, RawVectors, usable

SPEAKER_VECTORS = "speaker_vectors.pt"
_LARGEST = 1 << 33  # bytes of a file of vectors


def is_vector_folder(folder: Path) -> bool:
    return (folder / SPEAKER_VECTORS).is_file()


def read_vector_folder(folder: Path) -> RawVectors:
    """One vector per utterance (`utt-level`) or per speaker (`spk-level`)."""
    vectors = _tensor(folder / SPEAKER_VECTORS)
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
        raw.problems.append(Problem("no-id", what, str(folder / SPEAKER_VECTORS), fix="extract the vectors again"))
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
    except Exception as error:  # an untrusted file: torch raises whatever its parts do
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"not a tensor that can be loaded safely: {first}", path=path) from None
    if not isinstance(loaded, torch.Tensor) or loaded.ndim != 2 or not loaded.is_floating_point():
        raise InputError("not a table of vectors", path=path)
    expanded = loaded.shape[0] * loaded.shape[1] * loaded.element_size()
    if expanded > path.stat().st_size:  # strides of 0 make a table of any size from one number
        raise InputError("it claims more vectors than the file holds", path=path)
    return np.asarray(loaded.detach().to(torch.float32).numpy(), np.float32)


def _numbers(table: dict[str, str], path: Path, count: int) -> dict[str, int]:
    return {name: _number(index, path, count) for name, index in table.items()}


def _number(text: str, path: Path, count: int) -> int:
    if not text.isdecimal() or int(text) >= count:
        raise InputError(f"not an index of the {count} vectors: {text[:40]!r}", path=path)
    return int(text)


KNOWN = (
    "an x-vector folder (xvector.scp with meta/), .scp, .ark, .npz, .h5, .parquet, "
    "a folder of Parquet shards, or one with speaker_vectors.pt"
)


def read_embeddings(path: str | Path, *, strict: bool = True) -> Embeddings:
    """The embeddings in a file or folder of any known format.

    With `strict` the first bad vector (zero, not finite, of another length, without a speaker, or an id that is there
    twice) is an error; without, it is left out: `load_embeddings` says which ones were.
    """
    loaded = load_embeddings(path)
    if strict:
        refuse(loaded.problems)
    return loaded.embeddings


def load_embeddings(path: str | Path) -> Loaded:
    """The usable embeddings, and what was left out and why."""
    return usable(find(path))


def check_embeddings(path: str | Path) -> tuple[Embeddings | None, list[Problem]]:
    """For `veilmeter check`: everything that is wrong, and the embeddings if any are usable."""
    try:
        loaded = load_embeddings(path)
    except InputError as error:
        unreadable = Problem("unreadable", error.what, error.path or str(path), error.line, error.fix or "")
        return None, [unreadable]
    return loaded.embeddings, list(loaded.problems)


def is_embeddings(path: str | Path) -> bool:
    """Whether this looks like a file or folder of vectors, without reading it."""
    return _reader(Path(path)) is not None


def find(path: str | Path) -> RawVectors:
    """The content of the file or folder, not yet checked."""
    root = Path(path)
    if not root.exists():
        raise InputError("there is no such file or folder", path=root)
    reader = _reader(root)
    if reader is None:
        raise InputError("no vectors are recognized here", path=root, fix=f"known: {KNOWN}")
    return reader(root)


def _reader(path: Path) -> Callable[[Path], RawVectors] | None:
    from veilmeter.data.formats import kaldi, parquet
    from veilmeter.data.formats.dataset import holds_audio

    if path.is_dir():
        shards = parquet.shard_files(path)
        if shards and not holds_audio(shards[0]):
            return parquet.read_store
        if is_vector_folder(path):
            return read_vector_folder
        return kaldi.read_xvector_folder if kaldi.is_xvector_folder(path) else None
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as handle:
            head = handle.read(4096)
    except OSError as error:
        raise InputError(f"the file can't be read: {error.strerror}", path=path) from None
    if head.startswith(b"PAR1"):
        return None if holds_audio(path) else parquet.read_store
    if head.startswith(b"PK"):
        from veilmeter.data.formats.npz import read_npz

        return read_npz
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        from veilmeter.data.formats.h5 import read_h5

        return read_h5
    first = head.split(b"\n", 1)[0].split()
    if path.suffix == ".scp":
        return kaldi.read_scp
    if path.suffix == ".ark" or (len(first) > 1 and (first[1] == b"[" or first[1].startswith(b"\0B"))):
        return kaldi.read_ark
    return {
        ".npz": _never("npz"),
        ".h5": _never("HDF5"),
        ".hdf5": _never("HDF5"),
        ".parquet": _never("Parquet"),
    }.get(path.suffix)


def _never(form: str) -> Callable[[Path], RawVectors]:
    def refuse(path: Path) -> RawVectors:
        raise InputError(f"not {form}, although its name says so", path=path)

    return refuse


def write_embeddings(embeddings: Embeddings, path: str | Path, *, form: str | None = None) -> None:
    """Write in the format that the name says: .npz, .h5, .parquet, .scp or .ark (both are written, with meta/), or,
    for a name without suffix, a folder: Parquet shards, or with `form="kaldi"` the VoicePrivacy layout."""
    from veilmeter.data.formats import kaldi, parquet

    target = Path(path)
    wanted = form or target.suffix.removeprefix(".") or "parquet"
    if wanted in ("ark", "scp"):
        kaldi.write_ark(embeddings, target.with_suffix(".ark"), target.with_suffix(".scp"))
        kaldi.write_meta(embeddings, target.parent / "meta")
    elif wanted == "kaldi":
        kaldi.write_xvector_folder(embeddings, target)
    elif wanted == "npz":
        from veilmeter.data.formats.npz import write_npz

        write_npz(embeddings, target)
    elif wanted in ("h5", "hdf5"):
        from veilmeter.data.formats.h5 import write_h5

        write_h5(embeddings, target)
    elif wanted == "parquet" and target.suffix == ".parquet":
        parquet.write_shard(target, embeddings)
    elif wanted == "parquet":
        parquet.write_store(target, embeddings)
    else:
        raise InputError(f"vectors can't be written as {wanted!r}", path=target, fix=f"known: {KNOWN}")
