"""`veilmeter gate`: exit code 1 if a run breaks a limit; for continuous integration."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.cli.lists import Lists
from veilmeter.core.errors import InputError

COMMAND_CLASS = Lists


def command(
    run: options.Run,
    maximum: Annotated[
        list[str] | None,
        typer.Option("--max", help="Upper limits: linkability@1000=0.05, d_ece=0.1, informed:linkability@20,L3=0.2."),
    ] = None,
    minimum: Annotated[list[str] | None, typer.Option("--min", help="Lower limits: eer=30, deid=95.")] = None,
    trustworthy: Annotated[
        bool, typer.Option("--trustworthy", help="Also fail if the assessment does not trust itself.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Check a run against limits. The bad end of the 95 % interval counts, over all attackers that were run.

    The exit code is 0 if every limit holds, 1 if one is broken, 2 if one can't be checked.
    """
    from veilmeter.assessment import read_results
    from veilmeter.core.files import to_json
    from veilmeter.core.text import clean
    from veilmeter.results.doubts import doubts as said
    from veilmeter.results.gate import check_limits, parse_limit

    limits = [parse_limit(text, "max") for text in maximum or []] + [parse_limit(text, "min") for text in minimum or []]
    if not limits and not trustworthy:
        raise InputError("there is no limit to check", fix="give --max linkability@100=0.05, --min eer=30 or the like")
    results: Any = read_results(run)
    checked = check_limits(results, limits)
    doubts = list(results["verdict"]["distrust"])
    passed = all(one.holds for one in checked) and not (trustworthy and doubts)
    if json:
        print(
            to_json(
                {"passed": passed, "limits": [one.to_json() for one in checked], "distrust": doubts, "run": str(run)}
            )
        )
    else:
        for one in checked:
            print(clean(str(one)))
        for doubt in said(results) or doubts:
            print(("BROKEN" if trustworthy else "doubt ") + "  " + clean(doubt))
    if not passed:
        raise typer.Exit(1)
