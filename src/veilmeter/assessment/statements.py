"""The controller's statements for the file: the entries of the annex, and the recipients with what each one has.

Both are tables of the settings file, `[annex]` and `[[recipients]]`. An assessment measures none of this and never
fills in an entry by itself: one that is missing stays a line to fill in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.options import OptionSet, build, declare, options_of, read_options

SIMPLIFIED, CONTEXTUAL = "simplified", "contextual"
ROUTES = (SIMPLIFIED, CONTEXTUAL)
LONGEST = 5000  # characters of an entry
# The scale of the PIA tool, which an assessment of severity or likelihood uses unless it names its own.
SCALE = ("negligible", "limited", "significant", "maximum")


def _read_date(value: Any) -> Any:
    """A date of TOML, or one written as text."""
    text = value.isoformat() if isinstance(value, date) else value
    try:
        return date.fromisoformat(text).isoformat()
    except (TypeError, ValueError):
        raise InputError(f"review_date: not a date: {str(text)[:40]!r}", fix="write it as 2027-11-30") from None


@dataclass(frozen=True, kw_only=True)
class AnnexEntries(OptionSet):
    """The entries of the annex: `[annex]` in the TOML file, each in your own words."""

    controller: str = declare("", help="Controller: name and address.")
    contact: str = declare("", help="Contact for questions about this file.")
    purpose: str = declare("", help="Purpose of the release.")
    form: str = declare("", help="Form of the release: files, access, metadata that goes with them.")
    legal_basis: str = declare("", help="Legal basis of the processing, that of anonymizing included.")
    article_9: str = declare("", help="Special categories of data (Article 9) and the exception relied on.")
    people: str = declare("", help="Categories of people: patients, minors, staff, ...")
    third_countries: str = declare("", help="Transfers to third countries, and safeguards for them.")
    retention: str = declare("", help="Retention of original and released speech.")
    safeguards: str = declare("", help="Safeguards beside anonymization: contracts, access, deletion.")
    necessity: str = declare("", help="Necessity and proportionality.")
    route: str | None = declare(
        None, help="Route of EDPB Guidelines 02/2026 (draft): simplified assumes the strongest attacker for everybody, "
        "contextual counts for every recipient what that recipient can have.", choices=ROUTES,
    )  # fmt: skip
    severity: str = declare("", help="Severity for the people concerned: negligible, limited, significant or maximum.")
    likelihood: str = declare("", help="Likelihood as you rate it, on the same scale.")
    scale: str = declare("", help="Scale of severity and likelihood, if it is a different one.")
    officer: str = declare("", help="Data protection officer.")
    advice: str = declare("", help="Advice of the officer.")
    consultation: str = declare("", help="Whether an authority is consulted beforehand (Article 36), and why.")
    decided_by: str = declare("", help="Name of the person who decides and signs.")
    review_date: str = declare("", help="Date of the next assessment, such as 2027-11-30.", parse=_read_date)
    review_triggers: str = declare("", help="Events that lead to an earlier assessment.")
    incidents: str = declare("", help="Plan for the case that somebody is recognized: who is told, who acts.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in options_of(AnnexEntries):
            if len(str(getattr(self, name) or "")) > LONGEST:
                raise InputError(f"{name} has more than {LONGEST} characters", fix="refer to a document instead")
        for name in ("severity", "likelihood"):
            rated = getattr(self, name)
            if rated and not self.scale and rated not in SCALE:
                raise InputError(
                    f"{name}: {rated[:40]!r} is not on the scale {', '.join(SCALE)}",
                    fix="choose one of these, or name your own scale: scale = '...'",
                )

    @property
    def given(self) -> dict[str, str]:
        """The entries that were made."""
        return {name: text for name in options_of(AnnexEntries) if (text := getattr(self, name))}


def read_annex(value: Any) -> dict[str, str]:
    """The entries of a table `[annex]`, checked."""
    if not isinstance(value, Mapping):
        raise InputError("annex must be a table", fix="write [annex] and below it controller = '...'")
    try:
        entries: AnnexEntries = build(AnnexEntries, value)
    except InputError as error:
        raise InputError(f"annex: {error.what}", path=error.path, fix=error.fix) from None
    return entries.given


@dataclass(frozen=True, kw_only=True)
class Recipient(OptionSet):
    """Somebody who may get the released speech: a table `[[recipients]]` in the TOML file."""

    name: str = declare(help="Name of the recipient, or of a group of them.")
    original_speech: bool = declare(False, help="Has original speech of people in the release, or can get it.")
    anonymizer: bool = declare(False, help="Has the anonymizer, or can run it.")
    labels: bool = declare(False, help="Knows the speakers of some released recordings.")
    pseudonyms: bool = declare(False, help="Sees which released recordings are by one person.")
    candidates: int | None = declare(
        None, help="People that the recipient can look for.", least=2, default_text="those assessed"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name.strip():
            raise InputError("a recipient needs a name", fix="write name = '...'")
        if self.candidates is not None and not self.original_speech and not self.labels:
            raise InputError(
                f"{self.name}: has {self.candidates} candidates and no original speech or labels to know them by",
                fix="write original_speech = true, or leave out candidates",
            )


# Where nobody was declared: the roles that authorities name, each with what it may be assumed to have.
CAST = (
    Recipient(name="controller", original_speech=True, anonymizer=True, labels=True, pseudonyms=True),
    Recipient(name="contractual_recipient", original_speech=True, pseudonyms=True),
    Recipient(name="motivated_intruder", original_speech=True, anonymizer=True),
    Recipient(name="insider", original_speech=True, anonymizer=True, labels=True, pseudonyms=True),
    Recipient(name="public", original_speech=True),
)


def read_recipients(value: Any) -> tuple[Recipient, ...]:
    """The recipients in tables `[[recipients]]`, checked; each has another name."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InputError("recipients must be tables", fix="write [[recipients]] and below it name = '...'")
    recipients: list[Recipient] = []
    for number, table in enumerate(value, 1):
        if not isinstance(table, Mapping | Recipient):
            raise InputError(f"recipient {number} must be a table", fix="write [[recipients]]")
        try:
            recipients.append(table if isinstance(table, Recipient) else build(Recipient, table))
        except InputError as error:
            raise InputError(f"recipient {number}: {error.what}", path=error.path, fix=error.fix) from None
        if recipients[-1].name in [other.name for other in recipients[:-1]]:
            raise InputError(f"two recipients are called {recipients[-1].name!r}", fix="give each another name")
    return tuple(recipients)


def refuse_route_without_recipients(annex: Mapping[str, str], recipients: Iterable[object]) -> None:
    """The contextual route rests on what recipients have."""
    if annex.get("route") == CONTEXTUAL and not list(recipients):
        raise InputError(
            "annex: the contextual route counts what each recipient can have, and no recipient is declared",
            fix="add tables [[recipients]], or write route = 'simplified'",
        )


def read_statements(path: str | Path) -> dict[str, Any]:
    """The tables `[annex]` and `[[recipients]]` of a settings file as plain values, for a report written later."""
    values = read_options(path)
    try:
        annex = read_annex(values.get("annex", {}))
        recipients = read_recipients(values.get("recipients", ()))
        refuse_route_without_recipients(annex, recipients)
    except InputError as error:
        raise InputError(error.what, path=error.path or path, fix=error.fix) from None
    if not annex and not recipients:
        raise InputError("no table [annex] or [[recipients]] in this file", path=path, fix="add one of them")
    return {"annex": annex, "recipients": [as_table(recipient) for recipient in recipients]}


def as_table(recipient: Recipient) -> dict[str, Any]:
    return {name: getattr(recipient, name) for name in options_of(Recipient)}
