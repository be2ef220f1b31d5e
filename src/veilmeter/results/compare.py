"""Runs side by side: what one system gives away more than another.

A difference is that of the two values that are shown, of the second, third... run minus the first, with an interval of
that same difference. Where both runs have the same people and trials, what they share cancels: each person is left out
of both runs at once. Holm's rule says which differences are significant though many are looked at.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates, unit_of_difference
from veilmeter.core.findings import Finding, Reference
from veilmeter.core.intervals import cluster_error, t_quantile
from veilmeter.core.parquet_bounds import read_table, texts
from veilmeter.data.scores import Scores, encode
from veilmeter.metrics.measure import is_headline, label_of
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.resampling import Replicates, common_draws
from veilmeter.metrics.scores.summary import replicates_of, shape_of
from veilmeter.results.criteria import strongest
from veilmeter.results.levels import ALPHA, holm
from veilmeter.results.model import AttackerResult, LinkedPerson, Part, Results
from veilmeter.results.run_folder import read_results, table_of
from veilmeter.wording.catalog import shown

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
    """Each speaker's change in how often they are linked, weighted by their conversations as the values are."""
    sides = [{row.speaker: row for row in people} for people in (first, second)]
    counts = [{name: row.conversations for name, row in side.items()} for side in sides]
    if counts[0] != counts[1] or len(counts[0]) < 2:
        return None
    names = list(counts[0])
    weights = np.array([counts[0][name] for name in names])
    change = np.array([sides[1][name].linked - sides[0][name].linked for name in names])
    error, clusters = cluster_error(np.repeat(change, weights), np.repeat(np.arange(len(names)), weights))
    half = t_quantile(clusters - 1, 0.975) * error
    return (value - half, value + half)


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


def pair_trials(runs: Sequence[tuple[Path, Results, str]], resamples: int, seed: int) -> PairedTrials | None:
    """The trials of one attacker of each run (folder, results, attacker); None where one of them is not an attacker."""
    holders = [results.attackers.get(attacker) for _, results, attacker in runs]
    known = [holder for holder in holders if holder is not None]
    if len(known) < len(runs):
        return None
    people = [_by_point(holder) for holder in known]
    given = any(holder.source == "scores" for holder in known)
    sets = [] if given else [_scores(folder, results, attacker) for folder, results, attacker in runs]
    replicates = []
    if sets and all(scores is not None and scores.names == sets[0].names for scores in sets if sets[0] is not None):
        for scores in sets:
            if scores is None:
                return PairedTrials((), tuple(people))
            replicates.append(replicates_of(scores, SortedScores(*scores.ordered), resamples, seed))
    return PairedTrials(tuple(replicates), tuple(people))


def _by_point(holder: AttackerResult) -> dict[tuple[int, int], list[LinkedPerson]]:
    """How often each speaker is linked, by length and number of people."""
    rows: dict[tuple[int, int], list[LinkedPerson]] = {}
    for row in holder.people:
        rows.setdefault((row.length, row.among), []).append(row)
    return rows


def linking_differences(runs: Sequence[ComparedRun]) -> dict[tuple[int, int], Estimate]:
    """Of every two runs (by their numbers) how many more recordings the strongest attacker links in the second than
    in the first: the figures of their headlines, with Holm's rule over all pairs."""
    cases = {number: case for number, run in enumerate(runs) if (case := strongest(run.results)) is not None}
    alike = same_trials(runs)
    differences: dict[tuple[int, int], list[Estimate]] = {}
    for first, second in combinations(cases, 2):
        pair = [cases[first], cases[second]]
        people = [
            _by_point(runs[number].results.attackers[case.attacker])
            for number, case in zip((first, second), pair, strict=True)
        ]
        trials = PairedTrials((), tuple(people)) if alike else None
        figure = difference_of(pair[0].estimate, pair[1].estimate, trials, 1, runs[second].name)
        differences[first, second] = [figure]
    return {pair: points[0] for pair, points in sure_by_holm(differences).items()}


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


CURVES = ("linkability", "residual_risk")
OF_PARTS = {"similarity": ("deid", "g_vd"), "inversion": ("top1",)}


@dataclass(frozen=True, eq=False)
class ComparedRun:
    name: str
    folder: Path
    results: Results

    @property
    def reference(self) -> Reference:
        """Its name, which comes from a title or a folder."""
        return Reference("run", self.name)


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A figure that is compared: of an attacker, or of a part of the results, of everybody or within a group.

    >>> print(ComparedFigure("EER", "informed", (Reference("value", "f", "gender"),)))
    informed: EER, gender f
    """

    label: str
    attacker: str = ""
    group: tuple[Reference, ...] = ()

    def __str__(self) -> str:
        whose = f"{self.attacker}: " if self.attacker else ""
        return f"{whose}{self.label}{''.join(f', {shown(value)}' for value in self.group)}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """`values` and `differences` by what is compared; one per run, or per run but the first.

    A difference carries `p_adjusted`, by Holm's rule over all of them, and `sure`. `settings` are those that differ
    between the runs, each with its value in every run.
    """

    runs: tuple[ComparedRun, ...]
    values: Mapping[ComparedFigure, Sequence[Estimate]]
    differences: Mapping[ComparedFigure, Sequence[Estimate]]
    summary: tuple[tuple[Finding, ...], ...] = ()  # one paragraph each
    warnings: tuple[Finding, ...] = ()
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def read_runs(folders: Sequence[str | Path], *, repeat_names: bool = False) -> tuple[ComparedRun, ...]:
    """The runs in these folders, each under another name; with `repeat_names`, the runs of one system share theirs.

    A folder may be written as NAME=RUN, and several of them as NAME=RUN,RUN.
    """
    given = [labeled for folder in folders for labeled in _labeled_folders(folder)]
    runs = [ComparedRun(label, _folder(folder), read_results(folder)) for label, folder in given]
    labels = Counter(run.name for run in runs if run.name)
    if repeat_names:
        return tuple(replace(run, name=run.name or _title(run) or run.folder.resolve().name) for run in runs)
    for label, count in labels.items():
        if count > 1:
            raise InputError(
                f"{count} runs are called {label!r}", fix="give each its own name, or show their mean: --table --group"
            )
    return tuple(_name_runs(runs))


def _labeled_folders(given: str | Path) -> Iterator[tuple[str, str]]:
    """Each folder with its label, or without one: of `RUN`, `RUN,RUN`, `NAME=RUN` or `NAME=RUN,RUN`, unless there is a
    file of that very name."""
    words = str(given)
    if os.path.exists(words):
        yield "", words
        return
    label = ""
    for piece in filter(None, (piece.strip() for piece in words.split(","))):
        name, has_label, folder = piece.partition("=")
        if not has_label or os.path.exists(piece):
            yield label, piece
            continue
        label = name.strip()
        if not label or not folder:
            raise InputError(f"invalid run: {piece!r}", fix="write NAME=RUN")
        yield label, folder


def compare(
    folders: Sequence[str | Path], *, by: Sequence[str] = (), resamples: int = 1000, seed: int = 0
) -> Comparison:
    """The runs in these folders: every attacker, measure and point that all of them have, and with `by` the same within
    the groups of these attributes."""
    runs = read_runs(folders)
    if len(runs) < 2:
        raise InputError("one run can't be compared", fix="give two or more folders, or --table")
    settings = differing_settings([run.results for run in runs])
    values: dict[ComparedFigure, list[Estimate]] = {}
    differences: dict[ComparedFigure, list[Estimate]] = {}
    alike = same_trials(runs)
    for holder, group in _common_places(runs, by):
        points = [_points_by_title((holder, _estimates(run.results, holder, group))) for run in runs]
        titles = [title for title in points[0] if all(title in others for others in points)]
        if not titles:
            continue
        pairable = alike and not group
        trials = pair_trials([(run.folder, run.results, holder) for run in runs], resamples, seed) if pairable else None
        for title in titles:
            attacker = "" if holder in runs[0].results.parts else holder
            inside = (Reference("value", group[1], group[0]),) if group else ()
            figure = ComparedFigure(title, attacker, inside)
            compared = [of_run[title] for of_run in points]
            values[figure] = [point.with_(at={"run": run.name}) for point, run in zip(compared, runs, strict=True)]
            differences[figure] = [
                difference_of(compared[0], compared[number], trials, number, runs[number].name)
                for number in range(1, len(runs))
            ]
    if not values:
        raise InputError("the runs have nothing in common that could be compared")
    differences = sure_by_holm(differences)
    return Comparison(
        runs, values, differences, tuple(_summary(runs, differences)), tuple(differences_of(runs, settings)), settings
    )


def differing_settings(results: Sequence[Results]) -> dict[str, list[Any]]:
    """Every setting that is not the same in all runs, with its values."""
    incidental = {name for result in results for name in result.incidental}
    keys = dict.fromkeys(key for result in results for key in result.settings if key not in incidental)
    by_key = {key: [_comparable(key, result.settings.get(key), incidental) for result in results] for key in keys}
    return {key: values for key, values in by_key.items() if any(value != values[0] for value in values)}


def _comparable(name: str, value: Any, incidental: Container[str]) -> Any:
    """A setting, with nothing as None; of tables by attacker what was chosen in them, without the files of one run."""
    if not isinstance(value, Mapping):
        return None if value in ("", [], ()) else value
    return {
        attacker: {
            key: item for key, item in table.items() if item not in (None, [], ()) and f"{name}.{key}" not in incidental
        }
        if isinstance(table, Mapping)
        else table
        for attacker, table in value.items()
    }


def _folder(given: str | Path) -> Path:
    """The folder of a run; results.json itself may have been given."""
    path = Path(given)
    return path.parent if path.is_file() else path


def _name_runs(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    """A short name for each: its label, the title it was given, or its folder's name; numbered where one comes up
    again."""
    given = [_title(run) for run in runs]
    names = given if all(given) and len(set(given)) == len(given) else [run.folder.resolve().name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.folder) for run in runs]
    names = [run.name or name for run, name in zip(runs, names, strict=True)]
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return [ComparedRun(name, run.folder, run.results) for name, run in zip(unique, runs, strict=True)]


def _title(run: ComparedRun) -> str:
    return str(run.results.settings.get("title") or "")


def _material(results: Results) -> str:
    """What runs must share to be compared: the original speech or, of scores alone, their keys; by its digest."""
    original = results.inputs.get("original")
    return str(results.protocol.details.get("keys", "")) if original is None else original.sha256


def same_trials(runs: Sequence[ComparedRun]) -> bool:
    """Whether the runs try the same recordings against the same people, so that they can be paired."""

    def trials(results: Results) -> tuple[Any, ...]:
        protocol = results.protocol
        counts = (protocol.enrolled_speakers, protocol.trial_speakers)
        utterances = (protocol.enrollment_utterances, protocol.trial_utterances)
        return (_material(results), results.seed, protocol.split, counts, utterances)

    return all(trials(run.results) == trials(runs[0].results) for run in runs)


def differences_of(runs: Sequence[ComparedRun], settings: Mapping[str, Sequence[Any]]) -> Iterator[Finding]:
    """What differs between the runs beside the system, and which of them can't be relied on."""
    if len({run.folder.resolve() for run in runs}) < len(runs):
        yield Finding("run_given_twice", severity="warning")
    for run in runs:
        if not run.results.verdict.trustworthy:
            yield Finding.of("run_distrusted", run=run.reference, severity="warning")
    first, everywhere = runs[0].results, tuple(run.reference for run in runs)
    if any(_material(run.results) != _material(first) for run in runs):
        material = "original speech" if any("original" in run.results.inputs for run in runs) else "trials"
        yield Finding.of("other_material", material=material, severity="warning")
    elif not same_trials(runs):
        yield Finding("other_trials", severity="warning")
    for key, values in settings.items():
        yield Finding.of("setting_differs", setting=key, values=tuple(map(_value, values)), runs=everywhere)
    names = dict.fromkeys(name for run in runs for name in run.results.attacks)
    for name in names:
        have = [run for run in runs if name in run.results.attackers]
        if len(have) < len(runs):
            yield Finding.of("attacker_not_everywhere", attacker=name, runs=tuple(run.reference for run in have))
            continue
        backends = [run.results.attackers[name].backend for run in runs]
        if len(set(backends)) > 1:
            yield Finding.of("backend_differs", attacker=name, backends=tuple(backends), runs=everywhere)


def _value(value: Any) -> bool | int | float | Reference:
    """A setting's value: a number, or text that may name a file."""
    return value if isinstance(value, bool | int | float) else Reference("text", _text_of(value))


def _text_of(value: Any) -> str:
    if isinstance(value, Mapping):
        tables = {name: ", ".join(f"{key} {_text_of(item)}" for key, item in dict(table).items())
                  for name, table in value.items() if isinstance(table, Mapping)}  # fmt: skip
        value = [f"{name}: {tables[name]}" if tables.get(name) else str(name) for name in value]
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "none" if value is None else str(value)


def _common_places(runs: Sequence[ComparedRun], by: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """The attackers and parts that all runs have, and their groups (attribute and value) by these attributes; not the
    baseline on original speech, which says nothing about a system."""
    holders = [*runs[0].results.attacks, *runs[0].results.parts]
    names = [name for name in holders if all(_holder(run.results, name) is not None for run in runs)]
    shared: list[tuple[str, tuple[str, ...]]] = [(name, ()) for name in names]
    for attribute in by:
        groups = [
            (name, (attribute, value))
            for name in names
            for value in _groups(runs[0].results, name, attribute)
            if all(value in _groups(run.results, name, attribute) for run in runs)
        ]
        if not groups:
            raise InputError(f"the runs share no figures within groups by {attribute}", fix=f"assess --by {attribute}")
        shared += groups
    return shared


def _holder(results: Results, name: str) -> AttackerResult | Part | None:
    return results.attackers.get(name) or results.parts.get(name)


def _groups(results: Results, name: str, attribute: str) -> Mapping[str, Estimates]:
    holder = _holder(results, name)
    return {} if holder is None else holder.by.get(attribute, {})


def _estimates(results: Results, name: str, group: tuple[str, ...]) -> Estimates:
    if group:
        attribute, value = group
        return _groups(results, name, attribute)[value]
    holder = _holder(results, name)
    return Estimates() if holder is None else holder.estimates


def _points_by_title(held: tuple[str, Estimates]) -> dict[str, Estimate]:
    """What is compared of an attacker or a part, by a title: single figures, curves at their largest number of people
    for every length, the strongest of several attacks, and everything that another package measures."""
    holder, estimates = held
    points: dict[str, Estimate] = {}
    for name in estimates.names:
        curve = estimates.points(name)
        if name in CURVES:
            for length in sorted({point.at.get("length", 1) for point in curve}, key=str):
                at_length = curve.filter(lambda point, length=length: point.at.get("length", 1) == length)  # type: ignore[misc]
                largest = at_length.sort_by("speakers")[-1]
                points[f"{label_of(name)} among {largest.at.get('speakers')}, L = {length}"] = largest
        elif name in OF_PARTS.get(holder, ()):
            known = [point for point in curve if math.isfinite(point.value)]
            if known:
                points[label_of(name)] = max(known, key=lambda point: point.value)
        elif len(curve) == 1 and math.isfinite(curve[0].value) and _is_compared(holder, name):
            points[curve[0].label] = curve[0]
    return points


def _is_compared(holder: str, name: str) -> bool:
    return holder == "utility" or (holder not in OF_PARTS and is_headline(name))


def _summary(
    runs: Sequence[ComparedRun], differences: Mapping[ComparedFigure, Sequence[Estimate]]
) -> Iterator[tuple[Finding, ...]]:
    """Each run's worst case, and how many differences are significant, either way."""
    for run in runs:
        level = Finding.of("run_level", run=run.reference, level=run.results.verdict.level)
        criterion = run.results.criteria.get("linking")
        yield (level,) if criterion is None else (level, criterion.finding)
    for number, run in enumerate(runs[1:]):
        points = [points[number] for points in differences.values()]
        sure = [point for point in points if point.extra["sure"]]
        safer = sum((point.value > 0) == (point.better == "higher") for point in sure if point.better != "neither")
        riskier = sum(point.better != "neither" for point in sure) - safer
        counted = Finding.of(
            "differences_counted",
            run=run.reference,
            first=runs[0].reference,
            total=len(points),
            significant=len(sure),
            safer=safer,
            riskier=riskier,
        )
        yield (counted,)
