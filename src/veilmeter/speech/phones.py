"""The phones of a recording and how long each lasts, by PocketSphinx (BSD; its English model comes in its wheel).

A free loop of phones is decoded, so no transcript is needed. Many of its phones are wrong, but a wrong one resembles
the right one and lasts as long.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import missing_extra

FRAMES_PER_SECOND = 100
SILENCE = "SIL"
NOISE = "+"  # the first letter of fillers such as +SPN+
LANGUAGE_WEIGHT, PHONE_PENALTY, BEAM = 2.0, 0.3, 1e-10


@dataclass(frozen=True, slots=True)
class Phone:
    """One phone with its duration in seconds; a pause is the phone SIL."""

    name: str
    seconds: float

    @property
    def pause(self) -> bool:
        return self.name == SILENCE


class PhoneAligner:
    """Finds the phones of samples."""

    def __init__(self) -> None:
        try:
            import pocketsphinx
        except ImportError:
            raise missing_extra("pocketsphinx", "audio") from None
        self._sphinx = pocketsphinx
        self.version = f"pocketsphinx-{version('pocketsphinx')}"

    def align(self, samples: NDArray[np.float32]) -> list[Phone]:
        # A new decoder each time: a used one remembers the level of the recording before.
        decoder = self._sphinx.Decoder(
            hmm=self._sphinx.get_model_path(os.path.join("en-us", "en-us")),
            allphone=self._sphinx.get_model_path(os.path.join("en-us", "en-us-phone.lm.bin")),
            lm=None, dict=None, lw=LANGUAGE_WEIGHT, pip=PHONE_PENALTY, beam=BEAM, pbeam=BEAM, loglevel="FATAL",
        )  # fmt: skip
        decoder.start_utt()
        decoder.process_raw((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes(), full_utt=True)
        decoder.end_utt()
        return [
            Phone(segment.word, (segment.end_frame - segment.start_frame + 1) / FRAMES_PER_SECOND)
            for segment in decoder.seg() or ()
        ]
