"""The vectors of a corpus: of whole recordings, of training speech cut into pieces, or of the words that are spoken.

They are kept in the cache, by corpus and extractor, so that the originals are extracted once for many assessments. They
are biometric data: `veilmeter cache clear` removes them.

The extractors `words` and `word-style` use the recognizer's transcripts, which utility uses too; `words:corpus` takes
the texts in the corpus, and `words:FILE` those of a list (Kaldi's `text`, a CSV, or the folder that `transcribe`
wrote): what an attacker has who understands every word.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Progress, Say
from veilmeter.core.errors import InputError, Problem, Stopped, VeilmeterError
from veilmeter.core.files import BROKEN_ARCHIVE, LARGEST_LIST, make_folder, only_one, open_input, real_path, whole_file
from veilmeter.core.user_code import version_of
from veilmeter.data.corpus import Corpus, Stretch, Utterance
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.layouts import read_texts
from veilmeter.data.matching import match_ids
from veilmeter.speech.annotations import annotate_corpus, transcripts
from veilmeter.speech.extractors.base import Extractor, embed_pieces, load_extractor, load_same_extractor
from veilmeter.speech.extractors.meaning import load_encoder
from veilmeter.speech.extractors.words import CODE, FEATURES, OF_CORPUS
from veilmeter.speech.recognizers.languages import default_recognizer, language_of
from veilmeter.speech.weights import cache_folder


def is_of_words(spec: str) -> bool:
    """Whether an extractor uses only the words."""
    return spec.partition(":")[0] in FEATURES


def embed_texts(
    corpus: Corpus,
    spec: str,
    engine: Engine,
    *,
    recognizer: str | None = None,
    language: str | None = None,
    beside: Iterable[Corpus] = (),
    offline: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> tuple[Embeddings, dict[str, Any]]:
    """A vector of the text of every recording. Texts that the corpus itself does not carry are looked for in those
    `beside` it: an anonymized copy has the words of its original."""
    kind, _, given = spec.partition(":")
    features = FEATURES[kind]
    if kind == "word-meaning":
        load_encoder(offline=offline)
    if given:
        texts, version = _find_texts(corpus, given, beside)
        spoken, problems, durations = list(corpus), [], None
    else:
        spoken_language = language_of(corpus, language, offline=offline).code
        load = transcripts(recognizer or default_recognizer(spoken_language), spoken_language, offline=offline)
        annotated = annotate_corpus(
            corpus, annotation_folder(corpus), load, engine=engine, strict=strict, progress=progress
        )
        texts = {name: str(annotation.values.get("text", "")) for name, annotation in annotated.by_id.items()}
        version, problems = annotated.version, list(annotated.problems)
        spoken = [u for u in corpus if u.id in texts]
        durations = [annotated.by_id[u.id].record.seconds for u in spoken]
    vectors = np.stack([features(texts[u.id]) for u in spoken])
    embeddings = _embeddings(vectors, spoken, durations, str(corpus.root))
    facts = {"name": spec, "version": f"{version}-{CODE}", "dimension": embeddings.dimension, "problems": problems}
    return embeddings, facts


def _embeddings(
    vectors: NDArray[np.float32], spoken: list[Utterance], durations: list[float] | None, source: str
) -> Embeddings:
    plain = {name: [str(getattr(u, name)) for u in spoken] for name in ("gender", "session")}
    names = sorted({name for u in spoken for name in u.attributes})
    attributes = {name: column for name, column in plain.items() if any(column)}
    attributes |= {name: [u.attributes.get(name, "") for u in spoken] for name in names if name not in attributes}
    return Embeddings(vectors, [u.id for u in spoken], [u.speaker for u in spoken], attributes, durations, source)


def _find_texts(corpus: Corpus, source: str, beside: Iterable[Corpus]) -> tuple[dict[str, str], str]:
    """The text of every recording, and a mark of all of them."""
    if source == OF_CORPUS:
        own = {u.id: u.text for u in corpus if u.text}
        known = {u.id: u.text for other in beside for u in other if u.text} | own
    else:
        known = texts_of(Path(source))
    partner = match_ids([u.id for u in corpus], known).partner if known else {}
    missing = [u.id for u in corpus if u.id not in partner]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(corpus)} recordings have no text, the first is {missing[0]!r}",
            path=corpus.root if source == OF_CORPUS else source,
            fix="give a list with all of them, or let them be transcribed: --extractor words",
        )
    texts = {u.id: known[partner[u.id]] for u in corpus}
    mark = hashlib.sha256("\n".join(f"{name} {texts[name]}" for name in sorted(texts)).encode("utf-8", "replace"))
    return texts, f"given-{mark.hexdigest()[:12]}"


def texts_of(path: Path) -> dict[str, str]:
    """Utterance to text, from Kaldi's `text`, from a CSV with the columns utterance and text, or from the folder that
    `transcribe` wrote."""
    place = path / "text" if path.is_dir() else path
    if not place.is_file():
        raise InputError("there is no such list of texts", path=place, fix="give Kaldi's text, a CSV, or a folder")
    if place.suffix.lower() != ".csv":
        return read_texts(place)
    try:
        with open_input(place, most=LARGEST_LIST) as handle, TextIOWrapper(handle, "utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            if not {"utterance", "text"} <= set(reader.fieldnames or ()):
                raise InputError(
                    "the table has no columns utterance and text", path=place, line=1, fix="name them in the first line"
                )
            return {row["utterance"]: row["text"] or "" for row in reader if row["utterance"]}
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise InputError(f"the table can't be read: {error}", path=place) from None


CHUNK = 16  # recordings that are kept together


def cache_for(corpus: Corpus, extractor: str, kind: str = "") -> Path:
    """The folder in the cache for a corpus: its name, and a hash of where it is and how it is extracted."""
    return _place_in_cache(corpus, "embeddings", extractor, kind)


def annotation_folder(corpus: Corpus) -> Path:
    """The folder in the cache for what models say of a corpus."""
    return _place_in_cache(corpus, "annotations")


def _place_in_cache(corpus: Corpus, below: str, *how: str) -> Path:
    parts = [str(real_path(corpus.root)), corpus.layout, corpus.variant, *how]
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", corpus.root.name)[:40] or "corpus"
    return make_folder(make_folder(cache_folder()) / below) / f"{name}-{digest}"


def in_turn(folder: Path, corpus: Corpus, say: Say | None) -> AbstractContextManager[None]:
    """One run at a time extracts a corpus: another one waits, then uses what the first has kept."""

    def wait() -> None:
        if say is not None:
            say(f"another run is extracting {corpus.root.name} already: waiting for what it keeps in {folder.parent}")

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
        "device": done.device,
        "problems": list(done.problems),
        "computed": done.computed,
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
                vectors = embed_pieces(extractor, list(cut(samples, self.seconds)))
            except AudioError:
                pass  # named by the caller
            except (KeyboardInterrupt, Stopped):
                raise
            except BaseException:  # a model's own trouble with one recording must not end the run
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
    """A recording is extracted again when its file, the extractor or the length of the pieces changed."""
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
