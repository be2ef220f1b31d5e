"""Who may get the speech: each recipient with the attackers that it could be, what these found, and what was not run.

Whether somebody can be identified depends on who holds the data. A recipient is described by what it has; the attackers
of the run that need no more than that are the ones it could be, and their figures are its own, with its list of
candidates. What a recipient could do and nobody tried is listed, and so is what contradicts the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from veilmeter.assessment.statements import CAST, CONTEXTUAL, SIMPLIFIED, Recipient, read_recipients
from veilmeter.attacks.attacker import ANONYMIZER, ATTACKERS, RELEASE_PSEUDONYMS, Attacker, default_attackers
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Level
from veilmeter.report.release import Release, release_of
from veilmeter.results.criteria import criteria, individual_of, within_groups_of
from veilmeter.results.model import AttackerResult, Criterion, Results
from veilmeter.results.people import people
from veilmeter.results.trust import RELEASE

Values = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to say of a recipient: the key of a text of the annex, and what is filled in."""

    key: str
    values: Values


@dataclass(frozen=True, slots=True)
class RecipientShare:
    """How often an attack succeeds in 100 attempts, with its interval, what guessing gives, and at which level; `basis`
    says whether a list as long as the recipient's was measured."""

    value: float
    interval: tuple[float, float] | None
    guessing: float | None
    attacker: str
    level: Level
    candidates: int | None = None
    length: int | None = None
    basis: str = "measured"
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class RecipientRow:
    """A recipient: the attackers of the run that it could be, those that it could be and nobody ran, the share per
    criterion (None where nothing that fits was run), the person whom these attackers find most often, and what
    contradicts the run."""

    recipient: Recipient
    attackers: tuple[str, ...]
    not_run: tuple[str, ...]
    linking: RecipientShare | None
    singling_out: RecipientShare | None
    inference: RecipientShare | None
    individual: Finding | None
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class RecipientTable:
    """All recipients; `assumed` where none was declared, so that those of the cast take their place. `route` is the
    declared one, `worst` the row that everybody counts as on the simplified route."""

    rows: tuple[RecipientRow, ...]
    assumed: bool
    route: str
    worst: RecipientRow
    remarks: tuple[Remark, ...]


EVERYTHING = Recipient(name="anybody", original_speech=True, anonymizer=True, labels=True, pseudonyms=True)


def recipient_table(results: Results) -> RecipientTable:
    """The recipients that the settings declare, or the cast, with what the run says of each."""
    declared = read_recipients(results.settings.get("recipients") or ())
    stated = results.settings.get("annex") or {}
    route = str(stated.get("route") or "")
    rows = tuple(_row(results, recipient, is_declared=bool(declared)) for recipient in declared or CAST)
    worst = _row(results, EVERYTHING, is_declared=False)
    remarks = tuple(_remarks_on_all(results, rows, worst)) if declared else ()
    return RecipientTable(rows, not declared, route if route in (SIMPLIFIED, CONTEXTUAL) else "", worst, remarks)


def fits(attacker: Attacker, recipient: Recipient) -> bool:
    """Whether a recipient has what an attacker needs. Anybody can get other people's speech, extractors and methods;
    somebody who knows who speaks in released recordings needs no copies that the anonymizer made.

    >>> from veilmeter.attacks.attacker import attacker
    >>> public = Recipient(name="public", original_speech=True)
    >>> fits(attacker("ignorant"), public), fits(attacker("informed"), public)
    (True, False)
    """
    knows_output = recipient.anonymizer or recipient.labels
    has_copies = recipient.labels or (recipient.original_speech and recipient.anonymizer)
    if "original" in attacker.enrollment and not recipient.original_speech:
        return False
    if "anonymized" in attacker.enrollment and not has_copies:
        return False
    if (ANONYMIZER in attacker.knows or attacker.adapted) and not knows_output:
        return False
    return RELEASE_PSEUDONYMS not in attacker.knows or recipient.pseudonyms


def _row(results: Results, recipient: Recipient, *, is_declared: bool) -> RecipientRow:
    joins = recipient.pseudonyms or _links_itself(results)
    able = replace(recipient, pseudonyms=True) if joins else recipient
    # One that is not known here may need anything: it counts for everybody.
    run = {
        name: attacker
        for name, attacker in results.attacks.items()
        if attacker.kind not in ATTACKERS or fits(ATTACKERS[attacker.kind], able)
    }
    seen = _seen_by(results, run, joins=joins)
    found = criteria(seen)
    release = release_of(seen, candidates=recipient.candidates) if run else None
    there = {attacker.kind for attacker in results.attacks.values()}
    apart = [name for name, attacker in ATTACKERS.items() if attacker.apart]
    possible = [name for name in (*default_attackers(), *apart) if fits(ATTACKERS[name], able)]
    knows_output = recipient.anonymizer or recipient.labels
    return RecipientRow(
        recipient,
        tuple(run),
        tuple(name for name in possible if name not in there),
        _linking(release, found.get("linking")),
        _share(found.get("singling_out")),
        _share(results.criteria.get("inference")) if knows_output else None,
        individual_of(seen),
        tuple(_contradictions(results, recipient, release, run)) if is_declared else (),
    )


def _links_itself(results: Results) -> bool:
    """Whether released recordings of one person are linked to each other, so that anybody can join them."""
    shares = [check.finding.values.get("share") for check in results.checks if check.name == RELEASE]
    return any(isinstance(share, float | int) and share > 0 for share in shares)


def _seen_by(results: Results, run: Mapping[str, AttackerResult], *, joins: bool) -> Results:
    """The results as if only these attackers had been run. Those who can't tell which recordings are by one person have
    them one by one: the shortest conversations."""
    baseline = {name: attacker for name, attacker in results.attackers.items() if not attacker.is_attack}
    kept = {name: replace(attacker, apart=False) for name, attacker in (baseline | dict(run)).items()}
    if not joins:
        kept = {name: _shortest(attacker) for name, attacker in kept.items()}
    seen = replace(results, attackers=kept, criteria={})
    return replace(seen, people=people(seen, among=within_groups_of(seen)))


def _shortest(attacker: AttackerResult) -> AttackerResult:
    lengths = {int(point.at["length"]) for point in attacker.estimates if "length" in point.at}
    if len(lengths) < 2:
        return attacker

    def kept(points: Estimates) -> Estimates:
        return points.filter(lambda point: point.at.get("length", min(lengths)) == min(lengths))

    return replace(
        attacker,
        estimates=kept(attacker.estimates),
        by={
            attribute: {value: kept(points) for value, points in groups.items()}
            for attribute, groups in attacker.by.items()
        },
        people=tuple(row for row in attacker.people if row.length == min(lengths)),
    )


def _linking(release: Release | None, criterion: Criterion | None) -> RecipientShare | None:
    if release is None or criterion is None:
        return None
    share = release.share
    return RecipientShare(
        value=100 * share.value,
        interval=(100 * share.low, 100 * share.high),
        guessing=100 / release.candidates,
        attacker=release.curve.attacker,
        level=criterion.level,
        candidates=release.candidates,
        length=release.curve.length,
        basis=release.basis,
    )


def _share(criterion: Criterion | None) -> RecipientShare | None:
    if criterion is None:
        return None
    point: Estimate = criterion.estimate
    attribute = str(point.at.get("attribute", ""))
    return RecipientShare(
        point.value, point.interval, point.null, criterion.attacker, criterion.level, attribute=attribute
    )


# --- what contradicts the run


def _contradictions(
    results: Results, recipient: Recipient, release: Release | None, run: Mapping[str, AttackerResult]
) -> Iterator[Remark]:
    name = recipient.name
    if not run:
        yield Remark("recipients.nobody", {"name": name})
        return
    if recipient.candidates is not None and release is not None:
        sizes = [int(point.at["speakers"]) for point in release.curve.measured]
        values: Values = {"name": name, "candidates": recipient.candidates, "least": min(sizes), "most": max(sizes)}
        if recipient.candidates > max(sizes):
            yield Remark("recipients.more_candidates", values)
        elif recipient.candidates < min(sizes):
            yield Remark("recipients.fewer_candidates", values)
    joined = any(int(point.at.get("length", 1)) > 1 for attacker in run.values() for point in attacker.estimates)
    joined = joined or any(attacker.kind == "adaptive-pseudonyms" for attacker in run.values())
    if recipient.pseudonyms and not joined:
        yield Remark("recipients.pseudonyms_not_run", {"name": name})
    if not recipient.pseudonyms and _links_itself(results):
        yield Remark("recipients.joins_anyway", {"name": name})
    if recipient.anonymizer and results.protocol.anonymized_enrollment == "released run":
        yield Remark("recipients.released_run", {"name": name})
    if (recipient.anonymizer or recipient.labels) and not _uses_output(run):
        yield Remark("recipients.anonymizer_not_run", {"name": name})


def _uses_output(run: Mapping[str, AttackerResult]) -> bool:
    """Whether an attacker was run that knows what the anonymizer makes of speech; an unknown one may."""
    kinds = [attacker.kind for attacker in run.values()]
    return any(kind not in ATTACKERS or ANONYMIZER in ATTACKERS[kind].knows for kind in kinds)


def _remarks_on_all(results: Results, rows: Sequence[RecipientRow], worst: RecipientRow) -> Iterator[Remark]:
    """What holds for the declaration as a whole: attackers that were run and that no recipient could be, and a list of
    candidates on the first page that no recipient has."""
    nobody = [name for name in worst.attackers if not any(name in row.attackers for row in rows)]
    if nobody:
        yield Remark("recipients.attackers_of_nobody", {"attackers": ", ".join(nobody)})
    first_page = results.settings.get("candidates")
    lists = {row.recipient.candidates for row in rows if row.recipient.original_speech}
    if isinstance(first_page, int) and lists and first_page not in lists:
        yield Remark("recipients.other_list", {"candidates": first_page})
