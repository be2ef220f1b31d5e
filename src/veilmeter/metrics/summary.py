"""All measures of a set of scores on one page, each an `Estimate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.calibration import Groups, Pav, group, pool
from veilmeter.estimate import Estimate
from veilmeter.measures import measure
from veilmeter.metrics import verification, zebra
from veilmeter.scores import Scores

Floats = NDArray[np.float64]
EER_METHODS = {"rocch": "ROCCH", "roc": "ROC", "interpolated": "interpolated"}
NAMES = (
    "eer", "cllr", "min_cllr", "calibration_loss", "d_ece", "l_w", "d_sys",
    *(f"tpr@fpr={fpr:g}" if fpr >= 0.001 else f"tpr@fpr={fpr:.4f}" for fpr in verification.LOW_FPRS),
)  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """Sorted scores and what was computed of them once."""

    targets: Floats
    impostors: Floats
    groups: Groups
    pav: Pav
    flipped_d_ece: float


def prepare(targets: Floats, impostors: Floats) -> Measured:
    """Sort, group and calibrate once, in both orientations."""
    t, n = np.sort(targets), np.sort(impostors)
    groups = group(t, n)
    flipped = pool(
        Groups(-groups.upper[::-1], -groups.lower[::-1], groups.targets[::-1], groups.impostors[::-1]), len(t), len(n)
    )
    return Measured(t, n, groups, pool(groups, len(t), len(n)), zebra.d_ece_of_pav(flipped))


def values(data: Measured, eer_method: str = "rocch") -> dict[str, float]:
    """The value of every measure in `NAMES`."""
    t, n, blocks = data.targets, data.impostors, data.pav
    hull = eer_method == "rocch"
    eer = verification.eer_of_pav(blocks) if hull else verification.eer_sorted(t, n, eer_method)
    cllr, least = verification.cllr_sorted(t, n), verification.min_cllr_of_pav(blocks)
    low = [verification.tpr_at_fpr_sorted(t, n, fpr) for fpr in verification.LOW_FPRS]
    return dict(
        zip(
            NAMES,
            [eer, cllr, least, cllr - least, zebra.d_ece_of_pav(blocks), zebra.l_w_of_pav(blocks),
             verification.d_sys_sorted(t, n), *low],
            strict=True,
        )
    )  # fmt: skip


def measure_scores(
    scores: Scores,
    *,
    intervals: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str = "rocch",
) -> dict[str, Estimate | list[Estimate]]:
    """Every score-based measure by name: eer, cllr, min_cllr, calibration_loss, d_ece, l_w, d_sys, tpr@fpr=...

    >>> found = measure_scores(Scores.from_arrays([2.0, 3.0], [0.0, 1.0]), intervals=False)
    >>> found["d_ece"].value, found["l_w"].extra["tag"]
    (0.7213475204444817, 'A')
    """
    data = prepare(scores.targets, scores.impostors)
    found = values(data, eer_method)
    extras = extra_facts(data, found)
    methods = {"eer": EER_METHODS.get(eer_method, eer_method), "d_ece": "PAV", "l_w": "PAV, Laplace", "min_cllr": "PAV"}
    return {name: made(name, value, methods.get(name, ""), scores, extras.get(name)) for name, value in found.items()}


def extra_facts(data: Measured, found: dict[str, float]) -> dict[str, dict[str, Any]]:
    """ZEBRA's tag with its sentence, and the other orientation."""
    tag = zebra.tag(found["l_w"])
    return {
        "l_w": {"tag": tag, "sentence": zebra.sentence(tag)},
        "d_ece": {"flipped": data.flipped_d_ece, "inverted": data.flipped_d_ece > found["d_ece"]},
    }


def made(name: str, value: float, method: str, scores: Scores, extra: dict[str, Any] | None = None) -> Estimate:
    entry = measure(name)
    label = entry.label if "=" not in name else f"TPR at FPR {100 * float(name.split('=')[1]):g} %"
    return Estimate(
        name=name,
        label=label,
        value=value,
        unit=entry.unit,
        better=entry.better,
        method=method,
        n=scores.counts,
        extra=extra or {},
    )
