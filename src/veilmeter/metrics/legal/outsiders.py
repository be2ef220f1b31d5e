"""The control of Singling Out: the rule of a person who is not in the set.

Enrolled people who are in no set at all, for want of test recordings, are such people by themselves: their rules are
applied to the very sets of the attack, with the same calibration. But they need not be people like those in the set: on
x-vectors of women, rules of men isolate 0.14 of the time where rules of other women do 0.31. So they serve where they
are of the same kinds (gender, where it is known) and surely isolate as often as another enrolled person's rule in a set
without that person, which is the control otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.intervals import clustered_t
from veilmeter.data.embeddings import Embeddings

Rows = NDArray[np.int64]
WITHOUT_TARGET = "rules of people who are not in the set"
OF_OUTSIDERS = f"{WITHOUT_TARGET} (enrolled outsiders)"
FEWEST = 10  # outsiders: fewer can't be told to be people like those in the set
MOST_APART = 0.20  # how far off their share of isolations may be at either end of its interval


@dataclass(frozen=True, slots=True)
class Control:
    """What the control is, and which of its counts depend on one person's rule."""

    method: str
    clusters: Rows

    @property
    def outsiders(self) -> bool:
        return self.method == OF_OUTSIDERS


def without_target(predicates: int, why_not: str = "") -> Control:
    """Another enrolled person's rule; `why_not` says why those of outsiders, who are there, do not serve."""
    return Control(WITHOUT_TARGET + (f"; {why_not}" if why_not else ""), np.arange(predicates))


def kinds_of(enrol: Embeddings, names: Sequence[str], attribute: str = "gender") -> tuple[str, ...]:
    """The gender of each enrolled person; empty where it is not known."""
    column = enrol.attributes.get(attribute)
    known = {} if column is None else dict(zip(enrol.speakers, column, strict=True))
    return tuple(str(known.get(name, "")) for name in names)


def assigned(outsiders: Rows, targets: Rows, kinds: Sequence[str], seed: int) -> Rows | None:
    """For each target an outsider of the same kind, all of them used alike; None where a kind has too few. Both are
    rows of the enrolled people, whose kinds are given."""
    rng = np.random.default_rng([seed, 7])
    chosen = np.empty(len(targets), np.int64)
    kind = np.array(kinds, dtype=object)
    for value in sorted(set(kind[targets])):
        wanted, there = np.flatnonzero(kind[targets] == value), outsiders[kind[outsiders] == value]
        if len(there) < FEWEST:
            return None
        repeated = np.tile(rng.permutation(there), -(-len(wanted) // len(there)))
        chosen[wanted] = repeated[: len(wanted)]
    return chosen


def choose_control(without: NDArray[np.float64], theirs: NDArray[np.float64], chosen: Rows) -> Control:
    """Outsiders, if their rules surely isolate about as often: by share of isolations of each predicate in the set
    without its target, and of the outsider that was chosen in its place."""
    low, high = clustered_t(theirs - without, chosen)
    if low <= 0 <= high and max(-low, high) <= MOST_APART:
        return Control(OF_OUTSIDERS, np.unique(chosen, return_inverse=True)[1].reshape(-1).astype(np.int64))
    shares = f"{theirs.mean():.2f} against {without.mean():.2f}"
    perhaps = "" if low > 0 or high < 0 else "may "
    return without_target(len(without), f"those of enrolled outsiders {perhaps}isolate differently ({shares})")
