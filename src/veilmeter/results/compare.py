"""Runs side by side: what one system gives away more than another.

A difference is that of the two values that are shown, of the second, third... run minus the first, with an interval of
that same difference. Where both runs have the same people and trials, what they share cancels: each person is left out
of both runs at once. Holm's rule says which differences are significant though many are looked at.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, cast

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates, frame, html_table
from veilmeter.core.files import real_path
from veilmeter.core.findings import Finding, Reference
from veilmeter.metrics.measure import is_headline, label_of
from veilmeter.results.criteria import individual_of, strongest, worst_cases
from veilmeter.results.differences import PairedTrials, difference_of, links_by_point, pair_trials, sure_by_holm
from veilmeter.results.eer_methods import with_eer_method
from veilmeter.results.model import AttackerResult, Part, Results
from veilmeter.results.run_folder import RunLike, open_run
from veilmeter.wording.catalog import shown

CURVES = ("linkability", "residual_risk")
OF_PARTS = {"similarity": ("deid", "g_vd"), "inversion": ("top1",)}


@dataclass(frozen=True, eq=False)
class ComparedRun:
    name: str
    folder: Path | None
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


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Runs side by side: what `compare` gives.

    Attributes
    ----------
    runs : tuple of ComparedRun
        The runs with their names; the first is the baseline.
    values, differences : mapping of ComparedFigure to sequence of Estimate
        By what is compared: one value per run, and one difference to the first per other run. A difference carries
        `p_adjusted`, by Holm's rule over all of them, and `sure`.
    summary, warnings : tuple of Finding
        Conclusions, and what else differs between the runs.
    settings : mapping
        Settings that differ between the runs, each with its value in every run.
    """

    runs: tuple[ComparedRun, ...]
    values: Mapping[ComparedFigure, Sequence[Estimate]]
    differences: Mapping[ComparedFigure, Sequence[Estimate]]
    summary: tuple[tuple[Finding, ...], ...] = ()  # one paragraph each
    warnings: tuple[Finding, ...] = ()
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(run.name for run in self.runs)

    def table(
        self, form: Literal["markdown", "latex", "csv"] = "markdown", measures: Sequence[str] = (), **options: Any
    ) -> str:
        """The systems by measures as text for a paper; see `system_table`, whose options `options` are.

        Parameters
        ----------
        form : {"markdown", "latex", "csv"}
            The form of the table.
        measures : sequence of str
            Columns, such as `eer` or `linkability@20`; by default the usual ones that all runs have.
        """
        from veilmeter.results.system_table import system_table

        return system_table(*self.runs, measures=measures, labels=self.labels, **options).render(form)

    def columns(self) -> dict[str, list[Any]]:
        """Tidy: one row per figure and run, with its difference to the first run."""
        table: dict[str, list[Any]] = {
            name: []
            for name in ("figure", "attacker", "run", "value", "unit", "low", "high", "difference", "difference_low",
                         "difference_high", "p_adjusted", "significant")
        }  # fmt: skip
        for figure, values in self.values.items():
            for point, change in zip(values, [None, *self.differences[figure]], strict=True):
                ends = (change and change.interval) or (None, None)
                found = {} if change is None else change.extra
                row = (
                    str(figure), figure.attacker, point.at["run"], point.value, point.unit,
                    *(point.interval or (None, None)), change and change.value, *ends, found.get("p_adjusted"),
                    found.get("sure"),
                )  # fmt: skip
                for column, cell in zip(table.values(), row, strict=True):
                    column.append(cell)
        return table

    def to_frame(self) -> Any:
        """`columns` as a pandas DataFrame, or a pyarrow Table where pandas is not installed."""
        return frame(self.columns())

    def __repr__(self) -> str:
        sure = sum(bool(point.extra["sure"]) for points in self.differences.values() for point in points)
        total = sum(map(len, self.differences.values()))
        names = ", ".join(self.labels)
        names = names if len(names) <= 300 else f"{names[:300]}..."
        return f"Comparison({names}: {sure} of {total} differences are significant)"

    def _repr_html_(self) -> str:
        cells = [
            (str(figure), *(f"{point.format_value()} {point.format_interval()}" for point in points),
             *(f"{point.format_value()} {point.format_interval()}{' *' if point.extra['sure'] else ''}"
               for point in self.differences[figure]))
            for figure, points in self.values.items()
        ]  # fmt: skip
        head = ["figure", *self.labels, *(f"{name} − {self.labels[0]}" for name in self.labels[1:])]
        return html_table(head, cells) + "<p>* significant (Holm's rule over all differences)</p>"


def read_runs(
    runs: Iterable[RunLike | ComparedRun],
    *,
    labels: Sequence[str] = (),
    repeat_names: bool = False,
    eer_method: str | None = None,
) -> tuple[ComparedRun, ...]:
    """The runs, in memory or in folders, each under another name; with `repeat_names`, the runs of one system share
    theirs. With an `eer_method`, every EER is that of the run's scores by this method.

    A folder may be written as NAME=RUN, and several of them as NAME=RUN,RUN.
    """
    compared = [opened for given in runs for opened in _open_runs(given)]
    if eer_method is not None:
        compared = [replace(run, results=with_eer_method(run.results, run.folder, eer_method)) for run in compared]
    if labels:
        if len(labels) != len(compared):
            raise InputError(f"there are {len(compared)} runs but {len(labels)} labels", fix="give one label per run")
        compared = [replace(run, name=str(label)) for run, label in zip(compared, labels, strict=True)]
    counts = Counter(run.name for run in compared if run.name)
    if repeat_names:
        return tuple(replace(run, name=run.name or _title(run) or _folder_name(run)) for run in compared)
    for label, count in counts.items():
        if count > 1:
            raise InputError(
                f"{count} runs are called {label!r}", fix="give each its own name, or show their mean: --table --group"
            )
    return tuple(_name_runs(compared))


def _open_runs(given: RunLike | ComparedRun) -> Iterator[ComparedRun]:
    if isinstance(given, ComparedRun):
        yield given
    elif isinstance(given, str | Path):
        for label, folder in _split_label(given):
            opened = open_run(folder)
            yield ComparedRun(label, opened.folder, opened.results)
    else:
        opened = open_run(given)
        yield ComparedRun("", opened.folder, opened.results)


def _split_label(given: str | Path) -> Iterator[tuple[str, str]]:
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
    *runs: RunLike | Sequence[RunLike],
    labels: Sequence[str] = (),
    by: Sequence[str] = (),
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str | None = None,
) -> Comparison:
    """Compare runs measure by measure, with the first as baseline.

    Every measure of every attacker that all runs have is compared. Where both runs have the same people and trials,
    differences are paired by speaker, which needs the tables in their folders.

    Parameters
    ----------
    *runs : Assessment, Results, path, or a list of these
        Two or more runs, in memory or as the folders that `assess` wrote; a path may be written as NAME=RUN.
    labels : sequence of str
        Names of the runs, one per run; by default their titles or folders.
    by : sequence of str
        Attributes within whose groups to compare, too.
    resamples, seed : int
        Of the bootstrap over speakers.
    eer_method : {"rocch", "roc", "interpolated", "speechbrain"}, optional
        Compute every EER again by this method, from the scores in the folders; by default as each run has it.

    Returns
    -------
    Comparison
        Values, differences with intervals, and which of them are significant. `table("latex")` is for a paper.

    Raises
    ------
    InputError
        If there is one run only, a run can't be read, or the runs have nothing in common.

    Examples
    --------
    >>> compare("runs/b1", "runs/b2", labels=["B1", "ours"]).table("latex")  # doctest: +SKIP
    """
    opened = read_runs(flat(runs), labels=labels, eer_method=eer_method)
    return compare_runs(opened, by=by, resamples=resamples, seed=seed)


def flat(runs: Iterable[RunLike | ComparedRun | Sequence[RunLike]]) -> Iterator[RunLike | ComparedRun]:
    """Runs that are given one by one, or as lists."""
    for run in runs:
        if isinstance(run, list | tuple):
            yield from run
        else:
            yield cast(RunLike, run)


def compare_runs(
    runs: tuple[ComparedRun, ...], *, by: Sequence[str] = (), resamples: int = 1000, seed: int = 0
) -> Comparison:
    """Every attacker, measure and point that all runs have, and with `by` the same within groups."""
    if len(runs) < 2:
        raise InputError("one run can't be compared", fix="give two or more folders, or --table")
    settings = differing_settings([run.results for run in runs])
    values: dict[ComparedFigure, list[Estimate]] = {}
    differences: dict[ComparedFigure, list[Estimate]] = {}
    alike = same_people(runs)
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


def linking_differences(runs: Sequence[ComparedRun]) -> dict[tuple[int, int], Estimate]:
    """Of every two runs (by their numbers) how many more recordings the strongest attacker links in the second than
    in the first: the figures of their headlines, with Holm's rule over all pairs."""
    cases = {number: case for number, run in enumerate(runs) if (case := strongest(run.results)) is not None}
    alike = same_people(runs)
    differences: dict[tuple[int, int], list[Estimate]] = {}
    for first, second in combinations(cases, 2):
        pair = [cases[first], cases[second]]
        people = [
            links_by_point(runs[number].results.attackers[case.attacker])
            for number, case in zip((first, second), pair, strict=True)
        ]
        trials = PairedTrials((), tuple(people)) if alike else None
        figure = difference_of(pair[0].estimate, pair[1].estimate, trials, 1, runs[second].name)
        differences[first, second] = [figure]
    return {pair: points[0] for pair, points in sure_by_holm(differences).items()}


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


def _folder_name(run: ComparedRun) -> str:
    return "run" if run.folder is None else real_path(run.folder).name


def _name_runs(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    """A short name for each: its label, the title it was given, or its folder's name; numbered where one comes up
    again."""
    given = [_title(run) for run in runs]
    names = given if all(given) and len(set(given)) == len(given) else [_folder_name(run) for run in runs]
    if len(set(names)) < len(names):
        names = ["run" if run.folder is None else str(run.folder) for run in runs]
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


def same_people(runs: Sequence[ComparedRun]) -> bool:
    """Whether the runs look for the same people, so that they can be paired by speaker. Recordings may differ: a system
    may fail on a few of them."""

    def people(results: Results) -> tuple[str, int, int]:
        return (_material(results), results.protocol.enrolled_speakers, results.protocol.trial_speakers)

    return all(people(run.results) == people(runs[0].results) for run in runs)


def _same_recordings(runs: Sequence[ComparedRun]) -> bool:
    """Whether the runs divide the same recordings in the same way."""

    def recordings(results: Results) -> tuple[int, Finding, int, int]:
        protocol = results.protocol
        return (results.seed, protocol.split, protocol.enrollment_utterances, protocol.trial_utterances)

    return all(recordings(run.results) == recordings(runs[0].results) for run in runs)


def differences_of(runs: Sequence[ComparedRun], settings: Mapping[str, Sequence[Any]]) -> Iterator[Finding]:
    """What differs between the runs beside the system, and which of them can't be relied on."""
    places = [id(run.results) if run.folder is None else real_path(run.folder) for run in runs]
    if len(set(places)) < len(runs):
        yield Finding("run_given_twice", severity="warning")
    for run in runs:
        if not run.results.verdict.trustworthy:
            yield Finding.of("run_distrusted", run=run.reference, severity="warning")
    first, everywhere = runs[0].results, tuple(run.reference for run in runs)
    if any(_material(run.results) != _material(first) for run in runs):
        material = "original speech" if any("original" in run.results.inputs for run in runs) else "trials"
        yield Finding.of("other_material", material=material, severity="warning")
    elif not same_people(runs):
        yield Finding("other_people", severity="warning")
    elif not _same_recordings(runs):
        yield Finding("other_recordings", severity="warning")
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
    """The figures of an attacker or a part that are compared, by title: single figures, curves at their largest number
    of people for every length, the strongest of several attacks, and all measures of other packages."""
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
        verdict = run.results.verdict
        level = Finding.of("run_level", run=run.reference, level=verdict.level, trustworthy=verdict.trustworthy)
        criterion = run.results.criteria.get("linking")
        cases = () if criterion is None else worst_cases(run.results, criterion)
        individual = individual_of(run.results)
        yield (level, *cases, *(() if individual is None else (individual,)))
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


def short_names(given: Sequence[str]) -> list[str]:
    """Names of runs without where they lie, which is nobody's business; numbered where one comes up again."""
    names: list[str] = []
    for name in _without_common_end([re.split(r"[/\\\\]", name)[-1] for name in given]):
        same = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({same + 1})" if same else name)
    return names


def _without_common_end(names: Sequence[str]) -> list[str]:
    """Without the words at the end that all names share, such as "on synthetic voices".

    >>> _without_common_end(["B1 on synthetic voices", "B2 on synthetic voices"])
    ['B1', 'B2']
    >>> _without_common_end(["voices", "other voices"])
    ['voices', 'other voices']
    """
    split = [name.split() for name in names]
    shared = 0
    while all(len(words) > shared + 1 for words in split) and len({words[-1 - shared] for words in split}) == 1:
        shared += 1
    short = [" ".join(words[: len(words) - shared]) for words in split]
    return short if shared and len(set(short)) == len(set(names)) > 1 else list(names)
