"""What stands under the title: what would be released, the anonymizer, who assessed it and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.results.model import Results

MOST_PARAMETERS = 3  # of the anonymizer; the technical part has all of them


def facts(results: Results, created: str = "") -> tuple[str, ...]:
    """One line: the release, the anonymizer, the assessment, the version."""
    lines = [release_words(results), f"Anonymizer: {anonymizer_words(results) or 'not named'}"]
    assessed = assessed_words(results, created)
    return (*(line for line in (*lines, assessed) if line), f"veilmeter {results.version}")


def release_words(results: Results) -> str:
    """People, recordings and hours; empty where no speech is known."""
    entry = results.inputs.get("anonymized") or results.inputs.get("original")
    if entry is None:
        return ""
    hours = f", {duration(entry.hours)} of speech" if entry.hours else ""
    return f"{entry.speakers:,} people, {entry.utterances:,} recordings{hours}"


def anonymizer_words(results: Results) -> str:
    """What the user calls the anonymizer, else its name, version and settings as its manifest has them."""
    named = str(results.settings.get("system_name") or "")
    entry = results.inputs.get("anonymized")
    if named or entry is None:
        return named
    name = str(entry.details.get("anonymizer") or "")
    version = str(entry.details.get("anonymizer_version") or "")
    return f"{name}{f', version {version}' if version else ''}{_parameters(entry.details)}" if name else ""


def _parameters(details: Mapping[str, Any]) -> str:
    given = details.get("anonymizer_parameters")
    pairs = [f"{key} {value}" for key, value in given.items()] if isinstance(given, Mapping) else []
    more = ", …" if len(pairs) > MOST_PARAMETERS else ""
    return f" ({', '.join(pairs[:MOST_PARAMETERS])}{more})" if pairs else ""


def assessed_words(results: Results, created: str = "") -> str:
    """Who assessed it, when, and on how many people where these were not all of them."""
    entry = results.inputs.get("anonymized")
    assessed = results.protocol.trial_speakers
    part = "" if entry is not None and entry.speakers == assessed else f" on {assessed:,} of them"
    who = str(results.settings.get("assessor") or "")
    return f"Assessed{part}{f' on {created}' if created else ''}{f' by {who}' if who else ''}"


def duration(hours: float) -> str:
    """
    >>> duration(0.1874), duration(3.26), duration(0.01)
    ('11 minutes', '3.3 hours', '1 minute')
    """
    minutes = max(1, round(60 * hours))
    if minutes < 90:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{hours:.2g} hours" if hours < 100 else f"{hours:,.0f} hours"
