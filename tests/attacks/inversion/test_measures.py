from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.attacks.inversion import evaluate, identify, identity_map
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.identification import Identification
from veilmeter.metrics.scores.eer import eer


@given(st.integers(0, 10_000), st.integers(1, 15), st.integers(2, 15), st.integers(1, 5))
def test_top_k_is_what_sorting_gives(seed: int, n: int, m: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    q, g = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    asked, known = rng.integers(0, 3, n).astype(str), np.array(["0", "1", *rng.integers(0, 3, m - 2).astype(str)])
    hits, own, chance = [], [], []
    for x, speaker in zip(q, asked, strict=True):
        if speaker in known:
            nearest = np.argsort(np.linalg.norm(g - x, axis=1))[:k]
            hits.append(speaker in known[nearest])
            own.append(np.sum(known == speaker))
            draws = [speaker in known[rng.choice(m, min(k, m), replace=False)] for _ in range(200)]
            chance.append(np.mean(draws))
    if not hits:
        with pytest.raises(InputError, match="no query's speaker"):
            identify(q, g, asked, known)
        return
    found = identify(q, g, asked, known)
    assert found.value(k) == pytest.approx(100 * np.mean(hits))
    assert found.own.tolist() == own
    assert found.chance(k) == pytest.approx(100 * np.mean(chance), abs=20)


def test_chance_is_exact_for_one() -> None:
    found = identify(np.eye(3), np.eye(3), ["a", "a", "b"], ["a", "a", "b"])
    assert found.chance() == pytest.approx(100 * (2 / 3 + 2 / 3 + 1 / 3) / 3)
    assert found.chance(3) == 100


def test_a_tie_is_a_failure() -> None:
    found = identify([[1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], ["a"], ["a", "b"])
    assert found.value() == 0
    assert found.value(2) == 100


def test_eer_uses_plain_means_and_the_key() -> None:
    rng = np.random.default_rng(0)
    names = ["a", "a", "b", "b", "c", "c"]
    enroll = Embeddings(
        rng.standard_normal((6, 4)) * [[1], [9], [1], [1], [1], [1]], [f"e{n}" for n in range(6)], names
    )
    tests = Embeddings(rng.standard_normal((6, 4)), [f"t{n}" for n in range(6)], names)
    evaluation = evaluate(identity_map(4), tests, None, enroll)
    scores = np.empty((3, 6))
    for row, name in enumerate("abc"):
        model = enroll.vectors[enroll.speakers == name].mean(0)
        scores[row] = tests.vectors @ model / np.linalg.norm(model) / np.linalg.norm(tests.vectors, axis=1)
    same = np.array([[s == n for s in names] for n in "abc"])
    expected = eer(scores[same], scores[~same], "roc")
    assert evaluation.eer(method="roc")[""] == pytest.approx(expected)
    folded = evaluation.eer(method="roc", fold=True)[""]
    assert folded == pytest.approx(min(expected, 100 - expected))
    key = {("a", "t0"): True, ("b", "t0"): False, ("b", "t2"): True, ("c", "t3"): False}
    part = evaluation.groups[0].scores(key)
    assert part is not None
    assert (len(part.targets), len(part.impostors)) == (2, 2)
    with pytest.raises(InputError, match="say otherwise"):
        evaluation.groups[0].scores({("a", "t5"): True})


def test_estimates_know_chance_interval_and_group() -> None:
    rng = np.random.default_rng(1)
    people = 3 * rng.standard_normal((8, 6))
    codes = np.repeat(np.arange(8), 5)
    sets = [
        Embeddings(
            people[codes] + rng.standard_normal((40, 6)),
            [f"u{n}" for n in range(40)],
            [f"s{c}" for c in codes],
            {"gender": ["fm"[c % 2] for c in codes]},
        )
        for _ in range(3)
    ]
    evaluation = evaluate(identity_map(6), *sets)
    found = evaluation.estimates(resamples=50)
    assert {"eer", "d_ece", "l_w", "top1", "top1_clear", "top_k", "linkability"} <= set(found)
    for one in found["top1"]:
        assert one.interval is not None
        assert one.interval[0] <= one.value <= one.interval[1]
        assert one.null == pytest.approx(25)
        assert one.at["gender"] in "fm"
    assert [one.at["speakers"] for one in found["linkability"] if one.at["gender"] == "f"] == [2, 4]
    rows = evaluation.per_speaker()
    assert len(rows) == 8
    assert rows[0]["top1"] >= rows[-1]["top1"]
    assert np.mean([r["top1"] for r in rows if r["gender"] == "f"]) == pytest.approx(evaluation.top1()["f"][0])


@pytest.mark.parametrize("dimension", [5, 37, 192])
def test_equal_vectors_have_no_nearest(dimension):
    """One restored voice for everybody: a tie is a failure of the attacker, whatever rounding says."""
    voice = np.random.default_rng(dimension).standard_normal(dimension)
    same, names = np.tile(voice / np.linalg.norm(voice), (90, 1)), np.repeat(np.arange(30), 3).astype(str)
    found = identify(same, same, names, names)
    assert found.value() == 0
    assert found.chance() == 100 / 30
    assert found.estimate("top1").interval[0] == 0


def test_intervals_near_the_end_are_not_narrower_than_at_the_end():
    """39 of 40 right, in ten speakers: less sure than 40 of 40, not more."""
    names = np.repeat(np.arange(10), 4).astype(str)
    nearly = Identification(np.where(np.arange(40) == 7, 3, 0), np.full(40, 4), 40, names)
    surely = Identification(np.zeros(40, int), np.full(40, 4), 40, names)
    assert nearly.estimate("top1").interval[0] < 85
    assert surely.estimate("top1").interval == pytest.approx((72.2, 100.0), abs=0.1)
