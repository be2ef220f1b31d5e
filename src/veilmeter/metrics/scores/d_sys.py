"""D_sys, the global linkability of two distributions of scores (Gomez-Barrero et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, warning
from veilmeter.metrics.measure import Measure
from veilmeter.metrics.scores.forms import TARGETS_PER_BIN, ScoreFunction, ScoreSet, SortedScores, WeightedSets

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DSys(ScoreFunction):
    """Per bin of a histogram D = 2 LR / (1 + LR) - 1, clipped at 0, 1 where only targets fall; integrated against the
    targets' density by the trapezoid rule over the bins' centers."""

    sure = (1.0,)
    overfits = True
    fewest_targets = 2 * TARGETS_PER_BIN  # fewer fill a single bin, and the integral is 0 whatever the scores are

    def value(self, scores: ScoreSet) -> float:
        return float(of_histograms(*scores.histograms))

    def values(self, sets: WeightedSets) -> Floats:
        return of_histograms(*sets.histograms)

    def method(self, counts: Mapping[str, int]) -> str:
        return "histogram"

    def warnings(self, estimate: Estimate) -> list[Finding]:
        if estimate.n["targets"] >= self.fewest_targets:
            return []
        return [warning("few_target_trials", needed=self.fewest_targets)]


MEASURE = Measure(
    name="d_sys",
    label="D_sys",
    unit="",
    better="lower",
    meaning="How far apart the scores of true and of false pairs are, from 0 to 1; biased upwards.",
    source="Gomez-Barrero et al. 2017",
    section="verification",
    equation="∫ max(0, 2·LR/(1+LR) − 1) p(s | true pair) ds",
    low=0,
    high=1,
    order=30,
    headline=False,
    kind="scores",
    compute=DSys(),
)


def d_sys(targets: ArrayLike, impostors: ArrayLike) -> float:
    """Global linkability from 0 to 1, biased upwards, over min(T // 10, 100) bins of equal width.

    Parameters
    ----------
    targets, impostors : array_like
        Scores of comparisons of one speaker, and of different speakers.

    Returns
    -------
    float
        D_sys, from 0 (not linkable) to 1.

    Raises
    ------
    InputError
        If one of the classes is empty, or a score is not finite.

    Examples
    --------
    >>> d_sys([2.0, 3.0] * 10, [0.0, 1.0] * 10)
    1.0
    """
    scores = SortedScores.from_arrays(targets, impostors)
    return DSys().value(scores)


def of_histograms(targets: Floats, impostors: Floats) -> Floats:
    """D_sys of two histograms over the same bins, or of many at once (bins x sets); the bins' width cancels out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        y_t = targets / targets.sum(axis=0)
        y_n = impostors / impostors.sum(axis=0)
        ratio = y_t / y_n
        d = np.where(y_n > 0, 2 * ratio / (1 + ratio) - 1, 1.0)
    weighted = np.where(targets > 0, np.maximum(d, 0), 0.0) * y_t
    integral = np.sum((weighted[1:] + weighted[:-1]) / 2, axis=0)
    # Equal scores fill one bin, of which the rule would count half if it is the first or the last.
    is_single = np.count_nonzero(targets, axis=0) == 1
    return np.asarray(np.where(is_single, weighted.sum(axis=0), integral))
