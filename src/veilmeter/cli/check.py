"""`veilmeter check`: all problems of files and folders at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from veilmeter.cli.command import Given
from veilmeter.cli.terminal import Exit
from veilmeter.core import option_groups
from veilmeter.core.errors import Problem, VeilmeterError
from veilmeter.core.options import declare, options_of
from veilmeter.data.corpus import CorpusReading

if TYPE_CHECKING:
    from veilmeter.data.checks import Checked


@dataclass(frozen=True, kw_only=True)
class CheckOptions(CorpusReading):
    """The options of the command."""

    paths: tuple[Path, ...] = declare(
        help="Score files, trial keys, embeddings, corpora.", argument=True, metavar="FILE_OR_FOLDER..."
    )
    trials: Path | None = declare(
        None, help="Trial key that the score files must match.", metavar="KEY", path=True, example="other-key"
    )
    layout: str | None = declare(
        None, help="Layout if it is not recognized: vpc, pairs or voxceleb for trial keys; folder, csv, ... for "
        "corpora.", example="voxceleb",
    )  # fmt: skip
    json: bool = option_groups.json()


OPTIONS = (CheckOptions,)


def command(given: Given) -> None:
    """Check input files: list every problem and how to fix it.

    The kind of a path (score file, trial key, embeddings, corpus) is recognized from its content. The exit code is
    0 if everything can be used (remarks are allowed), 3 without some recordings, and 2 if an input can't be used.

    Examples:

        veilmeter check scores.txt trials
        veilmeter check scores.txt --trials trials
    """
    from veilmeter.data.checks import Checked

    options = given.build(CheckOptions)
    results: list[tuple[Path, Checked]] = []
    kinds = {path: _kind(path) for path in options.paths}
    if "scores" not in kinds.values():
        given.refuse(["trials"], "no score file is checked", fix="give the score files too, or leave it out")
    if options.trials is None and set(kinds.values()) == {"scores"}:
        given.refuse(["layout"], "score files have none", fix="give their key with --trials, or leave it out")
    for path, kind in kinds.items():
        try:
            results.append((path, _check(path, kind, options, given)))
        except VeilmeterError as error:
            problem = Problem("unreadable", error.what, error.path or str(path), error.line, error.fix or "")
            results.append((path, Checked("unknown", "", [problem])))
    if options.json:
        _print_json(results)
    else:
        _print(results)
    if not all(checked.usable for _, checked in results):
        raise typer.Exit(Exit.WRONG_INPUT)
    if any(checked.is_broken for _, checked in results):
        raise typer.Exit(Exit.LEFT_OUT)


def _kind(path: Path) -> str | None:
    """`scores` or `trials`, if it is that."""
    from veilmeter.data.checks import recognize

    return recognize(path) if path.is_file() else None


def _check(path: Path, kind: str | None, options: CheckOptions, given: Given) -> Checked:
    from veilmeter.data.checks import check, check_scores, check_trials

    corpus = None if kind in ("scores", "trials") else _check_corpus(path, options)
    if corpus is not None:
        return corpus
    of_corpora = [name for name in options_of(CorpusReading) if name != "layout"]
    given.refuse(of_corpora, "this is not a corpus", path=path, fix="leave it out")
    if kind == "scores":
        return check_scores(path, trials=options.trials, layout=options.layout)
    return check_trials(path, layout=options.layout) if kind == "trials" else check(path)


def _check_corpus(path: Path, options: CheckOptions) -> Checked | None:
    from veilmeter.cli.terminal import show_progress
    from veilmeter.data.formats.table import parse_columns
    from veilmeter.data.formats.vectors import is_embeddings
    from veilmeter.speech import check_corpus

    if options.layout is None and is_embeddings(path):
        return None
    with show_progress("reading", unit="recordings") as progress:
        return check_corpus.check(
            path, layout=options.layout, progress=progress, part=options.part, suffix=options.suffix,
            roots=options.roots, columns=parse_columns(options.columns), channel=options.channel,
        )  # fmt: skip


def _print(results) -> None:  # type: ignore[no-untyped-def]
    from veilmeter.core.text import clean

    for path, checked in results:
        verdict = "fine" if not checked.problems else "can be used" if checked.usable else "can't be used as it is"
        verdict += " without the recordings marked !" if checked.usable and checked.is_broken else ""
        print(f"{clean(str(path))}: {checked.kind}{', ' + checked.summary if checked.summary else ''}: {verdict}")
        for problem in checked.problems:
            print(f"  {'!' if problem.fatal else '-'} {clean(_describe(problem, path))}")


def _describe(problem: Problem, path: Path) -> str:
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
