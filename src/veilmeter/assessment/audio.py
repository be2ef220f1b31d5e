"""Embeddings of the corpora that are assessed, and of training speech cut into pieces.

They are kept in the cache, by corpus and extractor, so that the originals are heard once for many assessments. They are
biometric data: `veilmeter cache clear` removes them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Progress, Say
from veilmeter.core.errors import Problem, VeilmeterError
from veilmeter.core.files import BROKEN_ARCHIVE, make_folder, only_one, whole_file
from veilmeter.core.user_code import version_of
from veilmeter.data.corpus import Corpus, Stretch, Utterance
from veilmeter.data.embeddings import Embeddings
from veilmeter.speech.extractors.base import Extractor, load_extractor, load_same_extractor

CHUNK = 16  # recordings that are kept together


def cache_for(corpus: Corpus, extractor: str, kind: str = "") -> Path:
    """The folder in the cache for a corpus: its name, and a hash of where it is and how it is heard."""
    from veilmeter.speech.weights import cache_folder

    root = str(corpus.root.resolve())
    parts = [root, corpus.layout, corpus.variant, extractor, kind]
    mark = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", corpus.root.name)[:40] or "corpus"
    return make_folder(make_folder(cache_folder()) / "embeddings") / f"{name}-{mark.hexdigest()[:16]}"


def in_turn(folder: Path, corpus: Corpus, say: Say | None) -> AbstractContextManager[None]:
    """One run at a time listens to a corpus: another one waits, then uses what the first has kept."""

    def wait() -> None:
        if say is not None:
            say(f"another run is listening to {corpus.root.name} already: waiting for what it keeps in {folder.parent}")

    return only_one(lock_of(folder), wait=wait)


def lock_of(folder: Path) -> Path:
    """The lock beside a folder of the cache."""
    return folder.with_name(folder.name + ".lock")


def embed_whole(
    corpus: Corpus,
    extractor: str,
    engine: Engine,
    *,
    offline: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> tuple[Embeddings, dict[str, Any]]:
    """One vector per recording, and facts about the extractor and about what could not be used."""
    from veilmeter.data.formats.vectors import read_embeddings
    from veilmeter.speech.extractors.embed_corpus import embed_corpus

    folder = cache_for(corpus, extractor)
    with in_turn(folder, corpus, say):
        done = embed_corpus(corpus, folder, extractor, engine=engine, offline=offline, strict=strict, progress=progress)
        embeddings = read_embeddings(done.folder)
    # Errors name the recordings: a user can't fix the cache.
    embeddings = Embeddings(
        embeddings.vectors,
        embeddings.utterances,
        embeddings.speakers,
        embeddings.attributes,
        embeddings.durations,
        str(corpus.root),
    )
    facts = {
        "name": done.extractor,
        "version": done.version,
        "dimension": done.dimension,
        "problems": list(done.problems),
    }
    return embeddings, facts


@dataclass(frozen=True, slots=True)
class Segments:
    """The engine's task: the vectors of the pieces of a few recordings; an unusable one has none."""

    spec: str
    version: str
    offline: bool
    seconds: float

    def __call__(self, places: Sequence[tuple[str, Stretch]]) -> list[NDArray[np.float32]]:
        from veilmeter.speech.audio import AudioError, read_audio

        extractor = _load_once(self.spec, self.version, self.offline)
        vectors_by_file = []
        for path, stretch in places:
            vectors: list[NDArray[np.float32]] = []
            try:
                samples = read_audio(path, stretch=stretch)
                vectors = [np.asarray(extractor.embed(piece), np.float32) for piece in cut(samples, self.seconds)]
            except AudioError:
                pass  # named by the caller
            except Exception:  # a model's own trouble with one recording must not end the run
                vectors = []
            good = [vector for vector in vectors if np.isfinite(vector).all() and vector.any()]
            vectors_by_file.append(np.stack(good) if good else np.zeros((0, extractor.dimension), np.float32))
        return vectors_by_file


@lru_cache(maxsize=2)
def _load_once(spec: str, version: str, offline: bool) -> Extractor:
    """Once per process and version, as a model takes seconds to load."""
    return load_same_extractor(spec, version, offline=offline)


def cut(samples: NDArray[np.float32], seconds: float, rate: int = 16_000) -> list[NDArray[np.float32]]:
    """Pieces of equal length, none shorter than `seconds` unless the whole is.

    >>> [len(piece) for piece in cut(np.zeros(16_000 * 9, np.float32), 4.0)]
    [72000, 72000]
    """
    count = max(1, int(len(samples) / (seconds * rate)))
    return [np.ascontiguousarray(piece) for piece in np.array_split(samples, count)]


def embed_segments(
    corpus: Corpus,
    extractor: str,
    engine: Engine,
    seconds: float,
    *,
    offline: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> tuple[Embeddings, dict[str, Any]]:
    """A vector for every piece of `seconds` of every recording: a speaker with one recording still has several."""
    model = load_extractor(extractor, offline=offline)
    folder = cache_for(corpus, extractor, f"segments {seconds:g}")
    with in_turn(folder, corpus, say):
        return _embed_segments(corpus, extractor, model, engine, seconds, make_folder(folder), offline, progress)


def _embed_segments(
    corpus: Corpus,
    extractor: str,
    model: Extractor,
    engine: Engine,
    seconds: float,
    folder: Path,
    offline: bool,
    progress: Progress | None,
) -> tuple[Embeddings, dict[str, Any]]:
    version = version_of(model)
    chunks = [corpus.utterances[start : start + CHUNK] for start in range(0, len(corpus), CHUNK)]
    places = [folder / f"{_chunk_key(chunk, model.name, version, seconds)}.npz" for chunk in chunks]
    kept: dict[int, list[NDArray[np.float32]]] = {}
    for number, place in enumerate(places):
        before = _read_chunk(place, chunks[number])
        if before is not None:
            kept[number] = before
    left = [number for number in range(len(chunks)) if number not in kept]
    done = sum(len(chunks[number]) for number in kept)
    if progress is not None:
        progress(done, len(corpus))
    task = Segments(extractor, version, offline, seconds)
    for number, parts in engine.run(task, [[(str(u.path), u.stretch) for u in chunks[number]] for number in left]):
        chunk = left[number]
        kept[chunk] = parts
        with whole_file(places[chunk]) as temporary, open(temporary, "wb") as handle:
            np.savez(handle, **{str(i): part for i, part in enumerate(parts)})  # type: ignore[arg-type]
        done += len(parts)
        if progress is not None:
            progress(done, len(corpus))
    vectors, owners, names = [], [], []
    problems = list(corpus.problems)
    for number, listed in enumerate(chunks):
        for utterance, part in zip(listed, kept[number], strict=True):
            if not len(part):
                problems.append(Problem("unusable", "it can't be used as training speech", str(utterance.path)))
            vectors.append(part)
            owners += [utterance] * len(part)
            names += [f"{utterance.id}@{i}" for i in range(len(part))]
    if not owners:
        raise VeilmeterError("no recording of the training speech could be used", path=str(corpus.root))
    embeddings = Embeddings(
        np.concatenate(vectors),
        names,
        [u.speaker for u in owners],
        {"gender": [u.gender for u in owners], "session": [u.session for u in owners]},
        source=str(corpus.root),
    )
    facts = {"name": model.name, "version": version, "dimension": model.dimension, "problems": problems}
    return embeddings, facts


def _chunk_key(chunk: Sequence[Utterance], name: str, version: str, seconds: float) -> str:
    """A recording is heard again when its file, the extractor or the length of the pieces changed."""
    digest = hashlib.sha256(f"{name}\0{version}\0{seconds:g}".encode())
    for utterance in chunk:
        try:
            status = utterance.path.stat()
            mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        except OSError:
            mark = "gone"
        digest.update(f"\0{utterance.id}\0{mark}{utterance.stretch}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def _read_chunk(place: Path, chunk: Sequence[Utterance]) -> list[NDArray[np.float32]] | None:
    try:
        with np.load(place, allow_pickle=False) as loaded:
            return [loaded[str(i)] for i in range(len(chunk))]
    except BROKEN_ARCHIVE:
        return None
