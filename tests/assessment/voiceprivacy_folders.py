"""Small folders of VoicePrivacy data as the challenges of 2024 and 2026 lay them out, with their quirks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from tests.challenge_trees import People, key_of

from veilmeter.speech.audio import write_audio

RATE = 16_000
EXTRACTOR = """
import numpy as np

def embed(samples):
    spectrum = np.abs(np.fft.rfft(samples[:8192]))
    return np.log(spectrum[:4096].reshape(32, 128).mean(axis=1) + 1e-3)
"""
FEMALE = ("121", "237", "1284")
MALE = ("61", "260", "672")
STRANGERS = {"f": "1580", "m": "908"}  # tried, and not enrolled


def speak(speaker: str, utterance: str, changed: bool = False) -> np.ndarray:
    """Half a second of noise through bands of the speaker's own; anonymized, bands of the utterance's."""
    seed = utterance if changed else speaker
    bands = np.random.default_rng(abs(int.from_bytes(seed.encode()[-7:], "big"))).uniform(0.1, 1.0, 64)
    noise = np.random.default_rng(int.from_bytes(utterance.encode()[-7:], "big")).standard_normal(RATE * 6 // 10)
    spectrum = np.fft.rfft(noise)
    shaped = spectrum * np.interp(np.arange(len(spectrum)), np.linspace(0, len(spectrum), 64), bands)
    samples = np.fft.irfft(shaped)
    return 0.3 * samples / np.abs(samples).max()


def utterances(speakers: Sequence[str], chapter: str, count: int) -> dict[str, list[str]]:
    return {name: [f"{name}-{chapter}-{number:04d}" for number in range(count)] for name in speakers}


def data_folder(
    data: Path, name: str, people: People, *, suffix: str = "", files: Mapping[str, str] | None = None
) -> Path:
    """A folder of original speech with its lists, or with a suffix one of anonymized speech that holds `wav/` alone."""
    place = data / f"{name}{suffix}"
    for speaker, spoken in people.items():
        for utterance in spoken:
            write_audio(place / "wav" / f"{utterance}.wav", speak(speaker, utterance, bool(suffix)))
    if not suffix:
        both = [(utterance, speaker) for speaker, spoken in people.items() for utterance in spoken]
        (place / "utt2spk").write_text("".join(f"{utterance} {speaker}\n" for utterance, speaker in both))
        (place / "spk2utt").write_text("".join(f"{speaker} {' '.join(spoken)}\n" for speaker, spoken in people.items()))
        genders = {**dict.fromkeys([*FEMALE, STRANGERS["f"]], "f")}
        (place / "spk2gender").write_text("".join(f"{speaker} {genders.get(speaker, 'm')}\n" for speaker in people))
        (place / "wav.scp").write_text(
            "".join(f"{utterance} data/{name}/wav/{utterance}.wav\n" for utterance, _ in both)
        )
    for file, text in (files or {}).items():
        (place / file).write_text(text)
    return place


def challenge_2024(root: Path, suffix: str = "_mcadams") -> Path:
    """Two genders, in each a person who is not enrolled; training speech, emotions, a parent set, another variant."""
    data = root / "data"
    enrolled = utterances([*FEMALE, *MALE], "1", 3)
    for mark in ("", suffix):
        data_folder(
            data,
            "libri_test_enrolls",
            enrolled,
            suffix=mark,
            files={} if mark else {"enrolls": "".join(f"{u}\n" for spoken in enrolled.values() for u in spoken)},
        )
        for gender, speakers in (("f", FEMALE), ("m", MALE)):
            tried = utterances([*speakers, STRANGERS[gender]], "2", 3)
            files = {} if mark else {"trials": key_of(speakers, tried)}
            data_folder(data, f"libri_test_trials_{gender}", tried, suffix=mark, files=files)
        data_folder(data, "train-clean-360", utterances([f"{n}00" for n in range(1, 7)], "9", 2), suffix=mark)
        data_folder(
            data,
            "IEMOCAP_test",
            {"5": ["Ses01F_impro01_F000"]},
            suffix=mark,
            files={} if mark else {"utt2emo": "Ses01F_impro01_F000 neu\n"},
        )
    data_folder(data, "libri_test", enrolled)
    data_folder(data, "libri_test_enrolls", utterances(FEMALE[:1], "1", 1), suffix=f"_a{suffix}")
    return data  # fmt: skip


def emotion_set(data: Path, name: str, suffix: str = "_mcadams", *, emotions: Sequence[str] = ("neu", "sad")) -> Path:
    """Four people who say the same in every emotion: it is heard in both sides alike, in place of the speaker."""
    people = {str(n): [f"Ses0{n}F_{emotion}_{k}" for emotion in emotions for k in range(2)] for n in range(1, 5)}
    labels = {utterance: utterance.split("_")[1] for spoken in people.values() for utterance in spoken}
    for mark in ("", suffix):
        files = {} if mark else {"utt2emo": "".join(f"{u} {emotion}\n" for u, emotion in labels.items())}
        place = data_folder(data, name, people, suffix=mark, files=files)
        for utterance, emotion in labels.items():
            write_audio(place / "wav" / f"{utterance}.wav", speak(emotion, utterance))
    return data / name


def scores_of(root: Path, system: str, enrollment: str, trials: str, key: str, distance: float) -> Path:
    """What the challenge's tools leave: scores without a label, targets higher by `distance`."""
    place = root / "exp" / system / f"{enrollment}-{trials}"
    place.mkdir(parents=True)
    rng = np.random.default_rng(len(enrollment))
    lines = []
    for line in key.splitlines():
        name, utterance, label = line.split()
        lines.append(f"{name} {utterance} {rng.standard_normal() + distance * (label == 'target'):.5f}\n")
    (place / "scores").write_text("".join(lines))
    (place / "EER").write_text("0.105\n")
    return place / "scores"
