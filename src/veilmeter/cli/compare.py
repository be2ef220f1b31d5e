"""`veilmeter compare`: systems side by side, with differences paired by speaker, and tables and figures for papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veilmeter.cli import options
from veilmeter.cli.lists import Lists
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding

if TYPE_CHECKING:
    from veilmeter.cli.output import Form, Page
    from veilmeter.core.findings import Finding
    from veilmeter.results.compare import Comparison
    from veilmeter.results.system_table import SystemTable

COMMAND_CLASS = Lists
TABLE = "Table"


def command(
    ctx: typer.Context,
    runs: Annotated[list[Path], typer.Argument(help="Folders that `assess --out` wrote; the first is the baseline.")],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="ATTRIBUTE", help="Also within groups, such as gender.", show_default=False),
    ] = None,
    resamples: Annotated[int, typer.Option("--resamples", help="Of the intervals.", min=10)] = 1000,
    seed: options.Seed = 0,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write a page that shows the systems side by side.")
    ] = None,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Put every run's own page into that page, so that one file can be sent.")
    ] = False,
    with_audio: Annotated[
        bool,
        typer.Option(
            "--with-audio",
            help="Put the same recordings, original and by every system, into that page, to compare them by ear.",
        ),
    ] = False,
    table: Annotated[
        bool,
        typer.Option("--table", rich_help_panel=TABLE,
                     help="Systems by measures instead, as in a paper: the best in bold, sure differences marked."),
    ] = False,
    measures: Annotated[
        list[str] | None,
        typer.Option("--measures", metavar="FIGURE", show_default=False, rich_help_panel=TABLE,
                     help="Its columns: eer, linkability@20, linkability@20,L3, informed:eer, wer. Default: the usual "
                     "ones that all runs have."),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="With 95 % intervals.", rich_help_panel=TABLE)
    ] = False,
    figures: Annotated[Path | None, options.figures("the systems' figures, each with its data as CSV,")] = None,
    width: options.Width = None,
    font: options.Font = None,
    font_size: options.FontSize = None,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:  # fmt: skip
    """Compare runs: every measure of every attacker that all of them have, and the differences to the first run.

    A difference is sure where its interval excludes 0 even though many differences are looked at (Holm's rule).

    Examples:

        veilmeter compare b1/ b2/ --report compared.html --with-audio

        veilmeter compare b1/ b2/ b3/ --table --measures eer,linkability@20,wer --latex

        veilmeter compare b1/ b2/ --figures figures --width 8.6cm --font-size 8
    """
    from veilmeter.cli import given
    from veilmeter.cli.output import Form, chosen_form

    form = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    setting = options.typesetting(figures, width, font, font_size)
    if not table and (measures or intervals):
        raise InputError("--measures and --intervals are for --table", fix="give --table too")
    if table and by:
        raise InputError("--by is not for --table, which shows everybody", fix="leave one of them out")
    for option, is_asked in (("--bundle", bundle), ("--with-audio", with_audio)):
        if is_asked and report is None:
            raise InputError(f"{option} is for --report", fix="give --report FILE too")
    if table:
        from veilmeter.results.system_table import system_table

        unused = {"intervals": f"{form} has them in any case" if form in (Form.JSON, Form.CSV) else ""}
        remarks = given.without_effect(ctx, unused)
        _print_table(system_table(runs, measures or [], resamples=resamples, seed=seed), form, intervals, remarks)
    comparison = None
    if not table or report is not None:
        from veilmeter.results.compare import compare

        comparison = compare(runs, by=list(dict.fromkeys(by or [])), resamples=resamples, seed=seed)
    page = None
    if comparison is not None and report is not None:
        from veilmeter.report.compare import render_comparison

        page = render_comparison(comparison, report.parent, bundle=bundle, with_audio=with_audio)
    if comparison is not None and not table:
        _print_comparison(comparison, form)
    if page is not None and report is not None:
        from veilmeter.core.files import write_text

        write_text(report, page)
        _note(f"Report: {report}")
    if figures is not None:
        from veilmeter.report.system_figures import save_system_figures

        drawn = save_system_figures(runs, figures, setting=setting)
        _note(f"Figures in {figures}: {', '.join(drawn) or 'none, as the runs share nothing to draw'}")


def _note(text: str) -> None:
    import sys

    print(text, file=sys.stderr)


def _print_comparison(comparison: Comparison, form: Form) -> None:
    from veilmeter.cli.output import Form, emit, emit_text

    page = _page(comparison)
    if form is Form.CSV:
        from veilmeter.report.comparison_tables import comparison_csv

        emit_text(comparison_csv(comparison), page.warnings)
    else:
        emit(page, form)


def _page(comparison: Comparison) -> Page:
    from veilmeter.cli.output import Page
    from veilmeter.wording import text

    estimates = {str(title): [*values, *comparison.differences[title]] for title, values in comparison.values.items()}
    names = [run.name for run in comparison.runs]
    sure = [
        f"{title} ({point.at['run']})"
        for title, points in comparison.differences.items()
        for point in points
        if point.extra["sure"]
    ]
    summary = list(map(text, comparison.summary))
    return Page(
        title=f"{' and '.join(names[1:])} against {names[0]}",
        estimates=estimates,
        inputs={run.name: str(run.folder) for run in comparison.runs},
        warnings=comparison.warnings,
        lead=[*summary, f"Significant: {'; '.join(sure)}." if sure else "No difference is significant."],
        notes=["Differences are to the first run; significant by Holm's rule over all of them."],
        sections={title: [title] for title in estimates},
        more={
            "summary": summary,
            "settings": dict(comparison.settings),
            "differences": {
                str(title): [point.to_json() for point in points] for title, points in comparison.differences.items()
            },
        },
    )


def _print_table(table: SystemTable, form: Form, intervals: bool, remarks: list[Finding]) -> None:
    from veilmeter.cli.output import Form, emit_text, print_rows
    from veilmeter.core.files import to_json
    from veilmeter.report import comparison_tables
    from veilmeter.wording import sentences

    if form is Form.TABLE:
        head = ["system", *(comparison_tables.heading(column) for column in table.columns)]
        rows = []
        for number, system in enumerate(table.names()):
            cells = [column.cells[number] for column in table.columns]
            shown = [(comparison_tables.plain_cell(cell, intervals), cell.best) for cell in cells]
            rows.append([(system, False), *shown])
        print_rows(head, rows, sentences(table.remarks))
    elif form is Form.JSON:
        emit_text(to_json(table.to_json()), remarks)
    elif form is Form.CSV:
        emit_text(comparison_tables.table_csv(table), [*table.remarks, *remarks])
    elif form is Form.MARKDOWN:
        emit_text(comparison_tables.markdown(table, intervals=intervals), ())
    else:
        emit_text(comparison_tables.latex(table, intervals=intervals), ())
