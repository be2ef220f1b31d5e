"""Words as vectors of a corpus: from the recognizer's transcripts, which utility uses too, or from given ones.

`words` and `word-style` listen; `words:corpus` takes the texts that the corpus carries, `words:FILE` those of a list
(Kaldi's `text`, a CSV, or the folder that `transcribe` wrote): what somebody has who understands every word.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.utility import annotation_folder
from veilmeter.core.engine import Engine, Progress
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.text_lines import read_texts
from veilmeter.data.ids import match_ids
from veilmeter.speech.annotations import annotate_corpus, transcripts
from veilmeter.speech.extractors.words import CODE, FEATURES, OF_CORPUS
from veilmeter.speech.recognizers.base import DEFAULT, resolve_language


def hears_texts(spec: str) -> bool:
    """Whether an extractor uses only the words."""
    return spec.partition(":")[0] in FEATURES


def embed_texts(
    corpus: Corpus,
    spec: str,
    engine: Engine,
    *,
    recognizer: str | None = None,
    beside: Iterable[Corpus] = (),
    offline: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> tuple[Embeddings, dict[str, Any]]:
    """A vector of the text of every recording. Texts that the corpus itself does not carry are looked for in those
    `beside` it: an anonymized copy says what its original says."""
    kind, _, given = spec.partition(":")
    features = FEATURES[kind]
    if given:
        texts, version = _find_texts(corpus, given, beside)
        spoken, problems, durations = list(corpus), [], None
    else:
        language = resolve_language(None, corpus.languages)
        load = transcripts(recognizer or DEFAULT, language.code, offline=offline)
        heard = annotate_corpus(
            corpus, annotation_folder(corpus), load, engine=engine, strict=strict, progress=progress
        )
        texts = {name: str(annotation.values.get("text", "")) for name, annotation in heard.by_id.items()}
        version, problems = heard.version, list(heard.problems)
        spoken = [u for u in corpus if u.id in texts]
        durations = [heard.by_id[u.id].record.seconds for u in spoken]
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
        with open(place, encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            if not {"utterance", "text"} <= set(reader.fieldnames or ()):
                raise InputError(
                    "the table has no columns utterance and text", path=place, line=1, fix="name them in the first line"
                )
            return {row["utterance"]: row["text"] or "" for row in reader if row["utterance"]}
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise InputError(f"the table can't be read: {error}", path=place) from None
