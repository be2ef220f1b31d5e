"""`veilmeter gate`: exit code 1 if a run breaks a limit or doubts itself; for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veilmeter.cli import options
from veilmeter.cli.exit_codes import Exit
from veilmeter.cli.lists import Lists
from veilmeter.core.errors import InputError, VeilmeterError

if TYPE_CHECKING:
    from veilmeter.results.gate import Gate
    from veilmeter.results.model import Results

COMMAND_CLASS = Lists
LISTED = 12  # figures that are worse than in the baseline


def command(
    ctx: typer.Context,
    run: options.Run,
    maximum: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="MEASURE=BOUND", show_default=False,
                     help="Upper limits: linkability@1000=5%, d_ece=0.1, informed:linkability@20,L3=0.2."),
    ] = None,
    minimum: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="MEASURE=BOUND", show_default=False, help="Lower limits: eer=30, deid=95."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="ATTRIBUTE", show_default=False,
                     help="Hold every limit against each group by itself too (gender): a line each, and exit code 2 "
                     "where one is not known. Without it the worst of everybody and all groups decides."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="RUN", show_default=False,
                     help="An earlier run: also fail if anything is surely worse than there, though many figures are "
                     "compared (Holm's rule)."),
    ] = None,
    trustworthy: Annotated[
        bool,
        typer.Option("--trustworthy", help="Also fail if a check that applies to this run could not be made."),
    ] = False,
    even_if_doubted: Annotated[
        bool, typer.Option("--even-if-doubted", help="Check the limits only, though the assessment doubts itself.")
    ] = False,
    resamples: Annotated[int, typer.Option(help="Of the intervals of differences to the baseline.", min=10)] = 1000,
    seed: options.Seed = 0,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", show_default=False, rich_help_panel=options.OUTPUT,
                     help="Write what was checked as JUnit XML, which build servers list."),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option("--summary", metavar="FILE", show_default=False, rich_help_panel=options.OUTPUT,
                     help="Write what was checked as Markdown, for the page of a job."),
    ] = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Check a run against limits. The bad end of the 95 % interval counts, over all attackers and groups of the run.

    The exit code is 0 if every limit holds and the assessment does not doubt itself, 1 if a limit is broken, the run is
    doubted or surely worse than its baseline, 2 if a limit can't be checked. All codes: docs/exit-codes.md.

    Examples:

        veilmeter gate run/ --max linkability@20=20% --min eer=30 --by gender

        veilmeter gate run/ --trustworthy --baseline last-week/ --junit gate.xml --summary gate.md
    """
    from veilmeter.cli import given
    from veilmeter.results.run_folder import read_results

    results = None
    try:
        if trustworthy and even_if_doubted:
            raise InputError("--trustworthy and --even-if-doubted contradict each other", fix="give one of them")
        if baseline is None:
            given.refuse(ctx, ["resamples", "seed"], "they are for a baseline", fix="give --baseline RUN too")
            if not maximum and not minimum:
                given.refuse(ctx, ["by"], "there is no limit to hold against groups", fix="give --max or --min too")
        results = read_results(run)
        outcome = _checked(run, results, maximum, minimum, by, trustworthy, even_if_doubted, baseline, resamples, seed)
    except VeilmeterError as problem:
        _write(problem, results, junit, summary)
        raise
    if junit is not None or summary is not None:
        _write(*_public(outcome, results, by or []), junit, summary)
    _print(run, outcome, json=json)
    if not outcome.passed:
        raise typer.Exit(Exit.LIMIT_BROKEN)


def _checked(
    run: Path,
    results: Results,
    maximum: list[str] | None,
    minimum: list[str] | None,
    by: list[str] | None,
    trustworthy: bool,
    even_if_doubted: bool,
    baseline: Path | None,
    resamples: int,
    seed: int,
) -> Gate:
    from veilmeter.results.gate import against_baseline, gate
    from veilmeter.results.limits import parse_limit

    limits = [parse_limit(text, "max") for text in maximum or []] + [parse_limit(text, "min") for text in minimum or []]
    if not limits and not trustworthy and baseline is None:
        raise InputError("there is no limit to check", fix="give --max linkability@100=0.05, --min eer=30 or the like")
    groups = list(dict.fromkeys(by or []))
    earlier = None
    if baseline is not None:
        earlier = against_baseline(baseline, run, by=groups, resamples=resamples, seed=seed)
    return gate(results, limits, by=groups, trustworthy=trustworthy, even_if_doubted=even_if_doubted, baseline=earlier)


def _public(outcome: Gate, results: Results, by: list[str]) -> tuple[Gate, Results]:
    """The same gate for the pages of a build server, which have many readers: of results without folders, ids and rare
    values of attributes. Nobody is named there, so that pseudonyms need no key."""
    from veilmeter.report.public import names_of, public, public_baseline
    from veilmeter.report.source import Reported
    from veilmeter.results.gate import gate

    run = Reported(results=results)
    shown = public(run, b"")[0].results
    limits = list(dict.fromkeys(check.limit for check in outcome.limits))
    baseline = outcome.baseline and public_baseline(outcome.baseline, names_of(run, b""))
    options = {"trustworthy": outcome.trustworthy, "even_if_doubted": outcome.even_if_doubted}
    return gate(shown, limits, by=list(dict.fromkeys(by)), baseline=baseline, **options), shown


def _write(outcome: Gate | VeilmeterError, results: Results | None, junit: Path | None, summary: Path | None) -> None:
    """The files for a build server; a gate that could not be checked is said there too."""
    from veilmeter.core.files import write_text
    from veilmeter.report import gate_files

    if junit is not None:
        write_text(junit, gate_files.junit(outcome))
    if summary is not None:
        write_text(summary, gate_files.summary(outcome, results))


def _print(run: Path, outcome: Gate, *, json: bool) -> None:
    from veilmeter.core.files import to_json
    from veilmeter.core.text import clean
    from veilmeter.wording import sentence, sentences, text

    if json:
        print(to_json({**outcome.to_json(), "run": str(run)}))
        return
    lines = [str(limit) for limit in outcome.limits]
    lines += [("doubt   " if outcome.even_if_doubted else "BROKEN  ") + text(doubt) for doubt in outcome.doubts]
    lines += [
        ("BROKEN  " if outcome.trustworthy else "open    ") + text(question) for question in outcome.open_questions
    ]
    if outcome.baseline is not None:
        worse = outcome.baseline.worse
        lines += [f"BROKEN  worse than {outcome.baseline.name}: {sentence(found.finding)}" for found in worse[:LISTED]]
        lines += [f"BROKEN  ... and {len(worse) - LISTED} more; --json has all of them"] if len(worse) > LISTED else []
        lines += [sentence(outcome.baseline.finding)]
        lines += [f"Note: {remark}." for remark in sentences(outcome.baseline.remarks)]
    if outcome.limits:
        lines.append(f"Checked: {sentence(outcome.scope)}.")
        for check in outcome.limits:
            missing = ", ".join(sentences(check.not_measured))
            note = f"Note: {check.title} was not checked everywhere. There is no such figure for {missing}."
            lines += [note] if missing else []
    if outcome.not_run:
        lines.append(f"Attackers that were not run: {', '.join(outcome.not_run)}")
    for line in lines:
        print(clean(line))
