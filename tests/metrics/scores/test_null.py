"""Chance with shared speakers: whole cells of trials are permuted, and the null range is wide enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.data.scores import Scores
from veilmeter.metrics import calibration
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.summary import (
    CellRelabeling,
    MatrixRelabeling,
    deal_partners,
    measure,
    null_levels,
    relabeling,
    score_functions,
    values,
)

FUNCTIONS = score_functions()


def numbered(people: int = 6, utterances: int = 3, outsiders: int = 2, mask: np.ndarray | None = None) -> Scores:
    """Scores that say which cell they are of: 1000 x enrolled + 10 x tested + utterance."""
    columns = np.repeat(np.arange(people + outsiders), utterances)
    matrix = 1000 * np.arange(people)[:, None] + 10 * columns + np.tile(np.arange(utterances), people + outsiders)
    return Scores.from_matrix(matrix, [f"p{i}" for i in range(people)], [f"p{i}" for i in columns], mask=mask)


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 7), st.integers(2, 9))
def test_nobody_is_dealt_to_themselves(seed: int, people: int, partners: int) -> None:
    given_to = deal_partners(np.arange(people), np.arange(partners), np.random.default_rng(seed))
    assert len(given_to) == min(people, partners)
    assert len(set(given_to.tolist())) == len(given_to)
    assert all(partner != person for person, partner in enumerate(given_to.tolist()))


def test_everybody_gets_every_other_one_equally_often() -> None:
    rng = np.random.default_rng(0)
    draws = np.array([deal_partners(np.arange(4), np.arange(4), rng) for _ in range(4000)])
    for person in range(4):
        counts = np.bincount(draws[:, person], minlength=4)
        assert counts[person] == 0
        assert abs(np.delete(counts, person) - 4000 / 3).max() < 200


@pytest.mark.parametrize("seed", range(5))
def test_a_draw_is_whole_cells_of_other_speakers(seed: int) -> None:
    scores = numbered()
    way = relabeling(scores)
    assert way is not None
    drawn = np.sort(scores.values[way.draw(np.random.default_rng(seed))]).astype(int)
    assert len(drawn) == 6 * 3
    cells = np.unique(drawn // 10, return_counts=True)
    assert (cells[1] == 3).all()
    enrolled, tested = cells[0] // 100, cells[0] % 100
    assert sorted(enrolled) == list(range(6))
    assert len(set(tested.tolist())) == 6
    assert (enrolled != tested).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("outsiders", [0, 3])
def test_a_matrix_is_dealt_as_its_trials_one_by_one_are(seed: int, outsiders: int) -> None:
    rng = np.random.default_rng(seed)
    enrolled = rng.permutation([f"p{i}" for i in range(9)])
    tried = rng.permutation(np.repeat([f"p{i}" for i in range(1, 9 + outsiders)], rng.integers(1, 4, 8 + outsiders)))
    scores = Scores.from_matrix(rng.normal(size=(len(enrolled), len(tried))), enrolled, tried)
    whole, cells = relabeling(scores), relabeling(replace(scores, grid=None))
    assert isinstance(whole, MatrixRelabeling)
    assert isinstance(cells, CellRelabeling)
    for draw in range(5):
        dealt_rows = [way.draw(np.random.default_rng([seed, draw])) for way in (whole, cells)]
        np.testing.assert_array_equal(*dealt_rows)


def test_trials_within_groups_stay_within_them() -> None:
    """Women against women and men against men, as in the challenges' lists."""
    group = np.arange(8) % 2
    mask = group[:, None] == group[np.repeat(np.arange(8), 3)]
    scores = numbered(8, outsiders=0, mask=mask)
    way = relabeling(scores)
    assert way is not None
    for seed in range(20):
        drawn = scores.values[way.draw(np.random.default_rng(seed))].astype(int) // 10
        assert len(drawn) == 8 * 3
        assert (group[drawn // 100] == group[drawn % 100]).all()


def test_where_people_hardly_meet_others_trials_are_shuffled() -> None:
    scores = numbered(6)
    rng = np.random.default_rng(0)
    thinned = scores.take(np.flatnonzero(scores.is_target | (rng.random(len(scores)) < 0.2)))
    assert relabeling(thinned) is None
    assert relabeling(numbered(3, outsiders=0)) is None
    assert relabeling(Scores.from_arrays([1.0, 2.0], [0.0, 3.0])) is None
    assert null_levels(thinned, FUNCTIONS, draws=5)["d_ece"].mean >= 0


def voices_without_information(rng: np.random.Generator, people: int = 12, utterances: int = 6) -> Scores:
    """Every pair of speakers has a likeness of its own, whoever they are."""
    pair = rng.normal(size=(people, people))
    matrix = np.repeat(pair, utterances, axis=1) + 0.7 * rng.normal(size=(people, people * utterances))
    names = [f"p{i}" for i in range(people)]
    return Scores.from_matrix(matrix, names, np.repeat(names, utterances))


def test_no_information_exceeds_the_null_range_in_five_percent() -> None:
    rng = np.random.default_rng(7)
    worlds, beyond, naive = 150, 0, 0
    for number in range(worlds):
        scores = voices_without_information(rng)
        d_ece = values(SortedScores.from_arrays(scores.targets, scores.impostors))["d_ece"]
        nobody = Scores(scores.values, scores.is_target)
        beyond += d_ece > null_levels(scores, FUNCTIONS, draws=40, seed=number)["d_ece"].range[1]
        naive += d_ece > null_levels(nobody, FUNCTIONS, draws=40, seed=number)["d_ece"].range[1]
    assert beyond / worlds < 0.12
    assert naive / worlds > 0.25  # what shuffling trial by trial would do


def test_a_leak_is_outside_of_the_range() -> None:
    rng = np.random.default_rng(8)
    scores = voices_without_information(rng)
    leaking = Scores(
        scores.values + 2.0 * scores.is_target, scores.is_target, scores.enroll_speaker, scores.test_speaker
    )
    found = measure(leaking, resamples=50)
    for name in ("eer", "d_ece", "min_cllr"):
        assert found[name].inside_null is False


@pytest.mark.parametrize("known", [True, False])
def test_levels_of_many_scores_give_the_same_chance(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    names = np.arange(60).astype(str)
    scores = Scores.from_matrix(rng.normal(size=(60, 240)), names, np.repeat(names, 4))
    if not known:
        scores = Scores.from_arrays(scores.targets, scores.impostors)
    exact = null_levels(scores, FUNCTIONS)
    monkeypatch.setattr(calibration, "MANY", 0)
    monkeypatch.setattr(calibration, "FULLEST", 1e-3)
    binned = null_levels(scores, FUNCTIONS)
    assert exact.keys() == binned.keys()
    assert [binned[name].mean for name in exact] == pytest.approx([exact[name].mean for name in exact], rel=0.01)
