"""All measures of a set of scores on one page, each an `Estimate`, beside what it would be without any information.

Small samples look like leakage: PAV fits noise, D_sys counts empty bins. So a value means something only beside that of
the same scores with labels shuffled at random.

Where speakers are known, people are shuffled instead of trials: the target trials are those that would be if every
enrolled person were somebody else of the test. Trials of one pair of speakers share what these two voices share.
Shuffling trials one by one tears such cells apart and makes chance look narrower than it is; here whole cells change
places.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Reference, references, warning
from veilmeter.data.scores import Scores, ScoresLike, present, to_scores
from veilmeter.metrics.calibration import Levels, groups_of_draws, levels_of, run_starts, softplus
from veilmeter.metrics.measure import MEASURES, Measure, compute_estimates, estimate_of
from veilmeter.metrics.scores import resampling
from veilmeter.metrics.scores.eer import Eer
from veilmeter.metrics.scores.forms import (
    ScoreFunction,
    ScoreSet,
    SortedScores,
    WeightedSets,
    bin_of,
    histogram_edges,
    stream_scores,
)
from veilmeter.metrics.scores.resampling import Replicates, Shape

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Functions = dict[str, ScoreFunction]
NULL_ANYWAY = 200_000  # trials up to which the null level costs next to nothing


def score_functions(eer_method: str = "rocch", measures: Sequence[Measure] | None = None) -> Functions:
    """By name, how measures of scores are computed that can be resampled: all registered ones unless some are given."""
    functions = {
        name: function
        for entry in (MEASURES.of_kind("scores") if measures is None else measures)
        for name, function in entry.functions.items()
        if isinstance(function, ScoreFunction)
    }
    if "eer" in functions:
        functions["eer"] = Eer(eer_method)
    return functions


def shape_of(name: str, function: ScoreFunction | None = None) -> Shape:
    """How a measure of scores behaves under resampling; `function` computes it, if that is known."""
    entry = MEASURES[MEASURES.family(name)]
    own = function or entry.functions.get(name)
    if not isinstance(own, ScoreFunction):
        return Shape(entry.low, entry.high)
    return Shape(entry.low, entry.high, overfits=own.overfits, sure=own.sure)


def values(data: ScoreSet, eer_method: str = "rocch") -> dict[str, float]:
    """The value of every measure that can be resampled."""
    return {name: data.of(function) for name, function in score_functions(eer_method).items()}


def measure(
    scores: ScoresLike,
    measures: Sequence[str | Measure] = (),
    *,
    intervals: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str = "rocch",
    engine: Engine | None = None,
) -> Estimates:
    """Measure what scores disclose, by every registered measure of scores.

    Parameters
    ----------
    scores : Scores, path, DataFrame, or (targets, impostors)
        The scores; a path is a score file with the label in its fourth column, and a frame has the columns `score`
        and `target`, perhaps `enroll_speaker` and `test_speaker`.
    measures : sequence of str or Measure
        Measures by name, as `file.py:name`, or as `measure_of` makes them; by default all that are registered.
    intervals : bool
        Whether to compute 95 % intervals. Without them large sets get no chance level either.
    resamples : int
        Bootstrap resamples of the speakers.
    seed : int
        Random seed.
    eer_method : {"rocch", "roc", "interpolated", "speechbrain"}
        How the EER is computed.
    engine : Engine, optional
        Where resamples of large sets run.

    Returns
    -------
    Estimates
        By name: eer, cllr, min_cllr, d_ece, l_w, d_sys, tpr@fpr=0.01 and so on. A measure of another package that
        fails is left out with a warning.

    Raises
    ------
    InputError
        If the scores can't be read, are not finite, or are all of one class.

    Examples
    --------
    >>> found = measure(Scores.from_arrays([2.0, 3.0], [0.0, 1.0]), intervals=False)
    >>> round(found["d_ece"].value, 4), found["l_w"].extra["tag"]
    (0.7213, 'A')
    """
    names = [MEASURES.family(MEASURES.find(given).name) for given in measures] or None
    measured, problems = measure_with_problems(
        to_scores(scores),
        measures=names,
        intervals=intervals,
        resamples=resamples,
        seed=seed,
        eer_method=eer_method,
        engine=engine,
    )
    for problem in problems:
        (reason,) = references(problem)
        warnings.warn(f"{problem.values['measure']}: {reason.id}", stacklevel=2)
    return Estimates(measured.values())


@np.errstate(over="ignore", invalid="ignore")  # scores near the largest float have no finite sums
def measure_with_problems(
    scores: Scores,
    *,
    intervals: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str = "rocch",
    engine: Engine | None = None,
    measures: Sequence[str] | None = None,
) -> tuple[dict[str, Estimate], list[Finding]]:
    """As `measure`, of all registered measures or of those named, and why some gave nothing."""
    entries = [
        entry for entry in MEASURES.of_kind("scores", measures or ()) if measures is None or entry.name in measures
    ]
    functions = score_functions(eer_method, entries)
    data = SortedScores(*scores.ordered)
    spread = _spread(scores, data, functions, resamples if intervals else 0, seed, engine)
    nulls: Mapping[str, Null] = {}
    if intervals or len(scores) <= NULL_ANYWAY:
        nulls = null_levels(scores, functions, seed=seed)
    measured = {
        name: function_estimate(name, function, data, scores.counts, spread=spread, null=nulls.get(name))
        for name, function in functions.items()
    }
    measured = _nest(measured, functions)
    if "d_sys" in measured and nulls and len(scores) <= MOST_BANDED:
        point = measured["d_sys"]
        measured["d_sys"] = point.with_(extra={**point.extra, BANDS: band_excess(scores, seed=seed)})
    problems = []
    for entry in entries:
        if not functions.keys() >= entry.functions.keys():  # one plain function, which can't be resampled
            try:
                measured |= _plain_estimates(entry, scores)
            except InputError as error:
                reason = Reference("text", str(error))
                problems.append(warning("measure_not_possible", measure=entry.name, reason=reason))
    facts = {"resamples": resamples, "seed": seed} if intervals else {"seed": seed}
    return {name: point.sign(**facts) for name, point in measured.items()}, problems


def _plain_estimates(entry: Measure, scores: Scores) -> dict[str, Estimate]:
    points = compute_estimates(entry, scores)
    by_name = {point.name: point if point.n else point.with_(n=scores.counts) for point in points}
    if len(by_name) < len(points):
        raise InputError("it gave several estimates of one name", fix="a measure of scores has one per name")
    return by_name


@np.errstate(over="ignore", invalid="ignore")
def eer_estimate(
    scores: Scores,
    *,
    intervals: bool = True,
    resamples: int = 200,
    seed: int = 0,
    eer_method: str = "rocch",
    engine: Engine | None = None,
) -> Estimate:
    """The EER by itself, as `measure` has it; what chance gives is known without shuffling labels: nearly 50."""
    data, function = SortedScores(*scores.ordered), Eer(eer_method)
    spread = _spread(scores, data, {"eer": function}, resamples if intervals else 0, seed, engine)
    return function_estimate("eer", function, data, scores.counts, spread=spread)


def measure_stream(
    pieces: Iterable[tuple[Floats, NDArray[np.bool_]]], *, folder: str | None = None
) -> dict[str, Estimate]:
    """Every measure that can be resampled, of scores that need not fit into memory: values without intervals."""
    with np.errstate(over="ignore", invalid="ignore"), stream_scores(pieces, folder=folder) as data:
        return {
            name: function_estimate(name, function, data, data.counts) for name, function in score_functions().items()
        }


def one_target_person(scores: Scores) -> bool:
    """Whether all target trials are of one person: then nothing says how much people differ, and no interval can."""
    if scores.enroll_speaker is None:
        return False
    people = scores.enroll_speaker[scores.is_target]
    return bool((people == people[0]).all())


def _spread(
    scores: Scores, data: SortedScores, functions: Functions, resamples: int, seed: int, engine: Engine | None
) -> Replicates | None:
    """The replicates behind the intervals; None where no interval is wanted or possible."""
    if not resamples or one_target_person(scores):
        return None
    return resampling.replicates(scores, data, functions, resamples=resamples, seed=seed, engine=engine)


def replicates_of(
    scores: Scores, data: SortedScores, resamples: int, seed: int, *, eer_method: str = "rocch"
) -> Replicates:
    """The replicates of every measure that can be resampled."""
    return resampling.replicates(scores, data, score_functions(eer_method), resamples=resamples, seed=seed)


def function_estimate(
    name: str,
    function: ScoreFunction,
    data: ScoreSet,
    counts: Mapping[str, int],
    *,
    spread: Replicates | None = None,
    null: Null | None = None,
) -> Estimate:
    """The estimate of a measure that can be resampled, of scores of which `counts` says how many there are."""
    return score_estimate(
        name, data.of(function), counts, function=function, spread=spread, null=null, extra=function.extra(data)
    )


def score_estimate(
    name: str,
    value: float,
    counts: Mapping[str, int],
    *,
    function: ScoreFunction | None = None,
    method: str = "",
    spread: Replicates | None = None,
    null: Null | None = None,
    extra: Mapping[str, Any] | None = None,
    at: Mapping[str, float | int | str] | None = None,
) -> Estimate:
    """One estimate with the words of its measure and, where replicates have it, an interval."""
    interval = None
    enough = function is None or counts["targets"] >= function.fewest_targets
    if spread is not None and name in spread.samples and enough:
        interval = spread.interval(name, value, shape_of(name, function))
        if interval is not None and function is not None:
            interval = (interval[0], min(interval[1], function.highest_end))
    return estimate_of(
        name,
        value,
        method=method if function is None else function.method(counts),
        interval=interval,
        null=None if null is None else null.mean,
        null_range=None if null is None else null.range,
        n=counts,
        at=at or {},
        extra=extra or {},
    )


def _nest(measured: Mapping[str, Estimate], functions: Functions) -> dict[str, Estimate]:
    """The estimates with intervals in the order of their measures: where one is never larger than another, neither is
    an end of its interval. Upper ends rise to those of smaller measures and lower ends fall to those of larger ones,
    so that every interval holds what it held before."""
    nested = dict(measured)
    pairs = [(name, function.at_most) for name, function in functions.items() if function.at_most in measured]
    for _ in pairs:  # as often as a chain may be long
        for small, large in pairs:
            below, above = nested[small].interval, nested[large].interval
            if below is not None and above is not None:
                nested[small] = nested[small].with_(interval=(min(below[0], above[0]), below[1]))
                nested[large] = nested[large].with_(interval=(above[0], max(below[1], above[1])))
    return nested


def warnings_of(estimates: Mapping[str, Estimate]) -> list[Finding]:
    """Warnings for the reader of these estimates, by the rules of the measures."""
    functions = score_functions()
    known = [(functions[name], point) for name, point in estimates.items() if name in functions]
    return [finding for function, point in known for finding in function.warnings(point)]


def eers_by(scores: Scores, rules: Iterable[str]) -> dict[str, Estimate]:
    """The EER by other rules than the one that was chosen, each under a separate name: `eer_speechbrain`."""
    data = SortedScores(*scores.ordered)
    return {
        f"eer_{rule}": estimate_of(f"eer_{rule}", data.of(Eer(rule)), method=f"the rule {rule}", n=data.counts)
        for rule in rules
    }


LEAST_SPEAKERS = 5  # tested; fewer can't be exchanged in enough ways
LEAST_SHARE = 0.8  # of the target trials that a relabeling must have: impostor trials may have been thinned out


class Relabeling(Protocol):
    """Draws which trials would be target trials if everybody enrolled were another, randomly chosen test speaker."""

    def draw(self, rng: np.random.Generator) -> NDArray[np.intp]: ...


@dataclass(frozen=True, eq=False)
class MatrixRelabeling:
    """Trials that are a whole matrix, row by row. `enrolled` are the people in the order of their codes, `rows` theirs;
    `columns` are the test recordings by speaker, each speaker's from `starts` on, `counts` many."""

    enrolled: Codes
    rows: Codes
    tested: Codes
    columns: Codes
    starts: Codes
    counts: Codes
    targets: int

    def draw(self, rng: np.random.Generator) -> NDArray[np.intp]:
        partners = deal_partners(self.enrolled, self.tested, rng)
        sizes = self.counts[partners]
        ends = np.cumsum(sizes)
        at = np.repeat(self.starts[partners] - (ends - sizes), sizes) + np.arange(ends[-1])
        chosen = np.repeat(self.rows[: len(partners)] * len(self.columns), sizes) + self.columns[at]
        return rng.choice(chosen, self.targets, replace=False) if len(chosen) > self.targets else chosen


def _of_matrix(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> MatrixRelabeling | None:
    """As `relabeling` of all trials of a matrix with these speakers; None where a cell is not a person's row."""
    width = int(max(rows.max(), columns.max())) + 1
    counts = np.bincount(columns, minlength=width)
    order = np.argsort(rows, kind="stable")
    order = order[counts[rows[order]] > 0]
    enrolled, tested = rows[order].astype(np.int64), np.flatnonzero(counts)
    if len(np.unique(rows)) < len(rows) or len(tested) < LEAST_SPEAKERS:
        return None
    targets = int(counts[enrolled].sum())
    expected = float(np.sum((len(columns) - counts[enrolled]) / (len(tested) - 1)))
    if expected < LEAST_SHARE * targets:
        return None
    by_speaker = np.argsort(columns, kind="stable")
    return MatrixRelabeling(
        enrolled, order.astype(np.int64), tested, by_speaker, np.cumsum(counts) - counts, counts, targets
    )


@dataclass(frozen=True, eq=False)
class CellRelabeling:
    """Trials in cells of one enrolled and one test speaker; `groups` are enrolled speakers with the same test speakers.

    `rows` are the trials in the order of the cells, whose keys (enrolled x `width` + test) rise; `targets` is how many
    target trials there really are.
    """

    rows: NDArray[np.intp]
    keys: Codes
    starts: Codes
    sizes: Codes
    width: int
    groups: tuple[tuple[Codes, Codes], ...]
    targets: int

    def draw(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """The trials that were target trials if everybody enrolled were another, randomly chosen test speaker."""
        used = np.zeros(self.width, bool)
        wanted = []
        for enrolled, tested in self.groups:
            partners = deal_partners(enrolled, tested[~used[tested]], rng)
            used[partners] = True
            wanted.append(enrolled[: len(partners)] * self.width + partners)
        cells = np.searchsorted(self.keys, np.concatenate(wanted))
        sizes = self.sizes[cells]
        ends = np.cumsum(sizes)
        chosen = self.rows[np.repeat(self.starts[cells] - (ends - sizes), sizes) + np.arange(ends[-1])]
        return rng.choice(chosen, self.targets, replace=False) if len(chosen) > self.targets else chosen


def deal_partners(people: Codes, partners: Codes, rng: np.random.Generator) -> Codes:
    """A different partner for each of the people in turn, nobody themselves; fewer where there are not enough.

    >>> rng = np.random.default_rng(0)
    >>> deal_partners(np.arange(3), np.arange(3), rng).tolist() in ([1, 2, 0], [2, 0, 1])
    True
    """
    order = rng.permutation(partners)
    pairs = min(len(people), len(order))
    for i in np.flatnonzero(order[:pairs] == people[:pairs]):
        if order[i] == people[i]:  # an earlier exchange may have helped
            # Whoever gets this one isn't this person; whatever comes instead isn't this partner.
            others = np.flatnonzero(np.arange(len(order)) != i)
            if not len(others):
                return order[:0]
            j = int(rng.choice(others))
            order[i], order[j] = order[j], order[i]
    return order[: len(people)]


def relabeling(scores: Scores) -> Relabeling | None:
    """How people can be exchanged; None where speakers aren't known, are too few, or hardly meet any other."""
    if scores.grid is not None and (of_matrix := _of_matrix(*scores.grid)) is not None:
        return of_matrix
    enroll, test = scores.enroll_speaker, scores.test_speaker
    if enroll is None or test is None or not np.array_equal(enroll == test, scores.is_target):
        return None
    people = present(enroll[scores.is_target])
    width = int(max(enroll.max(), test.max())) + 1
    mine = np.zeros(width, bool)
    mine[people] = True
    rows = np.flatnonzero(mine[enroll])
    key = enroll[rows] * np.int64(width) + test[rows]
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        rows, key = rows[order], key[order]
    starts = run_starts(key)
    keys, sizes = key[starts], np.diff(starts, append=len(key))
    groups = _groups(keys, width)
    own = keys // width == keys % width
    if len(present(keys % width)) < LEAST_SPEAKERS or sum(len(tested) - 1 for _, tested in groups) < len(groups):
        return None
    targets = int(sizes[own].sum())
    others = np.bincount(keys // width, np.where(own, 0, sizes), width)[people]
    cells = np.bincount(keys // width, ~own, width)[people]
    expected = float(np.sum(others / np.maximum(cells, 1)))
    if expected < LEAST_SHARE * targets:
        return None
    return CellRelabeling(rows, keys, starts, sizes, width, groups, targets)


def _groups(keys: Codes, width: int) -> tuple[tuple[Codes, Codes], ...]:
    """Enrolled speakers who meet the same test speakers, and these."""
    starts = np.flatnonzero(np.diff(keys // width, prepend=-1))
    alike: dict[bytes, tuple[list[int], Codes]] = {}
    for cells in np.split(keys, starts[1:]):
        tested = cells % width
        alike.setdefault(tested.tobytes(), ([], tested))[0].append(int(cells[0] // width))
    return tuple((np.array(enrolled), tested) for enrolled, tested in alike.values())


DRAWS = (
    (1_000, 200),
    (2_000, 100),
    (20_000, 60),
    (200_000, 40),
    (np.inf, 10),
)  # up to so many trials of the rarer class: how many


@dataclass(frozen=True, slots=True)
class Null:
    """The mean over the draws, and their 5th and 95th percentile."""

    mean: float
    range: tuple[float, float]


def null_levels(
    scores: Scores, functions: Mapping[str, ScoreFunction], *, draws: int | None = None, seed: int = 0
) -> dict[str, Null]:
    """The null level of these measures: their values for the scores with shuffled labels.

    Only the rarer class is drawn, as levels in the joint order, so a draw costs no sort of all scores.
    """
    targets = len(scores.targets)
    impostors = len(scores) - targets
    few = min(targets, impostors)
    rounds = next(count for most, count in DRAWS if few <= most) if draws is None else draws
    rng = np.random.default_rng([seed, 1])
    people = relabeling(scores) if 2 * targets <= impostors else None
    # Somebody else has no target trials: what these leak must not look like chance.
    dealt_ones = slice(None) if people is None else ~scores.is_target
    levels = levels_of(scores.values[dealt_ones])
    level = np.zeros(len(scores), np.int32)
    level[dealt_ones] = levels.of

    def draw() -> NDArray[np.int32]:
        if people is not None:
            return level[people.draw(rng)]
        return level[rng.choice(len(scores), few, replace=False, shuffle=False)]

    deals = _Deals(levels, targets <= impostors, targets)
    columns: dict[str, list[Floats]] = {}
    chunk = max(1, min(rounds, 4_000_000 // (2 * few + 1)))
    for start in range(0, rounds, chunk):
        dealt = [draw() for _ in range(min(chunk, rounds - start))]
        sets = DealtSets(deals, dealt)
        for name, function in functions.items():
            columns.setdefault(name, []).append(sets.of(function))
    drawn_values = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {name: Null(float(v.mean()), (float(np.quantile(v, 0.05)), float(np.quantile(v, 0.95)))) for name, v in
            drawn_values.items() if np.isfinite(v).all()}  # fmt: skip


BANDS = "bands"  # extra of D_sys: see `band_excess`
NEIGHBORS = 5  # on each side, in the order of all scores
BAND_DRAWS = 60
MOST_BANDED = 5_000_000  # scores: what is looked for shows on fewer


def band_excess(scores: Scores, *, seed: int = 0) -> float:
    """How many target scores have other target scores next to them, in standard deviations above what relabeled people
    give. It finds targets that lie in narrow bands between impostors, which no threshold separates, and which the bins
    of D_sys are too wide for."""
    rng = np.random.default_rng([seed, 2])
    targets = int(scores.is_target.sum())
    mixed = rng.permutation(len(scores))  # equal scores have no order: theirs must not be that of a file
    place = np.empty(len(scores), np.int64)
    place[mixed[np.argsort(scores.values[mixed], kind="stable")]] = np.arange(len(scores))
    others = np.cumsum(~scores.is_target[np.argsort(place)]) - 1  # places among impostors alone
    people = relabeling(scores) if 2 * targets <= len(scores) - targets else None

    def beside(places: NDArray[np.int64]) -> float:
        places = np.sort(places)
        near = np.searchsorted(places, places + NEIGHBORS, "right") - np.searchsorted(places, places - NEIGHBORS)
        return float(np.mean(near - 1)) / (2 * NEIGHBORS)

    if people is not None:
        drawn = [beside(others[place[people.draw(rng)]]) for _ in range(BAND_DRAWS)]
    else:
        drawn = [beside(rng.choice(len(scores), targets, replace=False)) for _ in range(BAND_DRAWS)]
    usual = float(np.mean(drawn))
    spread = max(float(np.std(drawn)), np.sqrt(usual / (2 * NEIGHBORS * targets)), 1e-9)
    return float((beside(place[scores.is_target]) - usual) / spread)


class _Deals:
    """The levels of all scores, and what draws of the rarer class from them share."""

    def __init__(self, levels: Levels, few_are_targets: bool, targets: int) -> None:
        self.levels, self.few_are_targets = levels, few_are_targets
        numbers, sizes = levels.numbers, levels.sizes
        self.edges = histogram_edges(numbers[0], numbers[-1], targets)
        self.bins = np.bincount(bin_of(numbers, self.edges), sizes, len(self.edges) - 1)
        self.total = float(sizes.sum())
        self.if_target = float(softplus(-numbers) @ sizes)
        self.if_impostor = self.if_target + float(numbers @ sizes)  # softplus(x) is softplus(-x) + x


class DealtSets(WeightedSets):
    """The scores with shuffled labels: each draw is the levels of the scores that the rarer class got."""

    def __init__(self, deals: _Deals, draws: list[NDArray[np.int32]]) -> None:
        self._deals = deals
        self._counts = np.array([len(places) for places in draws])
        self._draw, places = np.repeat(np.arange(len(draws)), self._counts), np.concatenate(draws)
        self._values = deals.levels.numbers[places]
        super().__init__(*self._by_class(*self._groups(places)))

    def _by_class(self, few: Floats, many: Floats) -> tuple[Floats, Floats]:
        """Targets and impostors, from the drawn class and the other one."""
        return (few, many) if self._deals.few_are_targets else (many, few)

    def _groups(self, places: NDArray[np.int32]) -> tuple[Floats, Floats]:
        """How many of the drawn class and of the other one each group holds (groups x draws); groups that a draw has
        less than others stay empty."""
        few, many, sets = groups_of_draws(places, self._draw, self._deals.levels.sizes)
        sizes = np.bincount(sets)
        place = np.arange(len(sets)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        tables = np.zeros((2, sizes.max(), len(sizes)))
        tables[0, place, sets], tables[1, place, sets] = few, many
        return tables[0], tables[1]

    @cached_property
    def histograms(self) -> tuple[Floats, Floats]:
        edges = self._deals.edges
        bins = len(edges) - 1
        cells = bin_of(self._values, edges) * self.count + self._draw
        drawn = np.bincount(cells, minlength=bins * self.count).reshape(bins, self.count).astype(np.float64)
        return self._by_class(drawn, self._deals.bins[:, None] - drawn)

    @cached_property
    def mean_costs(self) -> tuple[Floats, Floats]:
        deals, counts = self._deals, self._counts
        begins = np.cumsum(counts) - counts
        as_targets, as_impostors = (np.add.reduceat(softplus(x), begins) for x in (-self._values, self._values))
        rest = deals.total - counts
        if deals.few_are_targets:
            return as_targets / counts, (deals.if_impostor - as_impostors) / rest
        return (deals.if_target - as_targets) / rest, as_impostors / counts
