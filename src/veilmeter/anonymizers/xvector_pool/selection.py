"""Who an utterance is made to sound like: the pool of x-vectors and the choice from it (papers 001-004, baseline B1).

Of the pool members of the wanted gender, the `furthest` ones from the source speaker (by cosine or PLDA); of these,
`drawn` at random; their average is the pseudo-speaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import unit

Vectors = NDArray[np.float32]

GENDER_RULES = ("random", "same", "cross")
DISTANCES = ("cosine", "plda")
LEVELS = ("speaker", "utterance")
GENDERS = ("f", "m")


@dataclass(frozen=True, slots=True)
class Rule:
    """How to choose. The papers take the 200 furthest of a pool of about 1,160 and average 100 of them, same gender."""

    furthest: int = 60
    drawn: int = 10
    gender: str = "random"
    distance: str = "cosine"
    per: str = "speaker"

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.gender, GENDER_RULES, "gender rule"),
            (self.distance, DISTANCES, "distance"),
            (self.per, LEVELS, "unit to draw for"),
        ):
            if value not in known:
                raise InputError(f"unknown {what} {value!r}", fix=f"choose {', '.join(known)}")
        if not 1 <= self.drawn <= self.furthest:
            raise InputError(
                f"{self.drawn} of the {self.furthest} furthest can't be drawn", fix="give 1 <= drawn <= furthest"
            )


@dataclass(frozen=True, eq=False)
class Plda:
    """Two-covariance PLDA in the space where the within-speaker covariance is the identity.

    `transform` brings a centered vector there, `between` are the variances between speakers along its axes.
    """

    mean: NDArray[np.float64]
    transform: NDArray[np.float64]
    between: NDArray[np.float64]

    @classmethod
    def fit(cls, mean: ArrayLike, within: ArrayLike, between: ArrayLike, basis: ArrayLike | None = None) -> Plda:
        """From the two covariances (in the coordinates that `basis` gives, if any)."""
        from scipy.linalg import eigh

        w, b = np.asarray(within, float), np.asarray(between, float)
        variances, axes = eigh(b, w)
        transform = axes if basis is None else np.asarray(basis, float) @ axes
        return cls(np.asarray(mean, float), transform, np.maximum(variances, 0.0))

    def scores(self, source: ArrayLike, others: ArrayLike) -> NDArray[np.float64]:
        """Log-likelihood ratio of "the same speaker" against "two speakers", for each of the others."""
        x = (np.asarray(source, float) - self.mean) @ self.transform
        y = (np.asarray(others, float) - self.mean) @ self.transform
        b = self.between
        total = b + 1.0
        determinant = total**2 - b**2
        squares = x**2 + y**2
        joint = (total * squares - 2 * b * x * y) / determinant
        llr = -0.5 * (np.log(determinant) - 2 * np.log(total) + joint - squares / total)
        result: NDArray[np.float64] = llr.sum(axis=1)
        return result


@dataclass(frozen=True, eq=False)
class VoicePool:
    """X-vectors to choose from (n x d), each with a name and a gender ("f", "m", or "" if unknown)."""

    vectors: Vectors
    names: tuple[str, ...]
    genders: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.vectors) == len(self.names) == len(self.genders):
            raise InputError("a pool needs one name and one gender for each of its vectors")
        if not np.isfinite(self.vectors).all() or not (np.abs(self.vectors).max(axis=1, initial=0) > 0).all():
            raise InputError("a pool's vectors must be finite and not zero")

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def unit(self) -> Vectors:
        return unit(self.vectors)

    @cached_property
    def rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    def of_gender(self, gender: str) -> NDArray[np.int64]:
        return np.array([row for row, has in enumerate(self.genders) if has == gender], dtype=np.int64)

    def average(self, members: Sequence[str]) -> Vectors:
        """The pseudo-speaker's x-vector: the mean of the members' unit vectors."""
        unknown = [name for name in members if name not in self.rows]
        if unknown or not members:
            raise InputError(f"the pool has no voice {unknown[0]!r}" if unknown else "no voice was chosen")
        mean: Vectors = self.unit[[self.rows[name] for name in members]].mean(axis=0, dtype=np.float64)
        return mean.astype(np.float32)


@dataclass(frozen=True, slots=True)
class Choice:
    """The members whose average is the pseudo-speaker, and the gender they have."""

    members: tuple[str, ...]
    gender: str


def target_gender(rule: str, source: str, available: Sequence[str], rng: np.random.Generator) -> str:
    """The gender of the pseudo-speaker.

    >>> target_gender("cross", "f", ["f", "m"], np.random.default_rng(0))
    'm'
    """
    known = sorted(set(available))
    if rule == "random":
        return known[int(rng.integers(len(known)))]
    if source not in GENDERS:
        raise InputError(
            f"the gender rule {rule!r} needs the source speaker's gender, which is unknown",
            fix="give the corpus a gender column, or use the rule random",
        )
    wanted = source if rule == "same" else GENDERS[1 - GENDERS.index(source)]
    if wanted not in known:
        raise InputError(f"the pool has no voice of gender {wanted!r}", fix="use another pool or gender rule")
    return wanted


def choose(
    source: ArrayLike,
    source_gender: str,
    pool: VoicePool,
    rule: Rule,
    rng: np.random.Generator,
    plda: Plda | None = None,
) -> Choice:
    """The pseudo-speaker for a source x-vector. Equal distances keep the pool's order, so the result is exact."""
    gender = target_gender(rule.gender, source_gender, pool.genders, rng)
    rows = pool.of_gender(gender)
    if len(rows) < rule.furthest:
        raise InputError(
            f"the pool has {len(rows)} voices of gender {gender!r}, fewer than the {rule.furthest} furthest asked for",
            fix="ask for fewer, or use a larger pool",
        )
    x = unit(source)
    if rule.distance == "plda":
        if plda is None:
            raise InputError("this pool comes without a PLDA model", fix="use the cosine distance")
        similarity = plda.scores(x, pool.unit[rows])
    else:
        similarity = pool.unit[rows].astype(np.float64) @ x.astype(np.float64)
    furthest = rows[np.argsort(similarity, kind="stable")[: rule.furthest]]
    members = rng.choice(furthest, size=rule.drawn, replace=False)
    return Choice(tuple(pool.names[row] for row in np.sort(members)), gender)
