"""How the options of the commands that go through recordings are tried."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import challenge_trees
from tests.trying_options import CommandTrials, Words, words

from veilmeter.core.options import options_of
from veilmeter.data.corpus import CorpusReading
from veilmeter.demo import story
from veilmeter.speech import weights
from veilmeter.speech.audio import write_audio
from veilmeter.speech.quality import PitchTracker, Quality, QualityModels

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
    for tree in (challenge_trees.tree_2026, challenge_trees.tree_2024):
        data = tree(folder / "challenge" / tree.__name__)
        for path in data.glob("*_*/wav/*.wav"):
            shutil.copy(files[0], path)
    (data.parent / "exp" / "asv_anon_mcadams").mkdir(parents=True)
    (data.parent / "exp" / "asv_anon_mcadams" / "EER").write_text("0.1\n")
    (folder / "run").mkdir()
    (folder / "run" / "result_for_rank_mcadams").write_text("a table\n")


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

    patch.setattr(weights, "_run_client", fetched)
    fetch = weights.fetch
    patch.setattr(weights, "fetch", lambda named, **how: folder if named is weights.CAMPPLUS else fetch(named, **how))
    patch.setattr(PitchTracker, "__init__", lambda self, *, offline=False: setattr(self, "version", "level"))
    patch.setattr(PitchTracker, "track", lambda self, samples: 100 + 50 * np.abs(samples[: len(samples) // 256]))
    patch.setattr(QualityModels, "__init__", lambda self, *, offline=False: setattr(self, "version", "level"))
    patch.setattr(QualityModels, "rate", lambda self, samples: Quality(*[1.5 + float(np.abs(samples).mean())] * 4))

    if importlib.util.find_spec("torch") is not None:
        from veilmeter.anonymizers.xvector_pool import features

        patch.setattr(features, "load_extractor", lambda spec, offline: SpectrumExtractor())
        patch.setattr(features, "load_layer", lambda layer, offline: LoudnessEncoder(layer))

    def told(out: Path, *, say: Any, **asked: Any) -> story.Told:
        return story.Told({}, Path(out) / "report.html", {name: str(value) for name, value in asked.items()})

    patch.setattr(story, "tell", told)


READING = frozenset(options_of(CorpusReading))
GUARDS = frozenset({"strict", "offline"})


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
        "a list": READING | {"max_seconds"},
        "lists of Kaldi": READING,
        "a broken recording": frozenset({"strict"}),
        "two channels": frozenset({"channel"}),
        "no weights": frozenset({"offline"}),
    }
    return modes, only


EMBED_MODES, EMBED_ONLY = through_corpora("--extractor", "HERE/own.py:embed", weights=("--extractor", "ecapa"))
EMBED = CommandTrials(
    command="embed",
    modes=EMBED_MODES,
    only=EMBED_ONLY,
    guards=GUARDS,
    used=frozenset({"a used folder"}),
)

HEARD_MODES, HEARD_ONLY = through_corpora("--recognizer", "HERE/own.py:hear", weights=("--recognizer", "moonshine"))
TRANSCRIBE = CommandTrials(
    command="transcribe",
    modes=HEARD_MODES,
    only=HEARD_ONLY,
    guards=GUARDS,
    used=frozenset({"a used folder"}),
)

MADE_MODES, MADE_ONLY = through_corpora("--system", "mcadams", weights=("--system", "HERE/own.py:fetched"))
ANONYMIZE = CommandTrials(
    command="anonymize",
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
    guards=GUARDS | {"timeout"},
    used=frozenset({"a used folder"}),
)

BOTH = ("--original", "HERE/speech", "--anonymized", "HERE/changed")
LISTENING = ("--recognizer", "HERE/own.py:hear", "--rated", 0, "--jobs", 1, "--quiet")
UTILITY = CommandTrials(
    command="utility",
    modes={
        "folders": words(*BOTH, *LISTENING, "--json"),
        "lists": words("--original", "HERE/speech.csv", "--anonymized", "HERE/changed.csv", *LISTENING),
        "two channels": words("--original", "HERE/stereo", "--anonymized", "HERE/stereo", "--channel", 0, *LISTENING),
        "no weights": words(*BOTH, "--rated", 0, "--jobs", 1),
    },
    only={"two channels": frozenset({"channel"}), "no weights": frozenset({"offline"})},
    guards=frozenset({"offline"}),
)

TRAINING = ("--steps", 1, "--voices", 2, "--jobs", 1, "--quiet", "--offline")
TRAIN = CommandTrials(
    command="train",
    modes={
        "a folder": words("xvector-pool", "HERE/people", "HERE/out", *TRAINING),
        "a used folder": words("xvector-pool", "HERE/people", "HERE/out", *TRAINING),
    },
    only={"a used folder": frozenset({"steps", "voices", "layer", "bottleneck", "license", "seed", "part"})},
    neutral=frozenset({"offline"}),
    used=frozenset({"a used folder"}),
)

DEMO = CommandTrials(
    command="demo",
    modes={"as it is": words("--jobs", 1, "--out", "HERE/out")},
)

CHECK = CommandTrials(
    command="check",
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
)

CHALLENGE = CommandTrials(
    command="challenge",
    modes={
        "a check": words("check", "HERE/challenge/tree_2026/data", "--suffix", "_b2", "--year", "2026", "--track", "2"),
        "a check of 2024": words("check", "HERE/challenge/tree_2024/data", "--suffix", "_mcadams"),
        "an archive": words("zip", "HERE/challenge/tree_2024/data", "--suffix", "_mcadams", "--out", "HERE/out"),
    },
    only={"a check": frozenset({"suffix", "run", "out", "json"})},
)

TRIALS = {trials.command: trials for trials in (EMBED, TRANSCRIBE, ANONYMIZE, UTILITY, DEMO, CHECK, TRAIN, CHALLENGE)}
