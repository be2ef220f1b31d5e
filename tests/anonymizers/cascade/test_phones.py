"""Words, numbers and phrases from text, and their phones."""

from __future__ import annotations

import pytest
from tests.fetched import fetched

from veilmeter.anonymizers.cascade.phones import MARKS, Pronouncer, load_pronouncer, phrase, split_text

LEXICON = {
    "cat": "kˈæt", "apple": "ˈæpᵊl", "eat": "ˈit", "to": "tu", "I": "ˈI", "wish": "wˈɪʃ", "Paris": "pˈɛɹəs",
    "U": "jˈu", "S": "ˈɛs", "live": {"DEFAULT": "lˈIv", "VERB": "lˈɪv"},
    "record": {"DEFAULT": "ɹˈɛkəɹd", "VERB": "ɹəkˈɔɹd"},
    "can": {"DEFAULT": "kæn", "None": "kˈæn"}, "walk": "wˈɔk", "carry": "kˈɛɹi", "stop": "stˈɑp", "bake": "bˈAk",
}  # fmt: skip


def said(text: str) -> str:
    pronouncer = Pronouncer([LEXICON], lambda word: f"<{word}>")
    return " ".join(word.phones for word in pronouncer.pronounce(split_text(text)))


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("the cat, the apple", "ðə kˈæt ði ˈæpᵊl"),
        ("to eat, to walk", "tʊ ˈit tə wˈɔk"),
        ("cats, cat's, wishes", "kˈæts kˈæts wˈɪʃᵻz"),
        ("walked, wished, carried, baked, stopped", "wˈɔkt wˈɪʃt kˈɛɹid bˈAkt stˈɑpt"),
        ("eating, baking, stopping", "ˈiTɪŋ bˈAkɪŋ stˈɑpɪŋ"),
        ("a record, to record", "ɐ ɹˈɛkəɹd tə ɹəkˈɔɹd"),
        ("lived, the lives, Bob lives", "lˈɪvd ðə lˈIvz <Bob> lˈɪvz"),
        ("I can walk, I can", "ˌI kæn wˈɔk ˌI kˈæn"),
        ("PARIS paris", "pˈɛɹəs pˈɛɹəs"),
        ("US", "jˌuˈɛs"),
        ("zorblatt", "<zorblatt>"),
    ],
)
def test_words_are_pronounced_in_their_context(text: str, phones: str) -> None:
    assert said(text) == phones


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("in 1851", "in eighteen fifty one"),
        ("2004 or 2024 or 1900s", "two thousand four or twenty twenty four or nineteen hundreds"),
        ("12,045 men", "twelve thousand forty five men"),
        ("the 21st and 30th", "the twenty first and thirtieth"),
        ("3.14 or 50% & 7:30", "three point one four or fifty percent and seven thirty"),
        ("$1.01, £2.50", "one dollar one cent two pounds fifty pence"),
        ("9" * 20, " ".join(["nine"] * 20)),
        ("well-known don’t", "well known don't"),
    ],
)
def test_numbers_are_written_out(text: str, words: str) -> None:
    assert " ".join(word.text for word in split_text(text)) == words


def test_phrases_depend_on_nothing_but_the_words() -> None:
    """Marks and capitals follow the speaker's pauses: without them nothing may change."""
    text = "She found an old map. Folded, inside the cover of the book? And put it; on the table near the door!"
    plain = " ".join("".join(letter for letter in text if letter not in MARKS).lower().split())
    marked = phrase(split_text(text))
    assert marked == phrase(split_text(plain))
    assert [word.text for word in marked] == plain.split()
    assert marked[-1].mark == "."
    assert any(word.mark == "," for word in marked)


def test_long_texts_are_cut_into_sentences() -> None:
    marked = phrase(split_text("the man took the boat over to the other side of a river and went home " * 20))
    ends = [number for number, word in enumerate(marked) if word.mark == "."]
    assert max(after - before for before, after in zip([-1, *ends], ends, strict=False)) < 40


def test_the_published_lexicons_and_speller() -> None:
    pronouncer = fetched(load_pronouncer)
    words = pronouncer.pronounce(split_text("The boat left the harbor. Wibbling Zorblatts!"))
    assert [word.phones for word in words[:5]] == ["ðə", "bˈOt", "lˈɛft", "ðə", "hˈɑɹbəɹ"]
    assert words[5].phones.startswith("wˈɪb")
    assert words[6].mark == "!"
    assert pronouncer.pronounce(split_text("")) == []
