"""Two options of every comparison with a person's known recordings: the best of them, and normalized scores.

The best of a person's recordings instead of their mean counts where these differ among themselves (sessions, channels),
above all at low rates of false alarms (VoxGuard 2025). Adaptive score normalization takes off what a recording or a
person scores with its nearest strangers, so that people who resemble many others are not named for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.material import Rows
from veilmeter.core.errors import InputError

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
    def parsed(cls, spec: str) -> tuple[str, ScoringOptions]:
        """A back end's name and its options.

        >>> ScoringOptions.parsed("lda:best"), ScoringOptions.parsed("lda")[1] == ScoringOptions()
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


def normalized(raw: NDArray[Any], people: Cohort, tests: Cohort) -> NDArray[Any]:
    """Scores (tests x people) beside what each side scores with its nearest strangers (`nearest` of both)."""
    by_person = (raw - people[0]) / people[1]
    by_test = (raw - tests[0][:, None]) / tests[1][:, None]
    return np.asarray((by_person + by_test) / 2)


def without_own(scores: NDArray[Any], codes: Rows) -> NDArray[Any]:
    """People's scores with recordings (columns, whose owners `codes` are), -inf with their own."""
    return np.where(codes == np.arange(len(scores))[:, None], scores.dtype.type(-np.inf), scores)
