"""The type of every back end, which turns two sets of recordings' vectors into one score; and all back ends by name.

`project` is applied to every utterance's vector; the results are averaged over the utterances of an enrollment or of a
conversation; `compare` scores averages against averages and may use how many utterances each stands for.

Every comparison with a person's known recordings has two options. The best of a person's recordings instead of their
mean counts where these differ among themselves (sessions, channels), above all at low rates of false alarms (VoxGuard
2025). Adaptive score normalization takes off what a recording or a person scores with its nearest strangers, so that
people who resemble many others are not named for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.attacks.material import Rows
from veilmeter.core.errors import InputError
from veilmeter.core.registry import Registry
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.embeddings import unit64 as unit64
from veilmeter.metrics.inference import shrunk as shrunk

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Averages:
    """Mean projected vectors, one row per group of utterances, and how many utterances each row stands for."""

    vectors: Array
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.vectors)


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

    Each side may have its own mean: clear and protected speech lie in different places.
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
    about = "cosine of the means of unit vectors"
    needs_training = False

    def build(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        return Cosine(), None

    def train(self, training: Embeddings, dimension: int | None) -> Backend:
        return Cosine()


class _CenteredCosineKind:
    about = "the same after subtracting a mean: that of the training speech, or of each side"
    needs_training = False

    def build(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        # Each side has its own mean: clear and protected speech lie in different places.
        return CenteredCosine.fit(enroll.vectors), CenteredCosine.fit(test.vectors)

    def train(self, training: Embeddings, dimension: int | None) -> Backend:
        return CenteredCosine.fit(training.vectors)


COSINE, CENTERED_COSINE = _CosineKind(), _CenteredCosineKind()


NEAREST = 20  # strangers that a score is compared with
LEAST_SPREAD = 1e-6
BEST, NORMALIZED = "best", "normalized"

Cohort = tuple[NDArray[Any], NDArray[Any]]  # mean and spread


@dataclass(frozen=True, slots=True)
class ScoringOptions:
    """How scores are made of comparisons; behind a colon in a back end's name, as in `cosine:best,normalized`."""

    best: bool = False
    normalized: bool = False

    @classmethod
    def parse(cls, spec: str) -> tuple[str, ScoringOptions]:
        """A back end's name and its options.

        >>> ScoringOptions.parse("lda:best"), ScoringOptions.parse("lda")[1] == ScoringOptions()
        (('lda', ScoringOptions(best=True, normalized=False)), True)
        """
        name, colon, words = spec.partition(":")
        options = words.split(",") if colon else []
        unknown = [word for word in options if word not in (BEST, NORMALIZED)]
        if unknown:
            raise InputError(
                f"{spec}: a back end has no option {unknown[0]!r}", fix=f"write {name}:{BEST} or {name}:{NORMALIZED}"
            )
        return name, cls(BEST in options, NORMALIZED in options)

    def __str__(self) -> str:
        words = [", best recording"] * self.best + [", normalized"] * self.normalized
        return "".join(words)


PLAIN = ScoringOptions()


def best_of_each(scores: NDArray[Any], codes: Rows, people: int) -> NDArray[Any]:
    """For every row, the best of each person's columns; `codes` say whose the columns are.

    >>> best_of_each(np.array([[1.0, 5, 3]]), np.array([1, 0, 1]), 2)
    array([[5., 3.]])
    """
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(people))
    return np.asarray(np.maximum.reduceat(scores[:, order], starts, axis=1))


def nearest(scores: NDArray[Any]) -> Cohort:
    """Mean and spread of the highest scores of each row; what is not to be looked at is -inf."""
    most = max(1, min(NEAREST, int(np.isfinite(scores).sum(axis=1).min())))
    top = -np.partition(-scores, most - 1, axis=1)[:, :most]
    return np.asarray(top.mean(axis=1)), np.asarray(np.maximum(top.std(axis=1), LEAST_SPREAD))


def normalize(raw: NDArray[Any], people: Cohort, tests: Cohort) -> NDArray[Any]:
    """Scores (tests x people) beside what each side scores with its nearest strangers (`nearest` of both)."""
    by_person = (raw - people[0]) / people[1]
    by_test = (raw - tests[0][:, None]) / tests[1][:, None]
    return np.asarray((by_person + by_test) / 2)


def without_own(scores: NDArray[Any], codes: Rows) -> NDArray[Any]:
    """People's scores with recordings (columns, whose owners `codes` are), -inf with their own."""
    return np.where(codes == np.arange(len(scores))[:, None], scores.dtype.type(-np.inf), scores)


class BackendKind(Protocol):
    """How a back end of one kind is made: from nothing but the two sides, or from training speech."""

    about: str
    needs_training: bool

    def build(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        """For both sides, or one for the enrollment and another for the trials; only without `needs_training`."""
        ...

    def train(self, training: Embeddings, dimension: int | None) -> Backend:
        """Fitted to training speech; `dimension` is that of the space it compares in, None for its own choice."""
        ...


def _is_kind(thing: object) -> bool:
    return all(hasattr(thing, name) for name in ("about", "needs_training", "build", "train"))


_HERE = "veilmeter.attacks.backends"

BACKENDS: Registry[BackendKind] = Registry(
    "back end",
    "veilmeter.backends",
    {
        "cosine": f"{_HERE}.base:COSINE",
        "centered-cosine": f"{_HERE}.base:CENTERED_COSINE",
        "lda": f"{_HERE}.lda:LDA_KIND",
        "plda": f"{_HERE}.lda:PLDA_KIND",
    },
    accepts=_is_kind,
)


def backend_kind(spec: str) -> BackendKind:
    """A back end by its name, whatever options stand behind a colon; an InputError where there is none."""
    return BACKENDS[ScoringOptions.parse(spec)[0]]


def refuse_unknown_backends(*specs: str | None) -> None:
    """An InputError where one of these is neither a back end nor one with options."""
    for spec in specs:
        if spec is not None:
            backend_kind(spec)
