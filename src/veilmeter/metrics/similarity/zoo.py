"""The zoo: which speakers behave unlike the others, named after Doddington et al. (1998) and Dunstone & Yager (2009).

Every speaker has a mean target score and a mean impostor score (calibrated log-likelihood ratios, over all pairs of
segments). The quartiles of the two name the animals:

    goat       target scores in the lowest quartile: hard to recognize
    lamb       impostor scores in the highest quartile as the first side of a pair (the original voice in OP):
               easy to be mistaken for
    wolf       the same as the second side (the protected voice in OP): easily mistaken for others; in OO and PP
               the two sides are the same, and so are lambs and wolves
    sheep      none of these
    worm       target lowest, impostor highest quartile: the hardest for a recognizer
    chameleon  both highest: looks like everybody, and like themselves
    phantom    both lowest: looks like nobody, not even themselves
    dove       target highest, impostor lowest: the easiest to recognize, hence the least protected
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, Reference, about, warning
from veilmeter.metrics.similarity.matrices import KINDS, Similarity, SimilarityMatrix, deid

Floats = NDArray[np.float64]
CORNERS = ("worm", "chameleon", "phantom", "dove")


@dataclass(frozen=True, eq=False, slots=True)
class Zoo:
    """`target` and `impostor` are each speaker's mean scores, `first` and `second` the impostor scores by side.

    `doddington` are all of a speaker's names after Doddington, `corner` the one after Dunstone and Yager or "".
    """

    kind: str
    names: tuple[str, ...]
    target: Floats
    impostor: Floats
    first: Floats
    second: Floats
    doddington: tuple[tuple[str, ...], ...]
    corner: tuple[str, ...]

    @property
    def animals(self) -> tuple[str, ...]:
        """One name a speaker: the corner if they are in one, else the first of Doddington's."""
        return tuple(corner or names[0] for corner, names in zip(self.corner, self.doddington, strict=True))

    def corners(self) -> dict[str, dict[str, float]]:
        """For each corner how many speakers are in it, how many chance would put there, and the probability that
        chance puts as many or more there (hypergeometric): only a small one makes the animal real."""
        n = len(self.names)
        low_t, high_t = _quartiles(self.target)
        low_i, high_i = _quartiles(self.impostor)
        by_animal = {}
        for name, rows, columns in (
            ("worm", low_t, high_i),
            ("chameleon", high_t, high_i),
            ("phantom", low_t, low_i),
            ("dove", high_t, low_i),
        ):
            a, b, both = int(rows.sum()), int(columns.sum()), int((rows & columns).sum())
            ways = sum(comb(a, k) * comb(n - a, b - k) for k in range(both, min(a, b) + 1))
            by_animal[name] = {"count": both, "expected": a * b / n, "p": ways / comb(n, b)}
        return by_animal

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {
                "speaker": name,
                "target": float(self.target[row]),
                "impostor": float(self.impostor[row]),
                "animal": self.animals[row],
                "doddington": list(self.doddington[row]),
            }
            for row, name in enumerate(self.names)
        ]


def zoo(matrix: SimilarityMatrix, names: Sequence[str]) -> Zoo:
    """The zoo of one similarity matrix."""
    weights = matrix.pairs.astype(float)
    own = matrix.llr.diagonal().copy()
    np.fill_diagonal(weights, 0)
    sums = matrix.llr * weights
    first = sums.sum(1) / weights.sum(1)
    second = sums.sum(0) / weights.sum(0)
    both = (sums.sum(1) + sums.sum(0)) / (weights.sum(1) + weights.sum(0))
    return menagerie(own, both, names, first=first, second=second, kind=matrix.kind)


def menagerie(
    target: ArrayLike,
    impostor: ArrayLike,
    names: Sequence[str],
    *,
    first: ArrayLike | None = None,
    second: ArrayLike | None = None,
    kind: str = "",
) -> Zoo:
    """The zoo from every speaker's mean target and mean impostor score.

    >>> z = menagerie([9, 1, 5, 5, 5, 5, 5, 5], [1, 9, 5, 5, 5, 5, 5, 5.5], list("abcdefgh"))
    >>> z.animals[:3]
    ('dove', 'worm', 'sheep')
    """
    t, i = np.asarray(target, float), np.asarray(impostor, float)
    a = i if first is None else np.asarray(first, float)
    b = i if second is None else np.asarray(second, float)
    if not len(t) == len(i) == len(a) == len(b) == len(names):
        raise InputError("every speaker needs one target and one impostor score")
    low_t, high_t = _quartiles(t)
    low_i, high_i = _quartiles(i)
    lamb, wolf = _quartiles(a)[1], _quartiles(b)[1]
    doddington, corner = [], []
    for row in range(len(names)):
        kinds = [name for name, yes in (("goat", low_t[row]), ("lamb", lamb[row]), ("wolf", wolf[row])) if yes]
        doddington.append(tuple(kinds) or ("sheep",))
        at = (bool(low_t[row]), bool(high_t[row]), bool(low_i[row]), bool(high_i[row]))
        corner.append(
            {
                (True, False, False, True): "worm",
                (False, True, False, True): "chameleon",
                (True, False, True, False): "phantom",
                (False, True, True, False): "dove",
            }.get(at, "")
        )
    return Zoo(kind, tuple(names), t, i, a, b, tuple(doddington), tuple(corner))


def _quartiles(values: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The speakers in the lowest and in the highest quartile; none where the two can't be distinguished."""
    low, high = np.quantile(values, [0.25, 0.75])
    # Means of equal scores differ in the last bits by the order of summation; such differences do not count.
    if high - low <= 1e-9 * max(1.0, float(np.abs(values).max())):
        spread = float(values.max() - values.min())
        if spread <= 1e-9 * max(1.0, float(np.abs(values).max())):
            return np.zeros(len(values), bool), np.zeros(len(values), bool)
        middle = float(np.median(values))
        return values < middle - spread / 4, values > middle + spread / 4
    return values <= low, values >= high


def doubts_of(similarity: Similarity, name: str = "") -> list[Finding]:
    """Warnings about matrices that carry little information; `name` is the system's, where there are several."""
    doubts = []
    if similarity.d_diag["OO"] < 0.5:
        doubts.append(warning("originals_alike", d_diag=float(similarity.d_diag["OO"])))
    if similarity.d_diag["OP"] < 0 and similarity.d_diag_log["OP"] < -0.01:
        doubts.append(warning("diagonal_inverted", d_diag=float(similarity.d_diag["OP"])))
    if len(similarity.names) < 10:
        doubts.append(warning("few_speakers", count=len(similarity.names)))
    return [about(doubt, system=Reference("run", name)) for doubt in doubts] if name else doubts


def details_of(similarity: Similarity, zoos: Mapping[str, Zoo]) -> dict[str, Any]:
    """Per speaker: D_diag in each matrix, own DeID, and the animals; and how real the animals are."""
    own = {kind: similarity.per_speaker(kind) for kind in KINDS}
    animals = {kind: zoos[kind].to_json() for kind in KINDS}
    people = [
        {
            "speaker": name,
            **{f"d_diag_{kind.lower()}": float(own[kind][row]) for kind in KINDS},
            "deid": deid(float(own["OO"][row]), float(own["OP"][row])),
            "zoo": {kind: {key: animals[kind][row][key] for key in ("target", "impostor", "animal", "doddington")}
                    for kind in KINDS},
        }
        for row, name in enumerate(similarity.names)
    ]  # fmt: skip
    return {"speakers": people, "zoo": {kind: zoos[kind].corners() for kind in KINDS}}
