"""What the commands that go through a corpus share: reading it as the options say, and saying what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from typer import Context

    from veilmeter.core.errors import Problem
    from veilmeter.core.findings import Finding
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


def remarks_on_reading(ctx: Context, *corpora: Corpus) -> list[Finding]:
    """One for each option of reading that decided nothing in any of them."""
    from veilmeter.cli import given
    from veilmeter.speech.reading_options import unused_options

    root, channel = ctx.params["root"] or (), ctx.params["channel"]
    unused = [unused_options(corpus, root, channel) for corpus in corpora]
    return given.without_effect(ctx, {name: why for name, why in unused[0].items() if all(name in of for of in unused)})


def print_outcome(
    command: str,
    inputs: Mapping[str, Any],
    more: Mapping[str, Any],
    left_out: Sequence[Problem],
    *,
    json: bool,
    as_text: Callable[[], None],
    remarks: Sequence[Finding] = (),
) -> None:
    """What was done, as JSON or as text, and remarks on it."""
    from veilmeter.cli.output import Form, Page, emit
    from veilmeter.core.findings import warning
    from veilmeter.wording import sentence

    if json:
        warnings = [warning("recordings_left_out", count=len(left_out))] if left_out else []
        emit(Page(command, {}, inputs=dict(inputs), warnings=[*warnings, *remarks], more=dict(more)), Form.JSON)
    else:
        as_text()
        for remark in remarks:
            print(f"! {sentence(remark)}")


def exit_if_left_out(left_out: Sequence[Problem]) -> None:
    """Another exit code where recordings were left out."""
    from veilmeter.cli.exit_codes import Exit

    if left_out:
        raise typer.Exit(Exit.LEFT_OUT)
