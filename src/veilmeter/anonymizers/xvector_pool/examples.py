"""What training hears of each utterance: analysis and speaker vectors, kept in files so that a stopped run goes on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers.xvector_pool import hearing, world
from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import BROKEN_ARCHIVE, make_folder, whole_file
from veilmeter.data.corpus import Corpus, Utterance, file_name
from veilmeter.speech.extractors.base import load_extractor
from veilmeter.speech.recognizers.encoder_layers import load_layer

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
        samples, _ = hearing.level(read_audio(utterance.path, stretch=utterance.stretch))
        analysis = world.analyze(samples)
        if analysis.voiced.sum() < 10:
            return f"{utterance.path}: no voice is heard in it"
        extractor = load_extractor("campplus", offline=offline)
        vector = extractor.embed(samples)
        count = max(1, int(len(samples) / (PIECE_SECONDS * world.RATE)))
        pieces = [extractor.embed(piece) for piece in np.array_split(samples, count)] if count > 1 else [vector]
        content = hearing.content(samples, load_layer(layer, offline=offline), len(analysis.f0))
    except InputError as error:
        return str(error)
    with whole_file(Path(place) / _feature_name(utterance)) as temporary, open(temporary, "wb") as handle:
        np.savez(
            handle,
            f0=analysis.f0.astype(np.float32),
            energy=hearing.energy(samples).astype(np.float32),
            content=content.astype(np.float16),
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
