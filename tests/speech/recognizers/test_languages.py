"""The language of speech: named, given, recognized, or asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.fetched import fetched

from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Corpus, read_corpus
from veilmeter.speech.audio import write_audio
from veilmeter.speech.recognizers import languages
from veilmeter.speech.recognizers.languages import (
    Language,
    default_recognizer,
    language_of,
    recognize_language,
    refuse_other_language,
    resolve_language,
    spread_recordings,
)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    for speaker in "ab":
        for number in range(4):
            write_audio(tmp_path / f"{speaker}/{number}.wav", 0.1 * np.sin(np.arange(8_000)))
    return read_corpus(tmp_path)


def test_where_the_language_comes_from() -> None:
    assert resolve_language("DE", ["en"]) == Language("de", "given")
    assert resolve_language(None, ["fr"]) == Language("fr", "corpus")
    assert resolve_language(None, []) == Language("en", "assumed")
    with pytest.raises(InputError, match="--language"):
        resolve_language(None, ["de", "en"])


def test_the_recognizer_knows_the_language() -> None:
    assert default_recognizer("en") == "moonshine"
    assert default_recognizer("de") == "whisper"


@pytest.mark.parametrize(("heard", "language"), [("eeee", "en"), ("eeed", "en"), ("dddd", "de"), ("eedd", "")])
def test_a_language_is_recognized_in_most_recordings(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, heard: str, language: str
) -> None:
    from veilmeter.speech.recognizers import whisper

    codes = iter({"e": "en", "d": "de"}[letter] for letter in 2 * heard)

    class Stub:
        def recognize_language(self, samples: np.ndarray) -> str:
            assert len(samples)
            return next(codes)

    monkeypatch.setattr(whisper, "load", lambda code, *, offline: Stub())
    if language:
        assert language_of(corpus, "auto") == Language(language, "recognized")
    else:
        with pytest.raises(InputError, match=r"several languages: en \(4\), de \(4\).*--language"):
            recognize_language(corpus)


def test_english_that_does_not_sound_like_it_is_asked_about(corpus: Corpus) -> None:
    low, high = [0.34, 0.41, None, 0.5], [0.9, 0.7, 0.3]
    assumed = Language("en", "assumed")
    with pytest.raises(InputError, match=r"does not sound like English.*0\.41.*--language CODE.*--language auto"):
        refuse_other_language(assumed, "moonshine", low, corpus)
    refuse_other_language(assumed, "moonshine", high, corpus)
    refuse_other_language(assumed, "moonshine", [None], corpus)
    refuse_other_language(assumed, "own.py:hear", low, corpus)
    refuse_other_language(Language("en", "given"), "moonshine", low, corpus)


def test_recordings_are_spread(corpus: Corpus) -> None:
    assert [utterance.id for utterance in spread_recordings(corpus, 2)] == ["a/0", "b/3"]
    assert len(spread_recordings(corpus)) == len(corpus)
    one = replace(corpus, utterances=corpus.utterances[:1])
    assert len(spread_recordings(one)) == 1


def test_german_and_english_are_recognized(tmp_path: Path) -> None:
    """By Whisper itself, of synthetic voices."""
    pytest.importorskip("ctranslate2")
    pytest.importorskip("espeakng_loader")
    from veilmeter.demo.corpus import speak, voices
    from veilmeter.speech.recognizers.whisper import load

    fetched(lambda: load("en"))
    texts = {
        "de": "Meine Schwester hat im Garten drei rote Rosen und einen Apfelbaum gepflanzt.",
        "en": "My sister has planted three red roses and an apple tree in the garden.",
    }
    for code, text in texts.items():
        for voice in voices(3):
            spoken = speak(replace(voice, accent="de" if code == "de" else voice.accent), text)
            write_audio(tmp_path / code / voice.name / "1.wav", spoken)
        assert language_of(read_corpus(tmp_path / code), "auto").code == code
    assert languages.ASSUMED == "en"
