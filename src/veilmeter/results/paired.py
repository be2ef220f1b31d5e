"""Intervals of differences between runs that try the same recordings: each person is left out of both runs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import clustered_error, t_quantile
from veilmeter.core.parquet_bounds import read_table, texts
from veilmeter.data.scores import Scores, encode
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.resampling import Replicates, shared_draws
from veilmeter.metrics.scores.summary import replicates_of, shape_of
from veilmeter.results.model import LinkedPerson, Results
from veilmeter.results.run_folder import table_of

Interval = tuple[float, float]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairedTrials:
    """What can be paired of one attacker: replicates of its scores, and how often each speaker is linked, per run."""

    replicates: Sequence[Replicates] = ()
    people: Sequence[Mapping[tuple[int, int], Sequence[LinkedPerson]]] = field(default_factory=tuple)

    def interval(self, first: Estimate, second: Estimate, number: int) -> Interval | None:
        """Of the difference of run `number` to the first; None where these figures can't be paired."""
        if first.at != second.at:
            return None
        value = second.value - first.value
        if first.name == "linkability":
            return self._of_links(first, number, value)
        if self.replicates and first.name in self.replicates[0].samples and not first.at:
            return _of_replicates(self.replicates[0], self.replicates[number], first.name, value)
        return None

    def _of_links(self, first: Estimate, number: int, value: float) -> Interval | None:
        key = (int(first.at.get("length", 1)), int(first.at["speakers"]))
        if not self.people or key not in self.people[0] or key not in self.people[number]:
            return None
        return _of_links(self.people[0][key], self.people[number][key], value)


def _of_links(first: Sequence[LinkedPerson], second: Sequence[LinkedPerson], value: float) -> Interval | None:
    """Each speaker's change in how often they are linked, weighted by their conversations as the values are."""
    sides = [{row.speaker: row for row in people} for people in (first, second)]
    counts = [{name: row.conversations for name, row in side.items()} for side in sides]
    if counts[0] != counts[1] or len(counts[0]) < 2:
        return None
    names = list(counts[0])
    weights = np.array([counts[0][name] for name in names])
    change = np.array([sides[1][name].linked - sides[0][name].linked for name in names])
    error, clusters = clustered_error(np.repeat(change, weights), np.repeat(np.arange(len(names)), weights))
    half = t_quantile(clusters - 1, 0.975) * error
    return (value - half, value + half)


def _of_replicates(first: Replicates, second: Replicates, name: str, value: float) -> Interval | None:
    """Student's t with the error of the difference: the bootstrap's, and the jackknife's where a measure is fitted to
    the trials it measures, as resamples that repeat people are fitted even closer."""
    of_second, of_first = shared_draws([second, first], name)
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


def paired_trials(runs: Sequence[tuple[Path, Results, str]], resamples: int, seed: int) -> PairedTrials | None:
    """What runs (folder, results, attacker) left of the trials of one attacker each; None for what is no attacker."""
    holders = [results.attackers.get(attacker) for _, results, attacker in runs]
    known = [holder for holder in holders if holder is not None]
    if len(known) < len(runs):
        return None
    people: list[dict[tuple[int, int], list[LinkedPerson]]] = []
    for holder in known:
        rows: dict[tuple[int, int], list[LinkedPerson]] = {}
        for row in holder.people:
            rows.setdefault((row.length, row.among), []).append(row)
        people.append(rows)
    given = any(holder.source == "scores" for holder in known)
    sets = [] if given else [_scores(folder, results, attacker) for folder, results, attacker in runs]
    replicates = []
    if sets and all(scores is not None and scores.names == sets[0].names for scores in sets if sets[0] is not None):
        for scores in sets:
            if scores is None:
                return PairedTrials((), tuple(people))
            replicates.append(replicates_of(scores, SortedScores(*scores.ordered), resamples, seed))
    return PairedTrials(tuple(replicates), tuple(people))


def _scores(folder: Path, results: Results, attacker: str) -> Scores | None:
    """The trials of one utterance, as the run left them; None where they were not kept."""
    path = table_of(folder, results, f"scores-{attacker}.parquet")
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
