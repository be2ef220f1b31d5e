"""Texts made comparable, as the field does it: case, punctuation, numerals, contractions and spellings do not count.

English goes through Whisper's English normalizer (`isn't` is `is not`, `twenty-five` is `25`, `colour` is `color`,
hesitations such as `uh` are dropped); other languages through its basic one, which drops case, punctuation and symbols
and keeps the marks that some scripts write vowels with. Chinese, Japanese, Thai and the like are written without
blanks: there every character counts as a word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from veilmeter.core.extras import need

WITHOUT_BLANKS = frozenset({"zh", "ja", "th", "lo", "my", "km", "bo", "yue"})


def normalize_text(text: str, language: str = "en") -> str:
    """The words that count, separated by single blanks.

    >>> normalize_text("Mr. Smith isn't TWENTY-FIVE; uh, the color!")
    'mister smith is not 25 the color'
    """
    return " ".join(_normalizer(language)(text).split())


@lru_cache(maxsize=8)
def _normalizer(language: str) -> Callable[[str], str]:
    need("whisper_normalizer")
    if language == "en":
        from whisper_normalizer.english import EnglishTextNormalizer

        english: Callable[[str], str] = EnglishTextNormalizer()
        return english
    from whisper_normalizer.basic import BasicTextNormalizer

    basic: Callable[[str], str] = BasicTextNormalizer(split_letters=language in WITHOUT_BLANKS, preserve_marks=True)
    return basic
