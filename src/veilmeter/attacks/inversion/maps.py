"""A learned inversion: what to do to an anonymized vector to get back to the clear one; saved without pickle."""

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
from veilmeter.attacks.inversion.preprocessing import Preprocessing, unit_rows
from veilmeter.attacks.inversion.procrustes import is_orthogonal
from veilmeter.core.errors import InputError
from veilmeter.core.files import BROKEN_ARCHIVE, whole_file
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.npz import refuse_bombs

Floats = NDArray[np.float64]
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
        """Of the vectors that `restore` gives."""
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
    """No inversion at all: vectors of length 1 as they are, to say what an attacker gets without a map."""
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
                raise InputError("this is no inversion map, or one of another version", path=path)
            alignments = {
                str(group): Alignment(
                    _stored_side(stored, f"{number}/clear"),
                    _stored_side(stored, f"{number}/anonymized"),
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
        raise InputError(f"this is no inversion map: {error}", path=path) from None


def _array(stored: Any, name: str, dimensions: int) -> Floats:
    array = np.asarray(stored[name])
    if array.dtype.kind != "f" or array.ndim != dimensions or not np.isfinite(array).all():
        raise InputError(f"the map's {name} is not a table of finite numbers")
    return array.astype(float)


def _stored_side(stored: Any, prefix: str) -> Preprocessing:
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
