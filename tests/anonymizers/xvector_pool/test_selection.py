"""The choice of the pseudo-speaker against a slow, obvious one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from veilmeter.anonymizers.xvector_pool.selection import Choice, Plda, Rule, VoicePool, choose, target_gender
from veilmeter.core.errors import InputError


def make_pool(seed: int, females: int = 20, males: int = 15, dimension: int = 6) -> VoicePool:
    rng = np.random.default_rng(seed)
    genders = ("f",) * females + ("m",) * males
    names = tuple(f"v{n}" for n in range(len(genders)))
    return VoicePool(rng.normal(size=(len(genders), dimension)).astype(np.float32), names, genders)


def obvious(source: NDArray[np.float64], gender: str, pool: VoicePool, rule: Rule, rng: np.random.Generator) -> Choice:
    """The definition, one pool member after the other."""
    wanted = {"same": gender, "cross": {"f": "m", "m": "f"}[gender]}.get(rule.gender)
    if wanted is None:
        wanted = ["f", "m"][int(rng.integers(2))]
    distances = []
    for row in range(len(pool)):
        if pool.genders[row] == wanted:
            v = pool.vectors[row].astype(float)
            distances.append((float(v @ source / np.linalg.norm(v) / np.linalg.norm(source)), row))
    furthest = np.array([row for _, row in sorted(distances)[: rule.furthest]])
    drawn = rng.choice(furthest, size=rule.drawn, replace=False)
    return Choice(tuple(pool.names[row] for row in sorted(drawn)), wanted)


@given(
    seed=st.integers(0, 10_000),
    gender=st.sampled_from("fm"),
    rule=st.sampled_from(["random", "same", "cross"]),
    counts=st.integers(1, 15).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, f))),
)
def test_the_choice_is_the_definition(seed: int, gender: str, rule: str, counts: tuple[int, int]) -> None:
    pool = make_pool(seed)
    source = np.random.default_rng(seed + 1).normal(size=6)
    wanted = Rule(furthest=counts[0], drawn=counts[1], gender=rule)
    found = choose(source, gender, pool, wanted, np.random.default_rng(seed))
    assert found == obvious(source, gender, pool, wanted, np.random.default_rng(seed))
    assert len(set(found.members)) == counts[1]
    assert {pool.genders[pool.rows[name]] for name in found.members} == {found.gender}


def test_no_member_left_out_is_further_when_all_are_drawn() -> None:
    pool = make_pool(3)
    source = np.random.default_rng(0).normal(size=6)
    found = choose(source, "f", pool, Rule(5, 5, "same"), np.random.default_rng(0))
    cosines = pool.unit @ source
    inside = max(cosines[pool.rows[name]] for name in found.members)
    outside = min(
        c
        for c, name, g in zip(cosines, pool.names, pool.genders, strict=True)
        if g == "f" and name not in found.members
    )
    assert inside <= outside


def test_random_gender_takes_both_and_other_seeds_other_voices() -> None:
    pool = make_pool(1)
    source = np.ones(6)
    found = [choose(source, "", pool, Rule(10, 3), np.random.default_rng(seed)) for seed in range(50)]
    assert {choice.gender for choice in found} == {"f", "m"}
    assert len({choice.members for choice in found}) > 25
    assert found[7] == choose(source, "", pool, Rule(10, 3), np.random.default_rng(7))


def test_plda_scores_are_the_ratio_of_the_joint_densities() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4, 4))
    within, between = a @ a.T + np.eye(4), b @ b.T
    mean = rng.normal(size=4)
    plda = Plda.fit(mean, within, between)
    x, others = rng.normal(size=4), rng.normal(size=(5, 4))
    total = within + between
    joint = np.block([[total, between], [between, total]])
    for other, score in zip(others, plda.scores(x, others), strict=True):
        same = multivariate_normal(np.r_[mean, mean], joint).logpdf(np.r_[x, other])
        apart = multivariate_normal(mean, total).logpdf(x) + multivariate_normal(mean, total).logpdf(other)
        assert score == pytest.approx(same - apart, abs=1e-9)


def test_plda_chooses_by_its_own_scores() -> None:
    pool = make_pool(5)
    plda = Plda.fit(np.zeros(6), np.diag([0.01, 1, 1, 1, 1, 1.0]), np.eye(6))
    source = np.random.default_rng(2).normal(size=6)
    found = choose(source, "f", pool, Rule(4, 4, "same", "plda"), np.random.default_rng(0), plda)
    rows = pool.of_gender("f")
    scores = plda.scores(source / np.linalg.norm(source), pool.unit[rows])
    assert set(found.members) == {pool.names[row] for row in rows[np.argsort(scores)[:4]]}
    with pytest.raises(InputError, match="PLDA"):
        choose(source, "f", pool, Rule(4, 4, "same", "plda"), np.random.default_rng(0))


def test_the_pseudo_speaker_is_the_mean_of_unit_vectors() -> None:
    pool = VoicePool(np.array([[3, 4], [0, 5]], np.float32), ("a", "b"), ("f", "f"))
    np.testing.assert_allclose(pool.average(["a", "b"]), [0.3, 0.9], rtol=1e-6)
    with pytest.raises(InputError, match="'c'"):
        pool.average(["a", "c"])


@pytest.mark.parametrize(
    "options",
    [{"gender": "any"}, {"distance": "euclid"}, {"per": "corpus"}, {"drawn": 0}, {"drawn": 61}, {"furthest": 0}],
)
def test_impossible_rules_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Rule(**options)  # type: ignore[arg-type]


def test_what_the_pool_lacks_is_told() -> None:
    pool = make_pool(0)
    with pytest.raises(InputError, match="fewer than"):
        choose(np.ones(6), "m", pool, Rule(16, 3, "same"), np.random.default_rng(0))
    with pytest.raises(InputError, match="gender"):
        choose(np.ones(6), "", pool, Rule(5, 3, "same"), np.random.default_rng(0))
    with pytest.raises(InputError, match="'m'"):
        target_gender("same", "m", ["f"], np.random.default_rng(0))
    with pytest.raises(InputError, match="finite"):
        VoicePool(np.array([[np.nan, 1]], np.float32), ("a",), ("f",))
