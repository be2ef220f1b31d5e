"""`veilmeter embed`: a corpus to speaker embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from veilmeter.cli.command import Given
from veilmeter.cli.shared_options import CorpusCommand
from veilmeter.core.devices import choose_device
from veilmeter.core.options import declare, place_code

if TYPE_CHECKING:
    from veilmeter.speech.extractors.embed_corpus import Embedded


@dataclass(frozen=True, kw_only=True)
class EmbedOptions(CorpusCommand):
    """The options of the command."""

    extractor: str = declare(
        "campplus", help="Extractor, by one of the names above.", metavar="NAME", path=place_code,
        example="other.py:embed",
    )  # fmt: skip


OPTIONS = (EmbedOptions,)


def command(given: Given) -> None:
    """Extract the speaker embedding of every recording.

    Writes Parquet files to OUT. A stopped run continues when the same command is given again. A recording is read
    again only if its file changed, and computed again only if its content, the extractor or its version changed.

    Recordings that can't be used (silent, shorter than 0.5 s, truncated, ...) are left out and listed;
    OUT/inputs.jsonl lists all. The exit code is 0 if every recording was used, 3 if some were left out, 2 if
    nothing could be done or, with --strict, as soon as one can't be used.

    Voice extractors: campplus, ge2e, ecapa, eres2net, resnet34, onnx:FILE, wavlm:FOLDER or wavlm:FOLDER:LAYER (a
    WavLM, wav2vec 2.0 or HuBERT model), and whisper:LAYER (0 to 6, a recognizer's layers). Extractors of words and
    rhythm: words, word-style, word-meaning, rhythm, rhythm-level-free, durations. Your own: module:function or
    file.py:function.

    Examples:

        veilmeter embed speech/ embeddings/original
        veilmeter embed anonymized/ embeddings/anonymized --extractor ge2e --jobs 4
    """
    from contextlib import closing

    from veilmeter.cli.shared_options import exit_if_left_out, print_outcome, read_given, remarks_on_reading
    from veilmeter.cli.terminal import show_progress
    from veilmeter.core.engine import open_engine
    from veilmeter.speech.extractors.embed_corpus import embed_corpus

    options = given.build(EmbedOptions)
    choose_device(options.device)
    recordings = read_given(options.corpus, options)
    with (
        closing(open_engine(options.jobs, options.cluster)) as engine,
        show_progress("embedding", quiet=options.quiet) as progress,
    ):
        done = embed_corpus(
            recordings, options.out, options.extractor, engine=engine, offline=options.offline,
            strict=options.strict, max_seconds=options.max_seconds, progress=progress,
        )  # fmt: skip
    inputs = {"corpus": str(options.corpus), "layout": recordings.layout}
    print_outcome(
        "embed", inputs, {"embedded": _facts(done)}, done.skipped, json=options.json, as_text=lambda: _print(done),
        remarks=remarks_on_reading(given, options, recordings),
    )  # fmt: skip
    exit_if_left_out(done.skipped)


def _facts(done: Embedded) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "folder": str(done.folder),
        "extractor": done.extractor,
        "version": done.version,
        "dimension": done.dimension,
        "device": done.device,
        "utterances": done.utterances,
        "speakers": done.speakers,
        "hours": round(done.hours, 4),
        "computed": done.computed,
        "reused": done.reused,
        "left_out": len(done.skipped),
        "problems": [asdict(problem) for problem in done.problems],
    }


def _print(done: Embedded) -> None:
    from veilmeter.cli.output import print_problems
    from veilmeter.core.text import clean

    before = f", {done.reused} of them from before" if done.reused else ""
    summary = f"{done.utterances} utterances of {done.speakers} speakers, {done.hours:.2f} hours{before}"
    print(clean(f"{done.folder}: {summary}; {done.extractor}, {done.dimension}-d"))
    print_problems(done.problems, "inputs.jsonl and embeddings.json")
