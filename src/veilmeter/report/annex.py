"""The entries of an anonymization report or a data protection impact assessment, filled in from the results.

It states likelihoods and what they mean for people. Severity, acceptance and law are for those who sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from veilmeter.assessment.statements import SCALE, read_annex, read_recipients
from veilmeter.attacks.attacker import ANONYMIZER, ATTACKERS
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Reference
from veilmeter.metrics.inference import residual
from veilmeter.report.decision import Decision, anonymizer_words, never_tested, not_tested, same_or_largest
from veilmeter.report.recipients import RecipientRow, RecipientShare, RecipientTable, recipient_table
from veilmeter.report.rows import THREE, CriterionRow, criterion_row, linking_of_all
from veilmeter.results.criteria import individual_of
from veilmeter.results.model import AttackerResult, Criterion, Results
from veilmeter.results.verdict import LAWYER
from veilmeter.wording import annex_texts, attacker_words, fill, sentence, sentences
from veilmeter.wording.catalog import shown
from veilmeter.wording.english import page as words
from veilmeter.wording.language import day, is_english, keep_signs
from veilmeter.wording.numbers import capitalize, chance, full, of_hundred, span, whole

FILL_IN = ""
CHECKBOX = "☐"
AUTHORITY = "authority"  # the template of the complete file
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
    texts: Mapping[str, str]

    def entry(self, name: str) -> tuple[str, str]:
        """A row of the table of entries: its title, and what was stated."""
        stated = self.entries.get(name) or FILL_IN
        return self.texts[f"entry.{name}"], self.texts.get(f"stated.{stated}", day(stated))

    def join(self, parts: Iterable[str]) -> str:
        return self.texts["sentence.list"].join(parts)

    def about(self, subject: str, words: str) -> str:
        return self.texts["sentence.about"].format(whose=subject, words=words)

    def chapter(
        self, key: str, names: Sequence[str], *paragraphs: str, rows: Sequence[tuple[str, str]] = ()
    ) -> Chapter:
        """A chapter of what is known and, below it, of entries."""
        table = Table(("", ""), (*rows, *map(self.entry, names)), (*("" for _ in rows), *names))
        return Chapter(self.texts[f"{key}.title"], paragraphs, table=table)


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
# Clauses of standards, each with the chapters that answer it.
_STANDARDS = {
    "27559_6": ("release", "recipients", "residual"),
    "27559_7": ("controller", "release", "method", "individuals", "inference"),
    "27559_8": ("likelihood", "individuals", "attackers", "reliance", "mitigations"),
    "27559_9": ("controller", "review", "sign"),
    "24745_unlinkability": ("recipients", "likelihood"),
    "24745_irreversibility": ("likelihood",),
    "30136_success": ("attackers", "recipients"),
    "30136_leakage": ("likelihood",),
}
_SIGNED = ("officer", "decided_by", "review_date")


def annex(results: Results, decision: Decision, created: str = "", *, template: str = "") -> tuple[Chapter, ...]:
    """The chapters in their order; the last one is the decision to sign. The template `authority` has cross-references
    and a checklist, too."""
    file = file_of(results, decision, created)
    chapters = (
        _release(file),
        file.chapter("controller", _ABOUT_THE_CONTROLLER),
        _recipients(file),
        _likelihood(file),
        *_individuals(file),
        _by_attacker(file),
        *_inference(file),
        Chapter(file.texts["limit.title"], (decision.limit or file.texts["limit.none"],)),
        _method(file),
        _reliance(file),
        _residual(file),
        Chapter(
            file.texts["mitigations.title"],
            (file.texts["mitigations.note"],),
            table=Table(
                (file.texts["mitigations.measure"], file.texts["mitigations.why"], file.texts["mitigations.taken"]),
                tuple((item.text, item.reason or "–", FILL_IN) for item in decision.advice),
            ),
        ),
        Chapter(file.texts["lawyer.title"], items=sentences(LAWYER, "annex")),
        *(_cross_references(file) if template == AUTHORITY else ()),
        file.chapter("review", ("officer", "advice", "consultation", "review_date", "review_triggers", "incidents")),
        _sign_off(file),
    )
    return tuple(map(_typeset, chapters))


def _typeset(chapter: Chapter) -> Chapter:
    """With the spaces of the language that is being written."""
    table = chapter.table
    if table is not None:
        rows = tuple(tuple(map(keep_signs, row)) for row in table.rows)
        table = replace(table, head=tuple(map(keep_signs, table.head)), rows=rows)
    paragraphs, items = (tuple(map(keep_signs, texts)) for texts in (chapter.paragraphs, chapter.items))
    return replace(chapter, paragraphs=paragraphs, items=items, table=table)


def file_of(results: Results, decision: Decision, created: str) -> File:
    """In the language that is being written, as the decision must be."""
    return File(results, decision, created, read_annex(results.settings.get("annex") or {}), annex_texts())


def _release(file: File) -> Chapter:
    results = file.results
    assessed = fill(file.texts["release.people"], people=results.protocol.trial_speakers)
    rows = (
        (file.texts["release.what"], str(results.settings.get("title") or FILL_IN)),
        (file.texts["release.amount"], amount(file) or FILL_IN),
        (file.texts["release.assessed"], assessed + (f", {day(file.created)}" if file.created else "")),
        (file.texts["release.anonymizer"], anonymizer_words(results) or FILL_IN),
        (file.texts["release.recipients"], recipient_names(file) or FILL_IN),
    )
    return file.chapter("release", ("purpose", "form", "safeguards", "route"), *_opening(file), rows=rows)


def recipient_names(file: File) -> str:
    return file.join(recipient.name for recipient in read_recipients(file.results.settings.get("recipients") or ()))


def _opening(file: File) -> tuple[str, ...]:
    """The first sentence says whether to rely on the others, where the run's own checks say not to."""
    decision = file.decision
    told = f"{decision.headline} {decision.sentence}"
    return (told, decision.reliance) if decision.trustworthy else (decision.reliance, told)


def _recipients(file: File) -> Chapter:
    """Recipient by criterion, what was not run for whom, and what contradicts the run."""
    table = recipient_table(file.results)
    head = tuple(file.texts[f"recipients.{name}"] for name in ("recipient", "has"))
    criteria = tuple(file.texts[f"criterion.{name}"] for name in THREE)
    rows = [_recipient_cells(file, row, assumed=table.assumed) for row in table.rows]
    not_run: dict[tuple[str, ...], list[str]] = {}
    for row in table.rows:
        not_run.setdefault(row.not_run, []).append(_recipient_name(file, row, assumed=table.assumed))
    missing = [
        file.texts["recipients.not_run"].format(attackers=", ".join(attackers), names=", ".join(names))
        for attackers, names in not_run.items()
        if attackers
    ]
    if any(row.inference is None for row in table.rows) and table.worst.inference is not None:
        missing.append(file.texts["recipients.no_inference"])
    remarks = [*(remark for row in table.rows for remark in row.remarks), *table.remarks]
    return Chapter(
        file.texts["recipients.title"],
        (
            file.texts["recipients.assumed" if table.assumed else "recipients.declared"],
            file.texts[f"recipients.route_{table.route}"],
        ),
        items=(*(fill(file.texts[remark.key], **remark.values) for remark in remarks), *missing),
        table=Table((*head, *criteria), (_recipient_cells(file, table.worst, assumed=True), *rows)),
    )


def _recipient_name(file: File, row: RecipientRow, *, assumed: bool) -> str:
    return file.texts[f"cast.{row.recipient.name}"] if assumed else row.recipient.name


def _recipient_cells(file: File, row: RecipientRow, *, assumed: bool) -> tuple[str, ...]:
    recipient, linking = row.recipient, row.linking
    means = [name for name in ("original_speech", "anonymizer", "labels", "pseudonyms") if getattr(recipient, name)]
    has = [file.texts[f"recipients.{name}"] for name in means] or [file.texts["recipients.nothing"]]
    if recipient.candidates is not None:
        has.append(file.texts["recipients.candidates"].format(count=whole(recipient.candidates)))
    kinds = {"measured": "linking", "unknown": "linking_unknown"}
    linked = "linking" if linking is None else kinds.get(linking.basis, "linking_model")
    return (
        _recipient_name(file, row, assumed=assumed),
        file.texts["recipients.means"].format(
            has=", ".join(has), attackers=", ".join(row.attackers) or file.texts["recipients.no_attacker"]
        ),
        _share_cell(file, linking, linked) + _person_words(file, row),
        _share_cell(file, row.singling_out, "singling_out"),
        _share_cell(file, row.inference, "inference"),
    )


def _person_words(file: File, row: RecipientRow) -> str:
    """The person whom this recipient's attackers find most often, among all people that were assessed."""
    if row.linking is None or row.individual is None:
        return ""
    risk, explained = row.individual.values["estimate"], row.individual.values["explained"]
    assert isinstance(risk, Estimate)
    person = file.texts["recipients.person_by_chance" if explained else "recipients.person"]
    return f" {person}".format(figure=of_hundred(risk), among=whole(int(risk.at.get("speakers", 0))))


def _share_cell(file: File, share: RecipientShare | None, key: str) -> str:
    if share is None:
        return file.texts["recipients.none"]
    return fill(
        file.texts[f"recipients.{key}"],
        level=capitalize(file.texts[f"level.{share.level}"]),
        figure=span(share.value, share.interval),
        guessing="–" if share.guessing is None else chance(share.guessing),
        attacker=share.attacker,
        candidates="–" if share.candidates is None else whole(share.candidates),
        length=share.length or 1,
        attribute=shown(Reference("attribute", share.attribute)),
    )


def _likelihood(file: File) -> Chapter:
    head = tuple(file.texts[f"likelihood.{name}"] for name in ("criterion", "attack", "likelihood", "severity"))
    return Chapter(
        file.texts["likelihood.title"], (file.texts["likelihood.note"],), table=Table(head, likelihood_rows(file))
    )


def likelihood_rows(file: File) -> tuple[tuple[str, ...], ...]:
    results = file.results
    return tuple(
        (
            _criterion(file, row),
            capitalize(file.texts[f"attack.{row.name}"]),
            _likelihood_words(file, row),
            FILL_IN,
        )
        for row in attack_rows(results)
    )


def _likelihood_words(file: File, row: CriterionRow) -> str:
    """A level and what it rests on; of linking also the person who is found most often, since one is enough."""
    individual = individual_of(file.results) if row.name == "linking" and row.measured else None
    person = "" if individual is None else sentence(individual, "annex")
    return f"{_level(file, row)}. {row.text} {person}".strip()


def _criterion(file: File, row: CriterionRow) -> str:
    """Its title; in English with the attribute that is inferred best."""
    named = words.full_title(row.title, row.name)
    return named if is_english() else file.texts.get(f"criterion.{row.name}", named)


def plain_title(file: File, row: CriterionRow) -> str:
    """In few words, without its legal names."""
    return row.title if is_english() else file.texts[f"criterion.{row.name}"].partition(" (")[0]


def amount(file: File) -> str:
    """People, recordings and hours; empty where no speech is known."""
    entry = file.results.inputs.get("anonymized") or file.results.inputs.get("original")
    if entry is None:
        return ""
    size = fill(file.texts["release.size"], people=entry.speakers, recordings=entry.utterances)
    minutes = max(1, round(60 * entry.hours)) if entry.hours else 0
    if entry.hours is None or not minutes:
        return size
    if minutes < 90:
        return fill(file.texts["release.minutes"], size=size, minutes=minutes)
    return file.texts["release.hours"].format(size=size, hours=span(entry.hours, None, 1 if entry.hours < 10 else 0))


def _level(file: File, row: CriterionRow) -> str:
    return capitalize(file.texts[f"level.{row.level if row.measured else 'missing'}"])


def attack_rows(results: Results) -> list[CriterionRow]:
    """The criteria that are attacks on people: the three of the authorities, and others that were measured."""
    return [criterion_row(results, name) for name in words.ATTACKS if name in THREE or name in results.criteria]


def _individuals(file: File) -> list[Chapter]:
    """Linking for everybody, within each group, and for the person who is found most often: a mean hides them."""
    results, linking = file.results, linking_of_all(file.results)
    individual = individual_of(results)
    if linking is None:
        return []
    point, length = linking.estimate, linking.estimate.at.get("length", 1)
    rows = [(file.texts["individuals.everybody"], point, point.at.get("speakers"), linking.attacker)]
    found = results.attackers.get(linking.attacker)
    for attribute, groups in (found.by if found else {}).items():
        for value, estimates in groups.items():
            same = [p for p in estimates.points("linkability") if p.at.get("length", 1) == length]
            if same:
                largest = max(same, key=lambda p: p.at.get("speakers", 0))
                name = capitalize(shown(Reference("value", value, attribute)))
                rows.append((name, largest, largest.at.get("speakers"), linking.attacker))
    if individual is not None:
        risk = individual.values["estimate"]
        assert isinstance(risk, Estimate)
        person = file.texts["individuals.by_chance" if individual.values["explained"] else "individuals.person"]
        rows.append((person, risk, risk.at.get("speakers"), str(individual.values["attacker"])))
    cells = tuple(
        (
            name,
            "–" if people is None else whole(int(people)),
            of_hundred(estimate),
            "–" if estimate.null is None else chance(estimate.null),
            attacker,
        )
        for name, estimate, people, attacker in rows
    )
    counted = {
        "people": len(results.people.persons),
        "attackers": len(results.attacks),
        "length": int(length),
    }
    head = tuple(file.texts[f"individuals.{name}"] for name in ("who", "among", "linked", "guessing", "attacker"))
    note = fill(file.texts["individuals.note"], **counted)
    return [Chapter(file.texts["individuals.title"], (note,), table=Table(head, cells))]


def _by_attacker(file: File) -> Chapter:
    results = file.results
    linking = linking_of_all(results)
    rows = []
    for name, attacker in results.attacks.items():
        about = attacker_words(name, attacker.about)
        point = _link_rate(attacker, linking)
        likelihood = file.texts["attackers.not_measured"] if point is None else full(point)
        effort = file.join(text for text in (about.data, about.skill, about.time) if text) or "–"
        rows.append((f"{capitalize(about.who)} ({name})", effort, _cost(file, attacker), likelihood, FILL_IN))
    notes = []
    if linking is not None:
        at = linking.estimate.at
        candidates = whole(int(at["speakers"])) if "speakers" in at else "–"
        notes.append(fill(file.texts["attackers.note"], candidates=candidates, length=int(at.get("length", 1))))
    if linking is not None and "as_measured" in linking.estimate.extra:
        notes.append(fill(file.texts["attackers.chosen"], found=of_hundred(linking.estimate)))
    head = ("attackers.attacker", "attackers.effort", "attackers.cost", "likelihood.likelihood", "attackers.severity")
    return Chapter(
        file.texts["attackers.title"],
        (*notes, _cost_note(file), *_margin(file, linking)),
        table=Table(tuple(file.texts[key] for key in head), tuple(rows)),
    )


def _link_rate(attacker: AttackerResult, linking: Criterion | None) -> Estimate | None:
    points = attacker.estimates.points("linkability")
    return same_or_largest(points, linking.estimate) if linking else None


def _cost_note(file: File) -> str:
    recorded = file.decision.costs.machine
    system, _, cores = recorded.removesuffix(" cores").rpartition(", ")
    if cores.isdigit():
        recorded = fill(file.texts["attackers.machine"], system=system, cores=int(cores))
    machine = recorded or file.texts["attackers.unknown_machine"]
    return file.texts["attackers.cost_note"].format(machine=machine)


def _cost(file: File, attacker: AttackerResult) -> str:
    """The cost of the attack: processor time for the attack itself, for extracting voices and for running the
    anonymizer where the attacker does so, and the recordings it was made with."""
    costs, protocol = file.decision.costs, file.results.protocol
    recordings = protocol.enrollment_utterances + protocol.trial_utterances
    seconds, extracted = costs.extracted
    parts = {
        "attack": costs.seconds.get(f"attacker-{attacker.name}"),
        "extraction": seconds / extracted * recordings if extracted else None,
    }
    if attacker.kind in ATTACKERS and ANONYMIZER in ATTACKERS[attacker.kind].knows:
        parts["anonymizer"] = _anonymizing(file)
    took = [
        file.texts[f"attackers.took_{name}"].format(seconds=span(value, None, 1 if value < 100 else 0))
        if value is not None
        else file.texts[f"attackers.unknown_{name}"]
        for name, value in parts.items()
    ]
    if recordings:
        used = {"enrollment": protocol.enrollment_utterances, "trials": protocol.trial_utterances}
        took.append(fill(file.texts["attackers.used"], **used))
    return file.join(took)


def _anonymizing(file: File) -> float | None:
    """Processor seconds for anonymizing the recordings of the people that the attacker looks for."""
    original, factor = file.results.inputs.get("original"), file.decision.costs.anonymizer
    if factor is None or original is None or not original.hours or not original.utterances:
        return None
    return factor * 3600 * original.hours * file.results.protocol.enrollment_utterances / original.utterances


def _margin(file: File, linking: Criterion | None) -> list[str]:
    """How much more the strongest attacker finds than those of the papers: what better methods were worth so far."""
    points = {name: (_link_rate(attacker, linking), attacker) for name, attacker in file.results.attacks.items()}
    known = {
        name: point.value for name, (point, attacker) in points.items() if point is not None and not attacker.apart
    }
    papers = {name: value for name, value in known.items() if points[name][1].reference}
    if not papers or len(papers) == len(known):
        return []
    paper, best = max(papers, key=lambda name: papers[name]), max(known, key=lambda name: known[name])
    values = {"paper": paper, "found": span(known[paper], None), "best": best, "more": span(known[best], None)}
    return [file.texts["attackers.margin" if known[best] > known[paper] else "attackers.no_margin"].format(**values)]


def _inference(file: File) -> list[Chapter]:
    """Every attribute with its control; nothing where no attribute was inferred, which the criterion says already."""
    results = file.results
    part = results.parts.get("inference")
    if part is None or not part.estimates:
        return []
    original = {point.at.get("attribute"): point for point in part.reference}
    rows = []
    for point in part.estimates.points("inference"):
        beyond, before = residual(point), original.get(point.at.get("attribute"))
        rows.append(
            (
                shown(Reference("attribute", str(point.at.get("attribute", "")))),
                of_hundred(point),
                "–" if point.null is None else span(point.null, point.null_range),
                "–" if beyond is None else span(*beyond),
                "–" if before is None else of_hundred(before),
            )
        )
    counted: dict[str, Any] = {
        name.removeprefix("combined_"): count for name, count in part.details.items() if name.startswith("combined_")
    }
    combined = file.texts["inference.combined_one"]
    if "combined_alone" in part.details:
        combined = fill(file.texts["inference.combined"], **counted)
    if "combined_smallest" in part.details:
        combined += " " + fill(file.texts["inference.sharing"], **counted)
    head = tuple(file.texts[f"inference.{name}"] for name in ("attribute", "with", "without", "beyond", "original"))
    return [
        Chapter(file.texts["inference.title"], (file.texts["inference.note"], combined), table=Table(head, tuple(rows)))
    ]


def _method(file: File) -> Chapter:
    results = file.results
    protocol = results.protocol
    people = protocol.trial_speakers
    text = file.texts["method.text"].format(
        searched=file.texts["method.person"]
        if people == 1
        else file.texts["method.people"].format(count=whole(people)),
        enrolled=whole(protocol.enrolled_speakers),
        split=sentence(protocol.split, "annex"),
        training=file.texts.get(f"method.{protocol.training}", ""),
    )
    return Chapter(file.texts["method.title"], (text,))


def _reliance(file: File) -> Chapter:
    decision = file.decision
    failed = tuple(
        file.about(row.title, f"{row.sentence} {row.meaning}".strip())
        for row in decision.checks
        if row.state == "failed"
    )
    unmade = tuple(
        file.texts["reliance.not_checked"].format(check=row.title, reason=row.sentence)
        for row in decision.checks
        if row.state == "open"
    )
    return Chapter(file.texts["reliance.title"], (decision.reliance,), items=failed + unmade)


def _residual(file: File) -> Chapter:
    """In the legal sense: what remains after everything that was done."""
    results = file.results
    others = tuple(
        file.about(plain_title(file, row), row.sentence)
        for row in (criterion_row(results, name) for name in results.criteria)
        if row.risk and row.level in ("raised", "high")
    )
    untested = tuple(
        file.texts["residual.not_tested"].format(reason=reason) for reason in not_tested(results, most=None)
    )
    people = (sentence(results.people.finding, "annex"),)
    rated = {"severity", "likelihood"} & file.entries.keys()
    if rated and "scale" not in file.entries:
        own = file.texts["residual.scale"].format(scale=", ".join(file.texts[f"stated.{step}"] for step in SCALE))
        file = replace(file, entries={**file.entries, "scale": own})
    chapter = file.chapter("residual", ("severity", "likelihood", "scale"), file.texts["residual.note"])
    return replace(chapter, items=people + others + untested)


def _cross_references(file: File) -> tuple[Chapter, ...]:
    """Where clauses of standards are answered in this file, and the test of the motivated intruder as a checklist."""
    optional = {"individuals": _individuals(file), "inference": _inference(file)}
    missing = [name for name, chapter in optional.items() if not chapter]
    standards = tuple(
        (
            file.texts[f"standards.{name}"],
            file.join(file.texts[f"{chapter}.title"] for chapter in chapters if chapter not in missing),
        )
        for name, chapters in _STANDARDS.items()
    )
    intruder = next(row for row in _cast(file).rows if row.recipient.name == "motivated_intruder")
    cells = _recipient_cells(file, intruder, assumed=True)
    found = {
        "attempts": file.join(
            file.about(file.texts[f"criterion.{n}"], cell.removesuffix("."))
            for n, cell in zip(THREE, cells[2:], strict=True)
        ),
        "means": cells[1],
        "repeat": day(file.entries.get("review_date") or FILL_IN),
        "words": file.texts["residual.not_tested"].format(reason=sentence(never_tested(file.results)[0], "lay")),
    }
    checklist = tuple(
        (file.texts[f"intruder.{name}"], found.get(name, FILL_IN), FILL_IN)
        for name in ("means", "recordings", "anonymizer", "words", "attempts", "independent", "repeat")
    )
    return (
        Chapter(
            file.texts["standards.title"],
            (file.texts["standards.note"],),
            table=Table((file.texts["standards.clause"], file.texts["standards.chapters"]), standards),
        ),
        Chapter(
            file.texts["intruder.title"],
            (file.texts["intruder.note"],),
            table=Table(tuple(file.texts[f"intruder.{name}"] for name in ("item", "run", "answer")), checklist),
        ),
    )


def _cast(file: File) -> RecipientTable:
    """The roles that guidance names, apart from the recipients that were declared."""
    return recipient_table(replace(file.results, settings={**file.results.settings, "recipients": ()}))


def _sign_off(file: File) -> Chapter:
    """The decision to sign: the question, the limit, whether to rely on the figures, the three criteria, options that
    nobody has ticked, signatures."""
    results, decision = file.results, file.decision
    criteria = [criterion_row(results, name) for name in THREE]
    version = f"veilmeter {results.version}" + (f", {day(file.created)}" if file.created else "")
    rows = (
        (file.texts["sign.question"], file.texts["sign.ask"], FILL_IN),
        (file.texts["limit.title"], decision.limit or file.texts["sign.no_limit"], FILL_IN),
        (file.texts["reliance.title"], decision.reliance, FILL_IN),
        *((_criterion(file, row), _likelihood_words(file, row), FILL_IN) for row in criteria),
        *((CHECKBOX, file.texts[option], FILL_IN) for option in OPTIONS),
        (file.texts["sign.assessed_by"], str(results.settings.get("assessor") or FILL_IN), FILL_IN),
        *((*file.entry(name), FILL_IN) for name in _SIGNED),
        (file.texts["sign.version"], version, "–"),
        (file.texts["sign.digest"], decision.digest or FILL_IN, "–"),
    )
    entries = (*("" for _ in rows[: -2 - len(_SIGNED)]), *_SIGNED, "", "")
    head = ("", file.texts["sign.entry"], file.texts["sign.remarks"])
    return Chapter(file.texts["sign.title"], (file.texts["sign.note"],), table=Table(head, rows, entries))
