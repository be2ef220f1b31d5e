"""`veilmeter utility`: what anonymized speech is still good for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.cli.command import Given, Lists
from veilmeter.cli.shared_options import recognizer
from veilmeter.core import option_groups
from veilmeter.core.devices import choose_device
from veilmeter.core.findings import Finding, Reference, first_speakers
from veilmeter.core.option_groups import MORE, OutputForms, Workers
from veilmeter.core.options import declare
from veilmeter.data.corpus import CorpusReading

if TYPE_CHECKING:
    from veilmeter.results.model import Part

COMMAND_CLASS = Lists


@dataclass(frozen=True, kw_only=True)
class UtilityOptions(CorpusReading, Workers, OutputForms):
    """The options of the command."""

    original: Path = declare(help="Original speech in any known layout.", path=True, example="changed")
    anonymized: Path = declare(help="The same utterances anonymized.", path=True, example="speech")
    recognizer: str | None = recognizer()
    language: str | None = option_groups.language()
    precision: float = declare(
        3.0, help="Stop when the word error rate is known within this many percentage points.", above=0, example=50
    )
    budget: float = declare(60.0, help="Processor seconds to spend, on an ordinary core.", above=0, example=1000)
    recordings: int | None = declare(
        None, help="Fixed number of recordings to measure, spread evenly over the speakers.", least=1, example=3,
        default_text="until precise",
    )  # fmt: skip
    rated: int | None = declare(
        None, help="Fixed number of recordings to rate for quality, which takes longest.", least=0, example=2,
        default_text="until precise",
    )  # fmt: skip
    by: tuple[str, ...] = declare(
        ("gender",), help="Also measure within each value of this attribute.", metavar="ATTRIBUTE", group=MORE,
        example="speaker",
    )  # fmt: skip
    offline: bool = option_groups.offline()
    device: str = option_groups.device()
    quiet: bool = option_groups.quiet()


OPTIONS = (UtilityOptions,)


def command(given: Given) -> None:
    """Measure how well words, quality, melody and timing survive.

    Every figure is paired by utterance with the original speech, with an interval over speakers. Words are compared
    with the corpus's text if it has one, else with the transcript of the original recording.

    Examples:

        veilmeter utility --original speech/ --anonymized anonymized/
        veilmeter utility --original reden/ --anonymized anonym/ --language de --json
    """
    from contextlib import closing

    from veilmeter.anonymizers.manifest import real_time_factor
    from veilmeter.assessment.speech import read_sources
    from veilmeter.assessment.utility import UtilitySettings, measure_utility
    from veilmeter.cli.output import Form, Page, emit, output_form
    from veilmeter.cli.shared_options import exit_if_left_out, remarks_on_reading
    from veilmeter.cli.terminal import show_progress, stages
    from veilmeter.core.engine import open_engine
    from veilmeter.core.text import clean
    from veilmeter.data.corpus import SIDES

    options = given.build(UtilityOptions)
    choose_device(options.device)
    form = output_form(options)
    sides = zip(SIDES, (options.original, options.anonymized), strict=True)
    before, after = read_sources(sides, options).values()
    chosen = UtilitySettings(
        recognizer=options.recognizer, language=options.language, recordings=options.recordings, rated=options.rated,
        precision=options.precision, budget=options.budget, groups=options.by, offline=options.offline,
    )  # fmt: skip
    with (
        closing(open_engine(options.jobs, options.cluster)) as engine,
        show_progress("listening", quiet=options.quiet) as progress,
    ):
        measured = measure_utility(
            before, after, chosen, engine=engine, say=stages(quiet=options.quiet), progress=progress,
            real_time_factor=real_time_factor([after.root]),
        )  # fmt: skip
    inputs = {
        "original": {"path": str(options.original), "layout": before.layout, "utterances": len(before)},
        "anonymized": {"path": str(options.anonymized), "layout": after.layout, "utterances": len(after)},
    }
    emit(
        Page(
            f"Utility of {options.anonymized}",
            {name: measured.estimates[name] for name in measured.estimates.names},
            inputs=inputs,
            warnings=[
                *_warnings(measured),
                *remarks_on_reading(given, options, before, after),
                *_without_effect(given, measured),
            ],
            notes=_notes(measured),
            more={"by": _groups(measured), "utility": dict(measured.details)},
        ),
        form,
    )
    left_out = [finding for finding in measured.findings if finding.code == "recordings_not_heard"]
    if left_out and form is Form.TABLE:
        print(clean(f"List of what was left out: veilmeter check {options.original} {options.anonymized}"))
    exit_if_left_out(left_out)


def _without_effect(given: Given, utility: Part) -> list[Finding]:
    """Options that could not end the measurement before all recordings were measured."""
    from veilmeter.assessment.settings import CUT, STOPS
    from veilmeter.assessment.utility import utility_limits

    limits = utility_limits(utility)
    reasons = {"precision": (STOPS, limits["could_stop"]), "budget": (CUT, limits["is_cut"])}
    return given.without_effect({name: "" if acts else str(rule.reason) for name, (rule, acts) in reasons.items()})


def _warnings(utility: Part) -> list[Finding]:
    from veilmeter.results.trust import check_speech

    check = check_speech(utility)
    return [*([check.finding] if not check.passed else []), *utility.findings]


def _notes(utility: Part) -> list[Finding]:
    """How it was measured, and the words that suffer most."""
    from veilmeter.core.findings import Finding

    details = utility.details
    notes = [
        Finding.of(
            "utility_basis",
            recordings=details["recordings"],
            available=details["available"],
            rated=details["rated"],
            language=details["language"],
            language_from=details["language_from"],
            reference="corpus" if details["reference"] == "corpus" else "recognizer",
        )
    ]
    rows = details["substitutions"][:8]
    if rows:
        said, heard = (tuple(Reference("text", str(row[side])) for row in rows) for side in ("said", "heard"))
        times = tuple(int(row["times"]) for row in rows)
        notes.append(Finding.of("words_confused", said=said, heard=heard, times=times))
    people = [row for row in details["people"][:5] if "wer" in row]
    if people:
        speakers = first_speakers([row["speaker"] for row in people])
        notes.append(Finding.of("words_suffer", speakers=speakers, percents=tuple(float(row["wer"]) for row in people)))
    return notes


def _groups(utility: Part) -> dict[str, Any]:
    return {
        attribute: {value: estimates.to_json() for value, estimates in values.items()}
        for attribute, values in utility.by.items()
    }
