"""What each score measure gives when the scores carry no information, at the same counts: labels dealt at random.

Small samples look like leakage: PAV fits noise, D_sys counts empty bins. A value means something only beside this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.metrics.calibration import softplus
from veilmeter.metrics.scores import resampling, verification

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Null:
    """The mean over the draws, and their 5th and 95th percentile."""

    mean: float
    range: tuple[float, float]


def null_levels(
    targets: Floats, impostors: Floats, *, draws: int | None = None, seed: int = 0, eer_method: str = "rocch"
) -> Mapping[str, Null]:
    """The null level of every measure of the page: of these scores (in any order) with their labels shuffled.

    Only the rarer class is drawn, as positions in the joint order, so a draw costs no sort of all scores.
    """
    pooled = np.sort(np.concatenate([targets, impostors]))
    few = min(len(targets), len(impostors))
    rounds = draws if draws is not None else 200 if few <= 20_000 else 40 if few <= 200_000 else 10
    rng = np.random.default_rng([seed, 1])
    fresh = np.concatenate([[True], pooled[1:] != pooled[:-1]])
    tie = np.cumsum(fresh) - 1
    first = np.append(np.flatnonzero(fresh), len(pooled))
    total_if_target, total_if_impostor = softplus(-pooled), softplus(pooled)
    sums = (float(total_if_target.sum()), float(total_if_impostor.sum()))
    columns: dict[str, list[Floats]] = {}
    chunk = max(1, min(rounds, 4_000_000 // (2 * few + 1)))
    done = 0
    while done < rounds:
        size = min(chunk, rounds - done)
        done += size
        dealt, costs = [], []
        for _ in range(size):
            at = rng.choice(len(pooled), few, replace=False, shuffle=False)
            dealt.append(_groups(at, tie, first))
            chosen = float(total_if_target[at].sum()), float(total_if_impostor[at].sum())
            if len(targets) <= len(impostors):
                up, down = chosen[0], sums[1] - chosen[1]
            else:
                up, down = sums[0] - chosen[0], chosen[1]
            costs.append((up / len(targets) + down / len(impostors)) / (2 * np.log(2)))
        for name, found in _measured(dealt, len(targets) <= len(impostors), eer_method).items():
            columns.setdefault(name, []).append(found)
        columns.setdefault("cllr", []).append(np.array(costs))
    levels = {name: np.concatenate(parts) for name, parts in columns.items()}
    levels["calibration_loss"] = levels["cllr"] - levels["min_cllr"]
    levels["d_sys"] = _d_sys(pooled, len(targets), rounds, rng)
    return {name: Null(float(v.mean()), (float(np.quantile(v, 0.05)), float(np.quantile(v, 0.95)))) for name, v in
            levels.items() if np.isfinite(v).all()}  # fmt: skip


def _groups(at: NDArray[np.intp], tie: NDArray[np.intp], first: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """How many of the drawn class and of the other one each group holds; groups left over stay empty.

    `tie` numbers the distinct scores, `first` says where each begins.
    """
    distinct, counts = np.unique(tie[at], return_counts=True)
    few, many = np.zeros(2 * len(at) + 1), np.zeros(2 * len(at) + 1)
    begin, end = first[distinct], first[distinct + 1]
    k = len(distinct)
    few[1 : 2 * k : 2] = counts
    many[1 : 2 * k : 2] = end - begin - counts
    many[0 : 2 * k + 1 : 2] = np.append(begin, first[-1]) - np.concatenate([[0], end])
    return few, many


def _measured(dealt: list[tuple[Floats, Floats]], few_are_targets: bool, eer_method: str) -> dict[str, Floats]:
    few, many = (np.stack(side, axis=1) for side in zip(*dealt, strict=True))
    t, n = (few, many) if few_are_targets else (many, few)
    return resampling.of_groups(t, n, eer_method)


def _d_sys(pooled: Floats, targets: int, rounds: int, rng: np.random.Generator) -> Floats:
    """With the bins fixed, shuffled labels fill them by the multivariate hypergeometric distribution."""
    low, high = pooled[:1], pooled[-1:]
    edges = verification.d_sys_edges(low, high, count=targets)
    counts = verification.binned(pooled, edges).astype(np.int64)
    drawn = rng.multivariate_hypergeometric(counts, targets, size=rounds, method="marginals").T.astype(np.float64)
    return verification.d_sys_of_counts(drawn, counts[:, None] - drawn)
