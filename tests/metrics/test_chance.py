"""Luck: figures under relabeling against slow references, and the maximum test against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from veilmeter.metrics.legal import chance
from veilmeter.metrics.legal.chance import FigureKey, Relabeled, Trials, joint_chance, relabel
from veilmeter.metrics.legal.linkability import better_impostors, link_probability
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.summary import values
from veilmeter.metrics.scores.zebra import d_ece_flipped


def d_ece_draws(trials: Trials, *, draws: int, seed: int) -> np.ndarray:
    named = chance.name_trials(trials, draws=draws, seed=seed)
    assert named is not None
    return chance.d_ece_draws(named)


def trials_of(seed: int, people: int = 8, each: int = 3, *, decimals: int = 1, mask: bool = False) -> Trials:
    rng = np.random.default_rng(seed)
    own = np.repeat(np.arange(people), each)
    scores = np.round(rng.standard_normal((people, len(own))), decimals)  # with ties
    half = np.arange(people) % 2
    allowed = half[:, None] == half[own] if mask else None
    return Trials(scores, own, tuple(f"p{n}" for n in range(people)), 1, allowed)


def test_relabelings_depend_on_the_name_and_the_seed_alone() -> None:
    names = [f"p{n}" for n in range(6)]
    drawn = chance.relabelings(names, draws=50, seed=1)
    assert all(sorted(row) == list(range(6)) for row in drawn.tolist())
    assert (drawn == chance.relabelings(names, draws=50, seed=1)).all()
    assert (drawn != chance.relabelings(names, draws=50, seed=2)).any()
    # Everybody is called by every name about as often.
    many = chance.relabelings(names, draws=3000, seed=1)
    counts = np.array([np.bincount(many[:, person], minlength=6) for person in range(6)])
    assert counts.min() > 400
    assert counts.max() < 600
    blocks = np.array([0, 0, 1, 1, 1, 2])
    within = chance.relabelings(names, draws=50, seed=1, blocks=blocks)
    assert (blocks[within] == blocks).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 600), st.integers(1, 30))
def test_better_counts_are_counts(seed: int, people: int, conversations: int, levels: int) -> None:
    scores = np.random.default_rng(seed).integers(levels, size=(people, conversations)).astype(float)
    wanted = (scores[:, None] <= scores[None]).sum(axis=1) - 1
    assert np.array_equal(chance.better_counts(scores), wanted)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 4))
def test_linkability_under_relabeling_is_linkability_of_relabeled_people(seed: int, people: int, each: int) -> None:
    trials = trials_of(seed, people, each)
    names = chance.relabelings(trials.enrolled, draws=4, seed=seed)
    sizes = sorted({2, people})
    drawn = chance.linkability_draws(chance.better_counts(trials.scores), trials.own, sizes, names)
    for column, called in enumerate([np.arange(people), *names]):
        better = better_impostors(trials.scores.T, called[trials.own])
        wanted = [link_probability(better, people - 1, size).mean() for size in sizes]
        assert drawn[:, column] == pytest.approx(wanted)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_d_ece_under_relabeling_is_d_ece_of_relabeled_people(mask: bool, decimals: int) -> None:
    trials = trials_of(3, decimals=decimals, mask=mask)
    drawn = d_ece_draws(trials, draws=5, seed=2)
    assert drawn is not None
    blocks = np.arange(len(trials.enrolled)) % 2 if mask else None
    names = chance.relabelings(trials.enrolled, draws=5, seed=2, blocks=blocks)
    everything = np.ones(trials.scores.shape, bool) if trials.mask is None else trials.mask
    for column, called in enumerate([np.arange(len(trials.enrolled)), *names]):
        target = np.zeros(trials.scores.shape, bool)
        target[called[trials.own], np.arange(len(trials.own))] = True
        data = SortedScores.from_arrays(trials.scores[target & everything], trials.scores[~target & everything])
        assert drawn[0, column] == pytest.approx(values(data)["d_ece"], abs=1e-12)
        assert drawn[1, column] == pytest.approx(d_ece_flipped(data), abs=1e-12)


def unequal_trials(seed: int) -> Trials:
    """Six people with two trials each, four with four."""
    rng = np.random.default_rng(seed)
    own = np.repeat(np.arange(10), [2] * 6 + [4] * 4)
    return Trials(np.round(rng.standard_normal((10, len(own))), 1), own, tuple(f"p{n}" for n in range(10)))


def test_whom_an_attacker_prefers_is_not_whom_it_recognizes() -> None:
    """Candidates with many trials score high whoever speaks: luck does as well, under any names."""
    trials = unequal_trials(0)
    liked = np.repeat(np.arange(10.0)[:, None], len(trials.own), axis=1)
    drawn = relabel("a", [Trials(liked, trials.own, trials.enrolled)], {1: [2, 5]}, d_ece=False, draws=9).values
    assert drawn[0, 0] > 0.55  # of two candidates
    assert drawn == pytest.approx(np.repeat(drawn[:, :1], 10, axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_a_name_keeps_its_weight_where_people_are_not_tried_equally_often(seed: int) -> None:
    trials = unequal_trials(seed)
    counts = np.bincount(trials.own)
    blocks = chance.name_blocks(trials.own, 10)
    assert blocks is not None
    names = chance.relabelings(trials.enrolled, draws=4, seed=0, blocks=blocks)
    linked = chance.linkability_draws(chance.better_counts(trials.scores), trials.own, [3], names)
    told = d_ece_draws(trials, draws=4, seed=0)
    assert told is not None
    for column, called in enumerate([np.arange(10), *names]):
        right = called[trials.own]
        rates = link_probability(better_impostors(trials.scores.T, right), 9, 3)
        each = [rates[trials.own == person].mean() for person in range(10)]
        assert linked[0, column] == pytest.approx(np.average(each, weights=counts[called]))
        target = np.zeros(trials.scores.shape, bool)
        target[right, np.arange(len(right))] = True
        # Weights are 1/2, 1 or 2: twice as many trials, and nothing but whole numbers.
        targets = np.repeat(trials.scores[right, np.arange(len(right))], 2 * counts[right] // counts[trials.own])
        assert told[0, column] == pytest.approx(
            values(SortedScores.from_arrays(targets, trials.scores[~target]))["d_ece"], abs=1e-12
        )


def test_everybody_may_change_names_where_few_were_tried_or_all_alike() -> None:
    assert chance.name_blocks(np.repeat(np.arange(6), 3), 6) is None
    assert chance.name_blocks(np.array([0, 0, 1]), 6) is None
    assert np.array_equal(chance.name_blocks(np.array([0, 0, 1, 2]), 5), [1, 1, 1, 0, 0])


def test_a_key_that_leaves_nobody_to_exchange() -> None:
    trials = trials_of(0)
    only_own = np.arange(8)[:, None] == trials.own
    assert chance.name_trials(Trials(trials.scores, trials.own, trials.enrolled, 1, only_own)) is None


def test_first_places_with_ties() -> None:
    scores = np.array([[3.0, 1.0, 2.0], [2.0, 1.0, 5.0], [1.0, 0.0, 5.0]])
    assert chance.first_places(scores).tolist() == [0, -1, -1]


def slow_step_down(scores: NDArray[np.float64]) -> list[float]:
    """Westfall and Young 1993, algorithm 2.8 with maxima, as it is written."""
    order = sorted(range(len(scores)), key=lambda row: -scores[row, 0])
    p = {}
    running = 0.0
    for place, row in enumerate(order):
        left = order[place:]
        exceeding = sum(
            max(scores[other, column] for other in left) >= scores[row, 0] for column in range(scores.shape[1])
        )
        running = max(running, exceeding / scores.shape[1])
        p[row] = running
    return [p[row] for row in range(len(scores))]


def test_the_step_down_maximum_test() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.gamma(2.0, size=(7, 60))
    drawn[3, 0] = 30.0
    drawn[5] = 1.0  # a figure that luck can't move
    assert chance.adjust(drawn) == pytest.approx(slow_step_down(chance.normal_scores(drawn)))
    assert chance.adjust(drawn)[3] == pytest.approx(1 / 60)
    assert chance.adjust(drawn)[5] == 1


def test_normal_scores_undo_skewness() -> None:
    rng = np.random.default_rng(1)
    skewed = rng.gamma(1.5, size=(1, 20_000))
    scores = chance.normal_scores(skewed)[0]
    assert np.mean(scores > 1.96) == pytest.approx(0.025, abs=0.006)
    assert (np.diff(scores[np.argsort(skewed[0])]) >= 0).all()


def court(people: int, seed: int, *, leaking: int = 0, d_ece: bool = False) -> list[Relabeled]:
    """Attackers who share people and trials; some people are unprotected."""
    rng = np.random.default_rng(seed)
    voices = rng.standard_normal((people, 24))
    own = np.repeat(np.arange(people), 4)
    spoken = rng.standard_normal((len(own), 24))
    spoken[own < leaking] = voices[own[own < leaking]]
    names = tuple(f"p{n}" for n in range(people))
    found = []
    for number in range(3):
        known = voices + 0.3 * rng.standard_normal(voices.shape)
        two = spoken.reshape(people * 2, 2, 24).mean(axis=1)
        trials = [Trials(known @ spoken.T, own, names, 1), Trials(known @ two.T, own[::2], names, 2)]
        women = [Trials(known[::2] @ spoken[own % 2 == 0].T, own[own % 2 == 0] // 2, names[::2], 1)]
        sizes = {1: (2, 5, 10), 2: (2, 5, 10)}
        groups = {("gender", "f"): women}
        found.append(relabel(f"a{number}", trials, sizes, groups=groups, d_ece=d_ece, draws=99, seed=seed))
    return found


def test_nobody_recognized_is_seldom_called_recognized() -> None:
    """An exact test: at most one in twenty, with 99 draws and 60 worlds at most 9 (99.9 %)."""
    alarms = sum(min(joint_chance(court(12, seed), seed=seed).p_adjusted.values()) <= 0.05 for seed in range(60))
    assert alarms <= 9


def test_a_few_unprotected_people_are_found() -> None:
    joint = joint_chance(court(60, 1, leaking=3, d_ece=True), seed=1)
    assert joint.p_adjusted[FigureKey("a0", "linkability", length=1, speakers=60)] <= 0.05
    assert joint.exposed_p is not None
    assert joint.exposed_p <= 0.05
    assert joint.exposed is not None
    assert joint.exposed < 1
    counts = chance.exposure_draws(court(60, 1, leaking=3, d_ece=True), draws=99, seed=1)[0]
    assert joint.exposed_luck == sum(count >= counts[0] for count in counts) / 100
    assert joint.best_link is not None
    assert 1 / 60 < joint.best_link < 0.1
    assert joint.luck[FigureKey("a0", "linkability", length=1, speakers=60)][0] == pytest.approx(1 / 60, abs=0.005)
    assert FigureKey("a0", "linkability", "gender", "f", 1, 30) in joint.p_adjusted


def test_no_attackers() -> None:
    assert joint_chance([]).p_adjusted == {}


def test_one_unprotected_person_stands_out_where_all_attackers_agree() -> None:
    """Luck would have to fall on one person with every attacker, again and again: only where a relabeling leaves that
    person's name, once in forty, somebody is found as often."""
    drawn = chance.exposure_draws(court(40, 3, leaking=1), draws=99, seed=3)
    kept = chance.relabelings([f"p{n}" for n in range(40)], draws=99, seed=3)[:, 0] == 0
    assert drawn[1, 0] == 1
    assert ((drawn[1, 1:] == 1) == kept).all()


def test_exposed_people_are_counted_as_defined() -> None:
    first, own = np.array([0, 0, 1, 2, 2, 1]), np.array([0, 0, 1, 1, 2, 2])
    names = ("a", "b", "c")
    one = Relabeled((), np.zeros((1, 6)), names, first, own)
    other = Relabeled((), np.zeros((1, 6)), names, np.array([1, 0, 1, 1, 0, 0]), own)
    drawn = chance.exposure_draws([one, other], draws=5, seed=0)
    # By the better attacker a is linked always, b always, c half the time; over both: 0.75, 0.75, 0.25.
    assert drawn[:, 0].tolist() == [2.0, 0.75]
    for column, called in enumerate(chance.relabelings(names, draws=5, seed=0), 1):
        rates = np.array(
            [
                [np.mean(found[own == person] == called[person]) for person in range(3)]
                for found in (one.first, other.first)
            ]
        )
        assert drawn[:, column].tolist() == [(rates.max(axis=0) > 0.5).sum(), rates.mean(axis=0).max()]


def test_a_bound_that_many_draws_reach_is_not_extreme() -> None:
    """One figure is far beyond luck; another one is at its upper end in every tenth draw."""
    crowded = np.repeat([1.9, 0.1, -2.7], [50, 400, 50])
    found = np.concatenate([[0.6], np.random.default_rng(0).normal(0.03, 0.02, 499)])
    assert chance.adjust(np.stack([found, crowded[::-1]]))[0] < 0.01


def test_recordings_that_share_a_voice_are_one_guess() -> None:
    """Person 0 is found three times of three; where person 1 is taken for person 2 three times, that proves nothing."""
    own = np.repeat(np.arange(10), 3)
    scattered = np.array([0, 0, 0, *((own[3:] + np.tile([1, 2, 3], 9)) % 9 + 1)])
    together = np.where(own == 1, 2, scattered)
    enrolled = tuple(f"s{n}" for n in range(10))
    for first, named in ((scattered, 0.0), (together, 1.0)):
        luck = chance.Relabeled(
            (chance.FigureKey("ignorant", "linkability"),), np.zeros((1, 500)), enrolled, first, own
        )
        assert chance.joint_chance([luck]).named["ignorant", "s0"] == named
