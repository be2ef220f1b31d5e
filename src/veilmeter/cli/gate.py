"""`veilmeter gate`: exit code 1 if a run breaks a limit or its self-checks failed; for continuous integration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from veilmeter.cli.command import Given, Lists
from veilmeter.cli.shared_options import run
from veilmeter.cli.terminal import Exit
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.findings import PASSING_LEVELS, Finding, Level
from veilmeter.core.option_groups import OUTPUT
from veilmeter.core.options import OptionSet, declare

if TYPE_CHECKING:
    from veilmeter.results.gate import Gate
    from veilmeter.results.model import Results

COMMAND_CLASS = Lists
LISTED = 12  # figures that are worse than in the baseline


@dataclass(frozen=True, kw_only=True)
class GateOptions(OptionSet):
    """The options of the command."""

    run: Path = run()
    max: tuple[str, ...] = declare(
        (), help="Upper limits: linkability@1000=5%, d_ece=0.1, informed:linkability@20,L3=20%.",
        metavar="MEASURE=BOUND", example="linkability@5=99%",
    )  # fmt: skip
    min: tuple[str, ...] = declare(
        (), help="Lower limits: eer=30%, deid=95%.", metavar="MEASURE=BOUND", example="eer=0.5%"
    )
    max_person: tuple[str, ...] = declare(
        (), help="Upper limits for each person by themselves: linkability=50%, informed:linkability@20=50%.",
        metavar="MEASURE=BOUND", example="linkability=99%",
    )  # fmt: skip
    by: tuple[str, ...] = declare(
        (), help="Check every limit within each group of this attribute; exit code 2 if a group is unknown.",
        metavar="ATTRIBUTE", example="gender",
    )  # fmt: skip
    baseline: Path | None = declare(
        None, help="Earlier run: also fail if anything is significantly worse than there (Holm's rule).",
        metavar="RUN", path=True, example="run-a",
    )  # fmt: skip
    trustworthy: bool = declare(
        False, help="Also fail if a trust check that applies to this run could not be made.", example=True
    )
    max_level: Level | None = declare(
        None, help="Highest level of risk that passes: low or raised; an unknown one fails.", metavar="LEVEL",
        choices=PASSING_LEVELS, example="raised",
    )  # fmt: skip
    even_if_doubted: bool = declare(False, help="Check the limits only, even if self-checks failed.", example=True)
    resamples: int = declare(
        1000, help="Bootstrap resamples for the intervals of differences to the baseline.", least=10, example=40
    )
    seed: int = option_groups.seed()
    eer_method: str | None = option_groups.eer_method(None, default_text="the run's")
    junit: Path | None = declare(
        None, help="Write what was checked as JUnit XML, which build servers list.", metavar="FILE", group=OUTPUT,
        path=True, example="out.xml",
    )  # fmt: skip
    summary: Path | None = declare(
        None, help="Write what was checked as Markdown, for the page of a job.", metavar="FILE", group=OUTPUT,
        path=True, example="out.md",
    )  # fmt: skip
    json: bool = option_groups.json()


OPTIONS = (GateOptions,)


def command(given: Given) -> None:
    """Check a run against limits, as in continuous integration.

    A limit is compared with the unfavorable end of the 95 % interval, over all attackers and groups of the run. The
    exit code is 0 if every limit holds and no trust check failed, 1 if a limit is broken, the level is too high, a
    trust check failed or the run is significantly worse than its baseline, 2 if a limit can't be checked. All codes:
    docs/reference/exit-codes.md.

    Examples:

        veilmeter gate run/ --max linkability@20=20% --min eer=30% --by gender

        veilmeter gate run/ --max linkability=20% --max-person linkability=50%

        veilmeter gate run/ --max-level raised --trustworthy --baseline last-week/ --junit gate.xml --summary gate.md
    """
    from veilmeter.results.eer_methods import with_eer_method
    from veilmeter.results.run_folder import read_results

    options = given.build(GateOptions)
    results = None
    try:
        if options.trustworthy and options.even_if_doubted:
            raise InputError("--trustworthy and --even-if-doubted contradict each other", fix="give one of them")
        if options.baseline is None:
            given.refuse(["resamples", "seed"], "they are for a baseline", fix="give --baseline RUN too")
            if not options.max and not options.min:
                given.refuse(["by"], "no limit was given", fix="give --max or --min too")
            on_eer = any("eer" in limit.partition("=")[0] for limit in (*options.max, *options.min))
            if not on_eer:
                given.refuse(
                    ["eer_method"], "no limit is on an EER", fix="give --min eer=30% or the like, or --baseline"
                )
        results = read_results(options.run)
        if options.eer_method is not None:
            results = with_eer_method(results, options.run, options.eer_method)
        outcome = _check_limits(options, results)
    except VeilmeterError as problem:
        _write(*_public_problem(problem, results, options), options.junit, options.summary)
        raise
    if options.junit is not None or options.summary is not None:
        _write(*_public(outcome, results, options.by), options.junit, options.summary)
    _print(options.run, outcome, json=options.json)
    if not outcome.passed:
        raise typer.Exit(Exit.LIMIT_BROKEN)


def _check_limits(options: GateOptions, results: Results) -> Gate:
    from veilmeter.results.gate import against_baseline, check_gate
    from veilmeter.results.limits import parse_limit

    limits = [parse_limit(text, "max") for text in options.max] + [parse_limit(text, "min") for text in options.min]
    limits += [replace(parse_limit(text, "max"), person=True) for text in options.max_person]
    if not limits and not options.trustworthy and options.baseline is None and options.max_level is None:
        raise InputError("no limit was given", fix="give --max linkability@100=5%, --max-level raised or similar")
    groups = list(dict.fromkeys(options.by))
    earlier = None
    if options.baseline is not None:
        earlier = against_baseline(
            options.baseline, options.run, by=groups, resamples=options.resamples, seed=options.seed,
            eer_method=options.eer_method,
        )  # fmt: skip
    return check_gate(
        results, limits, by=groups, trustworthy=options.trustworthy, even_if_doubted=options.even_if_doubted,
        max_level=options.max_level, baseline=earlier,
    )  # fmt: skip


def _public_problem(
    problem: VeilmeterError, results: Results | None, options: GateOptions
) -> tuple[VeilmeterError, Results | None]:
    """Why the gate could not be checked, as the results say it without rare values of attributes."""
    from veilmeter.report.public import Reported, public

    if results is None:
        return problem, None
    shown = public(Reported(results=results), b"")[0].results
    try:
        _check_limits(replace(options, baseline=None, trustworthy=True), shown)
    except VeilmeterError as published:
        return published, shown
    return problem, shown  # it concerns the baseline, not the values of this run


def _public(outcome: Gate, results: Results, by: Sequence[str]) -> tuple[Gate, Results]:
    """The same gate for the pages of a build server, which have many readers: of results without folders, ids and rare
    values of attributes. Nobody is named there, so that pseudonyms need no key."""
    from veilmeter.report.public import Reported, names_of, public, public_baseline
    from veilmeter.results.gate import check_gate

    run = Reported(results=results)
    shown = public(run, b"")[0].results
    limits = list(dict.fromkeys(check.limit for check in outcome.limits))
    baseline = outcome.baseline and public_baseline(outcome.baseline, names_of(run, b""))
    options = {"trustworthy": outcome.trustworthy, "even_if_doubted": outcome.even_if_doubted}
    groups = list(dict.fromkeys(by))
    return check_gate(shown, limits, by=groups, baseline=baseline, max_level=outcome.max_level, **options), shown


def _write(outcome: Gate | VeilmeterError, results: Results | None, junit: Path | None, summary: Path | None) -> None:
    """The files for a build server; they also report a gate that could not be checked."""
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
    lines = [
        f"{'holds ' if check.holds else 'BROKEN'}  {sentence(check.title)}: {sentence(check.finding)}"
        for check in outcome.limits
    ]
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
    allowed = "" if outcome.max_level is None else "holds   " if outcome.level_holds else "BROKEN  "
    lines.append(allowed + sentence(outcome.level_finding))
    lines += [] if outcome.individual is None else [sentence(outcome.individual)]
    if outcome.limits:
        lines.append(f"Checked: {sentence(outcome.scope)}.")
        eers = [check.candidate.estimate for check in outcome.limits if check.candidate.estimate.name == "eer"]
        methods = tuple(dict.fromkeys(point.method for point in eers))
        lines += [f"{sentence(Finding.of('eer_methods', methods=methods))}."] if methods else []
        for check in outcome.limits:
            missing = ", ".join(sentences(check.not_measured))
            note = f"Note: {sentence(check.title)} was not checked everywhere. There is no such figure for {missing}."
            lines += [note] if missing else []
    if outcome.not_run:
        lines.append(f"Attackers that were not run: {', '.join(outcome.not_run)}")
    for line in lines:
        print(clean(line))
