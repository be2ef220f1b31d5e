"""Tables of the technical part: every measure under its section, one row per attacker and point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from veilmeter.attacks.attacker import plain_words
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.metrics.inference import LEAST_SPEAKERS
from veilmeter.metrics.measure import MEASURES, SECTIONS, Measure, find_measure
from veilmeter.results.criteria import D_ECE_MAX, SEVERAL, same_point, strongest, tell_linking
from veilmeter.results.model import Criterion, Results
from veilmeter.results.trust import RELEASE
from veilmeter.wording import annex_texts, sentence
from veilmeter.wording.catalog import shown
from veilmeter.wording.citations import cite
from veilmeter.wording.english import page as words
from veilmeter.wording.english.page import COMPARED, FROM_ORIGINAL, attacker_method, in_group, where
from veilmeter.wording.numbers import chance


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure on a line from 0 to the most that is possible, all in percent of its width."""

    value: float
    low: float | None
    high: float | None
    guessing: float | None
    alt: str


@dataclass(frozen=True, slots=True)
class CriterionRow:
    name: str
    title: str
    level: str
    level_text: str
    risk: bool
    figure: str
    interval: str
    guessing: str
    bar: Bar | None
    sentence: str
    who: str
    attacker: str
    measure: str
    of_hundred: str  # for readers who do not know the units; empty where the level alone says it
    names: str = ""  # as Opinion 05/2014 and Guidelines 02/2026 call it
    also: str = ""  # what else belongs to it: whether released recordings are linked to each other
    measured: bool = True
    chosen: bool = False  # the figure is that of the strongest of several attackers, chosen on other people

    @property
    def named_attacker(self) -> str:
        """The attacker's technical name, as tables of figures have it."""
        return (
            words.MOSTLY.format(strongest="strongest", who=self.attacker) if self.chosen else self.attacker or self.who
        )

    @property
    def text(self) -> str:
        return f"{self.sentence} {self.also}".strip()


def about_attacker(results: Results, attacker: str) -> str:
    return results.attackers[attacker].about if attacker in results.attackers else ""


THREE = {"linking": "linkability", "singling_out": "singling-out", "inference": "inference"}  # with their families


def criterion_rows(results: Results) -> list[CriterionRow]:
    """The three criteria of the authorities, measured or not, then the others that were measured."""
    return [criterion_row(results, name) for name in dict.fromkeys((*THREE, *results.criteria))]


def _missing_row(results: Results, name: str) -> CriterionRow:
    """One of the three criteria that was not measured: why, and what to give."""
    family = THREE[name]
    attribute = _not_inferred(results) if name == "inference" else ""
    if "anonymized" not in results.inputs:
        reason = "scores"
    elif family not in results.settings.get("measures", (family,)):
        reason = "left_out"
    elif attribute:
        reason = "few_have_attribute"
    else:
        reason = "no_attribute" if name == "inference" else "too_little"
    texts = annex_texts()
    why = texts[f"missing.{reason}"].format(
        family=family, attack=texts[f"missing_attack.{name}"], attribute=attribute, least=LEAST_SPEAKERS
    )
    return CriterionRow(
        name=name,
        title=words.criterion_title(name, ""),
        level="unknown",
        level_text=words.NOT_MEASURED,
        risk=False,
        figure=words.NOT_MEASURED,
        interval="",
        guessing="",
        bar=None,
        sentence=why,
        who="",
        attacker="",
        measure="",
        of_hundred="",
        names=words.legal_names(name),
        measured=False,
    )


def _not_inferred(results: Results) -> str:
    """An attribute that is known of too few people to infer it."""
    missing = (found for found in results.verdict.not_tested if found.code == "attribute_not_inferred")
    return next((shown(found.values["attribute"]) for found in missing), "")


def linking_of_all(results: Results) -> Criterion | None:
    """Linking by the strongest attacker among everybody: the one figure that every page shows. The worst case itself
    may lie within a group or a smaller set, where guessing gives more; it is told beside it and names its group."""
    worst, chosen = results.criteria.get("linking"), strongest(results)
    if worst is None or chosen is None:
        return worst
    return replace(
        worst,
        finding=tell_linking(results, chosen, worst.level),
        estimate=chosen.estimate,
        attacker=chosen.attacker,
        group={},
        original=same_point(results, chosen),
    )


def _worst_within(results: Results, shown: Criterion) -> str:
    """The worst case of linking, where it is that of a group or of a smaller set of people."""
    worst = results.criteria[shown.name]
    same = not worst.group and worst.estimate.at.get("speakers") == shown.estimate.at.get("speakers")
    return "" if same else annex_texts()["worst_case"].format(sentence=sentence(worst.finding, "lay"))


def _within_release(results: Results) -> str:
    """Whether released recordings of one person are linked to each other, which belongs to linkage."""
    return " ".join(sentence(check.finding, "lay") for check in results.checks if check.name == RELEASE)


def criterion_row(results: Results, name: str) -> CriterionRow:
    """A criterion with the figure that its sentence explains; one of the three that is missing says why."""
    if name in THREE and name not in results.criteria:
        return _missing_row(results, name)
    criterion = (linking_of_all(results) if name == "linking" else None) or results.criteria[name]
    point = display_point(results, criterion)
    apart = name == "distinctiveness"
    tag = f" · tag {point.extra['tag']}" if "tag" in point.extra else ""
    attacker = plain_words(criterion.attacker, about_attacker(results, criterion.attacker))
    known = criterion.attacker in results.attackers
    return CriterionRow(
        name=name,
        title=words.criterion_title(name, str(criterion.estimate.at.get("attribute", ""))),
        level=criterion.level,
        level_text=(words.DISTINCTNESS if apart else words.LEVELS)[criterion.level],
        risk=criterion.risk,
        figure=cite(point.format_value() + tag, point),
        interval=point.format_interval(),
        guessing="" if apart else point.format_null(),  # nobody guesses there
        bar=bar_of(point),
        sentence=sentence(criterion.finding, "lay"),
        who=_who(criterion, attacker.who) if known else words.LEARNER if name == "inference" else criterion.attacker,
        attacker=criterion.attacker if known else "",
        measure=point.label + words.where(point) + words.in_group(criterion.group),
        of_hundred="" if apart else _of_hundred(point),
        names=words.legal_names(name),
        also=f"{_worst_within(results, criterion)} {_within_release(results)}".strip() if name == "linking" else "",
        chosen=SEVERAL in criterion.estimate.extra,
    )


def _who(criterion: Criterion, attacker: str) -> str:
    """The attacker in plain words; the strongest, where it was chosen on other people and the figure is not its own."""
    chosen = SEVERAL in criterion.estimate.extra
    return words.MOSTLY.format(strongest=words.STRONGEST, who=attacker) if chosen else attacker


def _of_hundred(point: Estimate) -> str:
    percent = _parts_of_all(point) if point.unit == "bit" else point
    if percent.unit != "percent":
        return f"{percent.format_value()} {percent.format_interval()}".strip()
    return words.out_of_hundred(percent, "" if percent.null is None else chance(percent.null), point)


def _parts_of_all(point: Estimate) -> Estimate:
    """Bits as percent of all that a comparison could tell."""

    def share(bits: float) -> float:
        return min(100.0, max(0.0, 100 * bits / D_ECE_MAX))

    interval = None if point.interval is None else (share(point.interval[0]), share(point.interval[1]))
    null = None if point.null is None else share(point.null)
    return point.with_(value=share(point.value), interval=interval, null=null, unit="percent")


def display_point(results: Results, criterion: Criterion) -> Estimate:
    """Of singling out the attack itself, its control being what guessing gives: that is what the sentence explains."""
    if criterion.name != "singling_out" or criterion.attacker not in results.attackers:
        return criterion.estimate
    estimates = results.attackers[criterion.attacker].estimates
    raw, control = (
        next((point for point in estimates.points(name) if point.at == criterion.estimate.at), None)
        for name in ("singling_out", "control")
    )
    return criterion.estimate if raw is None or control is None else raw.with_(null=control.value)


def bar_of(point: Estimate) -> Bar | None:
    """A bar from 0 to the most that is possible; none for measures without a range."""
    try:
        full = find_measure(point.name).bar
    except VeilmeterError:
        full = None
    if not full or not math.isfinite(point.value):
        return None

    def place(value: float) -> float:
        return round(100 * min(1.0, max(0.0, value / full)), 1)

    low, high = (None, None) if point.interval is None else (place(point.interval[0]), place(point.interval[1]))
    return Bar(place(point.value), low, high, None if point.null is None else place(point.null), words.bar(point))


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
    modeled: bool = False  # an estimate of a model, not a measurement
    measure: str = ""  # whose definition explains it
    id: str = ""  # its address on a page
    point: Estimate | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.attacker, self.label, self.value, self.interval, self.null, self.method)


def section_of(name: str) -> str:
    """The section of a measure; that of one that is not known here is for further ones."""
    try:
        return find_measure(name).section or FURTHER
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
    """Measures of an inversion belong to its section, whatever the measure."""
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
               point.format_null(), point.method, point.name == "population_linkability",
               MEASURES.family(point.name), point=point)  # fmt: skip


def reaches_below_zero(results: Results, section: str) -> bool:
    """Whether a risk beyond the control may be none."""
    points = (point for _, point in section_points(results, section) if point.name == "residual_risk")
    return any(point.interval is not None and point.interval[0] < 0 for point in points)


def measures_of(results: Results) -> list[Measure]:
    """The measures of the run in the order of the registry, each once."""
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
