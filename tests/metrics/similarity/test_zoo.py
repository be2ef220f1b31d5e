"""The zoo: quartiles name the animals, and chance is distinguished from a pattern."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.metrics.similarity.matrices import similarity
from veilmeter.metrics.similarity.zoo import CORNERS, menagerie, zoo

NAMES = [f"s{i}" for i in range(8)]


def test_every_animal() -> None:
    target = [1, 2, 8, 7, 4, 5, 3.5, 4.5]
    impostor = [8, 1, 7, 2, 4, 5, 4.5, 3.5]
    z = menagerie(target, impostor, NAMES)
    assert z.animals == ("worm", "phantom", "chameleon", "dove", "sheep", "sheep", "sheep", "sheep")
    assert z.doddington[0] == ("goat", "lamb", "wolf")
    assert z.doddington[3] == ("sheep",)
    sides = menagerie(target, [4.0] * 8, NAMES, first=[1, 1, 1, 1, 9, 8, 1, 1], second=[1, 1, 1, 1, 1, 1, 8, 9])
    assert sides.animals[4:] == ("lamb", "lamb", "wolf", "wolf")
    assert sides.animals[:2] == ("goat", "goat")


def test_equal_speakers_are_sheep() -> None:
    z = menagerie([0.0] * 8, np.full(8, 0.1) + np.arange(8) * 1e-16, NAMES)
    assert set(z.animals) == {"sheep"}
    assert all(one["count"] == 0 for one in z.corners().values())


def test_probability_by_enumeration() -> None:
    target = np.arange(6.0)
    z = menagerie(target, target[::-1], NAMES[:6])
    low, high = target <= np.quantile(target, 0.25), target >= np.quantile(target, 0.75)
    assert z.corners()["dove"]["count"] == 2
    deals = [np.array(p) for p in permutations(range(6))]
    often = np.mean([(high & low[p]).sum() >= 2 for p in deals])
    assert z.corners()["dove"]["p"] == pytest.approx(often)
    assert z.corners()["dove"]["expected"] == pytest.approx(np.mean([(high & low[p]).sum() for p in deals]))


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=2, max_size=30),
)
def test_any_scores(scores: list[tuple[float, float]]) -> None:
    target, impostor = zip(*scores, strict=True)
    z = menagerie(target, impostor, [str(i) for i in range(len(scores))])
    assert set(z.animals) <= {"sheep", "goat", "lamb", "wolf", *CORNERS}
    for corner, facts in z.corners().items():
        assert facts["count"] == sum(one == corner for one in z.corner)
        assert 0 <= facts["p"] <= 1 + 1e-12
    assert set(z.corner) <= {"", *CORNERS}
    assert z.to_json()[0]["target"] == target[0]


def test_from_a_matrix() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(6), [2, 3, 4, 2, 3, 4])
    o = rng.normal(size=(6, 5))[codes] + rng.normal(size=(18, 5)) * 0.5
    s = similarity(o, o + rng.normal(size=o.shape), [f"s{c}" for c in codes])
    z = zoo(s.op, s.names)
    weights = np.outer(np.bincount(codes), np.bincount(codes)) * (1 - np.eye(6))
    assert np.allclose(z.target, s.op.llr.diagonal())
    both = ((s.op.llr * weights).sum(0) + (s.op.llr * weights).sum(1)) / (weights.sum(0) + weights.sum(1))
    assert np.allclose(z.impostor, both)
    assert not np.allclose(z.first, z.second)
    assert np.allclose(zoo(s.pp, s.names).first, zoo(s.pp, s.names).second)


def test_lengths() -> None:
    with pytest.raises(InputError):
        menagerie([1, 2], [1], ["a", "b"])
