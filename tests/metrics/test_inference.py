"""Attribute inference: found where it is there, not where it isn't, and never by having heard the speaker."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.inference import combine_guesses, infer, residual, shuffle


def voices(shift: float, *, speakers: int = 30, each: int = 4, values: int = 2, seed: int = 0) -> Embeddings:
    rng = np.random.default_rng(seed)
    value = np.arange(speakers) % values
    centres = shift * np.eye(12)[:values]
    codes = np.repeat(np.arange(speakers), each)
    x = 5 * np.eye(12)[11] + (centres[value] + 0.5 * rng.standard_normal((speakers, 12)))[codes]
    x += 0.3 * rng.standard_normal((len(codes), 12))
    return Embeddings(
        x, [f"{i}" for i in range(len(codes))], [f"s{c}" for c in codes], {"accent": [f"v{value[c]}" for c in codes]}
    )


def test_what_is_there_is_found() -> None:
    found = infer(voices(4.0), "accent")
    assert found.value > 95
    one = found.estimate()
    assert one.null == 50
    assert one.null_range is not None
    assert one.value > one.null_range[1]
    assert one.interval is not None
    assert one.interval[0] <= one.value <= one.interval[1]
    assert found.counts == {"v0": 15, "v1": 15}


def test_three_values_and_unequal_classes() -> None:
    many = voices(4.0, speakers=36, values=3)
    found = infer(many.take(np.flatnonzero(many.codes < 33)), "accent")
    assert found.value > 90
    assert found.estimate(intervals=False).null == pytest.approx(100 / 3)


def test_what_is_not_there_is_not() -> None:
    inside = 0
    for seed in range(10):
        one = infer(voices(0.0, seed=seed), "accent", permutations=60, seed=seed).estimate(intervals=False)
        assert one.null_range is not None
        inside += one.null_range[0] <= one.value <= one.null_range[1]
    assert inside >= 6


def test_the_speaker_was_never_heard() -> None:
    """Each speaker is unmistakable, but says nothing about others: a leak of speakers into training would give 100."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(24), 5)
    x = 10 * rng.standard_normal((24, 40))[codes] + 0.1 * rng.standard_normal((120, 40))
    value = rng.permutation(np.arange(24) % 2)
    e = Embeddings(x, [str(i) for i in range(120)], [f"s{c}" for c in codes], {"g": ["ab"[value[c]] for c in codes]})
    assert infer(e, "g", permutations=5).value < 80


def test_seeded() -> None:
    first, again = (infer(voices(1.0), "accent", permutations=5, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.correct, again.correct)
    np.testing.assert_array_equal(first.null, again.null)


def test_too_little_to_learn_from() -> None:
    with pytest.raises(InputError, match="unknown attribute 'age'"):
        infer(voices(1.0), "age")
    with pytest.raises(InputError, match="needs two values"):
        infer(voices(1.0, speakers=6), "accent")
    some = voices(3.0, speakers=20)
    column = ["" if s == "s0" else v for s, v in zip(some.speakers, some.attributes["accent"], strict=True)]
    found = infer(Embeddings(some.vectors, some.utterances, some.speakers, {"accent": column}), "accent")
    assert found.left_out == {"unknown": 1}
    assert "s0" not in found.speakers


def moods(shift: float, *, speakers: int = 20, each: int = 6, seed: int = 0) -> Embeddings:
    """An attribute of the recording: everybody speaks in three moods, two recordings each."""
    rng = np.random.default_rng(seed)
    codes, mood = np.repeat(np.arange(speakers), each), np.tile(np.arange(each) % 3, speakers)
    x = 5 * np.eye(12)[11] + (0.5 * rng.standard_normal((speakers, 12)))[codes] + shift * np.eye(12)[mood]
    x += 0.2 * rng.standard_normal(x.shape)
    names = np.array(["calm", "glad", "sad"], object)
    return Embeddings(x, [str(i) for i in range(len(x))], [f"s{c}" for c in codes], {"mood": names[mood]})


def test_what_varies_within_speakers_is_guessed_by_recording() -> None:
    """A speaker's most frequent value would be right for a third of the recordings at most."""
    found = infer(moods(3.0), "mood", permutations=40)
    assert found.varies
    assert found.value > 95
    assert found.counts == {"calm": 20, "glad": 20, "sad": 20}
    assert "by recording" in found.estimate().method
    assert not infer(voices(4.0), "accent", permutations=5).varies


def test_moods_that_can_not_be_heard_are_not_found() -> None:
    point = infer(moods(0.0), "mood", permutations=60).estimate()
    assert point.interval is not None
    assert point.interval[0] < 100 / 3 < point.interval[1]


def test_shuffled_values_stay_in_their_bundles() -> None:
    """Speakers keep bundles of values such as there were, but not their own order."""
    who = np.repeat(np.arange(6), 4)
    label = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1], [2, 2, 2, 0], [1, 2, 1, 2], [0, 0, 1, 1]]).ravel()
    bundles = sorted(sorted(part) for part in label.reshape(6, 4).tolist())
    for seed in range(5):
        dealt = shuffle(label, who, np.random.default_rng(seed)).reshape(6, 4)
        assert sorted(sorted(part) for part in dealt.tolist()) == bundles


def test_without_signal_the_interval_holds_chance() -> None:
    inside, worlds = 0, 60
    for seed in range(worlds):
        low, high = infer(voices(0.0, seed=seed, speakers=20), "accent", permutations=40, seed=seed).interval()
        inside += low <= 50 <= high
    assert inside / worlds >= 0.88


def test_a_sure_guess_has_an_interval_below_it() -> None:
    low, high = infer(voices(9.0), "accent", permutations=20).interval()
    assert 60 < low < 100
    assert high == pytest.approx(100)


def two_attributes(shift: float) -> Embeddings:
    """Thirty people in two accents; one of them is the only one of their age in their accent."""
    known = voices(shift)
    ages = ["young" if c % 4 == 0 or c == 1 else "old" for c in known.codes]
    x = known.vectors + shift * np.eye(12)[5] * np.array([age == "old" for age in ages])[:, None]
    return Embeddings(x, known.utterances, known.speakers, {**known.attributes, "age": ages})


def test_combinations_single_out_the_one_who_differs() -> None:
    both = two_attributes(8.0)
    inferred = [infer(both, name, permutations=5) for name in ("accent", "age")]
    found = combine_guesses([replace(one, guesses=one.label[np.argsort(one.who)]) for one in inferred])
    assert found is not None
    assert (found.people, found.combinations, found.alone, found.alone_and_right) == (30, 4, 1, 1)
    constant = combine_guesses([replace(one, guesses=np.zeros(30, np.int64)) for one in inferred])
    assert constant is not None
    assert (constant.combinations, constant.alone) == (1, 0)
    assert (constant.smallest, constant.typical) == (30, 30)
    sizes = Counter(zip(*(one.label[np.argsort(one.who)].tolist() for one in inferred), strict=True))
    assert (found.smallest, found.typical) == (
        1,
        sorted((n for n in sizes.values() for _ in range(n)), reverse=True)[14],
    )
    assert combine_guesses(inferred[:1]) is None


def test_guesses_are_those_that_are_counted() -> None:
    found = infer(voices(1.0), "accent", permutations=5)
    right = found.guesses[found.who] == found.label
    assert set(right[found.correct > 0.5].tolist()) == {True}
    assert set(right[found.correct < 0.5].tolist()) == {False}


def test_the_risk_is_what_lies_beyond_the_control() -> None:
    for value, beyond in ((50.0, 0.0), (100.0, 100.0), (25.0, -50.0)):
        assert residual(Estimate(name="inference", value=value, unit="percent", null=50.0)) == (beyond, None)
    assert residual(Estimate(name="inference", value=70.0, unit="percent")) is None
