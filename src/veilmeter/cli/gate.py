"""`veilmeter gate`: exit code 1 if a run breaks a limit or doubts itself; for continuous integration."""

from __future__ import annotations

from typing import Annotated

import typer

from veilmeter.cli import options
from veilmeter.cli.exit_codes import Exit
from veilmeter.cli.lists import Lists
from veilmeter.core.errors import InputError

COMMAND_CLASS = Lists


def command(
    run: options.Run,
    maximum: Annotated[
        list[str] | None,
        typer.Option("--max", help="Upper limits: linkability@1000=5%, d_ece=0.1, informed:linkability@20,L3=0.2."),
    ] = None,
    minimum: Annotated[list[str] | None, typer.Option("--min", help="Lower limits: eer=30, deid=95.")] = None,
    trustworthy: Annotated[
        bool,
        typer.Option("--trustworthy", help="Also fail if a check that applies to this run could not be made."),
    ] = False,
    even_if_doubted: Annotated[
        bool, typer.Option("--even-if-doubted", help="Check the limits only, though the assessment doubts itself.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Check a run against limits. The bad end of the 95 % interval counts, over all attackers and groups of the run.

    The exit code is 0 if every limit holds and the assessment does not doubt itself, 1 if a limit is broken or the
    run is doubted, 2 if a limit can't be checked.
    """
    from veilmeter.core.files import to_json
    from veilmeter.core.text import clean
    from veilmeter.results.gate import gate, parse_limit
    from veilmeter.results.run_folder import read_results

    if trustworthy and even_if_doubted:
        raise InputError("--trustworthy and --even-if-doubted contradict each other", fix="give one of them")
    limits = [parse_limit(text, "max") for text in maximum or []] + [parse_limit(text, "min") for text in minimum or []]
    if not limits and not trustworthy:
        raise InputError("there is no limit to check", fix="give --max linkability@100=0.05, --min eer=30 or the like")
    outcome = gate(read_results(run), limits, trustworthy=trustworthy, even_if_doubted=even_if_doubted)
    if json:
        print(
            to_json(
                {
                    "passed": outcome.passed,
                    "limits": [limit.to_json() for limit in outcome.limits],
                    "distrust": list(outcome.doubts),
                    "open": list(outcome.open_questions),
                    "not_run": list(outcome.not_run),
                    "run": str(run),
                }
            )
        )
    else:
        for limit in outcome.limits:
            print(clean(str(limit)))
        for doubt in outcome.doubts:
            print(("doubt   " if even_if_doubted else "BROKEN  ") + clean(doubt))
        for question in outcome.open_questions:
            print(("BROKEN  " if trustworthy else "open    ") + clean(question))
        if outcome.not_run:
            print(f"Attackers that were not run: {', '.join(outcome.not_run)}")
    if not outcome.passed:
        raise typer.Exit(Exit.LIMIT_BROKEN)
