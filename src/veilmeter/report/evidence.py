"""From a figure in a sentence to its evidence: each has a row in a table, and every row an address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from veilmeter.core.estimate import Estimate
from veilmeter.report.rows import Row, row, section_of
from veilmeter.results.criteria import SEVERAL
from veilmeter.wording.citations import Citation, link_marks, without_marks
from veilmeter.wording.english import page as words


def address(text: str, taken: set[str]) -> str:
    """An id for a row, made of its words, which no other row has.

    >>> address("adaptive Linkability, 40 people", set()), address("a", {"row-a"})
    ('row-adaptive-linkability-40-people', 'row-a-2')
    """
    base = "row-" + (re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")[:80] or "figure")
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def with_addresses(rows: Iterable[Row], taken: set[str]) -> list[Row]:
    return [replace(one, id=address(f"{one.attacker} {one.label}", taken)) for one in rows]


def with_cited(
    tables: Sequence[tuple[str, Sequence[Row]]], cited: Sequence[Citation]
) -> tuple[list[list[Row]], list[str]]:
    """The rows of every section with addresses and with a row for each citation that had none, and the address of each
    citation; empty where there is no section that it could be in."""
    taken: set[str] = set()
    numbered = [with_addresses(rows, taken) for _, rows in tables]
    places = {section: number for number, (section, _) in enumerate(tables)}
    targets = []
    for citation in cited:
        known = _find([one for rows in numbered for one in rows], citation.estimate)
        home = places.get(section_of(citation.estimate.name))
        if known is None and home is not None:
            made = citation_row(citation)
            known = replace(made, id=address(f"{made.attacker} {made.label}", taken))
            numbered[home].append(known)
        targets.append("" if known is None else known.id)
    return numbered, targets


def citation_rows(cited: Sequence[Citation]) -> tuple[list[Row], list[str]]:
    """A row for every citation, and their addresses."""
    rows = with_addresses(map(citation_row, cited), set())
    return rows, [one.id for one in rows]


SYSTEM = "system"  # in the context of an estimate: the system that it belongs to


def citation_row(citation: Citation) -> Row:
    """A row for a figure that no table has: the strongest attacker as chosen on other people, or one person."""
    point = citation.estimate
    system = citation.system or str(point.context.get(SYSTEM, ""))
    who = str(point.context.get("attacker", ""))
    who = words.MOSTLY.format(strongest=words.STRONGEST, who=who) if SEVERAL in point.extra else who
    return row(f"{system}: {who}".removesuffix(": ") if system else who, point)


def _find(rows: Sequence[Row], point: Estimate) -> Row | None:
    same = [one for one in rows if one.point is not None and _is_same(one.point, point)]
    attacker = str(point.context.get("attacker", ""))
    return next((one for one in same if one.attacker.partition(",")[0] == attacker), same[0] if same else None)


def _is_same(one: Estimate, other: Estimate) -> bool:
    return (one.name, one.label, one.value, one.interval, dict(one.at)) == (
        other.name,
        other.label,
        other.value,
        other.interval,
        dict(other.at),
    )


def linked(text: Any, targets: Sequence[str]) -> Any:
    """Text as markup in which every figure that was cited is a link to its row."""
    from markupsafe import Markup, escape

    def link(place: int, figure: str) -> str:
        target = targets[place] if place < len(targets) else ""
        return str(Markup('<a class="number" href="#{}">{}</a>').format(target, Markup(figure))) if target else figure

    return Markup(link_marks(str(escape(text)), link))


def without_links(value: Any) -> Any:
    """A value of a template without marks: within attributes and data there are no links."""
    if not isinstance(value, str):
        return value
    cleaned = without_marks(str(value))
    return type(value)(cleaned) if cleaned != value else value
