"""The converter's input from a recording (level, energy, content), and the training examples made of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.anonymizers.xvector_pool import world
from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import BROKEN_ARCHIVE, make_folder, whole_file
from veilmeter.data.corpus import Corpus, Utterance, file_name
from veilmeter.speech.extractors.base import load_extractor
from veilmeter.speech.recognizers.moonshine import EncoderLayer, load_layer

LEVEL = 0.1  # the loud parts of every recording are brought to this amplitude, so that its level says nothing
WINDOW = 400  # samples of a frame of loudness
LOWEST_POWER = 1e-8
LEAN = 480  # frames that the training speech's statistics weigh beside those of a stretch
LIMIT = 5.0  # standard deviations: a few numbers of the encoder burst now and then

Array = NDArray[np.float64]
Frames = NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class SourceFrames:
    """Frames of a stretch: F0 in hertz (0 where unvoiced), log power, content as it was heard (frames x numbers); how
    many samples it had, and by how much these were amplified first."""

    f0: Array
    energy: Array
    content: Frames
    samples: int
    gain: float


def hear(samples: ArrayLike, encoder: EncoderLayer) -> SourceFrames:
    """Of speech at 16 kHz."""
    leveled, gain = level(samples)
    f0 = world.pitch(leveled)
    return SourceFrames(f0, energy(leveled), content(leveled, encoder, len(f0)), len(leveled), gain)


def level(samples: ArrayLike) -> tuple[Frames, float]:
    """The samples with their loud parts at one level, and the gain that did it; pauses do not count."""
    signal = np.asarray(samples, np.float32)
    frames = power(signal)
    total = float(frames.sum())
    gain = LEVEL / np.sqrt(float((frames**2).sum()) / total) if total > 0 else 1.0
    return (signal * gain).astype(np.float32), float(gain)


def power(samples: ArrayLike) -> Array:
    """Mean square around each of WORLD's frames."""
    hop = int(world.RATE * world.PERIOD_MS / 1000)
    squares = np.asarray(samples, np.float64) ** 2
    padded = np.pad(squares, (WINDOW // 2, WINDOW))
    stretches = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::hop]
    result: Array = stretches[: len(squares) // hop + 1] @ _window()
    return result


@cache
def _window() -> Array:
    window = np.hanning(WINDOW + 1)[:-1]
    weights: Array = window / window.sum()
    return weights


def energy(samples: ArrayLike) -> Array:
    result: Array = np.log(power(samples) + LOWEST_POWER)
    return result


def content(samples: Frames, encoder: EncoderLayer, frames: int) -> Frames:
    """The words, at WORLD's frames."""
    places, heard = encoder.hear(samples)
    return at_frames(places, heard, frames)


def standardize(heard: ArrayLike, usual_mean: ArrayLike, usual_variance: ArrayLike) -> Frames:
    """Content (frames x numbers) with what is constant taken away; `usual` is what training speech has."""
    x = np.asarray(heard, np.float64)
    own = len(x) / (len(x) + LEAN)
    mean = own * x.mean(axis=0) + (1 - own) * np.asarray(usual_mean)
    variance = own * x.var(axis=0) + (1 - own) * np.asarray(usual_variance)
    clipped: Frames = np.clip((x - mean) / (np.sqrt(variance) + 1e-3), -LIMIT, LIMIT).astype(np.float32)
    return clipped


def at_frames(places: Array, values: Frames, frames: int) -> Frames:
    """Values known at some places (samples), on the straight lines between them, at each of WORLD's frames."""
    wanted = np.arange(frames) * (world.RATE * world.PERIOD_MS / 1000)
    after = np.clip(np.searchsorted(places, wanted), 1, max(1, len(places) - 1))
    before = after - 1
    after = np.minimum(after, len(places) - 1)
    width = np.maximum(places[after] - places[before], 1.0)
    part = np.clip((wanted - places[before]) / width, 0.0, 1.0).astype(np.float32)[:, None]
    result: Frames = values[before] * (1 - part) + values[after] * part
    return result


Progress = Callable[[str, int, int, str], None]
"""Called with the step's name, how much is done, of how much, and a remark."""

PIECE_SECONDS = 3.0
FEATURES = "features"
# Part of the features' names: raise it when the same recording may give other features.
CODE = 2
_STORED = ("f0", "energy", "content", "outputs", "vector", "pieces")


@dataclass(frozen=True, eq=False, slots=True)
class Example:
    """One utterance as training sees it: what the converter hears, and the mel-cepstra and aperiodicity that it has to
    give (`outputs`)."""

    speaker: str
    gender: str
    f0: NDArray[np.float32]
    energy: NDArray[np.float32]
    content: NDArray[np.float16]
    outputs: NDArray[np.float32]
    vector: NDArray[np.float32]
    pieces: NDArray[np.float32]


def silent(step: str, done: int, total: int, remark: str) -> None:
    pass


def extract(
    corpus: Corpus, folder: Path, *, layer: int, engine: Engine, offline: bool = False, progress: Progress = silent
) -> tuple[list[Example], list[str]]:
    """Analysis and speaker vectors of every utterance, in the corpus's order, and why others were left out."""
    from veilmeter.speech import weights

    weights.fetch(weights.CAMPPLUS, offline=offline)  # once, before several processes ask for it
    load_layer(layer, offline=offline)
    place = make_folder(folder / f"{FEATURES}-{layer}")
    todo = [u for u in corpus if not (place / _feature_name(u)).is_file()]
    skipped: list[str] = []
    total = len(corpus.utterances)
    for done, (_, problem) in enumerate(engine.run(partial(_extract_one, str(place), layer, offline), todo), 1):
        if problem:
            skipped.append(problem)
        progress("features", total - len(todo) + done, total, f"{len(skipped)} left out" if skipped else "")
    examples = [_read_example(place / _feature_name(u), u) for u in corpus if (place / _feature_name(u)).is_file()]
    if not examples:
        raise InputError(
            "no utterance of this corpus can be used", path=corpus.root, fix=skipped[0] if skipped else None
        )
    return examples, sorted(skipped)


def _feature_name(utterance: Utterance) -> str:
    """Ids may differ where names of files do not (a/b and a_b), and another corpus may have the same ids: the recording
    itself is part of the name."""
    try:
        status = utterance.path.stat()
        mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    except (OSError, ValueError):
        mark = "gone"
    digest = hashlib.sha256(
        f"{utterance.id}\0{mark}{utterance.stretch}\0{CODE}".encode("utf-8", "surrogateescape")
    ).hexdigest()[:16]
    return re.sub(r"[^A-Za-z0-9._-]", "_", file_name(utterance.id))[:60] + f"-{digest}.npz"


def _extract_one(place: str, layer: int, offline: bool, utterance: Utterance) -> str:
    """Writes the utterance's features; returns what is wrong with it, or an empty string."""
    from veilmeter.speech.audio import read_audio

    try:
        samples, _ = level(read_audio(utterance.path, stretch=utterance.stretch))
        analysis = world.analyze(samples)
        if analysis.voiced.sum() < 10:
            return f"{utterance.path}: no voiced frames in it"
        extractor = load_extractor("campplus", offline=offline)
        vector = extractor.embed(samples)
        count = max(1, int(len(samples) / (PIECE_SECONDS * world.RATE)))
        pieces = [extractor.embed(piece) for piece in np.array_split(samples, count)] if count > 1 else [vector]
        heard = content(samples, load_layer(layer, offline=offline), len(analysis.f0))
    except InputError as error:
        return str(error)
    with whole_file(Path(place) / _feature_name(utterance)) as temporary, open(temporary, "wb") as handle:
        np.savez(
            handle,
            f0=analysis.f0.astype(np.float32),
            energy=energy(samples).astype(np.float32),
            content=heard.astype(np.float16),
            outputs=np.concatenate([analysis.cepstra, analysis.aperiodicity], axis=1).astype(np.float32),
            vector=vector,
            pieces=np.stack(pieces),
        )
    return ""


def _read_example(path: Path, utterance: Utterance) -> Example:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return Example(utterance.speaker, utterance.gender, **{name: stored[name] for name in _STORED})
    except BROKEN_ARCHIVE as error:
        raise VeilmeterError(f"these features can't be read: {error}", path=path, fix="remove the file") from None
