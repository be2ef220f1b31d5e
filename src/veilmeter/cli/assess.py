"""`veilmeter assess`: original and anonymized speech in, a verdict and everything behind it out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.cli.lists import Lists
from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from veilmeter.assessment import Assessment

COMMAND_CLASS = Lists


def command(
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file with the same options; those on the command line win.")
    ] = None,
    original: Annotated[
        list[str] | None, typer.Option("--original", help="Original speech: audio or embeddings, one or several.")
    ] = None,
    anonymized: Annotated[
        list[str] | None, typer.Option("--anonymized", help="The same utterances, anonymized, one or several.")
    ] = None,
    anonymized_again: Annotated[
        list[str] | None,
        typer.Option(
            "--anonymized-again",
            help="A second run of the same anonymizer, with other draws: what the attackers anonymize comes from it, "
            "and it gives C_ECE and links across runs.",
        ),
    ] = None,
    train_original: Annotated[
        list[str] | None, typer.Option("--train-original", help="Original speech of other people.")
    ] = None,
    train_anonymized: Annotated[
        list[str] | None,
        typer.Option(
            "--train-anonymized",
            help="Speech of other people, anonymized by the same system: trains the informed attacker.",
        ),
    ] = None,
    train_similar: Annotated[
        list[str] | None,
        typer.Option(
            "--train-similar",
            help="Speech of other people, anonymized by a similar system: trains the semi-informed one.",
        ),
    ] = None,
    enrol: Annotated[
        list[str] | None, typer.Option("--enrol", help="List of the utterances that people are known by.")
    ] = None,
    trials: Annotated[
        list[str] | None, typer.Option("--trials", help="List of the utterances to name, or a trial key.")
    ] = None,
    attackers: Annotated[
        list[str] | None, typer.Option("--attackers", help="See `veilmeter attackers`; all by default, one or several.")
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--scores", help="ATTACKER=FILE: measure these scores of another system, with --trials as their key."
        ),
    ] = None,
    measures: Annotated[
        list[str] | None, typer.Option("--measures", help="Families of measures; all by default.")
    ] = None,
    lengths: Annotated[
        list[int] | None, typer.Option("--lengths", help="Utterances in a conversation; 1, 3 and 30 by default.")
    ] = None,
    speakers: Annotated[list[int] | None, typer.Option("--speakers", help="Numbers of people for curves.")] = None,
    population: Annotated[
        list[int] | None, typer.Option("--population", help="Extrapolate Linkability to so many people.")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Also measure within each value of this attribute, such as gender.")
    ] = None,
    attributes: Annotated[
        list[str] | None, typer.Option("--attributes", help="Attributes to infer; all that are known by default.")
    ] = None,
    extractor: Annotated[
        str | None, typer.Option("--extractor", help="campplus, ge2e, onnx:FILE or module:function.")
    ] = None,
    layout: options.Layout = None,
    part: options.Part = None,
    suffix: Annotated[
        str | None,
        typer.Option(
            "--suffix",
            help="Where a folder of VoicePrivacy data holds several variants: the anonymized one (_anon...). The "
            "original is the one without suffix.",
        ),
    ] = None,
    root: options.Roots = None,
    segments: Annotated[
        float | None, typer.Option("--segments", help="Training speech is cut into pieces of so many seconds.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", help="Of attackers that are not adapted: cosine or centred-cosine.")
    ] = None,
    adaptation: Annotated[
        str | None, typer.Option("--adaptation", help="backend (seconds) or finetune (needs audio).")
    ] = None,
    adapted_backend: Annotated[str | None, typer.Option("--adapted-backend", help="lda or plda.")] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network", help="What is fine-tuned, if not the extractor: campplus or module:function (torch)."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Of fine-tuning.")] = None,
    folds: Annotated[
        int | None, typer.Option("--folds", help="Of cross-validation where no training speech is given.")
    ] = None,
    weak_attacker: Annotated[
        float | None,
        typer.Option("--weak-attacker", help="Trust no attacker with a higher EER on original speech (15)."),
    ] = None,
    precision: Annotated[
        float | None, typer.Option("--precision", help="How well a rate of linking must be known to be claimed (0.1).")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="For the report.")] = None,
    notice: Annotated[
        str | None, typer.Option("--notice", help="A remark at the top of the report, such as DRAFT.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for results, tables and report; an interrupted run goes on here."),
    ] = None,
    seed: options.MaybeSeed = None,
    resamples: Annotated[int | None, typer.Option("--resamples", help="Of the intervals.")] = None,
    no_intervals: options.NoIntervals = False,
    offline: options.Offline = False,
    strict: options.Strict = False,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write the HTML page.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print results.json instead of the verdict.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Assess an anonymizer: every attacker, every measure, the worst case first, and what can't be trusted."""
    given = {key: value for key, value in locals().items() if value is not None and value is not False and value != []}
    from functools import partial

    from veilmeter.assessment import assess, make_settings, read_toml
    from veilmeter.assessment.settings import with_attackers
    from veilmeter.cli.progress import shown, stages
    from veilmeter.core.engine import cores
    from veilmeter.core.files import to_json
    from veilmeter.results.run_folder import results_to_json

    values: dict[str, Any] = {}
    if config is not None:
        values = read_toml(config)
    of_file = _of_the_command(values, config)
    jobs = of_file.get("jobs") if jobs is None else jobs
    cluster = of_file.get("cluster") if cluster is None else cluster
    no_report, json, quiet = (
        flag or of_file.get(name, False) for name, flag in (("no_report", no_report), ("json", json), ("quiet", quiet))
    )
    if of_file.get("no_intervals"):
        values["intervals"] = False
    for key in ("config", "out", "jobs", "cluster", "no_report", "json", "quiet", "attackers", "scores"):
        given.pop(key, None)
    if given.pop("no_intervals", False):
        values["intervals"] = False
    values |= given
    if attackers or scores:
        values["attackers"] = with_attackers(values.get("attackers"), attackers or (), scores or ())
    folder = out if out is not None else values.pop("out", None)
    values.pop("out", None)
    if folder is None:
        raise InputError("there is no folder for the results", fix="give --out RUN")
    settings = make_settings(values, where=config)
    assessment = assess(
        settings=settings,
        out=folder,
        jobs=cores() if jobs is None else jobs,
        cluster=cluster,
        command=["veilmeter", *sys.argv[1:]],
        say=stages(quiet=quiet),
        progress=partial(shown, quiet=quiet),
    )
    report = None if no_report else _report(assessment)
    if json:
        print(to_json(results_to_json(assessment.results)))
    else:
        from veilmeter.cli.verdict import print_verdict

        print_verdict(assessment.results, folder, report)


_OF_THE_COMMAND: dict[str, tuple[type, str]] = {
    "jobs": (int, "a whole number"),
    "cluster": (str, "text"),
    **dict.fromkeys(("no_report", "no_intervals", "json", "quiet"), (bool, "true or false")),
}


def _of_the_command(values: dict[str, Any], where: Path | None) -> dict[str, Any]:
    """Options in a file that say where the command runs and what it prints, taken out of `values`."""
    found = {}
    for name, (kind, words) in _OF_THE_COMMAND.items():
        if name in values:
            found[name] = values.pop(name)
            if type(found[name]) is not kind:  # True is an int to isinstance
                raise InputError(f"{name} must be {words}, not {found[name]!r}", path=where)
    return found


def _report(assessment: Assessment) -> Path | None:
    """The HTML page, beside the results."""
    if assessment.folder is None:
        return None
    from veilmeter.report import write_report

    return Path(write_report(assessment.folder))
