"""Embeddings: speaker vectors with the utterance and the speaker they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError

Strings = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors (n x d, float32) of n utterances.

    `attributes` are further columns, one string per utterance (`gender`, `session`, `accent`...); an empty string means
    unknown. `durations` are seconds. `source` says where they came from, for messages.

    Attributes
    ----------
    vectors : array_like
        One row per utterance.
    utterances, speakers : iterable of str
        The id and the speaker of each row.
    attributes : mapping, optional
        Further columns, one string per utterance.
    durations : array_like, optional
        Seconds of each utterance.
    source : str
        Where they came from, for messages.

    Examples
    --------
    >>> e = Embeddings(vectors=[[3, 4], [0, 2]], utterances=["a-1", "b-1"], speakers=["a", "b"])
    >>> e
    Embeddings(2 utterances of 2 speakers, 2-d)
    >>> e.unit
    array([[0.6, 0.8],
           [0. , 1. ]], dtype=float32)
    """

    vectors: NDArray[np.float32]
    utterances: Strings
    speakers: Strings
    attributes: Mapping[str, Strings] = field(default_factory=dict)
    durations: NDArray[np.float64] | None = None
    source: str = ""

    def __init__(
        self,
        vectors: ArrayLike,
        utterances: Iterable[str],
        speakers: Iterable[str],
        attributes: Mapping[str, Iterable[str]] | None = None,
        durations: ArrayLike | None = None,
        source: str = "",
    ) -> None:
        put = object.__setattr__
        mapped = isinstance(vectors, np.memmap) and vectors.dtype == np.float32
        array = vectors if mapped else np.asarray(vectors, np.float32)
        put(self, "vectors", array)
        put(self, "utterances", strings(utterances))
        put(self, "speakers", strings(speakers))
        put(self, "attributes", {key: strings(column) for key, column in (attributes or {}).items()})
        put(self, "durations", None if durations is None else np.asarray(durations, float))
        put(self, "source", source)
        self._validate()

    def _validate(self) -> None:
        where = self.source or None
        if self.vectors.ndim != 2:
            raise InputError("the vectors must form a table, one row per utterance", path=where)
        n = len(self.vectors)
        columns: dict[str, Any] = {"utterances": self.utterances, "speakers": self.speakers, **self.attributes}
        if self.durations is not None:
            columns["durations"] = self.durations
        for name, column in columns.items():
            if len(column) != n:
                raise InputError(f"there are {n} vectors but {len(column)} {name}", path=where)
        if n == 0:
            raise InputError("no vectors", path=where)
        if len(self.utterance_rows) != n:
            seen: set[str] = set()
            twice = next(u for u in self.utterances if u in seen or seen.add(u))  # type: ignore[func-returns-value]
            raise InputError(f"utterance {twice!r} occurs twice", path=where, fix="give every utterance its own id")
        squared = np.einsum("ij,ij->i", self.vectors, self.vectors, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(squared) | (squared == 0))
        if len(bad):
            first = self.utterances[bad[0]]
            raise InputError(
                f"{len(bad)} vectors are zero or not finite, the first is that of {first!r}",
                path=where,
                fix="leave these utterances out; `veilmeter check` lists them",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be found again: another process gets vectors and names only."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"Embeddings({len(self)} utterances of {len(self.names)} speakers, {self.dimension}-d)"

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def utterance_rows(self) -> dict[str, int]:
        """Where each utterance is."""
        return {utterance: row for row, utterance in enumerate(self.utterances)}

    @cached_property
    def _factorized(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        codes: dict[str, int] = {}
        index = np.fromiter((codes.setdefault(s, len(codes)) for s in self.speakers), np.int64, len(self))
        return tuple(codes), index

    @property
    def names(self) -> tuple[str, ...]:
        """The speakers, in the order of their first utterance."""
        return self._factorized[0]

    @property
    def codes(self) -> NDArray[np.int64]:
        """Each utterance's speaker as an index into `names`."""
        return self._factorized[1]

    @cached_property
    def unit(self) -> NDArray[np.float32]:
        """The vectors with length 1."""
        return unit(self.vectors)

    def take(self, rows: ArrayLike) -> Embeddings:
        """A part, by a mask or by row numbers."""
        index = np.asarray(rows)
        if index.dtype == bool:
            index = np.flatnonzero(index)
        return Embeddings(
            self.vectors[index],
            self.utterances[index],
            self.speakers[index],
            {key: column[index] for key, column in self.attributes.items()},
            None if self.durations is None else self.durations[index],
            self.source,
        )

    def of_utterances(self, wanted: Sequence[str]) -> Embeddings:
        """These utterances, in this order."""
        missing = [u for u in wanted if u not in self.utterance_rows]
        if missing:
            raise InputError(f"{len(missing)} utterances have no vector, the first is {missing[0]!r}", path=self.source)
        return self.take(np.array([self.utterance_rows[u] for u in wanted], dtype=np.int64))

    def with_vectors(self, vectors: ArrayLike) -> Embeddings:
        """Other vectors of the same utterances, as after an attack or a back end."""
        return Embeddings(vectors, self.utterances, self.speakers, self.attributes, self.durations, self.source)

    def with_attributes(self, attributes: Mapping[str, Iterable[str]]) -> Embeddings:
        """Other columns for the same utterances."""
        return Embeddings(self.vectors, self.utterances, self.speakers, attributes, self.durations, self.source)


DRAW_COLUMNS = ("draw", "codeword", "transformation")
PSEUDO = "pseudo_"  # before the name of a column that describes an anonymized recording, where both sides have it


def draw_names(embeddings: Embeddings) -> Strings | None:
    """The draw of an anonymizer's finite set that each recording got, as a column of its copies names it; None where
    no column does. An empty string means unknown.

    >>> draw_names(Embeddings([[1.0], [2.0]], ["x", "y"], ["a", "b"], {"draw": ["3", ""]})).tolist()
    ['3', '']
    """
    for name in (form for column in DRAW_COLUMNS for form in (PSEUDO + column, column)):
        column = embeddings.attributes.get(name)
        if column is not None and any(column):
            return column
    return None


def concatenate(parts: Sequence[Embeddings]) -> Embeddings:
    """Several sets as one; attributes that not every part has are left out."""
    if len({part.dimension for part in parts}) > 1:
        raise InputError(
            f"vectors of {', '.join(str(part.dimension) for part in parts)} dimensions can't be one set",
            path=parts[-1].source or None,
        )
    common = [key for key in parts[0].attributes if all(key in part.attributes for part in parts)]
    durations = [part.durations for part in parts if part.durations is not None]
    return Embeddings(
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.utterances for part in parts]),
        np.concatenate([part.speakers for part in parts]),
        {key: np.concatenate([part.attributes[key] for part in parts]) for key in common},
        np.concatenate(durations) if len(durations) == len(parts) else None,
        ", ".join(part.source for part in parts if part.source),
    )


def unit(vectors: ArrayLike) -> NDArray[np.float32]:
    """Rows scaled to length 1."""
    x = np.asarray(vectors, np.float32)
    if x.ndim != 2:
        norms = np.sqrt(np.einsum("...j,...j->...", x, x, dtype=np.float64))
        return np.asarray(x / norms[..., None], np.float32)
    scaled = np.empty(x.shape, np.float32)
    for start in range(0, len(x), 65536):  # in pieces: the division is in float64, and there may be a million rows
        piece = x[start : start + 65536]
        norms = np.sqrt(np.einsum("ij,ij->i", piece, piece, dtype=np.float64))
        np.divide(piece, norms[:, None], out=scaled[start : start + 65536], casting="same_kind")
    return scaled


def unit64(vectors: ArrayLike) -> NDArray[np.float64]:
    """Rows of length 1 in double precision; a zero row stays zero."""
    x = np.asarray(vectors, np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    return x / np.where(norms > 0, norms, 1.0)[:, None]


def strings(values: Iterable[str]) -> Strings:
    """An array of Python strings: ids differ in length, and speakers repeat."""
    items = list(values)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
