"""What each score measure gives when the scores carry no information, at the same counts: labels dealt at random.

Small samples look like leakage: PAV fits noise, D_sys counts empty bins. A value means something only beside this.
Where speakers are known it is dealt who is who, so that chance is as wide as shared speakers make it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.ordering import Levels, levels_of
from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import softplus
from veilmeter.metrics.scores import verification
from veilmeter.metrics.scores.blocks import groups_of_draws
from veilmeter.metrics.scores.relabeling import relabeling
from veilmeter.metrics.scores.resampling import values_of_groups

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
    scores: Scores, *, draws: int | None = None, seed: int = 0, eer_method: str = "rocch"
) -> Mapping[str, Null]:
    """The null level of every measure of the page: of these scores with their labels dealt anew.

    Only the rarer class is drawn, as levels in the joint order, so a draw costs no sort of all scores.
    """
    targets = len(scores.targets)
    impostors = len(scores) - targets
    few = min(targets, impostors)
    rounds = next(count for most, count in DRAWS if few <= most) if draws is None else draws
    rng = np.random.default_rng([seed, 1])
    people = relabeling(scores) if 2 * targets <= impostors else None
    # Who is somebody else has no trials of their own: what these leak must not look like chance.
    dealt_ones = slice(None) if people is None else ~scores.is_target
    levels = levels_of(scores.values[dealt_ones])
    level = np.zeros(len(scores), np.int32)
    level[dealt_ones] = levels.of

    def draw() -> NDArray[np.int32]:
        if people is not None:
            return level[people.draw(rng)]
        return level[rng.choice(len(scores), few, replace=False, shuffle=False)]

    work = _Deals(levels, targets <= impostors, targets)
    columns: dict[str, list[Floats]] = {}
    chunk = max(1, min(rounds, 4_000_000 // (2 * few + 1)))
    for start in range(0, rounds, chunk):
        dealt = [draw() for _ in range(min(chunk, rounds - start))]
        for name, drawn in work.measured(dealt, eer_method).items():
            columns.setdefault(name, []).append(drawn)
    drawn_values = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {name: Null(float(v.mean()), (float(np.quantile(v, 0.05)), float(np.quantile(v, 0.95)))) for name, v in
            drawn_values.items() if np.isfinite(v).all()}  # fmt: skip


class _Deals:
    """The levels of all scores, and what draws of the rarer class from them share."""

    def __init__(self, levels: Levels, few_are_targets: bool, targets: int) -> None:
        self.levels, self.few_are_targets = levels, few_are_targets
        numbers, sizes = levels.numbers, levels.sizes
        self.edges = verification.d_sys_edges(numbers[:1], numbers[-1:], count=targets)
        self.bins = np.bincount(verification.bin_of(numbers, self.edges), sizes, len(self.edges) - 1)
        self.total = float(sizes.sum())
        self.if_target = float(softplus(-numbers) @ sizes)
        self.if_impostor = self.if_target + float(numbers @ sizes)  # softplus(x) is softplus(-x) + x

    def measured(self, draws: list[NDArray[np.int32]], eer_method: str) -> dict[str, Floats]:
        """Every measure of each draw, which are the levels of the scores that the rarer class got."""
        counts = np.array([len(places) for places in draws])
        draw, places = np.repeat(np.arange(len(draws)), counts), np.concatenate(draws)
        few, many = self._groups(places, draw)
        values = self.levels.numbers[places]
        columns = values_of_groups(*((few, many) if self.few_are_targets else (many, few)), eer_method)
        columns["cllr"] = self._cllr(values, counts)
        columns["calibration_loss"] = columns["cllr"] - columns["min_cllr"]
        drawn = verification.binned_sets(values, draw, self.edges)
        rest = self.bins[:, None] - drawn
        both = (drawn, rest) if self.few_are_targets else (rest, drawn)
        columns["d_sys"] = verification.d_sys_of_counts(*both)
        return columns

    def _groups(self, places: NDArray[np.int32], draw: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """How many of the drawn class and of the other one each group holds (groups x draws); groups that a draw has
        less than others stay empty."""
        few, many, sets = groups_of_draws(places, draw, self.levels.sizes)
        sizes = np.bincount(sets)
        place = np.arange(len(sets)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        tables = np.zeros((2, sizes.max(), len(sizes)))
        tables[0, place, sets], tables[1, place, sets] = few, many
        return tables[0], tables[1]

    def _cllr(self, values: Floats, counts: NDArray[np.int64]) -> Floats:
        begins = np.cumsum(counts) - counts
        as_targets, as_impostors = (np.add.reduceat(softplus(x), begins) for x in (-values, values))
        rest = self.total - counts
        if self.few_are_targets:
            up, down = as_targets / counts, (self.if_impostor - as_impostors) / rest
        else:
            up, down = (self.if_target - as_targets) / rest, as_impostors / counts
        return np.asarray((up + down) / (2 * np.log(2)))
