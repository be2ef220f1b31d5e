"""The page that shows several systems side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from veilmeter.core.estimate import Estimate
from veilmeter.core.files import write_text
from veilmeter.report import view
from veilmeter.report.charts import systems_figures
from veilmeter.report.html import page
from veilmeter.report.texts import CRITERIA
from veilmeter.results.compare import compare

_ORDER = ("low", "raised", "high")


def write_comparison(runs: Sequence[str | Path], out: str | Path, *, resamples: int = 1000, seed: int = 0) -> Path:
    """Compares the runs and writes the page; each run's own report is linked where it exists."""
    path = Path(out)
    write_text(path, render_comparison(compare(runs, resamples=resamples, seed=seed), path.parent))
    return path


def render_comparison(found: Any, folder: Path) -> str:
    names = [_title(run.results, run.name) for run in found.runs]
    results = dict(zip(names, (run.results for run in found.runs), strict=True))
    figures = systems_figures(results)
    cards = {name: {card["title"]: card for card in view.cards(entry)} for name, entry in results.items()}
    titles = [title for title in CRITERIA.values() if any(title in own for own in cards.values())]
    systems = []
    for run, name in zip(found.runs, names, strict=True):
        report = run.folder / "report.html"
        systems.append(
            {
                "name": name,
                "headline": run.results["verdict"].get("headline", ""),
                "banner": view.banner(run.results),
                "level": _level(run.results),
                "report": os.path.relpath(report, folder) if report.is_file() else "",
            }
        )
    notices = {str(entry.get("parameters", {}).get("notice") or "") for entry in results.values()}
    return page(
        "compare.html.j2",
        figures,
        {},
        title=" · ".join(names),
        created="",
        version=found.runs[0].results.get("version", ""),
        notice=" ".join(sorted(notice for notice in notices if notice)),
        lead=_lead(systems),
        warnings=[text for text in found.warnings if not text.endswith("is not trustworthy")],  # the cards say that
        systems=systems,
        worst=[(title, [cards[name].get(title) for name in names]) for title in titles],
        figures=figures,
        differences=[
            (title, [_cell(one) for one in values] + [_cell(one) for one in found.differences[title]])
            for title, values in found.values.items()
        ],
        sections=[
            ("verdict", "Verdict"),
            ("worst", "Worst case"),
            ("curves", "Side by side"),
            ("differences", "Differences"),
        ],
    )


def _title(results: dict[str, Any], name: str) -> str:
    given = str(results.get("parameters", {}).get("title") or "")
    return given.removesuffix(" on synthetic voices") if given else name


def _level(results: dict[str, Any]) -> str:
    case = results.get("worst_case", {}).get("linking") or {}
    level = str(case.get("level", "low"))
    return level if level in _ORDER else "low"


def _lead(systems: Sequence[dict[str, Any]]) -> str:
    """Whom the reader should worry about, in one sentence."""
    high = [system["name"] for system in systems if system["level"] == "high"]
    if len(high) == len(systems):
        return "With each of these systems, people can still be recognized by the strongest attacker that was run."
    if high:
        return f"With {' and '.join(high)}, people can still be recognized by the strongest attacker that was run."
    return "No system leaves a high risk of linking by the attackers that were run; each report says which were not."


def _cell(one: Estimate) -> tuple[str, str]:
    return one.format_value(), one.format_interval()
