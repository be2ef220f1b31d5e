"""Runs side by side: what one system gives away more than another.

A difference is that of the two values that are shown, of the second, third... run minus the first, with an interval of
that same difference. Where both runs have the same people and trials, what they share cancels: each person is left out
of both runs at once. Holm's rule says which differences are sure though many are looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.core.findings import Finding, Reference
from veilmeter.metrics.registry import is_headline, label_of
from veilmeter.results.differences import difference_of, sure_by_holm
from veilmeter.results.model import AttackerResult, Part, Results
from veilmeter.results.paired import paired_trials
from veilmeter.results.run_folder import read_results
from veilmeter.wording.catalog import shown

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
    """What is compared: a figure of an attacker, or of a part of the results, of everybody or within a group.

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


def read_runs(folders: Sequence[str | Path]) -> tuple[ComparedRun, ...]:
    """The runs in these folders, each under a name of its own."""
    if len(folders) < 2:
        raise InputError("one run can't be compared", fix="give two or more folders")
    return tuple(_named([ComparedRun("", _folder(folder), read_results(folder)) for folder in folders]))


def compare(
    folders: Sequence[str | Path], *, by: Sequence[str] = (), resamples: int = 1000, seed: int = 0
) -> Comparison:
    """The runs in these folders: every attacker, measure and point that all of them have, and with `by` the same within
    the groups of these attributes."""
    runs = read_runs(folders)
    settings = differing_settings([run.results for run in runs])
    values: dict[ComparedFigure, list[Estimate]] = {}
    differences: dict[ComparedFigure, list[Estimate]] = {}
    alike = same_trials(runs)
    for holder, group in _shared(runs, by):
        points = [_compared_points((holder, _estimates(run.results, holder, group))) for run in runs]
        titles = [title for title in points[0] if all(title in others for others in points)]
        if not titles:
            continue
        pairable = alike and not group
        trials = (
            paired_trials([(run.folder, run.results, holder) for run in runs], resamples, seed) if pairable else None
        )
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


def _named(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    """A short name for each: the title it was given, or its folder's name; numbered where one comes up again."""
    given = [str(run.results.settings.get("title") or "") for run in runs]
    names = given if all(given) and len(set(given)) == len(given) else [run.folder.resolve().name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.folder) for run in runs]
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return [ComparedRun(name, run.folder, run.results) for name, run in zip(unique, runs, strict=True)]


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
    return value if isinstance(value, bool | int | float) else Reference("text", _shown(value))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        tables = {name: ", ".join(f"{key} {_shown(item)}" for key, item in dict(table).items())
                  for name, table in value.items() if isinstance(table, Mapping)}  # fmt: skip
        value = [f"{name}: {tables[name]}" if tables.get(name) else str(name) for name in value]
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "none" if value is None else str(value)


def _shared(runs: Sequence[ComparedRun], by: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
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


def _compared_points(held: tuple[str, Estimates]) -> dict[str, Estimate]:
    """What is compared of an attacker or a part, by a title: single figures, curves at their largest number of people
    for every length, the strongest of several attacks, and everything that another package measures."""
    holder, estimates = held
    points: dict[str, Estimate] = {}
    for name in estimates.names:
        curve = estimates.points(name)
        if name in CURVES:
            for length in sorted({point.at.get("length", 1) for point in curve}, key=str):
                at_length = curve.filter(lambda point, length=length: point.at.get("length", 1) == length)  # type: ignore[misc]
                largest = at_length.sorted("speakers")[-1]
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
    """What a reader in a hurry needs: each run's own worst case, and how many differences are sure, either way."""
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
