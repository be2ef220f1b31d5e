"""A learned inversion, which moves anonymized vectors back to the clear ones; saved without pickle.

Before a rotation is learned, the vectors of each side are centered, projected by PCA and scaled to unit length.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter._version import __version__
from veilmeter.attacks.inversion.procrustes import is_orthogonal
from veilmeter.core.errors import InputError
from veilmeter.core.files import BROKEN_ARCHIVE, whole_file
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.npz import refuse_bombs

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """x -> (x - mean) basis, then length 1. Without centering `mean` is empty, without PCA `basis` is.

    >>> p = fit_preprocessing([[3.0, 4.0], [1.0, 0.0]])
    >>> p.apply([[3.0, 4.0]]).tolist()
    [[0.6, 0.8]]
    """

    mean: Floats
    basis: Floats
    dimension: int

    @property
    def components(self) -> int:
        """The dimension of what comes out."""
        return int(self.basis.shape[1]) if self.basis.size else self.dimension

    def project(self, vectors: ArrayLike) -> Floats:
        """Centered and projected, not yet of length 1: what an enrollment model is averaged from."""
        x = np.asarray(vectors, float)
        if x.ndim != 2 or x.shape[1] != self.dimension:
            raise InputError(f"this map was learned on {self.dimension}-d vectors, these are {x.shape}")
        if self.mean.size:
            x = x - self.mean
        return x @ self.basis if self.basis.size else x

    def apply(self, vectors: ArrayLike) -> Floats:
        """As the rotation sees them: projected, with length 1."""
        return unit_rows(self.project(vectors))

    def restore(self, projected: ArrayLike) -> Floats:
        """Back into the space of the original vectors (their length is lost, and what PCA dropped is the mean)."""
        x = np.asarray(projected, float)
        if self.basis.size:
            x = x @ self.basis.T
        return x + self.mean if self.mean.size else x


def fit_preprocessing(vectors: ArrayLike, *, pca: int | None = None, center: bool = False) -> Preprocessing:
    """Fit on one side's training vectors. PCA is exact (full SVD; signs fixed, so that nothing is left to chance)."""
    x = np.asarray(vectors, float)
    count, dimension = x.shape
    mean = x.mean(0) if center or pca else np.zeros(0)
    basis = np.zeros((0, 0))
    if pca:
        if pca < 1 or pca > min(count, dimension):
            raise InputError(
                f"PCA to {pca} dimensions needs at least {pca} training vectors of at least that dimension; "
                f"here are {count} of {dimension}-d",
                fix=f"choose at most {min(count, dimension)} or give more vectors",
            )
        _, values, vt = np.linalg.svd(x - mean, full_matrices=False)
        if values[0] <= 1e-12 * max(1.0, float(np.abs(x).max())):
            raise InputError("all training vectors are the same: there is nothing to learn from")
        basis = vt[:pca].T
        # An SVD leaves the signs open; the largest entry of each direction is made positive.
        basis = basis * np.sign(basis[np.argmax(np.abs(basis), axis=0), np.arange(pca)])
    return Preprocessing(mean, basis, dimension)


def unit_rows(vectors: ArrayLike) -> Floats:
    """Rows with length 1; a row of zeros (the mean itself, after centering) stays zero."""
    x = np.asarray(vectors, float)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: Floats = x / np.where(norms > 0, norms, 1.0)
    return scaled


FORMAT = "veilmeter-inversion-map-1"
EVERYBODY = ""


@dataclass(frozen=True, eq=False)
class Alignment:
    """One rotation W with the preprocessing of both sides: restored = prepare(anonymized) W (paper 002, eq. 2)."""

    clear: Preprocessing
    anonymized: Preprocessing
    rotation: Floats

    def __post_init__(self) -> None:
        expected = (self.anonymized.components, self.clear.components)
        if self.rotation.shape != expected or not is_orthogonal(self.rotation):
            raise InputError(f"the map's rotation must be an orthogonal {expected} matrix")

    def restore(self, anonymized: ArrayLike) -> Floats:
        """Anonymized vectors as the attacker sees their clear counterparts: length 1, in the space of `see`."""
        return self.anonymized.apply(anonymized) @ self.rotation

    def see(self, clear: ArrayLike) -> Floats:
        """Clear vectors in the space where restored ones live, with length 1."""
        return self.clear.apply(clear)

    def model(self, clear: ArrayLike) -> Floats:
        """An enrollment model: the plain mean of raw vectors, seen in that space, with length 1."""
        model: Floats = unit_rows(self.clear.project(clear).mean(0, keepdims=True))[0]
        return model

    def anonymize(self, clear: ArrayLike) -> Floats:
        """The other way round: where the rotation says that the anonymizer puts these clear vectors."""
        return self.clear.apply(clear) @ self.rotation.T

    def to_clear_space(self, restored: ArrayLike) -> Floats:
        """Restored vectors in the coordinates of the clear extractor."""
        return self.clear.restore(restored)


@dataclass(frozen=True, eq=False)
class InversionMap:
    """The alignments by group (one for everybody, or one per gender), and how they were learned.

    `column` is the attribute that chooses the alignment; with a single alignment it is empty.
    """

    alignments: Mapping[str, Alignment]
    column: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.alignments:
            raise InputError("a map without any rotation is none")

    @cached_property
    def dimension(self) -> int:
        """The dimension of the vectors that `restore` gives."""
        return max(alignment.clear.components for alignment in self.alignments.values())

    def groups(self, embeddings: Embeddings) -> dict[str, NDArray[np.int64]]:
        """Which rows each alignment takes care of."""
        if not self.column:
            return {EVERYBODY: np.arange(len(embeddings))}
        values = attribute(embeddings, self.column)
        unknown = sorted(set(values) - set(self.alignments))
        if unknown:
            raise InputError(
                f"the map knows {self.column} {', '.join(sorted(self.alignments))}, not {unknown[0]!r}",
                path=embeddings.source or None,
                fix=f"leave these utterances out or learn one map for everybody (without --by-{self.column})",
            )
        return {value: np.flatnonzero(values == value) for value in self.alignments if (values == value).any()}

    def restore(self, anonymized: Embeddings) -> Embeddings:
        """The anonymized embeddings moved back; compare them with `see` of clear ones."""
        return self._each(anonymized, Alignment.restore)

    def see(self, clear: Embeddings) -> Embeddings:
        """Clear embeddings as restored ones are to be compared with."""
        return self._each(clear, Alignment.see)

    def project(self, clear: Embeddings) -> Embeddings:
        """As `see`, but without scaling to length 1: enrollment models are plain means of these."""
        return self._each(clear, lambda alignment, rows: alignment.clear.project(rows))

    def anonymize(self, clear: Embeddings) -> Embeddings:
        """The inverse: clear embeddings moved to where the anonymizer would put them."""
        return self._each(clear, Alignment.anonymize)

    def _each(self, embeddings: Embeddings, move: Any) -> Embeddings:
        out = np.zeros((len(embeddings), self.dimension))
        for group, rows in self.groups(embeddings).items():
            moved = move(self.alignments[group], embeddings.vectors[rows])
            out[rows, : moved.shape[1]] = moved
        return embeddings.with_vectors(out)

    def save(self, path: str | Path) -> None:
        """As one .npz of plain arrays and a JSON text; nothing in it is code."""
        arrays: dict[str, NDArray[Any]] = {}
        about = {
            "format": FORMAT,
            "veilmeter": __version__,
            "column": self.column,
            "groups": list(self.alignments),
            "facts": dict(self.facts),
        }
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        for number, alignment in enumerate(self.alignments.values()):
            arrays[f"{number}/rotation"] = alignment.rotation
            for side, prepared in (("clear", alignment.clear), ("anonymized", alignment.anonymized)):
                arrays[f"{number}/{side}/mean"] = prepared.mean
                arrays[f"{number}/{side}/basis"] = prepared.basis
                arrays[f"{number}/{side}/dimension"] = np.array(prepared.dimension)
        with whole_file(path) as temporary, open(temporary, "wb") as handle:
            np.savez(handle, allow_pickle=False, **arrays)


def identity_map(dimension: int) -> InversionMap:
    """No inversion at all: vectors of length 1 as they are, to show what an attacker gets without a map."""
    nothing = Preprocessing(np.zeros(0), np.zeros((0, 0)), dimension)
    return InversionMap({EVERYBODY: Alignment(nothing, nothing, np.eye(dimension))}, "", {"method": "none"})


def load_map(path: str | Path) -> InversionMap:
    """A map that `InversionMap.save` wrote. Files are not trusted: no pickle, and every array is checked."""
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_bombs(archive, Path(path))
        with np.load(path, allow_pickle=False) as stored:
            about = json.loads(bytes(stored["about"].astype(np.uint8)))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise InputError("not an inversion map, or one of another version", path=path)
            alignments = {
                str(group): Alignment(
                    _read_side(stored, f"{number}/clear"),
                    _read_side(stored, f"{number}/anonymized"),
                    _array(stored, f"{number}/rotation", 2),
                )
                for number, group in enumerate(about["groups"])
            }
            return InversionMap(alignments, str(about["column"]), dict(about["facts"]))
    except FileNotFoundError:
        raise InputError("there is no such file", path=path) from None
    except InputError as error:
        raise InputError(error.what, path=path, fix=error.fix) from None
    except BROKEN_ARCHIVE as error:
        raise InputError(f"not an inversion map: {error}", path=path) from None


def _array(stored: Any, name: str, dimensions: int) -> Floats:
    array = np.asarray(stored[name])
    if array.dtype.kind != "f" or array.ndim != dimensions or not np.isfinite(array).all():
        raise InputError(f"the map's {name} is not a table of finite numbers")
    return array.astype(float)


def _read_side(stored: Any, prefix: str) -> Preprocessing:
    dimension = int(stored[f"{prefix}/dimension"])
    mean, basis = _array(stored, f"{prefix}/mean", 1), _array(stored, f"{prefix}/basis", 2)
    if mean.size not in (0, dimension) or (basis.size and basis.shape[0] != dimension):
        raise InputError(f"the map's {prefix} has parts that do not fit together")
    return Preprocessing(mean, basis, dimension)


def attribute(embeddings: Embeddings, column: str) -> NDArray[np.object_]:
    """A column that every utterance must have."""
    values = embeddings.attributes.get(column)
    if values is None or not all(values):
        raise InputError(
            f"not every utterance has a {column}",
            path=embeddings.source or None,
            fix=f"add a {column} column (Kaldi: meta/spk2{column}) or learn one map for everybody",
        )
    return values
