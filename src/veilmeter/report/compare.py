"""The page that shows several systems side by side."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from veilmeter.core.estimate import Estimate
from veilmeter.core.files import write_text
from veilmeter.core.text import few
from veilmeter.report.annex import FILL_IN, Chapter, Table
from veilmeter.report.criterion_rows import CriterionRow, criterion_row
from veilmeter.report.decision import Decision, Dots, decide, everybody
from veilmeter.report.figures import style
from veilmeter.report.html import Options, page, render
from veilmeter.report.listening import player_of
from veilmeter.report.plain_language import never_tested, untested
from veilmeter.report.pseudonyms import run_key
from veilmeter.report.public import public
from veilmeter.report.release import release_of
from veilmeter.report.source import Reported, reported
from veilmeter.report.system_figures import system_figures
from veilmeter.report.texts import GLOSSARY
from veilmeter.results.compare import ComparedRun, Comparison, compare
from veilmeter.results.levels import ORDER
from veilmeter.results.model import Results
from veilmeter.results.trust import doubts


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


@style.without_checks()
def render_comparison(comparison: Comparison, folder: Path, *, bundle: bool = False, with_audio: bool = False) -> str:
    originals = dict(zip(shown_names(comparison.runs), (reported(run.folder) for run in comparison.runs), strict=True))
    player = player_of(originals) if with_audio else None
    systems = [_system(name, original, folder, bundle) for name, original in originals.items()]
    figures = system_figures({system.name: system.results for system in systems})
    notices = {str(system.results.settings.get("notice") or "") for system in systems}
    days = sorted({system.run.created for system in systems if system.run.created})
    return page(
        "compare.html.j2",
        figures,
        title=" · ".join(system.name for system in systems),
        created=", ".join(days),
        version=systems[0].results.version,
        notice=" ".join(sorted(notice for notice in notices if notice)),
        systems=systems,
        bundled={str(number): system.bundled for number, system in enumerate(systems) if system.bundled},
        lead=lead(systems),
        recommendation=recommendation(systems, comparison),
        warnings=[text for text in comparison.warnings if not _is_technical(text)],
        settings=_settings(systems, comparison),
        criteria=_criteria(systems),
        figures=figures,
        player=player,
        differences=[
            (title, [_cell(point) for point in values], [_cell(point) for point in comparison.differences[title]])
            for title, values in comparison.values.items()
        ],
        not_tested=_not_tested(systems),
        annex=_annex(systems),
        glossary=GLOSSARY,
        sections=[
            ("decision", "Decision"),
            ("curves", "Side by side"),
            ("annex", "Annex"),
            ("differences", "Differences"),
            ("method", "Glossary"),
        ],
        folds=True,
    )


def _is_technical(warning: str) -> bool:
    """Settings and methods are for the technical part; the cards say which runs can't be relied on."""
    return warning.startswith("the setting ") or "compares differently" in warning or warning.endswith("trustworthy")


def _settings(systems: Sequence[ComparedSystem], comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Settings that differ, with their values as they may be shown, and how attackers compared."""
    rows = [
        (key.replace("_", " "), [_shown(system.results.settings.get(key)) for system in systems])
        for key in comparison.settings
    ]
    for name in systems[0].results.attacks:
        backends = [
            system.results.attackers[name].backend if name in system.results.attackers else "" for system in systems
        ]
        if len(set(backends)) > 1:
            rows.append((f"method of the {name} attacker", backends))
    return rows


def _shown(value: object) -> str:
    listed = value if isinstance(value, list | tuple) else () if value is None else (value,)
    return ", ".join(map(str, listed)) or "–"


def _system(name: str, original: Reported, folder: Path, bundle: bool) -> ComparedSystem:
    assert original.folder is not None
    shown, _ = public(original, run_key(original.folder))
    shown = replace(shown, results=replace(shown.results, title=name))
    report = original.folder / "report.html"
    link = os.path.relpath(report, folder) if report.is_file() and not bundle else ""
    bundled = render(shown, Options(), alone=False) if bundle else ""
    return ComparedSystem(
        name, shown, decide(shown.results, created=shown.created), tuple(doubts(shown.results)), link, bundled
    )


def shown_names(runs: Sequence[ComparedRun]) -> list[str]:
    """The runs' names without where they lie, which is nobody's business; numbered where one comes up again."""
    names: list[str] = []
    for run in runs:
        name = re.split(r"[/\\\\]", run.name)[-1]
        same = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({same + 1})" if same else name)
    return names


def lead(systems: Sequence[ComparedSystem]) -> str:
    """Every system with how many people its strongest attacker finds."""
    parts: list[str] = []
    among: dict[int, list[str]] = {}
    for system in systems:
        release = release_of(system.results)
        if release is None:
            parts.append(f"an unknown number with {system.name}")
            continue
        share = release.share
        value, low, high = (f"{100 * end:.0f}" for end in (share.value, share.low, share.high))
        parts.append(f"{value} [{low}, {high}] with {system.name}")
        among.setdefault(release.candidates, []).append(system.name)
    people = ", ".join(
        f"{count:,}" + (f" ({', '.join(names)})" if len(among) > 1 else "") for count, names in among.items()
    )
    sentence = f"Of 100 people, the strongest attacker that was run finds {', '.join(parts[:-1])} and {parts[-1]}"
    return f"{sentence}, each among {people} people." if people else f"{sentence}."


def recommendation(systems: Sequence[ComparedSystem], comparison: Comparison) -> str:
    """Which system protects best, and how sure that is; only systems that can be relied on are recommended."""
    reliable = [system for system in systems if system.results.verdict.trustworthy]
    if not reliable:
        return "None of these assessments can be relied on yet, so none of the systems is recommended."

    def risk(system: ComparedSystem) -> tuple[int, float]:
        release = release_of(system.results)
        return ORDER.index(system.results.verdict.level), 1.0 if release is None else release.share.value

    best = min(reliable, key=risk)
    level = best.results.verdict.level
    rest = [system.name for system in reliable if system is not best]
    doubted = [system.name for system in systems if not system.results.verdict.trustworthy]
    unsafe = " That does not make it fit for release: people can still be found."
    if len(reliable) == 1:
        text = f"Only the assessment of {best.name} can be relied on; its risk is {level}."
    elif surely_better(best.name, rest, [system.name for system in systems], comparison):
        text = f"Of those whose figures can be relied on, {best.name} leaves the lowest risk ({level})."
    else:
        text = "None of them surely protects better than the others: differences may be chance."
        if doubted:
            named = few([system.name for system in reliable])
            text = f"Of those whose figures can be relied on ({named}), none surely protects better than the others."
        unsafe = " None of these is fit for release: people can still be found."
    if level in ("high", "raised"):
        text += unsafe
    if doubted and len(reliable) > 1:
        text += f" Nothing is claimed of {few(doubted)}, whose figures can't be relied on yet."
    if any("utility" not in system.results.parts for system in systems):
        text += " Whether its speech is still usable was not measured for all of them."
    return text


def surely_better(best: str, rest: Sequence[str], names: Sequence[str], comparison: Comparison) -> bool:
    """Whether a sure difference of linking speaks for a system against all of `rest`; `names` in the runs' order.

    Only where the attacker is the strongest against it: a weak attacker who fails says nothing about the risk. What
    is known are differences to the first run, so that two others can't be told apart.
    """
    own = names.index(best)
    titles = [title for title, points in comparison.differences.items() if points and points[0].name == "linkability"]

    def is_strongest(title: str) -> bool:
        alike = [other for other in titles if other.partition(": ")[2] == title.partition(": ")[2]]
        values = comparison.values
        return values[title][own].value >= max(values[other][own].value for other in alike)

    def sure(name: str, sign: int) -> bool:
        place = names.index(name) - 1
        points = [comparison.differences[title][place] for title in titles if is_strongest(title)]
        return any(point.extra.get("sure") and sign * point.value > 0 for point in points)

    if best == names[0]:
        return all(sure(name, 1) for name in rest)
    return list(rest) == [names[0]] and sure(best, -1)


def _criteria(systems: Sequence[ComparedSystem]) -> list[tuple[str, list[CriterionRow | None]]]:
    """By criterion, and by attribute for what is inferred, so that only like stands beside like."""
    cells = [{row.title: row for row in _rows(system.results)} for system in systems]
    titles = dict.fromkeys(title for of_system in cells for title in of_system)
    return [(title, [of_system.get(title) for of_system in cells]) for title in titles]


def _rows(results: Results) -> list[CriterionRow]:
    release = release_of(results)
    if release is not None and "linking" in results.criteria:  # among everybody: groups differ between systems
        results = replace(results, criteria={**results.criteria, "linking": everybody(results, release)})
    rows = [criterion_row(results, name) for name in results.criteria if name != "inference"]
    inference = results.criteria.get("inference")
    if inference is None:
        return rows
    worst = inference.estimate.at.get("attribute")
    for point in results.part("inference").points("inference"):
        own = replace(results, criteria={"inference": replace(inference, estimate=point)})
        row = criterion_row(own, "inference")
        rows.append(row if point.at.get("attribute") == worst else replace(row, level="unknown", level_text=""))
    return rows


def _not_tested(systems: Sequence[ComparedSystem]) -> list[str]:
    """What was not tested of all systems, or of some, which are then named; what no run tests comes last."""
    own = {system.name: list(map(untested, system.results.verdict.not_tested)) for system in systems}
    never = {system.name: never_tested(system.results) for system in systems}
    return [
        text if len(names) == len(systems) else f"{text} ({', '.join(names)})"
        for texts in (own, never)
        for text, names in _by_text(texts).items()
    ]


def _by_text(texts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Every text with the names it stands under."""
    names: dict[str, list[str]] = {}
    for name, listed in texts.items():
        for text in dict.fromkeys(listed):
            names.setdefault(text, []).append(name)
    return names


def _annex(systems: Sequence[ComparedSystem]) -> tuple[Chapter, ...]:
    rows = tuple(
        (
            title,
            *("–" if cell is None else f"{cell.level_text}: {cell.of_hundred}".strip(": ") for cell in cells),
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
