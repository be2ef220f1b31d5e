"""The table of people by falling risk."""

from __future__ import annotations

from dataclasses import dataclass

from veilmeter.results.model import Person, Results

MOST_PEOPLE = 1000  # rows; more would only slow the page down


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    title: str
    number: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """`value` is what a column of numbers is sorted by; None in columns of text, empty where there is none."""

    text: str
    value: float | str | None = None


@dataclass(frozen=True, slots=True)
class PersonRow:
    speaker: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PeopleTable:
    gist: str
    intro: str
    columns: tuple[Column, ...]
    rows: tuple[PersonRow, ...]
    left_out: str


def people_table(results: Results) -> PeopleTable:
    people = results.people.persons
    attackers = [name for name in results.attackers if any(name in person.by_attacker for person in people)]
    genders = any(person.gender for person in people)
    deids = any(person.deid is not None for person in people)
    columns = [
        Column("speaker", "speaker", False),
        Column("risk", "highest risk", True),
        Column("interval", "95 % interval", True),
        *(Column(name, name, True) for name in attackers),
        *((Column("gender", "gender", False),) if genders else ()),
        *((Column("deid", "likeness gone (%)", True),) if deids else ()),
    ]
    rows = tuple(_row(person, attackers, genders, deids) for person in people[:MOST_PEOPLE])
    left = len(people) - len(rows)
    return PeopleTable(
        gist=results.people.sentence,
        intro="The table lists the speakers by their highest risk over all attackers. A figure is the share of a "
        "speaker's anonymized recordings that an attacker linked to them: 1.00 is all of them, 0.00 none."
        + _by_chance(results),
        columns=tuple(columns),
        rows=rows,
        left_out=f"{left:,} more speakers with lower risk are in tables/speakers.parquet." if left > 0 else "",
    )


def _by_chance(results: Results) -> str:
    expected = results.people.expected_by_chance
    if expected is None or not results.people.unprotected:
        return ""
    return f" By chance alone about {expected:.2g} of them would be linked more often than not."


def _row(person: Person, attackers: list[str], genders: bool, deids: bool) -> PersonRow:
    risk = person.risk
    cells = [Cell(person.speaker), _number(risk.value), Cell(risk.format_interval(), risk.value)]
    for name in attackers:
        point = person.by_attacker.get(name)
        cells.append(_number(None if point is None else point.value))
    cells += [Cell(person.gender)] if genders else []
    cells += [_number(person.deid, 1)] if deids else []
    return PersonRow(person.speaker, tuple(cells))


def _number(value: float | None, decimals: int = 2) -> Cell:
    return Cell("", "") if value is None else Cell(f"{value:.{decimals}f}", value)
