"""How well the words of a corpus identify their readers, without any sound: docs/validation/cascade.md.

    python examples/text_floor.py CORPUS [TRANSCRIPTS] [--by length words] [--seed 0]

CORPUS is a list with the texts that were read, TRANSCRIPTS a folder of `veilmeter transcribe` for the same recordings.
The adaptive attacker knows half of each person's texts and names the reader of the others, by

- length: how many words and letters a text has, and nothing else
- words: counts of words and of letters in a row
- word-meaning: a sentence embedding
- errors: how much of the text the recognizer got wrong, and nothing else (with TRANSCRIPTS)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from veilmeter.assessment.extraction import texts_of
from veilmeter.attacks.adaptive.learning import measure_effort
from veilmeter.attacks.attacker import ATTACKERS, perform
from veilmeter.attacks.material import AttackerRun, Material
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.data.corpus import Corpus, read_corpus
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.utility.words import count_errors
from veilmeter.speech.extractors.meaning import meaning_features
from veilmeter.speech.extractors.words import tokens, word_features

PLACES = 12


def place_on_scale(value: float, low: float, high: float) -> np.ndarray:
    """A number as bumps along a scale: attackers compare directions, which a single number does not have."""
    centers = np.linspace(low, high, PLACES)
    width = (high - low) / (PLACES - 1)
    return np.exp(-0.5 * ((np.clip(value, low, high) - centers) / width) ** 2)


def length_features(text: str) -> np.ndarray:
    words = tokens(text)
    letters = sum(map(len, words))
    return np.concatenate([place_on_scale(np.log1p(len(words)), 0, 3.5), place_on_scale(np.log1p(letters), 1, 5)])


def error_features(said: str, heard: str) -> np.ndarray:
    found = count_errors([" ".join(tokens(said))], [" ".join(tokens(heard))])
    return place_on_scale(int(found.word_errors[0]) / max(1, int(found.words[0])), 0, 1.2)


def attack(vectors: Embeddings, known: np.ndarray) -> list[Estimate]:
    """EER and share linked."""
    candidates, trials = vectors.take(known), vectors.take(~known)
    material = Material(
        candidates=candidates,
        trials=trials.vectors,
        conversations=(np.arange(len(trials))[:, None],),
        runs=(AttackerRun(vectors=candidates, draw="utterance", certain=True),),
    )
    scores = perform(ATTACKERS["adaptive"], material).scores
    return measure_effort(scores, material.names, trials.speakers, {}, intervals=True, seed=0)


FEATURES = {"length": length_features, "words": word_features, "word-meaning": meaning_features}
ERRORS = "errors"


def tables(corpus: Corpus, heard: Mapping[str, str], wanted: Sequence[str]) -> Iterator[tuple[str, str, Embeddings]]:
    """Of what, by what, and the vectors."""

    def gather(rows: Sequence[np.ndarray]) -> Embeddings:
        return Embeddings(np.stack(rows), [u.id for u in corpus], [u.speaker for u in corpus])

    for name, features in FEATURES.items():
        if name not in wanted:
            continue
        yield "texts", name, gather([features(u.text) for u in corpus])
        if heard:
            yield "transcripts", name, gather([features(heard[u.id]) for u in corpus])
    if heard and ERRORS in wanted:
        yield "transcripts", ERRORS, gather([error_features(u.text, heard[u.id]) for u in corpus])


def choose_known(corpus: Corpus, seed: int) -> np.ndarray:
    """Half of each person's texts."""
    speakers = np.array([u.speaker for u in corpus])
    known = np.zeros(len(speakers), bool)
    rng = np.random.default_rng(seed)
    for name in sorted(set(speakers)):
        rows = rng.permutation(np.flatnonzero(speakers == name))
        known[rows[: len(rows) // 2]] = True
    return known


def show(estimate: Estimate) -> str:
    low, high = estimate.interval or (np.nan, np.nan)
    return f"{estimate.value:.1f} [{low:.1f}, {high:.1f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", metavar="CORPUS", type=Path)
    parser.add_argument("transcripts", metavar="TRANSCRIPTS", type=Path, nargs="?")
    names = (*FEATURES, ERRORS)
    parser.add_argument("--by", nargs="+", choices=names, default=names, help="what the attacker knows (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the halves (default 0)")
    given = parser.parse_args(arguments)
    try:
        corpus = read_corpus(given.corpus)
        heard = texts_of(given.transcripts) if given.transcripts else {}
        if heard:
            corpus = corpus.take([u.id for u in corpus if u.id in heard])
        known = choose_known(corpus, given.seed)
        people = len({u.speaker for u in corpus})
        print(f"| of | by | EER, % | linked of 100 among {people} |")
        print("|---|---|---:|---:|")
        for source, name, vectors in tables(corpus, heard, given.by):
            eer, linked = attack(vectors, known)
            print(f"| {source} | {name} | {show(eer)} | {show(linked)} |", flush=True)
    except VeilmeterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
