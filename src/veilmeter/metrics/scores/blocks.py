"""Oracle calibrations of many sets of scores at once: the blocks that pool-adjacent-violators leaves, laid end to end.

Point values, resamples, null levels and streamed scores are all measured on such blocks: a thousand resamples cost a
few array operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilmeter.metrics.calibration import pool_starts, run_starts

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BlockSets:
    """The blocks of many calibrations, laid end to end: their targets and impostors, and the first block of each set.

    `total_targets` and `total_impostors` have one number per set.
    """

    targets: Floats
    impostors: Floats
    first: NDArray[np.intp]
    total_targets: Floats
    total_impostors: Floats

    @classmethod
    def of(
        cls, targets: Floats, impostors: Floats, first: NDArray[np.intp], totals: tuple[Floats, Floats] | None = None
    ) -> BlockSets:
        """The same with totals that are those of the blocks unless given."""
        sides = totals or tuple(np.add.reduceat(side, first) for side in (targets, impostors))
        return cls(targets, impostors, first, *sides)

    @classmethod
    def single(cls, targets: Floats, impostors: Floats) -> BlockSets:
        """The blocks of one set."""
        return cls.of(targets, impostors, np.zeros(1, np.intp))

    @cached_property
    def set_of(self) -> NDArray[np.intp]:
        """The number of the set that each block is of."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.targets)))

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Each block's share of the targets and of the impostors of its set."""
        return self.targets / self.total_targets[self.set_of], self.impostors / self.total_impostors[self.set_of]

    @cached_property
    def llrs(self) -> tuple[Floats, Floats]:
        """The log-likelihood ratio of each block, for its targets and for its impostors: 0 where it has none of them,
        as an infinite ratio weighs nothing on its bad side."""
        share_t, share_n = self.shares
        with np.errstate(divide="ignore"):
            llr = np.log(share_t) - np.log(share_n)
        return np.where(share_t > 0, llr, 0.0), np.where(share_n > 0, llr, 0.0)

    def running(self, values: Floats) -> Floats:
        """Cumulative sums that start again with every set."""
        sums = np.cumsum(values)
        before = np.concatenate([[0.0], sums])[self.first]
        return np.asarray(sums - before[self.set_of])

    def sums(self, values: Floats) -> Floats:
        """The sum over the blocks of each set."""
        return np.asarray(np.add.reduceat(values, self.first))


def pooled_sets(
    targets: Floats,
    impostors: Floats,
    sets: NDArray[np.intp],
    *,
    totals: tuple[Floats, Floats] | None = None,
    flipped: bool = False,
) -> BlockSets:
    """Pool adjacent violators in many sets of groups, which come one after the other, in rising order, with their
    numbers from 0 in `sets`. Empty groups are skipped; no set may be empty."""
    filled = np.flatnonzero(targets + impostors)
    t, n, of = targets[filled], impostors[filled], sets[filled]
    total = t + n
    # Shares lie between 0 and 1: two more in each set, and a single regression pools nothing across sets.
    starts = pool_starts((n if flipped else t) / total + 2.0 * of, total)
    first = np.searchsorted(of[starts], np.arange(of[-1] + 1))
    return BlockSets.of(np.add.reduceat(t, starts), np.add.reduceat(n, starts), first, totals)


def groups_of_draws(
    chosen: NDArray[np.integer], draw: NDArray[np.intp], sizes: Floats, weights: Floats | None = None
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """How many of the chosen trials and of the others each group of each draw holds, and the number of its draw.

    `chosen` are places among the distinct scores, of which `sizes` many trials each have one; `draw` says, from 0 and
    rising, which draw chose it. Every place that was chosen is a group, as is what lies between two of them. With
    `weights`, a chosen trial counts for so many.
    """
    key = draw * len(sizes) + chosen
    if weights is None:
        key = np.sort(key)
    else:
        order = np.argsort(key)
        key, weights = key[order], weights[order]
    begins = run_starts(key)
    draw, at = np.divmod(key[begins], len(sizes))
    taken = np.diff(begins, append=len(key))
    ends = np.cumsum(sizes)
    opens = np.flatnonzero(np.diff(draw, prepend=-1))  # the first place of each draw
    before = np.concatenate([[0.0], ends[at[:-1]]])
    before[opens] = 0
    # In each draw: what is below a place, the place itself, and so on, and what is above the last one.
    place = 2 * np.arange(len(at)) + draw
    few, many = np.zeros((2, 2 * len(at) + len(opens)))
    few[place + 1] = taken if weights is None else np.add.reduceat(weights, begins)
    many[place + 1] = sizes[at] - taken
    many[place] = ends[at] - sizes[at] - before
    closes = np.append(opens[1:], len(at)) - 1
    many[place[closes] + 2] = ends[-1] - ends[at[closes]]
    return few, many, np.repeat(np.arange(len(opens)), 2 * np.bincount(draw) + 1)
