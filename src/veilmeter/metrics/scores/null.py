"""The value of each score measure when the scores carry no information, at the same counts: labels shuffled at random.

Small samples look like leakage: PAV fits noise, D_sys counts empty bins. A value means something only beside this.

Where speakers are known, people are shuffled instead of trials: the target trials are those that would be if every
enrolled person were somebody else of the test. Trials of one pair of speakers share what these two voices share.
Shuffling trials one by one tears such cells apart and makes chance look narrower than it is; here whole cells change
places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.ordering import Levels, levels_of
from veilmeter.data.scores import Scores, present
from veilmeter.metrics.calibration import groups_of_draws, run_starts, softplus
from veilmeter.metrics.scores.forms import ScoreFunction, WeightedSets, bin_of, histogram_edges

Codes = NDArray[np.int64]
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


Floats = NDArray[np.float64]
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
