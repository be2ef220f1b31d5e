"""Systems by measures, as papers show them: one row per system, one column per figure, ranks, significant differences.

A figure without an attacker is that of the strongest attacker, over the attackers, lengths and numbers of people that
all runs have. Holm's rule over the whole table says what differs significantly from the first system, and Holm's rule
over all pairs of systems says which of them a figure distinguishes. Several runs of a system (seeds) are one row: their
mean, and their standard deviation.
"""

from __future__ import annotations

import difflib
import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import mean, stdev
from typing import Any, Literal

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Private, format_number, html_table
from veilmeter.core.findings import Finding, Reference
from veilmeter.core.intervals import t_quantile
from veilmeter.metrics.measure import better_direction, label_of
from veilmeter.results.compare import (
    ComparedRun,
    differences_of,
    differing_settings,
    flat,
    read_runs,
    same_people,
)
from veilmeter.results.differences import PairedTrials, difference_of, pair_trials, sure_by_holm
from veilmeter.results.eer_methods import methods_of
from veilmeter.results.limits import FIGURE_FORM
from veilmeter.results.model import AttackerResult, Part, Results
from veilmeter.results.run_folder import RunLike
from veilmeter.wording import sentences

DEFAULT = ("eer", "d_ece", "linkability", "residual_risk", "deid", "g_vd", "wer", "mos")


@dataclass(frozen=True, slots=True)
class FigureName:
    """A figure that is asked for: `eer`, `linkability@20`, `linkability@20,L3`, `informed:eer`."""

    text: str
    measure: str
    attacker: str | None = None
    speakers: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class TableCell:
    """A system's figure: None where it has none. `place` is the attacker or the part; `difference` that to the first
    system, which is `sure` where it would hardly come about by chance. `rank` is 1 for the best; `alike` has a letter
    for every group of systems that the figure does not distinguish. `spread` is the standard deviation over `runs`."""

    estimate: Estimate | None
    place: str = ""
    difference: Estimate | None = None
    best: bool = False
    rank: int | None = None
    alike: str = ""
    spread: float | None = None
    runs: int = 1

    @property
    def sure(self) -> bool:
        return self.difference is not None and bool(self.difference.extra.get("sure"))

    def to_json(self) -> dict[str, Any] | None:
        if self.estimate is None:
            return None
        difference = None if self.difference is None else self.difference.to_json()
        facts = {"attacker": self.place, "best": self.best, "rank": self.rank, "alike": self.alike, "sure": self.sure,
                 "difference": difference, "spread": self.spread, "runs": self.runs}  # fmt: skip
        return facts | self.estimate.to_json()


@dataclass(frozen=True, slots=True)
class PairDifference:
    """The second system's figure minus the first one's, `sure` by Holm's rule over all pairs of the figure."""

    first: str
    second: str
    estimate: Estimate

    @property
    def sure(self) -> bool:
        return bool(self.estimate.extra.get("sure"))

    def to_json(self) -> dict[str, Any]:
        return {"first": self.first, "second": self.second} | self.estimate.with_(at={}).to_json()


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A figure over all systems; `better` is the direction that is good. `alike` are the largest groups of systems no
    two of which differ significantly, each with its letter in the cells."""

    figure: FigureName
    label: str
    unit: str
    better: Private
    cells: tuple[TableCell, ...]
    pairs: tuple[PairDifference, ...] = ()
    alike: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Systems by measures. `first` is the one that differences are to, `doubted` are those whose self-checks failed;
    `remarks` are what a reader must know: what the figures are, and what differs. `ranking` is the figure by which the
    systems are sorted, if they are; `grouped` says that a system has several runs.

    Attributes
    ----------
    systems : tuple of str
        The rows.
    columns : tuple of TableColumn
        A figure over all systems each; `cells` hold estimates, ranks and differences.
    """

    systems: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    doubted: tuple[str, ...]
    remarks: tuple[Finding, ...]
    first: str = ""
    ranking: str = ""
    grouped: bool = False

    @property
    def ranking_column(self) -> TableColumn | None:
        return next((column for column in self.columns if column.figure.text == self.ranking), None)

    def names(self, mark: str = "†") -> list[str]:
        """The systems as rows are called: with a mark where they are not to be relied on."""
        return [f"{name} {mark}" if name in self.doubted else name for name in self.systems]

    def sort(self, figure: str) -> SystemTable:
        """The same table with the best system of this figure first, and systems that do not have it last."""
        column = next(column for column in self.columns if column.figure.text == figure)
        sign = 1 if column.better == "lower" else -1

        def place(number: int) -> tuple[bool, float]:
            point = column.cells[number].estimate
            missing = point is None or math.isnan(point.value)
            return missing, 0.0 if missing or point is None else sign * point.value

        order = sorted(range(len(self.systems)), key=place)
        columns = [replace(column, cells=tuple(column.cells[number] for number in order)) for column in self.columns]
        systems = tuple(self.systems[number] for number in order)
        return replace(self, systems=systems, columns=tuple(columns), ranking=figure)

    def render(self, form: Literal["markdown", "latex", "csv"] = "markdown", *, intervals: bool = False) -> str:
        """The table as text.

        Parameters
        ----------
        form : {"markdown", "latex", "csv"}
            Markdown or LaTeX for a paper, with what a reader must know; CSV with one row per figure.
        intervals : bool
            Whether to show 95 % intervals; CSV has them in any case.

        Raises
        ------
        InputError
            If there is no such form.
        """
        from veilmeter.results import comparison_tables

        if form not in ("markdown", "latex", "csv"):
            raise InputError(f"a table can't be written as {form!r}", fix="choose markdown, latex or csv")
        if form == "csv":
            return comparison_tables.table_csv(self)
        write = comparison_tables.markdown if form == "markdown" else comparison_tables.latex
        return write(self, intervals=intervals)

    def __repr__(self) -> str:
        labels = ", ".join(column.label for column in self.columns)
        return f"SystemTable({len(self.systems)} systems by {labels if len(labels) < 300 else len(self.columns)})"

    def _repr_html_(self) -> str:
        from veilmeter.results import comparison_tables

        head = [*comparison_tables.first_titles(self), *map(comparison_tables.heading, self.columns)]
        rows = [
            [*comparison_tables.first_cells(self, number),
             *(comparison_tables.plain_cell(column.cells[number], True) for column in self.columns)]
            for number in range(len(self.systems))
        ]  # fmt: skip
        return html_table(head, rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "systems": list(self.systems),
            "first": self.first,
            "ranking": self.ranking or None,
            "doubted": list(self.doubted),
            "columns": [
                {"figure": column.figure.text, "label": column.label, "unit": column.unit, "better": column.better,
                 "cells": [cell.to_json() for cell in column.cells],
                 "pairs": [pair.to_json() for pair in column.pairs],
                 "alike": [list(names) for names in column.alike]}
                for column in self.columns
            ],
            "remarks": list(sentences(self.remarks)),
        }  # fmt: skip


def parse_figure(text: str, option: str = "--measures") -> FigureName:
    """
    >>> parse_figure("informed:linkability@20,L3")
    FigureName(text='informed:linkability@20,L3', measure='linkability', attacker='informed', speakers=20, length=3)
    """
    parsed = re.fullmatch(FIGURE_FORM, text.strip())
    if parsed is None:
        raise InputError(
            f"{option} {text}: invalid figure", fix="write eer, linkability@20, linkability@20,L3 or informed:eer"
        )
    speakers, length = (int(parsed[key]) if parsed[key] else None for key in ("speakers", "length"))
    return FigureName(text.strip(), parsed["measure"], parsed["attacker"], speakers, length)


def system_table(
    *runs: RunLike | ComparedRun | Sequence[RunLike],
    measures: Sequence[str] = (),
    labels: Sequence[str] = (),
    sort: str | None = None,
    group: bool = False,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str | None = None,
) -> SystemTable:
    """The runs by these figures, as papers show them.

    Parameters
    ----------
    *runs : Assessment, Results, path, or a list of these
        Runs in memory, or folders that `assess` wrote, each as RUN or NAME=RUN. Differences are to the first.
    measures
        Columns, such as `eer`, `linkability@20` or `informed:eer`; by default the usual ones that all runs have.
    labels
        Names of the runs, one per run; by default their titles or folders.
    sort
        The figure by which to rank the systems, the best first. It becomes a column if it is none.
    group
        Show runs of one name as one system, by their mean and standard deviation.
    resamples, seed
        Of the bootstrap over speakers.
    eer_method
        Compute every EER again by this method, from the scores in the folders; by default as each run has it.

    Returns
    -------
    SystemTable
        Every figure of every system with its rank, its difference to the first system, and all pairwise differences.

    Raises
    ------
    InputError
        If a run can't be read, a figure is unknown, or `group` finds no two runs of one name.

    Examples
    --------
    >>> table = system_table("B1=runs/b1", "B2=runs/b2", measures=["eer", "wer"], sort="eer")  # doctest: +SKIP
    >>> table.systems, table.columns[0].cells[0].rank  # doctest: +SKIP
    (('B2', 'B1'), 1)
    """
    opened = read_runs(flat(runs), labels=labels, repeat_names=group, eer_method=eer_method)
    systems = _systems(opened, group)
    ranking = None if sort is None else parse_figure(sort, "--sort")
    chosen = _choose_figures(opened, measures, ranking)
    columns = _columns(opened, systems, chosen, resamples, seed)
    doubted = tuple(name for name, numbers in systems.items() if any(not _is_reliable(opened[n]) for n in numbers))
    remarks = (*_explanations(opened, systems, chosen, ranking), *_differing(opened))
    first = next(iter(systems))
    table = SystemTable(tuple(systems), columns, doubted, remarks, first, grouped=len(systems) < len(opened))
    return table if ranking is None else table.sort(ranking.text)


def _choose_figures(
    runs: Sequence[ComparedRun], measures: Sequence[str], ranking: FigureName | None
) -> dict[FigureName, list[Chosen]]:
    """The columns with every run's figure: those that are asked for, or the usual ones, and that of the ranking."""
    if measures:
        names = list(dict.fromkeys([*map(parse_figure, measures), *([ranking] if ranking else [])]))
        chosen = {name: _choose(runs, name) for name in names}
        _refuse_unknown(runs, chosen)
    else:
        everywhere = {FigureName(name, name): _choose(runs, FigureName(name, name)) for name in DEFAULT}
        chosen = {name: cells for name, cells in everywhere.items() if all(cells)}
        if ranking is not None and ranking not in chosen:
            chosen[ranking] = _choose(runs, ranking)
            _refuse_unknown(runs, chosen, "--sort")
        if not chosen:
            raise InputError("the runs have none of the usual figures in common", fix="name some with --measures")
    return chosen


def _systems(runs: Sequence[ComparedRun], group: bool) -> dict[str, list[int]]:
    """The runs of every system, by their numbers."""
    systems: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        systems.setdefault(run.name, []).append(number)
    if group and len(systems) == len(runs):
        raise InputError(
            "--group: no two runs have the same name", fix="write NAME=RUN with one NAME for all runs of a system"
        )
    return systems


def _is_reliable(run: ComparedRun) -> bool:
    return run.results.verdict.trustworthy


MOST_LISTED = 3  # runs whose values of a setting are listed


def _differing(runs: Sequence[ComparedRun]) -> Iterator[Finding]:
    """What differs between the runs beside the system; of many runs only which settings do. A mark in the table shows
    which runs can't be relied on."""
    settings = differing_settings([run.results for run in runs])
    shown = settings if len(runs) <= MOST_LISTED else {}
    yield from (found for found in differences_of(runs, shown) if found.code != "run_distrusted")
    if len(shown) < len(settings):
        yield Finding.of("settings_differ", settings=tuple(settings))


Chosen = tuple[str, Estimate] | None  # the attacker or part, and its figure


def _choose(runs: Sequence[ComparedRun], name: FigureName) -> list[Chosen]:
    """Of every run the worst of the figures that all runs have; nothing for runs that have none."""
    found = [dict(_figures(run.results, name)) for run in runs]
    known = [figures for figures in found if figures]
    shared = [key for key in (known[0] if known else {}) if all(key in figures for figures in known)]
    if name.speakers is None:
        sizes = [int(at["speakers"]) for at in (dict(key[1]) for key in shared) if "speakers" in at]
        largest = max(sizes, default=None)
        shared = [key for key in shared if dict(key[1]).get("speakers") == largest]
    if not shared:
        return [None] * len(runs)
    return [_worst([(key[0], figures[key]) for key in shared]) if figures else None for figures in found]


Key = tuple[str, tuple[tuple[str, Any], ...]]


def _figures(results: Results, name: FigureName) -> Iterator[tuple[Key, Estimate]]:
    """Every figure of that name, by where it is and its point: of attackers, and only where none has it of parts."""
    holders: list[AttackerResult | Part] = [
        attacker
        for attacker in results.attackers.values()
        if attacker.name == name.attacker or (name.attacker is None and attacker.is_attack and not attacker.apart)
    ]
    if name.attacker is None and not any(name.measure in holder.estimates.names for holder in holders):
        holders += results.parts.values()
    for holder in holders:
        for point in holder.estimates.points(name.measure):
            wanted = (("speakers", name.speakers), ("length", name.length))
            if all(value is None or point.at.get(key) == value for key, value in wanted):
                yield (holder.name, tuple(sorted(point.at.items()))), point


def _worst(figures: Sequence[tuple[str, Estimate]]) -> tuple[str, Estimate]:
    """The figure that is worst for the people recorded, or for the users of the speech; missing figures come last."""
    sign = -1 if better_direction(figures[0][1]) == "higher" else 1

    def badness(figure: tuple[str, Estimate]) -> tuple[bool, float]:
        value = figure[1].value
        return (not math.isnan(value), 0.0 if math.isnan(value) else sign * value)

    return max(figures, key=badness)


def _refuse_unknown(
    runs: Sequence[ComparedRun], chosen: Mapping[FigureName, list[Chosen]], option: str = "--measures"
) -> None:
    for name, cells in chosen.items():
        if any(cells):
            continue
        measured = [point for run in runs for _, point in _figures(run.results, FigureName(name.measure, name.measure))]
        if measured:
            sizes = sorted({int(point.at["speakers"]) for point in measured if "speakers" in point.at})
            fix = (
                f"it was measured among {', '.join(map(str, sizes))} people"
                if sizes
                else f"it is a single figure: write {name.measure}"
            )
            raise InputError(f"{option} {name.text}: the runs share no such point", fix=fix)
        known = sorted({key for run in runs for _, estimates in run.results.places() for key in estimates.names})
        near = difflib.get_close_matches(name.measure, known, 1)
        fix = f"did you mean {near[0]!r}?" if near else f"they have {', '.join(known)}"
        raise InputError(f"{option} {name.text}: no run has it", fix=fix)


@dataclass(frozen=True, eq=False)
class _Member:
    """The figure of one run of a system, and the run's place among the paired trials."""

    place: str
    figure: Estimate
    number: int


def _columns(
    runs: Sequence[ComparedRun],
    systems: Mapping[str, Sequence[int]],
    chosen: Mapping[FigureName, list[Chosen]],
    resamples: int,
    seed: int,
) -> tuple[TableColumn, ...]:
    alike = same_people(runs)
    paired: dict[tuple[tuple[int, str], ...], PairedTrials | None] = {}
    members: dict[FigureName, dict[str, list[_Member]]] = {}
    pairs: dict[FigureName, dict[tuple[str, str], Estimate]] = {}
    for name, cells in chosen.items():
        whose = tuple((number, cell[0]) for number, cell in enumerate(cells) if cell is not None)
        if whose not in paired:
            trials = [(runs[number].folder, runs[number].results, place) for number, place in whose]
            paired[whose] = pair_trials(trials, resamples, seed) if alike and len(whose) > 1 else None
        places = {number: row for row, (number, _) in enumerate(whose)}
        members[name] = {
            system: [_Member(*cell, places[number]) for number in numbers if (cell := cells[number]) is not None]
            for system, numbers in systems.items()
        }
        known = {system: listed for system, listed in members[name].items() if listed}
        pairs[name] = {
            (first, second): _difference(known[first], known[second], paired[whose], second)
            for first, second in combinations(known, 2)
        }
    baseline = next(iter(systems))
    to_first = sure_by_holm(
        {name: [point for (first, _), point in of.items() if first == baseline] for name, of in pairs.items()}
    )
    return tuple(_column(name, members[name], pairs[name], to_first[name]) for name in chosen)


def _difference(
    first: Sequence[_Member], second: Sequence[_Member], trials: PairedTrials | None, name: str
) -> Estimate:
    """Difference of the second system's mean to the first one's. Speakers and runs both vary: the mean of the runs'
    intervals, which is wider than that of their mean, and the spread over the runs, by Welch's approximation."""
    between = [
        difference_of(one.figure, other.figure, trials, other.number, name, one.number)
        for one, other in product(first, second)
    ]
    if len(between) == 1:
        return between[0]
    value = mean(point.value for point in between)
    sides = [_figures_of(first), _figures_of(second)]
    spread = _welch(*sides)
    intervals = [point.interval for point in between]
    if any(interval is None for interval in intervals):
        return between[0].with_(value=value, interval=None, method="no interval")
    down = mean(point.value - point.interval[0] for point in between if point.interval is not None)
    up = mean(point.interval[1] - point.value for point in between if point.interval is not None)
    interval = (value - math.hypot(down, spread), value + math.hypot(up, spread))
    return between[0].with_(value=value, interval=interval, method=f"{between[0].method}, over runs")


def _figures_of(members: Sequence[_Member]) -> list[float]:
    return [member.figure.value for member in members]


def _welch(*sides: Sequence[float]) -> float:
    """Half of the 95 % interval of a mean, or of the difference of two, from the spread over runs; 0 where a side has
    one run only, as nothing is known about its spread.

    >>> round(_welch([1.0, 2.0, 3.0]), 3), _welch([1.0]), round(_welch([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]), 3)
    (2.484, 0.0, 2.484)
    """
    variances = [(stdev(side) ** 2 / len(side), len(side) - 1) for side in sides if len(side) > 1]
    total = sum(variance for variance, _ in variances)
    if not math.isfinite(total) or total == 0:
        return 0.0
    freedom = total**2 / sum(variance**2 / degrees for variance, degrees in variances)
    return t_quantile(max(1, math.floor(freedom + 1e-9)), 0.975) * math.sqrt(total)


def _column(
    name: FigureName,
    members: Mapping[str, Sequence[_Member]],
    pairs: Mapping[tuple[str, str], Estimate],
    to_first: Sequence[Estimate],
) -> TableColumn:
    cells = {system: _mean_cell(listed) for system, listed in members.items()}
    known = [cell.estimate for cell in cells.values() if cell.estimate is not None]
    better = better_direction(known[0])
    shown = {system: _display_value(cell.estimate) for system, cell in cells.items()}
    finite = [value for value in shown.values() if value is not None]
    adjusted = sure_by_holm({"pairs": list(pairs.values())})["pairs"]
    compared = tuple(PairDifference(*names, point) for names, point in zip(pairs, adjusted, strict=True))
    groups = _alike([system for system, value in shown.items() if value is not None], compared, shown, better)
    differences = {point.at["run"]: point for point in to_first}
    full = []
    for system, cell in cells.items():
        value = shown[system]
        sign = 0 if better == "neither" or value is None else 1 if better == "higher" else -1
        rank = 1 + sum(sign * other > sign * value for other in finite) if sign and value is not None else None
        letters = "".join(letter for letter, names in zip(_letters(), groups, strict=False) if system in names)
        full.append(replace(cell, rank=rank, best=rank == 1, alike=letters, difference=differences.get(system)))
    return TableColumn(name, _label(name, known[0]), known[0].unit, better, tuple(full), compared, groups)


def _mean_cell(members: Sequence[_Member]) -> TableCell:
    """The figure of a system: that of its one run, or the mean over its runs."""
    if not members:
        return TableCell(None)
    places = ", ".join(dict.fromkeys(member.place for member in members))
    figure = members[0].figure
    if len(members) == 1:
        return TableCell(figure, places)
    values = _figures_of(members)
    value, spread = mean(values), _welch(values)
    intervals = [member.figure.interval for member in members]
    interval = None
    if all(intervals):
        down = mean(v - i[0] for v, i in zip(values, intervals, strict=True) if i)
        up = mean(i[1] - v for v, i in zip(values, intervals, strict=True) if i)
        interval = (value - math.hypot(down, spread), value + math.hypot(up, spread))
    return TableCell(figure.with_(value=value, interval=interval), places, spread=stdev(values), runs=len(values))


def _display_value(point: Estimate | None) -> float | None:
    """The value as far as it is shown, so that what reads the same ranks the same; None where there is none."""
    if point is None or math.isnan(point.value):
        return None
    return float(format_number(point.value, point.unit))


def _letters() -> Iterator[str]:
    yield from string.ascii_letters
    yield from (f"({number})" for number in range(1, 10_000))


def _alike(
    systems: Sequence[str],
    pairs: Sequence[PairDifference],
    values: Mapping[str, float | None],
    better: Private,
) -> tuple[tuple[str, ...], ...]:
    """The largest groups of systems no two of which differ significantly, the best first; none without an interval."""
    if not any(pair.estimate.interval for pair in pairs):
        return ()
    differ = {frozenset((pair.first, pair.second)) for pair in pairs if pair.sure}
    near = {
        one: {other for other in systems if other != one and frozenset((one, other)) not in differ} for one in systems
    }
    sign = 1 if better == "lower" else -1
    order = sorted(systems, key=lambda system: sign * (values[system] or 0.0))
    groups = [tuple(sorted(group, key=order.index)) for group in _cliques(set(), set(systems), set(), near)]
    return tuple(sorted(groups, key=lambda group: [order.index(system) for system in group]))


def _cliques(inside: set[str], open_: set[str], done: set[str], near: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """The maximal cliques of a graph (Bron and Kerbosch 1973, with a pivot)."""
    if not open_ and not done:
        yield inside
        return
    pivot = max(sorted(open_ | done), key=lambda system: len(near[system] & open_))
    for system in sorted(open_ - near[pivot]):
        yield from _cliques(inside | {system}, open_ & near[system], done & near[system], near)
        open_, done = open_ - {system}, done | {system}


def _label(name: FigureName, point: Estimate) -> str:
    label = label_of(name.measure)
    label += f" among {point.at['speakers']}" if "speakers" in point.at else ""
    label += f", L = {name.length}" if name.length is not None else ""
    return f"{name.attacker}: {label}" if name.attacker else label


def _explanations(
    runs: Sequence[ComparedRun],
    systems: Mapping[str, Sequence[int]],
    chosen: Mapping[FigureName, list[Chosen]],
    ranking: FigureName | None,
) -> Iterator[Finding]:
    if len(systems) > 1:
        yield Finding.of("table_marks", first=runs[0].reference)
    if ranking is not None and len(systems) > 1:
        count = len(systems)
        yield Finding.of("table_ranked", figure=Reference("text", ranking.text), pairs=count * (count - 1) // 2)
    if len(systems) < len(runs):
        yield Finding("table_grouped")
    if any(not _is_reliable(run) for run in runs):
        yield Finding("table_distrusted")
    attackers = {name for run in runs for name in run.results.attackers}
    if any(cell and cell[0] in attackers and not name.attacker for name, cells in chosen.items() for cell in cells):
        shared = [name for name in runs[0].results.attacks if all(name in run.results.attackers for run in runs)]
        yield Finding.of("table_strongest", attackers=tuple(shared))
    if any(name.measure == "eer" for name in chosen):
        yield Finding.of("eer_methods", methods=methods_of(run.results for run in runs))
    for name, cells in chosen.items():
        missing = dict.fromkeys(run.reference for run, cell in zip(runs, cells, strict=True) if cell is None)
        if missing:
            yield Finding.of("figure_missing", figure=Reference("text", name.text), runs=tuple(missing))
