"""Sentences as vectors: against similarities that the model's makers published."""

from __future__ import annotations

import numpy as np
from tests.fetched import fetched

from veilmeter.speech.extractors.meaning import DIMENSION, MOST_PIECES, UNKNOWN, load_encoder, split_words


def test_similarities_are_the_published_ones() -> None:
    """The example of Sentence Transformers' quickstart."""
    encoder = fetched(load_encoder)
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    vectors = np.stack([encoder.encode(text) for text in texts])
    expected = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(vectors @ vectors.T, expected, atol=2e-4)


def test_any_text_has_a_vector() -> None:
    encoder = fetched(load_encoder)
    for text in ("", "a" * 1000, "word " * 2 * MOST_PIECES, "日本 \U0001f600"):
        vector = encoder.encode(text)
        assert vector.shape == (DIMENSION,)
        assert np.linalg.norm(vector) == np.float32(1) or abs(np.linalg.norm(vector) - 1) < 1e-5


def test_words_are_cut_into_known_pieces() -> None:
    assert split_words("abc x", {"ab": 0, "##c": 1}) == ["ab", "##c", UNKNOWN]
