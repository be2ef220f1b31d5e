"""`veilmeter transcribe`: a corpus to text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options

if TYPE_CHECKING:
    from veilmeter.speech.transcribe_corpus import Transcribed


def command(
    ctx: typer.Context,
    corpus: options.Corpus,
    out: Annotated[Path, typer.Argument(help="The folder for the texts; a stopped run goes on from it.")],
    recognizer: options.Recognizer = "moonshine",
    language: options.Language = None,
    layout: options.Layout = None,
    part: options.Part = None,
    suffix: options.Suffix = None,
    root: options.Roots = None,
    columns: options.Columns = None,
    channel: options.Channel = None,
    max_seconds: options.MaxSeconds = 3600.0,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    strict: options.Strict = False,
    offline: options.Offline = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write what is said in every recording to OUT: Kaldi's `text`, transcripts.csv and transcripts.parquet.

    Stopped or killed, the same command goes on where it was. Long recordings are cut at pauses and heard in stretches.
    Silent recordings have no words; those that can't be read are left out and listed.

    The exit code is 0 if every recording was used, 3 if some were left out, 2 if nothing could be done or, with
    --strict, as soon as one can't be used.

    Examples:

        veilmeter transcribe speech/ texts/
        veilmeter transcribe reden/ texte/ --recognizer whisper --language de --jobs 4
    """
    from contextlib import closing

    from veilmeter.cli.corpora import exit_if_left_out, print_outcome, read_given, remarks_on_reading
    from veilmeter.cli.progress import shown
    from veilmeter.core.engine import open_engine
    from veilmeter.speech.transcribe_corpus import transcribe_corpus

    recordings = read_given(corpus, layout, part=part, suffix=suffix, root=root, columns=columns, channel=channel)
    with closing(open_engine(jobs, cluster)) as engine, shown("transcribing", quiet=quiet) as progress:
        done = transcribe_corpus(
            recordings, out, recognizer, language=language,
            engine=engine, offline=offline, strict=strict, max_seconds=max_seconds, progress=progress,
        )  # fmt: skip
    inputs = {"corpus": str(corpus), "layout": recordings.layout}
    print_outcome(
        "transcribe", inputs, {"transcribed": _facts(done)}, done.skipped,
        json=json, as_text=lambda: _print(done), remarks=remarks_on_reading(ctx, recordings),
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
    from veilmeter.cli.problems import print_problems
    from veilmeter.core.text import clean

    kept = len(done.rows) - done.computed
    before = f", {kept} of them from before" if kept > 0 else ""
    print(clean(f"{done.folder}: {len(done.rows)} utterances, {done.hours:.2f} hours{before}"))
    print(clean(f"recognizer {done.recognizer}, language {done.language}"))
    silent = sum(not row.text for row in done.rows)
    if silent:
        print(f"no words were heard in {silent} of them")
    print_problems(done.problems, "the output of --json")
