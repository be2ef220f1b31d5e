"""A criterion as the report shows it: the figure that its sentence explains, a bar, and who reached it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from veilmeter.attacks.attacker import plain_words
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.metrics.measure import measure
from veilmeter.results.criteria import D_ECE_MAX
from veilmeter.results.model import Criterion, Results
from veilmeter.wording import sentence
from veilmeter.wording.english import page as words
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


def about_attacker(results: Results, attacker: str) -> str:
    return results.attackers[attacker].about if attacker in results.attackers else ""


def criterion_row(results: Results, name: str) -> CriterionRow:
    """A criterion with the figure that its sentence explains."""
    criterion = results.criteria[name]
    point = shown_point(results, criterion)
    percent = in_percent(point)
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
        figure=percent.format_value() + tag,
        interval=percent.format_interval(),
        guessing="" if apart else percent.format_null(),  # nobody guesses there
        bar=bar_of(point),
        sentence=sentence(criterion.finding, "lay"),
        who=attacker.who if known else words.LEARNER if name == "inference" else criterion.attacker,
        attacker=criterion.attacker if known else "",
        measure=point.label + words.where(point) + words.in_group(criterion.group),
        of_hundred="" if apart else _of_hundred(point),
    )


def _of_hundred(point: Estimate) -> str:
    percent = _parts_of_all(point) if point.unit == "bit" else in_percent(point)
    if percent.unit != "percent":
        return f"{percent.format_value()} {percent.format_interval()}".strip()
    return words.out_of_hundred(percent, "" if percent.null is None else chance(percent.null / 100))


def _parts_of_all(point: Estimate) -> Estimate:
    """Bits as percent of all that a comparison could tell."""

    def share(bits: float) -> float:
        return min(100.0, max(0.0, 100 * bits / D_ECE_MAX))

    interval = None if point.interval is None else (share(point.interval[0]), share(point.interval[1]))
    null = None if point.null is None else share(point.null)
    return point.with_(value=share(point.value), interval=interval, null=null, unit="percent")


def shown_point(results: Results, criterion: Criterion) -> Estimate:
    """Of singling out the attack itself, its control being what guessing gives: that is what the sentence explains."""
    if criterion.name != "singling_out" or criterion.attacker not in results.attackers:
        return criterion.estimate
    estimates = results.attackers[criterion.attacker].estimates
    raw, control = (
        next((point for point in estimates.points(name) if point.at == criterion.estimate.at), None)
        for name in ("singling_out", "control")
    )
    return criterion.estimate if raw is None or control is None else raw.with_(null=control.value)


def in_percent(point: Estimate) -> Estimate:
    """Probabilities in percent, as the sentences say them."""
    if point.unit != "probability":
        return point
    interval = None if point.interval is None else (100 * point.interval[0], 100 * point.interval[1])
    null = None if point.null is None else 100 * point.null
    return point.with_(value=100 * point.value, interval=interval, null=null, unit="percent")


def bar_of(point: Estimate) -> Bar | None:
    """A bar from 0 to the most that is possible; none for measures without a range."""
    try:
        full = 1.0 if point.unit == "probability" else measure(point.name).bar
    except VeilmeterError:
        full = None
    if not full or not math.isfinite(point.value):
        return None

    def place(value: float) -> float:
        return round(100 * min(1.0, max(0.0, value / full)), 1)

    low, high = (None, None) if point.interval is None else (place(point.interval[0]), place(point.interval[1]))
    return Bar(place(point.value), low, high, None if point.null is None else place(point.null), words.bar(point))
