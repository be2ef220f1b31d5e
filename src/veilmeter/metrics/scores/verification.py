"""How well scores verify speakers: EER by three methods, Cllr, TPR at low FPR, and linkability of score distributions.

Rates are in percent, costs in bit. Each function takes target and impostor scores in any order; those ending in
`_sorted` or `_of_pav` are the same on what is already sorted or calibrated, so that nothing is computed twice.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.metrics.calibration import checked, pav, softplus
from veilmeter.metrics.scores.blocks import values_of_pav

Floats = NDArray[np.float64]
EerMethod = Literal["rocch", "roc", "interpolated", "speechbrain"]
LOW_FPRS = (0.01, 0.001, 0.0001)
TARGETS_A_BIN = 10  # of D_sys, which needs two bins to say anything


def eer(targets: ArrayLike, impostors: ArrayLike, method: str = "rocch", *, fold: bool = False) -> float:
    """The equal error rate in percent. It is not one number: say the method with it.

    `rocch`: on the convex hull of the ROC, that is after oracle calibration; at most 50. `roc`: mean of miss and false
    alarm rate at the threshold where they differ least. `interpolated`: where the ROC's line segments cross the
    diagonal. `speechbrain`: the rule of the VoicePrivacy challenges since 2024, the mean of both rates at the first
    score where they differ least. `fold` turns values above 50 back (100 - EER), as paper 002 does; an attacker may
    flip the sign.

    >>> t, n = [0.0, 2.0, 3.0], [-1.0, 0.5, 1.0, 2.5]
    >>> [round(eer(t, n, m), 2) for m in ("rocch", "roc", "interpolated")]
    [30.0, 29.17, 33.33]
    """
    t, n = np.sort(checked(targets, "target")), np.sort(checked(impostors, "impostor"))
    percent = eer_sorted(t, n, method)
    return 100 - percent if fold and percent > 50 else percent


def eer_sorted(targets: Floats, impostors: Floats, method: str = "rocch") -> float:
    """As `eer`, of scores in rising order."""
    if method == "rocch":
        return values_of_pav(pav(targets, impostors, presorted=True))["eer"]
    if method not in get_args(EerMethod):
        raise InputError(
            f"there is no EER method called {method!r}", fix=f"choose from {', '.join(get_args(EerMethod))}"
        )
    if method == "speechbrain":
        return _eer_speechbrain(targets, impostors)
    false_alarms, hits = roc(targets, impostors)
    miss, false = 1 - hits / len(targets), false_alarms / len(impostors)
    if method == "roc":
        keep = np.ones(len(hits), bool)  # sklearn's drop_intermediate: points on a straight stretch vanish
        keep[2:-1] = (np.diff(false_alarms[1:], 2) != 0) | (np.diff(hits[1:], 2) != 0)
        miss, false = miss[keep], false[keep]
        best = int(np.argmin(np.abs(miss - false)))
        return float(50 * (miss[best] + false[best]))
    return 100 * _crossing(false, miss)


def _eer_speechbrain(targets: Floats, impostors: Floats) -> float:
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


def cllr(target_llrs: ArrayLike, impostor_llrs: ArrayLike) -> float:
    """The cost of log-likelihood ratios (paper 004, eq. 4), in bit.

    >>> cllr([0.0], [0.0]), cllr([800.0], [-800.0])
    (1.0, 0.0)
    """
    t, n = np.sort(checked(target_llrs, "target")), np.sort(checked(impostor_llrs, "impostor"))
    return cllr_sorted(t, n)


def cllr_sorted(targets: Floats, impostors: Floats) -> float:
    """As `cllr`, of scores in rising order."""
    scale = 2 * float(np.log(2))
    return _mean_cost(-targets[::-1]) / scale + _mean_cost(impostors) / scale


def _mean_cost(ordered: Floats, chunk: int = 1 << 16) -> float:
    """The mean of softplus over rising values, in pieces that stay in the cache; beyond +-40 it is x or e^x."""
    low, high = (int(i) for i in np.searchsorted(ordered, [-40.0, 40.0]))
    dead = int(np.searchsorted(ordered, -745.0))
    total = float(np.sum(np.exp(ordered[dead:low])))
    for start in range(low, high, chunk):
        total += float(np.sum(softplus(ordered[start : min(start + chunk, high)])))
    top = ordered[high:]
    # scores near the largest float: their mean is a number, their sum is not
    far = float(np.sum(top / len(ordered))) if len(top) and top[-1] > 1e290 else float(np.sum(top)) / len(ordered)
    return total / len(ordered) + far


def min_cllr(targets: ArrayLike, impostors: ArrayLike) -> float:
    """Cllr after oracle calibration, in bit."""
    return values_of_pav(pav(targets, impostors))["min_cllr"]


def tpr_at_fpr(targets: ArrayLike, impostors: ArrayLike, fpr: float) -> float:
    """The share of targets accepted by the lowest threshold that accepts at most this share of impostors, in percent.

    >>> tpr_at_fpr([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0], 0.25)
    50.0
    """
    return tpr_at_fpr_sorted(np.sort(checked(targets, "target")), np.sort(checked(impostors, "impostor")), fpr)


def tpr_name(fpr: float) -> str:
    """The name of the measure.

    >>> tpr_name(0.01), tpr_name(0.0001)
    ('tpr@fpr=0.01', 'tpr@fpr=0.0001')
    """
    return f"tpr@fpr={fpr:.12f}".rstrip("0")


def tpr_at_fpr_sorted(targets: Floats, impostors: Floats, fpr: float) -> float:
    allowed = int(np.floor(fpr * len(impostors) + 1e-9))
    if allowed >= len(impostors):
        return 100.0
    bound = impostors[len(impostors) - 1 - allowed]  # accepted: what lies strictly above
    return 100 * float(len(targets) - np.searchsorted(targets, bound, side="right")) / len(targets)


def d_sys(targets: ArrayLike, impostors: ArrayLike) -> float:
    """Global linkability of Gomez-Barrero et al. 2017, from 0 to 1; biased upwards.

    min(T // 10, 100) bins of equal width over the joint range; per bin D = 2 LR / (1 + LR) - 1, clipped at 0, 1 where
    only targets fall; integrated against the targets' density by the trapezoid rule over the bins' centres. Fewer
    than 20 targets fill a single bin, and the integral is 0 whatever the scores are.
    """
    return d_sys_sorted(np.sort(checked(targets, "target")), np.sort(checked(impostors, "impostor")))


def d_sys_sorted(targets: Floats, impostors: Floats) -> float:
    edges = d_sys_edges(targets, impostors)
    return float(d_sys_of_counts(binned(targets, edges), binned(impostors, edges)))


def d_sys_edges(targets: Floats, impostors: Floats, *, count: int | None = None) -> Floats:
    """The bins' edges; at least one bin, and a range of width 1 where all scores are equal (as numpy does)."""
    low, high = min(targets[0], impostors[0]), max(targets[-1], impostors[-1])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    bins = max(1, min((count or len(targets)) // TARGETS_A_BIN, 100))
    if high / 2 - low / 2 > np.finfo(np.float64).max / 2:  # the range itself is too large for a float
        return np.asarray(2 * np.linspace(low / 2, high / 2, bins + 1))
    return np.linspace(low, high, bins + 1)


def binned(ordered: Floats, edges: Floats) -> Floats:
    """The histogram of rising values; the last bin is closed."""
    cuts = np.searchsorted(ordered, edges[:-1], side="left")
    return np.diff(np.append(cuts, len(ordered))).astype(np.float64)


def bin_of(values: Floats, edges: Floats) -> NDArray[np.intp]:
    """The bin of each value; none lies below the edges, and the last bin is closed."""
    return np.searchsorted(edges[1:-1], values, side="right")


def binned_sets(values: Floats, sets: NDArray[np.intp], edges: Floats) -> Floats:
    """The histograms of many sets of values (bins x sets), which are numbered from 0; none lies below the edges."""
    bins, count = len(edges) - 1, int(sets.max()) + 1
    cells = bin_of(values, edges) * count + sets
    return np.bincount(cells, minlength=bins * count).reshape(bins, count).astype(np.float64)


def d_sys_of_counts(targets: Floats, impostors: Floats) -> Floats:
    """D_sys of two histograms over the same bins, or of many at once (bins x sets); the bins' width cancels out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        y_t = targets / targets.sum(axis=0)
        y_n = impostors / impostors.sum(axis=0)
        ratio = y_t / y_n
        d = np.where(y_n > 0, 2 * ratio / (1 + ratio) - 1, 1.0)
    weighted = np.where(targets > 0, np.maximum(d, 0), 0.0) * y_t
    return np.asarray(np.sum((weighted[1:] + weighted[:-1]) / 2, axis=0))
