"""Coverage of the headlines' intervals.

Where nobody can be recognized, the true value is what guessing gives. Elsewhere it is the mean of the same figure over
many draws of the same world: its other outcomes, and reference draws. A reference draw is an assessment that computes
this figure only, without intervals and without a verdict.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.world_outcomes import ATTACKERS, OPTIONS, REAL, Outcome, linking_curve, quickly, simulated
from veilmeter import assess
from veilmeter.assessment import attack
from veilmeter.attacks.attacker import AttackerId, knowledge
from veilmeter.core.estimate import Estimate
from veilmeter.metrics.legal.chance import Relabeled

REFERENCE_DRAWS = {3: 6, 20: 6, 40: 6, 100: 6, 400: 3}  # of each world, by the number of people; none of larger ones
FIRST_REFERENCE = 1000  # seeds that no outcome has
NOT_EXACT = ("copies", "released copies")  # nobody is recognized, but copies are linked


@dataclass(frozen=True)
class ReferenceDraw:
    """The figures of linking in another draw of a world."""

    world: str
    people: int
    seed: int
    curve: dict[str, float]
    seconds: float


def draw_reference(world: str, people: int, seed: int, attackers: Sequence[str]) -> ReferenceDraw:
    """Points of linking only."""
    started = time.process_time()
    measures = ["linkability", *(["inversion"] if "procrustes" in attackers else [])]
    with ExitStack() as patches:
        patches.enter_context(quickly())
        for name, instead in _UNUSED.items():
            patches.enter_context(patch.object(attack, name, instead))
        sides = patches.enter_context(simulated(world, people, seed))
        options = {**OPTIONS, "measures": measures, "intervals": False}
        results = assess(**sides, attackers=list(attackers), seed=seed, **options).results
    return ReferenceDraw(world, people, seed, linking_curve(results), time.process_time() - started)


def _no_eer(matrix: attack.Matrix, *_: Any) -> Estimate:
    at = {"speakers": len(matrix.enrolled), "length": matrix.length}
    return Estimate(name="one_minus_eer", value=0.0, at=at)


_UNUSED: dict[str, Any] = {
    "_one_minus_eer": _no_eer,
    "relabel_people": lambda *asked: Relabeled((), np.zeros((0, 1)), ()),
}


def wanted_references(outcomes: Iterable[Outcome]) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """World, people, seed and attackers of the reference draws that these outcomes need: the attackers of a headline,
    and those whose method they may use."""
    shown: dict[tuple[str, int], set[str]] = defaultdict(set)
    for outcome in outcomes:
        if outcome.interval is not None and not _known(outcome) and outcome.world not in REAL:
            shown[outcome.world, outcome.people].add(outcome.attacker)
    knows = {str(name): known for name, known in knowledge(map(AttackerId, ATTACKERS)).items()}
    return [
        (world, people, seed, tuple(name for name in ATTACKERS if any(knows[name] <= knows[one] for one in names)))
        for (world, people), names in shown.items()
        for seed in range(FIRST_REFERENCE, FIRST_REFERENCE + REFERENCE_DRAWS.get(people, 0))
    ]


def covers(outcomes: Sequence[Outcome], references: Sequence[ReferenceDraw] = ()) -> list[bool]:
    """Whether the interval of each headline covers the true value, for outcomes of one world; those whose true value
    is not known are left out."""
    inside = []
    for outcome in outcomes:
        curves = [other.curve for other in outcomes if other is not outcome] + [other.curve for other in references]
        others = [curve[outcome.point] for curve in curves if outcome.point in curve]
        truth = outcome.chance if _known(outcome) else _truth(outcome, others)
        if outcome.interval is not None and truth is not None:
            inside.append(bool(outcome.interval[0] <= truth <= outcome.interval[1]))
    return inside


def covers_everywhere(outcomes: Iterable[Outcome], references: Iterable[ReferenceDraw]) -> list[bool]:
    of_world: dict[tuple[str, int], tuple[list[Outcome], list[ReferenceDraw]]] = defaultdict(lambda: ([], []))
    for outcome in outcomes:
        of_world[outcome.world, outcome.people][0].append(outcome)
    for reference in references:
        of_world[reference.world, reference.people][1].append(reference)
    return [inside for results, draws in of_world.values() for inside in covers(results, draws)]


def _known(outcome: Outcome) -> bool:
    return not outcome.recognizable and outcome.world not in NOT_EXACT


def _truth(outcome: Outcome, others: Sequence[float]) -> float | None:
    """The mean of n others varies itself: a distance from it is larger than one from the truth by sqrt(1 + 1/n)."""
    if len(others) < 2:
        return None
    value = outcome.curve[outcome.point]
    return float(value + (np.mean(others) - value) / np.sqrt(1 + 1 / len(others)))
