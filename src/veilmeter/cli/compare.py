"""`veilmeter compare`: systems side by side, with differences paired by speaker, and tables and figures for papers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from veilmeter.cli.command import Given, Lists
from veilmeter.cli.shared_options import FormFacts, typesetting
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.core.option_groups import Figures, OutputForms
from veilmeter.core.options import Condition, declare

if TYPE_CHECKING:
    from veilmeter.cli.output import Form, Page
    from veilmeter.results.compare import Comparison
    from veilmeter.results.system_table import SystemTable

COMMAND_CLASS = Lists
TABLE = "Table"


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Figures, OutputForms):
    """The options of the command."""

    runs: tuple[Path, ...] = declare(
        help="Folders that `assess --out` wrote; the first is the baseline.", argument=True, metavar="RUNS..."
    )
    by: tuple[str, ...] = declare(
        (), help="Attribute within whose values to compare too, such as gender.", metavar="ATTRIBUTE", example="gender"
    )
    resamples: int = declare(1000, help="Bootstrap resamples for the intervals.", least=10, example=40)
    seed: int = option_groups.seed()
    report: Path | None = declare(
        None, help="Write a page that shows the systems side by side.", path=True, example="out-page"
    )
    bundle: bool = declare(
        False, help="Put every run's own page into that page, so that one file can be sent.", example=True
    )
    with_audio: bool = declare(
        False, help="Put the same recordings, original and by every system, into that page.", example=True
    )
    table: bool = declare(
        False, help="Systems by measures instead, as in a paper: the best in bold, sure differences marked.",
        group=TABLE, example=True,
    )  # fmt: skip
    measures: tuple[str, ...] = declare(
        (), help="Columns of the table: eer, linkability@20, linkability@20,L3, informed:eer, wer.", metavar="FIGURE",
        group=TABLE, default_text="the usual ones that all runs have", example="eer",
    )  # fmt: skip
    intervals: bool = declare(
        False, help="Show 95 % intervals in the table.", group=TABLE, example=True, acts_when=(
            Condition(lambda options, facts: facts.form not in ("json", "csv"),
                      lambda options, facts: f"{facts.form} has them in any case"),),
    )  # fmt: skip
    figures: Path | None = option_groups.figures("the systems' figures, each with its data as CSV,")


OPTIONS = (CompareOptions,)


def command(given: Given) -> None:
    """Compare runs measure by measure, with the first as baseline.

    Compares every measure of every attacker that all runs have. A difference is significant if its interval
    excludes 0 after correction for the number of differences (Holm's rule).

    Examples:

        veilmeter compare b1/ b2/ --report compared.html --with-audio

        veilmeter compare b1/ b2/ b3/ --table --measures eer,linkability@20,wer --latex

        veilmeter compare b1/ b2/ --figures figures --width 8.6cm --font-size 8
    """
    from veilmeter.cli.output import output_form

    options = given.build(CompareOptions)
    form = output_form(options)
    setting = typesetting(options)
    if not options.table and (options.measures or options.intervals):
        raise InputError("--measures and --intervals are for --table", fix="give --table too")
    if options.table and options.by:
        raise InputError("--by is not for --table, which shows everybody", fix="leave one of them out")
    for option, is_asked in (("--bundle", options.bundle), ("--with-audio", options.with_audio)):
        if is_asked and options.report is None:
            raise InputError(f"{option} is for --report", fix="give --report FILE too")
    if options.table:
        from veilmeter.results.system_table import system_table

        remarks = given.find_unused(options, FormFacts(form))
        table = system_table(options.runs, options.measures, resamples=options.resamples, seed=options.seed)
        _print_table(table, form, options.intervals, remarks)
    comparison = None
    if not options.table or options.report is not None:
        from veilmeter.results.compare import compare

        groups = list(dict.fromkeys(options.by))
        comparison = compare(options.runs, by=groups, resamples=options.resamples, seed=options.seed)
    page = None
    if comparison is not None and options.report is not None:
        from veilmeter.report.compare import render_comparison

        page = render_comparison(
            comparison, options.report.parent, bundle=options.bundle, with_audio=options.with_audio
        )
    if comparison is not None and not options.table:
        _print_comparison(comparison, form)
    if page is not None and options.report is not None:
        from veilmeter.core.files import write_text

        write_text(options.report, page)
        _note(f"Report: {options.report}")
    if options.figures is not None:
        from veilmeter.report.figures.page import save_system_figures

        drawn = save_system_figures(options.runs, options.figures, setting=setting)
        _note(f"Figures in {options.figures}: {', '.join(drawn) or 'none, as the runs share nothing to draw'}")


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
        notes=[Finding("differences_by_holm")],
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
