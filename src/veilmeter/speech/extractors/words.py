"""What somebody says, without the voice: the transcript as counts of words and of letters in a row.

`words` counts everything, so it knows the topic too (in read speech, the book). `word-style` counts what depends little
on the topic: function words, fillers, the length of words, how often words come back. `word-meaning` is what the text
is about, whatever the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from veilmeter.speech.extractors.meaning import load_encoder, meaning_features
from veilmeter.speech.recognizers.base import DEFAULT, load_recognizer
from veilmeter.speech.recognizers.languages import ASSUMED

# Part of the version: raise it when the same text may give other values.
CODE = 1
SIZE = 192  # coordinates of each kind of count; several words share one
LETTERS = (3, 4)  # in a row
FUNCTION_WORDS = (
    "the", "of", "and", "to", "a", "in", "that", "it", "is", "was", "i", "for", "on", "you", "he", "be", "with",
    "as", "by", "at", "have", "are", "this", "not", "but", "had", "his", "they", "from", "she", "which", "or", "we",
    "an", "there", "her", "were", "do", "been", "has", "when", "who", "will", "more", "no", "if", "out", "so", "up",
    "said", "what", "its", "about", "than", "into", "them", "can", "only", "other", "new", "some", "could", "time",
    "these", "two", "may", "then", "any", "like", "my", "now", "over", "such", "our", "me", "even", "most", "after",
    "also", "did", "many", "before", "must", "through", "years", "where", "much", "your", "well", "down", "should",
    "because", "each", "just", "those", "people", "how", "too", "little", "very", "make", "world", "still", "own",
    "see", "men", "work", "long", "get", "here", "between", "both", "life", "being", "under", "never", "day",
    "same", "another", "know", "while", "last", "might", "us", "great", "old", "year", "off", "come", "since",
    "against", "go", "came", "right", "used", "take", "three",
)  # fmt: skip
FILLERS = ("um", "uh", "er", "erm", "ah", "oh", "hm", "hmm", "mm", "yeah", "okay", "well", "like", "actually",
           "basically", "literally", "really")  # fmt: skip

Floats = NDArray[np.float32]


class WordsExtractor:
    """An extractor that hears words only, by the recognizer that veilmeter brings (English)."""

    def __init__(self, name: str, *, offline: bool = False) -> None:
        self.name = name
        self._features = FEATURES[name]
        self._recognizer = load_recognizer(DEFAULT, ASSUMED, offline=offline)
        self.version = f"{self._recognizer.name}-{self._recognizer.version}-{CODE}"
        self.dimension = len(self._features(""))

    def embed(self, samples: Floats) -> Floats:
        return self._features(self._recognizer.transcribe(samples).text)


def load_words(*, offline: bool = False) -> WordsExtractor:
    return WordsExtractor("words", offline=offline)


def load_word_style(*, offline: bool = False) -> WordsExtractor:
    return WordsExtractor("word-style", offline=offline)


def load_word_meaning(*, offline: bool = False) -> WordsExtractor:
    load_encoder(offline=offline)
    return WordsExtractor("word-meaning", offline=offline)


def tokens(text: str) -> list[str]:
    """The words, in small letters.

    >>> tokens("Well, I don't KNOW.")
    ['well', 'i', "don't", 'know']
    """
    return re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", text.lower())


def word_features(text: str) -> Floats:
    """Words, letters in a row, and style, each with the same weight."""
    words = tokens(text)
    spelled = f" {' '.join(words)} "
    runs = (spelled[start : start + size] for size in LETTERS for start in range(len(spelled) - size + 1))
    return np.concatenate([hash_items(words), hash_items(runs), style_features(text)])


def style_features(text: str) -> Floats:
    """Shares of function words and fillers (square roots, which makes rare and common ones count alike), the length of
    words, and how often words come back."""
    words = tokens(text)
    counts = Counter(words)
    total = max(1, len(words))
    shares = np.sqrt([counts[word] / total for word in (*FUNCTION_WORDS, *FILLERS)])
    lengths = np.array([len(word) for word in words] or [4], float)
    extra = [
        (lengths.mean() - 4) / 4,
        lengths.std() / 4,
        (lengths >= 7).mean(),
        len(counts) / total,
        np.log1p(len(words)) / 8,
        1.0,  # no text gives a zero vector
    ]
    return np.concatenate([shares, extra]).astype(np.float32)


def hash_items(items: Iterable[str]) -> Floats:
    """Square roots of the shares of items, each in one of `SIZE` places with one of two signs, at length 1.

    >>> float(np.linalg.norm(hash_items(["a", "b", "a"]))), float(hash_items([]).sum())
    (1.0, 0.0)
    """
    sums = np.zeros(SIZE)
    for item, count in Counter(items).items():
        code = crc32(item.encode())
        sums[code % SIZE] += np.sqrt(count) * (1 if code & 0x10000 else -1)
    norm = float(np.linalg.norm(sums))
    return (sums / norm if norm else sums).astype(np.float32)


FEATURES = {"words": word_features, "word-style": style_features, "word-meaning": meaning_features}
OF_CORPUS = "corpus"  # words:corpus takes the texts that a corpus carries, words:FILE those of a list
