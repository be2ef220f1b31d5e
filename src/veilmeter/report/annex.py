"""The entries of an anonymization report or a data protection impact assessment, filled in from the results.

It states likelihoods and what they mean for people. Severity, acceptance and law are for those who sign.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from veilmeter.assessment.statements import SCALE, read_annex, read_recipients
from veilmeter.attacks.attacker import plain_words
from veilmeter.core.estimate import Estimate
from veilmeter.metrics.inference import residual
from veilmeter.report.decision import Decision, anonymizer_words, not_tested, release_words, same_or_largest
from veilmeter.report.recipients import RecipientRow, RecipientShare, recipient_table
from veilmeter.report.rows import THREE, CriterionRow, criterion_row, linking_of_all
from veilmeter.results.model import AttackerResult, Criterion, Results
from veilmeter.results.verdict import LAWYER
from veilmeter.wording import sentence, sentences
from veilmeter.wording.english import page as words
from veilmeter.wording.english.annex import TEXTS
from veilmeter.wording.numbers import capitalize, chance, count, full, of_hundred, span

FILL_IN = ""
OPTIONS = ("sign.option_1", "sign.option_2", "sign.option_3", "sign.option_4")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells that are empty are lines to fill in. `entries` names, row by row, the entry of the settings that the
    second cell is; empty where it is none."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    entries: tuple[str, ...] = ()

    def entry_of(self, row: int) -> str:
        return self.entries[row] if row < len(self.entries) else ""


@dataclass(frozen=True, slots=True)
class Chapter:
    title: str
    paragraphs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    table: Table | None = None


@dataclass(frozen=True, eq=False)
class File:
    """The contents of an annex: a run, its first page, the day, and what the controller stated."""

    results: Results
    decision: Decision
    created: str
    entries: Mapping[str, str]

    def entry(self, name: str) -> tuple[str, str]:
        """A row of the table of entries: its title, and what was stated."""
        return TEXTS[f"entry.{name}"], self.entries.get(name) or FILL_IN

    def chapter(
        self, key: str, names: Sequence[str], *paragraphs: str, rows: Sequence[tuple[str, str]] = ()
    ) -> Chapter:
        """A chapter of what is known and, below it, of entries."""
        table = Table(("", ""), (*rows, *map(self.entry, names)), (*("" for _ in rows), *names))
        return Chapter(TEXTS[f"{key}.title"], paragraphs, table=table)


_ABOUT_THE_CONTROLLER = (
    "controller",
    "contact",
    "legal_basis",
    "article_9",
    "people",
    "necessity",
    "third_countries",
    "retention",
)
_SIGNED = ("officer", "decided_by", "review_date")


def annex(results: Results, decision: Decision, created: str = "") -> tuple[Chapter, ...]:
    """The chapters in their order; the last one is the decision to sign."""
    file = File(results, decision, created, read_annex(results.settings.get("annex") or {}))
    return (
        _release(file),
        file.chapter("controller", _ABOUT_THE_CONTROLLER),
        _recipients(file),
        _likelihood(results),
        _by_attacker(file),
        *_inference(results),
        Chapter(TEXTS["limit.title"], (decision.limit or TEXTS["limit.none"],)),
        _method(results),
        _reliance(decision),
        _residual(file),
        Chapter(
            TEXTS["mitigations.title"],
            (TEXTS["mitigations.note"],),
            table=Table(
                (TEXTS["mitigations.measure"], TEXTS["mitigations.why"], TEXTS["mitigations.taken"]),
                tuple((item.text, item.reason or "–", FILL_IN) for item in decision.advice),
            ),
        ),
        Chapter(TEXTS["lawyer.title"], items=sentences(LAWYER, "annex")),
        file.chapter("review", ("officer", "advice", "consultation", "review_date", "review_triggers", "incidents")),
        _sign_off(file),
    )


def _release(file: File) -> Chapter:
    results, decision = file.results, file.decision
    recipients = read_recipients(results.settings.get("recipients") or ())
    assessed = count(results.protocol.trial_speakers, "person", "people")
    rows = (
        (TEXTS["release.what"], decision.title),
        (TEXTS["release.amount"], release_words(results) or FILL_IN),
        (TEXTS["release.assessed"], assessed + (f", {file.created}" if file.created else "")),
        (TEXTS["release.anonymizer"], anonymizer_words(results) or FILL_IN),
        (TEXTS["release.recipients"], "; ".join(recipient.name for recipient in recipients) or FILL_IN),
    )
    return file.chapter(
        "release", ("purpose", "form", "safeguards", "route"), f"{decision.headline} {decision.sentence}", rows=rows
    )


def _recipients(file: File) -> Chapter:
    """Recipient by criterion, what was not run for whom, and what contradicts the run."""
    table = recipient_table(file.results)
    head = tuple(TEXTS[f"recipients.{name}"] for name in ("recipient", "has"))
    criteria = tuple(words.full_title(words.criterion_title(name, ""), name) for name in THREE)
    rows = [_recipient_cells(row, assumed=table.assumed) for row in table.rows]
    not_run: dict[tuple[str, ...], list[str]] = {}
    for row in table.rows:
        not_run.setdefault(row.not_run, []).append(_recipient_name(row, assumed=table.assumed))
    missing = [
        TEXTS["recipients.not_run"].format(attackers=", ".join(attackers), names=", ".join(names))
        for attackers, names in not_run.items()
        if attackers
    ]
    if any(row.inference is None for row in table.rows) and table.worst.inference is not None:
        missing.append(TEXTS["recipients.no_inference"])
    remarks = [*(remark for row in table.rows for remark in row.remarks), *table.remarks]
    return Chapter(
        TEXTS["recipients.title"],
        (
            TEXTS["recipients.assumed" if table.assumed else "recipients.declared"],
            TEXTS[f"recipients.route_{table.route}"],
        ),
        items=(*(TEXTS[remark.key].format(**remark.values) for remark in remarks), *missing),
        table=Table((*head, *criteria), (_recipient_cells(table.worst, assumed=True), *rows)),
    )


def _recipient_name(row: RecipientRow, *, assumed: bool) -> str:
    return TEXTS[f"cast.{row.recipient.name}"] if assumed else row.recipient.name


def _recipient_cells(row: RecipientRow, *, assumed: bool) -> tuple[str, ...]:
    recipient, linking = row.recipient, row.linking
    means = [name for name in ("original_speech", "anonymizer", "labels", "pseudonyms") if getattr(recipient, name)]
    has = [TEXTS[f"recipients.{name}"] for name in means] or [TEXTS["recipients.nothing"]]
    if recipient.candidates is not None:
        has.append(TEXTS["recipients.candidates"].format(count=f"{recipient.candidates:,}"))
    kinds = {"measured": "linking", "unknown": "linking_unknown"}
    linked = "linking" if linking is None else kinds.get(linking.basis, "linking_model")
    return (
        _recipient_name(row, assumed=assumed),
        TEXTS["recipients.means"].format(
            has=", ".join(has), attackers=", ".join(row.attackers) or TEXTS["recipients.no_attacker"]
        ),
        _share_cell(linking, linked),
        _share_cell(row.singling_out, "singling_out"),
        _share_cell(row.inference, "inference"),
    )


def _share_cell(share: RecipientShare | None, key: str) -> str:
    if share is None:
        return TEXTS["recipients.none"]
    return TEXTS[f"recipients.{key}"].format(
        level=capitalize(words.LEVELS[share.level]),
        figure=span(share.value, share.interval),
        guessing="–" if share.guessing is None else chance(share.guessing),
        attacker=share.attacker,
        candidates="–" if share.candidates is None else f"{share.candidates:,}",
        length=share.length,
    )


def _likelihood(results: Results) -> Chapter:
    head = tuple(TEXTS[f"likelihood.{name}"] for name in ("criterion", "attack", "likelihood", "severity"))
    return Chapter(TEXTS["likelihood.title"], (TEXTS["likelihood.note"],), table=Table(head, _likelihood_rows(results)))


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


def _by_attacker(file: File) -> Chapter:
    results = file.results
    linking = linking_of_all(results)
    rows = []
    for name, attacker in results.attacks.items():
        about = plain_words(name, attacker.about)
        point = _link_rate(attacker, linking)
        likelihood = TEXTS["attackers.not_measured"] if point is None else full(point)
        effort = "; ".join(text for text in (about.data, about.skill, about.time) if text) or "–"
        rows.append((f"{capitalize(about.who)} ({name})", effort, _cost(file, name), likelihood, FILL_IN))
    notes = [words.linking_note(linking.estimate)] if linking else []
    head = ("attackers.attacker", "attackers.effort", "attackers.cost", "likelihood.likelihood", "attackers.severity")
    return Chapter(
        TEXTS["attackers.title"],
        (*notes, TEXTS["attackers.cost_note"], *_margin(results, linking)),
        table=Table(tuple(TEXTS[key] for key in head), tuple(rows)),
    )


def _link_rate(attacker: AttackerResult, linking: Criterion | None) -> Estimate | None:
    points = attacker.estimates.points("linkability")
    return same_or_largest(points, linking.estimate) if linking else None


def _cost(file: File, attacker: str) -> str:
    """The cost of the attack: processor time, and the recordings it was made with."""
    seconds, protocol = file.decision.seconds.get(f"attacker-{attacker}"), file.results.protocol
    return TEXTS["attackers.took" if seconds is not None else "attackers.used"].format(
        seconds="" if seconds is None else f"{seconds:,.1f}" if seconds < 100 else f"{seconds:,.0f}",
        enrollment=f"{protocol.enrollment_utterances:,}",
        trials=f"{protocol.trial_utterances:,}",
    )


def _margin(results: Results, linking: Criterion | None) -> list[str]:
    """How much more the strongest attacker finds than those of the papers: what better methods were worth so far."""
    points = {name: (_link_rate(attacker, linking), attacker) for name, attacker in results.attacks.items()}
    known = {
        name: point.value for name, (point, attacker) in points.items() if point is not None and not attacker.apart
    }
    papers = {name: value for name, value in known.items() if points[name][1].reference}
    if not papers or len(papers) == len(known):
        return []
    paper, best = max(papers, key=lambda name: papers[name]), max(known, key=lambda name: known[name])
    values = {"paper": paper, "found": span(known[paper], None), "best": best, "more": span(known[best], None)}
    return [TEXTS["attackers.margin" if known[best] > known[paper] else "attackers.no_margin"].format(**values)]


def _inference(results: Results) -> list[Chapter]:
    """Every attribute with its control; nothing where no attribute was inferred, which the criterion says already."""
    part = results.parts.get("inference")
    if part is None or not part.estimates:
        return []
    original = {point.at.get("attribute"): point for point in part.reference}
    rows = []
    for point in part.estimates.points("inference"):
        beyond, before = residual(point), original.get(point.at.get("attribute"))
        rows.append(
            (
                str(point.at.get("attribute", "")),
                of_hundred(point),
                "–" if point.null is None else span(point.null, point.null_range),
                "–" if beyond is None else span(*beyond),
                "–" if before is None else of_hundred(before),
            )
        )
    counted = {name.removeprefix("combined_"): count for name, count in part.details.items()}
    combined = TEXTS["inference.combined_one"]
    if "combined_alone" in part.details:
        combined = TEXTS["inference.combined"].format(**counted, right=counted["alone_and_right"])
    head = tuple(TEXTS[f"inference.{name}"] for name in ("attribute", "with", "without", "beyond", "original"))
    return [Chapter(TEXTS["inference.title"], (TEXTS["inference.note"], combined), table=Table(head, tuple(rows)))]


def _method(results: Results) -> Chapter:
    protocol = results.protocol
    people = protocol.trial_speakers
    text = TEXTS["method.text"].format(
        searched=TEXTS["method.person"] if people == 1 else TEXTS["method.people"].format(count=f"{people:,}"),
        enrolled=f"{protocol.enrolled_speakers:,}",
        split=sentence(protocol.split, "annex"),
        training=TEXTS.get(f"method.{protocol.training}", ""),
    )
    return Chapter(TEXTS["method.title"], (text,))


def _reliance(decision: Decision) -> Chapter:
    failed = tuple(
        f"{row.title}: {row.sentence} {row.meaning}".strip() for row in decision.checks if row.state == "failed"
    )
    unmade = tuple(
        TEXTS["reliance.not_checked"].format(check=row.title, reason=row.sentence)
        for row in decision.checks
        if row.state == "open"
    )
    return Chapter(TEXTS["reliance.title"], (decision.reliance,), items=failed + unmade)


def _residual(file: File) -> Chapter:
    """In the legal sense: what remains after everything that was done."""
    results = file.results
    others = tuple(
        f"{row.title}: {row.sentence}"
        for row in (criterion_row(results, name) for name in results.criteria)
        if row.risk and row.level in ("raised", "high")
    )
    untested = tuple(TEXTS["residual.not_tested"].format(reason=reason) for reason in not_tested(results, most=None))
    people = (sentence(results.people.finding, "annex"),)
    rated = {"severity", "likelihood"} & file.entries.keys()
    if rated and "scale" not in file.entries:
        own = TEXTS["residual.scale"].format(scale=", ".join(SCALE))
        file = replace(file, entries={**file.entries, "scale": own})
    chapter = file.chapter("residual", ("severity", "likelihood", "scale"), TEXTS["residual.note"])
    return replace(chapter, items=people + others + untested)


def _sign_off(file: File) -> Chapter:
    """The decision to sign: the question, the limit, the three criteria, options that nobody has ticked, signatures."""
    results, decision = file.results, file.decision
    criteria = [criterion_row(results, name) for name in THREE]
    version = f"veilmeter {results.version}" + (f", {file.created}" if file.created else "")
    rows = (
        (TEXTS["sign.question"], TEXTS["sign.ask"], FILL_IN),
        (TEXTS["limit.title"], decision.limit or TEXTS["sign.no_limit"], FILL_IN),
        *(
            (words.full_title(row.title, row.name), f"{capitalize(row.level_text)}. {row.text}", FILL_IN)
            for row in criteria
        ),
        *(("☐", TEXTS[option], FILL_IN) for option in OPTIONS),
        (TEXTS["sign.assessed_by"], str(results.settings.get("assessor") or FILL_IN), FILL_IN),
        *((*file.entry(name), FILL_IN) for name in _SIGNED),
        (TEXTS["sign.version"], version, "–"),
        (TEXTS["sign.digest"], decision.digest or FILL_IN, "–"),
    )
    entries = (*("" for _ in rows[: -2 - len(_SIGNED)]), *_SIGNED, "", "")
    head = ("", TEXTS["sign.entry"], TEXTS["sign.remarks"])
    return Chapter(TEXTS["sign.title"], (TEXTS["sign.note"],), table=Table(head, rows, entries))


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
                "title": TEXTS["pia.measure"],
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
        _answer(_PROCESSING, at, [f"{TEXTS['pia.processing']}: {decision.title}.", release_words(results)]),
        _answer(_DATA, at, [release_words(results), TEXTS["pia.data"]]),
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
        _answer(_MEASURES, at, items=[TEXTS["pia.measure"]]),
        _answer(
            _LIKELIHOOD,
            at,
            [
                decision.reliance,
                *likelihood,
                *(f"Not tested: {text}" for text in not_tested(results, most=None)),
                TEXTS["pia.likelihood"],
            ],
        ),
    ]


def _answer(question: int, at: str, text: Sequence[str] = (), items: Iterable[str] = ()) -> dict[str, Any]:
    data = {"text": _paragraphs(text), "gauge": None, "list": list(items)}
    return {"reference_to": question, "data": data, "created_at": at, "updated_at": at}


def _paragraphs(texts: Sequence[str]) -> str:
    """HTML, as the tool shows it."""
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts if text)
