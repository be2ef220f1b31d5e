"""The meaning of a sentence as a vector: all-MiniLM-L6-v2 (Reimers and Gurevych 2019; Apache-2.0), run by numpy.

Six layers of BERT over pieces of words, averaged and brought to length 1. Sentences are short and few, so that nothing
more than matrix products is needed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import need
from veilmeter.speech import weights

DIMENSION = 384
LAYERS, HEADS = 6, 12
MOST_PIECES = 256  # as its makers trained it
EPSILON = 1e-12
START, END, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
LONGEST_WORD = 100

Floats = NDArray[np.float32]


class SentenceEncoder:
    """`tensors` are those of BERT by name, `vocabulary` the pieces of words with their numbers."""

    def __init__(self, tensors: Mapping[str, Floats], vocabulary: Mapping[str, int]) -> None:
        self._tensors, self._vocabulary = tensors, vocabulary

    def encode(self, text: str) -> Floats:
        """At length 1; the text may be empty."""
        pieces = split_words(text, self._vocabulary)[: MOST_PIECES - 2]
        numbers = [self._vocabulary[piece] for piece in (START, *pieces, END)]
        get = self._tensors
        x = get["embeddings.word_embeddings.weight"][numbers]
        x = x + get["embeddings.position_embeddings.weight"][: len(numbers)]
        x = self._normalize(x + get["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(LAYERS):
            x = self._layer(x, f"encoder.layer.{number}")
        mean = x.mean(axis=0, dtype=np.float64)
        unit: Floats = (mean / np.linalg.norm(mean)).astype(np.float32)
        return unit

    def _layer(self, x: Floats, name: str) -> Floats:
        from scipy.special import erf, softmax

        queries, keys, values = (
            self._linear(x, f"{name}.attention.self.{part}").reshape(len(x), HEADS, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        attention = softmax(queries @ keys.swapaxes(1, 2) / np.float32(np.sqrt(queries.shape[2])), axis=2)
        mixed = (attention @ values).swapaxes(0, 1).reshape(len(x), -1)
        x = self._normalize(
            x + self._linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
        )
        wide = self._linear(x, f"{name}.intermediate.dense")
        wide = wide * (0.5 + 0.5 * erf(wide / np.float32(np.sqrt(2))))
        return self._normalize(x + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, x: Floats, name: str) -> Floats:
        product: Floats = x @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]
        return product

    def _normalize(self, x: Floats, name: str) -> Floats:
        centered = x - x.mean(axis=1, keepdims=True)
        scaled = centered / np.sqrt(np.mean(centered**2, axis=1, keepdims=True) + EPSILON)
        normal: Floats = scaled * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]
        return normal


def split_words(text: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Small letters without accents, words and marks, each as the longest pieces that there are.

    >>> split_words("Unhappily, né", {"un": 0, "##happi": 1, "##ly": 2, ",": 3, "ne": 4})
    ['un', '##happi', '##ly', ',', 'ne']
    """
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    pieces: list[str] = []
    for word in re.findall(r"\w+|[^\w\s]|_", plain):
        pieces += _pieces_of(word, vocabulary)
    return pieces


def _pieces_of(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    if len(word) > LONGEST_WORD:
        return [UNKNOWN]
    pieces: list[str] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                pieces.append(piece)
                start = end
                break
        else:
            return [UNKNOWN]
    return pieces


def load_encoder(*, offline: bool = False) -> SentenceEncoder:
    """Once per process; the weights are fetched once."""
    return _load_encoder(offline, str(weights.cache_folder()))


@lru_cache(maxsize=1)
def _load_encoder(offline: bool, cache: str) -> SentenceEncoder:
    need("safetensors")
    from safetensors.numpy import load_file

    model, vocabulary = weights.fetch_all((weights.MINILM, weights.MINILM_PIECES), offline=offline, cache=cache)
    pieces = vocabulary.read_text(encoding="utf-8").splitlines()
    return SentenceEncoder(load_file(model), {piece: number for number, piece in enumerate(pieces)})


def meaning_features(text: str) -> Floats:
    """The vector of a text."""
    return load_encoder().encode(text)
