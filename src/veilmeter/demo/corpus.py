"""A small corpus of synthetic voices: utterances of each in two sessions, each session with its room and noise.

The voices come from espeak-ng, whose library comes in a wheel: distinct speakers without a single real person.
"""

from __future__ import annotations

import _ctypes
import csv
import ctypes
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve, lfilter

from veilmeter.core.engine import Engine, Here
from veilmeter.core.errors import VeilmeterError, missing_extra
from veilmeter.core.files import make_folder, write_text
from veilmeter.data.corpus import Corpus, read_corpus

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


# --- what they say, and where they say it

SENTENCES = (
    "The boat left the harbor before the morning fog had lifted.",
    "Please leave the heavy boxes next to the kitchen door.",
    "Our train was late, so we walked along the river instead.",
    "She found an old map folded inside the cover of the book.",
    "The nurse wrote the time of each call on a yellow card.",
    "A cold wind came down from the hills after sunset.",
    "They painted the garden gate green and the window frames white.",
    "He could not remember where he had parked the van.",
    "The second question was much harder than the first one.",
    "Take the small blue tablet twice a day with some water.",
    "Nobody had watered the tomatoes since the end of July.",
    "The lift stopped between two floors for almost an hour.",
    "I would rather have the soup than the sandwich today.",
    "Snow covered the roofs and made the whole street quiet.",
    "The doctor asked how long the pain had been there.",
    "Children were playing with a red ball behind the school.",
    "We need three more chairs and another pot of coffee.",
    "The letter arrived on a Tuesday with no name on the back.",
    "You can see the lighthouse from the top of the stairs.",
    "My brother keeps bees and sells the honey at the market.",
    "The phone rang twice and then the line went dead.",
    "After the storm the path was blocked by fallen branches.",
    "It takes about forty minutes to reach the airport by bus.",
    "The old clock in the hall is always five minutes fast.",
    "Could you move the appointment to the following Monday?",
    "A thin layer of dust lay on every shelf in the room.",
    "The bakery on the corner opens at six in the morning.",
    "He read the instructions twice before he touched anything.",
    "The dog waited by the gate until everyone had come home.",
    "There were seven apples in the basket and one on the floor.",
    "She turned the radio down and listened to the rain.",
    "The bridge will be closed for repairs until the spring.",
    "We grew up in a house with a very large walnut tree.",
    "The new carpet is softer but it shows every footprint.",
    "Bring a warm coat, because the hall is never heated.",
    "The teacher drew a circle and divided it into eight parts.",
    "His voice was hoarse after two hours of singing.",
    "The museum is free on the first Sunday of the month.",
    "A small plane crossed the bay and vanished in the clouds.",
    "They agreed to share the cost of the broken window.",
    "The recipe asks for two eggs and a pinch of salt.",
    "Most of the visitors came by bicycle this summer.",
    "I have not slept well since we moved to the city.",
    "The keys were under the mat the whole time.",
    "Each table had a white cloth and a single candle.",
    "The farmer counted the sheep again and shook his head.",
    "Your parcel will be delivered between noon and three.",
    "The choir practices in the church on Thursday evenings.",
)


SESSIONS = ("home", "clinic")
SEED = "seed.txt"


def build(folder: str | Path, engine: Engine, *, speakers: int = 40, utterances: int = 3, seed: int = 0) -> Path:
    """Synthesizes the corpus into `folder` (one folder per speaker, and `corpus.csv`); what is there of this seed is
    kept."""
    root = make_folder(folder)
    _remove_other_seeds(root, seed)
    tasks = [
        (root, voice, session, number, seed)
        for voice in voices(speakers, seed)
        for session in range(len(SESSIONS))
        for number in range(utterances)
    ]
    rows = dict(engine.run(_make_utterance, tasks))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["path", "speaker", "utterance", "gender", "session", "accent", "language", "text"])
    writer.writerows(rows[number] for number in range(len(tasks)))
    write_text(root / "corpus.csv", table.getvalue())
    return root


def demo_corpus(folder: str | Path, *, speakers: int = 12, utterances: int = 2, seed: int = 0) -> Corpus:
    """Make a corpus of synthetic voices, no real person among them, to try things with.

    Parameters
    ----------
    folder : str or Path
        The folder for the recordings; what is there of this seed is kept.
    speakers : int
        Voices.
    utterances : int
        Sentences per voice and session; there are two sessions.
    seed : int
        Random seed.

    Returns
    -------
    Corpus
        The recordings, with gender, session, accent and text.

    Raises
    ------
    VeilmeterError
        If the speech synthesizer is not installed.

    Examples
    --------
    >>> demo_corpus("speech", speakers=4)  # doctest: +SKIP
    Corpus(16 utterances of 4 speakers, csv layout, speech)
    """
    return read_corpus(build(folder, Here(), speakers=speakers, utterances=utterances, seed=seed) / "corpus.csv")


def _remove_other_seeds(root: Path, seed: int) -> None:
    """Recordings that an earlier run made with another seed have the same names."""
    noted = root / SEED
    if noted.exists() and noted.read_text(encoding="utf-8") != str(seed):
        for recording in root.glob("voice*/*.flac"):
            recording.unlink()
    write_text(noted, str(seed))


def _make_utterance(task: tuple[Path, Voice, int, int, int]) -> list[str]:
    from veilmeter.speech.audio import write_audio

    root, voice, session, number, seed = task
    name = f"{voice.name}-{SESSIONS[session]}-{number + 1}"
    path = root / voice.name / f"{name}.flac"
    speaker = int(voice.name.removeprefix("voice"))
    text = SENTENCES[(speaker * 7 + session * 13 + number * 5) % len(SENTENCES)]  # every voice says other things
    if not path.exists():
        write_audio(path, record(speak(voice, text), [seed, speaker, session], [seed, speaker, session, number]))
    return [
        path.relative_to(root).as_posix(), voice.name, name, voice.gender, SESSIONS[session], voice.accent, "en", text
    ]  # fmt: skip


def record(speech: NDArray[np.float32], room_seed: list[int], noise_seed: list[int]) -> NDArray[np.float32]:
    """The speech as a microphone hears it: a room with echo and color (one a session), noise (one an utterance)."""
    room = np.random.default_rng(room_seed)
    decay = room.uniform(0.08, 0.3)  # seconds to fall by 60 dB
    time = np.arange(int(decay * RATE)) / RATE
    echo = room.standard_normal(len(time)) * 10 ** (-3 * time / decay) * room.uniform(0.02, 0.06)
    echo[0] = 1.0
    tilt = room.uniform(-0.25, 0.25)
    colored = lfilter([1.0, tilt], [1.0], fftconvolve(speech, echo)[: len(speech)])
    rng = np.random.default_rng(noise_seed)
    hiss = lfilter([1.0], [1.0, -0.9], rng.standard_normal(len(speech)))
    snr = room.uniform(18, 30)
    hiss *= np.sqrt(np.mean(colored**2) / np.mean(hiss**2)) * 10 ** (-snr / 20)
    mixed = colored + hiss
    scaled: NDArray[np.float32] = (0.5 * mixed / np.max(np.abs(mixed))).astype(np.float32)
    return scaled
