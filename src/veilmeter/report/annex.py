"""The entries of an anonymization report or a data protection impact assessment, filled in from the results.

It states likelihoods and what they mean for people. Severity, acceptance and law are for those who sign.
"""

from __future__ import annotations

from dataclasses import dataclass

from veilmeter.attacks.attacker import plain_words
from veilmeter.report.decision import Decision, anonymizer_words, not_tested, release_words, same_or_largest
from veilmeter.report.rows import THREE, criterion_row
from veilmeter.results.model import Results
from veilmeter.results.verdict import LAWYER
from veilmeter.wording import sentence, sentences
from veilmeter.wording.english import page as words
from veilmeter.wording.numbers import capitalize, count, full

FILL_IN = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells that are empty are lines to fill in."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    title: str
    paragraphs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    table: Table | None = None


def annex(results: Results, decision: Decision, created: str = "") -> tuple[Chapter, ...]:
    """The chapters in their order."""
    return (
        _release(results, decision, created),
        _likelihood(results),
        _by_attacker(results),
        Chapter("Limit for the risk", (decision.limit or words.NO_LIMIT,)),
        _method(results),
        _reliance(decision),
        _residual(results, decision),
        Chapter(
            "Mitigations",
            (words.MITIGATIONS,),
            table=Table(
                ("measure", "why", "taken? by when, by whom"),
                tuple((item.text, item.reason or "–", FILL_IN) for item in decision.advice),
            ),
        ),
        Chapter("Open questions for a lawyer", items=sentences(LAWYER, "annex")),
        _sign_off(results, created),
    )


def _release(results: Results, decision: Decision, created: str) -> Chapter:
    rows = [
        ("What would be released", decision.title),
        ("People and recordings", release_words(results) or FILL_IN),
        ("Assessed", count(results.protocol.trial_speakers, "person", "people") + (f", {created}" if created else "")),
        ("Anonymizer and version", anonymizer_words(results) or FILL_IN),
        ("Purpose of the release", FILL_IN),
        ("Recipients", FILL_IN),
        ("Safeguards beside anonymization (contracts, access, deletion)", FILL_IN),
    ]
    return Chapter("The release", (f"{decision.headline} {decision.sentence}",), table=Table(("", ""), tuple(rows)))


def _likelihood(results: Results) -> Chapter:
    rows = []
    for name, attack in words.ATTACKS.items():
        if name in THREE or name in results.criteria:
            row = criterion_row(results, name)
            title = words.full_title(row.title, name)
            rows.append((title, capitalize(attack), f"{capitalize(row.level_text)}. {row.text}", FILL_IN))
    return Chapter(
        "Likelihood and severity per criterion",
        (words.LIKELIHOOD,),
        table=Table(("criterion", "attack", "likelihood", "severity for the people concerned"), tuple(rows)),
    )


def _by_attacker(results: Results) -> Chapter:
    linking = results.criteria.get("linking")
    rows = []
    for name, attacker in results.attacks.items():
        about = plain_words(name, attacker.about)
        points = attacker.estimates.points("linkability")
        point = same_or_largest(points, linking.estimate) if linking else None
        likelihood = "not measured"
        if point is not None:
            likelihood = full(point)
        effort = "; ".join(text for text in (about.data, about.skill, about.time) if text) or "–"
        rows.append((f"{capitalize(about.who)} ({name})", effort, likelihood, FILL_IN))
    note = words.linking_note(linking.estimate) if linking else ""
    return Chapter(
        "Likelihood and severity per attacker",
        (note,) if note else (),
        table=Table(
            ("attacker", "what it takes", "likelihood", "severity, if this attacker is realistic"), tuple(rows)
        ),
    )


def _method(results: Results) -> Chapter:
    protocol = results.protocol
    text = words.method(
        protocol.trial_speakers, protocol.enrolled_speakers, sentence(protocol.split, "annex"), protocol.training
    )
    return Chapter("Method", (text,))


def _reliance(decision: Decision) -> Chapter:
    failed = tuple(
        f"{row.title}: {row.sentence} {row.meaning}".strip() for row in decision.checks if row.state == "failed"
    )
    unmade = tuple(f"Not checked: {row.title}. {row.sentence}" for row in decision.checks if row.state == "open")
    return Chapter("Reliance", (decision.reliance,), items=failed + unmade)


def _residual(results: Results, decision: Decision) -> Chapter:
    """In the legal sense: what remains after everything that was done."""
    others = tuple(
        f"{row.title}: {row.sentence}"
        for row in (criterion_row(results, name) for name in results.criteria)
        if row.risk and row.level in ("raised", "high")
    )
    untested = tuple(f"Not tested: {text}" for text in not_tested(results, most=None))
    people = (sentence(results.people.finding, "annex"),)
    return Chapter(
        "Residual risk",
        (words.RESIDUAL,),
        items=people + others + untested,
    )


def _sign_off(results: Results, created: str) -> Chapter:
    return Chapter(
        "Sign-off",
        table=Table(
            ("", "name", "date and signature"),
            (
                ("Assessed by", str(results.settings.get("assessor") or FILL_IN), FILL_IN),
                ("Data protection officer", FILL_IN, FILL_IN),
                ("Decision", FILL_IN, FILL_IN),
                ("To be assessed again before", FILL_IN, FILL_IN),
                ("Version of this document", f"veilmeter {results.version}" + (f", {created}" if created else ""), ""),
            ),
        ),
    )
