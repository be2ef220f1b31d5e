"""Trials reweighted by how often their people were drawn, summed where the measures need sums.

The trials of a class are sorted once. A measure needs no more than the sum of the weights in each group of the
calibration and in each bin of D_sys, and the weighted cost: a replicate reads each trial once and sorts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.ordering import order_of
from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import Groups, join_groups, run_starts, softplus

Floats = NDArray[np.float64]
STRETCH = 16_384  # trials weighed at a time: their weights in some tens of replicates take 3 MB
MOST_GROUPS = 4096  # finer groups would not change a replicate in the digits that an interval shows


@dataclass(frozen=True, eq=False, slots=True)
class WeightSums:
    """Of one class, a column per replicate: the weight in each group and bin, and the cost."""

    groups: Floats
    bins: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class StandIns:
    """Where impostor trials were left out: those up to `bound` stand for so many."""

    bound: float = -np.inf
    number: float = 1.0


@dataclass(frozen=True, eq=False, slots=True)
class TrialCells:
    """Trials of one class in rising order: their two people, and the runs of trials that share a group and a bin.

    In a target trial both sides are one person: drawing somebody twice gives their trials twice, not four times. Its
    second person is nobody, whose number is that of the people and whose weight is always one.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    people: int
    starts: NDArray[np.intp]
    groups: NDArray[np.intp]
    bins: NDArray[np.intp]
    counts: tuple[int, int]  # of groups and bins
    stands_for: Floats  # how many trials each one of a run does
    costs: Floats  # of all these trials

    def __len__(self) -> int:
        return len(self.costs)

    def reweight(self, drawn: Floats) -> WeightSums:
        """From how often each person was drawn (people x replicates)."""
        from scipy.sparse import csr_array

        # Single precision holds such counts exactly.
        weight_of = np.ones((self.people + 1, drawn.shape[1]), np.float32)
        weight_of[: self.people] = drawn
        sums, cost = np.empty((len(self.starts), drawn.shape[1])), np.zeros(drawn.shape[1])
        cuts = np.unique(np.append(np.searchsorted(self.starts, np.arange(0, len(self), STRETCH)), len(self.starts)))
        ends = np.append(self.starts, len(self))
        most = float(weight_of.max()) ** 2 * float(np.diff(ends).max())
        precision = np.float32 if most < 2**24 else np.float64  # in which sums over a run are exact
        for begin, end in pairwise(cuts.tolist()):
            trials = slice(ends[begin], ends[end])
            weights = np.take(weight_of, self.first[trials], axis=0)
            weights *= np.take(weight_of, self.second[trials], axis=0)
            # A matrix of ones adds up the rows of each run in half the time of reduceat.
            ones, count = np.ones(len(weights), precision), len(weights)
            runs = csr_array((ones, np.arange(count), ends[begin : end + 1] - ends[begin]), (end - begin, count))
            sums[begin:end] = runs @ weights
            cost += self.costs[trials] @ weights
        return self._gather(sums, cost)

    def without_each(self) -> WeightSums:
        """Everybody's trials but those of one person: a column for each person, in one pass over the trials."""
        runs = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self)))
        theirs = np.zeros((self.people + 1, len(self.starts)))
        cost = np.zeros(self.people + 1)
        for side in (self.first, self.second):
            theirs += np.bincount(side * len(self.starts) + runs, minlength=theirs.size).reshape(theirs.shape)
            cost += np.bincount(side, self.costs, minlength=len(cost))
        everybody = np.diff(self.starts, append=len(self)).astype(np.float64)
        return self._gather(everybody[:, None] - theirs[:-1].T, self.costs.sum() - cost[:-1])

    def _gather(self, sums: Floats, cost: Floats) -> WeightSums:
        sums = sums * self.stands_for[:, None]
        groups, bins = (
            _sum_rows(sums, cells, count) for cells, count in zip((self.groups, self.bins), self.counts, strict=True)
        )
        return WeightSums(groups, bins, cost)


@dataclass(frozen=True, eq=False)
class TrialPlaces:
    """Where the trials of both classes fall; `groups` are those of the calibration, or fewer."""

    groups: Groups
    targets: TrialCells
    impostors: TrialCells


def layout(
    scores: Scores, people: int, groups: Groups, edges: Floats, stand_ins: StandIns | None = None
) -> TrialPlaces:
    """Prepare the trials of `scores`, whose people have the numbers 0 to `people` - 1, for reweighting."""
    others = stand_ins or StandIns()
    coarse = _coarser(groups)
    assert scores.enrol_speaker is not None
    assert scores.test_speaker is not None
    cells = []
    for values, rows, sign, left_out in [
        (scores.targets, np.flatnonzero(scores.is_target), -1.0, StandIns()),
        (scores.impostors, np.flatnonzero(~scores.is_target), 1.0, others),
    ]:
        order = order_of(values)
        ordered, rows = values[order], rows[order]
        first, second = scores.enrol_speaker[rows], scores.test_speaker[rows]
        in_group = np.searchsorted(coarse.upper, ordered, side="left")
        in_bin = np.clip(np.searchsorted(edges, ordered, side="right") - 1, 0, len(edges) - 2)
        low = ordered <= left_out.bound
        starts = run_starts(2 * (in_group * len(edges) + in_bin) + ~low)
        stands_for = np.where(low, left_out.number, 1.0)
        cells.append(
            TrialCells(
                first=first.astype(np.intp),
                second=np.where(first == second, people, second).astype(np.intp),
                people=people,
                starts=starts,
                groups=in_group[starts],
                bins=in_bin[starts],
                counts=(len(coarse.targets), len(edges) - 1),
                stands_for=stands_for[starts],
                costs=softplus(sign * ordered) * stands_for,
            )
        )
    return TrialPlaces(coarse, *cells)


def _sum_rows(sums: Floats, cells: NDArray[np.intp], count: int) -> Floats:
    """Rows of the same cell added up, as row number `cell` of `count` rows."""
    out = np.zeros((count, sums.shape[1]))
    starts = run_starts(cells)
    out[cells[starts]] = np.add.reduceat(sums, starts, axis=0)
    return out


def _coarser(groups: Groups) -> Groups:
    if len(groups.targets) <= MOST_GROUPS:
        return groups
    # Equal shares of both classes, so that rare targets keep their resolution.
    done = np.cumsum(groups.targets) / groups.targets.sum() + np.cumsum(groups.impostors) / groups.impostors.sum()
    starts = run_starts(np.minimum((done * (MOST_GROUPS / 2)).astype(np.intp), MOST_GROUPS - 1))
    return join_groups(groups, starts)
