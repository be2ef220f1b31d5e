"""The equal error rate by four methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.option_groups import EER_METHODS
from veilmeter.metrics.calibration import BlockSets
from veilmeter.metrics.measure import Measure
from veilmeter.metrics.scores.forms import BlockFunction, ScoreSet, SortedScores, WeightedSets

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Eer(BlockFunction):
    """The EER in percent by one of the methods of `eer`."""

    rule: str = "rocch"

    sure = (0.0, 100.0)
    per_speaker = True

    def __post_init__(self) -> None:
        if self.rule not in EER_METHODS:
            raise InputError(
                f"there is no EER method called {self.rule!r}", fix=f"choose from {', '.join(EER_METHODS)}"
            )

    @property
    def highest_end(self) -> float:
        return 50.0 if self.rule == "rocch" else np.inf  # the hull never rises above the diagonal

    @property
    def looks_within_runs(self) -> bool:  # type: ignore[override]
        return self.rule == "speechbrain"

    def of_blocks(self, blocks: BlockSets) -> Floats:
        """Where the hull, whose corners lie between the blocks, crosses the diagonal."""
        share_t, share_n = blocks.shares
        miss, false = blocks.running(share_t), 1 - blocks.running(share_n)
        last = np.append(blocks.first[1:], len(blocks.set_of)) - 1
        over = miss >= false
        over[last] = True  # rounding must not hide the end, where everything is rejected
        at = np.flatnonzero(over)
        at = at[np.searchsorted(blocks.set_of[at], np.arange(len(blocks.first)))]  # the first such block of each set
        x1, y1 = false[at], miss[at]
        x0, y0 = x1 + share_n[at], y1 - share_t[at]
        share = (x0 - y0) / ((x0 - y0) + (y1 - x1))
        return np.asarray(100 * (y0 + share * (y1 - y0)))

    def value(self, scores: ScoreSet) -> float:
        if self.rule == "rocch":
            return super().value(scores)
        if not isinstance(scores, SortedScores):
            raise InputError(f"the EER method {self.rule} needs all scores in memory", fix="use rocch")
        return _on_roc(scores.targets, scores.impostors, self.rule)

    def values(self, sets: WeightedSets) -> Floats:
        if self.rule == "rocch":
            return super().values(sets)
        above_t, above_n = sets.accepted
        with np.errstate(divide="ignore", invalid="ignore"):
            return _on_rocs(above_n, 1 - above_t, self.rule)

    def method(self, counts: Mapping[str, int]) -> str:
        return self.rule


MEASURE = Measure(
    name="eer",
    label="EER",
    unit="percent",
    better="higher",
    meaning="The error rate where an attacker wrongly accepts as often as they wrongly reject; 50 % is guessing.",
    source="ISO/IEC 19795-1",
    section="verification",
    equation="FNR(θ) = FPR(θ), on the convex hull of the ROC",
    low=0,
    high=100,
    bar=50,
    order=10,
    kind="scores",
    compute=Eer(),
)

LEARNING = Measure(
    name="learning_eer",
    label="EER with more effort",
    unit="percent",
    better="higher",
    meaning="The attacker's EER when it has fewer or more runs, enrollment recordings or other people's speech.",
    source="veilmeter",
    section="verification",
    equation="the EER of the same attack with part of what there is",
    low=0,
    high=100,
    bar=50,
    headline=False,
)


def eer(targets: ArrayLike, impostors: ArrayLike, method: str = "rocch", *, fold: bool = False) -> float:
    """The equal error rate in percent. It is not one number: name the method with it.

    `rocch`: on the convex hull of the ROC, that is after oracle calibration; at most 50. `roc`: mean of miss and false
    alarm rate at the threshold where they differ least. `interpolated`: where the ROC's line segments cross the
    diagonal. `speechbrain`: the rule of the VoicePrivacy challenges since 2024, the mean of both rates at the first
    score where they differ least. `fold` turns values above 50 back (100 - EER), as paper 002 does; an attacker may
    flip the sign.

    Parameters
    ----------
    targets, impostors : array_like
        Scores of comparisons of one speaker, and of different speakers.
    method : {"rocch", "roc", "interpolated", "speechbrain"}
        The rule by which it is computed.
    fold : bool
        Whether to turn values above 50 back.

    Returns
    -------
    float
        The equal error rate, in percent.

    Raises
    ------
    InputError
        If the method is unknown, a class is empty, or a score is not finite.

    Examples
    --------
    >>> t, n = [0.0, 2.0, 3.0], [-1.0, 0.5, 1.0, 2.5]
    >>> [round(eer(t, n, m), 2) for m in ("rocch", "roc", "interpolated")]
    [30.0, 29.17, 33.33]
    """
    percent = Eer(method).value(SortedScores.from_arrays(targets, impostors))
    return 100 - percent if fold and percent > 50 else percent


def eer_sorted(targets: Floats, impostors: Floats, method: str = "rocch") -> float:
    """As `eer`, of scores in rising order."""
    return Eer(method).value(SortedScores(targets, impostors))


def _on_roc(targets: Floats, impostors: Floats, method: str) -> float:
    """The EER in percent on the ROC itself, of scores in rising order."""
    if method == "speechbrain":
        return _speechbrain(targets, impostors)
    false_alarms, hits = roc(targets, impostors)
    miss, false = 1 - hits / len(targets), false_alarms / len(impostors)
    if method == "roc":
        keep = np.ones(len(hits), bool)  # sklearn's drop_intermediate: points on a straight stretch vanish
        keep[2:-1] = (np.diff(false_alarms[1:], 2) != 0) | (np.diff(hits[1:], 2) != 0)
        miss, false = miss[keep], false[keep]
        best = int(np.argmin(np.abs(miss - false)))
        return float(50 * (miss[best] + false[best]))
    return 100 * _crossing(false, miss)


def _speechbrain(targets: Floats, impostors: Floats) -> float:
    """Thresholds are the scores: a target is missed at or below one, an impostor accepted above. SpeechBrain tries the
    midpoints between scores too, where the rates are those of the score below."""
    thresholds = np.unique(np.concatenate([targets, impostors]))
    missed = np.searchsorted(targets, thresholds, side="right")
    accepted = len(impostors) - np.searchsorted(impostors, thresholds, side="right")
    best = int(np.argmin(np.abs(accepted * len(targets) - missed * len(impostors))))  # whole numbers: ties are ties
    return float(50 * (missed[best] / len(targets) + accepted[best] / len(impostors)))


def _crossing(false: Floats, miss: Floats) -> float:
    """Where the line through these points, `false` rising from 0 and `miss` falling from 1, meets the diagonal."""
    after = int(np.argmax(false >= miss))
    if after == 0:
        return float(false[0])
    x0, y0, x1, y1 = false[after - 1], miss[after - 1], false[after], miss[after]
    share = (y0 - x0) / ((y0 - x0) + (x1 - y1))
    return float(x0 + share * (x1 - x0))


def roc(targets: Floats, impostors: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """How many impostors and targets are accepted at each distinct threshold, from none to all (sorted scores)."""
    thresholds = np.unique(np.concatenate([targets, impostors]))[::-1]
    false_alarms = len(impostors) - np.searchsorted(impostors, thresholds, side="left")
    hits = len(targets) - np.searchsorted(targets, thresholds, side="left")
    return np.concatenate([[0], false_alarms]), np.concatenate([[0], hits])


def _on_rocs(false: Floats, miss: Floats, method: str) -> Floats:
    """EER per column on the ROC itself; runs of one class are single steps, which is what drop_intermediate leaves."""
    zeros, ones = np.zeros((1, false.shape[1])), np.ones((1, false.shape[1]))
    false, miss = np.concatenate([zeros, false]), np.concatenate([ones, miss])
    columns = np.arange(false.shape[1])
    if method == "roc":
        best = np.argmin(np.abs(miss - false), axis=0)
        return np.asarray(50 * (miss[best, columns] + false[best, columns]))
    if method == "speechbrain":  # thresholds are scores, tried from the lowest: accepted is what lies above one
        false, miss = false[-2::-1], miss[-2::-1]
        best = np.argmin(np.round(np.abs(miss - false), 12), axis=0)  # ties of rates are ties
        return np.asarray(50 * (miss[best, columns] + false[best, columns]))
    after = np.maximum(np.argmax(false >= miss, axis=0), 1)
    x0, y0, x1, y1 = (a[after - k, columns] for k in (1, 0) for a in (false, miss))
    share = (y0 - x0) / ((y0 - x0) + (x1 - y1))
    return np.asarray(100 * (x0 + share * (x1 - x0)))
