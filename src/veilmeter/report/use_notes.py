"""Remarks under the section on use: which words get lost, and whose speech suffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.results.model import Results

MOST_WORDS, MOST_SUFFERING = 10, 5


def use_notes(results: Results) -> tuple[str, ...]:
    """Nothing where use was not measured. Words may name people: a page that names nobody only counts them."""
    part = results.parts.get("utility")
    if part is None:
        return ()
    notes = [_recordings(part.details), _words(part.details), _suffering(part.details)]
    return tuple(note for note in notes if note)


def _recordings(details: Mapping[str, Any]) -> str:
    if "recordings" not in details:
        return ""
    heard, rated = int(details["recordings"]), int(details.get("rated") or 0)
    quality = f"; {rated:,} of them were rated for their quality" if rated else ""
    return f"Measured on {heard:,} of {details.get('available', heard):,} recordings{quality}."


def _words(details: Mapping[str, Any]) -> str:
    pairs = details.get("substitutions")
    if pairs:
        listed = ", ".join(f"“{p['said']}” as “{p['heard']}” ({p['times']} times)" for p in pairs[:MOST_WORDS])
        return f"Words most often taken for others: {listed}."
    if "deleted_words" not in details:
        return ""
    return (
        f"{details['deleted_words']:,} words were not heard at all and {details['inserted_words']:,} were heard that "
        "nobody said. Which words are taken for others is in results.json, as words may name people."
    )


def _suffering(details: Mapping[str, Any]) -> str:
    people = [person for person in details.get("people") or () if isinstance(person.get("wer"), int | float)]
    worst = sorted(people, key=lambda person: -person["wer"])[:MOST_SUFFERING]
    listed = ", ".join(
        f"{p['speaker']} {p['wer']:.0f} (original {p.get('wer_original', 0):.0f}; {p['recordings']} recording"
        f"{'' if p['recordings'] == 1 else 's'})"
        for p in worst
    )
    return f"Whose speech suffers most, in wrong words per 100: {listed}." if worst else ""
