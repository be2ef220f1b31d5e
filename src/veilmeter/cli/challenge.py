"""`veilmeter challenge`: a submission to a VoicePrivacy challenge, checked as the organizers do, and its archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from veilmeter.cli.command import Given
from veilmeter.cli.terminal import Exit
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.options import Condition, OptionSet, declare

if TYPE_CHECKING:
    from veilmeter.assessment.challenge.submission import SubmissionArchive, SubmissionCheck

TASKS = ("check", "zip")
MOST_SHOWN = 3  # problems of a folder that are listed


def _of(task: str) -> tuple[Condition, ...]:
    return (Condition(lambda options, facts: options.task == task, f"it is for `challenge {task}`"),)


@dataclass(frozen=True, kw_only=True)
class ChallengeOptions(OptionSet):
    """The options of the command."""

    task: str = declare(
        help="check: folders, ids, counts, rates, empty recordings; zip: results for the organizers.", argument=True,
        metavar="check|zip", choices=TASKS,
    )  # fmt: skip
    data: Path = declare(help="Folder data/ of the challenge's tools.", argument=True)
    suffix: str = declare(help="Suffix of the anonymized folders, such as _mine.", example="_b3")
    year: str = declare(
        "2024", help="Year of the challenge: 2024 or 2026.", metavar="YEAR", choices=("2024", "2026"),
        acts_when=_of("check"), example="2026",
    )  # fmt: skip
    track: str | None = declare(
        None, help="Track of 2026: 1 (English) or 2 (four languages).", metavar="N", choices=("1", "2"),
        default_text="those with anonymized folders", acts_when=_of("check"), example="2",
    )  # fmt: skip
    run: Path | None = declare(
        None, help="Output of `assess --vpc`, whose tables are added under veilmeter/.", path=True,
        acts_when=_of("zip"), example="run",
    )  # fmt: skip
    out: Path = declare(
        Path(), help="Folder for result_for_submission<suffix>.zip.", path=True, acts_when=_of("zip"),
        default_text="this folder", example="out-archive",
    )  # fmt: skip
    json: bool = option_groups.json()


OPTIONS = (ChallengeOptions,)


def command(given: Given) -> None:
    """Check a VoicePrivacy submission, or collect its results.

    `check` compares every anonymized folder with its original as the organizers' tools will, and reads the header
    of every recording. The exit code is 0 if everything is there, and 2 if not. `zip` collects what the challenge's
    evaluation left in exp/, without recordings and models. veilmeter's own tables are added under their own names,
    because they are not the challenge's figures.

    Examples:

        veilmeter challenge check data/ --suffix _mine --year 2026

        veilmeter challenge zip data/ --suffix _mine --run run/ --out submission/
    """
    options = given.build(ChallengeOptions)
    for name in ("year", "track", "run", "out"):
        if name in given and (reason := given.declared[name].idle_reason(options, None)):
            raise InputError(f"--{name}: {reason}", fix="leave it out")
    if options.task == "zip":
        from veilmeter.assessment.challenge.submission import write_archive

        archive = write_archive(options.data, options.suffix, options.out, options.run)
        _print_archive(archive, json=options.json)
        return
    from veilmeter.assessment.challenge.submission import check_submission

    checks = check_submission(options.data, options.suffix, options.year, options.track)
    _print_checks(checks, options)
    if not all(check.is_complete for check in checks):
        raise typer.Exit(Exit.WRONG_INPUT)


def _print_checks(checks: Sequence[SubmissionCheck], options: ChallengeOptions) -> None:
    from veilmeter.cli.output import Form, Page, emit, print_rows
    from veilmeter.core.text import clean

    if options.json:
        inputs = {"data": str(options.data), "suffix": options.suffix, "year": options.year}
        tracks = [{**asdict(check), "complete": check.is_complete} for check in checks]
        emit(Page("challenge check", {}, inputs=inputs, more={"tracks": tracks}), Form.JSON)
        return
    for check in checks:
        required = [folder for folder in check.folders if not folder.optional]
        complete = sum(folder.is_complete for folder in required)
        track = f", track {check.track.name}" if check.track.name else ""
        rows = []
        for folder in check.folders:
            rates = ", ".join(map(str, folder.rates)) or "–"
            mark = " (optional)" if folder.optional else ""
            row = (folder.name + mark, f"{folder.there} of {folder.expected}", rates, folder.verdict)
            rows.append([(text, not folder.is_complete) for text in row])
        print_rows(["folder", "recordings", "Hz", ""], rows, [])
        for problem in check.problems:
            print(f"{'!' if problem.fatal else '-'} {clean(str(problem))}")
        for folder in check.folders:
            listed = sorted(folder.problems, key=lambda problem: not problem.fatal)
            for problem in listed[:MOST_SHOWN]:
                print(f"{'!' if problem.fatal else '-'} {clean(str(problem))}")
            if len(listed) > MOST_SHOWN:
                print(f"  and {len(listed) - MOST_SHOWN} more in {clean(folder.name)} (--json lists them)")
        print(
            f"{check.track.year}{track}: {complete} of {len(required)} folders with {clean(check.suffix)} are complete"
        )


def _print_archive(archive: SubmissionArchive, *, json: bool) -> None:
    from veilmeter.cli.output import Form, Page, emit
    from veilmeter.core.text import clean

    if json:
        more = {"archive": str(archive.path), **{name: list(getattr(archive, name)) for name in ("official", "own")}}
        emit(Page("challenge zip", {}, more={**more, "missing": list(archive.missing)}), Form.JSON)
        return
    own = f", {len(archive.own)} of veilmeter" if archive.own else ""
    print(clean(f"{archive.path}: {len(archive.official)} files of the challenge's evaluation{own}"))
    for pattern in archive.missing:
        print(f"- nothing matches {clean(pattern)}: the challenge's evaluation has not written it")
