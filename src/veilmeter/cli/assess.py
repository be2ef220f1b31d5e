"""`veilmeter assess`: original and anonymized speech in, a verdict and everything behind it out."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.cli.lists import Lists
from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from veilmeter.assessment import Assessment, ChallengeAssessment

COMMAND_CLASS = Lists
# What `--help` shows; the rest is for `--help-all`.
COMMON = (
    "original", "anonymized", "attacker_run", "system", "option", "command_line", "attacker_runs", "vpc", "sets",
    "suffix", "train_anonymized", "enroll", "trials", "attackers", "scores", "measures", "lengths", "by", "extractor",
    "recognizer", "no_utility", "out", "seed", "no_intervals", "offline", "jobs", "no_report", "json", "quiet",
)  # fmt: skip


def command(
    ctx: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file with the same options; those on the command line win.")
    ] = None,
    original: Annotated[
        list[str] | None, typer.Option("--original", help="Original speech: audio or embeddings, one or several.")
    ] = None,
    anonymized: Annotated[
        list[str] | None, typer.Option("--anonymized", help="The same utterances, anonymized, one or several.")
    ] = None,
    vpc: Annotated[
        Path | None,
        typer.Option(
            "--vpc",
            help="A folder of VoicePrivacy data as it lies on disk: every set and gender of the variant --suffix, with "
            "what it holds of lists, training speech and scores.",
        ),
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--sets", help="Sets of --vpc, such as libri_test; all by default.")
    ] = None,
    attacker_run: Annotated[
        list[str] | None,
        typer.Option(
            "--attacker-run",
            "--anonymized-again",
            metavar="DIR[:per-speaker|:per-utterance]",
            help="A run of the same anonymizer with draws of the attackers' own, one or several: what they anonymize "
            "themselves. The suffix says what one draw covers, if no manifest does.",
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            help="Let the attackers run this anonymizer (see `anonymize`); without --anonymized it makes the "
            "release too.",
        ),
    ] = None,
    option: Annotated[list[str] | None, typer.Option("--option", help="Of the --system.", metavar="NAME=VALUE")] = None,
    command_line: Annotated[
        str | None,
        typer.Option("--command", help="A program as the --system, such as 'myanon {input} {output}'."),
    ] = None,
    attacker_runs: Annotated[
        int | None, typer.Option("--attacker-runs", "--runs", help="How often attackers run the --system (2).")
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
    enroll: Annotated[
        list[str] | None,
        typer.Option("--enroll", help="List of the utterances that people are known by."),
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
    speakers: Annotated[
        list[str] | None,
        typer.Option(
            "--speakers", metavar="N", help="Numbers of people for curves, or `all` for every one of exact curves."
        ),
    ] = None,
    population: Annotated[
        list[int] | None, typer.Option("--population", help="Extrapolate Linkability to so many people.")
    ] = None,
    release_size: Annotated[
        int | None, typer.Option("--release-size", help="People in the real release; those assessed by default.")
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates", help="People an attacker has recordings of: measured, or extrapolated if there are more."
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="Measure within each value of this attribute, too; gender by default."),
    ] = None,
    attributes: Annotated[
        list[str] | None, typer.Option("--attributes", help="Attributes to infer; all that are known by default.")
    ] = None,
    extractor: Annotated[
        list[str] | None,
        typer.Option(
            "--extractor",
            help="campplus, ecapa, words, rhythm, durations, onnx:FILE or module:function, one or several: attackers "
            "use all, each alone and together.",
        ),
    ] = None,
    recognizer: Annotated[
        str | None, typer.Option("--recognizer", help="Whose transcripts utility is measured by; see `transcribe`.")
    ] = None,
    utility_recordings: Annotated[
        int | None, typer.Option("--utility-recordings", help="How many recordings utility is measured on (100).")
    ] = None,
    utility_rated: Annotated[
        int | None, typer.Option("--utility-rated", help="How many of them are rated for their quality (30).")
    ] = None,
    no_utility: Annotated[
        bool, typer.Option("--no-utility", help="Do not measure what the speech is still good for.")
    ] = False,
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
    columns: options.Columns = None,
    channel: options.Channel = None,
    segments: Annotated[
        float | None, typer.Option("--segments", help="Training speech is cut into pieces of so many seconds.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            help="Of attackers that are not adapted: cosine or centred-cosine; cosine:best, cosine:normalized.",
        ),
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
        typer.Option(
            "--weak-attacker",
            help="Trust no attacker with a higher EER on original speech (15%).",
            parser=options.percentage,
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision", help="How well a rate of linking must be known to be claimed (10%).", parser=options.fraction
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="For the report.")] = None,
    system_name: Annotated[
        str | None,
        typer.Option(
            "--system-name",
            help="What the report calls the anonymizer, with its version; by default what its manifest says.",
        ),
    ] = None,
    assessor: Annotated[
        str | None, typer.Option("--assessor", help="Who makes this assessment, for the report.")
    ] = None,
    notice: Annotated[
        str | None, typer.Option("--notice", help="A remark at the top of the report, such as DRAFT.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            help="The risk of being linked that you accept, chosen before you see the results (9%, say).",
            parser=options.fraction,
        ),
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
    from functools import partial

    from veilmeter.assessment import assess, assess_challenge, make_settings, read_toml
    from veilmeter.cli.progress import shown, stages
    from veilmeter.core.engine import cores

    values = {} if config is None else read_toml(config)
    place = _place(values, ctx.params, config)
    named = values.pop("out", None)
    if named is not None and not isinstance(named, str):
        raise InputError(f"out must be text, not {named!r}", path=config)
    folder = out if out is not None else named
    if folder is None:
        raise InputError("there is no folder for the results", fix="give --out RUN")
    settings = make_settings(_with_command_line(values, ctx.params), where=config)
    how: dict[str, Any] = {
        "jobs": place.get("jobs") or cores(),
        "cluster": place.get("cluster"),
        "argv": ["veilmeter", *sys.argv[1:]],
        "say": stages(quiet=bool(place.get("quiet"))),
        "progress": partial(shown, quiet=bool(place.get("quiet"))),
    }
    if settings.vpc is not None:
        _show_challenge(assess_challenge(settings, folder, **how), place)
    else:
        _show(assess(settings=settings, out=folder, **how), Path(folder), place)


def _show(assessment: Assessment, folder: Path, place: Mapping[str, Any]) -> None:
    from veilmeter.cli.exit_codes import Exit

    report = None if place.get("no_report") else _report(assessment)
    if place.get("json"):
        from veilmeter.core.files import to_json
        from veilmeter.results.run_folder import results_to_json

        print(to_json(results_to_json(assessment.results)))
    else:
        from veilmeter.cli.verdict import print_verdict

        print_verdict(assessment.results, folder, report)
        if assessment.real_time_factor is not None:
            factor = f"{assessment.real_time_factor:.3g} processor seconds per second of speech"
            print(f"Real-time factor of the anonymizer: {factor} (timings.json)")
    if assessment.left_out:
        raise typer.Exit(Exit.LEFT_OUT)


def _show_challenge(challenge: ChallengeAssessment, place: Mapping[str, Any]) -> None:
    """A paragraph per set, the table in the challenge's form, and what was not used."""
    from veilmeter.cli.exit_codes import Exit
    from veilmeter.core.text import clean

    if not place.get("no_report"):
        for assessment in challenge.sets.values():
            _report(assessment)
    if place.get("json"):
        from veilmeter.core.files import to_json
        from veilmeter.results.run_folder import results_to_json

        sets = {name: results_to_json(assessment.results) for name, assessment in challenge.sets.items()}
        not_used = [{"path": problem.path, "what": problem.what} for problem in challenge.not_used]
        emotions = {measured.name: [point.to_json() for point in measured.estimates] for measured in challenge.emotions}
        summary = {"suffix": challenge.suffix, "sets": sets, "emotions": emotions, "not_used": not_used}
        print(to_json({**summary, "table": challenge.table}))
    else:
        for name, assessment in challenge.sets.items():
            doubt = "" if assessment.trustworthy else "NOT TRUSTWORTHY. "
            print(clean(f"{name} ({assessment.results.verdict.level}): {doubt}{assessment.headline}\n", keep="\n"))
        print(clean(challenge.table, keep="\n"))
        if challenge.not_used:
            print(f"Not used ({len(challenge.not_used)}, see not_used.jsonl):")
            for problem in challenge.not_used:
                print(clean(f"  - {problem}"))
        print(clean(f"Results: {challenge.folder}/*/results.json   Table: {challenge.folder}/result_for_rank*"))
    if challenge.left_out:
        raise typer.Exit(Exit.LEFT_OUT)


# Options that say where the command runs and what it prints; all others are settings of the assessment.
_PLACE: dict[str, tuple[type, str]] = {
    "jobs": (int, "a whole number"),
    "cluster": (str, "text"),
    **dict.fromkeys(("no_report", "json", "quiet"), (bool, "true or false")),
}
_TURNED = {"no_intervals": "intervals", "no_utility": "utility"}  # flags that turn a setting off
_RENAMED = {"command_line": "command"}


def _place(values: dict[str, Any], given: Mapping[str, Any], where: Path | None) -> dict[str, Any]:
    """Where the command runs and what it prints: of the command line, else of the file, taken out of `values`."""
    chosen: dict[str, Any] = {}
    for name, (kind, words) in _PLACE.items():
        if name in values:
            chosen[name] = values.pop(name)
            if type(chosen[name]) is not kind:  # True is an int to isinstance
                raise InputError(f"{name} must be {words}, not {chosen[name]!r}", path=where)
        if given.get(name):
            chosen[name] = given[name]
    for flag in _TURNED:
        if flag in values and type(values[flag]) is not bool:
            raise InputError(f"{flag} must be true or false, not {values[flag]!r}", path=where)
    return chosen


def _with_command_line(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the file, and over them those of the command line."""
    from veilmeter.assessment.curve_sizes import ALL
    from veilmeter.assessment.settings import MEASURES, respelled, with_attackers
    from veilmeter.cli.lists import numbers

    settings = respelled(values)
    for flag, name in _TURNED.items():
        if flag in settings and name in settings:
            raise InputError(f"{name} is given twice, as {name} and as {flag}", fix="give one of them")
        if settings.pop(flag, False) or given.get(flag):
            settings[name] = False
    own = {"config", "out", "attackers", "scores", *_PLACE, *_TURNED}
    settings |= {
        _RENAMED.get(name, name): str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if name not in own and value is not None and value is not False and value not in ([], ())
    }
    if given.get("speakers") and given["speakers"] != [ALL]:
        settings["speakers"] = numbers(given["speakers"], "--speakers", least=2)
    attackers, scores = given.get("attackers") or (), given.get("scores") or ()
    if attackers or scores:
        measures = settings.get("measures", MEASURES)
        measures = (measures,) if isinstance(measures, str) else measures
        settings["attackers"] = with_attackers(settings.get("attackers"), attackers, scores, measures)
    return settings


def _report(assessment: Assessment) -> Path | None:
    """The HTML page, beside the results."""
    if assessment.folder is None:
        return None
    from veilmeter.report import write_report

    return Path(write_report(assessment))
