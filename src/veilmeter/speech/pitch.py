"""The pitch of speech, a value every 16 ms, by SwiftF0 (Nieradzik 2025, MIT)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilmeter.speech import weights
from veilmeter.speech.audio import RATE
from veilmeter.speech.onnx_session import open_session

# Part of the version: raise it when the same samples may give other values.
CODE = 1
FRAME = 256  # samples
FRAME_SECONDS = FRAME / RATE
LOWEST, HIGHEST = 50.0, 600.0  # Hz: of speech
VOICED = 0.5  # the least confidence, as the model is calibrated
_QUIET = 1e-3  # on digital silence it answers at random
_WINDOW, _BEFORE, _AFTER = 1875, 11, 10  # frames: half a minute at once, with what decides its first and last frame


class PitchTracker:
    """Loaded once; `track` may be called for as many recordings as you like."""

    name = "pitch"

    def __init__(self, *, offline: bool = False) -> None:
        self.version = f"{weights.SWIFT_F0.sha256[:12]}-{CODE}"
        self._session = open_session(weights.fetch(weights.SWIFT_F0, offline=offline))

    def track(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Hertz per frame, 0 where nothing is voiced."""
        frames = max(1, len(samples) // FRAME)
        parts = []
        for start in range(0, frames, _WINDOW):
            end, left = min(start + _WINDOW, frames), max(0, start - _BEFORE)
            window = samples[left * FRAME : (end + _AFTER) * FRAME if end < frames else len(samples)]
            parts.append(self._window(window)[start - left : end - left])
        return np.concatenate(parts)

    def _window(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        low, high = np.array(LOWEST, np.float32), np.array(HIGHEST, np.float32)
        inputs = {"audio": np.ascontiguousarray(samples)[None], "fmin": low, "fmax": high}
        pitch, confidence = (values[0] for values in self._session.run(["pitch", "confidence"], inputs))
        voiced = confidence >= VOICED
        if len(samples) >= FRAME:
            hops = samples[: len(voiced) * FRAME].reshape(len(voiced), FRAME)
            voiced &= np.abs(hops).max(axis=1) >= _QUIET
        return np.where(voiced, pitch, 0.0).astype(np.float32)
