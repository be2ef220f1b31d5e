"""What each score measure gives when the scores carry no information, at the same counts: labels dealt at random.

Small samples look like leakage: PAV fits noise, D_sys counts empty bins. A value means something only beside this.
Where speakers are known it is dealt who is who, so that chance is as wide as shared speakers make it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import softplus
from veilmeter.metrics.scores import verification
from veilmeter.metrics.scores.relabeling import relabeling
from veilmeter.metrics.scores.resampling import values_of_groups

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Null:
    """The mean over the draws, and their 5th and 95th percentile."""

    mean: float
    range: tuple[float, float]


def null_levels(
    scores: Scores, *, draws: int | None = None, seed: int = 0, eer_method: str = "rocch"
) -> Mapping[str, Null]:
    """The null level of every measure of the page: of these scores with their labels dealt anew.

    Only the rarer class is drawn, as places in the joint order, so a draw costs no sort of all scores.
    """
    targets, impostors = len(scores.targets), len(scores.impostors)
    few = min(targets, impostors)
    rounds = draws if draws is not None else 200 if few <= 20_000 else 40 if few <= 200_000 else 10
    rng = np.random.default_rng([seed, 1])
    people = relabeling(scores) if 2 * targets <= impostors else None
    # Who is somebody else has no trials of their own: what these leak must not look like chance.
    pooled = np.sort(scores.values if people is None else scores.impostors)

    def shuffled(rng: np.random.Generator) -> Floats:
        return pooled[rng.choice(len(pooled), few, replace=False, shuffle=False)]

    draw: Callable[[np.random.Generator], Floats] = shuffled if people is None else people.draw
    work = _Deals(pooled, targets <= impostors, verification.d_sys_edges(pooled[:1], pooled[-1:], count=targets))
    columns: dict[str, list[Floats]] = {}
    chunk = max(1, min(rounds, 4_000_000 // (2 * few + 1)))
    for start in range(0, rounds, chunk):
        dealt = [draw(rng) for _ in range(min(chunk, rounds - start))]
        for name, drawn in work.measured(dealt, eer_method).items():
            columns.setdefault(name, []).append(drawn)
    levels = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {name: Null(float(v.mean()), (float(np.quantile(v, 0.05)), float(np.quantile(v, 0.95)))) for name, v in
            levels.items() if np.isfinite(v).all()}  # fmt: skip


class _Deals:
    """All scores in rising order, and what draws of the rarer class from them share."""

    def __init__(self, pooled: Floats, few_are_targets: bool, edges: Floats) -> None:
        self.pooled, self.few_are_targets, self.edges = pooled, few_are_targets, edges
        self.first = np.append(np.flatnonzero(np.concatenate([[True], pooled[1:] != pooled[:-1]])), len(pooled))
        self.distinct = pooled[self.first[:-1]]
        self.bins = verification.binned(pooled, edges)
        self.if_target, self.if_impostor = float(softplus(-pooled).sum()), float(softplus(pooled).sum())

    def measured(self, draws: list[Floats], eer_method: str) -> dict[str, Floats]:
        """Every measure of each draw, which are the scores that the rarer class got."""
        most = max(map(len, draws))
        few, many = (np.stack(side, axis=1) for side in zip(*(self._groups(d, most) for d in draws), strict=True))
        t, n = (few, many) if self.few_are_targets else (many, few)
        columns = values_of_groups(t, n, eer_method)
        columns["cllr"] = np.array([self._cllr(values) for values in draws])
        columns["calibration_loss"] = columns["cllr"] - columns["min_cllr"]
        drawn = np.stack([verification.binned(np.sort(values), self.edges) for values in draws], axis=1)
        rest = self.bins[:, None] - drawn
        both = (drawn, rest) if self.few_are_targets else (rest, drawn)
        columns["d_sys"] = verification.d_sys_of_counts(*both)
        return columns

    def _groups(self, values: Floats, most: int) -> tuple[Floats, Floats]:
        """How many of the drawn class and of the other one each group holds; groups left over stay empty."""
        distinct, counts = np.unique(np.searchsorted(self.distinct, values), return_counts=True)
        few, many = np.zeros(2 * most + 1), np.zeros(2 * most + 1)
        begin, end = self.first[distinct], self.first[distinct + 1]
        k = len(distinct)
        few[1 : 2 * k : 2] = counts
        many[1 : 2 * k : 2] = end - begin - counts
        many[0 : 2 * k + 1 : 2] = np.append(begin, self.first[-1]) - np.concatenate([[0], end])
        return few, many

    def _cllr(self, values: Floats) -> float:
        chosen = float(softplus(-values).sum()), float(softplus(values).sum())
        rest = len(self.pooled) - len(values)
        if self.few_are_targets:
            up, down = chosen[0] / len(values), (self.if_impostor - chosen[1]) / rest
        else:
            up, down = (self.if_target - chosen[0]) / rest, chosen[1] / len(values)
        return (up + down) / (2 * float(np.log(2)))
