"""Systems by measures, as papers show them: one row per run, one column per figure, the best, significant differences.

A figure without an attacker is that of the strongest attacker, over the attackers, lengths and numbers of people that
all runs have. Holm's rule over the whole table says what differs significantly from the first run.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Private
from veilmeter.core.findings import Finding, Reference
from veilmeter.metrics.measure import better_direction, label_of
from veilmeter.results.compare import (
    ComparedRun,
    PairedTrials,
    difference_of,
    differences_of,
    differing_settings,
    pair_trials,
    read_runs,
    same_trials,
    sure_by_holm,
)
from veilmeter.results.gate import FIGURE_FORM
from veilmeter.results.model import AttackerResult, Part, Results
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
    system, which is `sure` where it would hardly come about by chance."""

    estimate: Estimate | None
    place: str = ""
    difference: Estimate | None = None
    best: bool = False

    @property
    def sure(self) -> bool:
        return self.difference is not None and bool(self.difference.extra.get("sure"))

    def to_json(self) -> dict[str, Any] | None:
        if self.estimate is None:
            return None
        difference = None if self.difference is None else self.difference.to_json()
        facts = {"attacker": self.place, "best": self.best, "sure": self.sure, "difference": difference}
        return facts | self.estimate.to_json()


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A figure over all systems; `better` is the direction that is good."""

    figure: FigureName
    label: str
    unit: str
    better: Private
    cells: tuple[TableCell, ...]


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Systems by measures. `doubted` are those whose self-checks failed; `remarks` are what a reader must know:
    what the figures are, and what differs."""

    systems: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    doubted: tuple[str, ...]
    remarks: tuple[Finding, ...]

    def names(self, mark: str = "†") -> list[str]:
        """The systems as rows are called: with a mark where they are not to be relied on."""
        return [f"{name} {mark}" if name in self.doubted else name for name in self.systems]

    def to_json(self) -> dict[str, Any]:
        return {
            "systems": list(self.systems),
            "doubted": list(self.doubted),
            "columns": [
                {"figure": column.figure.text, "label": column.label, "unit": column.unit, "better": column.better,
                 "cells": [cell.to_json() for cell in column.cells]}
                for column in self.columns
            ],
            "remarks": list(sentences(self.remarks)),
        }  # fmt: skip


def parse_figure(text: str) -> FigureName:
    """
    >>> parse_figure("informed:linkability@20,L3")
    FigureName(text='informed:linkability@20,L3', measure='linkability', attacker='informed', speakers=20, length=3)
    """
    parsed = re.fullmatch(FIGURE_FORM, text.strip())
    if parsed is None:
        raise InputError(
            f"--measures {text}: invalid figure", fix="write eer, linkability@20, linkability@20,L3 or informed:eer"
        )
    speakers, length = (int(parsed[key]) if parsed[key] else None for key in ("speakers", "length"))
    return FigureName(text.strip(), parsed["measure"], parsed["attacker"], speakers, length)


def system_table(
    folders: Sequence[str | Path], measures: Sequence[str] = (), *, resamples: int = 1000, seed: int = 0
) -> SystemTable:
    """The runs in these folders by these figures; by default the usual ones that all runs have."""
    runs = read_runs(folders)
    if measures:
        names = list(dict.fromkeys(parse_figure(text) for text in measures))
        chosen = {name: _choose(runs, name) for name in names}
        _refuse_unknown(runs, chosen)
    else:
        everywhere = {FigureName(name, name): _choose(runs, FigureName(name, name)) for name in DEFAULT}
        chosen = {name: cells for name, cells in everywhere.items() if all(cells)}
        if not chosen:
            raise InputError("the runs have none of the usual figures in common", fix="name some with --measures")
    differences = sure_by_holm(_differences(runs, chosen, resamples, seed))
    columns = tuple(_column(name, cells, differences[name.text]) for name, cells in chosen.items())
    settings = differing_settings([run.results for run in runs])
    remarks = (*_explanations(runs, chosen), *differences_of(runs, settings))
    doubted = tuple(run.name for run in runs if not run.results.verdict.trustworthy)
    return SystemTable(tuple(run.name for run in runs), columns, doubted, remarks)


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
    """The figure that is worst for people, or for whoever uses the speech; one that does not exist comes last."""
    sign = -1 if better_direction(figures[0][1]) == "higher" else 1

    def badness(figure: tuple[str, Estimate]) -> tuple[bool, float]:
        value = figure[1].value
        return (not math.isnan(value), 0.0 if math.isnan(value) else sign * value)

    return max(figures, key=badness)


def _refuse_unknown(runs: Sequence[ComparedRun], chosen: dict[FigureName, list[Chosen]]) -> None:
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
            raise InputError(f"--measures {name.text}: the runs share no such point", fix=fix)
        known = sorted({key for run in runs for _, estimates in run.results.places() for key in estimates.names})
        near = difflib.get_close_matches(name.measure, known, 1)
        fix = f"did you mean {near[0]!r}?" if near else f"they have {', '.join(known)}"
        raise InputError(f"--measures {name.text}: no run has it", fix=fix)


def _differences(
    runs: Sequence[ComparedRun], chosen: dict[FigureName, list[Chosen]], resamples: int, seed: int
) -> dict[str, list[Estimate]]:
    """To the first run, for every other one that has the figure too, in the order of the runs."""
    alike = same_trials(runs)
    paired: dict[tuple[tuple[int, str], ...], PairedTrials | None] = {}
    differences: dict[str, list[Estimate]] = {}
    for name, cells in chosen.items():
        known = [(number, cell) for number, cell in enumerate(cells) if cell is not None]
        differences[name.text] = []
        if not known or known[0][0] != 0:
            continue
        whose = tuple((number, place) for number, (place, _) in known)
        if whose not in paired:
            trials = [(runs[number].folder, runs[number].results, place) for number, place in whose]
            paired[whose] = pair_trials(trials, resamples, seed) if alike else None
        first = known[0][1][1]
        differences[name.text] = [
            difference_of(first, figure, paired[whose], place, runs[number].name)
            for place, (number, (_, figure)) in enumerate(known)
            if place
        ]
    return differences


def _column(name: FigureName, chosen: Sequence[Chosen], differences: Sequence[Estimate]) -> TableColumn:
    known = [cell[1] for cell in chosen if cell is not None]
    better = better_direction(known[0])
    finite = [point.value for point in known if not math.isnan(point.value)]
    best = None if better == "neither" or not finite else max(finite) if better == "higher" else min(finite)
    shown_best = "" if best is None else known[0].with_(value=best).format_value()
    left = iter(differences)
    cells = []
    for number, cell in enumerate(chosen):
        if cell is None:
            cells.append(TableCell(None))
            continue
        place, figure = cell
        difference = next(left, None) if number else None
        cells.append(TableCell(figure, place, difference, figure.format_value() == shown_best))
    return TableColumn(name, _label(name, known[0]), known[0].unit, better, tuple(cells))


def _label(name: FigureName, point: Estimate) -> str:
    label = label_of(name.measure)
    label += f" among {point.at['speakers']}" if "speakers" in point.at else ""
    label += f", L = {name.length}" if name.length is not None else ""
    return f"{name.attacker}: {label}" if name.attacker else label


def _explanations(runs: Sequence[ComparedRun], chosen: dict[FigureName, list[Chosen]]) -> Iterator[Finding]:
    yield Finding.of("table_marks", first=runs[0].reference)
    if any(not run.results.verdict.trustworthy for run in runs):
        yield Finding("table_distrusted")
    attackers = {name for run in runs for name in run.results.attackers}
    if any(cell and cell[0] in attackers and not name.attacker for name, cells in chosen.items() for cell in cells):
        shared = [name for name in runs[0].results.attacks if all(name in run.results.attackers for run in runs)]
        yield Finding.of("table_strongest", attackers=tuple(shared))
    for name, cells in chosen.items():
        missing = [run.reference for run, cell in zip(runs, cells, strict=True) if cell is None]
        if missing:
            yield Finding.of("figure_missing", figure=Reference("text", name.text), runs=tuple(missing))
