"""Who may be isolated: the conversations of a group of predicates in order of score, and those in each subset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Candidates:
    """Conversations in decreasing order of score: predicates x draws (or one for all) x places; -1 is padding."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PredicateGroup:
    """Predicates that are evaluated together, with the random orders of their draws."""

    vectors: NDArray[np.float32]
    targets: NDArray[np.int64]
    drawn: NDArray[np.int32]  # predicates x draws x speakers; the target stands first
    fits: NDArray[np.bool_] | None
    absent: bool  # the target is in no subset, and everybody moves up

    def places(self, speakers: NDArray[np.int64], candidates: Candidates) -> NDArray[np.int32]:
        """Where the speaker of each candidate stands in the order of each draw."""
        of = speakers[candidates.rows]
        shape = (*self.drawn.shape[:2], of.shape[2])
        place = np.take_along_axis(self.drawn, np.broadcast_to(of, shape), axis=2)
        nowhere = np.int32(self.drawn.shape[2])
        if self.absent:
            place = np.where(of == self.targets[:, None, None], nowhere, place - 1)
        return np.where(candidates.rows < 0, nowhere, place)

    def order(self, predicate: int, draw: int) -> NDArray[np.int32]:
        """Each speaker's place in the order of one draw."""
        place: NDArray[np.int32] = self.drawn[predicate, draw] - np.int32(self.absent)
        if self.absent:
            place[self.targets[predicate]] = len(place)
        return place


def in_order(rows: NDArray[np.int64], scores: NDArray[np.float32]) -> Candidates:
    """Sorted by score; who is out of the question (-inf) is padding."""
    order = np.argsort(-scores, axis=2, kind="stable")
    scores = np.take_along_axis(scores, order, axis=2)
    return Candidates(np.where(np.isneginf(scores), -1, np.take_along_axis(rows, order, axis=2)), scores)


def best_entries(
    candidates: Candidates, place: NDArray[np.int32], size: int, reach: int, depth: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The first `depth` entries within `reach` whose speakers are in the subset: a row per predicate and draw."""
    inside = place[:, :, :reach] < size
    slot = np.cumsum(inside, axis=2, dtype=np.int32)
    i, draw, column = np.nonzero(inside & (slot <= depth))
    case, slot = i * place.shape[1] + draw, slot[i, draw, column] - 1
    rows = np.full((place.shape[0] * place.shape[1], depth), -1, np.int64)
    scores = np.full(rows.shape, -np.inf, np.float32)
    source = draw if candidates.rows.shape[1] > 1 else 0
    rows[case, slot] = candidates.rows[i, source, column]
    scores[case, slot] = candidates.scores[i, source, column]
    return rows, scores
