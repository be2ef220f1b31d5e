"""A comparison as text: systems by measures for a paper, and every value and difference as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from veilmeter.core.estimate import POINTS, Estimate, format_number
from veilmeter.core.text import csv_cell, markdown_text
from veilmeter.results.compare import Comparison
from veilmeter.results.system_table import SystemTable, TableCell, TableColumn
from veilmeter.wording import sentences
from veilmeter.wording.latex import latex_label, latex_number, latex_table, latex_text

ARROWS = {"higher": "↑", "lower": "↓", "neither": ""}
_UNITS = {"percent": "%", POINTS: "points", "log10": "", "count": ""}
NOTHING = "–"


def heading(column: TableColumn) -> str:
    """The figure with its unit and the direction that is good: `EER (%) ↑`."""
    unit = _UNITS.get(column.unit, column.unit)
    return " ".join(part for part in (column.label, f"({unit})" if unit else "", ARROWS[column.better]) if part)


def figure(cell: TableCell) -> str:
    """The value without its unit, which is in the heading."""
    if cell.estimate is None:
        return NOTHING
    text = format_number(cell.estimate.value, cell.estimate.unit)
    return NOTHING if text == "-" else text


def spread(cell: TableCell) -> str:
    """The standard deviation over the runs of a system; nothing where it has one run."""
    if cell.spread is None or cell.estimate is None:
        return ""
    return f"± {format_number(cell.spread, cell.estimate.unit)}"


def first_titles(table: SystemTable) -> list[str]:
    """The headings before those of the figures."""
    ranked = table.ranking_column is not None
    return [
        *(["rank"] if ranked else []),
        "system",
        *(["runs"] if table.grouped else []),
        *(["alike"] if ranked else []),
    ]


def first_cells(table: SystemTable, number: int) -> list[str]:
    """The cells of a row before its figures."""
    row = [table.names()[number]]
    if table.grouped:
        row.append(str(max(column.cells[number].runs for column in table.columns)))
    if (column := table.ranking_column) is not None:
        cell = column.cells[number]
        row = [NOTHING if cell.rank is None else str(cell.rank), *row, cell.alike or NOTHING]
    return row


def interval(cell: TableCell) -> str:
    return "" if cell.estimate is None else cell.estimate.format_interval()


def signatures(table: SystemTable) -> list[str]:
    """The signatures of the first system's figures, one line per column."""
    cells = [next((cell for cell in column.cells if cell.estimate is not None), None) for column in table.columns]
    return [cell.estimate.signature for cell in cells if cell is not None and cell.estimate is not None]


def latex(table: SystemTable, *, intervals: bool = False) -> str:
    """With booktabs' rules, numbers in math mode; caveats are comments above it."""
    titles = first_titles(table)
    head = [*titles, *(_latex_heading(column) for column in table.columns)]
    rows = []
    for number in range(len(table.systems)):
        cells = [_latex_cell(column.cells[number], intervals) for column in table.columns]
        rows.append([*map(latex_text, first_cells(table, number)), *cells])
    return latex_table(
        "l" * len(titles) + "r" * len(table.columns), head, rows, [*sentences(table.remarks), *signatures(table)]
    )


def _latex_heading(column: TableColumn) -> str:
    unit = _UNITS.get(column.unit, column.unit)
    arrow = latex_text(ARROWS[column.better])
    words = (latex_label(column.label), f"({latex_text(unit)})" if unit else "", arrow)
    return " ".join(part for part in words if part)


def _latex_cell(cell: TableCell, intervals: bool) -> str:
    text = latex_number(figure(cell), bold=cell.best, mark="*" if cell.sure else "")
    if cell.spread is not None and cell.estimate is not None:
        text += rf" $\pm$ {latex_number(format_number(cell.spread, cell.estimate.unit))}"
    return f"{text} {latex_number(interval(cell))}" if intervals and interval(cell) else text


def markdown(table: SystemTable, *, intervals: bool = False) -> str:
    titles = first_titles(table)
    lines = [_markdown_row([*titles, *(heading(column) for column in table.columns)])]
    lines.append("|" + "---|" * len(titles) + "---:|" * len(table.columns))
    for number in range(len(table.systems)):
        cells = [_markdown_cell(column.cells[number], intervals) for column in table.columns]
        lines.append(f"| {' | '.join([*map(markdown_text, first_cells(table, number)), *cells])} |")
    return (
        "\n".join(
            [*lines, "", *(f"- {markdown_text(line)}" for line in (*sentences(table.remarks), *signatures(table)))]
        )
        + "\n"
    )


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def _markdown_cell(cell: TableCell, intervals: bool) -> str:
    text = f"**{figure(cell)}**" if cell.best else figure(cell)
    text += "\\*" if cell.sure else ""
    text += f" {spread(cell)}" if spread(cell) else ""
    return f"{text} {interval(cell)}" if intervals and interval(cell) else text


def plain_cell(cell: TableCell, intervals: bool) -> str:
    """For a terminal, which shows the best in bold by itself."""
    text = figure(cell) + ("*" if cell.sure else "")
    text += f" {spread(cell)}" if spread(cell) else ""
    return f"{text} {interval(cell)}" if intervals and interval(cell) else text


def table_csv(table: SystemTable) -> str:
    """Tidy: one row per system and figure, one per difference to the first system, and one per pair of systems; the
    difference is that of `system` to `against`."""
    rows: list[Sequence[object]] = []
    for column in table.columns:
        cells = dict(zip(table.systems, column.cells, strict=True))
        for system, cell in cells.items():
            if cell.estimate is None:
                continue
            front = _front(system, column, cell)
            rank = "" if cell.rank is None else cell.rank
            ranked = [rank, cell.alike, "" if cell.spread is None else cell.spread, cell.runs]
            rows.append([*front, "value", "", *_numbers(cell.estimate), cell.best, "", "", *ranked])
            if cell.difference is not None:
                numbers = [*_numbers(cell.difference), "", *_certainty(cell.difference)]
                rows.append([*front, "difference", table.first, *numbers, "", "", "", ""])
        for pair in column.pairs:
            numbers = [*_numbers(pair.estimate), "", *_certainty(pair.estimate)]
            front = _front(pair.second, column, cells[pair.second])
            rows.append([*front, "pair", pair.first, *numbers, "", "", "", ""])
    head = ["system", "figure", "label", "attacker", "speakers", "length", "kind", "against", "value", "unit", "low",
            "high", "method", "better", "best", "sure", "p_adjusted", "rank", "alike", "spread", "runs"]  # fmt: skip
    return _csv(head, rows)


def _front(system: str, column: TableColumn, cell: TableCell) -> list[object]:
    at = {} if cell.estimate is None else cell.estimate.at
    return [system, column.figure.text, column.label, cell.place, at.get("speakers", ""), at.get("length", "")]


def comparison_csv(comparison: Comparison) -> str:
    """Every value of every run, and every difference to the first one; `kind` says which a row is."""
    rows: list[Sequence[object]] = []
    for figure, values in comparison.values.items():
        rows += [[str(figure), point.name, point.at["run"], "value", *_numbers(point), "", ""] for point in values]
        rows += [
            [str(figure), point.name, point.at["run"], "difference", *_numbers(point), *_certainty(point)]
            for point in comparison.differences[figure]
        ]
    head = [
        "figure",
        "measure",
        "run",
        "kind",
        "value",
        "unit",
        "low",
        "high",
        "method",
        "better",
        "sure",
        "p_adjusted",
    ]
    return _csv(head, rows)


def _numbers(point: Estimate) -> list[object]:
    low, high = point.interval or ("", "")
    return [point.value, point.unit, low, high, point.method, point.better]


def _certainty(difference: Estimate) -> list[object]:
    return [bool(difference.extra.get("sure")), difference.extra.get("p_adjusted", "")]


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([csv_cell(str(cell).lower() if isinstance(cell, bool) else cell) for cell in row] for row in rows)
    return out.getvalue()
