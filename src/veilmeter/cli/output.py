"""Printing results: a table for people, or JSON, CSV, Markdown, LaTeX, all from one `Page`; and lists of problems."""

from __future__ import annotations

import csv as csv_module
import io
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from veilmeter._version import __version__
from veilmeter.cli import terminal
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.core.files import plain, to_json
from veilmeter.core.findings import Finding
from veilmeter.core.text import clean, csv_cell, markdown_text
from veilmeter.core.typed_json import encode
from veilmeter.wording import sentence, sentences
from veilmeter.wording.latex import latex_label, latex_number, latex_table, latex_text

if TYPE_CHECKING:
    from veilmeter.core.errors import Problem

_LISTED = 100


def print_problems(problems: Sequence[Problem], where: str) -> None:
    """Print the recordings that were left out, then those with remarks; `where` names the files that list all."""
    from veilmeter.core.text import clean

    for title, fatal in (("left out", True), ("used all the same", False)):
        for line in problem_lines(title, [problem for problem in problems if problem.fatal is fatal], where):
            print(clean(line))


def problem_lines(title: str, problems: Sequence[Problem], where: str) -> list[str]:
    """The problems as lines: counts by kind first, then each place, the first hundred; the same problem of several
    recordings is described once."""
    if not problems:
        return []
    counts: dict[str, int] = {}
    for problem in problems:
        counts[problem.kind] = counts.get(problem.kind, 0) + 1
    by_kind = ", ".join(
        f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    )
    lines = [f"{len(problems)} {title}: {by_kind}"]
    alike: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems[:_LISTED]:
        alike.setdefault((problem.kind, problem.what, problem.fix), []).append(problem)
    for first, *others in alike.values():
        lines.append(f"  {first.kind}: {first}")
        lines += [f"    the same: {_place(problem)}" for problem in others]
    if len(problems) > _LISTED:
        lines.append(f"  ... and {len(problems) - _LISTED} more, see {where}")
    return lines


def _place(problem: Problem) -> str:
    return problem.path + ("" if problem.line is None else f":{problem.line}")


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


@dataclass(frozen=True, slots=True)
class Page:
    """The output of a command: estimates (single, or a list for a curve) by name, what it read, and remarks.

    `lead` comes before the figures. `sections` groups names under headings for the table; names that it leaves out come
    last. `warnings` are what the reader must not miss. `more` are further entries of the JSON, beside `estimates`,
    `inputs` and `version`; `figures` are the files that were drawn.
    """

    title: str
    estimates: Mapping[str, Estimate | Sequence[Estimate]]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[Finding] = ()
    lead: Sequence[str] = ()
    notes: Sequence[Finding] = ()
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    figures: Sequence[Path] = ()
    signatures: bool = False
    signed: Mapping[str, int | str] = field(default_factory=dict)  # what all figures depend on

    def sign(self, point: Estimate) -> Estimate:
        return point.sign(**self.signed)

    def _point(self, point: Estimate) -> dict[str, Any]:
        form = {key: value for key, value in point.to_json().items() if key != "signature"}
        return form | ({"signature": self.sign(point).signature} if self.signatures else {})

    def to_json(self) -> dict[str, Any]:
        return {
            "estimates": {
                name: self._point(measured)
                if isinstance(measured, Estimate)
                else [self._point(point) for point in measured]
                for name, measured in self.estimates.items()
            },
            **{key: plain(value) for key, value in self.more.items()},
            **({"figures": [str(path) for path in self.figures]} if self.figures else {}),
            "inputs": plain(self.inputs),
            "warnings": list(map(finding_json, self.warnings)),
            "version": __version__,
        }

    def groups(self) -> list[tuple[str, list[Estimate]]]:
        """The estimates under their headings, curves unrolled."""
        left = dict(self.estimates)
        groups: list[tuple[str, list[Estimate]]] = []
        for heading, names in self.sections.items():
            rows = [estimate for name in names if name in left for estimate in _as_list(left.pop(name))]
            if rows:
                groups.append((heading, rows))
        rest = [estimate for measured in left.values() for estimate in _as_list(measured)]
        return groups + ([("", rest)] if rest else [])


def signature_lines(page: Page) -> list[str]:
    """The signature of every figure, where they are asked for."""
    if not page.signatures:
        return []
    return [page.sign(point).signature for _, points in page.groups() for point in points]


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding as data; its sentence is there for people and may change."""
    return {**encode(finding), "text": sentence(finding)}


def _as_list(measured: Estimate | Sequence[Estimate]) -> list[Estimate]:
    return [measured] if isinstance(measured, Estimate) else list(measured)


def output_form(options: Any) -> Form:
    """The form that the options of a command choose."""
    wanted = [form for form in Form if form is not Form.TABLE and getattr(options, form, False)]
    if len(wanted) > 1:
        raise VeilmeterError(f"--{wanted[0]} and --{wanted[1]} exclude each other", fix="give one of them")
    return wanted[0] if wanted else Form.TABLE


def emit(page: Page, form: Form = Form.TABLE) -> None:
    """Print the page to standard output; in the machine forms, warnings also go to standard error."""
    if form is Form.TABLE:
        _print_table(page)
        return
    text = {Form.JSON: _json, Form.CSV: _csv, Form.MARKDOWN: _markdown, Form.LATEX: _latex}[form](page)
    emit_text(text, page.warnings)


def emit_text(text: str, warnings: Sequence[Finding]) -> None:
    """Print what is for machines and other programs; warnings go to standard error."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()  # a closed pipe ends the command here, before it says more
    for warning in warnings:
        print(f"warning: {sentence(warning)}", file=sys.stderr)


def print_paragraphs(*paragraphs: str, spaced: bool = True) -> None:
    """Print each paragraph, with an empty line between two if they are `spaced`."""
    from rich.text import Text

    terminal.console().print(Text(("\n\n" if spaced else "\n").join(map(clean, paragraphs))))


def print_rows(head: Sequence[str], rows: Sequence[Sequence[tuple[str, bool]]], notes: Sequence[str]) -> None:
    """Print a table of cells, each with whether it is in bold, and notes below it. A row is one line, and words of the
    heading are cut only where the window is too narrow for them; numbers are on the right."""
    from rich.table import Table
    from rich.text import Text

    console = terminal.console()
    table = Table(box=None, pad_edge=False)
    widths = _column_widths(head, [[clean(text) for text, _ in row] for row in rows], console.width)
    for number, title in enumerate(head):
        side: Literal["left", "right"] = "right" if any(_begins_a_number(row[number][0]) for row in rows) else "left"
        width = widths[number] if widths else None
        table.add_column(Text(clean(title)), justify=side, header_style="dim", overflow="fold", width=width)
    for row in rows:
        table.add_row(*(Text(clean(text), style="bold" if bold else "") for text, bold in row))
    console.print(table)
    for note in notes:
        console.print(Text(clean(note), style="dim"))


def _column_widths(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths with which every row is one line, with whole words in the headings if they fit; none if nothing fits.

    >>> [_column_widths(["rank", "EER (%)"], [["1", "30.5"]], width) for width in (80, 9, 6)]
    [[4, 7], [3, 4], []]
    """
    room = width - 2 * (len(head) - 1)
    cells = [max((len(row[number]) for row in rows), default=0) for number in range(len(head))]
    words = [max([cell, *map(len, clean(title).split())]) for cell, title in zip(cells, head, strict=True)]
    whole = [max(cell, len(clean(title))) for cell, title in zip(cells, head, strict=True)]
    if sum(cells) > room:
        return []
    widths, goal = (words, whole) if sum(words) <= room else (cells, words)
    widths = list(widths)
    while sum(widths) < room and any(have < want for have, want in zip(widths, goal, strict=True)):
        short = [number for number, want in enumerate(goal) if widths[number] < want]
        widths[max(short, key=lambda number: goal[number] / widths[number] if widths[number] else 1e9)] += 1
    return widths


def _begins_a_number(text: str) -> bool:
    return text.lstrip("-")[:1].isdigit()


COLUMNS = ("measure", "value", "95 % interval", "chance", "safer", "method")


def _cells(estimate: Estimate, elsewhere: Collection[str] = ()) -> tuple[str, str, str, str, str, str]:
    """One row; parameters that are written `elsewhere` are left out of it."""
    at = ", ".join(f"{key} {value}" for key, value in estimate.at.items() if key not in elsewhere)
    value = estimate.format_value() + (f"  {estimate.extra['tag']}" if "tag" in estimate.extra else "")
    safer = {"higher": "↑", "lower": "↓", "neither": ""}[estimate.better]
    label = estimate.label + (f" ({at})" if at else "")
    return (clean(label), value, estimate.format_interval(), estimate.format_null(), safer, clean(estimate.method))


def _print_table(page: Page) -> None:
    from rich.table import Table
    from rich.text import Text

    console = terminal.console()
    console.print(Text(clean(page.title), style="bold"))
    for line in page.lead:
        console.print(Text("\n" + clean(line)))
    for heading, rows in page.groups():
        # Parameters that all rows share are written in the heading, those that vary in their own columns.
        shared = _common_parameters(rows)
        varying = [key for key in rows[0].at if key not in shared and all(key in row.at for row in rows)]
        heading += f" ({', '.join(f'{key} {value}' for key, value in shared.items())})" if shared and heading else ""
        elsewhere = {*varying, *(shared if heading else ())}
        columns: list[str] = [COLUMNS[0], *varying, *COLUMNS[1:]]
        cells = [
            [label, *(clean(str(estimate.at[key])) for key in varying), *figures]
            for estimate, (label, *figures) in ((estimate, _cells(estimate, elsewhere)) for estimate in rows)
        ]
        below = ""
        if _width(columns, cells) > console.width:
            below = _method_note(rows)
            columns.pop()
        table = Table(box=None, pad_edge=False)
        for number, column in enumerate(columns):
            words = column in ("measure", "method")  # on a narrow terminal the words give way, never the numbers
            table.add_column(
                Text(clean(column)),
                justify="right" if column in ("value", "chance", *varying) else "left",
                header_style="dim",
                no_wrap=not words,
                min_width=None if words else max(len(row[number]) for row in [columns, *cells]),
            )
        for estimate, row in zip(rows, cells, strict=True):
            shown = [Text(cell) for cell in row[: len(columns)]]
            table.add_row(*shown, style="dim" if _shows_nothing(estimate) else None)
        console.print()
        if heading:
            console.print(Text(clean(heading), style="italic"))
        console.print(table)
        if below:
            console.print(Text(clean(below), style="dim"))
    for number, line in enumerate(signature_lines(page)):
        console.print(Text(("" if number else "\n") + clean(line)), soft_wrap=True)
    for warning in page.warnings:
        console.print(Text(f"\n! {sentence(warning)}", style="bold yellow"))
    drawn = [str(path) for path in page.figures if path.suffix == ".svg"]
    for note in [*sentences(page.notes), *(["Figures: " + ", ".join(drawn) + " (and PNG, PDF)"] if drawn else [])]:
        console.print(Text("\n" + clean(note), style="dim"))


def _shows_nothing(estimate: Estimate) -> bool:
    """Whether the value lies within what no information gives, or on the side of it that is safer."""
    if estimate.null_range is None:
        return False
    low, high = estimate.null_range
    below, above = estimate.value < low, estimate.value > high
    return not {"higher": below, "lower": above, "neither": below or above}[estimate.better]


def _width(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """The width of a table in which nothing is wrapped, with two spaces between columns."""
    widest = [max(len(row[number]) for row in [columns, *cells]) for number in range(len(columns))]
    return sum(widest) + 2 * (len(columns) - 1)


def _common_parameters(rows: Sequence[Estimate]) -> dict[str, Any]:
    """The parameters that have the same value in all rows."""
    first = rows[0].at
    return {key: value for key, value in first.items() if all(row.at.get(key) == value for row in rows)}


def _method_note(rows: Sequence[Estimate]) -> str:
    """The methods of a table without that column."""
    methods = {row.method: row.label for row in reversed(rows) if row.method}
    if len(methods) < 2:
        return "".join(f"Method: {method}." for method in methods)
    return f"Methods: {'; '.join(f'{label}: {method}' for method, label in reversed(methods.items()))}."


def _json(page: Page) -> str:
    return to_json(page.to_json())


def _csv(page: Page) -> str:
    parameters = sorted({key for _, rows in page.groups() for estimate in rows for key in estimate.at})
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    titles = ["value", "unit", "low", "high", "null", "method", "better", *(["signature"] if page.signatures else [])]
    writer.writerow(["measure", *map(csv_cell, parameters), *titles])
    for name, measured in page.estimates.items():
        for estimate in _as_list(measured):
            low, high = estimate.interval or ("", "")
            cells = [name, *(estimate.at.get(key, "") for key in parameters), estimate.value, estimate.unit, low, high]
            cells += ["" if estimate.null is None else estimate.null, estimate.method, estimate.better]
            cells += [page.sign(estimate).signature] if page.signatures else []
            writer.writerow([csv_cell(cell) for cell in cells])
    return out.getvalue()


def _markdown(page: Page) -> str:
    lines = [f"**{markdown_text(page.title)}**", ""]
    lines += [part for line in page.lead for part in (markdown_text(line), "")]
    for heading, rows in page.groups():
        lines += ([f"### {markdown_text(heading)}", ""] if heading else []) + [
            "| " + " | ".join(COLUMNS) + " |",
            "|---|---:|---|---:|---|---|",
            *("| " + " | ".join(markdown_text(cell) for cell in _cells(estimate)) + " |" for estimate in rows),
            "",
        ]
    lines += [f"- {markdown_text(line)}" for line in signature_lines(page)]
    lines += [f"> {markdown_text(warning)}" for warning in sentences(page.warnings)]
    return "\n".join(lines)


def _latex(page: Page) -> str:
    rows: list[list[str] | None] = []
    for heading, estimates in page.groups():
        rows += [None] if rows else []
        rows += [[f"\\multicolumn{{5}}{{l}}{{\\emph{{{latex_text(heading)}}}}}"]] if heading else []
        for estimate in estimates:
            label, value, interval, null, _, method = _cells(estimate)
            rows.append([latex_label(label), *map(latex_number, (value, interval, null)), latex_text(method)])
    head = ["measure", "value", "95\\,\\% interval", "chance", "method"]
    return latex_table("lrlrl", head, rows, [*sentences(page.warnings), *signature_lines(page)])
