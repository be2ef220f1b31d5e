"""`veilmeter check`: all problems of files and folders at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.cli.exit_codes import Exit
from veilmeter.core.errors import InputError, Problem, VeilmeterError

if TYPE_CHECKING:
    from veilmeter.data.checks import Checked


def command(
    ctx: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE_OR_FOLDER...", help="Score files, trial keys, embeddings, corpora.", show_default=False
        ),
    ],
    trials: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Also check that the score files match this trial key.")
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="Where it can't be recognized: of trial keys vpc, pairs or voxceleb; of corpora folder, csv, ..."
        ),
    ] = None,
    part: options.Part = None,
    suffix: options.Suffix = None,
    root: options.Roots = None,
    columns: options.Columns = None,
    channel: options.Channel = None,
    json: options.Json = False,
) -> None:
    """List everything that is wrong with files: how often, where first, and how to mend it.

    What a path is (score file, trial key, embeddings, corpus) is recognized from what is in it.
    Exits with 0 if all of it can be used (remarks allowed), with 2 if not.

    Examples:

        veilmeter check scores.txt trials
        veilmeter check scores.txt --trials trials
    """
    from veilmeter.cli import given
    from veilmeter.data.checks import Checked
    from veilmeter.data.formats.table import parse_columns

    results: list[tuple[Path, Checked]] = []
    chosen = {
        "part": part,
        "suffix": suffix,
        "roots": root or (),
        "columns": parse_columns(columns),
        "channel": channel,
    }
    kinds = {path: _kind(path) for path in paths}
    if "scores" not in kinds.values():
        given.refuse(ctx, ["trials"], "no score file is checked", fix="give the score files too, or leave it out")
    if trials is None and set(kinds.values()) == {"scores"}:
        given.refuse(ctx, ["layout"], "score files have none", fix="give their key with --trials, or leave it out")
    for path, kind in kinds.items():
        try:
            results.append((path, _check(path, kind, trials, layout, chosen)))
        except VeilmeterError as error:
            problem = Problem("unreadable", error.what, error.path or str(path), error.line, error.fix or "")
            results.append((path, Checked("unknown", "", [problem])))
    if json:
        _print_json(results)
    else:
        _print(results)
    if not all(checked.usable for _, checked in results):
        raise typer.Exit(Exit.WRONG_INPUT)


def _kind(path: Path) -> str | None:
    """`scores` or `trials`, if it is that."""
    from veilmeter.data.formats import check_scores

    return check_scores.recognize(path) if path.is_file() else None


def _check(path: Path, kind: str | None, trials: Path | None, layout: str | None, chosen: dict[str, Any]) -> Checked:
    from veilmeter.data.checks import check
    from veilmeter.data.formats import check_scores

    corpus = None if kind in ("scores", "trials") else _check_corpus(path, layout, chosen)
    if corpus is not None:
        return corpus
    if useless := [name for name, value in chosen.items() if value]:
        option = {"roots": "root"}.get(useless[0], useless[0])
        raise InputError(f"--{option} is for corpora, and this is none", path=path, fix="leave it out")
    if kind == "scores":
        return check_scores.check_scores(path, trials=trials, layout=layout)
    return check_scores.check_trials(path, layout=layout) if kind == "trials" else check(path)


def _check_corpus(path: Path, layout: str | None, chosen: dict[str, Any]) -> Checked | None:
    from veilmeter.cli.progress import shown
    from veilmeter.data.formats.vectors import is_embeddings
    from veilmeter.speech import check_corpus

    if layout is None and is_embeddings(path):
        return None
    with shown("reading", unit="recordings") as progress:
        return check_corpus.check(path, layout=layout, progress=progress, **chosen)


def _print(results) -> None:  # type: ignore[no-untyped-def]
    from veilmeter.core.text import clean

    for path, checked in results:
        verdict = "fine" if not checked.problems else "can be used" if checked.usable else "can't be used as it is"
        print(f"{clean(str(path))}: {checked.kind}{', ' + checked.summary if checked.summary else ''}: {verdict}")
        for problem in checked.problems:
            print(f"  {'!' if problem.fatal else '-'} {clean(_said(problem, path))}")


def _said(problem: Problem, path: Path) -> str:
    place = "" if problem.path == str(path) else problem.path + (":" if problem.line is not None else ": ")
    place += "" if problem.line is None else f"line {problem.line}: " if not place else f"{problem.line}: "
    return f"{place}{problem.what}" + (f" ({problem.fix})" if problem.fix else "")


def _print_json(results) -> None:  # type: ignore[no-untyped-def]
    from dataclasses import asdict

    from veilmeter.cli.output import Form, Page, emit

    files = [
        {
            "path": str(path),
            "kind": checked.kind,
            "summary": checked.summary,
            "usable": checked.usable,
            **({"facts": dict(checked.facts)} if checked.facts else {}),
            "problems": [asdict(problem) for problem in checked.problems],
        }
        for path, checked in results
    ]
    emit(Page("check", {}, inputs={"files": [str(path) for path, _ in results]}, more={"files": files}), Form.JSON)
