"""ROCCH-EER, min Cllr, D_ECE and l_w from the blocks of the oracle calibration: of one set of scores, or of many.

Point values, resamples, null levels and streamed scores all come from here. The blocks of many sets are laid end to
end, so that a thousand resamples cost a few array operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.metrics.calibration import Pav, pool_starts, run_starts, softplus

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class BlockSets:
    """The blocks of many calibrations, laid end to end: their targets and impostors, and the first block of each."""

    targets: Floats
    impostors: Floats
    first: NDArray[np.intp]

    @staticmethod
    def single(targets: Floats, impostors: Floats) -> BlockSets:
        return BlockSets(targets, impostors, np.zeros(1, np.intp))

    @property
    def of(self) -> NDArray[np.intp]:
        """The number of the set that each block is of."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.targets)))


def pooled_sets(targets: Floats, impostors: Floats, sets: NDArray[np.intp], *, flipped: bool = False) -> BlockSets:
    """Pool adjacent violators in many sets of groups, which stand one after the other, in rising order, with their
    numbers from 0 in `sets`. Empty groups are skipped; no set may be empty."""
    filled = np.flatnonzero(targets + impostors)
    t, n, of = targets[filled], impostors[filled], sets[filled]
    total = t + n
    # Shares lie between 0 and 1: two more in each set, and a single regression pools nothing across sets.
    starts = pool_starts((n if flipped else t) / total + 2.0 * of, total)
    first = np.searchsorted(of[starts], np.arange(of[-1] + 1))
    return BlockSets(np.add.reduceat(t, starts), np.add.reduceat(n, starts), first)


def z(llr: ArrayLike) -> Floats:
    """The integral over all priors of what a log-likelihood ratio tells (eq. 13): 0 at 0, 1/2 at inf, -inf at -inf.

    Z(l) = 1/2 + (l - (e^l - 1)) / (e^l - 1)^2, by its series near 0, where the quotient loses all digits.

    >>> [round(float(v), 6) for v in z([-np.inf, -800, 0, 1e-9, 2, 800, np.inf])]
    [-inf, -798.5, 0.0, 0.0, 0.392478, 0.5, 0.5]
    """
    x = np.asarray(llr, np.float64)
    out = np.empty_like(x)
    near = np.abs(x) < 0.3
    y = x[near]
    out[near] = y * (1 / 3 + y * (-1 / 12 + y * (1 / 180 + y * (1 / 720 - y / 5040))))
    up = x >= 0.3
    y = x[up]
    e = np.exp(-y)
    grown = -np.expm1(-y)  # 1 - e^-l, so that e^l - 1 = grown / e
    finite = np.where(np.isinf(y), 0.0, y)
    out[up] = 0.5 + (finite * e - grown) * e / grown**2
    down = x <= -0.3
    y = x[down]
    less = np.expm1(y)
    out[down] = 0.5 + (y - less) / less**2
    out[np.isnan(x)] = np.nan
    return out


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


def values_of_pav(blocks: Pav) -> dict[str, float]:
    """Of one set of scores, from its blocks without Laplace."""
    totals = np.array([blocks.total_targets]), np.array([blocks.total_impostors])
    values = values_of_blocks(BlockSets.single(blocks.targets, blocks.impostors), *totals)
    return {name: float(column[0]) for name, column in values.items()}


def page_of(blocks: Pav, *, cllr: float, d_sys: float, low: Mapping[str, float]) -> dict[str, float]:
    """Every value of the page of measures: those of the blocks, and those that need more than the order of scores."""
    values = values_of_pav(blocks)
    return {
        "eer": values["eer"],
        "cllr": cllr,
        "min_cllr": values["min_cllr"],
        "calibration_loss": max(0.0, cllr - values["min_cllr"]),
        "d_ece": values["d_ece"],
        "l_w": values["l_w"],
        "d_sys": d_sys,
        **low,
    }


def values_of_blocks(blocks: BlockSets, total_t: Floats, total_n: Floats) -> dict[str, Floats]:
    """ROCCH-EER, min Cllr, D_ECE and l_w of many sets of blocks at once."""
    t, n, first, of = blocks.targets, blocks.impostors, blocks.first, blocks.of
    share_t, share_n = t / total_t[of], n / total_n[of]
    for_target, for_impostor = _ratios(share_t, share_n)
    cost = softplus(-for_target) * share_t + softplus(for_impostor) * share_n
    return {
        "eer": _hull_eers(share_t, share_n, first, of),
        "min_cllr": np.add.reduceat(cost, first) / (2 * np.log(2)),
        "d_ece": _d_eces(share_t, share_n, first),
        "l_w": _strongest(t, n, total_t, total_n, first, of),
    }


def eers_of_blocks(blocks: BlockSets, total_t: Floats, total_n: Floats) -> Floats:
    """The ROCCH-EER alone, in percent."""
    of = blocks.of
    return _hull_eers(blocks.targets / total_t[of], blocks.impostors / total_n[of], blocks.first, of)


def d_ece_of_sets(blocks: BlockSets) -> Floats:
    """D_ECE of many sets of blocks, in whichever order the blocks of a set are, in bit."""
    of = blocks.of
    t, n = (side / np.add.reduceat(side, blocks.first)[of] for side in (blocks.targets, blocks.impostors))
    return _d_eces(t, n, blocks.first)


def _d_eces(share_t: Floats, share_n: Floats, first: NDArray[np.intp]) -> Floats:
    for_target, for_impostor = _ratios(share_t, share_n)
    gain = z(for_target) * share_t + z(-for_impostor) * share_n
    return np.asarray(np.maximum(0.0, np.add.reduceat(gain, first) / (2 * np.log(2))))


def _ratios(share_t: Floats, share_n: Floats) -> tuple[Floats, Floats]:
    """The log-likelihood ratio of each block, for its targets and for its impostors: 0 where it has none of them, as an
    infinite ratio weighs nothing on its bad side."""
    with np.errstate(divide="ignore"):
        llr = np.log(share_t) - np.log(share_n)
    return np.where(share_t > 0, llr, 0.0), np.where(share_n > 0, llr, 0.0)


def _within(values: Floats, first: NDArray[np.intp], of: NDArray[np.intp]) -> Floats:
    """Cumulative sums that start anew with every set."""
    running = np.cumsum(values)
    before = np.concatenate([[0.0], running])[first]
    return np.asarray(running - before[of])


def _hull_eers(share_t: Floats, share_n: Floats, first: NDArray[np.intp], of: NDArray[np.intp]) -> Floats:
    """In percent: where the hull, whose corners lie between the blocks, crosses the diagonal."""
    miss, false = _within(share_t, first, of), 1 - _within(share_n, first, of)
    last = np.append(first[1:], len(of)) - 1
    over = miss >= false
    over[last] = True  # rounding must not hide the end, where everything is rejected
    at = np.flatnonzero(over)
    at = at[np.searchsorted(of[at], np.arange(len(first)))]  # the first such block of each set
    x1, y1 = false[at], miss[at]
    x0, y0 = x1 + share_n[at], y1 - share_t[at]
    share = (x0 - y0) / ((x0 - y0) + (y1 - x1))
    return np.asarray(100 * (y0 + share * (y1 - y0)))


def _strongest(
    t: Floats, n: Floats, total_t: Floats, total_n: Floats, first: NDArray[np.intp], of: NDArray[np.intp]
) -> Floats:
    """l_w under Laplace's rule: only the lowest and the highest block can be the strongest.

    Isotonic regression fits an element by max over starts a of min over ends b of mean(a..b): for the lowest real block
    the start is the dummy pair below or the block itself, for the highest the end is the dummy pair above or itself.
    """
    up_t, up_m = _within(t, first, of), _within(t + n, first, of)
    down_t, down_m = total_t[of] - up_t + t, (total_t + total_n)[of] - up_m + t + n
    both = total_t + total_n
    all_and_two, all_and_one = (2 + total_t) / (4 + both), (1 + total_t) / (2 + both)
    lowest = np.maximum(
        np.minimum(np.minimum.reduceat((1 + up_t) / (2 + up_m), first), all_and_two),
        np.minimum(np.minimum.reduceat(up_t / up_m, first), all_and_one),
    )
    highest = np.minimum(
        np.maximum(np.maximum.reduceat((1 + down_t) / (2 + down_m), first), all_and_two),
        np.maximum(np.maximum.reduceat(down_t / down_m, first), all_and_one),
    )
    prior = np.log(total_t / total_n)
    with np.errstate(divide="ignore"):
        ends = [np.abs(np.log(share) - np.log1p(-share) - prior) for share in (lowest, highest)]
    return np.asarray(np.maximum(*ends) / np.log(10))
