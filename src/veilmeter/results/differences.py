"""The difference of two runs in one figure, with its interval, and which of many differences are significant.

Where both runs have the same people, what they share cancels: each person is left out of both runs at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.estimate import Estimate, unit_of_difference
from veilmeter.core.intervals import t_quantile
from veilmeter.core.option_groups import EER_METHODS
from veilmeter.core.parquet_bounds import read_table, texts
from veilmeter.data.scores import Scores, encode
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.resampling import Replicates, common_draws
from veilmeter.metrics.scores.summary import replicates_of, shape_of
from veilmeter.results.levels import ALPHA, holm
from veilmeter.results.model import AttackerResult, LinkedPerson, Results
from veilmeter.results.run_folder import table_of

Interval = tuple[float, float]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairedTrials:
    """The trials of one attacker that can be paired, per run: replicates of its scores, and how often each speaker is
    linked."""

    replicates: Sequence[Replicates] = ()
    people: Sequence[Mapping[tuple[int, int], Sequence[LinkedPerson]]] = field(default_factory=tuple)

    def interval(self, first: Estimate, second: Estimate, number: int, base: int = 0) -> Interval | None:
        """The interval of the difference of run `number` to run `base`; None where these figures can't be paired."""
        if first.at != second.at:
            return None
        value = second.value - first.value
        if first.name == "linkability":
            key = (int(first.at.get("length", 1)), int(first.at["speakers"]))
            if not self.people or key not in self.people[base] or key not in self.people[number]:
                return None
            return _of_links(self.people[base][key], self.people[number][key], value)
        if self.replicates and first.name in self.replicates[base].samples and not first.at:
            return _of_replicates(self.replicates[base], self.replicates[number], first.name, value)
        return None


def _of_links(first: Sequence[LinkedPerson], second: Sequence[LinkedPerson], value: float) -> Interval | None:
    """What each speaker adds to the difference of the two shares, in each of which a speaker weighs as much as their
    conversations."""
    sides = [{row.speaker: row for row in people} for people in (first, second)]
    if set(sides[0]) != set(sides[1]) or len(sides[0]) < 2:
        return None
    before, after = (_parts(side, list(sides[0])) for side in sides)
    error = math.sqrt(len(before) / (len(before) - 1) * float(np.sum((after - before) ** 2)))
    half = t_quantile(len(before) - 1, 0.975) * error
    return (value - half, value + half)


def _parts(people: Mapping[str, LinkedPerson], names: Sequence[str]) -> Floats:
    """Each speaker's part in how far the share of linked conversations lies from its mean."""
    weights = np.array([people[name].conversations for name in names], float)
    linked = np.array([people[name].linked for name in names])
    return np.asarray(weights * (linked - np.average(linked, weights=weights)) / weights.sum())


def _of_replicates(first: Replicates, second: Replicates, name: str, value: float) -> Interval | None:
    """Student's t with the error of the difference: the bootstrap's, and the jackknife's where a measure is fitted to
    the trials it measures, as resamples that repeat people are fitted even closer."""
    of_second, of_first = common_draws([second, first], name)
    drawn = of_second - of_first
    error = float(drawn[np.isfinite(drawn)].std(ddof=1)) if np.isfinite(drawn).sum() > 1 else np.inf
    if shape_of(name).overfits and name in first.left_out and name in second.left_out:
        others = np.asarray(second.left_out[name]) - np.asarray(first.left_out[name])
        others = others[np.isfinite(others)]
        k = len(others)
        error = float(np.sqrt((k - 1) / k * np.sum((others - others.mean()) ** 2))) if k > 1 else np.inf
    if first.clusters < 2 or not np.isfinite(error):
        return None
    half = t_quantile(first.clusters - 1, 0.975) * error
    return (value - half, value + half)


def pair_trials(runs: Sequence[tuple[Path | None, Results, str]], resamples: int, seed: int) -> PairedTrials | None:
    """The trials of one attacker of each run (folder, results, attacker); None where one of them is not an attacker."""
    holders = [results.attackers.get(attacker) for _, results, attacker in runs]
    known = [holder for holder in holders if holder is not None]
    if len(known) < len(runs):
        return None
    people = [links_by_point(holder) for holder in known]
    given = any(holder.source == "scores" for holder in known)
    sets = [] if given else [read_run_scores(folder, results, attacker) for folder, results, attacker in runs]
    replicates = []
    if sets and all(scores is not None and scores.names == sets[0].names for scores in sets if sets[0] is not None):
        for scores, holder in zip(sets, known, strict=True):
            if scores is None:
                return PairedTrials((), tuple(people))
            data = SortedScores(*scores.ordered)
            replicates.append(replicates_of(scores, data, resamples, seed, eer_method=_eer_method(holder)))
    return PairedTrials(tuple(replicates), tuple(people))


def _eer_method(holder: AttackerResult) -> str:
    """The method of the attacker's EER, by which resamples of its scores are measured too."""
    point = holder.estimates.single("eer")
    return point.method if point is not None and point.method in EER_METHODS else EER_METHODS[0]


def links_by_point(holder: AttackerResult) -> dict[tuple[int, int], list[LinkedPerson]]:
    """How often each speaker is linked, by length and number of people."""
    rows: dict[tuple[int, int], list[LinkedPerson]] = {}
    for row in holder.people:
        rows.setdefault((row.length, row.among), []).append(row)
    return rows


def read_run_scores(folder: Path | None, results: Results, attacker: str) -> Scores | None:
    """The trials of one utterance, as the run left them; None where they were not kept."""
    path = None if folder is None else table_of(folder, results, f"scores-{attacker}.parquet")
    if path is None:
        return None
    words, numbers = ("enrollment_speaker", "trial_speaker"), ("target", "score")
    groups = list(read_table(path, words, numbers))
    enrolled, tried = (
        np.array([text for group in groups for text in texts(group.column(name), path)], object) for name in words
    )
    names, enrolled_codes, tried_codes = encode(enrolled, tried)
    target, score = (
        np.concatenate([group.column(name).to_numpy(zero_copy_only=False) for group in groups]) for name in numbers
    )
    return Scores(score, target, enrolled_codes, tried_codes, names, str(path), "given")


Title = TypeVar("Title")


def difference_of(
    first: Estimate, second: Estimate, trials: PairedTrials | None, number: int, run: str, base: int = 0
) -> Estimate:
    """Of run `number` to run `base`, with the interval of that same difference."""
    value = second.value - first.value
    paired = None if trials is None else trials.interval(first, second, number, base)
    interval, how = (paired, "paired by speaker") if paired is not None else _independent_interval(first, second)
    return Estimate(
        name=first.name,
        label=f"{first.label}, difference",
        value=value,
        unit=unit_of_difference(first.unit),
        interval=interval,
        null=0.0,
        method=how,
        better=first.better,
        at={"run": run},
    )


def _independent_interval(first: Estimate, second: Estimate) -> tuple[Interval | None, str]:
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
