"""Sentences of the assessment for readers who do not know the field: no options, no names of methods alone."""

from __future__ import annotations

import re

from veilmeter.attacks.knowledge import known_attackers, plain_words
from veilmeter.core.estimate import Estimate
from veilmeter.report.rows import added, section_of
from veilmeter.report.texts import NEVER_TESTED, USE
from veilmeter.results.model import Results
from veilmeter.speech.extractors.base import HABITS, extractor_label, unheard_habits

MOST_UNTESTED = 2
_OPTION = re.compile(r"\s*\(--[^)]*\)")  # of the command, which the first page does not speak of


def not_tested(results: Results, *, most: int | None = MOST_UNTESTED) -> tuple[str, ...]:
    """What was not tested: attackers in plain words with their names beside, at most so many of this run's."""
    listed = [untested(text) for text in results.verdict.not_tested]
    if most is not None and len(listed) > most:
        listed = [*listed[:most], f"{len(listed) - most} more, listed in the annex."]
    return (*listed, *never_tested(results))


def never_tested(results: Results) -> tuple[str, ...]:
    """What no run tests, and the habits of speech that no attacker of this run listened for."""
    further = [attacker.extractor for attacker in results.attacks.values() if attacker.extractor]
    first = extractor_label(str((results.extractor or {}).get("name", "")))
    unheard = unheard_habits([first, *further])
    habits = ", habits of speech" if unheard else ""
    if unheard and unheard != HABITS:
        habits += f" ({', '.join(unheard)})"
    return tuple(text.format(habits=habits) for text in NEVER_TESTED)


def untested(text: str) -> str:
    """One reason in plain words.

    >>> untested("lazy-informed attacker: not asked for (--attackers)")
    'Someone who has your anonymizer (lazy-informed): not asked for.'
    """
    plain = _OPTION.sub("", text)
    name, colon, reason = plain.partition(" attacker: ")
    if colon and name in known_attackers():
        who = plain_words(name, known_attackers()[name].about).who
        plain = f"{who} ({name}): {reason}"
    return f"{plain[:1].upper()}{plain[1:].removesuffix('.')}."


def use(results: Results) -> tuple[str, ...]:
    """What is left of words, quality and melody; nothing where that was not measured."""
    part = results.parts.get("utility")
    if part is None:
        return ()
    sentences = []
    for name in part.estimates.names:
        point = part.estimates.single(name)
        if point is None or (name not in USE and section_of(name) == "utility" and not added(name)):
            continue
        before = part.estimates.single(f"{name}_original") or part.reference.single(name)
        words, digits = USE.get(name, (f"{point.label}: {{figure}}", 1))
        was = "" if before is None else f" (original speech: {before.value:.{digits}f})"
        sentences.append(f"{words.format(figure=_figure(point, digits))}{was}.")
    return tuple(sentences)


def _figure(point: Estimate, digits: int) -> str:
    """
    >>> _figure(Estimate(name="wer", value=49.53, interval=(34.46, 64.59)), 0)
    '50 [34 to 65]'
    """
    interval = "" if point.interval is None else " [{:.{d}f} to {:.{d}f}]".format(*point.interval, d=digits)
    return f"{point.value:.{digits}f}{interval}"
