"""Vectors in NumPy's npz (`ids`, `vectors`, `speakers` and further columns, or one array per id) and npy, whose ids
are in a list beside it. Pickled objects are refused."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.files import BROKEN_ARCHIVE, check_input, read_input_text, whole_file
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.kaldi import with_meta
from veilmeter.data.formats.vectors import RawVectors

# Deflate can blow a file up a thousand times; honest vectors hardly shrink at all.
_LARGEST_EXPANSION = 100
LARGEST_TABLE = 1 << 33  # bytes of a file of vectors
_SMALL = 1 << 24
SAVE = "save it where you trust it: np.savez(file, ids=list(d), vectors=np.stack(list(d.values())), speakers=...)"


def read_npz(path: Path) -> RawVectors:
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_bombs(archive, path)
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise InputError("two of its arrays have one name", path=path, fix="save it again")
            if members and not {"ids", "vectors", "speakers"} & members.keys():
                return _of_each_id(archive, members, path)
            for name in ("ids", "vectors"):
                if name not in members:
                    there = ", ".join(sorted(members)[:8]) + (", ..." if len(members) > 8 else "")
                    raise InputError(
                        f"no array {name!r}, only {there or 'nothing'}",
                        path=path,
                        fix="save arrays called ids, vectors and speakers: np.savez(file, ids=.., vectors=.., ...)",
                    )
            arrays = {name: _member(archive, info, path) for name, info in members.items()}
    except InputError:
        raise
    except BROKEN_ARCHIVE as error:
        raise InputError(f"corrupt npz file: {error}", path=path) from None
    vectors = arrays.pop("vectors")
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or vectors.shape[1] == 0:
        raise InputError(f"'vectors' must be a table of numbers, not {vectors.dtype} {vectors.shape}", path=path)
    ids = _texts(arrays.pop("ids"), "ids", len(vectors), path)
    speakers = _texts(arrays.pop("speakers"), "speakers", len(vectors), path) if "speakers" in arrays else None
    durations = None
    if "durations" in arrays:
        durations = arrays.pop("durations")
        if durations.shape != (len(vectors),) or durations.dtype.kind not in "fiu":
            raise InputError(f"'durations' must be {len(vectors)} numbers", path=path)
        durations = durations.astype(np.float64)
    attributes = {
        name: _texts(array, name, len(vectors), path)
        for name, array in arrays.items()
        if array.shape == (len(vectors),) and array.dtype.kind in "UTiub"
    }
    with np.errstate(over="ignore", invalid="ignore"):
        table = vectors if isinstance(vectors, np.memmap) else np.asarray(vectors, np.float32)
    raw = RawVectors(path, ids, table, speakers, attributes, durations)
    return raw if speakers is not None else with_meta(raw, path.parent)


def _of_each_id(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], path: Path) -> RawVectors:
    """One array per id, as `np.savez(file, **vectors)` writes a dictionary."""
    arrays = {name: np.squeeze(_member(archive, info, path)) for name, info in members.items()}
    wrong = next((name for name, array in arrays.items() if array.ndim != 1 or array.dtype.kind not in "fiu"), None)
    if wrong is not None:
        raise InputError(f"neither arrays called ids and vectors nor one vector per id: {wrong!r}", path=path, fix=SAVE)
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = [np.asarray(array, np.float32) for array in arrays.values()]
    return with_meta(RawVectors(path, list(arrays), vectors), path.parent)


def read_npy(path: Path) -> RawVectors:
    """A table of vectors, with one id per line in a list beside it."""
    check_input(path, most=LARGEST_TABLE)
    try:
        with np.errstate(over="ignore"):  # of a shape that no file can have
            table = np.load(path, allow_pickle=False, mmap_mode="r")
    except BROKEN_ARCHIVE as error:
        if "pickle" in str(error).lower() or "objects" in str(error):
            raise InputError("it holds pickled objects, which are never loaded", path=path, fix=SAVE) from None
        raise InputError("corrupt npy file", path=path) from None
    if table.ndim != 2 or table.dtype.kind not in "fiu" or table.shape[1] == 0:
        raise InputError(f"not a table of vectors but {table.dtype} {table.shape}", path=path, fix=SAVE)
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.asarray(table, np.float32)
    return with_meta(RawVectors(path, ids_beside(path, len(vectors)), vectors), path.parent)


def ids_beside(path: Path, count: int) -> list[str]:
    """The ids of a table without any: one per line in NAME.txt, NAME.ids or ids.txt beside it."""
    lists = [path.with_suffix(".txt"), path.with_suffix(".ids"), path.parent / "ids.txt"]
    found = next((file for file in lists if file.is_file()), None)
    if found is None:
        fix = f"put a list {lists[0].name} beside it, with one id per line in the order of the rows"
        raise InputError("the speakers of these vectors are unknown", path=path, fix=fix)
    ids = [line.strip() for line in read_input_text(found).split("\n") if line.strip()]
    if len(ids) != count:
        raise InputError(f"{len(ids):,} ids for {count:,} vectors", path=found, fix="give one id per line and vector")
    return ids


def refuse_bombs(archive: zipfile.ZipFile, path: Path) -> None:
    """An archive that would unpack to far more than it is."""
    size = sum(info.file_size for info in archive.infolist())
    if size > max(_SMALL, _LARGEST_EXPANSION * path.stat().st_size):
        raise InputError(f"unpacked it would be {size} bytes, far more than vectors can shrink", path=path)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> NDArray[Any]:
    with archive.open(info) as handle:
        shape, fortran, dtype = _header(handle, info, path)
        start = handle.tell()
        count = 1
        for length in shape:
            count *= length
        if dtype.hasobject:
            raise InputError(
                f"array {info.filename!r} holds pickled objects, which are never loaded",
                path=path,
                fix="save it as numbers or as text (dtype str)",
            )
        if count * dtype.itemsize != info.file_size - start:
            raise InputError(f"array {info.filename!r} does not have the length it claims", path=path)
        plain = info.compress_type == zipfile.ZIP_STORED and dtype == np.float32 and len(shape) == 2 and count > 0
        if plain and not fortran and not info.flag_bits & 1:
            offset = _data_offset(info, path) + start
            return np.memmap(path, np.float32, "r", offset=offset, shape=shape)
        data = handle.read()
        array = np.frombuffer(data, dtype, count)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _header(handle: IO[bytes], info: zipfile.ZipInfo, path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(handle)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(handle)
    except (ValueError, TypeError, SyntaxError, KeyError, RecursionError, MemoryError):
        raise InputError(f"{info.filename!r} in it is not a NumPy array", path=path) from None
    return shape, fortran, dtype


def _data_offset(info: zipfile.ZipInfo, path: Path) -> int:
    """Where a stored member's bytes begin: after its local header, whose two last fields are variable in length."""
    with open(path, "rb") as handle:
        handle.seek(info.header_offset)
        header = handle.read(30)
        name_length, extra_length = struct.unpack("<HH", header[26:30])
    return int(info.header_offset + 30 + name_length + extra_length)


def _texts(array: NDArray[Any], name: str, n: int, path: Path) -> list[str]:
    if array.shape != (n,) or array.dtype.kind not in "UTSiub":
        raise InputError(f"{name!r} must be {n} words, not {array.dtype} {array.shape}", path=path)
    try:
        if array.dtype.kind == "S":
            return [value.decode("utf-8") for value in array.tolist()]
        return [str(value) for value in array.tolist()]
    except (UnicodeDecodeError, ValueError):
        raise InputError(f"{name!r} holds text that is not UTF-8", path=path) from None


def write_npz(embeddings: Embeddings, path: Path) -> None:
    columns: dict[str, Any] = {name: np.array(list(column), str) for name, column in embeddings.attributes.items()}
    for name in ("ids", "vectors", "speakers", "durations"):
        if name in columns:
            raise InputError(f"a further column can't be called {name!r}", path=path)
    if embeddings.durations is not None:
        columns["durations"] = embeddings.durations
    with whole_file(path) as temporary, open(temporary, "wb") as out:
        np.savez(
            out,
            allow_pickle=False,
            ids=np.array(list(embeddings.utterances), str),
            vectors=np.ascontiguousarray(embeddings.vectors, np.float32),
            speakers=np.array(list(embeddings.speakers), str),
            **columns,
        )
