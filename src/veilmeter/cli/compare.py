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
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:
    """Compare runs: every measure of every attacker that all of them have, and the differences to the first run.

    A difference whose interval contains 0 may be chance.
    """
    from veilmeter.cli.output import Page, chosen_form, emit
    from veilmeter.results.compare import compare

    form = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    found = compare(runs, resamples=resamples, seed=seed)
    estimates = {title: [*values, *found.differences[title]] for title, values in found.values.items()}
    sections = {title: [title] for title in estimates}
    names = [run.name for run in found.runs]
    page = Page(
        title=f"{' and '.join(names[1:])} against {names[0]}",
        estimates=estimates,
        inputs={run.name: str(run.folder) for run in found.runs},
        warnings=found.warnings,
        notes=["Differences are to the first run. One whose interval contains 0 may be chance."],
        sections=sections,
        more={"differences": {title: [one.to_json() for one in ones] for title, ones in found.differences.items()}},
    )
    emit(page, form)
    if report is not None:
        import sys

        from veilmeter.core.files import write_text
        from veilmeter.report.compare import render_comparison

        write_text(report, render_comparison(found, report.parent))
        print(f"Report: {report}", file=sys.stderr)
