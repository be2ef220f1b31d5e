"""Embeddings from and to any format that is known, recognized by what is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from veilmeter.core.errors import InputError, Problem, refuse
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vector_file import Loaded, RawVectors, usable

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
    """What is in the file or folder, not yet judged."""
    root = Path(path)
    if not root.exists():
        raise InputError("there is no such file or folder", path=root)
    reader = _reader(root)
    if reader is None:
        raise InputError("no vectors are recognized here", path=root, fix=f"known: {KNOWN}")
    return reader(root)


def _reader(path: Path) -> Callable[[Path], RawVectors] | None:
    from veilmeter.data.formats import kaldi, parquet, speaker_vectors
    from veilmeter.data.formats.dataset import holds_audio

    if path.is_dir():
        shards = parquet.shard_files(path)
        if shards and not holds_audio(shards[0]):
            return parquet.read_store
        if speaker_vectors.is_vector_folder(path):
            return speaker_vectors.read_vector_folder
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
        raise InputError(f"this is no {form} file, though its name says so", path=path)

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
