"""Titles, introductions, captions and table cells of the report: text that explains findings and is not one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veilmeter.core.estimate import Estimate
from veilmeter.wording.citations import cite
from veilmeter.wording.numbers import capitalize, count, hundred_cells, of_hundred, span

# In plain words, for the first page. "attribute" is filled in.
CRITERIA = {
    "linking": "Linking recordings to a person",
    "singling_out": "Singling somebody out",
    "inference": "Inferring {attribute}",
    "disclosure": "Information disclosed",
    "inversion": "Undoing the anonymization",
    "distinctiveness": "Voices kept apart",
}

# The same three criteria as Opinion 05/2014 and as Guidelines 02/2026 call them.
LEGAL_NAMES = {
    "linking": ("linkability", "No Linkage"),
    "singling_out": ("singling out", "No Record Isolation"),
    "inference": ("inference", "No Inference"),
}
NOT_MEASURED = "not measured"
# A criterion that is missing: why, and what to give.
MISSING = {
    "scores": "Only scores were given, which do not tell {attack}. Assess recordings or embeddings.",
    "left_out": "The assessment left it out. Add {family} to --measures.",
    "no_attribute": "No attribute of the speakers is known. Add a column such as gender, age or accent to the list of "
    "recordings or to the embeddings.",
    "few_have_attribute": "Too few people have the same {attribute}: inferring it takes two values with at least "
    "{least} people each. Assess more people.",
    "too_little": "There are too few people or recordings to measure it. Assess more people, with several recordings each.",
}
MISSING_ATTACKS = {
    "linking": "whom an attacker names",
    "singling_out": "whether a rule fits exactly one person",
    "inference": "what can be inferred about a speaker",
}

LEVELS = {"low": "near guessing", "raised": "raised", "high": "high", "unknown": "not known"}
DISTINCTNESS = {"low": "kept apart", "raised": "less distinct", "high": "lost", "unknown": "not known"}

# The checks in plain words, where they passed and where they failed, for the first page; those without are for the
# technical part.
CHECKS = {
    "strong on original speech": (
        "The attacker recognizes people in original speech.",
        "The attacker hardly recognizes people even in original speech.",
    ),
    "adaptation helps": (
        "No attacker who knows more finds significantly less.",
        "An attacker who knows more finds significantly less.",
    ),
    "anonymized differs from original": ("All recordings were changed.", "Some recordings seem hardly changed."),
    "recordings have their own ids": ("", "Recordings seem to have the ids of other people's."),
    "no copies in enrollment and trials": (
        "No recording is on both sides of the comparison.",
        "Some recordings are on both sides of the comparison.",
    ),
    "enough speakers": (
        "Enough people were assessed for this claim.",
        "Too few people were assessed for a precise figure.",
    ),
    "training speakers are others": (
        "Attackers were not trained on the people they look for.",
        "Attackers were trained on the people they look for.",
    ),
    "enrollment and trials of different sessions": (
        "Rooms and microphones hardly play a part.",
        "Rooms or microphones may have been recognized instead of voices.",
    ),
    "attackers ran the anonymizer": (
        "The attackers could run your anonymizer themselves.",
        "The attackers ran something else than your anonymizer.",
    ),
}

ATTACKS = {
    "linking": "the attacker compares each anonymized recording with recordings of known people and names the most similar person.",
    "singling_out": "the attacker looks for a rule about voices that fits exactly one person in the data, even without knowing who it is.",
    "disclosure": "the attacker compares two recordings and takes the similarity as evidence for or against their being of one person.",
    "inversion": "the attacker learns to undo the anonymizer from recordings known in both forms, or from two unpaired sets.",
    "inference": "the attacker guesses attributes of the speaker from the anonymized voice.",
}  # fmt: skip

# --- headings and notes, the same in every form of the report

TITLES = {
    "decision": "Decision",
    "question": "To decide:",
    "sign": "Decide and sign",
    "pending": "Preliminary: not everything has been measured yet. This page is replaced when it has.",
    "annex": "Annex for the file",
    "annex_short": "Annex",
    "people": "People",
    "technical": "Technical part",
    "method": "Method",
    "opinion": "The three criteria of European data protection authorities",
    "who": "Who could do this",
    "release": "In the whole release",
    "reliance": "Can you rely on this?",
    "not_tested": "What was not tested",
    "next": "What to do next",
    "use": "Is it still usable?",
    "strip": "Everybody, by risk",
    "overview": "The worst case, criterion by criterion",
    "checks": "Trust checks",
    "warnings": "Warnings and remarks",
    "by_person": "Person by person",
    "assessed": "What was assessed",
    "attackers": "Attackers, and what each attack costs",
    "measures": "Measures",
    "references": "References",
    "repeat": "How to repeat it",
    "parameters": "Parameters, versions, seeds and input hashes",
    "glossary": "Glossary",
    "side_by_side": "Side by side",
    "numbers": "Numbers on this page",
    "differences": "Differences",
    "settings": "Settings that differ",
    "listen": "Listen to the systems",
    "leaderboard": "Systems by measures",
}
NOTES = {
    "annex": "The entries of an anonymization report or a data protection impact assessment, filled in from the results. These are measurements, not a legal opinion.",
    "opinion": "Names: Opinion 05/2014 (WP216) · EDPB Guidelines 02/2026 (draft for public consultation). Dot: value; band: 95 % interval; dashed: guessing. Levels are not a legal judgment.",
    "undrawn": "This figure was not drawn when the page was printed.",
    "overview": "The strongest attacker that was run, for every criterion that was measured.",
    "bars": "The bar runs from 0 to the highest possible value; the dot is the measured value, the band its 95 % interval, the dashed line guessing.",
    "method": "Attackers, measures, what was assessed, how to repeat it, glossary.",
    "pseudonyms": "Names are pseudonyms made for this report. To find out who they are, run: veilmeter report RUN --show-ids",
    "choose": "Choose a person in the table to see them in every figure.",
    "strip": "Choose a dot to see that person.",
    "strip_sound": "Choose a dot to see that person and, where it has a ♪, to hear them.",
    "before": "before",
    "after": "after",
    "named": "the strongest attacker named",
    "by_person": "What each channel discloses about each person, in bits, and how many of 100 recordings it links to them.",
    "not_measured": "This was not measured.",
    "settings": "Settings that were not the same in all runs.",
    "cells": "Each cell is the strongest attacker that was run against that system: how often it succeeds, in percent, or how much of all there is to know it learns; the 95 % interval in brackets; and what guessing gives.",
    "significant": "Paired by speaker where the measure allows it. A difference is called significant if chance hardly explains it, considering how many differences are compared (Holm's rule).",
    "holds_recordings": "This page contains recordings, original and anonymized.",
    "treat_recordings": "Treat it as you treat the recordings themselves.",
    "complete": "This page is complete in itself: it loads nothing and sends nothing.",
    "footer_recordings": "It contains recordings.",
    "footer_nobody": "It names nobody.",
}
# How many people are found; the page's script fills it in, too. An attacker who has fewer candidates than there are
# people looks for these alone.
RELEASE_COUNT = {
    "all": "About {found} of the {listed} would be found.",
    "some": "In a release of {people}, about {found} of the {listed} that the attacker looks for would be found.",
    "one": "The one person that the attacker looks for would be found in about {found} of 100 cases.",
    "unknown": "It is not known how many of the {listed} that the attacker looks for would be found.",
    "model": "According to a model, ",
}


def release_count(
    people: int, listed: int, found: tuple[float, float, float], basis: str, estimate: Estimate | None = None
) -> str:
    """`estimate` is the share that the count was computed from.

    >>> release_count(1200, 20, (9.2, 6.1, 12.0), "measured")
    'In a release of 1,200 people, about 9 [6, 12] of the 20 people that the attacker looks for would be found.'
    >>> release_count(40, 40, (13.0, 8.0, 20.0), "model")
    'According to a model, about 13 [8, 20] of the 40 people would be found.'
    """
    kind = "unknown" if basis == "unknown" else "one" if listed == 1 else "all" if listed == people else "some"
    value, low, high = (100 * number if listed == 1 else number for number in found)
    counts = {"people": count(people, "person", "people"), "listed": count(listed, "person", "people")}
    number = span(value, (low, high))
    text = RELEASE_COUNT[kind].format(**counts, found=number if estimate is None else cite(number, estimate))
    return RELEASE_COUNT["model"] + text[:1].lower() + text[1:] if basis in ("model", "beyond") else text


MOST_TITLED = 4  # systems that a comparison's title names


def comparison_title(names: Sequence[str]) -> str:
    """
    >>> comparison_title(["B1", "B2"]), comparison_title(list("abcde"))
    ('B1 · B2', '5 anonymizers')
    """
    return " · ".join(names) if len(names) <= MOST_TITLED else f"{len(names)} anonymizers"


STATES = {"open": "could not be checked", "failed": "failed", "passed": "passed"}


# --- what is below the title


def release(people: int, recordings: int, hours: float | None) -> str:
    """
    >>> release(60, 480, 2.05), release(1, 1, None)
    ('60 people, 480 recordings, 2 hours of speech', '1 person, 1 recording')
    """
    amount = f", {duration(hours)} of speech" if hours else ""
    return f"{count(people, 'person', 'people')}, {count(recordings, 'recording')}{amount}"


def duration(hours: float) -> str:
    """
    >>> duration(0.1874), duration(3.26), duration(0.01)
    ('11 minutes', '3.3 hours', '1 minute')
    """
    minutes = max(1, round(60 * hours))
    if minutes < 90:
        return count(minutes, "minute")
    return f"{hours:.2g} hours" if hours < 100 else f"{hours:,.0f} hours"


MOST_PARAMETERS = 3  # of the anonymizer; the technical part has all of them


def anonymizer(name: str, version: str = "", parameters: Mapping[str, object] | None = None) -> str:
    """
    >>> anonymizer("mcadams", "1", {"alpha": 0.8})
    'mcadams, version 1 (alpha 0.8)'
    """
    pairs = [f"{key} {value}" for key, value in (parameters or {}).items()]
    more = ", …" if len(pairs) > MOST_PARAMETERS else ""
    given = f" ({', '.join(pairs[:MOST_PARAMETERS])}{more})" if pairs else ""
    return f"{name}{f', version {version}' if version else ''}{given}"


def anonymizer_line(words: str) -> str:
    return f"Anonymizer: {words or 'not named'}"


def assessment_line(people: int, *, everybody: bool, created: str, assessor: str, released: bool = True) -> str:
    """
    >>> assessment_line(20, everybody=False, created="2026-11-16", assessor="the privacy team")
    'Assessed on 20 of them on 2026-11-16 by the privacy team'
    """
    part = "" if everybody else f" on {people:,} of them" if released else f" on {count(people, 'person', 'people')}"
    return f"Assessed{part}{f' on {created}' if created else ''}{f' by {assessor}' if assessor else ''}"


# --- where a figure was measured


def recordings_each(length: int) -> str:
    """
    >>> recordings_each(1), recordings_each(3)
    ('1 recording each', '3 recordings each')
    """
    return f"{count(length, 'recording')} each"


def parameter(key: str, value: float | int | str) -> str:
    if key == "speakers":
        return count(int(value), "person", "people")
    if key == "length":
        return recordings_each(int(value))
    return f"{key} {value}"


def where(point: Estimate) -> str:
    """`, 20 people, 3 recordings each`: the parameters of a point in words."""
    return "".join(f", {parameter(key, value)}" for key, value in point.at.items())


def in_group(group: Mapping[str, str]) -> str:
    """`, gender f`"""
    return "".join(f", {attribute} {value}" for attribute, value in group.items())


# --- the dots, the bars and the attackers of the first page

RELEASE_DOTS, ORIGINAL_DOTS, GUESSING_DOTS = "This release", "Not anonymized", "Guessing"


NO_BREAK = "\N{NO-BREAK SPACE}"


def dots(point: Estimate) -> str:
    """`71 of 100 [64, 78]`, which breaks before the interval."""
    value, interval = attacker_cells(point)
    return f"{value} {interval.replace(' ', NO_BREAK)}".strip()


def attacker_cells(point: Estimate, digits: int | None = None) -> tuple[str, str]:
    """`71 of 100` and `[64, 78]`."""
    value, interval = hundred_cells(point, digits)
    return cite(f"{value} of 100", point), interval


MOST_NAMED = 6


def person_dot(speaker: str, risk: Estimate) -> str:
    return f"{speaker}: {of_hundred(risk)} of 100 recordings linked"


NO_SINGLE_PERSON = "People are recognized, but for no single one of them can chance be ruled out."


def name_people(people: Sequence[str]) -> str:
    """
    >>> name_people(["P1", "P2"]), name_people([f"P{n}" for n in range(9)])
    ('P1, P2', 'P0, P1, P2, P3, P4, P5, …')
    """
    return ", ".join(people[:MOST_NAMED]) + (", …" if len(people) > MOST_NAMED else "")


def strip_caption(people: int, exposed: Sequence[str], cut: bool, recognized: bool = False) -> str:
    """`recognized` is that people are, even if nobody is exposed by name.

    >>> strip_caption(40, ("P34", "P14"), False).split(". ")[-1]
    'Exposed: 2 of 40 people (P34, P14).'
    """
    listed = f"{len(exposed):,} of {count(people, 'person', 'people')} ({name_people(exposed)})"
    told = f"Exposed: {listed}." if exposed else ""
    shown = " Those with the lowest risk are not shown." if cut else ""
    return (
        "Each dot is one person, by falling risk: the fuller, the more of their recordings are linked to them."
        f"{shown} {told or (NO_SINGLE_PERSON if recognized else 'Nobody is linked more often than not beyond chance.')}"
    )


def attacker_answer(name: str, right: bool) -> str:
    """
    >>> attacker_answer("P14", False)
    'P14 (wrong)'
    """
    return f"{name} ({'right' if right else 'wrong'})"


def guessing_dots(share: float) -> str:
    return f"about {share:.2g} of 100"


def dots_caption(point: Estimate, group: Mapping[str, str]) -> str:
    attempts = f"The 100 dots stand for all attempts{_attempt(point, group)}."
    return f"{attempts} Pale and dashed dots lie within the 95 % interval."


STRONGEST = "the strongest attacker that was run"
STRONGEST_OF_ALL = "the strongest of them, chosen on other people"
THE_SAME = "the attacker below, its number of recordings chosen on other people"
MOSTLY = "{strongest} (usually {who})"


def chosen_attacker(point: Estimate) -> str:
    """Who reaches a figure that was chosen on other people, beside the attackers' own figures."""
    return STRONGEST_OF_ALL if "several_attackers" in point.extra else THE_SAME


def attackers_caption(point: Estimate, group: Mapping[str, str], more: int) -> str:
    rest = f"; {more} more in the annex" if more > 0 else ""
    chosen = (
        " The best of several figures looks too good, so the one in the first row was chosen on other people."
        if "as_measured" in point.extra
        else ""
    )
    return f"In 100 attempts{_attempt(point, group)}{rest}.{chosen}"


def _attempt(point: Estimate, group: Mapping[str, str]) -> str:
    candidates = f", {count(int(point.at['speakers']), 'candidate')}" if "speakers" in point.at else ""
    return f": {recordings_each(int(point.at.get('length', 1)))}{candidates}{in_group(group)}"


def as_sentence(phrase: str) -> str:
    """
    >>> as_sentence("not asked for")
    'Not asked for.'
    """
    return capitalize(phrase.removesuffix(".")) + "."


def bar(point: Estimate) -> str:
    """A bar in words, for those who can't see it."""
    interval = f", interval {point.format_interval()}" if point.interval else ""
    guessing = f", guessing {point.format_null()}" if point.null is not None else ""
    return f"{point.label}: {point.format_value()}{interval}{guessing}"


def out_of_hundred(point: Estimate, guessing: str, of: Estimate) -> str:
    """`93 [87, 97] of 100, guessing 53`; `of` is what the share was computed from."""
    return f"{of_hundred(point, of)} of 100" + (f", guessing {guessing}" if guessing else "")


LEARNER = "someone who learns it from other people's anonymized speech"


def criterion_title(name: str, attribute: str) -> str:
    """
    >>> criterion_title("inference", "age"), criterion_title("from_elsewhere", "")
    ('Inferring age', 'From elsewhere')
    """
    return CRITERIA.get(name, capitalize(name.replace("_", " "))).format(attribute=attribute or "attributes")


def legal_names(name: str) -> str:
    """
    >>> legal_names("linking"), legal_names("disclosure")
    ('linkability · No Linkage', '')
    """
    return " · ".join(LEGAL_NAMES.get(name, ()))


def full_title(title: str, name: str) -> str:
    """A criterion with both of its legal names, for tables without a note on them.

    >>> full_title("Inferring gender", "inference")
    'Inferring gender (Opinion 05/2014: inference; Guidelines 02/2026, draft: No Inference)'
    """
    if name not in LEGAL_NAMES:
        return title
    opinion, guidelines = LEGAL_NAMES[name]
    return f"{title} (Opinion 05/2014: {opinion}; Guidelines 02/2026, draft: {guidelines})"


# --- people and channels


def people_columns(attackers: Sequence[str]) -> dict[str, str]:
    return {
        "speaker": "speaker", "risk": "highest risk", "interval": "95 % interval",
        **{name: name for name in attackers}, "gender": "gender", "deid": "similarity gone (%)",
        "original": "original speech",
    }  # fmt: skip


NOT_RECOGNIZED = "not recognized"  # of a person, on original speech


def people_introduction(expected_by_chance: float | None) -> str:
    text = (
        "The table lists the speakers by their highest risk over all attackers. A figure is the share of a speaker's "
        "anonymized recordings that an attacker linked to them, in percent."
    )
    if expected_by_chance is None:
        return text
    return f"{text} By chance alone, about {expected_by_chance:.2g} of them would be linked more often than not."


def people_left_out(number: int) -> str:
    return f"{count(number, 'more speaker')} with lower risk {_are(number)} in tables/speakers.parquet."


def person_risk(risk: Estimate) -> str:
    return f"{of_hundred(risk)} of 100 recordings are linked to them"


def channel_people_left_out(number: int) -> str:
    return f"{count(number, 'more person', 'more people')} {_are(number)} in results.json."


def channel_basis(length: int) -> str:
    return f"All figures are for {recordings_each(length)}."


def channel_person(bits: float, linked: float) -> str:
    return f"{round(bits, 1) + 0.0:.1f} bit, {linked:.0f} %"  # 0.0 is added as nobody discloses -0.0 bit


TOPIC = (
    "Words reveal the topic as well as the person: if everybody reads a different book, the book identifies them, not "
    "their way of speaking."
)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


# --- the technical part

# The material that figures of a part compare, where that is not an attacker.
COMPARED = {"similarity": "all pairs", "zebra": "all comparisons", "runs": "across two runs", "inversion": "inversion",
            "inference": "from anonymized speech", "sessions": "sessions", "utility": "all recordings"}  # fmt: skip
FROM_ORIGINAL = "from original speech"
MODELED = "†: an estimate of a model, not a measurement; less certain than its interval says"

ROLES = {
    "original": "Original speech",
    "anonymized": "Anonymized speech",
    "train_original": "Training speech, original",
    "train_anonymized": "Training speech, anonymized",
    "train_similar": "Training speech of a similar anonymizer",
    "distractors_original": "Original speech of distractors",
    "distractors": "Anonymized speech of distractors",
}


def role(name: str) -> str:
    """
    >>> role("train_original"), role("attacker_run_1")
    ('Training speech, original', 'Attacker run 1')
    """
    return ROLES.get(name, capitalize(name.replace("_", " ")))


def speech(speakers: int, recordings: int, hours: float | None) -> str:
    return f"{count(speakers, 'speaker')}, {count(recordings, 'recording')}" + (f", {duration(hours)}" if hours else "")


def reasons_text(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason.replace('_', ' ')}: {number:,}" for reason, number in reasons.items())


MOST_WORDS, MOST_SUFFERING = 10, 5


def use_recordings(measured: int, available: int, rated: int) -> str:
    quality = f"; {rated:,} of them were rated for their quality" if rated else ""
    return f"Measured on {measured:,} of {count(available, 'recording')}{quality}."


def substitutions(pairs: Sequence[Mapping[str, object]]) -> str:
    listed = ", ".join(f"“{p['said']}” as “{p['heard']}” ({p['times']} times)" for p in pairs[:MOST_WORDS])
    return f"Words most often mistaken for others: {listed}."


def word_losses(deleted: int, inserted: int) -> str:
    return (
        f"{count(deleted, 'word')} {'was' if deleted == 1 else 'were'} not recognized at all, and "
        f"{inserted:,} {'was' if inserted == 1 else 'were'} recognized that nobody said. "
        "Which words are mistaken for others is in results.json only, because words may name people."
    )


def suffering(people: Sequence[tuple[str, float, float, int]]) -> str:
    """Speaker, wrong words per 100, the same on original speech, recordings: the worst first."""
    listed = ", ".join(
        f"{speaker} {wer:.0f} (original {before:.0f}; {count(recordings, 'recording')})"
        for speaker, wer, before, recordings in people[:MOST_SUFFERING]
    )
    return f"Speakers with the most wrong words per 100: {listed}."


# --- the annex

# What attackers anonymized of the people they look for, by whose run it is.
ANONYMIZED_BY_ATTACKERS = {
    "own run": "the attackers' own anonymizer run, made without knowing the released run's draws",
    "released run": "the released run itself: if the anonymizer draws voices at random, attackers share these draws, "
    "which is more than a stranger has (--attacker-run gives them another run)",
}


def attacker_method(about: str, extractor: str) -> str:
    """The attacker's method, with the further extractor, if any."""
    return f"{about}; it uses the extractor {extractor}" if extractor else about
