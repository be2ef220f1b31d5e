"""Cllr, min Cllr and calibration loss: what log-likelihood ratios cost as evidence, in bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.metrics.calibration import BlockSets, softplus
from veilmeter.metrics.measure import Measure
from veilmeter.metrics.scores.forms import BlockFunction, ScoreFunction, ScoreSet, SortedScores, WeightedSets

Floats = NDArray[np.float64]
_SOURCE = "Brümmer & du Preez 2006"


@dataclass(frozen=True)
class Cllr(ScoreFunction):
    """Cllr of the scores as they are, taken for log-likelihood ratios (paper 004, eq. 4)."""

    def value(self, scores: ScoreSet) -> float:
        up, down = scores.mean_costs
        scale = 2 * float(np.log(2))
        return up / scale + down / scale

    def values(self, sets: WeightedSets) -> Floats:
        up, down = sets.mean_costs
        return np.asarray((up + down) / (2 * np.log(2)))

    def method(self, counts: Mapping[str, int]) -> str:
        return "scores as LLRs"


@dataclass(frozen=True)
class MinCllr(BlockFunction):
    """Cllr after oracle calibration."""

    sure = (0.0,)
    at_most = "cllr"
    overfits = True

    def of_blocks(self, blocks: BlockSets) -> Floats:
        (for_target, for_impostor), (share_t, share_n) = blocks.llrs, blocks.shares
        cost = softplus(-for_target) * share_t + softplus(for_impostor) * share_n
        return np.asarray(blocks.sums(cost) / (2 * np.log(2)))

    def method(self, counts: Mapping[str, int]) -> str:
        return "PAV"


@dataclass(frozen=True)
class CalibrationLoss(ScoreFunction):
    """The difference of the two."""

    def value(self, scores: ScoreSet) -> float:
        return max(0.0, scores.of(Cllr()) - scores.of(MinCllr()))

    def values(self, sets: WeightedSets) -> Floats:
        return sets.of(Cllr()) - sets.of(MinCllr())

    def method(self, counts: Mapping[str, int]) -> str:
        return "Cllr - min Cllr"


MEASURES = (
    Measure(
        name="cllr",
        label="Cllr",
        unit="bit",
        better="higher",
        meaning="The cost of taking the raw scores at face value as evidence; above 1 a coin is better.",
        source=_SOURCE,
        section="disclosure",
        equation="½⟨log₂(1+e⁻ˢ)⟩ over true pairs + ½⟨log₂(1+eˢ)⟩ over false pairs",
        low=0,
        order=20,
        headline=False,
        kind="scores",
        compute=Cllr(),
    ),
    Measure(
        name="min_cllr",
        label="min Cllr",
        unit="bit",
        better="higher",
        meaning="The same cost once the attacker has calibrated the scores as well as can be; 1 means no information.",
        source=_SOURCE,
        section="disclosure",
        equation="½⟨log₂(1+e⁻ˡ)⟩ over true pairs + ½⟨log₂(1+eˡ)⟩ over false pairs, l by isotonic regression",
        low=0,
        high=1,
        order=21,
        kind="scores",
        compute=MinCllr(),
    ),
    Measure(
        name="calibration_loss",
        label="calibration loss",
        unit="bit",
        better="neither",
        meaning="Information that the attacker loses by not calibrating: Cllr minus min Cllr.",
        source=_SOURCE,
        section="disclosure",
        equation="Cllr − min Cllr",
        low=0,
        order=22,
        headline=False,
        kind="scores",
        compute=CalibrationLoss(),
    ),
)


def cllr(target_llrs: ArrayLike, impostor_llrs: ArrayLike) -> float:
    """The cost of log-likelihood ratios (paper 004, eq. 4), in bit.

    Parameters
    ----------
    target_llrs, impostor_llrs : array_like
        Natural log-likelihood ratios of comparisons of one speaker, and of different speakers.

    Returns
    -------
    float
        The cost in bit: 0 is perfect, 1 says nothing.

    Raises
    ------
    InputError
        If one of the classes is empty, or a score is not finite.

    Examples
    --------
    >>> cllr([0.0], [0.0]), cllr([800.0], [-800.0])
    (1.0, 0.0)
    """
    return Cllr().value(SortedScores.from_arrays(target_llrs, impostor_llrs))


def min_cllr(targets: ArrayLike, impostors: ArrayLike) -> float:
    """Cllr after oracle calibration, in bit.

    Parameters
    ----------
    targets, impostors : array_like
        Scores of comparisons of one speaker, and of different speakers.

    Returns
    -------
    float
        The cost in bit: 0 is perfect separation, 1 none.

    Raises
    ------
    InputError
        If one of the classes is empty, or a score is not finite.

    Examples
    --------
    >>> min_cllr([2.0, 3.0], [0.0, 1.0])
    0.0
    """
    return MinCllr().value(SortedScores.from_arrays(targets, impostors))
