"""`veilmeter transcribe`: a corpus to text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veilmeter.cli.command import Given
from veilmeter.cli.shared_options import CorpusCommand, recognizer
from veilmeter.core import option_groups
from veilmeter.core.devices import choose_device

if TYPE_CHECKING:
    from veilmeter.speech.annotations import Transcribed


@dataclass(frozen=True, kw_only=True)
class TranscribeOptions(CorpusCommand):
    """The options of the command."""

    recognizer: str | None = recognizer()
    language: str | None = option_groups.language()


OPTIONS = (TranscribeOptions,)


def command(given: Given) -> None:
    """Transcribe every recording.

    Writes Kaldi's `text`, transcripts.csv and transcripts.parquet to OUT. A stopped run continues when the same
    command is given again. Long recordings are cut at pauses. Silent recordings have no words; those that can't be
    read are left out and listed.

    The exit code is 0 if every recording was used, 3 if some were left out, 2 if nothing could be done or, with
    --strict, as soon as one can't be used.

    Examples:

        veilmeter transcribe speech/ texts/
        veilmeter transcribe reden/ texte/ --language de --jobs 4
    """
    from contextlib import closing

    from veilmeter.cli.shared_options import exit_if_left_out, print_outcome, read_given, remarks_on_reading
    from veilmeter.cli.terminal import show_progress
    from veilmeter.core.engine import open_engine
    from veilmeter.speech.annotations import transcribe_corpus

    options = given.build(TranscribeOptions)
    choose_device(options.device)
    recordings = read_given(options.corpus, options)
    with (
        closing(open_engine(options.jobs, options.cluster)) as engine,
        show_progress("transcribing", quiet=options.quiet) as progress,
    ):
        done = transcribe_corpus(
            recordings, options.out, options.recognizer, language=options.language, engine=engine,
            offline=options.offline, strict=options.strict, max_seconds=options.max_seconds, progress=progress,
        )  # fmt: skip
    inputs = {"corpus": str(options.corpus), "layout": recordings.layout}
    print_outcome(
        "transcribe", inputs, {"transcribed": _facts(done)}, done.skipped, json=options.json,
        as_text=lambda: _print(done), remarks=remarks_on_reading(given, options, recordings),
    )  # fmt: skip
    exit_if_left_out(done.skipped)


def _facts(done: Transcribed) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "folder": str(done.folder),
        "recognizer": done.recognizer,
        "version": done.version,
        "language": done.language.code,
        "language_from": done.language.source,
        "utterances": len(done.rows),
        "without_words": sum(not row.text for row in done.rows),
        "hours": round(done.hours, 4),
        "computed": done.computed,
        "left_out": len(done.skipped),
        "problems": [asdict(problem) for problem in done.problems],
    }


def _print(done: Transcribed) -> None:
    from veilmeter.cli.output import print_problems
    from veilmeter.core.text import clean

    kept = len(done.rows) - done.computed
    before = f", {kept} of them from before" if kept > 0 else ""
    print(clean(f"{done.folder}: {len(done.rows)} utterances, {done.hours:.2f} hours{before}"))
    print(clean(f"recognizer {done.recognizer}, language {done.language}"))
    silent = sum(not row.text for row in done.rows)
    if silent:
        print(f"no words were recognized in {silent} of them")
    print_problems(done.problems, "the output of --json")
