"""Shared steps of the commands that go through a corpus: reading it by the options, and printing the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from veilmeter.cli.given import Given
    from veilmeter.core.errors import Problem
    from veilmeter.core.findings import Finding
    from veilmeter.data.corpus import Corpus
    from veilmeter.data.corpus_options import CorpusReading


def read_given(path: Path, options: CorpusReading) -> Corpus:
    """The corpus that the options of a command name."""
    from veilmeter.data.corpus import read_corpus
    from veilmeter.data.formats.table import parse_columns

    return read_corpus(
        path,
        options.layout,
        roots=options.root,
        part=options.part,
        suffix=options.suffix,
        columns=parse_columns(options.columns),
        channel=options.channel,
    )


def remarks_on_reading(given: Given, options: CorpusReading, *corpora: Corpus) -> list[Finding]:
    """A remark on each option of reading that decided nothing in any of them."""
    from veilmeter.speech.reading_options import reading_facts

    return given.find_unused(options, reading_facts(options, *corpora))


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
    """Print the outcome, as JSON or as text, and remarks on it."""
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
