"""What each score measure gives when the scores carry no information, at the same counts: labels shuffled at random.

Small samples look like leakage: PAV fits noise, D_sys counts empty bins. A value means something only beside this.
Where speakers are known, people are shuffled instead of trials, so that chance is as wide as shared speakers make it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.ordering import Levels, levels_of
from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import softplus
from veilmeter.metrics.scores.blocks import groups_of_draws
from veilmeter.metrics.scores.forms import ScoreFunction, WeightedSets, bin_of, histogram_edges
from veilmeter.metrics.scores.relabeling import relabeling

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
