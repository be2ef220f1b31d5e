"""`veilmeter compare`: systems side by side, with differences paired by speaker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmeter.cli import options


def command(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `assess --out` wrote; the first is the baseline.")],
    resamples: Annotated[int, typer.Option("--resamples", help="Of the intervals.", min=10)] = 1000,
    seed: options.Seed = 0,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write a page that shows the systems side by side.")
    ] = None,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Put every run's own page into that page, so that one file can be sent.")
    ] = False,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:
    """Compare runs: every measure of every attacker that all of them have, and the differences to the first run.

    A difference is sure where its interval excludes 0 even though many differences are looked at (Holm's rule).
    """
    from veilmeter.cli.output import Page, chosen_form, emit
    from veilmeter.results.compare import compare

    form = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    comparison = compare(runs, resamples=resamples, seed=seed)
    estimates = {title: [*values, *comparison.differences[title]] for title, values in comparison.values.items()}
    names = [run.name for run in comparison.runs]
    sure = [
        f"{title} ({point.at['run']})"
        for title, points in comparison.differences.items()
        for point in points
        if point.extra["sure"]
    ]
    page = Page(
        title=f"{' and '.join(names[1:])} against {names[0]}",
        estimates=estimates,
        inputs={run.name: str(run.folder) for run in comparison.runs},
        warnings=comparison.warnings,
        lead=[*comparison.summary, f"Sure: {'; '.join(sure)}." if sure else "No difference is sure."],
        notes=["Differences are to the first run; sure ones exclude 0 though many are looked at (Holm's rule)."],
        sections={title: [title] for title in estimates},
        more={
            "summary": list(comparison.summary),
            "settings": dict(comparison.settings),
            "differences": {
                title: [point.to_json() for point in points] for title, points in comparison.differences.items()
            },
        },
    )
    emit(page, form)
    if report is not None:
        import sys

        from veilmeter.core.files import write_text
        from veilmeter.report.compare import render_comparison

        write_text(report, render_comparison(comparison, report.parent, bundle=bundle))
        print(f"Report: {report}", file=sys.stderr)
