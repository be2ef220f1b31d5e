"""Word and character errors: aligned by jiwer, pooled over utterances, with intervals over speakers.

Texts are normalized first, as the field does it. English goes through Whisper's English normalizer (`isn't` is
`is not`, `twenty-five` is `25`, `colour` is `color`, hesitations such as `uh` are dropped); other languages through its
basic one, which drops case, punctuation and symbols and keeps the marks that some scripts write vowels with. Chinese,
Japanese, Thai and the like are written without blanks: there every character counts as a word. Numbers are compared
digit by digit, as they may be written in many ways: `555-1234`, `555 1234`, `five five five, twelve thirty-four`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, need
from veilmeter.core.estimate import POINTS
from veilmeter.core.intervals import LEVEL, t_quantile, wilson
from veilmeter.metrics.measure import Measure

LEADING_ZERO = re.compile(r"(?<![\d.,])0\d+")  # as in telephone numbers, where the normalizer would drop it
APART_PERCENT = re.compile(r"(?<=\d)\s+%")
BETWEEN_DIGITS = re.compile(r"(?<=\d)[.,]?(?=\d)")
NUMBER_MARK = re.compile(
    r"([$£€¢%])|(?<!\w)[-+](?=\d)"
)  # signs are dropped, as the normalizer drops them before digits
AREA_CODE = re.compile(r"\((\+?\d+)\)")  # the normalizer drops whatever is in parentheses
ONE_OF_MANY = re.compile(r"\ba (?=(?:hundred|thousand|million|billion)\b)", re.IGNORECASE)
AND_A_HALF = re.compile(r"(?<=\d) 1/2\b")
WITHOUT_BLANKS = frozenset({"zh", "ja", "th", "lo", "my", "km", "bo", "yue"})


def normalize_text(text: str, language: str = "en") -> str:
    """The words that count, separated by single blanks.

    >>> normalize_text("Mr. Smith isn't TWENTY-FIVE; uh, the color!")
    'mister smith is not 2 5 the color'
    """
    text = AREA_CODE.sub(r" \1 ", text)
    text = LEADING_ZERO.sub(lambda digits: " ".join(digits[0]), text)
    text = APART_PERCENT.sub("%", text)
    if language == "en":
        text = AND_A_HALF.sub(".5", ONE_OF_MANY.sub("one ", text))
    words = NUMBER_MARK.sub(r" \1 ", BETWEEN_DIGITS.sub(" ", _normalizer(language)(text)))
    return " ".join("1" if word == "one" and language == "en" else word for word in words.split())


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


Interval = tuple[float, float]


MEASURES = (
    Measure(
        name="wer",
        label="word error rate",
        unit="percent",
        better="neither",
        meaning="Of 100 words, how many a speech recognizer gets wrong in anonymized speech: replaced, lost or added.",
        source="cf. Tomashenko et al. 2022",
        section="utility",
        equation="(substitutions + deletions + insertions) / words of the reference",
        low=0,
        bar=100,
        use="lower",
        order=10,
    ),
    Measure(
        name="d_wer",
        label="word error rate, increase",
        unit=POINTS,
        better="neither",
        meaning="How many more of 100 words the recognizer gets wrong than in the original speech, in percentage "
        "points.",
        source="cf. Tomashenko et al. 2022",
        section="utility",
        equation="WER of anonymized − WER of original speech",
        use="lower",
        headline=False,
        order=10,
    ),
    Measure(
        name="cer",
        label="character error rate",
        unit="percent",
        better="neither",
        meaning="The same as the word error rate for characters: small slips count less.",
        source="cf. Tomashenko et al. 2022",
        section="utility",
        equation="(substitutions + deletions + insertions) / characters of the reference",
        low=0,
        bar=100,
        use="lower",
        headline=False,
        order=10,
    ),
    Measure(
        name="d_cer",
        label="character error rate, increase",
        unit=POINTS,
        better="neither",
        meaning="How many more of 100 characters are wrong than in the original speech, in percentage points.",
        source="cf. Tomashenko et al. 2022",
        section="utility",
        equation="CER of anonymized − CER of original speech",
        use="lower",
        headline=False,
        order=10,
    ),
)


@dataclass(frozen=True, eq=False)
class TextErrors:
    """Errors per utterance, in words and in characters, and how often one word was taken for another."""

    words: NDArray[np.int64]
    word_errors: NDArray[np.int64]
    deletions: NDArray[np.int64]
    insertions: NDArray[np.int64]
    characters: NDArray[np.int64]
    character_errors: NDArray[np.int64]
    substitutions: Mapping[tuple[str, str], int]

    def __len__(self) -> int:
        return len(self.words)


def count_errors(references: Sequence[str], hypotheses: Sequence[str]) -> TextErrors:
    """The errors of normalized texts, utterance by utterance.

    >>> found = count_errors(["the cat sat", ""], ["the hat", "oh no"])
    >>> found.word_errors.tolist(), found.words.tolist(), found.insertions.tolist(), dict(found.substitutions)
    ([2, 2], [3, 0], [0, 2], {('cat', 'hat'): 1})
    """
    need("jiwer")
    from rapidfuzz.distance import Levenshtein

    if len(references) != len(hypotheses):
        raise InputError(f"there are {len(references)} references and {len(hypotheses)} hypotheses")
    counts = np.zeros((len(references), 3), np.int64)  # errors, deletions, insertions
    replaced: Counter[tuple[str, str]] = Counter()
    for row, (reference, hypothesis) in enumerate(zip(references, hypotheses, strict=True)):
        counts[row] = _align(reference, hypothesis, replaced)
    return TextErrors(
        words=np.array([len(text.split()) for text in references], np.int64),
        word_errors=counts[:, 0],
        deletions=counts[:, 1],
        insertions=counts[:, 2],
        characters=np.array([len(text) for text in references], np.int64),
        character_errors=np.array(
            [Levenshtein.distance(a, b) for a, b in zip(references, hypotheses, strict=True)], np.int64
        ),
        substitutions=dict(replaced),
    )


def _align(reference: str, hypothesis: str, replaced: Counter[tuple[str, str]]) -> tuple[int, int, int]:
    """Errors, deletions and insertions of one utterance; `replaced` gets what was taken for what."""
    import jiwer

    words, heard = reference.split(), hypothesis.split()
    if not words or not heard:  # nothing to align
        return len(words) + len(heard), len(words), len(heard)
    alignment = jiwer.process_words(reference, hypothesis)
    for chunk in alignment.alignments[0]:
        if chunk.type == "substitute":
            pairs = zip(
                words[chunk.ref_start_idx : chunk.ref_end_idx],
                heard[chunk.hyp_start_idx : chunk.hyp_end_idx],
                strict=True,
            )
            replaced.update(pairs)
    return (
        alignment.substitutions + alignment.deletions + alignment.insertions,
        alignment.deletions,
        alignment.insertions,
    )


def rate_with_interval(
    errors: ArrayLike, totals: ArrayLike, speakers: ArrayLike, *, level: float = LEVEL
) -> tuple[float, Interval | None]:
    """All errors over all words, in percent, with an interval clustered by speaker.

    A ratio of sums, so the errors' deviations from the rate are what varies between speakers (its linearization). No
    interval with one speaker; without any error, Wilson's for as many trials as there are speakers.
    """
    e, n = np.asarray(errors, np.float64), np.asarray(totals, np.float64)
    if n.sum() == 0:
        raise InputError("the references contain no words")
    rate = float(e.sum() / n.sum())
    deviation, clusters = _spread(e - rate * n, speakers)
    if clusters < 2:
        return 100 * rate, None
    if deviation == 0:
        low, high = wilson(rate * clusters, clusters, level=level) if rate <= 1 else (rate, rate)
        return 100 * rate, (100 * low, 100 * high)
    half = t_quantile(clusters - 1, 0.5 + level / 2) * deviation / n.sum()
    return 100 * rate, (100 * max(0.0, rate - half), 100 * (rate + half))


def difference_with_interval(
    errors: ArrayLike, before: ArrayLike, totals: ArrayLike, speakers: ArrayLike, *, level: float = LEVEL
) -> tuple[float, Interval | None]:
    """How much the rate has risen, in percentage points, paired by utterance: both rates have the same words."""
    change = np.asarray(errors, np.float64) - np.asarray(before, np.float64)
    n = np.asarray(totals, np.float64)
    if n.sum() == 0:
        raise InputError("the references contain no words")
    rate = float(change.sum() / n.sum())
    deviation, clusters = _spread(change - rate * n, speakers)
    if clusters < 2:
        return 100 * rate, None
    half = t_quantile(clusters - 1, 0.5 + level / 2) * deviation / n.sum()
    return 100 * rate, (100 * (rate - half), 100 * (rate + half))


def _spread(deviations: NDArray[np.float64], speakers: ArrayLike) -> tuple[float, int]:
    """The standard error of the sum of deviations that are shared within a speaker, and the number of speakers."""
    _, codes = np.unique(np.asarray(speakers), return_inverse=True)
    clusters = int(codes.max()) + 1
    if clusters < 2:
        return float("inf"), clusters
    sums = np.bincount(codes, deviations, minlength=clusters)
    return float(np.sqrt(clusters / (clusters - 1) * np.sum(sums**2))), clusters


def most_frequent(substitutions: Mapping[tuple[str, str], int], most: int = 20) -> list[dict[str, str | int]]:
    """The most frequent substitutions."""
    ordered = sorted(substitutions.items(), key=lambda item: (-item[1], item[0]))
    return [{"said": spoken, "heard": heard, "times": times} for (spoken, heard), times in ordered[:most]]
