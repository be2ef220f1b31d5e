"""The similarity matrices as estimates: with intervals over speakers and the level of chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import LEVEL, t_quantile
from veilmeter.metrics.measure import Measure
from veilmeter.metrics.registry import estimate_of, measure
from veilmeter.metrics.similarity.matrices import KINDS, Kind, Similarity, deid, g_vd

Floats = NDArray[np.float64]

_NOE20, _NOE22 = "Noé et al. 2020", "Noé et al. 2022"
_PAIRS = {
    "OO": "among the original voices",
    "OP": "between original and protected voices, signed",
    "PP": "among the protected voices",
}


def _of_pairs(kind: str, ending: str, label: str, meaning: str, equation: str, **facts: Any) -> Measure:
    """A measure of the diagonal of one matrix."""
    return Measure(
        name=f"d_diag_{kind.lower()}{ending}",
        label=label,
        better="lower" if kind == "OP" else "neither",
        meaning=meaning,
        section="similarity",
        equation=equation,
        headline=False,
        **facts,
    )


_DIAGONAL = "(mean of the diagonal − mean of the rest) of the matrix of similarities"
MEASURES = (
    Measure(
        name="deid",
        label="DeID",
        unit="percent",
        better="higher",
        meaning="How much of the link between a speaker's original and protected voice is gone; 100 % is all.",
        source=_NOE20,
        section="similarity",
        equation="1 − D_diag(OP) / D_diag(OO)",
        high=100,
        bar=100,
    ),
    Measure(
        name="g_vd",
        label="G_VD",
        unit="dB",
        better="neither",
        meaning="How distinct the protected voices stay from each other; 0 dB is as distinct as the originals.",
        source=_NOE20,
        section="similarity",
        equation="10 log₁₀ (D_diag(PP) / D_diag(OO))",
    ),
    *(
        _of_pairs(
            kind,
            "",
            f"D_diag({kind})",
            f"Diagonal dominance {where}.",
            _DIAGONAL,
            unit="",
            source=_NOE20,
            low=-1,
            high=1,
        )
        for kind, where in _PAIRS.items()
    ),
    *(
        _of_pairs(
            kind,
            "_modulus",
            f"|D_diag({kind})|",
            f"D_diag({kind}) without its sign, as the papers define it.",
            f"|{_DIAGONAL}|",
            unit="",
            source=_NOE20,
            low=0,
            high=1,
        )
        for kind in _PAIRS
    ),
    *(
        _of_pairs(
            kind,
            "_log",
            f"log D_diag({kind})",
            f"Diagonal dominance of the logarithms of the similarities ({kind}): bits, which add up.",
            "(mean of the diagonal − mean of the rest) of log₂ of the similarities",
            unit="bit",
            source=_NOE22,
        )
        for kind in _PAIRS
    ),
)


def similarity_estimates(
    similarity: Similarity, *, system: str | None = None, backend: str = "cosine"
) -> dict[str, Estimate]:
    """deid, g_vd, and d_diag_{oo,op,pp}: signed, as modulus and in the log domain.

    Where `similarity` has spreads, intervals are jackknife t intervals (of D_diag on the scale of log(1 - D)): every
    speaker in turn is left out of the calibration and of the matrices. They cover the speakers that were drawn, not the
    anonymizer's own chance. Where leaving out speakers changes less than permuted labels do, the spread of those is
    taken: a diagonal that has vanished would otherwise seem to be known exactly. `null` is the mean over permuted
    labels.
    """
    oo, op, pp = (similarity.d_diag[kind] for kind in KINDS)
    estimates = [
        _estimate(similarity, "deid", deid(oo, op), lambda d: deid(d["OO"], d["OP"]), vary="OP"),
        _estimate(similarity, "g_vd", g_vd(oo, pp), lambda d: g_vd(d["OO"], d["PP"]), vary="PP"),
    ]
    for kind, value in (("OO", oo), ("OP", op), ("PP", pp)):
        name = f"d_diag_{kind.lower()}"
        estimates.append(_estimate(similarity, name, value, _picked(kind), vary=kind))  # type: ignore[arg-type]
    for kind, value in (("OO", oo), ("OP", op), ("PP", pp)):
        name = f"d_diag_{kind.lower()}_modulus"
        estimates.append(_estimate(similarity, name, abs(value), _picked(kind, modulus=True), vary=kind))  # type: ignore[arg-type]
    for kind in KINDS:
        name = f"d_diag_{kind.lower()}_log"
        estimates.append(_estimate(similarity, name, similarity.d_diag_log[kind], _picked(kind), vary=kind, log=True))
    method = f"{similarity.form}, {similarity.pairs} pairs, {backend}"
    at = {} if system is None else {"system": system}
    return {estimate.name: estimate.with_(method=method, at=at) for estimate in estimates}


_Value = Callable[[dict[Kind, float]], float]


def _picked(kind: str, *, modulus: bool = False) -> _Value:
    return lambda d: abs(d[kind]) if modulus else d[kind]  # type: ignore[index]


def _estimate(
    similarity: Similarity, name: str, value: float, of: _Value, *, vary: Kind, log: bool = False
) -> Estimate:
    interval = null = null_range = None
    if similarity.spreads:
        chance = similarity.spreads[vary].chance_log if log else similarity.spreads[vary].chance
        measured = similarity.d_diag_log if log else similarity.d_diag
        permuted = np.array([of({**measured, vary: float(c)}) for c in chance])
        finite = permuted[np.isfinite(permuted)]
        null = float(finite.mean()) if len(finite) else None
        if len(finite) >= 10:
            low, high = np.quantile(finite, [0.05, 0.95])
            null_range = (float(low), float(high))
        interval = _interval(similarity, value, of, finite, name, log)
    return estimate_of(
        name,
        value,
        interval=interval,
        null=null,
        null_range=null_range,
        n={"speakers": len(similarity.names), "utterances": similarity.utterances},
    )


def _interval(
    similarity: Similarity, value: float, of: _Value, chance: Floats, name: str, log: bool
) -> tuple[float, float] | None:
    people = len(similarity.names)
    if people < 3 or not np.isfinite(value):
        return None
    parts = {kind: s.without_log if log else s.without for kind, s in similarity.spreads.items()}
    without = np.array([of({kind: float(parts[kind][g]) for kind in KINDS}) for g in range(people)])
    if not np.isfinite(without).all():
        return None
    error = float(np.sqrt((people - 1) / people * np.sum((without - without.mean()) ** 2)))
    # In dB a vanished distinctiveness spreads without bound; there the jackknife alone is the honest one.
    least = float(chance.std(ddof=1)) if len(chance) > 2 and name != "g_vd" else 0.0
    half = t_quantile(people - 1, 0.5 + LEVEL / 2) * max(error, least)
    low, high = value - half, value + half
    if name.startswith("d_diag") and not log and value < 1:
        # It can't exceed 1, and falls short of it by factors: a symmetric interval ends too high, too often.
        factor = np.exp(min(half / (1 - value), 50.0))
        low, high = 1 - (1 - value) * factor, 1 - (1 - value) / factor
    entry = measure(name)
    return (max(entry.low, float(low)), min(entry.high, float(high)))
