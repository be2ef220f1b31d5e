"""Long recordings are embedded in windows: memory stays bounded, and a run can be stopped between two of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilmeter.speech.audio import RATE, is_silent
from veilmeter.speech.extractors.base import Extractor

WINDOW_SECONDS = 60.0


def embed_in_windows(extractor: Extractor, samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vector of a recording; of one longer than a minute, the mean over equal windows of at most a minute, those
    that hold nothing but silence left out."""
    most = int(WINDOW_SECONDS * RATE)
    if len(samples) <= most:
        return np.asarray(extractor.embed(samples), np.float32)
    total, heard = np.zeros(extractor.dimension), 0
    for window in np.array_split(samples, -(-len(samples) // most)):
        if not is_silent(window):
            total += np.asarray(extractor.embed(np.ascontiguousarray(window)), np.float64)
            heard += 1
    return np.asarray(total / max(heard, 1), np.float32)
