"""How listeners would rate a recording, as two models predict it: Distill-MOS and DNSMOS P.835, both from 1 to 5.

Distill-MOS says how good speech sounds overall, also where it was coded or synthesized. DNSMOS says how clean it is:
the speech itself, the background, and both together. Neither says whether one understands a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.speech import distill_mos, weights
from veilmeter.speech.audio import RATE
from veilmeter.speech.onnx_session import open_session

# Part of the version: raise it when the same samples may give other values.
CODE = 1
MOST_STRETCHES = 12  # of a long recording, spread evenly over it
DNSMOS_SAMPLES = int(9.01 * RATE)
DNSMOS_OUTPUTS = ("dnsmos_sig", "dnsmos_bak", "dnsmos_ovr")
# The published calibration of the raw outputs to listeners' scores: quadratic, linear and constant terms.
_POLYNOMIALS = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)


@dataclass(frozen=True, slots=True)
class Quality:
    """Predicted ratings from 1 to 5."""

    mos: float
    dnsmos_sig: float
    dnsmos_bak: float
    dnsmos_ovr: float


class QualityModels:
    """Both models, loaded."""

    name = "quality"

    def __init__(self, *, offline: bool = False) -> None:
        marks = [entry.sha256[:8] for entry in (weights.DISTILL_MOS, weights.DNSMOS)]
        self.version = "-".join([*marks, str(CODE)])
        self._distill = distill_mos.open_model(offline=offline)
        self._dnsmos = open_session(weights.fetch(weights.DNSMOS, offline=offline))

    def rate(self, samples: NDArray[np.float32]) -> Quality:
        clipped = np.clip(samples, -1, 1)
        mos = _mean_over(clipped, distill_mos.STRETCH, self._distill_mos, fill=_with_silence)
        return Quality(float(mos[0]), *map(float, _mean_over(clipped, DNSMOS_SAMPLES, self._p835, fill=_repeated)))

    def _distill_mos(self, stretch: NDArray[np.float32]) -> Any:
        return self._distill.run(None, {"spectra": distill_mos.spectrum(stretch)[None]})[0][0]

    def _p835(self, stretch: NDArray[np.float32]) -> Any:
        raw = self._dnsmos.run(None, {"input_1": stretch[None]})[0][0]
        return np.array([np.polyval(polynomial, value) for polynomial, value in zip(_POLYNOMIALS, raw, strict=True)])


def _mean_over(
    samples: NDArray[np.float32],
    size: int,
    rate: Callable[[NDArray[np.float32]], Any],
    *,
    fill: Callable[[NDArray[np.float32], int], NDArray[np.float32]],
) -> NDArray[np.float64]:
    """The mean rating of overlapping stretches: half of each is new, the first and the last end where the recording
    does."""
    if len(samples) < size:
        samples = fill(samples, size)
    count = min(MOST_STRETCHES, 1 + -(-2 * (len(samples) - size) // size))
    starts = np.linspace(0, len(samples) - size, count).astype(int)
    ratings = [rate(np.ascontiguousarray(samples[start : start + size])) for start in starts]
    return np.asarray(np.mean(ratings, axis=0, dtype=np.float64))


def _with_silence(samples: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return np.pad(samples, (0, size - len(samples)))


def _repeated(samples: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return np.tile(samples, -(-size // len(samples)))[:size]
