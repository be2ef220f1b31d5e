"""The entries of an anonymization report or a data protection impact assessment, filled in from the results.

It states likelihoods and what they mean for people. Severity, acceptance and law are for those who sign.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from veilmeter.attacks.attacker import plain_words
from veilmeter.report.decision import Decision, anonymizer_words, not_tested, release_words, same_or_largest
from veilmeter.report.rows import THREE, CriterionRow, criterion_row, linking_of_all
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
        _sign_off(results, decision, created),
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
    return Chapter(
        "Likelihood and severity per criterion",
        (words.LIKELIHOOD,),
        table=Table(
            ("criterion", "attack", "likelihood", "severity for the people concerned"), _likelihood_rows(results)
        ),
    )


def _likelihood_rows(results: Results) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            words.full_title(row.title, row.name),
            capitalize(words.ATTACKS[row.name]),
            f"{capitalize(row.level_text)}. {row.text}",
            FILL_IN,
        )
        for row in _attack_rows(results)
    )


def _attack_rows(results: Results) -> list[CriterionRow]:
    """The criteria that are attacks on people: the three of the authorities, and others that were measured."""
    return [criterion_row(results, name) for name in words.ATTACKS if name in THREE or name in results.criteria]


def _by_attacker(results: Results) -> Chapter:
    linking = linking_of_all(results)
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


def _sign_off(results: Results, decision: Decision, created: str) -> Chapter:
    """The decision to sign: the question, the limit, the three criteria, options that nobody has ticked, signatures."""
    criteria = [criterion_row(results, name) for name in THREE]
    rows = (
        ("Question", words.QUESTION, FILL_IN),
        ("Limit for the risk", decision.limit or words.NO_LIMIT_CHOSEN, FILL_IN),
        *(
            (words.full_title(row.title, row.name), f"{capitalize(row.level_text)}. {row.text}", FILL_IN)
            for row in criteria
        ),
        *(("☐", option, FILL_IN) for option in words.OPTIONS),
        ("Assessed by", str(results.settings.get("assessor") or FILL_IN), FILL_IN),
        ("Data protection officer", FILL_IN, FILL_IN),
        ("Decided by", FILL_IN, FILL_IN),
        ("To be assessed again before", FILL_IN, FILL_IN),
        ("Version of this document", f"veilmeter {results.version}" + (f", {created}" if created else ""), "–"),
        ("SHA-256 of results.json", decision.digest or FILL_IN, "–"),
    )
    return Chapter(
        words.TITLES["sign"], (words.NOTES["sign"],), table=Table(("", "entry", "remarks, name, date, signature"), rows)
    )


# --- the file that the privacy impact assessment (PIA) tool of the French authority, the CNIL, imports

# Numbers of the tool's questions.
_PROCESSING, _DATA = 111, 121
_THREATS, _SOURCES, _MEASURES, _LIKELIHOOD = 322, 323, 324, 326  # of illegitimate access to the data


def pia(results: Results, decision: Decision, created: str = "") -> dict[str, Any]:
    """What the results answer of the tool's questions, and nothing else: severity and likelihood stay unrated, since
    rating, law and acceptance are for those who sign. `created` is the day of the assessment."""
    at = f"{created or date.today().isoformat()}T00:00:00.000Z"
    likelihood = [f"{row[0]}: {row[2]}" for row in _likelihood_rows(results)]
    return {
        "pia": {
            "name": decision.title,
            "category": "",
            "status": 0,  # being edited
            "author_name": str(results.settings.get("assessor") or ""),
            "evaluator_name": "",
            "validator_name": "",
            "dpos_names": "",
            "people_names": "",
            "created_at": at,
            "updated_at": at,
        },
        "answers": _answers(results, decision, likelihood, at),
        "measures": [
            {
                "id": 1,
                "title": words.PIA_MEASURE,
                "content": _paragraphs([anonymizer_words(results), *likelihood]),
                "placeholder": "measures.default_placeholder",
                "created_at": at,
                "updated_at": at,
            }
        ],
        "evaluations": [],
        "comments": [],
    }


def _answers(results: Results, decision: Decision, likelihood: Sequence[str], at: str) -> list[dict[str, Any]]:
    return [
        _answer(_PROCESSING, at, [f"{words.PIA_PROCESSING}: {decision.title}.", release_words(results)]),
        _answer(_DATA, at, [release_words(results), words.PIA_DATA]),
        _answer(
            _THREATS,
            at,
            items=[
                capitalize(words.ATTACKS[row.name]) for row in _attack_rows(results) if row.name in results.criteria
            ],
        ),
        _answer(
            _SOURCES,
            at,
            items=dict.fromkeys(
                capitalize(plain_words(name, attacker.about).who) for name, attacker in results.attacks.items()
            ),
        ),
        _answer(_MEASURES, at, items=[words.PIA_MEASURE]),
        _answer(
            _LIKELIHOOD,
            at,
            [
                decision.reliance,
                *likelihood,
                *(f"Not tested: {text}" for text in not_tested(results, most=None)),
                words.PIA_LIKELIHOOD,
            ],
        ),
    ]


def _answer(question: int, at: str, text: Sequence[str] = (), items: Iterable[str] = ()) -> dict[str, Any]:
    data = {"text": _paragraphs(text), "gauge": None, "list": list(items)}
    return {"reference_to": question, "data": data, "created_at": at, "updated_at": at}


def _paragraphs(texts: Sequence[str]) -> str:
    """HTML, as the tool shows it."""
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts if text)
