"""The page that shows several systems side by side."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from veilmeter.core.estimate import Estimate, unit_text
from veilmeter.core.files import write_text
from veilmeter.core.findings import Finding, Reference, map_references
from veilmeter.metrics.measure import MEASURES, find_measure
from veilmeter.report.annex import FILL_IN, Chapter, Table
from veilmeter.report.decision import Decision, Dots, decide, never_tested
from veilmeter.report.evidence import SYSTEM, citation_rows
from veilmeter.report.figures import style
from veilmeter.report.figures.systems import ranking_figure, system_figures, uses
from veilmeter.report.html import Options, page, render
from veilmeter.report.public import Reported, public, reported, run_key
from veilmeter.report.release import release_of
from veilmeter.report.rows import THREE, CriterionRow, criterion_row, criterion_rows, linking_of_all
from veilmeter.report.sound import player_of
from veilmeter.results.compare import ComparedRun, Comparison, compare, linking_differences, read_runs, short_names
from veilmeter.results.comparison_tables import first_cells, first_titles, heading, plain_cell
from veilmeter.results.criteria import inference_criterion
from veilmeter.results.eer_methods import methods_of
from veilmeter.results.levels import ORDER
from veilmeter.results.model import Results
from veilmeter.results.people import text_floor
from veilmeter.results.run_folder import RunLike
from veilmeter.results.system_table import SystemTable
from veilmeter.results.trust import doubts
from veilmeter.wording import sentence, sentences, text
from veilmeter.wording.citations import citations, of_system
from veilmeter.wording.english import page as words
from veilmeter.wording.english.sections import GLOSSARY


@dataclass(frozen=True, eq=False)
class ComparedSystem:
    """One run of the comparison, as it may be shown. `link` leads to its own page; `bundled` is that page."""

    name: str
    run: Reported
    decision: Decision
    doubts: tuple[str, ...]
    link: str = ""
    bundled: str = ""

    @property
    def results(self) -> Results:
        return self.run.results

    @property
    def named_dots(self) -> Dots:
        return replace(self.decision.dots[0], title=self.name)


def write_comparison(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    resamples: int = 1000,
    seed: int = 0,
    bundle: bool = False,
    with_audio: bool = False,
) -> Path:
    """Compares the runs and writes the page; each run's own page is linked where it exists, or put into this one.
    `with_audio` puts the same recordings by every system into the page, to be played there."""
    path = Path(out)
    comparison = compare(runs, resamples=resamples, seed=seed)
    write_text(path, render_comparison(comparison, path.parent, bundle=bundle, with_audio=with_audio))
    return path


def _as_reported(run: ComparedRun) -> Reported:
    return reported(run.results) if run.folder is None else reported(run.folder, run.results)


@style.without_checks()
def render_comparison(comparison: Comparison, folder: Path, *, bundle: bool = False, with_audio: bool = False) -> str:
    read = map(_as_reported, comparison.runs)
    originals = dict(zip(display_names(comparison.runs), read, strict=True))
    player = player_of(originals) if with_audio else None
    with citations() as cited:
        systems = [_system(name, original, folder, bundle) for name, original in originals.items()]
        texts = {
            "lead": sentence(lead(systems), "lay"),
            "recommendation": text((*recommendation(systems, comparison), *trade_off(systems)), "lay"),
            "criteria": _criteria(systems),
            "annex": _annex(systems),
        }
    rows, targets = citation_rows(cited.made)
    figures = system_figures({system.name: system.results for system in systems})
    use = next((use for _, use, _ in uses({system.name: system.results for system in systems})), None)
    notices = {str(system.results.settings.get("notice") or "") for system in systems}
    days = sorted({system.run.created for system in systems if system.run.created})
    return page(
        "compare.html.j2",
        figures,
        title=words.comparison_title([system.name for system in systems]),
        created=", ".join(days),
        version=systems[0].results.version,
        notice=" ".join(sorted(notice for notice in notices if notice)),
        systems=systems,
        bundled={str(number): system.bundled for number, system in enumerate(systems) if system.bundled},
        **texts,
        rows=rows,
        cited=targets,
        measures=[find_measure(name) for name in dict.fromkeys(row.measure for row in rows) if name in MEASURES.names],
        warnings=list(map(words.as_sentence, sentences(_warnings(comparison, list(originals)), "lay"))),
        settings=_settings(systems, comparison),
        figures=figures,
        limit=_limit(systems),
        use="" if use is None else use.label,
        use_unit="" if use is None else unit_text(use.unit),
        player=player,
        differences=[
            (str(figure), [_cell(point) for point in values], [_cell(p) for p in comparison.differences[figure]])
            for figure, values in comparison.values.items()
        ],
        eer_methods=_eer_methods(comparison),
        not_tested=_not_tested(systems),
        glossary=GLOSSARY,
        sections=[
            ("decision", words.TITLES["decision"]),
            ("curves", words.TITLES["side_by_side"]),
            ("annex", words.TITLES["annex_short"]),
            ("differences", words.TITLES["differences"]),
            ("numbers", words.TITLES["numbers"]),
            ("method", words.TITLES["glossary"]),
        ],
        folds=True,
    )


def _eer_methods(comparison: Comparison) -> str:
    """The methods of the EERs that are compared, as a caption; empty where there are none."""
    methods = methods_of(run.results for run in comparison.runs)
    return words.as_sentence(sentence(Finding.of("eer_methods", methods=methods))) if methods else ""


@style.without_checks()
def render_leaderboard(table: SystemTable, runs: Sequence[RunLike | ComparedRun], *, intervals: bool = False) -> str:
    """The table of systems as a page: ranks, figures, and a picture of which systems differ significantly."""
    shown = _public_table(table)
    read = read_runs(runs, repeat_names=table.grouped)
    picture = ranking_figure(shown)
    single = dict(zip(table.systems, shown.systems, strict=True)) if not table.grouped else {}
    systems = {single[run.name]: run.results for run in read} if set(single) == {run.name for run in read} else {}
    figures = [*([picture] if picture else []), *(f for f in system_figures(systems) if f.id == "trade-off")]
    days = sorted({_as_reported(run).created for run in read} - {""})
    rows = []
    for number in range(len(shown.systems)):
        cells = [column.cells[number] for column in shown.columns]
        rows.append((first_cells(shown, number), [(cell, plain_cell(cell, intervals)) for cell in cells]))
    return page(
        "leaderboard.html.j2",
        figures,
        title=words.TITLES["leaderboard"],
        created=", ".join(days),
        version=read[0].results.version,
        count=len(shown.systems),
        titles_of_rows=first_titles(shown),
        headings=[heading(column) for column in shown.columns],
        rows=rows,
        remarks=sentences(shown.remarks),
        figures=figures,
        sections=[("table", words.TITLES["leaderboard"])],
        folds=False,
    )


def _public_table(table: SystemTable) -> SystemTable:
    """The table with systems called without where they lie, and without what settings say, which may name files."""
    names = dict(zip(table.systems, short_names(table.systems), strict=True))
    kept = (found for found in table.remarks if found.code not in ("setting_differs", "backend_differs"))
    remarks = (
        map_references(found, lambda it: replace(it, id=names.get(it.id, "")) if it.kind == "run" else it)
        for found in kept
    )
    columns = (
        replace(column, alike=tuple(tuple(names[name] for name in group) for group in column.alike))
        for column in table.columns
    )
    return replace(
        table,
        systems=tuple(names.values()),
        doubted=tuple(names[name] for name in table.doubted),
        first=names[table.first],
        columns=tuple(columns),
        remarks=tuple(remarks),
    )


def _limit(systems: Sequence[ComparedSystem]) -> float | None:
    """The limit that was chosen before the assessments, if it is one."""
    chosen = {system.results.settings.get("threshold") for system in systems}
    limit = next(iter(chosen)) if len(chosen) == 1 else None
    return limit if isinstance(limit, int | float) else None


# Settings and methods are for the technical part; the cards say which runs can't be relied on.
_TECHNICAL = ("setting_differs", "backend_differs", "run_distrusted")


def _warnings(comparison: Comparison, names: Sequence[str]) -> tuple[Finding, ...]:
    """Those for the first page, with runs called as there."""
    shown = {run.reference: Reference("run", name) for run, name in zip(comparison.runs, names, strict=True)}
    listed = (found for found in comparison.warnings if found.code not in _TECHNICAL)
    return tuple(map_references(found, lambda run: shown.get(run, replace(run, id=""))) for found in listed)


def _settings(systems: Sequence[ComparedSystem], comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Settings that differ, with their values as they may be shown, and how attackers compared."""
    rows = [
        (key.replace("_", " "), [_value_text(system.results.settings.get(key)) for system in systems])
        for key in comparison.settings
    ]
    for name in systems[0].results.attacks:
        backends = [
            system.results.attackers[name].backend if name in system.results.attackers else "" for system in systems
        ]
        if len(set(backends)) > 1:
            rows.append((f"method of the {name} attacker", backends))
    return rows


def _value_text(value: object) -> str:
    listed = value if isinstance(value, list | tuple) else () if value is None else (value,)
    return ", ".join(map(str, listed)) or "–"


def _system(name: str, original: Reported, folder: Path, bundle: bool) -> ComparedSystem:
    shown, _ = public(original, run_key(original.folder))
    shown = replace(shown, results=replace(shown.results, title=name))
    report = None if original.folder is None else original.folder / "report.html"
    link = "" if report is None or bundle or not report.is_file() else os.path.relpath(report, folder)
    bundled = render(shown, Options(), alone=False) if bundle else ""
    with of_system(name):
        doubted = tuple(text(doubt, "lay") for doubt in doubts(shown.results))
        decision = decide(shown.results, created=shown.created)
    return ComparedSystem(name, shown, decision, doubted, link, bundled)


def display_names(runs: Sequence[ComparedRun]) -> list[str]:
    """The runs' names as a page shows them."""
    return short_names([run.name for run in runs])


def lead(systems: Sequence[ComparedSystem]) -> Finding:
    """Every system with how many people its strongest attacker finds."""
    return Finding(
        "systems_find",
        {
            "systems": tuple(Reference("run", system.name) for system in systems),
            "shares": tuple(_share(system) for system in systems),
        },
    )


def _share(system: ComparedSystem) -> Estimate:
    """Of people that are found; not a number where that was not measured."""
    release = release_of(system.results)
    if release is None:
        return Estimate(name="linkability", value=math.nan, unit="percent")
    share = release.share
    found = {"value": 100 * share.value, "interval": (100 * share.low, 100 * share.high)}
    return release.evidence.with_(**found).sign(**{SYSTEM: system.name})


def recommendation(systems: Sequence[ComparedSystem], comparison: Comparison) -> tuple[Finding, ...]:
    """Which system protects best, and how sure that is; only systems that can be relied on are recommended."""
    reliable = [system for system in systems if system.results.verdict.trustworthy]
    if not reliable:
        return (Finding("no_system_reliable"),)

    def risk(system: ComparedSystem) -> tuple[int, float]:
        release = release_of(system.results)
        return ORDER.index(system.results.verdict.level), 1.0 if release is None else release.share.value

    best = min(reliable, key=risk)
    level = best.results.verdict.level
    rest = [system.name for system in reliable if system is not best]
    doubted = tuple(Reference("run", system.name) for system in systems if not system.results.verdict.trustworthy)
    chosen = {"system": Reference("run", best.name), "level": level}
    unfit = Finding("best_system_unfit")
    outdone = outdone_by(best.name, [system.name for system in systems], comparison) if rest else []
    if len(reliable) == 1:
        found = [Finding("one_system_reliable", chosen)]
    elif set(rest) <= set(outdone):
        found = [Finding("system_protects_best", chosen)]
    elif set(rest) & set(outdone):
        others = {True: [name for name in rest if name in outdone], False: [n for n in rest if n not in outdone]}
        sure, unsure = (tuple(Reference("run", name) for name in others[is_sure]) for is_sure in (True, False))
        found = [Finding("system_protects_better", {**chosen, "others": sure, "unsure": unsure})]
    else:
        named = tuple(Reference("run", system.name) for system in reliable)
        found = [Finding("no_reliable_system_better", {"systems": named}) if doubted else Finding("no_system_better")]
        unfit = Finding("no_system_fit")
    if level in ("high", "raised"):
        found.append(unfit)
    if doubted and len(reliable) > 1:
        found.append(Finding("systems_not_judged", {"systems": doubted}))
    if any("utility" not in system.results.parts for system in systems):
        found.append(Finding("use_not_compared"))
    floors = (text_floor(system.results.channels) for system in systems)
    found += list(filter(None, floors))[:1]  # all hear the words of the same original speech
    return tuple(found)


def trade_off(systems: Sequence[ComparedSystem]) -> tuple[Finding, ...]:
    """The price of the lowest risk in words; nothing where that is not known of all."""
    risks = {system.name: linking_of_all(system.results) for system in systems}
    errors = {system.name: system.results.part("utility").single("wer") for system in systems}
    known = {name: (risk.estimate, wer.value) for name, risk in risks.items() if risk and (wer := errors[name])}
    if len(known) < len(systems):
        return ()
    best = min(known, key=lambda name: known[name][0].value)
    other = min(known, key=lambda name: known[name][1])
    cost = known[best][1] - known[other][1]
    names = {"system": Reference("run", best), "other": Reference("run", other)}
    return (Finding("trade_off", {**names, "linked": known[best][0].sign(**{SYSTEM: best}), "words": cost}),)


def outdone_by(best: str, names: Sequence[str], comparison: Comparison) -> list[str]:
    """The systems whose strongest attacker links significantly more recordings than that of `best`; `names` in the
    runs' order. A weak attacker who fails says nothing about the risk, so only headlines are compared."""
    own = names.index(best)
    found = []
    for (first, second), difference in linking_differences(comparison.runs).items():
        if own in (first, second) and difference.extra.get("sure"):
            more = difference.value if first == own else -difference.value
            found += [names[second if first == own else first]] if more > 0 else []
    return [name for name in names if name in found]


def _criteria(systems: Sequence[ComparedSystem]) -> list[tuple[str, list[CriterionRow | None]]]:
    """By criterion, and by attribute for what is inferred, so that only like is compared with like; a system of which
    one of the three criteria was not measured says so."""
    cells = []
    for system in systems:
        with of_system(system.name):
            cells.append({row.title: row for row in _rows(system.results)})
    missing = [{row.name: row for row in of_system.values() if not row.measured} for of_system in cells]
    names = {row.title: row.name for of_system in cells for row in of_system.values() if row.measured}
    names |= {row.title: row.name for rows in missing for row in rows.values() if row.name not in names.values()}
    order = [*THREE, *dict.fromkeys(names.values())]
    return [
        (
            words.full_title(title, name),
            [own.get(title) or lack.get(name) for own, lack in zip(cells, missing, strict=True)],
        )
        for title, name in sorted(names.items(), key=lambda item: order.index(item[1]))
    ]


def _rows(results: Results) -> list[CriterionRow]:
    rows = [row for row in criterion_rows(results) if row.name != "inference"]
    inference = results.criteria.get("inference")
    if inference is None:
        return [*rows, criterion_row(results, "inference")]
    worst = inference.estimate.at.get("attribute")
    for point in results.part("inference").points("inference"):
        own = replace(results, criteria={"inference": inference_criterion(results, point, inference.level)})
        row = criterion_row(own, "inference")
        rows.append(row if point.at.get("attribute") == worst else replace(row, level="unknown", level_text=""))
    return rows


def _not_tested(systems: Sequence[ComparedSystem]) -> list[str]:
    """Everything that was not tested of all systems or of some, which are named; limits of every run come last."""
    own = {
        system.name: [words.as_sentence(reason) for reason in sentences(system.results.verdict.not_tested, "lay")]
        for system in systems
    }
    never = {system.name: sentences(never_tested(system.results), "lay") for system in systems}
    return [
        reason if len(names) == len(systems) else f"{reason} ({', '.join(names)})"
        for texts in (own, never)
        for reason, names in _by_text(texts).items()
    ]


def _by_text(texts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Every text with the systems that it applies to."""
    names: dict[str, list[str]] = {}
    for name, listed in texts.items():
        for said in dict.fromkeys(listed):
            names.setdefault(said, []).append(name)
    return names


def _likelihood(cell: CriterionRow) -> str:
    figure = f"{cell.level_text}: {cell.of_hundred if cell.measured else cell.sentence}".strip(": ")
    return f"{figure}. {cell.also}" if cell.also else figure


def _annex(systems: Sequence[ComparedSystem]) -> tuple[Chapter, ...]:
    rows = tuple(
        (
            title,
            *("–" if cell is None else _likelihood(cell) for cell in cells),
        )
        for title, cells in _criteria(systems)
    )
    blank = tuple(FILL_IN for _ in systems)
    names = tuple(system.name for system in systems)
    severity = (("Severity for the people concerned", *blank), ("Residual risk that remains", *blank))
    signers = (
        "Assessed by",
        "Data protection officer",
        "System chosen, and why",
        "To be assessed again before",
    )
    return (
        Chapter("Likelihood per criterion", table=Table(("criterion", *names), rows)),
        Chapter("Severity and residual risk", table=Table(("", *names), severity)),
        Chapter("Reliance", items=tuple(f"{system.name}: {system.decision.reliance}" for system in systems)),
        Chapter(
            "Sign-off",
            table=Table(("", "name", "date and signature"), tuple((who, FILL_IN, FILL_IN) for who in signers)),
        ),
    )


@dataclass(frozen=True, slots=True)
class DifferenceCell:
    value: str
    interval: str
    sure: bool


def _cell(point: Estimate) -> DifferenceCell:
    return DifferenceCell(point.format_value(), point.format_interval(), bool(point.extra.get("sure")))
