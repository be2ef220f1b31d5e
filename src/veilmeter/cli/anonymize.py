"""`veilmeter anonymize`: a corpus through an anonymizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from veilmeter.anonymizers.anonymize_corpus import Anonymized
    from veilmeter.anonymizers.base import Anonymizer


def command(
    ctx: typer.Context,
    corpus: options.Corpus,
    out: Annotated[Path, typer.Argument(help="The folder for the anonymized corpus; a stopped run goes on from it.")],
    system: Annotated[
        str | None,
        typer.Option(
            help="mcadams (the default), mcadams-random, xvector-pool, command (with --command the default), the name "
            "of an installed one, module:name or file.py:name.",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="mcadams: the coefficient (0.8).")] = None,
    alpha_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="mcadams-random: draw the coefficient from this range (0.5 0.9).", metavar="LOW HIGH"),
    ] = None,
    per: Annotated[
        str | None,
        typer.Option(
            help="Draw anew for each speaker or utterance (mcadams-random: utterance; xvector-pool, command: speaker)."
        ),
    ] = None,
    command_line: Annotated[
        str | None,
        typer.Option(
            "--command",
            help="command: the program, such as 'myanon {input} {output}', or once for many recordings "
            "'myanon {input_list} {output_list}' or 'myanon {input_folder} {output_folder}'; no shell is involved.",
        ),
    ] = None,
    program_version: Annotated[
        str | None,
        typer.Option(
            "--version",
            help="command: what it made is kept while this is the same, instead of the content of the files it names.",
            metavar="TEXT",
        ),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="command: recordings per start with lists (500).", min=1)] = None,
    timeout: Annotated[float | None, typer.Option(help="command: seconds for each recording (600).")] = None,
    furthest: Annotated[int | None, typer.Option(help="xvector-pool: consider so many voices (60).", min=1)] = None,
    drawn: Annotated[int | None, typer.Option(help="xvector-pool: average so many of them (10).", min=1)] = None,
    gender: Annotated[str | None, typer.Option(help="xvector-pool: random, same or cross.")] = None,
    distance: Annotated[str | None, typer.Option(help="xvector-pool: cosine or plda.")] = None,
    model: Annotated[str | None, typer.Option(help="xvector-pool: a model of your own (veilmeter train).")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other option of the system.", metavar="NAME=VALUE")
    ] = None,
    seed: options.Seed = 0,
    format: Annotated[str, typer.Option(help="flac or wav, 16 bits either way.")] = "flac",
    rate: Annotated[
        int | None, typer.Option(metavar="HZ", help="Sampling rate of the output, instead of the input's.")
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="Where to say what was done to each utterance (OUT.manifest.jsonl).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Do again what was made with other settings.")] = False,
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
    """Anonymize every recording of CORPUS into OUT, which keeps its layout and its ids.

    Stopped or killed, the same command goes on where it was, and ends with the same bytes. What was done to each
    utterance is in the manifest beside OUT. [bold]The manifest is a key to re-identification: keep it private.[/bold]

    Recordings that can't be used (silent, shorter than 0.5 s, truncated, ...) are left out and listed. The exit code is
    0 if every recording was anonymized, 3 if some were left out, 2 if nothing could be done or, with --strict, as soon
    as one can't be used. An OUT that was made with other settings is refused unless you say --overwrite; what another
    version of the system made is made again.

    Examples:

        veilmeter anonymize speech/ anonymized/ --system mcadams --alpha 0.8
        veilmeter anonymize speech/ anonymized/ --system mcadams-random --alpha-range 0.7 0.9 --per speaker --seed 1
        veilmeter anonymize speech/ anonymized/ --command 'sox {input} {output} pitch -300'
        veilmeter anonymize speech/ anonymized/ --command 'python neural.py --list {input_list} --out {output_list}'
    """
    from contextlib import closing

    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.anonymizers.base import load_with_unused
    from veilmeter.anonymizers.options import parse_options
    from veilmeter.cli import given
    from veilmeter.cli.corpora import exit_if_left_out, print_outcome, read_given, remarks_on_reading
    from veilmeter.cli.progress import shown
    from veilmeter.core.engine import open_engine

    named = {
        "alpha": alpha, "alpha_range": alpha_range, "per": per, "command": command_line, "timeout": timeout,
        "program_version": program_version, "batch": batch,
        "furthest": furthest, "drawn": drawn, "gender": gender, "distance": distance, "model": model,
    }  # fmt: skip
    system = system or ("mcadams" if command_line is None else "command")
    chosen: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    chosen |= {"seed": seed, "offline": offline}
    further = parse_options(option or [])
    if twice := sorted(chosen.keys() & further.keys()):
        own = twice[0].replace("_", "-")
        raise InputError(f"{own} is given twice", fix=f"give it once: --{own} is an option of its own")
    chosen |= further
    anonymizer, idle = load_with_unused(system, chosen)
    recordings = read_given(corpus, layout, part=part, suffix=suffix, root=root, columns=columns, channel=channel)
    with closing(open_engine(jobs, cluster)) as engine, shown("anonymizing", quiet=quiet) as progress:
        done = anonymize_corpus(
            recordings, out, anonymizer,
            audio=format, rate=rate, engine=engine, manifest=manifest, overwrite=overwrite, source=corpus,
            max_seconds=max_seconds, strict=strict, progress=progress,
        )  # fmt: skip
    inputs = {"corpus": str(corpus), "layout": recordings.layout, "system": system}
    print_outcome(
        "anonymize", inputs, {"anonymized": _facts(done)}, done.failed,
        json=json, as_text=lambda: _print(done, anonymizer),
        remarks=[
            *remarks_on_reading(ctx, recordings),
            *given.without_effect(ctx, idle),
            *(given.option_without_effect("--option", name, reason=idle[name]) for name in further if name in idle),
        ],
    )  # fmt: skip
    if not done.done:
        raise InputError("not one recording could be anonymized", path=corpus)
    exit_if_left_out(done.failed)


def _facts(done: Anonymized) -> dict[str, object]:
    from dataclasses import asdict

    entries = done.entries
    return {
        "folder": str(done.out),
        "manifest": str(done.manifest),
        "system": entries[0].system,
        "version": entries[0].version,
        "utterances": done.done,
        "speakers": len({entry.speaker for entry in entries if entry.output is not None}),
        "hours": round(done.seconds / 3600, 4),
        "made": done.written,
        "kept": done.kept,
        "redone": done.redone,
        "draw": str(done.draw),
        "removed": done.removed,
        "scaled": done.scaled,
        "left_out": len(done.failed),
        "problems": [asdict(problem) for problem in done.problems],
    }


def _print(done: Anonymized, anonymizer: Anonymizer) -> None:
    from veilmeter.cli.problems import print_problems
    from veilmeter.core.text import clean

    facts = _facts(done)
    before = f", {done.kept} of them from before" if done.kept else ""
    summary = f"{done.done} utterances of {facts['speakers']} speakers, {facts['hours']:.2f} hours{before}"
    print(clean(f"{done.out}: {summary}; {facts['system']} {facts['version']}"))
    print(clean(f"manifest: {done.manifest} (a key to re-identification: keep it private, never publish it)"))
    if done.redone:
        print(f"{done.redone} were made again: {facts['system']} is not the one that had made them")
    if done.removed:
        print(f"{done.removed} outputs of an earlier run have no usable source any more and were removed")
    if done.scaled:
        print(f"{done.scaled} were beyond full scale and were scaled down; the manifest says by how much")
    print_problems(done.problems, "the manifest")
    if describe := getattr(anonymizer, "describe", None):
        print(clean(f"{anonymizer.name}: {describe()}"))
