"""What was measured, beside what luck alone gives: each figure with its probability, and intervals that agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.metrics.legal.chance import FigureKey, JointChance
from veilmeter.results.levels import JOINT_SHARE, P_ADJUSTED, agreeing
from veilmeter.results.model import AttackerResult, Chance, Results


def with_chance(results: Results, joint: JointChance) -> Results:
    """The results with `p_adjusted` at every figure that was tested by relabeling people."""
    if not joint.p_adjusted:
        return results
    return replace(
        results,
        attackers={name: _attacker(attacker, joint) for name, attacker in results.attackers.items()},
        chance=Chance(
            draws=joint.draws,
            tests=len(joint.p_adjusted),
            best_link=joint.best_link,
            exposed=joint.exposed,
            exposed_p=None if joint.exposed_p is None else _shared(joint.exposed_p),
            exposed_luck=joint.exposed_luck,
        ),
    )


def _shared(p: float) -> float:
    """For this part of the error only."""
    return min(1.0, p / JOINT_SHARE)


def _attacker(attacker: AttackerResult, joint: JointChance) -> AttackerResult:
    return replace(
        attacker,
        estimates=Estimates(_tested(point, attacker, {}, joint) for point in attacker.estimates),
        by={
            attribute: {
                value: Estimates(_tested(point, attacker, {attribute: value}, joint) for point in estimates)
                for value, estimates in values.items()
            }
            for attribute, values in attacker.by.items()
        },
    )


def _tested(point: Estimate, attacker: AttackerResult, group: Mapping[str, str], joint: JointChance) -> Estimate:
    """The point as it stands where it was not tested, or where it comes from other scores than those relabeled.

    Luck is that of the scores behind the figure: of the other attacker's where its method was taken over.
    """
    if point.name not in ("linkability", "d_ece") or attacker.sources.get(point.name, "vectors") == "scores":
        return point
    attribute, value = next(iter(group.items()), ("", ""))
    scored = str(attacker.details.get("taken_over_from", attacker.name))
    if point.name == "linkability":
        length, speakers = int(point.at.get("length", 1)), int(point.at["speakers"])
        figure = FigureKey(scored, "linkability", attribute, value, length, speakers)
        return agreeing(point, _shared(joint.p_adjusted[figure])) if figure in joint.p_adjusted else point
    upright, flipped = (FigureKey(scored, name, attribute, value) for name in ("d_ece", "d_ece_flipped"))
    if upright not in joint.p_adjusted:
        return point
    luck = joint.luck[upright]
    tested = agreeing(point.with_(null=luck[0], null_range=luck[1:]), _shared(joint.p_adjusted[upright]))
    return tested.with_(extra={**tested.extra, f"flipped_{P_ADJUSTED}": _shared(joint.p_adjusted[flipped])})
