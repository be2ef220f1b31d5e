"""From scores to log-likelihood ratios (natural logarithm): pool adjacent violators, Laplace's rule, logistic.

Everything rests on one step, `pav`: isotonic regression of the labels, evaluated on blocks. Equal scores are pooled
first. Targets are usually rare, so the scores are never merged and sorted together: the rarer class cuts the other
into groups, and at most twice as many groups as distinct rarer scores go through the regression.

`BlockSets` holds the calibrations of many sets of scores at once, laid end to end. Point values, resamples, null levels
and streamed scores are all measured on such blocks: a thousand resamples cost a few array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy  # not its parts, which take longer to import
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError

Floats = NDArray[np.float64]


class Calibration(Protocol):
    """Any trained map from scores to log-likelihood ratios."""

    def apply(self, scores: ArrayLike) -> Floats: ...


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """Scores in rising order, pooled where that can't change an isotonic fit: equal scores, and runs of one class.

    `lower` and `upper` are the least and the greatest score of each group, `targets` and `impostors` its counts
    (or weights).
    """

    lower: Floats
    upper: Floats
    targets: Floats
    impostors: Floats


@dataclass(frozen=True, eq=False)
class Pav:
    """The blocks that pool-adjacent-violators leaves, in rising order of score, each with its counts.

    A block's log-likelihood ratio is logit(its share of targets) - logit(T / (T + N)), which is
    log(targets / T) - log(impostors / N): the empirical prior cancels (paper 004, eq. 5).

    >>> map = pav([1, 2, 5], [0, 1, 3, 4])
    >>> map.targets, map.impostors
    (array([0., 2., 1.]), array([1., 3., 0.]))
    >>> [round(float(llr), 3) for llr in map.apply([0, 3, 9])]
    [-inf, -0.118, inf]
    """

    lower: Floats
    upper: Floats
    targets: Floats
    impostors: Floats
    total_targets: float
    total_impostors: float

    @cached_property
    def llrs(self) -> Floats:
        """One log-likelihood ratio a block; infinite where a block holds one class only."""
        with np.errstate(divide="ignore"):
            ratios: Floats = np.log(self.targets / self.total_targets) - np.log(self.impostors / self.total_impostors)
        return ratios

    @cached_property
    def breaks(self) -> Floats:
        """Where one block ends and the next begins: half-way between their nearest scores."""
        low, high = self.upper[:-1], self.lower[1:]
        middle = low + (high - low) / 2
        return np.where(np.isfinite(middle), middle, high)  # a distance can overflow; a score can't be infinite

    def apply(self, scores: ArrayLike) -> Floats:
        """The log-likelihood ratios of these or of other scores; beyond the ends, those of the last block."""
        x = np.asarray(scores, np.float64)
        llrs: Floats = self.llrs[self.block_of(x)]
        return llrs

    def block_of(self, scores: ArrayLike) -> NDArray[np.intp]:
        """The block each score falls in. A score on a break belongs to the upper block unless it is its lower edge."""
        x = np.asarray(scores, np.float64)
        # `lower` of the next block is >= the break, `upper` of this one <= it; where both meet the break (neighbors
        # in floating point), the block above starts at its own lower edge.
        edges = np.where(self.breaks > self.upper[:-1], self.breaks, self.lower[1:])
        return np.searchsorted(edges, x, side="right")

    def with_laplace(self) -> Pav:
        """The blocks under Laplace's rule of succession, which keeps every ratio finite.

        One target and one impostor are put below all scores and one of each above, the regression is run, and the four
        are dropped again; the prior stays T / (T + N). Blocks are the state of the regression, so it goes on from here
        instead of starting again.
        """
        dummy = np.ones(1)
        targets = np.concatenate([dummy, self.targets, dummy])
        impostors = np.concatenate([dummy, self.impostors, dummy])
        starts = _pool(targets, impostors)
        edges = np.clip(starts, 1, len(self.targets) + 1) - 1  # in numbers of the real blocks
        sizes = np.diff(np.append(edges, len(self.targets)))
        real = sizes > 0  # a block of dummies only vanishes
        first = edges[real]
        last = first + sizes[real] - 1
        # The counts keep the dummies (they make the ratio finite); only the ratio is used, not the sum.
        return Pav(
            self.lower[first],
            self.upper[last],
            np.add.reduceat(targets, starts)[real],
            np.add.reduceat(impostors, starts)[real],
            self.total_targets,
            self.total_impostors,
        )


@dataclass(frozen=True, slots=True)
class Logistic:
    """llr = slope * score + offset."""

    slope: float
    offset: float

    def apply(self, scores: ArrayLike) -> Floats:
        llrs: Floats = self.slope * np.asarray(scores, np.float64) + self.offset
        return llrs


def pav(targets: ArrayLike, impostors: ArrayLike, *, laplace: bool = False, presorted: bool = False) -> Pav:
    """Oracle calibration: the non-decreasing map from score to log-likelihood ratio that fits these labels best.

    With `presorted`, both arrays are already in rising order. With `laplace`, all ratios are finite.

    Parameters
    ----------
    targets, impostors : array_like
        Scores of comparisons of one speaker, and of different speakers.
    laplace : bool
        Whether to keep all ratios finite, by Laplace's rule.
    presorted : bool
        Whether both arrays are in rising order already.

    Returns
    -------
    Pav
        The map; `apply(scores)` gives natural log-likelihood ratios.

    Raises
    ------
    InputError
        If one of the classes is empty, or a score is not finite.

    Examples
    --------
    >>> pav([7, 7], [7, 7, 7]).llrs          # equal scores carry no information
    array([0.])
    """
    t, n = check_scores(targets, "target"), check_scores(impostors, "impostor")
    if not presorted:
        t, n = np.sort(t), np.sort(n)
    calibration = pav_of_runs(runs(t, n), t, n)
    return calibration.with_laplace() if laplace else calibration


def pav_llrs(targets: ArrayLike, impostors: ArrayLike, *, laplace: bool = True) -> tuple[Floats, Floats]:
    """The PAV log-likelihood ratios of the targets and of the impostors, each in the order given (any shape).

    >>> pav_llrs([3.0, 4.0], [1.0, 2.0])[0].round(3)
    array([1.099, 1.099])
    """
    t, n = np.asarray(targets, np.float64), np.asarray(impostors, np.float64)
    calibration = pav(t.ravel(), n.ravel(), laplace=laplace)
    return calibration.apply(t), calibration.apply(n)


def logistic(targets: ArrayLike, impostors: ArrayLike, *, prior: float = 0.5) -> Logistic:
    """Logistic regression in the logit domain, with both classes counting `prior` to `1 - prior` whatever their sizes.

    Newton's method on standardized scores. Where the classes are separable the best slope is infinite; a ridge of 1e-9
    keeps it finite without touching other data in the first six digits.

    Parameters
    ----------
    targets, impostors : array_like
        Scores of comparisons of one speaker, and of different speakers.
    prior : float
        The weight of the target trials, between 0 and 1.

    Returns
    -------
    Logistic
        The map: `slope` and `offset`; `apply(scores)` gives natural log-likelihood ratios.

    Raises
    ------
    InputError
        If one of the classes is empty, or a score is not finite.

    Examples
    --------
    >>> logistic([1.0, 2.0, 0.5], [0.0, -1.0, 0.8]).slope > 0
    True
    """
    t, n = check_scores(targets, "target"), check_scores(impostors, "impostor")
    x = np.concatenate([t, n])
    center, scale = float(x.mean()), float(x.std())
    if not scale > 0:
        return Logistic(0.0, 0.0)
    x = (x - center) / scale
    sign = np.concatenate([np.ones(len(t)), -np.ones(len(n))])
    weight = np.concatenate([np.full(len(t), prior / len(t)), np.full(len(n), (1 - prior) / len(n))])
    shift = float(np.log(prior / (1 - prior)))
    ridge = 1e-9
    a = b = 0.0

    def cost(slope: float, offset: float) -> float:
        margins = sign * (slope * x + offset + shift)
        return float(weight @ softplus(-margins)) + ridge * slope * slope / 2

    now = cost(a, b)
    for _ in range(100):
        p = sigmoid(-sign * (a * x + b + shift))
        g = -weight * sign * p
        h = weight * p * (1 - p)
        gradient = np.array([g @ x + ridge * a, g.sum()])
        hessian = np.array([[h @ (x * x) + ridge, h @ x], [h @ x, h.sum() + 1e-12]])
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while (after := cost(a - size * step[0], b - size * step[1])) > now and size > 1e-6:
            size /= 2
        if after > now:
            break
        a, b = a - size * float(step[0]), b - size * float(step[1])
        if now - after < 1e-13:
            break
        now = after
    return Logistic(a / scale, b - a * center / scale)


def group(targets: Floats, impostors: Floats) -> Groups:
    """The groups of two sorted arrays: the class with fewer scores cuts the other one."""
    if len(impostors) < len(targets):
        lower, upper, n, t = _cut(impostors, targets)
    else:
        lower, upper, t, n = _cut(targets, impostors)
    return Groups(lower, upper, t, n)


def _cut(few: Floats, many: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Lower and upper edge of the groups, and how many of `few` and of `many` lie in each."""
    starts = run_starts(few)
    distinct = few[starts]
    k = len(distinct)
    left, right = (np.searchsorted(many, distinct, side=side) for side in ("left", "right"))
    before = np.concatenate([[0], right])  # where the run of `many` before each distinct score starts
    after = np.append(left, len(many))
    lower, upper, counts_few, counts_many = np.empty((4, 2 * k + 1))
    counts_few[0::2] = 0
    counts_few[1::2] = np.diff(np.append(starts, len(few)))
    counts_many[0::2] = after - before
    counts_many[1::2] = right - left
    lower[1::2] = upper[1::2] = distinct
    lower[0::2] = many[np.minimum(before, len(many) - 1)]
    upper[0::2] = many[np.maximum(after - 1, 0)]
    kept = counts_few + counts_many > 0
    return lower[kept], upper[kept], counts_few[kept], counts_many[kept]


@dataclass(frozen=True, eq=False, slots=True)
class Runs:
    """Sorted scores as counts: at each step up, so many of the rarer class at one place and of the other before it.

    `few[j]` scores of the rarer class follow `many[j]` of the other one; `many` has one entry more, for the last.
    Without ties between the classes, `few[j]` is a run that no score of the other class interrupts. With ties, each
    distinct score of the rarer class has its own entry, and `tied[j]` of the other class are equal to it.
    """

    few: Floats
    many: Floats
    tied: Floats | None
    few_are_targets: bool

    def pool(self, *, flipped: bool = False) -> tuple[Floats, Floats]:
        """Targets and impostors of each block of the isotonic regression, rising with the score (or falling)."""
        rising = self.few_are_targets != flipped  # whether the share of the rarer class is to rise with the score
        if self.tied is not None:
            few, many = np.zeros(2 * len(self.few) + 1), np.empty(2 * len(self.few) + 1)
            few[1::2], many[0::2], many[1::2] = self.few, self.many, self.tied
        elif rising:
            # A run of the rarer class with others right above violates the order whatever follows: one group at once.
            few, many = np.concatenate([[0.0], self.few]), self.many
        else:
            few, many = np.append(self.few, 0.0), self.many
        filled = few + many > 0
        if not filled.all():
            few, many = few[filled], many[filled]
        share, other = (few, many) if rising else (many, few)
        starts = _pool(share, other)
        few, many = np.add.reduceat(few, starts), np.add.reduceat(many, starts)
        return (few, many) if self.few_are_targets else (many, few)


def runs(targets: Floats, impostors: Floats) -> Runs:
    """The runs of two sorted arrays. Memory is a fraction of theirs unless the classes are of one size."""
    few_are_targets = len(targets) <= len(impostors)
    few, many = (targets, impostors) if few_are_targets else (impostors, targets)
    left = np.searchsorted(many, few, side="left")
    if not (many[np.minimum(left, len(many) - 1)] == few).any():
        starts = run_starts(left)
        at = left[starts]
        del left
        follows = np.diff(at, prepend=0, append=len(many)).astype(np.float64)
        return Runs(np.diff(starts, append=len(few)).astype(np.float64), follows, None, few_are_targets)
    starts = run_starts(few)
    left = left[starts]
    right = np.searchsorted(many, few[starts], side="right")
    follows = (np.append(left, len(many)) - np.concatenate([[0], right])).astype(np.float64)
    sizes = np.diff(starts, append=len(few)).astype(np.float64)
    return Runs(sizes, follows, (right - left).astype(np.float64), few_are_targets)


def pav_of_runs(sorted_runs: Runs, targets: Floats, impostors: Floats) -> Pav:
    """The blocks with their edges, which the counts locate in the sorted scores."""
    t, n = sorted_runs.pool()
    lowest, highest = [], []
    for counts, ordered in ((t, targets), (n, impostors)):
        end = np.cumsum(counts).astype(np.intp)
        first = np.minimum(end - counts.astype(np.intp), len(ordered) - 1)
        lowest.append(np.where(counts > 0, ordered[first], np.inf))
        highest.append(np.where(counts > 0, ordered[np.maximum(end - 1, 0)], -np.inf))
    return Pav(np.minimum(*lowest), np.maximum(*highest), t, n, float(len(targets)), float(len(impostors)))


def pool(groups: Groups, total_targets: float, total_impostors: float) -> Pav:
    """Pool adjacent violators over groups (of which none is empty)."""
    blocks = join_groups(groups, _pool(groups.targets, groups.impostors))
    return Pav(blocks.lower, blocks.upper, blocks.targets, blocks.impostors, total_targets, total_impostors)


def run_starts(numbers: NDArray[Any]) -> NDArray[np.intp]:
    """Where each run of equal numbers starts."""
    return np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))


def join_groups(groups: Groups, starts: NDArray[np.intp]) -> Groups:
    """Groups that follow each other as one, each from its start to the next."""
    last = np.append(starts[1:], len(groups.targets)) - 1
    return Groups(
        groups.lower[starts],
        groups.upper[last],
        np.add.reduceat(groups.targets, starts),
        np.add.reduceat(groups.impostors, starts),
    )


def _pool(targets: Floats, impostors: Floats) -> NDArray[np.intp]:
    """The first group of each block of the weighted isotonic regression of the groups' shares of targets."""
    total = targets + impostors
    return pool_starts(targets / total, total)


def pool_starts(values: Floats, weights: Floats) -> NDArray[np.intp]:
    """Where the blocks of the weighted isotonic regression start; equal neighbors are pooled."""
    count = len(values)
    means, masses = np.array(values, np.float64), np.array(weights, np.float64)  # which are overwritten
    starts, blocks = _pava()(means, masses, np.full(count + 1, -1, np.intp))[2:]
    return np.asarray(starts[:blocks], np.intp)


@cache
def _pava() -> Callable[[Floats, Floats, NDArray[np.intp]], tuple[Floats, Floats, NDArray[np.intp], int]]:
    """The compiled step of `scipy.optimize.isotonic_regression`, loaded by itself where scipy has it in a separate
    file: importing all of scipy.optimize takes longer than measuring a small file."""
    folder = Path(scipy.__file__).parent / "optimize"
    spec = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("_pava_pybind")
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, "pava"):
            return module.pava  # type: ignore[no-any-return]
    return _by_public_name


def _by_public_name(
    values: Floats, weights: Floats, starts: NDArray[np.intp]
) -> tuple[Floats, Floats, NDArray[np.intp], int]:
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(values, weights=weights)
    return fitted.x, fitted.weights, fitted.blocks, len(fitted.blocks) - 1


def sigmoid(x: ArrayLike) -> Floats:
    """1 / (1 + e^-x) without overflow."""
    v = np.asarray(x, np.float64)
    e = np.exp(-np.abs(v))
    shares: Floats = np.where(v >= 0, 1.0, e) / (1 + e)
    return shares


def softplus(x: ArrayLike) -> Floats:
    """log(1 + e^x), the cost of a log-likelihood ratio of -x; exact in both tails.

    >>> softplus([-800.0, 0.0, 800.0]).tolist()
    [0.0, 0.6931471805599453, 800.0]
    """
    v = np.asarray(x, np.float64)
    costs: Floats = np.log1p(np.exp(-np.abs(v))) + np.maximum(v, 0)
    return costs


def check_scores(scores: ArrayLike | Sequence[float], kind: str) -> Floats:
    """The scores as a flat float64 array; an error if there are none or one is not finite."""
    x = np.asarray(scores, np.float64)
    if x.ndim != 1:
        raise InputError(f"the {kind} scores must be a flat list of numbers, not an array of shape {x.shape}")
    if not len(x):
        raise InputError(f"there are no {kind} scores", fix="a measure needs both target and impostor trials")
    if not np.isfinite(x.sum()) and not np.isfinite(x).all():  # the sum is quick; it may overflow by itself
        raise InputError(f"{int((~np.isfinite(x)).sum())} {kind} scores are not finite", fix="leave these trials out")
    return x


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


def pool_sets(
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


FINE = 1 << 18  # levels of very many numbers
MANY = 300_000  # numbers from which levels are fine bins
BLOCK = 1 << 20  # numbers looked at together
FULLEST = 1e-4  # share of the numbers in one bin above which bins are too coarse for them


def order_of(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """The places of a flat array's numbers in rising order, equal ones in the order in which they stand: what
    `numpy.argsort(kind="stable")` gives, in a third of its time.

    NumPy sorts 64-bit integers with vector instructions, but neither their places nor stably. So each number and its
    place are put into one integer: a float's bits, read as an integer, rise with it, and the lowest bits make room for
    the place. The few neighbors that differ in these lowest bits only are put in order afterwards.

    >>> order_of(np.array([0.5, -1.0, 0.5, -2.0])).tolist()
    [3, 1, 0, 2]
    """
    numbers = values.astype(np.float64) + 0.0  # there is one zero only
    keys = numbers.view(np.int64)
    keys ^= (keys >> 63) & np.int64(2**63 - 1)  # below zero the larger magnitude is the smaller number
    places = (1 << max(1, (len(values) - 1).bit_length())) - 1
    keys &= ~np.int64(places)
    keys |= np.arange(len(values))
    keys.sort()
    order = keys & places
    ordered = values[order]
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    if len(wrong):
        keys &= ~np.int64(places)
        starts, ends = (np.unique(np.searchsorted(keys, keys[wrong], side)) for side in ("left", "right"))
        sizes = ends - starts
        among = np.repeat(np.arange(len(starts)), sizes)
        at = np.arange(len(among)) + (starts - (np.cumsum(sizes) - sizes))[among]
        order[at] = order[at][np.lexsort((ordered[at], among))]
    return order


@dataclass(frozen=True, eq=False, slots=True)
class Levels:
    """The level of each number, and of each level, in rising order, the number itself and how many are on it."""

    of: NDArray[np.int32]
    numbers: NDArray[np.float64]
    sizes: NDArray[np.float64]


def levels_of(values: NDArray[np.floating]) -> Levels:
    """Equal numbers share a level. Of very many, also those that hardly differ: a level is a small part of their range,
    unless a few far ones make that part too coarse for the others.

    >>> found = levels_of(np.array([0.5, -1.0, 0.5]))
    >>> found.of.tolist(), found.numbers.tolist(), found.sizes.tolist()
    ([1, 0, 1], [-1.0, 0.5], [1.0, 2.0])
    """
    if len(values) >= MANY:
        low, high = float(values.min()), float(values.max())
        scale = (FINE - 1) / (high - low) if low < high < np.inf and high - low < np.inf else 0.0
        if 0 < scale < np.inf:
            codes = np.empty(len(values), np.int32)
            sizes = np.zeros(FINE, np.int64)
            for start in range(0, len(values), BLOCK):
                part = slice(start, start + BLOCK)
                codes[part] = (values[part] - low) * scale
                sizes += np.bincount(codes[part], minlength=FINE)
            if sizes.max() <= FULLEST * len(values):
                numbers = low + (np.arange(FINE, dtype=np.float64) + 0.5) / scale
                numbers[[0, -1]] = low, high
                return Levels(codes, numbers, sizes.astype(np.float64))
    order = order_of(values)
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(starts, append=len(order))
    codes = np.empty(len(values), np.int32)
    codes[order] = np.repeat(np.arange(len(starts), dtype=np.int32), sizes)
    return Levels(codes, np.asarray(ordered[starts], np.float64), sizes.astype(np.float64))
