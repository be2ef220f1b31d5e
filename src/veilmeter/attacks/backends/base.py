"""What a back end is: it turns two sets of recordings' vectors into one score.

`project` is applied to every utterance's vector; the results are averaged over the utterances of an enrollment or of a
conversation; `compare` scores averages against averages and may use how many utterances each stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.discriminant import shrunk as shrunk
from veilmeter.metrics.discriminant import unit64 as unit64

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Averages:
    """Mean projected vectors, one row per group of utterances, and how many utterances each row stands for."""

    vectors: Array
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, rows: ArrayLike) -> Averages:
        index = np.asarray(rows)
        return Averages(self.vectors[index], self.counts[index])


class Backend(Protocol):
    """Scores are higher for the same speaker. `name` says in a few words what it is, for tables."""

    @property
    def name(self) -> str: ...

    def project(self, vectors: ArrayLike) -> Array:
        """Every utterance's vector in the back end's own space."""
        ...

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        """A score for every row of `enrollment` (rows) against every row of `test` (columns)."""
        ...


def average(projected: Array, codes: ArrayLike, groups: int | None = None) -> Averages:
    """The mean of the rows that share a code.

    >>> average(np.array([[1.0, 0], [3, 0], [0, 5]]), [0, 0, 1])
    Averages(vectors=array([[2., 0.],
           [0., 5.]]), counts=array([2, 1]))
    """
    index = np.asarray(codes, np.int64)
    k = int(index.max()) + 1 if groups is None else groups
    counts = np.bincount(index, minlength=k)
    if not counts.all():
        raise InputError(f"{int((counts == 0).sum())} groups have no utterance")
    order = np.argsort(index, kind="stable")
    totals = np.add.reduceat(projected[order], np.concatenate(([0], np.cumsum(counts)[:-1])), axis=0)
    return Averages(totals / counts[:, None], counts)


def single(projected: Array) -> Averages:
    """Every utterance by itself."""
    return Averages(projected, np.ones(len(projected), np.int64))


def cosines(enrollment: Averages, test: Averages) -> Array:
    """unit(mean) against unit(mean), as in Vauquier et al. 2025."""
    scores: Array = unit64(enrollment.vectors) @ unit64(test.vectors).T
    return scores


@dataclass(frozen=True, eq=False)
class Cosine:
    """Angle between x = unit(mean of unit vectors).

    >>> round(float(Cosine().compare(single(np.array([[1.0, 0]])), single(np.array([[1.0, 1.0]])))[0, 0]), 4)
    0.7071
    """

    name: str = "cosine"
    is_cosine = True

    def project(self, vectors: ArrayLike) -> Array:
        return unit64(vectors)

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        return cosines(enrollment, test)


@dataclass(frozen=True, eq=False)
class CenteredCosine:
    """The same once a mean was taken off, which undoes an offset that every recording shares.

    The two sides may have means of their own: clear and protected speech lie in different places.
    """

    mean: Array
    name: str = "centered cosine"
    is_cosine = True

    @classmethod
    def fit(cls, vectors: ArrayLike) -> CenteredCosine:
        return cls(unit64(vectors).mean(axis=0))

    def project(self, vectors: ArrayLike) -> Array:
        return unit64(unit64(vectors) - self.mean)

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        return cosines(enrollment, test)


def training_set(vectors: ArrayLike, speakers: ArrayLike, what: str) -> tuple[Array, NDArray[np.int64], int]:
    """Vectors and speaker codes fit for training `what`; raises where nothing could be learned."""
    x = np.asarray(vectors, np.float64)
    if x.ndim != 2:
        raise InputError(f"{what} is trained on a table of vectors, one row per utterance")
    _, codes = np.unique(np.asarray(speakers), return_inverse=True)
    if len(codes) != len(x):
        raise InputError(f"{what}: {len(x)} vectors but {len(codes)} speakers")
    counts = np.bincount(codes)
    if len(counts) < 3 or len(x) - len(counts) < 3:
        raise InputError(
            f"{what} can't be trained on {len(x)} utterances of {len(counts)} speakers",
            fix="give at least 3 speakers with several utterances each, or cut utterances into segments (--segments)",
        )
    return x, codes, len(counts)


def scatter(x: Array, codes: NDArray[np.int64], k: int) -> tuple[Array, Array, Array]:
    """Within-class covariance, between-class covariance of the class means, and the grand mean."""
    averages = average(x, codes, k)
    mean = x.mean(axis=0)
    deviations = x - averages.vectors[codes]
    within = deviations.T @ deviations / max(1, len(x) - k)
    centered = averages.vectors - mean
    weights = averages.counts / averages.counts.sum()
    between = (centered * weights[:, None]).T @ centered
    return within, between, mean


class _CosineKind:
    about = "x = unit(mean of unit vectors), and the angle between both"
    needs_training = False

    def untrained(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        return Cosine(), None

    def trained(self, training: Embeddings, dimension: int | None) -> Backend:
        return Cosine()


class _CenteredCosineKind:
    about = "the same after a mean was taken off: that of the training speech, or of each side by itself"
    needs_training = False

    def untrained(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        # Each side has a mean of its own: clear and protected speech lie in different places.
        return CenteredCosine.fit(enroll.vectors), CenteredCosine.fit(test.vectors)

    def trained(self, training: Embeddings, dimension: int | None) -> Backend:
        return CenteredCosine.fit(training.vectors)


COSINE, CENTERED_COSINE = _CosineKind(), _CenteredCosineKind()
