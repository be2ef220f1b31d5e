"""Coverage of the headlines' intervals.

Where nobody can be recognized, the truth is what guessing gives. Elsewhere it is the mean of that very figure over many
draws of the same world: other judgments of it, and witnesses, which are assessments that give nothing but this figure,
without intervals and without all that a verdict needs beside it.
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

from benchmarks.world_judgments import ATTACKERS, OPTIONS, REAL, Judgment, linking_curve, quickly, simulated
from veilmeter import assess
from veilmeter.assessment import attack
from veilmeter.attacks.attacker import AttackerId, knowledge
from veilmeter.core.estimate import Estimate
from veilmeter.metrics.legal.chance import Relabeled

WITNESSES = {3: 6, 20: 6, 40: 6, 100: 6, 400: 3}  # of each world, by the number of people; none of larger ones
FIRST_WITNESS = 1000  # seeds that no judgment has
NOT_EXACT = ("copies", "released copies")  # nobody is recognized, but copies are linked


@dataclass(frozen=True)
class Witness:
    """The figures of linking in another draw of a world."""

    world: str
    people: int
    seed: int
    curve: dict[str, float]
    seconds: float


def call_witness(world: str, people: int, seed: int, attackers: Sequence[str]) -> Witness:
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
    return Witness(world, people, seed, linking_curve(results), time.process_time() - started)


def _no_eer(matrix: attack.Matrix, *_: Any) -> Estimate:
    at = {"speakers": len(matrix.enrolled), "length": matrix.length}
    return Estimate(name="one_minus_eer", value=0.0, at=at)


_UNUSED: dict[str, Any] = {
    "_one_minus_eer": _no_eer,
    "relabel_people": lambda *asked: Relabeled((), np.zeros((0, 1)), ()),
}


def wanted_witnesses(judgments: Iterable[Judgment]) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """World, people, seed and attackers of the witnesses of these judgments: those that are in a headline, and those
    whose method they might have taken over."""
    shown: dict[tuple[str, int], set[str]] = defaultdict(set)
    for judgment in judgments:
        if judgment.interval is not None and not _known(judgment) and judgment.world not in REAL:
            shown[judgment.world, judgment.people].add(judgment.attacker)
    knows = {str(name): known for name, known in knowledge(map(AttackerId, ATTACKERS)).items()}
    return [
        (world, people, seed, tuple(name for name in ATTACKERS if any(knows[name] <= knows[one] for one in names)))
        for (world, people), names in shown.items()
        for seed in range(FIRST_WITNESS, FIRST_WITNESS + WITNESSES.get(people, 0))
    ]


def covered(judgments: Sequence[Judgment], witnesses: Sequence[Witness] = ()) -> list[bool]:
    """Whether the interval of each headline covers the true value, for judgments of one world; those whose true value
    is not known are left out."""
    inside = []
    for judgment in judgments:
        curves = [other.curve for other in judgments if other is not judgment] + [other.curve for other in witnesses]
        others = [curve[judgment.point] for curve in curves if judgment.point in curve]
        truth = judgment.chance if _known(judgment) else _truth(judgment, others)
        if judgment.interval is not None and truth is not None:
            inside.append(bool(judgment.interval[0] <= truth <= judgment.interval[1]))
    return inside


def covered_everywhere(judgments: Iterable[Judgment], witnesses: Iterable[Witness]) -> list[bool]:
    of_world: dict[tuple[str, int], tuple[list[Judgment], list[Witness]]] = defaultdict(lambda: ([], []))
    for judgment in judgments:
        of_world[judgment.world, judgment.people][0].append(judgment)
    for witness in witnesses:
        of_world[witness.world, witness.people][1].append(witness)
    return [inside for judged, heard in of_world.values() for inside in covered(judged, heard)]


def _known(judgment: Judgment) -> bool:
    return not judgment.recognizable and judgment.world not in NOT_EXACT


def _truth(judgment: Judgment, others: Sequence[float]) -> float | None:
    """The mean of n others varies itself: a distance from it is larger than one from the truth by sqrt(1 + 1/n)."""
    if len(others) < 2:
        return None
    value = judgment.curve[judgment.point]
    return float(value + (np.mean(others) - value) / np.sqrt(1 + 1 / len(others)))
