"""Synthetic voices from espeak-ng, whose library comes in a wheel: distinct speakers without a single real person."""

from __future__ import annotations

import _ctypes
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import VeilmeterError, missing_extra

RATE = 16000

_ACCENTS = ("en-us", "en", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-029", "en-gb-x-gbcwmd", "en-us-nyc")
_MALE = (
    *("m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "Alex", "Andy", "Gene", "Denis", "Diogo", "Henrique", "Hugo"),
    *("Jacky", "john", "Lee", "Marco", "Mario", "Michael", "Mike", "paul", "pedro", "quincy", "Reed", "rob", "robert"),
    *("travis", "david", "edward", "ian", "max", "norbert", "caleb", "benjamin", "boris", "zac"),
)
_FEMALE = ("f1", "f4", "Andrea", "Annie", "anika", "aunty", "belinda", "linda", "steph", "steph2", "steph3", "shelby")
# Variants with breath noise (f2, f3, f5, Alicia, sandro, victor) are left out: they never sound twice the same.


@dataclass(frozen=True, slots=True)
class Voice:
    """One synthetic speaker: espeak's variant and accent, pitch and its range, speed, length of the vocal tract."""

    name: str
    gender: str
    accent: str
    variant: str
    pitch: int
    pitch_range: int
    words_per_minute: int
    tract: float


def voices(count: int, seed: int = 0) -> list[Voice]:
    """`count` distinct voices, half of each gender, the same for every run with one seed."""
    rng = np.random.default_rng([seed, 40])
    chosen = []
    for number in range(count):
        gender = "fm"[number % 2]
        variants = _FEMALE if gender == "f" else _MALE
        place = number // 2
        chosen.append(
            Voice(
                name=f"voice{number + 1:02d}",
                gender=gender,
                accent=_ACCENTS[place % len(_ACCENTS)],
                variant=variants[place % len(variants)],
                pitch=int(rng.integers(35, 66)),
                pitch_range=int(rng.integers(35, 66)),
                words_per_minute=int(rng.integers(145, 195)),
                tract=float(np.round(rng.uniform(0.9, 1.1), 3)),
            )
        )
    return chosen


def speak(voice: Voice, text: str) -> NDArray[np.float32]:
    """The text in this voice, mono at 16 kHz."""
    try:
        import soxr
    except ImportError:
        raise missing_extra("soxr", "audio") from None
    with _espeak() as (library, rate):
        if library.espeak_SetVoiceByName(f"{voice.accent}+{voice.variant}".encode()) != 0:
            raise VeilmeterError(f"espeak-ng does not know the voice {voice.accent}+{voice.variant}")
        # Playing faster or slower moves the formants as a shorter or longer vocal tract does; speed is set against it.
        library.espeak_SetParameter(1, round(voice.words_per_minute / voice.tract), 0)
        library.espeak_SetParameter(3, voice.pitch, 0)
        library.espeak_SetParameter(4, voice.pitch_range, 0)
        blocks: list[NDArray[np.int16]] = []

        def collect(samples: Any, count: int, _events: Any) -> int:
            if count > 0:
                blocks.append(np.ctypeslib.as_array(samples, shape=(count,)).copy())
            return 0

        callback = _CALLBACK(collect)
        library.espeak_SetSynthCallback(callback)
        data = text.encode()
        status = library.espeak_Synth(data, len(data) + 1, 0, 0, 0, 1, None, None)
        library.espeak_Synchronize()
    if status != 0 or not blocks:
        raise VeilmeterError(f"espeak-ng could not speak {text!r}")
    samples = np.concatenate(blocks).astype(np.float32) / 32768
    resampled: NDArray[np.float32] = soxr.resample(samples, rate * voice.tract, RATE)
    return resampled


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@contextmanager
def _espeak() -> Iterator[tuple[Any, int]]:
    """A fresh espeak: it keeps hidden state (flutter, echo) from one text to the next, so each text gets its own."""
    try:
        import espeakng_loader
    except ImportError:
        raise missing_extra("espeakng-loader", "audio") from None
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    try:
        synchronous = 2
        rate = int(library.espeak_Initialize(synchronous, 0, espeakng_loader.get_data_path().encode(), 0))
        if rate <= 0:
            raise VeilmeterError("espeak-ng could not be started", fix="reinstall the package espeakng-loader")
        ctypes.CDLL(None).srand(1)
        yield library, rate
        library.espeak_Terminate()
    finally:
        _ctypes.dlclose(library._handle)
