"""How high a risk is: low, raised, high or unknown, from an estimate and what chance gives.

- low: chance is not ruled out, and the interval would have shown a high risk;
- raised: significantly more than chance;
- high: significantly more than chance, and a third or more of the way from there to certainty;
- unknown: the interval is too wide to tell chance from a high risk.

Significance holds for all the figures that were looked at together: the more attackers, lengths and groups, the
higher the highest of them by chance. Where people were relabeled at random (`metrics.legal.chance`), an estimate
carries the probability `p_adjusted` that the best of them would do as well by chance; other figures share a small part
of the error among them by Holm's rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Level, Severity
from veilmeter.core.intervals import wilson
from veilmeter.metrics.legal.chance import FigureKey, JointChance
from veilmeter.metrics.scores.summary import BANDS
from veilmeter.results.model import AttackerResult, Chance, Results

PRECISION = 10.0  # points above chance at which a rate of linking may still be called no better than chance
MANY = 1_000_000  # speakers: more are not asked for
ALPHA = 0.05  # how often something is called more than chance where nothing is
JOINT_SHARE = 0.8  # of that for what is tested together by relabeling people; the rest for figures with intervals only
HIGH_SHARE = 1 / 3  # of the way from chance to certainty
P_ADJUSTED = "p_adjusted"
TOP_TARGETS = "top_targets"  # extra of D_ECE: comparisons of one person that score above all of different people
FAR_BEYOND = 6.0  # standard deviations of chance
ORDER: tuple[Level, ...] = ("low", "unknown", "raised", "high")
SEVERITY: dict[Level, Severity] = {"low": "information", "unknown": "warning", "raised": "warning", "high": "problem"}


def worst_level(levels: Iterable[Level]) -> Level:
    """
    >>> worst_level(["low", "raised", "unknown"]), worst_level([])
    ('raised', 'unknown')
    """
    return max(levels, key=ORDER.index, default="unknown")


def chance_of(estimate: Estimate) -> float:
    """The value that chance gives: the estimate's null, 1/N' for linking, in percent."""
    if estimate.null is not None:
        return estimate.null
    return 100 / int(estimate.at["speakers"]) if estimate.name == "linkability" and "speakers" in estimate.at else 0.0


def surplus(estimate: Estimate, largest: float = 100.0) -> float:
    """How far from chance (0) to certainty (1).

    >>> surplus(Estimate(name="top1", value=55.0, null=10.0))
    0.5
    """
    chance = chance_of(estimate)
    return (estimate.value - chance) / (largest - chance) if chance < largest else 0.0


def tail_probability(estimate: Estimate) -> float | None:
    """How often chance alone would give as much, judged by the lower half of the estimate's 95 % interval; None
    without an interval."""
    if estimate.interval is None or not math.isfinite(estimate.value):
        return None
    distance, reach = estimate.value - chance_of(estimate), estimate.value - estimate.interval[0]
    if distance <= 0:
        return 1.0
    if reach <= 0:
        return 0.0
    return 1 - NormalDist().cdf(NormalDist().inv_cdf(0.975) * distance / reach)


def with_holm(points: Sequence[Estimate]) -> list[Estimate]:
    """The same estimates with `p_adjusted`: by Holm's rule among these, for their part of the error. Those that have
    it already keep it, those without an interval get none."""
    wanted = [row for row, point in enumerate(points) if P_ADJUSTED not in point.extra]
    tails = {row: p for row in wanted if (p := tail_probability(points[row])) is not None}
    adjusted = dict(zip(tails, holm(list(tails.values())), strict=True))
    share = 1 - JOINT_SHARE
    return [
        with_probability(point, min(1.0, adjusted[row] / share)) if row in adjusted else point
        for row, point in enumerate(points)
    ]


def holm(probabilities: Sequence[float]) -> list[float]:
    """Probabilities adjusted for looking at all of them (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    adjusted = [1.0] * len(probabilities)
    running = 0.0
    for place, row in enumerate(order):
        running = max(running, min(1.0, (len(order) - place) * probabilities[row]))
        adjusted[row] = running
    return adjusted


def with_probability(estimate: Estimate, p_adjusted: float) -> Estimate:
    """The estimate with its probability. Where chance is not ruled out, its interval reaches to what chance gives:
    what a test does not reject belongs to the interval."""
    interval = estimate.interval
    if interval is not None and p_adjusted >= ALPHA:
        chance = chance_of(estimate)
        interval = (min(interval[0], chance), max(interval[1], chance))
    return estimate.with_(interval=interval, extra={**estimate.extra, P_ADJUSTED: p_adjusted})


def is_significant(estimate: Estimate) -> bool | None:
    """Whether it is significantly more than chance; None where that is not known."""
    p = estimate.extra.get(P_ADJUSTED)
    if isinstance(p, int | float):
        return p < ALPHA
    return None if estimate.interval is None else estimate.interval[0] > chance_of(estimate)


def has_top_targets(estimate: Estimate) -> bool:
    """Whether more comparisons of one person than chance explains score above all comparisons of different people."""
    p = estimate.extra.get(f"{TOP_TARGETS}_p")
    return isinstance(p, int | float) and p < ALPHA


def has_bands(estimate: Estimate) -> bool:
    """Whether scores of one person lie in bands between those of different people, far beyond chance. D_ECE does not
    see them, as it expects that higher scores mean the same person."""
    excess = estimate.extra.get(BANDS)
    return isinstance(excess, int | float) and excess > FAR_BEYOND


def level_of(estimate: Estimate, *, largest: float = 100.0, high: float = HIGH_SHARE) -> Level:
    """The level of a figure between what chance gives and `largest`."""
    if not math.isfinite(estimate.value):
        return "unknown"
    significant = is_significant(estimate)
    much = surplus(estimate, largest) >= high
    if significant is None:
        return "high" if much else "unknown"
    if significant:
        return "high" if much else "raised"
    if estimate.interval is None:
        return "unknown" if much else "low"
    limit = chance_of(estimate) + high * (largest - chance_of(estimate))
    return "unknown" if estimate.interval[1] >= limit else "low"


def speakers_needed(speakers: int, reach: float, margin: float) -> int:
    """How many speakers would bring the end of an interval within `margin` of the value: its width falls with the
    square root of their number.

    >>> speakers_needed(10, 30.0, 10.0)
    90
    """
    return max(speakers, math.ceil(speakers * (reach / margin) ** 2 - 1e-9))


def speakers_to_rule_out(estimate: Estimate, precision: float = PRECISION) -> int:
    """How many speakers would show that a rate of linking lies within `precision` points of chance, if it does.

    More people make a guess harder, so the rate falls with their number, by chance as far above its null as now; the
    interval is Wilson's with as many trials per speaker as the present one is worth.

    >>> few = Estimate(name="linkability", value=5.0, interval=(0.0, 38.0), n={"speakers": 20}, at={"speakers": 20})
    >>> speakers_to_rule_out(few)
    95
    """
    speakers, chance, value = int(estimate.n.get("speakers", 1)), chance_of(estimate) / 100, estimate.value / 100
    high = 1.0 if estimate.interval is None else estimate.interval[1] / 100
    trials = next((n for n in range(64 * speakers, 1, -1) if wilson(value * n, n)[1] >= high), 1)
    count = speakers
    while count < MANY:
        rate, worth = max(value, chance) * speakers / count, trials * count // speakers
        if wilson(rate * worth, worth)[1] <= chance * speakers / count + precision / 100:
            break
        count += max(1, count // 50)
    return count


def with_chance(results: Results, joint: JointChance) -> Results:
    """The results with `p_adjusted` at every figure that was tested by relabeling people."""
    if not joint.p_adjusted:
        return results
    return replace(
        results,
        attackers={name: _test_attacker(attacker, joint) for name, attacker in results.attackers.items()},
        chance=Chance(
            draws=joint.draws,
            tests=len(joint.p_adjusted),
            best_link=None if joint.best_link is None else 100 * joint.best_link,
            exposed=joint.exposed,
            exposed_p=None if joint.exposed_p is None else _share_of_error(joint.exposed_p),
            exposed_luck=joint.exposed_luck,
        ),
    )


def _share_of_error(p: float) -> float:
    """For this part of the error only."""
    return min(1.0, p / JOINT_SHARE)


def _test_attacker(attacker: AttackerResult, joint: JointChance) -> AttackerResult:
    return replace(
        attacker,
        estimates=Estimates(_test(point, attacker, {}, joint) for point in attacker.estimates),
        people=tuple(
            replace(person, named=100 * joint.named[named]) if named in joint.named else replace(person, named=None)
            for person in attacker.people
            for named in [(_scoring_attacker(attacker), person.speaker)]
        ),
        by={
            attribute: {
                value: Estimates(_test(point, attacker, {attribute: value}, joint) for point in estimates)
                for value, estimates in values.items()
            }
            for attribute, values in attacker.by.items()
        },
    )


def _scoring_attacker(attacker: AttackerResult) -> str:
    """Whose scores are behind the figures."""
    return str(attacker.details.get("taken_over_from", attacker.name))


def _test(point: Estimate, attacker: AttackerResult, group: Mapping[str, str], joint: JointChance) -> Estimate:
    """The point with its probability; unchanged where it was not tested, or not on the scores that were relabeled.

    Chance is that of the scores behind the figure: of the other attacker's where its method was replaced.
    """
    if point.name not in ("linkability", "d_ece") or attacker.sources.get(point.name, "vectors") == "scores":
        return point
    attribute, value = next(iter(group.items()), ("", ""))
    scored = _scoring_attacker(attacker)
    if point.name == "linkability":
        length, speakers = int(point.at.get("length", 1)), int(point.at["speakers"])
        figure = FigureKey(scored, "linkability", attribute, value, length, speakers)
        return (
            with_probability(point, _share_of_error(joint.p_adjusted[figure])) if figure in joint.p_adjusted else point
        )
    upright, flipped = (FigureKey(scored, name, attribute, value) for name in ("d_ece", "d_ece_flipped"))
    if upright not in joint.p_adjusted:
        return point
    null = joint.luck[upright]
    tested = with_probability(
        point.with_(null=null[0], null_range=null[1:]), _share_of_error(joint.p_adjusted[upright])
    )
    extra = {**tested.extra, f"flipped_{P_ADJUSTED}": _share_of_error(joint.p_adjusted[flipped])}
    top = FigureKey(scored, "top_targets")
    if not attribute and top in joint.p_adjusted:
        extra |= {TOP_TARGETS: int(joint.found[top]), f"{TOP_TARGETS}_p": _share_of_error(joint.p_adjusted[top])}
    return tested.with_(extra=extra)
