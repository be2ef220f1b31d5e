"""Reads Kaldi's `plda` file, text or binary, and the mean and LDA matrix that its recipes put in front.

Written by `ivector-compute-plda`: the token <Plda>, the mean, the transform, psi, the token </Plda>.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from veilmeter.attacks.backends.base import Array, Averages, unit64
from veilmeter.attacks.backends.lda import PLDA
from veilmeter.core.errors import InputError

LARGEST = 100_000  # dimensions; a header that promises more is broken or hostile


def read_plda(path: str | Path) -> PLDA:
    """The model, scored as Kaldi's `ivector-plda-scoring` does (length normalization inside the model)."""
    data = _read(path)
    mean, transform, psi = _binary(data, path) if data[:2] == b"\0B" else _text(data, path)
    try:
        return PLDA(mean, transform, psi, length="kaldi")
    except InputError as error:
        raise InputError(error.what, path=path) from None


def _read(path: str | Path) -> bytes:
    file = Path(path)
    if not file.is_file():
        raise InputError("there is no such file", path=path)
    if file.stat().st_size > 2**31:
        raise InputError("this is too large for a PLDA model", path=path)
    return file.read_bytes()


def _binary(data: bytes, path: str | Path) -> tuple[Array, Array, Array]:
    place = 2
    if data[place : place + 7] != b"<Plda> ":
        raise _not_plda(path)
    place += 7
    parts: list[Array] = []
    for wanted in ("V", "M", "V"):
        part, place = _binary_array(data, place, wanted, path)
        parts.append(part)
    if data[place : place + 7] != b"</Plda>":
        raise InputError("the file ends before </Plda>: it was cut off", path=path)
    return parts[0], parts[1], parts[2]


def _binary_array(data: bytes, place: int, wanted: str, path: str | Path) -> tuple[Array, int]:
    kind = data[place : place + 3].decode("ascii", "replace")
    if len(kind) != 3 or kind[0] not in "FD" or kind[1:] != wanted + " ":
        raise InputError(f"a {'vector' if wanted == 'V' else 'matrix'} was expected at byte {place}", path=path)
    place += 3
    sizes = []
    for _ in range(1 if wanted == "V" else 2):
        if data[place : place + 1] != b"\4" or len(data) < place + 5:
            raise InputError(f"a size was expected at byte {place}", path=path)
        sizes.append(struct.unpack_from("<i", data, place + 1)[0])
        place += 5
    dtype = np.dtype("<f4" if kind[0] == "F" else "<f8")
    if any(not 0 < size <= LARGEST for size in sizes) or len(data) < place + int(np.prod(sizes)) * dtype.itemsize:
        raise InputError(f"the size {' x '.join(map(str, sizes))} at byte {place} can't be right", path=path)
    count = int(np.prod(sizes))
    array = np.frombuffer(data, dtype, count, place).astype(np.float64).reshape(sizes)
    return _finite(array, path), place + count * dtype.itemsize


def _text(data: bytes, path: str | Path) -> tuple[Array, Array, Array]:
    text = data.decode("utf-8", "replace")
    if not text.lstrip().startswith("<Plda>"):
        raise _not_plda(path)
    if "</Plda>" not in text:
        raise InputError("the file ends before </Plda>: it was cut off", path=path)
    blocks = re.findall(r"\[([^\[\]]*)\]", text)
    if len(blocks) != 3:
        raise InputError(f"a PLDA model has 3 arrays in brackets, this has {len(blocks)}", path=path)
    try:
        mean, psi = (np.array(blocks[i].split(), float) for i in (0, 2))
        transform = np.array([line.split() for line in blocks[1].splitlines() if line.strip()], float)
    except ValueError as error:
        raise InputError(f"the numbers can't be read: {error}", path=path) from None
    if transform.ndim != 2:
        raise InputError("the transform is not a matrix", path=path)
    return _finite(mean, path), _finite(transform, path), _finite(psi, path)


def _finite(array: Array, path: str | Path) -> Array:
    if not np.isfinite(array).all():
        raise InputError("the model holds numbers that are not finite", path=path)
    return array


def _not_plda(path: str | Path) -> InputError:
    return InputError("this is no PLDA model of Kaldi: it does not start with <Plda>", path=path)


class KaldiRecipe:
    """Kaldi's whole back end: take off `mean`, apply the LDA matrix, scale to length sqrt(d), then PLDA."""

    def __init__(self, plda: PLDA, mean: ArrayLike | None = None, lda: ArrayLike | None = None) -> None:
        self.plda = plda
        self.mean = None if mean is None else np.asarray(mean, float)
        self.lda = None if lda is None else np.asarray(lda, float)

    @property
    def name(self) -> str:
        return "Kaldi " + self.plda.name + (" after its LDA matrix" if self.lda is not None else "")

    def project(self, vectors: ArrayLike) -> Array:
        x = np.asarray(vectors, np.float64)
        if self.mean is not None:
            x = x - self._fits(self.mean, x.shape[1], "mean")
        if self.lda is not None:
            columns = self.lda.shape[1]
            if columns == x.shape[1] + 1:  # an affine transform carries its offset in the last column
                x = x @ self.lda[:, :-1].T + self.lda[:, -1]
            else:
                self._fits(self.lda[0], x.shape[1], "LDA matrix")
                x = x @ self.lda.T
        return self.plda.project(unit64(x) * np.sqrt(x.shape[1]))

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        return self.plda.compare(enrollment, test)

    @staticmethod
    def _fits(part: Array, dimension: int, what: str) -> Array:
        if len(part) != dimension:
            raise InputError(f"the {what} is for {len(part)}-d vectors, these have {dimension} dimensions")
        return part


def read_kaldi_recipe(plda: str | Path, mean: str | Path | None = None, lda: str | Path | None = None) -> KaldiRecipe:
    """`plda`, and where given `mean.vec` and `transform.mat`."""
    return KaldiRecipe(
        read_plda(plda), None if mean is None else _array(mean, 1), None if lda is None else _array(lda, 2)
    )


def _array(path: str | Path, dimensions: int) -> Array:
    """A vector or matrix by itself in a file, text or binary."""
    data = _read(path)
    if data[:2] == b"\0B":
        numbers, _ = _binary_array(data, 2, "V" if dimensions == 1 else "M", path)
        return numbers
    blocks = re.findall(r"\[([^\[\]]*)\]", data.decode("utf-8", "replace"))
    if len(blocks) != 1:
        raise InputError("one array in brackets was expected", path=path)
    try:
        rows = [[float(number) for number in line.split()] for line in blocks[0].splitlines() if line.strip()]
        array = np.array(rows, float)
    except ValueError as error:
        raise InputError(f"the numbers can't be read: {error}", path=path) from None
    if dimensions == 1:
        return _finite(array.reshape(-1), path)
    return _finite(array, path)
