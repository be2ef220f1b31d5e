"""What the commands that go through a corpus share: reading it as the options say, and saying what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from veilmeter.core.errors import Problem
    from veilmeter.data.corpus import Corpus


def read_given(
    path: Path,
    layout: str | None,
    *,
    part: str | None,
    suffix: str | None,
    root: Sequence[Path] | None,
    columns: Sequence[str] | None,
    channel: str | None,
) -> Corpus:
    """The corpus that the options of a command name."""
    from veilmeter.data.corpus import read_corpus
    from veilmeter.data.formats.table import parse_columns

    return read_corpus(
        path, layout, roots=root or (), part=part, suffix=suffix, columns=parse_columns(columns), channel=channel
    )


def print_outcome(
    command: str,
    inputs: Mapping[str, Any],
    more: Mapping[str, Any],
    left_out: Sequence[Problem],
    *,
    json: bool,
    as_text: Callable[[], None],
) -> None:
    """What was done, as JSON or as text."""
    from veilmeter.cli.output import Form, Page, emit

    if json:
        warnings = [f"{len(left_out)} recordings were left out"] if left_out else []
        emit(Page(command, {}, inputs=dict(inputs), warnings=warnings, more=dict(more)), Form.JSON)
    else:
        as_text()


def exit_if_left_out(left_out: Sequence[Problem]) -> None:
    """Another exit code where recordings were left out."""
    from veilmeter.cli.exit_codes import Exit

    if left_out:
        raise typer.Exit(Exit.LEFT_OUT)
