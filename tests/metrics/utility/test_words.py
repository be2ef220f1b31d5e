"""Word errors against an obvious dynamic program, texts as the field normalizes them, intervals over speakers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.core.intervals import look_levels
from veilmeter.metrics.utility.words import (
    count_errors,
    difference_with_interval,
    most_frequent,
    normalize_text,
    rate_with_interval,
)

SENTENCES = st.lists(st.sampled_from(["a", "bee", "sea", "dee"]), max_size=7).map(" ".join)


def edits(a: list[str], b: list[str]) -> int:
    """The textbook's recursion, row by row."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y)))
    return row[-1]


@pytest.mark.parametrize(
    ("written", "digits"),
    [
        (("one two three four five", "1, 2, 3, 4, 5", "12345", "1 2 3 4 5", "12 345", "12,345"), "1 2 3 4 5"),
        (("nineteen eighty-four", "1984", "nineteen eighty four"), "1 9 8 4"),
        (("in nineteen oh five", "in 1905"), "in 1 9 0 5"),
        (("two thousand and one", "2001"), "2 0 0 1"),
        (("twenty twenty four", "2024", "20 24"), "2 0 2 4"),
        (("three dollars and fifty cents", "$3.50", "3 dollars 50"), "$ 3 5 0"),
        (("three thousand five hundred dollars", "$3,500", "$3500"), "$ 3 5 0 0"),
        (("twenty pounds", "£20"), "£ 2 0"),
        (("call 555-1234", "call five five five, twelve thirty-four", "Call 555 12 34."), "call 5 5 5 1 2 3 4"),
        (("020 7946 0018", "oh two oh seven nine four six double zero one eight"), "0 2 0 7 9 4 6 0 0 1 8"),
        (("25%", "25 %", "twenty-five percent"), "2 5 %"),
        (("three point five", "3.5"), "3 5"),
        (("10:30", "ten thirty"), "1 0 3 0"),
        (("the 20th", "the twentieth"), "the 2 0th"),
        (("minus five", "-5", "negative five"), "minus 5"),
        (("plus four four two oh seven", "+44 207"), "plus 4 4 2 0 7"),
        (("(555) 012-3456", "five five five oh one two three four five six"), "5 5 5 0 1 2 3 4 5 6"),
        (("a hundred and five", "one hundred and five", "105"), "1 0 5"),
        (("two and a half", "2 1/2", "2.5", "2½", "2 and a half"), "2 5"),
        (("six and three quarters", "6 3/4", "6.75"), "6 7 5"),
        (("nineteen nineties", "1990s"), "1 9 9 0s"),
        (("ninety nine cents", "$0.99", "99 cents"), "¢ 9 9"),
        (("double oh seven", "007"), "0 0 7"),
        (("forty-second street", "42nd street"), "4 2nd street"),
        (("ninety nine point nine percent", "99.9%"), "9 9 9 %"),
        (("one point five million", "1.5 million", "1,500,000"), "1 5 0 0 0 0 0"),
        (("one point two", "1.2"), "1 2"),
        (("three point zero", "3.0", "three point oh"), "3 0"),
        (("point five", ".5", "0.5"), "0 5"),
        (("half past three", "3:30", "three thirty", "half-past 3"), "3 3 0"),
        (("a quarter past eleven", "quarter past 11", "11:15"), "1 1 1 5"),
        (("a quarter to one", "12:45"), "1 2 4 5"),
        (("twenty-five past six", "6:25"), "6 2 5"),
        (("three o'clock", "3 o’clock", "3:00"), "3 0 0"),
        (("at three p.m.", "at 3:00 pm", "at 3 p. m."), "at 3 pm"),
        (("two thirds", "2/3", "two-thirds"), "2 3"),
        (("one half", "1/2", "½"), "1 2"),
        (("a dozen eggs", "twelve eggs", "12 eggs"), "1 2 eggs"),
        (("half a dozen", "half dozen", "six"), "6"),
        (("two dozen", "24"), "2 4"),
        (("Henry IV", "Henry the Fourth", "Henry the 4th"), "henry the 4th"),
        (("World War II", "world war two"), "world war 2"),
        (("CHAPTER XII", "chapter twelve"), "chapter 1 2"),
        (("number five", "#5"), "number 5"),
    ],
)
def test_numbers_are_compared_digit_by_digit(written: tuple[str, ...], digits: str) -> None:
    assert {normalize_text(text) for text in written} == {digits}


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("to", "two"),
        ("for", "four"),
        ("won", "one"),
        ("wait a second", "wait a 2"),
        ("one second", "1/2"),
        ("a quarter to four", "a quarter past four"),
        ("half past three", "three"),
        ("half past three", "half past thirty"),
        ("five to three", "2:55"),
        ("a couple of friends", "two friends"),
        ("dozens", "12"),
        ("minus five", "five"),
        ("the part I like", "the part one like"),
        ("the IV drip", "the four drip"),
        ("a party and a half", "a party 5"),
        ("half a cup", "half cup"),
        ("three o'clock", "three"),
    ],
)
def test_other_words_do_not_become_the_same_number(said: str, other: str) -> None:
    assert normalize_text(said) != normalize_text(other)


def test_spoken_digits_that_are_written_out_are_no_errors() -> None:
    texts = ["one two three", "4 5 6"], ["1, 2, 3", "four five six"]
    found = count_errors(*([normalize_text(text) for text in side] for side in texts))
    assert found.words.tolist() == [3, 3]
    assert not found.word_errors.any()
    wrong = count_errors([normalize_text("one two three four five")], [normalize_text("1 2 3 4 6")])
    assert (wrong.word_errors[0], wrong.words[0]) == (1, 5)


@settings(max_examples=200, deadline=None)
@given(SENTENCES, SENTENCES)
def test_errors_are_those_of_the_textbook(reference: str, hypothesis: str) -> None:
    found = count_errors([reference], [hypothesis])
    a, b = reference.split(), hypothesis.split()
    assert found.word_errors[0] == edits(a, b)
    assert found.words[0] == len(a)
    assert found.character_errors[0] == edits(list(reference), list(hypothesis))
    assert found.characters[0] == len(reference)
    assert len(a) - found.deletions[0] + found.insertions[0] == len(b)
    substituted = sum(found.substitutions.values())
    assert substituted + found.deletions[0] + found.insertions[0] == found.word_errors[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("IT ISN'T TWENTY FIVE", "It isn't 25."),
        ("mister smith", "Mr. Smith"),
        ("I'm going to", "i am gonna"),
        ("the color", "The color!"),
        ("two thousand and ten", "2010"),
        ("well, uh, yes", "well yes"),
        ("we will", "we'll"),
    ],
)
def test_what_is_the_same_in_english(written: str, meant: str) -> None:
    assert normalize_text(written) == normalize_text(meant)


def test_other_languages_keep_their_letters() -> None:
    assert normalize_text("Schöne Grüße, Jörg!", "de") == "schöne grüße jörg"
    assert normalize_text("नमस्ते", "hi") == "नमस्ते"
    assert normalize_text("你好,世界", "zh") == "你 好 世 界"
    assert normalize_text("twenty five", "de") == "twenty five"


def test_rates_are_of_sums_and_intervals_over_speakers() -> None:
    speakers = ["a", "a", "b", "b", "c", "c"]
    value, interval = rate_with_interval([1, 0, 2, 2, 0, 1], [10, 10, 10, 30, 10, 10], speakers)
    assert value == pytest.approx(100 * 6 / 80)
    assert interval is not None
    assert interval[0] <= value <= interval[1]
    assert rate_with_interval([1, 2], [10, 10], ["a", "a"])[1] is None
    assert rate_with_interval([0, 0], [10, 10], ["a", "b"]) == (0.0, (0.0, pytest.approx(65.8, abs=0.1)))
    with pytest.raises(InputError, match="no words"):
        rate_with_interval([0], [0], ["a"])


def test_the_interval_covers_the_rate() -> None:
    """Speakers with rates of their own: 95 % intervals hold the true mean in about 95 of 100 experiments."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        rates = rng.beta(2, 8, 15)
        words = rng.integers(20, 80, (15, 6))
        wrong = rng.binomial(words, rates[:, None])
        speakers = np.repeat(np.arange(15), 6)
        _, interval = rate_with_interval(wrong.ravel(), words.ravel(), speakers)
        assert interval is not None
        covered += interval[0] <= 20 <= interval[1]
    assert 0.90 <= covered / 400 <= 0.985


def test_a_difference_is_that_of_the_two_rates_and_narrower_where_errors_are_shared() -> None:
    rng = np.random.default_rng(0)
    speakers = np.repeat(np.arange(10), 10)
    words = rng.integers(10, 30, 100)
    before = rng.binomial(words, np.repeat(rng.beta(1, 6, 10), 10))
    after = before + rng.binomial(words, 0.05)
    change, interval = difference_with_interval(after, before, words, speakers)
    rate, of_rate = rate_with_interval(after, words, speakers)
    assert change == pytest.approx(rate - rate_with_interval(before, words, speakers)[0])
    assert interval is not None
    assert of_rate is not None
    assert interval[1] - interval[0] < of_rate[1] - of_rate[0]


def test_what_was_most_often_taken_for_what() -> None:
    found = count_errors(["a b", "a c", "d"], ["x b", "x c", "e"])
    assert most_frequent(found.substitutions, 1) == [{"said": "a", "heard": "x", "times": 2}]


def test_the_interval_holds_when_one_stops_because_it_is_narrow() -> None:
    """Word errors come in bursts, and few errors look precise: who stops there believes too little is wrong."""
    rng = np.random.default_rng(0)
    sizes, people, words, repeats = (20, 40, 80), 20, 15, 3000
    truth = 10.0
    speakers = np.tile(np.arange(people), sizes[-1] // people)
    inside = {"looks": 0, "naive": 0}
    stopped = 0
    for _ in range(repeats):
        own = rng.beta(0.5, 4.5, people)  # of 100 words, one tenth on average; most people have hardly any error
        errors = rng.binomial(words, own[speakers])
        for rule, levels in (("looks", look_levels(sizes)), ("naive", [0.95] * 3)):
            for size, level in zip(sizes, levels, strict=True):
                _, interval = rate_with_interval(errors[:size], np.full(size, words), speakers[:size], level=level)
                assert interval is not None
                if interval[1] - interval[0] <= 12:
                    break
            stopped += rule == "looks" and size < sizes[-1]
            inside[rule] += interval[0] <= truth <= interval[1]
    assert stopped > 0.05 * repeats
    assert inside["looks"] > inside["naive"] + 0.01 * repeats
    fixed = sum(_holds(rng, people, words, speakers, truth) for _ in range(repeats))
    assert inside["looks"] >= fixed - 0.01 * repeats  # as a sample of a fixed size: that few people are known poorly


def _holds(rng: np.random.Generator, people: int, words: int, speakers: np.ndarray, truth: float) -> bool:
    errors = rng.binomial(words, rng.beta(0.5, 4.5, people)[speakers])
    _, interval = rate_with_interval(errors, np.full(len(errors), words), speakers)
    return interval is not None and interval[0] <= truth <= interval[1]
