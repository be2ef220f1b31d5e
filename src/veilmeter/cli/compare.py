"""`veilmeter compare`: systems side by side, with differences paired by speaker, and tables and figures for papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    from veilmeter.report.figures.typesetting import Typesetting
    from veilmeter.results.compare import ComparedFigure, ComparedRun, Comparison
    from veilmeter.results.system_table import SystemTable


class RunsAndLists(Lists):
    """`--measures eer wer b1/ b2/` names two figures and two runs."""

    def is_argument(self, word: str) -> bool:
        return any(Path(piece.partition("=")[2] or piece).is_dir() for piece in word.split(","))


COMMAND_CLASS = RunsAndLists
TABLE = "Table"


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Figures, OutputForms):
    """The options of the command."""

    runs: tuple[str, ...] = declare(
        help="Folders that `assess --out` wrote, each as RUN or NAME=RUN; the first is the baseline.", argument=True,
        metavar="RUNS...",
    )  # fmt: skip
    by: tuple[str, ...] = declare(
        (),
        help="Also compare within each value of this attribute, such as gender.",
        metavar="ATTRIBUTE",
        example="gender",
    )
    resamples: int = declare(1000, help="Bootstrap resamples for the intervals.", least=10, example=40)
    seed: int = option_groups.seed()
    eer_method: str | None = option_groups.eer_method(None, default_text="the runs'")
    report: Path | None = declare(
        None, help="Write a page that shows the systems side by side, or the --table.", path=True, example="out-page"
    )
    bundle: bool = declare(
        False, help="Include every run's own page in the --report page, so that one file can be sent.", example=True
    )
    with_audio: bool = declare(
        False, help="Include the same recordings, original and by every system, in the --report page.", example=True
    )
    table: bool = declare(
        False, help="Print systems by measures, as in a paper: best in bold, significant differences marked.",
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
    sort: str | None = declare(
        None, help="Rank the systems by this figure, the best first; letters join those that do not differ.",
        metavar="FIGURE", group=TABLE, example="eer",
    )  # fmt: skip
    group: bool = declare(
        False, help="Show runs of one NAME as one system: their mean and standard deviation (seeds).", group=TABLE,
        example=True,
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

        veilmeter compare B1=b1-seed1/,b1-seed2/ B2=b2-seed1/,b2-seed2/ --table --group --sort eer

        veilmeter compare b1/ b2/ --figures figures --width 8.6cm --font-size 8
    """
    from veilmeter.cli.output import output_form
    from veilmeter.results.compare import read_runs

    options = given.build(CompareOptions)
    form = output_form(options)
    setting = typesetting(options)
    _refuse_what_does_not_fit(options)
    runs = read_runs(options.runs, repeat_names=options.group, eer_method=options.eer_method)
    drawn: list[str] = []
    if options.figures is not None and not options.group:  # before the page, which may fail: recordings may be missing
        from veilmeter.report.figures.systems import save_system_figures

        drawn += save_system_figures(runs, options.figures, setting=setting)
    if options.table:
        drawn += _make_table(runs, options, form, setting, given)
    else:
        _make_comparison(runs, options, form)
    if options.figures is not None:
        _note(f"Figures in {options.figures}: {', '.join(drawn) or 'none, as the runs share nothing to draw'}")


def _refuse_what_does_not_fit(options: CompareOptions) -> None:
    of_table = {"--measures": options.measures, "--intervals": options.intervals, "--sort": options.sort,
                "--group": options.group}  # fmt: skip
    given = [name for name, value in of_table.items() if value]
    if given and not options.table:
        verb = "is" if len(given) == 1 else "are"
        raise InputError(f"{' and '.join(given)} {verb} for --table", fix="give --table too")
    if options.table and options.by:
        raise InputError("--by is not for --table, which shows everybody", fix="leave one of them out")
    for option, is_asked in (("--bundle", options.bundle), ("--with-audio", options.with_audio)):
        if is_asked and (options.report is None or options.table):
            fix = "leave --table out" if options.table else "give --report FILE too"
            raise InputError(f"{option} is for --report" + " without --table" * options.table, fix=fix)


def _make_table(
    runs: Sequence[ComparedRun], options: CompareOptions, form: Form, setting: Typesetting | None, given: Given
) -> list[str]:
    """Prints the table, writes its page, and draws the systems in their order; the names of the figures."""
    from veilmeter.results.system_table import system_table

    remarks = given.find_unused(options, FormFacts(form))
    table = system_table(
        *runs, measures=options.measures, sort=options.sort, group=options.group, resamples=options.resamples,
        seed=options.seed,
    )  # fmt: skip
    _print_table(table, form, options.intervals, remarks)
    if options.report is not None:
        from veilmeter.report.compare import render_leaderboard

        _write_page(options.report, render_leaderboard(table, runs, intervals=options.intervals))
    if options.figures is None:
        return []
    from veilmeter.report.figures.page import save_figures
    from veilmeter.report.figures.systems import ranking_figure

    pictures = list(filter(None, [ranking_figure(table)]))
    save_figures(pictures, options.figures, setting=setting)
    return [picture.id for picture in pictures]


def _make_comparison(runs: tuple[ComparedRun, ...], options: CompareOptions, form: Form) -> None:
    from veilmeter.results.compare import compare_runs

    groups = list(dict.fromkeys(options.by))
    comparison = compare_runs(runs, by=groups, resamples=options.resamples, seed=options.seed)
    page = None
    if options.report is not None:
        from veilmeter.report.compare import render_comparison

        page = render_comparison(
            comparison, options.report.parent, bundle=options.bundle, with_audio=options.with_audio
        )
    _print_comparison(comparison, form)
    if page is not None and options.report is not None:
        _write_page(options.report, page)


def _write_page(path: Path, page: str) -> None:
    from veilmeter.core.files import write_text

    write_text(path, page)
    _note(f"Report: {path}")


def _note(text: str) -> None:
    import sys

    print(text, file=sys.stderr)


def _print_comparison(comparison: Comparison, form: Form) -> None:
    from veilmeter.cli.output import Form, emit, emit_text

    page = _page(comparison)
    if form is Form.CSV:
        from veilmeter.results.comparison_tables import comparison_csv

        emit_text(comparison_csv(comparison), page.warnings)
    elif form is Form.TABLE:
        _print_differences(comparison, page)
    else:
        emit(page, form)


def _print_differences(comparison: Comparison, page: Page) -> None:
    """Print what the comparison found, then one table per run and attacker, with one line per figure."""
    from veilmeter.cli.output import print_paragraphs, print_rows
    from veilmeter.wording import sentences

    print_paragraphs(page.title, *page.lead, *(f"! {warning}" for warning in sentences(page.warnings)))
    baseline, *others = comparison.labels
    by_attacker: dict[str, list[ComparedFigure]] = {}
    for figure in comparison.values:
        by_attacker.setdefault(figure.attacker, []).append(figure)
    for number, name in enumerate(others):
        for attacker, figures in by_attacker.items():
            heading = f"{name} against {baseline}: {f'{attacker} attacker' if attacker else 'other figures'}"
            print_paragraphs("", heading, spaced=False)
            rows = [_difference_row(comparison, figure, number) for figure in figures]
            print_rows(["measure", baseline, name, "difference"], rows, ())
    print_paragraphs("", *sentences(page.notes), spaced=False)


def _difference_row(comparison: Comparison, figure: ComparedFigure, number: int) -> list[tuple[str, bool]]:
    """One figure in the first run and in the run of this number after it, with their difference; in bold if it is
    significant."""
    from veilmeter.core.estimate import format_number

    before, *after = comparison.values[figure]
    difference = comparison.differences[figure][number]
    is_significant = bool(difference.extra["sure"])
    number_alone = format_number(difference.value, difference.unit)
    change = f"{number_alone} {difference.format_interval()}".strip() + (" *" if is_significant else "  ")
    cells = (str(replace(figure, attacker="")), before.format_value(), after[number].format_value(), change)
    return [(cell, is_significant) for cell in cells]


def _page(comparison: Comparison) -> Page:
    from veilmeter.cli.output import Page
    from veilmeter.results.eer_methods import methods_of
    from veilmeter.wording import text

    estimates = {str(title): [*values, *comparison.differences[title]] for title, values in comparison.values.items()}
    names = [run.name for run in comparison.runs]
    summary = list(map(text, comparison.summary))
    methods = methods_of(run.results for run in comparison.runs)
    by_methods = [Finding.of("eer_methods", methods=methods)] if methods else []
    return Page(
        title=f"{' and '.join(names[1:])} against {names[0]}",
        estimates=estimates,
        inputs={run.name: str(run.folder) for run in comparison.runs},
        warnings=comparison.warnings,
        lead=summary,
        notes=[Finding("differences_by_holm"), *by_methods],
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
    from veilmeter.results import comparison_tables
    from veilmeter.wording import sentences

    if form is Form.TABLE:
        titles = comparison_tables.first_titles(table)
        head = [*titles, *(comparison_tables.heading(column) for column in table.columns)]
        rows = []
        for number in range(len(table.systems)):
            cells = [column.cells[number] for column in table.columns]
            shown = [(comparison_tables.plain_cell(cell, intervals), cell.best) for cell in cells]
            rows.append([*((text, False) for text in comparison_tables.first_cells(table, number)), *shown])
        print_rows(head, rows, sentences(table.remarks))
    elif form is Form.JSON:
        emit_text(to_json(table.to_json()), remarks)
    elif form is Form.CSV:
        emit_text(comparison_tables.table_csv(table), [*table.remarks, *remarks])
    elif form is Form.MARKDOWN:
        emit_text(comparison_tables.markdown(table, intervals=intervals), ())
    else:
        emit_text(comparison_tables.latex(table, intervals=intervals), ())
