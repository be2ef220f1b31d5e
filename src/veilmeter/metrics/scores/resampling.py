"""Score measures under reweighted trials: what bootstrap and jackknife need, without sorting anything again.

Each trial's weight in a resample is the product of how often its two people were drawn. The trials of a class are
sorted once. A measure needs no more than the sum of the weights in each group of the calibration and in each bin of
D_sys, and the weighted cost: a replicate reads each trial once, and then runs an isotonic regression over a few hundred
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, engine_for, map_ordered, stretches
from veilmeter.core.intervals import draw_people, t_quantile, wilson
from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import Groups, group, join_groups, order_of, run_starts, softplus
from veilmeter.metrics.scores.forms import ScoreFunction, SortedScores, WeightedSets

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
    assert scores.enroll_speaker is not None
    assert scores.test_speaker is not None
    cells = []
    for values, rows, sign, left_out in [
        (scores.targets, np.flatnonzero(scores.is_target), -1.0, StandIns()),
        (scores.impostors, np.flatnonzero(~scores.is_target), 1.0, others),
    ]:
        order = order_of(values)
        ordered, rows = values[order], rows[order]
        first, second = scores.enroll_speaker[rows], scores.test_speaker[rows]
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


Floats = NDArray[np.float64]
MOST_LEFT_OUT = 300  # people up to which bootstrap and jackknife may differ enough to look at both
MOST_IMPOSTORS = 60_000  # what people differ in dwarfs what more trials of the same people would add to an interval
HIGHEST = 0.3  # of these, how many are the highest of all: rates of false acceptance down to 0.1 % depend on them
MANY_TRIALS, FEWEST = 20_000, 200  # trials from which fewer resamples do, and how few at least
AT_ONCE = 40  # replicates whose sums are held at a time
WORTH_SENDING = 500_000_000  # weights of trials in all replicates, three seconds' work: less is done here at once


class ReweightedSets(WeightedSets):
    """The trials under the weights that their people have in each replicate."""

    def __init__(self, targets: WeightSums, impostors: WeightSums) -> None:
        super().__init__(targets.groups, impostors.groups)
        self._sides = targets, impostors

    @property
    def histograms(self) -> tuple[Floats, Floats]:
        targets, impostors = self._sides
        return targets.bins, impostors.bins

    @property
    def mean_costs(self) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            up, down = (side.cost / total for side, total in zip(self._sides, self.totals, strict=True))
        return up, down


@dataclass(frozen=True, eq=False, slots=True)
class Replicates:
    """Bootstrap replicates by measure, of how many clusters, what the clusters are, and values with one left out;
    `independent` is how many target trials of different people would tell as much as the target trials there are."""

    samples: dict[str, Floats]
    clusters: int
    unit: str
    left_out: Mapping[str, Floats] = field(default_factory=dict)
    coarse: Mapping[str, float] = field(default_factory=dict)
    independent: int | None = None

    def interval(self, name: str, value: float, shape: Shape) -> tuple[float, float] | None:
        """Where groups were merged or trials left out, replicates are moved by what that did to the value itself."""
        moved = value - self.coarse.get(name, value)
        others = self.left_out.get(name)
        return interval(
            value,
            self.samples[name] + moved,
            self.clusters,
            shape,
            None if others is None else others + moved,
            independent=self.independent,
        )


def common_draws(spreads: Sequence[Replicates], name: str) -> list[Floats]:
    """The replicates of one measure for which all sets drew the same people: larger sets have fewer resamples."""
    count = min(len(spread.samples[name]) for spread in spreads)
    return [spread.samples[name][:count] for spread in spreads]


def number_people(
    scores: Scores, rows: NDArray[np.intp] | slice = slice(None)
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Both sides' people in these rows as 0..count-1, in the order of the names of all: sets of the same people draw
    the same ones.

    Without speakers every trial stands for itself.
    """
    if scores.enroll_speaker is None or scores.test_speaker is None:
        each = np.arange(len(scores))
        return each[rows], each[rows], len(scores)
    people = scores.people
    if scores.names:
        people = np.array(sorted(people, key=lambda code: scores.names[code]))
    place = np.zeros(int(people.max()) + 1, np.int64)
    place[people] = np.arange(len(people))
    return place[scores.enroll_speaker[rows]], place[scores.test_speaker[rows]], len(people)


def replicates(
    scores: Scores,
    data: SortedScores,
    functions: Mapping[str, ScoreFunction],
    *,
    resamples: int,
    seed: int,
    engine: Engine | None = None,
) -> Replicates:
    """Bootstrap over people: drawn with their trials on either side; a trial counts once for every pair drawn.

    `data` are the scores in order, `functions` what is computed of every replicate, by name. Where it takes long,
    `engine` does it; the result is the same wherever it ran.
    """
    known = scores.enroll_speaker is not None
    kept, stands_for = _thin(scores, data.impostors, seed)
    enroll, test, people = number_people(scores, kept)
    trials = Scores(scores.values[kept], scores.is_target[kept], enroll, test)
    groups = group(data.targets, data.impostors)
    place = layout(trials, people, groups, data.edges, stands_for)
    rounds = enough_resamples(resamples, len(kept))
    runner = engine_for(engine, rounds * len(kept) >= WORTH_SENDING)
    parts = map_ordered(runner, _measure, _Work(place, seed, functions).split(rounds, runner.workers))
    samples = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    others: dict[str, Floats] = {}
    if people <= MOST_LEFT_OUT:
        others = _values(place.targets.without_each(), place.impostors.without_each(), functions)
    coarse: dict[str, float] = {}
    merged = len(place.groups.targets) < len(groups.targets)
    if merged or len(kept) < len(scores) or any(function.looks_within_runs for function in functions.values()):
        everybody = np.ones((people, 1))
        coarse = {name: float(column[0]) for name, column in _of_draws(place, everybody, functions).items()}
    unit = "speakers" if known else "trials"
    return Replicates(samples, people, unit, others, coarse, independent_trials(scores))


def independent_trials(scores: Scores) -> int:
    """How many target trials of different people would tell as much as these: between the number of people, where all
    trials of a person are alike, and that of trials, where they have nothing in common.

    Trials of one person share a part of the variance: the intraclass correlation of the scores' normal ranks, by the
    analysis of variance. Few people do not determine it well, so the upper end of its 95 % interval counts, by the
    F distribution. The number of trials is then divided by their design effect (Kish 1965).

    >>> rng = np.random.default_rng(0)
    >>> person = np.repeat(np.arange(20), 10)
    >>> def trials(values): return Scores(np.append(values, 0.0), np.arange(201) < 200, np.append(person, 0),
    ...                                   np.append(person, 1))
    >>> independent_trials(trials(rng.normal(size=200))), independent_trials(trials(rng.normal(size=20)[person]))
    (79, 20)
    """
    from scipy.special import fdtri, ndtri

    count = len(scores.targets)
    if scores.enroll_speaker is None:
        return count
    _, person = np.unique(scores.enroll_speaker[scores.is_target], return_inverse=True)
    sizes = np.bincount(person)
    people = len(sizes)
    if people < 2 or people == count:
        return people
    ordered = scores.ordered[0]
    ranks = (np.searchsorted(ordered, scores.targets) + np.searchsorted(ordered, scores.targets, side="right")) / 2
    normal = ndtri(ranks / count)
    means = np.bincount(person, normal) / sizes
    between = float(np.sum(sizes * (means - normal.mean()) ** 2)) / (people - 1)
    within = float(np.sum((normal - means[person]) ** 2)) / (count - people)
    if not within > 0:
        return people
    each = (count - float(np.sum(sizes.astype(float) ** 2)) / count) / (people - 1)
    ratio = between / within * float(fdtri(count - people, people - 1, 0.975))
    shared = max(0.0, (ratio - 1) / (ratio + each - 1))
    return max(people, int(count / (1 + (each - 1) * shared)))


def enough_resamples(wanted: int, trials: int) -> int:
    """Of many trials fewer resamples: an interval needs their mean and spread, and 200 tell the spread to 5 %.

    >>> enough_resamples(1000, 20_000), enough_resamples(1000, 100_000), enough_resamples(50, 100_000)
    (1000, 200, 50)
    """
    return min(wanted, max(FEWEST, wanted * MANY_TRIALS // max(1, trials)))


def _thin(scores: Scores, ordered: Floats, seed: int) -> tuple[NDArray[np.intp], StandIns]:
    """All targets, and of very many impostor trials (`ordered` are their scores) the highest and a random part of the
    others, each of which stands for several."""
    if len(ordered) <= MOST_IMPOSTORS:
        return np.arange(len(scores)), StandIns()
    highest = int(HIGHEST * MOST_IMPOSTORS)
    bound = float(ordered[-highest - 1])
    low = int(np.searchsorted(ordered, bound, side="right"))  # of equal scores all or none
    rng = np.random.default_rng([seed, 9])
    # Too many, since some are drawn twice, are targets, or are among the highest.
    if 2 * len(ordered) >= len(scores):
        some = np.sort(rng.integers(len(scores), size=2 * (MOST_IMPOSTORS - highest)))
        some = some[run_starts(some)]
    else:
        some = np.flatnonzero(~scores.is_target)
    some = some[~scores.is_target[some] & (scores.values[some] <= bound)]
    some = rng.permutation(some)[: MOST_IMPOSTORS - highest]
    kept = scores.is_target | (scores.values > bound)
    kept[some] = True
    return np.flatnonzero(kept), StandIns(bound, low / len(some))


@dataclass(frozen=True, eq=False, slots=True)
class _Work:
    """Replicates to measure, some at a time: what they give depends neither on who measures them nor on the others."""

    place: TrialPlaces
    seed: int
    functions: Mapping[str, ScoreFunction]
    chunks: Sequence[range] = ()

    def split(self, count: int, workers: int) -> list[_Work]:
        """A stretch of chunks for each worker, which gets the trials once."""
        chunks = [range(i, min(i + AT_ONCE, count)) for i in range(0, count, AT_ONCE)]
        return [replace(self, chunks=chunks[part.start : part.stop]) for part in stretches(len(chunks), workers)]


def _measure(work: _Work) -> dict[str, Floats]:
    """The engine's task: every measure of every replicate of these chunks."""
    people = work.place.targets.people
    parts = [_of_draws(work.place, _same_people(work.seed, people, numbers), work.functions) for numbers in work.chunks]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@lru_cache(maxsize=16)  # all attackers know the same people: everybody, and the two genders
def _same_people(seed: int, people: int, numbers: range) -> Floats:
    drawn = draw_people(seed, people, numbers)
    drawn.flags.writeable = False
    return drawn


def _of_draws(place: TrialPlaces, drawn: Floats, functions: Mapping[str, ScoreFunction]) -> dict[str, Floats]:
    return _values(place.targets.reweight(drawn), place.impostors.reweight(drawn), functions)


def _values(targets: WeightSums, impostors: WeightSums, functions: Mapping[str, ScoreFunction]) -> dict[str, Floats]:
    """Every measure for each column of sums."""
    sets = ReweightedSets(targets, impostors)
    return {name: sets.of(function) for name, function in functions.items()}


def trial_means(scores: Scores, costs: Mapping[str, tuple[Floats, Floats]], *, resamples: int, seed: int) -> Replicates:
    """Replicates of measures that are a mean over targets plus a mean over impostors of one number per trial.

    Weighted sums within each pair of people are all that is needed, whatever the number of trials.
    """
    enroll, test, people = number_people(scores)
    drawn = draw_people(seed, people, range(resamples))
    means = {name: np.zeros(resamples) for name in costs}
    for side, rows in enumerate((np.flatnonzero(scores.is_target), np.flatnonzero(~scores.is_target))):
        pairs, cell = np.unique(enroll[rows] * np.int64(people) + test[rows], return_inverse=True)
        a, b = pairs // people, pairs % people
        weights = np.where((a == b)[:, None], drawn[a], drawn[a] * drawn[b])
        total = np.bincount(cell, minlength=len(pairs)) @ weights
        for name, both in costs.items():
            with np.errstate(divide="ignore", invalid="ignore"):
                means[name] += np.bincount(cell, both[side], minlength=len(pairs)) @ weights / total
    return Replicates(means, people, "trials" if scores.enroll_speaker is None else "speakers")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a measure behaves under resampling: its range, whether it overfits, and where it can't be trusted.

    `sure` are the ends of the range that a sample may reach by chance, where resamples agree and none can be trusted:
    Wilson's interval replaces theirs, and no interval reaches less far from such an end than at it.
    """

    low: float = -np.inf
    high: float = np.inf
    overfits: bool = False
    sure: tuple[float, ...] = ()

    @property
    def is_bounded(self) -> bool:
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def to_angle(self, value: Floats | float) -> Floats:
        """arcsin(sqrt(share of the range)), in which the spread depends little on the value; the value itself if it
        has no range."""
        x = np.asarray(value, np.float64)
        if not self.is_bounded:
            return x
        return np.asarray(np.arcsin(np.sqrt(np.clip((x - self.low) / (self.high - self.low), 0, 1))))

    def from_angle(self, angle: float) -> float:
        if not self.is_bounded:
            return angle
        return self.low + (self.high - self.low) * float(np.sin(np.clip(angle, 0, np.pi / 2)) ** 2)

    def slope(self, value: float) -> float:
        """Of `to_angle` at this value; infinite at the ends of the range."""
        product = (value - self.low) * (self.high - value)
        return 0.5 / float(np.sqrt(product)) if product > 0 else float("inf")


# A resample repeats people, so it holds 1 - 1/e of them: simulation shows that it finds 56 to 71 % of the bias that
# calibrating on the measured trials brings.
SEEN = 1 - np.exp(-1)


STRETCHED = 1.25  # times the error on the measure's own scale: then resamples lie at an end of the range


def interval(
    value: float,
    samples: Floats,
    clusters: int,
    shape: Shape,
    left_out: Floats | None = None,
    *,
    independent: int | None = None,
) -> tuple[float, float] | None:
    """The 95 % interval from bootstrap replicates and, where a measure overfits, the jackknife's.

    Measures with a range are compared as arcsin(sqrt(share of the range)), in which their spread depends little on
    where they are. The center is the value less its bias; the half-width is Student's t (people - 1 degrees of freedom)
    times the standard error, the larger of bootstrap's and jackknife's where the measure overfits. Plain percentiles
    would cover the truth in two cases of three only: D_ECE and min Cllr are calibrated on the very trials they are
    measured on, and resamples even more so. Always holds the value itself.

    That scale is infinitely steep at the ends of the range. Where one person more or less takes a measure that overfits
    to an end, it exaggerates bias and error; they are then taken from the measure itself, times the slope at its value.

    At an end of `shape.sure` resamples agree, and Wilson's interval of `independent` trials (or of as many as there
    are clusters) replaces theirs. No interval reaches less far from such an end than this one: without any error
    nobody is less certain than with a few.
    """
    fine = samples[np.isfinite(samples)]
    if clusters < 2 or len(fine) < max(2, len(samples) / 2) or not np.isfinite(value):
        return None
    span = (shape.high - shape.low) * wilson(0, independent or clusters)[1] if shape.is_bounded else 0.0
    at_end = [end for end in shape.sure if np.isclose(value, end, rtol=1e-12, atol=1e-12)] if shape.is_bounded else []
    if at_end:
        return (value, value + span) if at_end[0] == shape.low else (value - span, value)
    others = np.empty(0) if left_out is None or not shape.overfits else left_out[np.isfinite(left_out)]
    point, slope = float(shape.to_angle(value)), shape.slope(value)
    bias, error = _bias_and_error(shape.to_angle(fine) - point, shape.to_angle(others), shape.overfits)
    if shape.is_bounded and shape.overfits and np.isfinite(slope):
        own = _bias_and_error((fine - value) * slope, others * slope, shape.overfits)
        if error > STRETCHED * own[1]:
            bias, error = own
    half = t_quantile(clusters - 1, 0.975) * error
    low, high = shape.from_angle(point - bias - half), shape.from_angle(point - bias + half)
    value = min(max(value, shape.low), shape.high)  # rounding takes the largest value there is a bit beyond it
    low, high = max(shape.low, min(value, low)), min(shape.high, max(value, high))
    if shape.low in shape.sure:
        high = max(high, shape.low + span)
    if shape.high in shape.sure:
        low = min(low, shape.high - span)
    return low, high


def _bias_and_error(deviations: Floats, left_out: Floats, overfits: bool) -> tuple[float, float]:
    """From the deviations of replicates from the value, and from the values with one person left out."""
    bias, error = float(deviations.mean()), float(deviations.std(ddof=1))
    k = len(left_out)
    if k > 1:  # without one of two people nothing can be measured
        error = max(error, float(np.sqrt((k - 1) / k * np.sum((left_out - left_out.mean()) ** 2))))
    return (bias / SEEN if overfits else bias), error
