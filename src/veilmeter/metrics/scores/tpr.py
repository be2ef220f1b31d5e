"""TPR at low FPR: what an attacker recognizes who accepts almost no false pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, warning
from veilmeter.metrics.measure import Measure, rate_suffix
from veilmeter.metrics.scores.forms import ScoreFunction, ScoreSet, SortedScores, WeightedSets

Floats = NDArray[np.float64]
LOW_FPRS = (0.01, 0.001, 0.0001)


@dataclass(frozen=True)
class Tpr(ScoreFunction):
    """As `tpr_at_fpr`."""

    fpr: float

    sure = (0.0, 100.0)

    @property
    def suffix(self) -> str:
        return rate_suffix(self.fpr)

    @property
    def at_most(self) -> str:  # type: ignore[override]
        higher = [fpr for fpr in LOW_FPRS if fpr > self.fpr]
        return f"tpr@fpr{rate_suffix(min(higher))}" if higher else ""

    def value(self, scores: ScoreSet) -> float:
        targets, impostors = scores.counts["targets"], scores.counts["impostors"]
        allowed = self._count_allowed(impostors)
        if allowed >= impostors:
            return 100.0
        # accepted: what lies strictly above
        return 100 * float(scores.targets_above(scores.impostor_at(allowed))) / targets

    def values(self, sets: WeightedSets) -> Floats:
        above_t, above_n = sets.accepted
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100 * np.max(np.where(above_n <= self.fpr + 1e-12, above_t, 0.0), axis=0))

    def method(self, counts: Mapping[str, int]) -> str:
        """How many false alarms were allowed: fewer impostors than 1/FPR can't show so low a rate."""
        allowed = self._count_allowed(counts["impostors"])
        return f"{allowed:,} false alarm{'s' * (allowed > 1)}" if allowed else "no false alarm"

    def warnings(self, estimate: Estimate) -> list[Finding]:
        impostors = estimate.n["impostors"]
        if self.fpr != LOW_FPRS[0] or impostors * self.fpr >= 1:
            return []
        return [warning("few_impostor_trials", count=impostors)]

    def _count_allowed(self, impostors: int) -> int:
        return int(np.floor(self.fpr * impostors + 1e-9))


MEASURE = Measure(
    name="tpr@fpr",
    label="TPR at low FPR",
    unit="percent",
    better="lower",
    meaning="The share of true pairs recognized by an attacker who only strikes when sure, accepting almost no false "
    "pair.",
    source="VoxGuard 2025",
    section="verification",
    equation="TPR(θ) at the lowest θ with FPR(θ) at most the given rate",
    low=0,
    high=100,
    family_label="TPR at FPR",
    order=20,
    headline=False,
    kind="scores",
    compute=tuple(map(Tpr, LOW_FPRS)),
)


def tpr_at_fpr(targets: ArrayLike, impostors: ArrayLike, fpr: float) -> float:
    """The share of targets accepted by the lowest threshold that accepts at most this share of impostors, in percent.

    Parameters
    ----------
    targets, impostors : array_like
        Scores of comparisons of one speaker, and of different speakers.
    fpr : float
        The false positive rate, as a share between 0 and 1 (0.01 is 1 %).

    Returns
    -------
    float
        The true positive rate, in percent.

    Raises
    ------
    InputError
        If the rate does not lie between 0 and 1.

    Examples
    --------
    >>> tpr_at_fpr([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0], 0.25)
    50.0
    """
    if not 0 < fpr <= 1:
        raise InputError(f"the false positive rate must lie between 0 and 1 (got {fpr:g})", fix="write 0.01 for 1 %")
    scores = SortedScores.from_arrays(targets, impostors)
    return Tpr(fpr).value(scores)
