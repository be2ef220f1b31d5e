"""Attribute inference: found where it is there, not where it isn't, and never by having heard the speaker."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.inference import infer


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
    one = found.estimate(resamples=200)
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
    with pytest.raises(InputError, match="there is no attribute 'age'"):
        infer(voices(1.0), "age")
    with pytest.raises(InputError, match="needs two values"):
        infer(voices(1.0, speakers=6), "accent")
    some = voices(3.0, speakers=20)
    column = ["" if s == "s0" else v for s, v in zip(some.speakers, some.attributes["accent"], strict=True)]
    found = infer(Embeddings(some.vectors, some.utterances, some.speakers, {"accent": column}), "accent")
    assert found.left_out == {"unknown": 1}
    assert "s0" not in found.speakers
