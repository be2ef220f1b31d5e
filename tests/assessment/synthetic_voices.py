"""Synthetic voices and four caricatures of anonymizers."""

from __future__ import annotations

import numpy as np

from veilmeter.data.embeddings import Embeddings

SPEAKERS, EACH, DIMENSION = 24, 8, 16


def original(
    speakers: int = SPEAKERS, each: int = EACH, dimension: int = DIMENSION, *, noise: float = 0.35, seed: int = 0,
    prefix: str = "s", sessions: bool = True,
) -> Embeddings:  # fmt: skip
    """Each speaker has a place of their own and, half of the speakers each, a gender that moves it a little."""
    rng = np.random.default_rng([seed, 1])
    gender = np.arange(speakers) % 2
    places = rng.standard_normal((speakers, dimension))
    places[:, 0] += 3 * (gender - 0.5)
    codes = np.repeat(np.arange(speakers), each)
    vectors = places[codes] + noise * rng.standard_normal((len(codes), dimension))
    return _named(vectors, codes, gender, each, prefix, sessions)


def _named(
    vectors: np.ndarray, codes: np.ndarray, gender: np.ndarray, each: int, prefix: str, sessions: bool
) -> Embeddings:
    attributes = {"gender": ["fm"[gender[code]] for code in codes]}
    if sessions:
        attributes["session"] = [
            f"{prefix}{code}-{number % 2}" for code, number in zip(codes, _within(codes), strict=True)
        ]
    return Embeddings(
        vectors,
        [f"{prefix}{code:03}-{number}" for code, number in zip(codes, _within(codes), strict=True)],
        [f"{prefix}{code:03}" for code in codes],
        attributes,
    )


def _within(codes: np.ndarray) -> np.ndarray:
    return np.array([int((codes[:i] == code).sum()) for i, code in enumerate(codes)])


def copied(voices: Embeddings) -> Embeddings:
    """An anonymizer that gives back what it got."""
    return voices


def noise(voices: Embeddings, seed: int = 0) -> Embeddings:
    """One that gives noise."""
    rng = np.random.default_rng([seed, 2])
    return voices.with_vectors(rng.standard_normal(voices.vectors.shape))


def one_voice(voices: Embeddings, seed: int = 0, spread: float = 0.02) -> Embeddings:
    """One that gives everybody the same voice; with `spread` 0 every vector is the very same."""
    rng = np.random.default_rng([seed, 3])
    place = rng.standard_normal(voices.dimension)
    return voices.with_vectors(place + spread * rng.standard_normal(voices.vectors.shape))


def permuted(voices: Embeddings, seed: int = 0, noise: float = 0.35) -> Embeddings:
    """One that gives each speaker another speaker's voice, always the same one."""
    rng = np.random.default_rng([seed, 4])
    places = np.stack([voices.vectors[voices.codes == code].mean(axis=0) for code in range(len(voices.names))])
    shifted = np.roll(np.arange(len(places)), 1)
    return voices.with_vectors(places[shifted][voices.codes] + noise * rng.standard_normal(voices.vectors.shape))


def partly(voices: Embeddings, seed: int = 0, shift: float = 0.5) -> Embeddings:
    """A plausible one: the voice is moved at random for every utterance, along directions that all share."""
    rng = np.random.default_rng([seed, 5])
    directions = np.random.default_rng(99).standard_normal((4, voices.dimension))
    return voices.with_vectors(voices.vectors * 0.6 + shift * rng.standard_normal((len(voices), 4)) @ directions)
