"""The verdict of an assessment as a person reads it in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEADINGS = {
    "linking": "Linking",
    "singling_out": "Singling out",
    "disclosure": "Disclosure",
    "inversion": "Undoing it",
    "distinctiveness": "Voices kept apart",
    "inference": "Inference",
}
MARKS = {"low": ("low", "green"), "raised": ("raised", "yellow"), "high": ("high", "red")}


def print_verdict(results: Any, folder: Path | str, report: Path | None = None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from veilmeter.core.text import clean
    from veilmeter.results.doubts import doubts

    console = Console(highlight=False)
    said = results["verdict"]
    protocol = results["protocol"]
    console.print(Text(clean(results["title"]), style="bold"))
    console.print(
        Text(
            f"{protocol['speakers']} speakers; {protocol['enrolment']} recordings to know them by, "
            f"{protocol['trials']} to name; "
            f"attackers: {', '.join(name for name in results['attackers'] if name != 'original')}",
            style="dim",
        )
    )
    console.print()
    if not said["trustworthy"]:
        console.print(Text("NOT TRUSTWORTHY. This assessment doubts itself:", style="bold red"))
        for line in doubts(results) or said["distrust"]:
            console.print(Text("  - " + clean(line)))
        console.print()
    console.print(Text(clean(said["headline"]), style="bold"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, case in results["worst_case"].items():
        word, color = MARKS[case["level"]]
        table.add_row(HEADINGS.get(name, name), Text(word, style=color), Text(clean(case["sentence"])))
    console.print()
    console.print("Worst case by criterion (risk for the people recorded; for voices, of being confused)", style="dim")
    console.print(table)
    extra = [
        line for line in said["sentences"] if line not in {case["sentence"] for case in results["worst_case"].values()}
    ]
    for line in [*extra, results["unprotected"]["sentence"]]:
        console.print(Text("\n" + clean(line)))
    if said["not_tested"]:
        console.print(Text("\nNot tested:", style="bold"))
        for line in said["not_tested"]:
            console.print(Text("  - " + clean(line)))
    passed = sum(check["passed"] is True for check in results["trust"])
    open_checks = [check["name"] for check in results["trust"] if check["passed"] is None]
    console.print(
        Text(
            f"\nTrust checks: {passed} passed, {len(said['distrust'])} failed"
            + (f", not possible: {', '.join(open_checks)}" if open_checks else "")
        )
    )
    for warning in results["warnings"]:
        console.print(Text("! " + clean(warning), style="yellow"))
    console.print(
        Text(
            "This says what was measured, against the criteria of Opinion 05/2014. Whether it suffices is for a "
            "lawyer to judge.",
            style="dim",
        )
    )
    console.print(Text(f"\nResults: {Path(folder) / 'results.json'}" + (f"   Report: {report}" if report else "")))
