"""The report as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable

from veilmeter.core.text import markdown_text
from veilmeter.report.annex import annex
from veilmeter.report.channels import SECTION as CHANNELS
from veilmeter.report.channels import channel_rows
from veilmeter.report.decision import Decision, limit_finding, never_tested, reliance
from veilmeter.report.html import Options, decision_of
from veilmeter.report.latex import latex_label, latex_number, latex_table, latex_text
from veilmeter.report.rows import ORDER, Row, criterion_row, section_rows
from veilmeter.report.source import Reported
from veilmeter.results.model import Results
from veilmeter.results.trust import doubts
from veilmeter.wording import sentence, sentences, text
from veilmeter.wording.english.page import SECTIONS, STATES, TITLES


def markdown(run: Reported, options: Options) -> str:
    """The decision, the tables and the annex as Markdown."""
    results, decision = run.results, decision_of(run, options)
    lines = [*_opening(run, decision), *_criteria_table(results)]
    lines += ["", f"## {TITLES['next']}", ""]
    lines += [f"- {markdown_text(f'{item.text} {item.reason}'.strip())}" for item in decision.advice]
    lines += ["", f"## {TITLES['checks']}", ""]
    lines += [
        f"- {_sign(check.state)}: {markdown_text(f'{check.title}. {check.sentence} {check.meaning}'.strip())}"
        for check in decision.checks
    ]
    lines += ["", f"## {TITLES['not_tested']}", ""]
    not_tested = sentences((*results.verdict.not_tested, *never_tested(results)), "technical")
    lines += [f"- {markdown_text(reason)}" for reason in not_tested]
    for section in ORDER:
        rows = section_rows(results, section)
        if rows:
            lines += ["", f"## {SECTIONS[section].title}", "", *_figures_table(rows)]
    channels = channel_rows(results)
    if channels:
        lines += ["", f"## {SECTIONS[CHANNELS].title}", "", *_figures_table(channels)]
    lines += ["", f"# {TITLES['annex']}"]
    for chapter in annex(results, decision, run.created):
        lines += ["", f"## {chapter.title}", ""]
        lines += [f"{markdown_text(text)}\n" for text in chapter.paragraphs]
        lines += [f"- {markdown_text(text)}" for text in chapter.items]
        if chapter.table:
            lines += _table(chapter.table.head, chapter.table.rows)
    return "\n".join(lines) + "\n"


def _sign(state: str) -> str:
    return f"**{STATES[state]}**" if state == "failed" else STATES[state]


def _opening(run: Reported, decision: Decision) -> list[str]:
    results = run.results
    notice = str(results.settings.get("notice") or "")
    lines = [f"# {markdown_text(decision.title)}", ""]
    lines += [f"**{markdown_text(decision.headline)}** {markdown_text(decision.sentence)}", ""]
    lines += [markdown_text(decision.detail), ""] if decision.detail else []
    lines += [f"> {markdown_text(notice)}", ""] if notice else []
    lines += [f"> {markdown_text(decision.reliance)}"]
    lines += [part for doubt in doubts(results) for part in (">", f"> {markdown_text(text(doubt))}")] + [""]
    lines += [" · ".join(markdown_text(fact) for fact in decision.facts), ""]
    lines += [markdown_text(decision.limit), ""] if decision.limit else []
    if decision.release_text:
        lines += [markdown_text(f"{decision.release_text} {decision.release_basis}"), ""]
    return lines


def _criteria_table(results: Results) -> list[str]:
    rows = [criterion_row(results, name) for name in results.criteria]
    cells = [(r.title, r.level_text, r.figure, r.interval, r.guessing, r.attacker or r.who, r.sentence) for r in rows]
    return _table(("criterion", "level", "worst case", "95 % interval", "chance", "attacker", "meaning"), cells)


def _figures_table(rows: Iterable[Row]) -> list[str]:
    return _table(("attacker", "measure", "value", "95 % interval", "chance", "method"), (r.cells for r in rows))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    titles = list(head)
    lines = [titles, ["---"] * len(titles)]
    lines += [[markdown_text(cell) for cell in row] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def latex(run: Reported, options: Options) -> str:
    """The worst cases and all attackers' figures as two tables for a paper; caveats are comments."""
    results = run.results
    remarks = [f"veilmeter {results.version}" + (f", {run.created}" if run.created else "")]
    remarks += [str(results.settings["notice"])] if results.settings.get("notice") else []
    remarks += [] if results.verdict.trustworthy else [sentence(reliance(results)), *map(text, doubts(results))]
    limit = limit_finding(results, options.limit)
    remarks += [sentence(limit)] if limit else []
    worst = [criterion_row(results, name) for name in results.criteria]
    cases = [
        (
            latex_text(row.title),
            latex_text(row.attacker or row.who),
            latex_label(row.measure),
            *map(latex_number, (row.figure, row.interval, row.guessing)),
        )
        for row in worst
    ]
    head = ("criterion", "attacker", "measure", "worst case", "95\\,\\% interval", "chance")
    figures: list[tuple[str, ...] | None] = []
    for section in ORDER:
        rows = section_rows(results, section)
        figures += [None] if rows and figures else []
        figures += [
            (latex_text(row.cells[0]), latex_label(row.cells[1]), *map(latex_number, row.cells[2:5])) for row in rows
        ]
    all_figures = latex_table("llrlr", ("attacker", "measure", "value", "95\\,\\% interval", "chance"), figures)
    return latex_table("lllrlr", head, cases, remarks) + "\n" + all_figures
