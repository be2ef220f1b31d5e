"""What luck gives is written beside what was measured, and intervals agree with it."""

from __future__ import annotations

from dataclasses import replace

from sample_results import attacker, link, sample

from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.metrics.legal.chance import FigureKey, JointChance
from veilmeter.results.levels import JOINT_SHARE, P_ADJUSTED, with_chance

LINK = FigureKey("ignorant", "linkability", length=1, speakers=20)
WOMEN = FigureKey("ignorant", "linkability", "gender", "f", 1, 20)
UPRIGHT, FLIPPED = (FigureKey("ignorant", name) for name in ("d_ece", "d_ece_flipped"))
JOINT = JointChance(
    {LINK: 0.4, WOMEN: 0.004, UPRIGHT: 0.2, FLIPPED: 0.6}, 499, {UPRIGHT: (0.01, 0.0, 0.03)}, 0.15, 0.5, 0.02, 0.3
)
D_ECE = Estimate(name="d_ece", value=0.02, null=0.0, null_range=(0.0, 0.01), interval=(0.015, 0.03))


def test_figures_get_their_probability_and_agreeing_intervals() -> None:
    point = link(12.0, low=8.0, high=20.0)
    holder = attacker("ignorant", point, link(50.0, speakers=5), D_ECE, by={"gender": {"f": Estimates([point])}})
    results = with_chance(replace(sample(), attackers={"ignorant": holder}), JOINT)
    estimates = results.attackers["ignorant"].estimates
    everybody, untested = estimates.points("linkability")
    assert everybody.extra[P_ADJUSTED] == 0.4 / JOINT_SHARE
    assert everybody.interval == (5.0, 20.0)  # guessing is not ruled out
    assert P_ADJUSTED not in untested.extra
    (women,) = results.attackers["ignorant"].by["gender"]["f"]
    assert women.extra[P_ADJUSTED] == 0.004 / JOINT_SHARE
    assert women.interval == point.interval
    d_ece = estimates.single("d_ece")
    assert d_ece is not None
    assert (d_ece.null, d_ece.null_range) == (0.01, (0.0, 0.03))
    assert d_ece.extra[f"flipped_{P_ADJUSTED}"] == 0.6 / JOINT_SHARE
    assert results.chance is not None
    luck = results.chance
    assert (luck.best_link, luck.exposed, luck.exposed_p, luck.exposed_luck) == (15.0, 0.5, 0.02 / JOINT_SHARE, 0.3)


def test_scores_of_another_system_are_not_tested_by_these_people() -> None:
    holder = attacker("ignorant", D_ECE, sources={"d_ece": "scores"})
    results = with_chance(replace(sample(), attackers={"ignorant": holder}), JOINT)
    assert results.attackers["ignorant"].estimates.single("d_ece") == D_ECE


def test_nothing_relabeled_changes_nothing() -> None:
    assert with_chance(sample(), JointChance({}, 0)) == sample()
