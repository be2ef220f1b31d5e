"""Tables of the technical part: every measure under its section, one row per attacker and point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from veilmeter.attacks.attacker import plain_words
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.metrics.measure import MEASURES, SECTIONS, Measure, measure
from veilmeter.results.model import Results
from veilmeter.wording.english.page import COMPARED, FROM_ORIGINAL, attacker_method, in_group, where

FURTHER = "further"
ORDER = (*(section for section in SECTIONS if section != "verification"), FURTHER, "verification")
GROUPED = ("linkability", "d_ece", "eer")  # shown within groups, too; see results.json for the rest
_CURVE_ENDS = ("speakers", "k")  # along which a curve is shown by its ends, as the figure shows the rest


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, as text."""

    attacker: str
    label: str
    value: str
    interval: str
    null: str
    method: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.attacker, self.label, self.value, self.interval, self.null, self.method)


def section_of(name: str) -> str:
    """The section of a measure; that of one that is not known here is for further ones."""
    try:
        return measure(name).section or FURTHER
    except VeilmeterError:
        return FURTHER


def section_points(results: Results, section: str) -> Iterator[tuple[str, Estimate]]:
    """Every point of a section with who or what it is of; of curves only the ends."""
    for place, estimates in results.places():
        who = place if place in results.attackers else COMPARED.get(place, place)
        for name in estimates.names:
            if _home(place, name) == section:
                yield from ((who, point) for point in _ends(estimates.points(name)))
    yield from _group_points(results, section)
    if section == "inference" and section in results.parts:
        yield from ((FROM_ORIGINAL, point) for point in results.parts[section].reference)


def _group_points(results: Results, section: str) -> Iterator[tuple[str, Estimate]]:
    """The measures that speak for a section, within every group."""
    for name, attacker in results.attackers.items():
        for attribute, groups in attacker.by.items():
            for value, estimates in groups.items():
                for measured in GROUPED:
                    if section_of(measured) == section:
                        points = _ends(estimates.points(measured))
                        yield from ((name + in_group({attribute: value}), point) for point in points)


def _home(place: str, name: str) -> str:
    """What an inversion was measured by belongs to the inversion, whatever the measure."""
    return place if place in ("inversion", "sessions") else section_of(name)


def _ends(curve: Estimates) -> list[Estimate]:
    """The first and the last point of a curve over the number of people, for each conversation length."""
    key = next((key for key in _CURVE_ENDS if all(key in point.at for point in curve)), None)
    if key is None or len(curve) <= 2:
        return list(curve)
    lengths = dict.fromkeys(point.at.get("length") for point in curve)
    ends: list[Estimate] = []
    for length in lengths:
        points = [point for point in curve if point.at.get("length") == length]
        ends += [points[0], points[-1]] if len(points) > 1 else points
    return ends


def section_rows(results: Results, section: str) -> list[Row]:
    return [row(who, point) for who, point in section_points(results, section)]


def row(who: str, point: Estimate) -> Row:
    tag = f" (tag {point.extra['tag']})" if "tag" in point.extra else ""
    return Row(who, point.label + where(point), point.format_value() + tag, point.format_interval(),
               point.format_null(), point.method)  # fmt: skip


def reaches_below_zero(results: Results, section: str) -> bool:
    points = (point for _, point in section_points(results, section))
    return any(point.unit == "probability" and point.interval is not None and point.interval[0] < 0 for point in points)


def used_measures(results: Results) -> list[Measure]:
    """What was measured, in the order of the registry, each measure once."""
    names = {name for _, estimates in results.places() for name in estimates.names}
    families = {MEASURES.family(name) for name in names}
    return [entry for entry in MEASURES.values() if entry.name in families]


@dataclass(frozen=True, slots=True)
class AttackerRow:
    """An attacker in the table of the technical part."""

    name: str
    who: str
    about: str
    data: str
    skill: str
    time: str
    voiceprivacy: str
    vauquier: str


def attacker_rows(results: Results) -> list[AttackerRow]:
    rows = []
    for name, attacker in results.attackers.items():
        words = plain_words(name, attacker.about)
        aliases = (attacker.aliases.get("voiceprivacy") or "–", attacker.aliases.get("vauquier2025") or "–")
        rows.append(
            AttackerRow(
                name,
                words.who,
                attacker_method(attacker.about, attacker.extractor),
                words.data or "–",
                words.skill or "–",
                words.time or "–",
                *aliases,
            )
        )
    return rows
