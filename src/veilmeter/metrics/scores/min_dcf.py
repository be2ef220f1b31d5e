"""minDCF, the minimum of the detection cost function of the NIST and VoxSRC speaker recognition evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.metrics.calibration import BlockSets
from veilmeter.metrics.measure import Measure, rate_suffix
from veilmeter.metrics.scores.forms import BlockFunction, SortedScores

Floats = NDArray[np.float64]
PRIORS = (0.01, 0.05)


@dataclass(frozen=True)
class MinDcf(BlockFunction):
    """As `min_dcf`. A linear cost is least at a corner of the ROC's convex hull, and the corners lie between the blocks
    of the oracle calibration: their minimum is that over all thresholds."""

    prior: float

    sure = (0.0, 1.0)
    overfits = True  # the threshold is the best one for these trials

    @property
    def suffix(self) -> str:
        return rate_suffix(self.prior)

    def of_blocks(self, blocks: BlockSets) -> Floats:
        total_t, total_n = blocks.total_targets[blocks.set_of], blocks.total_impostors[blocks.set_of]
        miss = blocks.running(blocks.targets) / total_t  # of a threshold right above each block
        false = (total_n - blocks.running(blocks.impostors)) / total_n
        cost = self.prior * miss + (1 - self.prior) * false
        without_scores = min(self.prior, 1 - self.prior)  # of accepting everything, or nothing
        least = np.minimum.reduceat(cost, blocks.first) / without_scores
        return np.asarray(np.clip(least, 0.0, 1.0))

    def method(self, counts: Mapping[str, int]) -> str:
        return "C_miss = C_fa = 1"


MEASURE = Measure(
    name="min_dcf@p",
    label="minDCF",
    unit="",
    better="higher",
    meaning="The cost of the attacker's best yes-or-no decisions when only this share of the pairs is true; 1 is the "
    "cost of deciding without scores.",
    source="NIST SRE 2016, VoxSRC",
    section="verification",
    equation="min over θ of [p·FNR(θ) + (1−p)·FPR(θ)] / min(p, 1−p)",
    low=0,
    high=1,
    family_label="minDCF at prior",
    order=40,
    headline=False,
    kind="scores",
    compute=tuple(map(MinDcf, PRIORS)),
)


def min_dcf(targets: ArrayLike, impostors: ArrayLike, prior: float) -> float:
    """The least detection cost of any threshold, as a share of the cost of deciding without scores, from 0 to 1.

    `prior` is the share of pairs that are true; a miss costs as much as a false alarm.

    >>> min_dcf([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0], 0.5), min_dcf([1.0, 2.0, 3.0, 4.0], [0.0], 0.01)
    (0.75, 0.0)
    """
    scores = SortedScores.from_arrays(targets, impostors)
    return MinDcf(prior).value(scores)
