"""The language of speech: as it is given, as the corpus names it, as Whisper recognizes it, or assumed.

A corpus that names no language is taken for English, with a warning wherever words are measured. Where it does not
sound like English, words are not measured, and the error asks for the language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.speech.audio import AudioError, read_audio
from veilmeter.speech.recognizers.base import DEFAULT, MULTILINGUAL, RECOGNIZERS

ASSUMED = "en"
AUTO = "auto"
HEARD = 15  # recordings, spread over the corpus, from which a language is recognized
LEAST_SHARE = 0.6  # of them in one language
# Moonshine's median confidence: 0.68 to 0.90 on English (children and synthetic voices included) and 0.30 to 0.53 on
# synthetic voices in eight other languages, of which Dutch is nearest.
LEAST_TYPICAL = 0.6
FIX = f"name it with --language CODE, or have it recognized with --language {AUTO}"


@dataclass(frozen=True, slots=True)
class Language:
    """The language to transcribe, and how it is known."""

    code: str
    source: Literal["given", "corpus", "recognized", "assumed"]

    def __str__(self) -> str:
        words = {
            "given": "as given",
            "corpus": "as the corpus says",
            "recognized": "as it sounds",
            "assumed": "assumed: the corpus does not say",
        }
        return f"{self.code} ({words[self.source]})"


def resolve_language(given: str | None, languages: Sequence[str]) -> Language:
    """The language to transcribe: the one given, else the one that the corpus names, else English.

    >>> str(resolve_language(None, ["de"])), str(resolve_language(None, []))
    ('de (as the corpus says)', 'en (assumed: the corpus does not say)')
    """
    if given:
        return Language(given.strip().lower(), "given")
    if len(languages) > 1:
        raise InputError(
            f"the corpus holds speech in {', '.join(languages)}, and a recognizer transcribes one language",
            fix="name it with --language, and give a corpus of that language alone",
        )
    return Language(languages[0], "corpus") if languages else Language(ASSUMED, "assumed")


def language_of(corpus: Corpus, given: str | None = None, *, offline: bool = False) -> Language:
    """As `resolve_language`; with `auto`, as Whisper recognizes it."""
    if given is not None and given.strip().lower() == AUTO:
        return Language(recognize_language(corpus, offline=offline), "recognized")
    return resolve_language(given, corpus.languages)


def default_recognizer(language: str) -> str:
    """The recognizer that is used where none is named: Moonshine for English, Whisper for other languages."""
    return DEFAULT if language in RECOGNIZERS[DEFAULT].languages else MULTILINGUAL


def recognize_language(corpus: Corpus, *, offline: bool = False) -> str:
    """The language of most of a few recordings, by Whisper; an error where they are not in one language."""
    from veilmeter.speech.recognizers.whisper import load

    whisper = load(ASSUMED, offline=offline)
    heard: Counter[str] = Counter()
    for utterance in spread_recordings(corpus):
        try:
            samples = read_audio(utterance.path, stretch=utterance.stretch)
        except AudioError:
            continue
        heard[whisper.recognize_language(samples)] += 1
    if not heard:
        raise InputError("no recording could be read to recognize its language", path=corpus.root, fix=FIX)
    language, count = heard.most_common(1)[0]
    if count < LEAST_SHARE * heard.total():
        found = ", ".join(f"{code} ({times})" for code, times in heard.most_common())
        raise InputError(
            f"{heard.total()} recordings sound like several languages: {found}",
            path=corpus.root,
            fix="name the language with --language CODE, and give a corpus of that language alone",
        )
    return language


def spread_recordings(corpus: Corpus, most: int = HEARD) -> list[Utterance]:
    """A few recordings, evenly spread over the corpus."""
    places = np.linspace(0, len(corpus.utterances) - 1, min(most, len(corpus.utterances)))
    return [corpus.utterances[place] for place in sorted({int(place) for place in places.round()})]


def refuse_other_language(
    language: Language, recognizer: str, confidences: Sequence[float | None], corpus: Corpus
) -> None:
    """Refuse speech that was taken for English because nobody named its language, and does not sound like it."""
    known = [confidence for confidence in confidences if confidence is not None]
    if language.source != "assumed" or recognizer != DEFAULT or not known:
        return
    typical = float(np.median(known))
    if typical < LEAST_TYPICAL:
        raise InputError(
            f"the corpus does not name its language, and this does not sound like English: the median confidence of "
            f"{recognizer} in {len(known)} recordings is {typical:.2f} (English has {LEAST_TYPICAL} or more)",
            path=corpus.root,
            fix=FIX,
        )
