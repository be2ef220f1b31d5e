"""`veilmeter assess`: original and anonymized speech in, a verdict and everything behind it out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from veilmeter.assessment.attacker_settings import attacker_tables
from veilmeter.assessment.settings import (
    ATTACKERS,
    MEASURES,
    RunOptions,
    Settings,
    make_settings,
    read_settings,
)
from veilmeter.cli import terminal
from veilmeter.cli.command import Given, Lists
from veilmeter.core.errors import InputError
from veilmeter.core.options import OptionSet, build, declare, options_of, place_named

if TYPE_CHECKING:
    from rich.text import Text

    from veilmeter.assessment import Assessment, ChallengeAssessment
    from veilmeter.results.model import Results

HEADINGS = {
    "linking": "Linking",
    "singling_out": "Singling out",
    "disclosure": "Disclosure",
    "inversion": "Undoing it",
    "distinctiveness": "Voices kept apart",
    "inference": "Inference",
}
COLORS = {"low": "green", "raised": "yellow", "high": "red", "unknown": "magenta"}
LAWYERS = (
    "These are measurements for the criteria of Opinion 05/2014 and of EDPB Guidelines 02/2026 (a draft). "
    "Whether the protection is sufficient is for a lawyer to judge."
)


def print_verdict(
    results: Results, folder: Path | str, report: Path | None = None, *, signatures: bool = False
) -> None:
    from rich.table import Table
    from rich.text import Text

    from veilmeter.core.text import clean
    from veilmeter.report.rows import THREE, criterion_row
    from veilmeter.results.trust import doubts
    from veilmeter.wording import sentence, sentences, text
    from veilmeter.wording.english.page import NOT_MEASURED

    console = terminal.console()
    verdict, protocol = results.verdict, results.protocol

    def paragraph(line: str, style: str = "") -> None:
        console.print(Text(clean(line, keep="\n"), style=style))

    paragraph(results.title, "bold")
    speakers = max(protocol.enrolled_speakers, protocol.trial_speakers)
    heard = (
        f"{protocol.enrollment_utterances} enrollment recordings, {protocol.trial_utterances} trial recordings"
        if protocol.trial_utterances
        else "scores only, no recordings"
    )
    paragraph(f"{speakers} speakers; {heard}; attackers: {', '.join(results.attacks)}", "dim")
    console.print()
    if not verdict.trustworthy:
        paragraph("NOT TRUSTWORTHY. Self-checks failed:", "bold red")
        for doubt in doubts(results):
            paragraph(f"  - {text(doubt)}")
        console.print()
    paragraph(text(verdict.headline), "bold")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name in dict.fromkeys((*THREE, *results.criteria)):
        criterion = results.criteria.get(name)
        if criterion is None:  # one of the three: why it was not measured
            level, words = Text(NOT_MEASURED, style="dim"), criterion_row(results, name).sentence
        else:
            level, words = Text(criterion.level, style=COLORS[criterion.level]), sentence(criterion.finding)
        table.add_row(_heading(name), level, Text(clean(words)))
    console.print()
    console.print("Worst case by criterion, with the risk for the people who were recorded:", style="dim")
    console.print(table)
    if (eer := _lowest_eer(results)) is not None:
        paragraph(f"\n{eer}")
    for line in sentences((*verdict.remarks, results.people.finding)):
        paragraph(f"\n{line}")
    _print_open(results, paragraph)
    for warning in (*results.remarks, *results.warnings):
        paragraph(f"! {sentence(warning)}", "yellow")
    if signatures:
        paragraph("\nSignatures of the worst cases; results.json has those of all figures:", "bold")
        for criterion in results.criteria.values():
            console.print(Text(clean(f"  {criterion.estimate.signature}")), soft_wrap=True)
    paragraph(LAWYERS, "dim")
    paragraph(f"\nResults: {Path(folder) / 'results.json'}" + (f"   Report: {report}" if report else ""))


def _heading(name: str) -> Text:
    """A criterion, and below it what Opinion 05/2014 and Guidelines 02/2026 call it."""
    from rich.text import Text

    from veilmeter.wording.english.page import LEGAL_NAMES

    heading = HEADINGS.get(name, name)
    legal = [other for other in LEGAL_NAMES.get(name, ()) if other != heading.lower()]
    return Text(heading).append("".join(f"\n{other}" for other in legal), style="dim")


def _lowest_eer(results: Results) -> str | None:
    """The EER of the attacker that has the lowest, with its interval."""
    rates = [
        (point, name)
        for name, attacker in results.attacks.items()
        if not attacker.apart
        for point in attacker.estimates.points("eer")
    ]
    if not rates:
        return None
    lowest, name = min(rates, key=lambda rate: rate[0].value)
    figure = " ".join(filter(None, (lowest.format_value(), lowest.format_interval())))
    further = [
        f"{point.format_value()} by {point.method}"
        for point in results.attackers[name].estimates
        if point.name.startswith("eer_")
    ]
    beside = f"; {', '.join(further)}" if further else ""
    return f"Lowest EER: {figure}, by the {name} attacker ({lowest.method}; 50 % is chance{beside})."


def _print_open(results: Results, paragraph: Callable[..., None]) -> None:
    """Print untested attackers, and how many checks passed, failed or could not be made."""
    from veilmeter.results.trust import doubts, open_questions
    from veilmeter.wording import sentences, text

    if results.pending:
        paragraph("\nPreliminary. The same command without --no-wait measures the rest:", "bold")
        for line in sentences(results.pending):
            paragraph(f"  - {line}")
    if results.verdict.not_tested:
        paragraph("\nNot tested:", "bold")
        for line in sentences(results.verdict.not_tested):
            paragraph(f"  - {line}")
    uncertain = doubts(results) if results.verdict.trustworthy else []
    if uncertain:
        paragraph("\nThe alarm is certain. These self-checks failed all the same:", "bold")
        for doubt in uncertain:
            paragraph(f"  - {text(doubt)}")
    questions = open_questions(results)
    if questions:
        paragraph("\nCould not be checked:", "bold")
        for question in questions:
            paragraph(f"  - {text(question)}")
    passed = sum(check.passed is True for check in results.checks)
    failed = sum(check.failed for check in results.checks)
    unfit = [check.name for check in results.checks if check.passed is None and not check.applies]
    paragraph(
        f"\nTrust checks: {passed} passed, {failed} failed, {len(questions)} could not be made"
        + (f"; {len(unfit)} not applicable here ({', '.join(unfit)})." if unfit else ".")
    )


COMMAND_CLASS = Lists


@dataclass(frozen=True, kw_only=True)
class CommandOptions(OptionSet):
    """What only the command line has."""

    config: Path | None = declare(
        None, help="TOML file with the same options; those on the command line win.", argument=True,
        example="other.toml",
    )  # fmt: skip
    scores: tuple[str, ...] = declare(
        (), help="Scores of another system to measure, with --trials as their key.", metavar="ATTACKER=FILE",
        group=ATTACKERS, path=place_named, example="ignorant=other-scores",
    )  # fmt: skip


OPTIONS = (Settings, CommandOptions, RunOptions)


def command(given: Given) -> None:
    """Assess an anonymizer with every attacker and every measure.

    Prints the worst case for each criterion, who is at risk, what was not tested, and whether the result can be
    relied on. Writes results.json and a report.
    """
    from functools import partial

    from veilmeter.assessment import assess_challenge
    from veilmeter.assessment.run import run_assessment
    from veilmeter.assessment.stages import Forecast
    from veilmeter.core.engine import cores

    config = given.build(CommandOptions).config
    values = {} if config is None else read_settings(config)
    in_file = {name: values.pop(name) for name in options_of(RunOptions) if name in values}
    try:
        place: RunOptions = build(RunOptions, in_file | given.values(RunOptions))
    except InputError as error:
        raise InputError(error.what, path=error.path or config, fix=error.fix) from None
    if place.out is None:
        raise InputError("a folder for the results is required", fix="give --out RUN")
    settings = make_settings(_merge(values, given), where=config)
    with terminal.AssessmentDisplay(quiet=place.quiet) as display:
        how: dict[str, Any] = {
            "jobs": place.jobs or cores(),
            "cluster": place.cluster,
            "argv": ["veilmeter", *sys.argv[1:]],
            "say": display.say,
            "forecast": Forecast(display.show),
        }
        if settings.vpc is not None:
            first = partial(_show_first_sets, place=place, display=display)
            challenge = assess_challenge(settings, place.out, first=first, **how)
        else:
            first = partial(_show_first, place=place, display=display)
            assessment = run_assessment(settings=settings, out=place.out, first=first, **how)
    if settings.vpc is not None:
        _show_challenge(challenge, place)
    else:
        _show(assessment, place)


def _merge(values: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """The settings of the file, and over them those of the command line."""
    names, scores = given.words.get("attackers", ()), given.words.get("scores", ())
    merged = {**values, **{name: value for name, value in given.values(Settings).items() if name != "attackers"}}
    if names or scores:
        measures = merged.get("measures", MEASURES)
        measures = (measures,) if isinstance(measures, str) else measures
        merged["attackers"] = with_attackers(values.get("attackers"), names, scores, measures)
    return merged


def with_attackers(
    tables: Any, names: Sequence[str] = (), scores: Sequence[str] = (), measures: Sequence[str] = MEASURES
) -> dict[str, Any]:
    """The attackers of a file of settings, with what the command line says of them: only these names, whose tables
    stay, and score files as ATTACKER=FILE, instead of those in the file.

    >>> with_attackers({"ignorant": {}, "informed": {"backend": "plda"}}, ["informed"], ["informed=a", "informed=b"])
    {'informed': {'backend': 'plda', 'scores': ['a', 'b']}}
    """
    from veilmeter.attacks.attacker import BASELINE, attacker_name, attackers_for

    chosen = attacker_tables(tables)
    if names:
        kept = {BASELINE: chosen[BASELINE]} if BASELINE in chosen else {}
        chosen = kept | {name: chosen.get(name, {}) for name in attacker_tables(names)}
    files: dict[str, list[str]] = {}
    for text in scores:
        name, equals, file = text.partition("=")
        if not equals:
            raise InputError(f"--scores {text}: which attacker?", fix="write --scores ignorant=FILE")
        files.setdefault(attacker_name(name), []).append(file)
    if files and not set(chosen) - {BASELINE}:  # scores of one attacker leave the others in
        chosen |= {name: {} for name in attackers_for(measures)}
    for name, of_name in files.items():
        chosen[name] = {**chosen.get(name, {}), "scores": of_name}
    return chosen


def _show_first(assessment: Assessment, place: RunOptions, display: terminal.AssessmentDisplay) -> bool:
    """Print the verdict that is known before utility and further extractors, and write the page; returns whether to
    wait for these."""
    report = _report(assessment) if place.report else None
    if place.wait and not place.json:
        with display.pause():
            _print_first(assessment.results)
            print(f"Report: {report or assessment.folder}\n", flush=True)
    return place.wait


def _print_first(results: Results) -> None:
    from rich.text import Text

    from veilmeter.core.text import clean
    from veilmeter.wording import sentences, text

    console = terminal.console()
    doubt = "" if results.verdict.trustworthy else "NOT TRUSTWORTHY. "
    console.print(Text(clean(f"First verdict: {doubt}{text(results.verdict.headline)}", keep="\n"), style="bold"))
    for line in sentences(results.pending):
        console.print(Text(clean(f"  - {line}")))


def _show(assessment: Assessment, place: RunOptions) -> None:
    from veilmeter.cli.terminal import Exit

    assert assessment.folder is not None
    folder = assessment.folder
    report = folder / "report.html" if assessment.results.pending and place.report else None  # written before
    if place.report and report is None:
        report = _report(assessment)
    if place.json:
        from veilmeter.core.files import to_json
        from veilmeter.results.run_folder import results_to_json

        print(to_json(results_to_json(assessment.results)))
    else:
        print_verdict(assessment.results, folder, report, signatures=place.signature)
        if assessment.real_time_factor is not None:
            factor = f"{assessment.real_time_factor:.3g} processor seconds per second of speech"
            print(f"Real-time factor of the anonymizer: {factor} (timings.json)")
    if assessment.left_out:
        raise typer.Exit(Exit.LEFT_OUT)


def _show_first_sets(challenge: ChallengeAssessment, place: RunOptions, display: terminal.AssessmentDisplay) -> bool:
    """The first verdicts of all sets, before utility and further extractors; returns whether to wait for these."""
    if place.report:
        for assessment in challenge.sets.values():
            _report(assessment)
    if place.wait and not place.json:
        with display.pause():
            for name, assessment in challenge.sets.items():
                print(f"{name} ({assessment.results.verdict.level})")
                _print_first(assessment.results)
            print(flush=True)
    return place.wait


def _show_challenge(challenge: ChallengeAssessment, place: RunOptions) -> None:
    """A paragraph per set, the table in the challenge's form, and what was not used."""
    from veilmeter.cli.terminal import Exit
    from veilmeter.core.text import clean

    if place.report:
        for assessment in challenge.sets.values():
            _report(assessment)
    if place.json:
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
            print(clean(f"{name} ({assessment.results.verdict.level}): {doubt}{assessment.headline}", keep="\n"))
            print(clean(f"{_lowest_eer(assessment.results) or ''}\n", keep="\n"))
            for criterion in assessment.results.criteria.values() if place.signature else ():
                print(clean(f"  {criterion.estimate.signature}"))
        print(clean(challenge.table, keep="\n"))
        if challenge.not_used:
            print(f"Not used ({len(challenge.not_used)}, see not_used.jsonl):")
            for problem in challenge.not_used:
                print(clean(f"  - {problem}"))
        print(clean(f"Results: {challenge.folder}/*/results.json   Table: {challenge.folder}/result_for_rank*"))
    if challenge.left_out:
        raise typer.Exit(Exit.LEFT_OUT)


def _report(assessment: Assessment) -> Path | None:
    """The HTML page, beside the results."""
    if assessment.folder is None:
        return None
    from veilmeter.report import write_report

    return Path(write_report(assessment))
