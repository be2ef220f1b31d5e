"""The verdict of an assessment as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from veilmeter.cli import streams

if TYPE_CHECKING:
    from veilmeter.results.model import Results

HEADINGS = {
    "linking": "Linking",
    "singling_out": "Singling out",
    "disclosure": "Disclosure",
    "inversion": "Undoing it",
    "distinctiveness": "Voices kept apart",
    "inference": "Inference",
}
COLORS = {"low": "green", "raised": "yellow", "high": "red", "unknown": "magenta"}
LAWYERS = (
    "This says what was measured, against the criteria of Opinion 05/2014. "
    "Whether it suffices is for a lawyer to judge."
)


def print_verdict(results: Results, folder: Path | str, report: Path | None = None) -> None:
    from rich.table import Table
    from rich.text import Text

    from veilmeter.core.text import clean
    from veilmeter.results.trust import doubts
    from veilmeter.wording import sentence, sentences, text

    console = streams.console()
    verdict, protocol = results.verdict, results.protocol

    def paragraph(line: str, style: str = "") -> None:
        console.print(Text(clean(line, keep="\n"), style=style))

    paragraph(results.title, "bold")
    speakers = max(protocol.enrolled_speakers, protocol.trial_speakers)
    heard = (
        f"{protocol.enrollment_utterances} recordings to know them by, {protocol.trial_utterances} to name"
        if protocol.trial_utterances
        else "scores alone, no recordings"
    )
    paragraph(f"{speakers} speakers; {heard}; attackers: {', '.join(results.attacks)}", "dim")
    console.print()
    if not verdict.trustworthy:
        paragraph("NOT TRUSTWORTHY. Self-checks failed:", "bold red")
        for doubt in doubts(results):
            paragraph(f"  - {text(doubt)}")
        console.print()
    paragraph(text(verdict.headline), "bold")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, criterion in results.criteria.items():
        level = Text(criterion.level, style=COLORS[criterion.level])
        table.add_row(HEADINGS.get(name, name), level, Text(clean(sentence(criterion.finding))))
    console.print()
    console.print("Worst case by criterion (risk for the people recorded; for voices, of being confused)", style="dim")
    console.print(table)
    for line in sentences((*verdict.remarks, results.people.finding)):
        paragraph(f"\n{line}")
    _print_open(results, paragraph)
    for warning in (*results.remarks, *results.warnings):
        paragraph(f"! {sentence(warning)}", "yellow")
    paragraph(LAWYERS, "dim")
    paragraph(f"\nResults: {Path(folder) / 'results.json'}" + (f"   Report: {report}" if report else ""))


def _print_open(results: Results, paragraph: Callable[..., None]) -> None:
    """What was not tested, and which checks passed, failed or could not be made."""
    from veilmeter.results.trust import open_questions
    from veilmeter.wording import sentences, text

    if results.verdict.not_tested:
        paragraph("\nNot tested:", "bold")
        for line in sentences(results.verdict.not_tested):
            paragraph(f"  - {line}")
    questions = open_questions(results)
    if questions:
        paragraph("\nCould not be checked:", "bold")
        for question in questions:
            paragraph(f"  - {text(question)}")
    passed = sum(check.passed is True for check in results.checks)
    failed = sum(check.failed for check in results.checks)
    unfit = [check.name for check in results.checks if check.passed is None and not check.applies]
    paragraph(
        f"\nTrust checks: {passed} passed, {failed} failed, {len(questions)} could not be made"
        + (f", do not apply: {', '.join(unfit)}" if unfit else "")
    )
