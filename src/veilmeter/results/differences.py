"""The difference of two figures of two runs, its interval, and whether it is sure though many are looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TypeVar

from veilmeter.core.estimate import Estimate
from veilmeter.results.levels import ALPHA, holm
from veilmeter.results.paired import Interval, PairedTrials

Title = TypeVar("Title")


def difference_of(first: Estimate, second: Estimate, trials: PairedTrials | None, number: int, run: str) -> Estimate:
    """Of run `number` to the first, with the interval of that same difference."""
    value = second.value - first.value
    paired = None if trials is None else trials.interval(first, second, number)
    interval, how = (paired, "paired by speaker") if paired is not None else _unpaired(first, second)
    return Estimate(
        name=first.name,
        label=f"{first.label}, difference",
        value=value,
        unit=first.unit,
        interval=interval,
        null=0.0,
        method=how,
        better=first.better,
        at={"run": run},
    )


def _unpaired(first: Estimate, second: Estimate) -> tuple[Interval | None, str]:
    """Where speakers can't be paired: as if the two intervals were independent, which is wider than they are."""
    if first.interval is None or second.interval is None:
        return None, "no interval"
    value = second.value - first.value
    down = math.hypot(second.value - second.interval[0], first.interval[1] - first.value)
    up = math.hypot(second.interval[1] - second.value, first.value - first.interval[0])
    return (value - down, value + up), "not paired"


def sure_by_holm(differences: Mapping[Title, Sequence[Estimate]]) -> dict[Title, list[Estimate]]:
    """The same differences with `p_adjusted` and `sure`, by Holm's rule over all of them that have an interval."""
    places = [(title, row) for title, points in differences.items() for row in range(len(points))]
    known = [(title, row) for title, row in places if differences[title][row].interval is not None]
    adjusted = dict(zip(known, holm([_two_sided(differences[title][row]) for title, row in known]), strict=True))
    return {
        title: [
            point.with_(extra={"p_adjusted": p, "sure": p < ALPHA}) if (p := adjusted.get((title, row))) is not None
            else point.with_(extra={"sure": False})
            for row, point in enumerate(points)
        ]
        for title, points in differences.items()
    }  # fmt: skip


def _two_sided(difference: Estimate) -> float:
    """How often there would be as large a difference if there were none, judged by the interval's nearer half."""
    if difference.interval is None or difference.value == 0:
        return 1.0
    low, high = difference.interval
    reach = difference.value - low if difference.value > 0 else high - difference.value
    if reach <= 0:
        return 0.0
    return 2 * (1 - NormalDist().cdf(NormalDist().inv_cdf(0.975) * abs(difference.value) / reach))
