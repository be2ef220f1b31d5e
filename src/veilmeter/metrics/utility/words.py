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
NUMBER_MARK = re.compile(r"([$£€¢%])")
AREA_CODE = re.compile(r"\((\+?\d+)\)")  # the normalizer drops whatever is in parentheses
WITHOUT_BLANKS = frozenset({"zh", "ja", "th", "lo", "my", "km", "bo", "yue"})

SMALL = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ORDINALS = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"
]  # fmt: skip
NUMBER = rf"{'|'.join(SMALL)}|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|\d+"
HOUR = rf"(1[0-2]|[1-9]|{'|'.join(SMALL)})\b(?![:.]?\d| hundred| thousand)"
DENOMINATORS = {"half": 2, "quarter": 4, "quarters": 4}
DENOMINATORS |= {word + plural: place for place, word in enumerate(ORDINALS[2:10], 3) for plural in ("", "s")}
ROMAN = {"ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10, "xi": 11, "xii": 12}
MONARCHS = "alexander charles edward elizabeth frederick george henry james john louis paul philip pius richard william"
NUMBERED = "act article book chapter part scene section volume war"
PAST = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty five": 25}
DECIMALS = {"1/2": ".5", "1/4": ".25", "3/4": ".75"}


def _value(word: str) -> int:
    return SMALL.index(word) + 1 if word in SMALL else int(word)


def _time(past: re.Match[str]) -> str:
    minutes, hour = PAST[re.sub(r"[ -]", " ", past[1])], _value(past[3])
    return f"{hour}:{minutes:02}" if past[2] == "past" else f"{hour - 1 or 12}:{60 - minutes}"


def _fraction(part: re.Match[str]) -> str:
    """Of several parts the name is plural, but for `half`."""
    count, name = _value(part[1]), part[2]
    return f"{count}/{DENOMINATORS[name]}" if (count > 1) == name.endswith("s") else part[0]


# How numbers are spoken, and how they are written so that the normalizer gives the same digits. In this order.
SPOKEN: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"[½¼¾]", lambda sign: {"½": " 1/2", "¼": " 1/4", "¾": " 3/4"}[sign[0]]),
    (r"\ba (?=(?:hundred|thousand|million|billion)\b)", "one "),
    (r"(?<![\w.])\.(?=\d)", "0."),
    (r"(?<![\w$£€.,])(\d+)\.(0+)\b(?!\.|\s?%)", r"\1 point \2"),  # the normalizer would drop it
    (r"(?<![\w)-])[-−](?=\d)", "minus "),
    (r"(?<![\w)])\+(?=\d)", "plus "),
    (r"#(?=\d)", "number "),
    (r"\b([ap])\.\s?m\b\.?", r"\1m"),
    (rf"\b(?:a )?(half|quarter|five|ten|twenty(?:[ -]five)?)[ -](past) {HOUR}", _time),
    (rf"\b(?:a )?(quarter) (to) {HOUR}", _time),
    (rf"\b{HOUR} o['’]?clock\b", lambda hour: f"{_value(hour[1])}:00"),
    (r"\b(\d+):00(?=\s?[ap]m\b)", r"\1"),
    (r"\b(half a|half|a|one|two|three|four|five|six|[1-6]) dozen\b",
     lambda dozen: str(6 if "half" in dozen[1] else 12 * _value(dozen[1].replace("a", "one")))),
    (rf"\b({NUMBER})[ -]and[ -]an?[ -]half\b", r"\1 point five"),
    (rf"\b({NUMBER}) and (?:a|one) quarter\b", r"\1 point two five"),
    (rf"\b({NUMBER}) and three[ -]quarters\b", r"\1 point seven five"),
    (r"(?<=\d) (1/2|1/4|3/4)\b", lambda part: DECIMALS[part[1]]),
    (rf"(?<![\w-])({'|'.join(SMALL[:9])}|[1-9])[ -]({'|'.join(DENOMINATORS)})\b", _fraction),
    (rf"\b({NUMBERED.replace(' ', '|')}) ({'|'.join(ROMAN)})\b", lambda part: f"{part[1]} {ROMAN[part[2]]}"),
    (rf"\b({MONARCHS.replace(' ', '|')}) ({'|'.join(ROMAN)})\b",
     lambda name: f"{name[1]} the {ORDINALS[ROMAN[name[2]] - 1]}"),
)  # fmt: skip


def normalize_text(text: str, language: str = "en") -> str:
    """The words that count, separated by single blanks.

    >>> normalize_text("Mr. Smith isn't TWENTY-FIVE; uh, the color!")
    'mister smith is not 2 5 the color'
    >>> normalize_text("Half past three") == normalize_text("3:30")
    True
    """
    text = AREA_CODE.sub(r" \1 ", text)
    if language == "en":
        text = re.sub(r"\s+", " ", text.lower())
        for spoken, written in SPOKEN:
            text = re.sub(spoken, written, text)
    text = LEADING_ZERO.sub(lambda digits: " ".join(digits[0]), text)
    text = APART_PERCENT.sub("%", text)
    if language != "en":
        return _apart(_normalizer(language)(text))
    text = re.sub(r"\bone(s?)\b", r"1\1", _normalizer(language)(text))
    text = re.sub(r"(?<!\S)([-+]?)\.(?=\d)", r"\g<1>0.", text)  # `point five`
    return _apart(re.sub(r"(?<!\S)[-+](?=\d)", lambda sign: {"-": "minus ", "+": "plus "}[sign[0]], text))


def _apart(text: str) -> str:
    """Every digit and every mark of a number as a separate word."""
    return " ".join(NUMBER_MARK.sub(r" \1 ", BETWEEN_DIGITS.sub(" ", text)).split())


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
