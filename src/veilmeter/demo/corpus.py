"""A small corpus of synthetic voices: utterances of each in two sessions, each session with its room and noise."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve, lfilter

from veilmeter.core.engine import Engine
from veilmeter.core.files import make_folder, write_text
from veilmeter.demo.voices import RATE, Voice, speak, voices

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
