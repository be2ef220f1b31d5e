"""Synthetic voices in the layout of the papers' public data: x-vectors and scores of two extractors, both genders,
original and anonymized. Nobody's, so that they can be part of the tests of any clone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings

SPEAKERS, UTTERANCES, ENROLLED, DIMENSION = 6, 4, 2, 8
EXTRACTORS = ("original", "retrained")
SIDES = ("", "_anon")
KEPT = {"original": 0.25, "retrained": 0.8}  # how much of a voice each extractor finds after anonymization


def write_challenge(root: Path) -> Path:
    for number, extractor in enumerate(EXTRACTORS):
        rng = np.random.default_rng(number)
        folder = root / f"extractor-{extractor}"
        for gender in "fm":
            vectors = _voices(rng, KEPT[extractor])
            for side in SIDES:
                path = folder / f"xvect_libri_test_trials_{gender}{side}"
                tried = _embeddings(vectors["trials" + side], gender, "t")
                write_embeddings(tried, path, form="kaldi")
                (path / "meta" / "trials").write_text("".join(_key(gender)))
            for enroll, test in (("", ""), ("", "_anon"), ("_anon", "_anon")):
                name = f"ASV-libri_test_enrolls{enroll}-libri_test_trials_{gender}{test}"
                place = folder / "results" / name
                place.mkdir(parents=True)
                scores = _scores(vectors["enrolls" + enroll], vectors["trials" + test], gender)
                (place / "scores").write_text("".join(scores))
    return root


def _voices(rng: np.random.Generator, kept: float) -> dict[str, NDArray[np.float64]]:
    people, others = rng.standard_normal((2, SPEAKERS, DIMENSION))
    sides = {"": people, "_anon": kept * people + (1 - kept) * others}
    return {
        f"{role}{side}": np.repeat(voices, count, 0) + 0.8 * rng.standard_normal((SPEAKERS * count, DIMENSION))
        for role, count in (("trials", UTTERANCES), ("enrolls", ENROLLED))
        for side, voices in sides.items()
    }


def _speaker(gender: str, number: int) -> str:
    return f"{gender}{number}"


def _embeddings(vectors: NDArray[np.float64], gender: str, mark: str) -> Embeddings:
    count = len(vectors) // SPEAKERS
    speakers = [_speaker(gender, number // count) for number in range(len(vectors))]
    ids = [f"{speaker}-{mark}{number % count}" for number, speaker in enumerate(speakers)]
    return Embeddings(vectors.astype(np.float32), ids, speakers, {"gender": [gender] * len(ids)})


def _pairs() -> list[tuple[int, int, int]]:
    return [(a, b, u) for a in range(SPEAKERS) for b in range(SPEAKERS) for u in range(UTTERANCES)]


def _key(gender: str) -> list[str]:
    return [
        f"{_speaker(gender, a)} {_speaker(gender, b)}-t{u} {'target' if a == b else 'nontarget'}\n"
        for a, b, u in _pairs()
    ]


def _scores(enrolled: NDArray[np.float64], tried: NDArray[np.float64], gender: str) -> list[str]:
    """Inner products of the mean of a speaker's enrollment with each trial, four decimals as Kaldi writes them."""
    means = enrolled.reshape(SPEAKERS, ENROLLED, DIMENSION).mean(axis=1)
    return [
        f"{_speaker(gender, a)} {_speaker(gender, b)}-t{u} {means[a] @ tried[b * UTTERANCES + u]:.4f}\n"
        for a, b, u in _pairs()
    ]
