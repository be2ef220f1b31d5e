"""Whether the melody survives: the correlation of two pitch tracks (the challenges' ρ of F0)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.metrics.measure import Measure

LONGEST_LAG = 25  # frames of 16 ms, to either side
FEWEST_FRAMES = 20  # voiced on both sides, for a correlation to mean anything
LEAST_OVERLAP = 0.5  # of the frames voiced on both sides without a lag

MEASURE = Measure(
    name="pitch_correlation",
    label="pitch correlation",
    unit="",
    better="neither",
    meaning="Whether the melody survives: 1 if the pitch rises and falls as in the original, 0 if it has nothing to "
    "do with it.",
    source="cf. Tomashenko et al. 2022",
    section="utility",
    equation="Pearson's ρ of F0 over frames voiced on both sides, at the best lag",
    low=-1,
    high=1,
    use="higher",
)


def pitch_correlation(original: ArrayLike, anonymized: ArrayLike) -> float:
    """Pearson's correlation of the pitch over the frames that are voiced on both sides; NaN where they are too few.

    Tracks are Hertz per frame, 0 where nothing is voiced. A track of another length is stretched to the original's.
    Processing may delay speech: of all lags up to 0.4 s, the one with the greatest correlation counts, which is why
    even unrelated tracks correlate a little. A monotone voice has no melody, and a correlation of 0.

    >>> track = np.r_[np.zeros(9), 120 + 30 * np.sin(np.arange(80) / 7)]
    >>> round(pitch_correlation(track, np.r_[np.zeros(4), track * 1.5]), 2)
    1.0
    """
    x = np.asarray(original, np.float64)
    y = _stretched(np.asarray(anonymized, np.float64), len(x))
    together = int(np.count_nonzero((x > 0) & (y > 0)))
    fewest = max(FEWEST_FRAMES, LEAST_OVERLAP * together)
    best = np.nan
    longest = min(LONGEST_LAG, len(x) - 1)
    for lag in range(-longest, longest + 1):
        a, b = (x[lag:], y[: len(y) - lag]) if lag >= 0 else (x[:lag], y[-lag:])
        voiced = (a > 0) & (b > 0)
        if np.count_nonzero(voiced) >= fewest:
            best = np.fmax(best, _pearson(a[voiced], b[voiced]))
    return float(best)


def _stretched(track: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """The track over as many frames as the other one has, by the nearest frame; a few frames are cut or added."""
    if abs(len(track) - length) <= LONGEST_LAG or not len(track):
        return np.pad(track, (0, max(0, length - len(track))))[:length]
    places = np.round(np.linspace(0, len(track) - 1, length)).astype(int)
    return np.asarray(track[places])


def _pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread > 1e-9 else 0.0
