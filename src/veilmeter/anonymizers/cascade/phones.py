"""English text as phones: words from the recognizer's text, and how they are pronounced.

Pronunciations are those of misaki's American lexicons, which Kokoro was trained with; a small network spells words that
the lexicons don't have. Marks and capitals follow the speaker's pauses and melody, so unless they are wanted they are
dropped, and phrases are made from the words alone: a new one begins where a function word follows a content word
(Liberman and Church, 1992).
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.core.errors import VeilmeterError
from veilmeter.speech import weights
from veilmeter.speech.extractors.words import FUNCTION_WORDS
from veilmeter.speech.onnx_session import open_session

# Part of the version: raise it when the same text may give other phones.
CODE = 1
VOWELS = frozenset("AIOQWYaeiouyæɑɐɒɔəɚɛɜɪʊʌᵊᵻ")
STRESSES = "ˈˌ"
MARKS = ",.;:!?—…"
LAST = "."  # the mark that ends a sentence
MOST_UNPACKED = 1 << 26  # bytes of a lexicon

_TITLES = {"mr", "mrs", "ms", "dr", "st", "prof", "jr", "sr", "capt", "gen", "col", "lt", "rev", "hon", "messrs"}
_TOKEN = re.compile(
    r"(?P<money>[$£€])?(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?::\d\d)?)(?P<ending>st|nd|rd|th|s)?(?P<percent>\s?%)?"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*['’]?)|(?P<symbol>[&+@%])|(?P<mark>[,.;:!?—…]+)"
)
_MONEY = {"$": ("dollar", "cent"), "£": ("pound", "pence"), "€": ("euro", "cent")}
_SYMBOLS = {"&": "and", "+": "plus", "@": "at", "%": "percent"}
_BEFORE_VERBS = {
    "to", "will", "would", "shall", "should", "can", "could", "may", "might", "must", "not", "don't", "didn't", "i",
    "you", "we", "they", "who", "let", "us", "please", "cannot", "can't", "won't", "never", "always",
}  # fmt: skip
_BEFORE_NOUNS = {
    "a", "an", "the", "my", "your", "his", "her", "its", "our", "their", "this", "that", "these", "those", "no",
    "some", "any", "of", "in", "for", "with", "each", "every", "much", "more", "great", "good", "new", "old",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """A word to be said: its spelling, its phones, and the mark behind it ("" for none)."""

    text: str
    phones: str = ""
    mark: str = ""


def split_text(text: str) -> list[Word]:
    """The words of a text, numbers written out, each with the mark behind it.

    >>> " ".join(word.text + word.mark for word in split_text("Mr. Hale, aged 42, paid $3.50 in 1851."))
    'Mr Hale, aged forty two, paid three dollars fifty cents in eighteen fifty one.'
    """
    words: list[Word] = []
    for found in _TOKEN.finditer(text.replace("’", "'")):
        if found["mark"]:
            if words and not (found["mark"] == "." and words[-1].text.lower() in _TITLES):
                words[-1] = replace(words[-1], mark=_strongest(words[-1].mark + found["mark"]))
        elif found["word"]:
            words.append(Word(found["word"]))
        elif found["symbol"]:
            words.append(Word(_SYMBOLS[found["symbol"]]))
        else:
            words += [Word(word) for word in _number(found)]
    return words


def _strongest(marks: str) -> str:
    for mark in ".!?…;:—,":
        if mark in marks:
            return "." if mark == "…" else "," if mark == "—" else mark
    return ""


_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_THOUSANDS = ("", "thousand", "million", "billion", "trillion")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip


def cardinal(number: int) -> list[str]:
    """
    >>> " ".join(cardinal(12_045))
    'twelve thousand forty five'
    """
    if number < 20:
        return [_ONES[number]]
    if number < 100:
        return [_TENS[number // 10], *([_ONES[number % 10]] if number % 10 else [])]
    if number < 1000:
        return [_ONES[number // 100], "hundred", *(cardinal(number % 100) if number % 100 else [])]
    if number >= 1000 ** len(_THOUSANDS):
        return [_ONES[int(digit)] for digit in str(number)]
    words: list[str] = []
    for power in range(len(_THOUSANDS) - 1, -1, -1):
        part = number // 1000**power % 1000
        if part:
            words += [*cardinal(part), *([_THOUSANDS[power]] if power else [])]
    return words


def _ordinal(words: list[str]) -> list[str]:
    last = words[-1]
    new = _ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return [*words[:-1], new]


def _year(number: int) -> list[str]:
    """
    >>> _year(1905), _year(2004), _year(1800)
    (['nineteen', 'oh', 'five'], ['two', 'thousand', 'four'], ['eighteen', 'hundred'])
    """
    century, rest = divmod(number, 100)
    if century % 10 == 0 and rest < 10:
        return cardinal(number)
    if rest == 0:
        return [*cardinal(century), "hundred"]
    return [*cardinal(century), *(["oh"] if rest < 10 else []), *cardinal(rest)]


def _number(found: re.Match[str]) -> list[str]:
    digits, ending, money = found["number"], found["ending"], found["money"]
    if ":" in digits:
        hours, _, minutes = digits.partition(":")
        return [*cardinal(int(hours.replace(",", ""))), *(cardinal(int(minutes)) if int(minutes) else [])]
    whole, _, part = digits.replace(",", "").partition(".")
    number = int(whole)
    if money:
        unit, small = _MONEY[money]
        words = [*cardinal(number), unit if number == 1 else unit + "s"]
        cents = int((part + "0")[:2]) if part else 0
        return words + ([*cardinal(cents), small if small == "pence" or cents == 1 else small + "s"] if cents else [])
    if part:
        words = [*cardinal(number), "point", *(_ONES[int(digit)] for digit in part)]
    elif ending in ("st", "nd", "rd", "th"):
        words = _ordinal(cardinal(number))
    else:
        words = _year(number) if len(digits) == 4 and 1100 <= number < 2100 else cardinal(number)
    if ending == "s":
        words = [*words[:-1], words[-1][:-1] + "ies" if words[-1].endswith("y") else words[-1] + "s"]
    return [*words, "percent"] if found["percent"] else words


SHORTEST_PHRASE, LONGEST_PHRASE, SENTENCE = 5, 12, 18  # words


def phrase(words: Sequence[Word]) -> list[Word]:
    """The words with marks that follow from nothing but the words, without capitals at their beginnings.

    >>> " ".join(w.text + w.mark for w in phrase(split_text("He took the boat, and. Rowed. over to the other side")))
    'he took the boat and rowed, over to the other side.'
    """
    marked: list[Word] = []
    words = [replace(word, text=word.text.lower()) if _begins_with_capital(word.text) else word for word in words]
    in_phrase = in_sentence = 0
    for number, word in enumerate(words):
        in_phrase, in_sentence = in_phrase + 1, in_sentence + 1
        following = words[number + 1].text.lower() if number + 1 < len(words) else ""
        function, next_function = word.text.lower() in FUNCTION_WORDS, following in FUNCTION_WORDS
        left = len(words) - number - 1
        boundary = (not function and next_function) or in_phrase >= LONGEST_PHRASE
        mark = ""
        if left == 0 or (boundary and in_sentence >= SENTENCE and left >= SHORTEST_PHRASE):
            mark, in_phrase, in_sentence = LAST, 0, 0
        elif boundary and in_phrase >= SHORTEST_PHRASE and left >= SHORTEST_PHRASE:
            mark, in_phrase = ",", 0
        marked.append(replace(word, mark=mark))
    return marked


def _begins_with_capital(text: str) -> bool:
    return text != "I" and text[:1].isupper() and (len(text) == 1 or text[1:].islower())


class Pronouncer:
    """Phones of English words. `lexicons` are asked in their order; a value is a pronunciation, or one for each part of
    speech. `spell` gives phones of a word that none of them has."""

    def __init__(self, lexicons: Sequence[Mapping[str, Any]], spell: Callable[[str], str]) -> None:
        self._lexicons, self._spell = lexicons, spell

    def pronounce(self, words: Sequence[Word]) -> list[Word]:
        """The same words with phones; those that can't be said are left out."""
        said: list[Word] = []
        before_vowel: bool | None = None  # None: before a pause
        for number in range(len(words) - 1, -1, -1):
            word = words[number]
            if word.mark:
                before_vowel = None
            previous = words[number - 1].text.lower() if number and not words[number - 1].mark else ""
            following = words[number + 1].text.lower() if number + 1 < len(words) else ""
            phones = self._word(word.text, previous, following, before_vowel).replace("ɾ", "T").replace("ʔ", "t")
            if phones:
                said.append(replace(word, phones=phones))
                before_vowel = phones.lstrip(STRESSES)[:1] in VOWELS
            elif word.mark and said and number:  # a mark is not lost with what can't be said
                words = [*words[: number - 1], replace(words[number - 1], mark=word.mark), *words[number:]]
        return said[::-1]

    def _word(self, text: str, previous: str, following: str, before_vowel: bool | None) -> str:
        lower = text.lower()
        if lower in ("a", "an"):
            return "ɐ" if lower == "a" else "ɐn"
        if lower == "the":
            return "ði" if before_vowel else "ðə"
        if lower == "to" and before_vowel is not None:
            return "tʊ" if before_vowel else "tə"
        if text == "I":
            return "ˌI"
        if lower == "used" and following == "to":
            return "jˈust"
        entry = self._find(text, previous, before_vowel) or self._derive(lower, previous, before_vowel)
        if entry:
            return entry
        if text.isupper() and 1 < len(text) <= 5:
            letters = [self._find(letter, "", None) for letter in text]
            return "".join(letter.replace("ˈ", "ˌ") for letter in letters[:-1]) + letters[-1] if all(letters) else ""
        return self._spell(text)

    def _find(self, text: str, previous: str, before_vowel: bool | None) -> str:
        for lexicon in self._lexicons:
            for form in dict.fromkeys((text, text.lower(), text.capitalize())):
                entry = lexicon.get(form)
                if isinstance(entry, dict):
                    entry = _choose(entry, previous, before_vowel)
                if isinstance(entry, str):
                    return entry
        return ""

    def _derive(self, word: str, previous: str, before_vowel: bool | None) -> str:
        """From a stem with an ending."""
        for ending, stems in _stems(word.rstrip("'")):
            # "lived" and "living" come from the verb, "lives" does unless an article or the like is before it.
            context = "to" if ending in ("ed", "ing") or (ending == "s" and previous not in _BEFORE_NOUNS) else previous
            for stem in stems:
                phones = self._find(stem, context, bool(before_vowel)) if len(stem) > 1 else ""
                if phones:
                    return _ENDINGS[ending](phones)
        return ""


def _choose(entry: Mapping[str, Any], previous: str, before_vowel: bool | None) -> Any:
    """The pronunciation that fits the word before, where parts of speech are pronounced differently."""
    if before_vowel is None and "None" in entry:
        return entry["None"]
    if previous in _BEFORE_VERBS and "VERB" in entry:
        return entry["VERB"]
    if previous in _BEFORE_NOUNS and entry.get("NOUN"):
        return entry["NOUN"]
    return entry.get("DEFAULT")


def _stems(word: str) -> Iterator[tuple[str, list[str]]]:
    doubled = len(word) > 5 and word[-4:-3] == word[-5:-4]
    if word.endswith("'s"):
        yield "s", [word[:-2]]
    elif word.endswith("ies"):
        yield "s", [word[:-3] + "y", word[:-1]]
    elif word.endswith("s") and not word.endswith("ss"):
        yield "s", [word[:-1], *([word[:-2]] if word.endswith("es") else [])]
    elif word.endswith("ied"):
        yield "ed", [word[:-3] + "y"]
    elif word.endswith("ed"):
        yield "ed", [word[:-1], word[:-2], *([word[:-3]] if word[-3:-2] == word[-4:-3] else [])]
    elif word.endswith("ing"):
        yield "ing", [word[:-3], word[:-3] + "e", *([word[:-4]] if doubled else [])]
    elif word.endswith("ly"):
        yield "ly", [word[:-2]]
    elif word.endswith("ness"):
        yield "ness", [word[:-4]]


def _after_vowel(phones: str) -> bool:
    return phones[-2:-1] in VOWELS or phones[-2:-1] == "ɹ"


def _plural(phones: str) -> str:
    return phones + ("s" if phones[-1] in "ptkfθ" else "ᵻz" if phones[-1] in "szʃʒʧʤ" else "z")


def _past(phones: str) -> str:
    if phones[-1] == "t":
        return (phones[:-1] + "ɾ" if _after_vowel(phones) else phones) + "ᵻd"
    return phones + ("ᵻd" if phones[-1] == "d" else "t" if phones[-1] in "pkfθʃsʧ" else "d")


def _ing(phones: str) -> str:
    return (phones[:-1] + "ɾ" if phones[-1] == "t" and _after_vowel(phones) else phones) + "ɪŋ"


_ENDINGS: dict[str, Callable[[str], str]] = {
    "s": _plural,
    "ed": _past,
    "ing": _ing,
    "ly": lambda phones: phones.removesuffix("l") + "li",
    "ness": lambda phones: phones + "nəs",
}


class Speller:
    """Phones of a word from its letters, by the network that comes with the lexicons: one output for each place,
    repeated ones and blanks dropped."""

    def __init__(self, model: Path, letters: Mapping[str, Any]) -> None:
        self._session = open_session(model)
        self._inputs = {letter: number for number, letter in enumerate(letters["in"], start=1)}
        self._outputs = dict(enumerate(letters["out"], start=1))
        self._longest = int(letters["maxlen"])

    def __call__(self, word: str) -> str:
        known = [self._inputs[letter] for letter in word if letter in self._inputs][: self._longest]
        if not known:
            return ""
        places = self._session.run(None, {"chars": np.array([known], np.int64)})[0][0].tolist()
        changes = [place for place, before in zip(places, [0, *places], strict=False) if place != before and place]
        return "".join(self._outputs[place] for place in changes)


def load_pronouncer(*, offline: bool = False) -> Pronouncer:
    """Once per process; the lexicons are fetched once."""
    return _load_pronouncer(offline, str(weights.cache_folder()))


@lru_cache(maxsize=1)
def _load_pronouncer(offline: bool, cache: str) -> Pronouncer:
    gold, silver, model, letters = weights.fetch_all(
        (weights.HIBARI_GOLD, weights.HIBARI_SILVER, weights.HIBARI_SPELLING, weights.HIBARI_LETTERS),
        offline=offline,
        cache=cache,
    )
    speller = Speller(model, json.loads(letters.read_text(encoding="utf-8")))
    return Pronouncer([_read_lexicon(gold), _read_lexicon(silver)], speller)


def _read_lexicon(path: Path) -> dict[str, Any]:
    with gzip.open(path) as content:
        data = content.read(MOST_UNPACKED + 1)
    if len(data) > MOST_UNPACKED:
        raise VeilmeterError("this lexicon is too large", path=path, fix="remove the file and run again")
    lexicon: dict[str, Any] = json.loads(data)
    return lexicon
