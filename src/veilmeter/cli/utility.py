"""`veilmeter utility`: what anonymized speech is still good for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.cli.lists import Lists
from veilmeter.core.findings import Finding

if TYPE_CHECKING:
    from veilmeter.results.model import Part

COMMAND_CLASS = Lists


def command(
    ctx: typer.Context,
    original: Annotated[Path, typer.Option(help="The original speech, in any known layout.", show_default=False)],
    anonymized: Annotated[Path, typer.Option(help="The same utterances, anonymized.", show_default=False)],
    recognizer: options.Recognizer = "moonshine",
    language: options.Language = None,
    recordings: Annotated[
        int, typer.Option(min=1, help="Listen to at most so many recordings, as many of each person as can be.")
    ] = 100,
    rated: Annotated[
        int, typer.Option(min=0, help="Predict the quality of at most so many of them; this takes longest.")
    ] = 30,
    by: Annotated[
        list[str] | None, options.several("ATTRIBUTE", "Also within groups; by default gender, where it is known.",
                                          options.MORE)
    ] = None,
    layout: options.Layout = None,
    part: options.Part = None,
    suffix: options.Suffix = None,
    root: options.Roots = None,
    columns: options.Columns = None,
    channel: options.Channel = None,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    offline: options.Offline = False,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """Measure what anonymized speech is still good for: words, predicted quality, melody, timing, level.

    Every figure is paired by utterance with the original speech, with an interval over speakers. Words are compared
    with the corpus's text where it has one, else with what the recognizer hears in the original.

    Examples:

        veilmeter utility --original speech/ --anonymized anonymized/
        veilmeter utility --original reden/ --anonymized anonym/ --recognizer whisper --language de --json
    """
    from contextlib import closing

    from veilmeter.anonymizers.timings import real_time_factor
    from veilmeter.assessment.settings import Settings
    from veilmeter.assessment.sources import read_sources
    from veilmeter.assessment.utility import UtilitySettings, measure_utility
    from veilmeter.cli.corpora import remarks_on_reading
    from veilmeter.cli.output import Page, chosen_form, emit
    from veilmeter.cli.progress import shown, stages
    from veilmeter.core.engine import open_engine

    form = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    reading = Settings(
        layout=layout, part=part, suffix=suffix, root=tuple(map(str, root or ())), columns=tuple(columns or ()),
        channel=channel,
    )  # fmt: skip
    sides = (("original", original), ("anonymized", anonymized))
    before, after = read_sources(sides, reading).values()
    chosen = UtilitySettings(
        recognizer=recognizer, language=language, recordings=recordings, rated=rated,
        groups=tuple(by or ("gender",)), offline=offline,
    )  # fmt: skip
    with closing(open_engine(jobs, cluster)) as engine, shown("listening", quiet=quiet) as progress:
        measured = measure_utility(
            before, after, chosen,
            engine=engine, say=stages(quiet=quiet), progress=progress, real_time_factor=real_time_factor([after.root]),
        )  # fmt: skip
    inputs = {
        "original": {"path": str(original), "layout": before.layout, "utterances": len(before)},
        "anonymized": {"path": str(anonymized), "layout": after.layout, "utterances": len(after)},
    }
    emit(
        Page(
            f"Utility of {after.root.name}",
            {name: measured.estimates[name] for name in measured.estimates.names},
            inputs=inputs,
            warnings=[*_warnings(measured), *remarks_on_reading(ctx, before, after)],
            notes=_notes(measured),
            more={"by": _groups(measured), "utility": dict(measured.details)},
        ),
        form,
    )


def _warnings(utility: Part) -> list[Finding]:
    from veilmeter.results.trust import still_speech

    check = still_speech(utility)
    return [*([check.finding] if not check.passed else []), *utility.findings]


def _notes(utility: Part) -> list[str]:
    """How it was measured, and the words that suffer most."""
    details = utility.details
    reference = "the corpus's text" if details["reference"] == "corpus" else "what the recognizer hears in the original"
    notes = [
        f"{details['recordings']} of {details['available']} pairs of recordings, {details['rated']} of them rated; "
        f"language {details['language']} ({details['language_from']}); words are compared with {reference}."
    ]
    taken = [f"{row['said']} → {row['heard']} ({row['times']})" for row in details["substitutions"][:8]]
    if taken:
        notes.append("Most often taken for another: " + ", ".join(taken))
    suffering = [f"{row['speaker']} {row['wer']:.0f} %" for row in details["people"][:5] if "wer" in row]
    if suffering:
        notes.append("Whose words suffer most: " + ", ".join(suffering))
    return notes


def _groups(utility: Part) -> dict[str, Any]:
    return {
        attribute: {value: estimates.to_json() for value, estimates in values.items()}
        for attribute, values in utility.by.items()
    }
