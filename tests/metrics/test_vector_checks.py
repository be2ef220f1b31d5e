"""Recordings that are the same, and vectors whose lengths tell who speaks."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics import vector_checks
from veilmeter.metrics.vector_checks import (
    copies,
    find_unchanged,
    length_correlation,
    released_copies,
    repeated_draws,
    run_difference,
)

PEOPLE, EACH = 12, 4


def voices(seed: int = 0, *, dimension: int = 32, noise: float = 0.5) -> Embeddings:
    rng = np.random.default_rng(seed)
    own = np.repeat(np.arange(PEOPLE), EACH)
    vectors = rng.standard_normal((PEOPLE, dimension))[own] + noise * rng.standard_normal((len(own), dimension))
    return Embeddings(vectors, [f"u{n}" for n in range(len(own))], [f"s{n:02d}" for n in own])


def changed(side: Embeddings, rows: list[int], by: float, seed: int = 1) -> Embeddings:
    """These rows moved by so much noise, all others replaced by noise."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal(side.vectors.shape)
    vectors[rows] = side.vectors[rows] + by * rng.standard_normal((len(rows), side.dimension))
    return side.with_vectors(vectors)


def test_unchanged_recordings_are_found_whatever_their_level() -> None:
    original = voices()
    released = changed(original, [3, 7], 0.0)
    assert find_unchanged(original, released.with_vectors(0.8 * released.vectors)) == pytest.approx(
        np.isin(np.arange(len(original)), [3, 7])
    )
    assert np.flatnonzero(find_unchanged(original, changed(original, [5], 0.01))).tolist() == [5]
    # Another recording of the same speaker is not the same recording.
    other = np.roll(np.arange(len(original)).reshape(PEOPLE, EACH), 1, axis=1).ravel()
    assert not np.any(find_unchanged(original, original.with_vectors(original.vectors[other])))
    assert find_unchanged(original, voices(dimension=16)) is None


def test_voices_that_hardly_vary_are_no_copies_of_each_other() -> None:
    close = voices(noise=0.01)
    first, second = close.take(np.arange(len(close)) % 2 == 0), close.take(np.arange(len(close)) % 2 == 1)
    assert not copies(first, second).any()


@pytest.mark.parametrize("most", [10**9, 0])
def test_copies_in_enrollment_and_trials(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_checks, "MOST_PAIRS", most)
    side = voices()
    vectors = side.vectors.copy()
    vectors[1], vectors[9] = vectors[0], vectors[8] * 1.3
    side = side.with_vectors(vectors)
    even = np.arange(len(side)) % 2 == 0
    found = copies(side.take(even), side.take(~even))
    assert side.take(~even).utterances[found].tolist() == ["u1", "u9"]


def test_a_copy_under_another_persons_name_is_found() -> None:
    side = voices()
    vectors = side.vectors.copy()
    vectors[-1] = vectors[0]
    assert side.speakers[-1] != side.speakers[0]
    side = side.with_vectors(vectors)
    first = np.arange(len(side)) < len(side) // 2
    assert np.flatnonzero(copies(side.take(first), side.take(~first))).tolist() == [(~first).sum() - 1]


def test_lengths_that_tell_who_speaks() -> None:
    rng = np.random.default_rng(3)
    side = voices()
    length = np.exp(rng.standard_normal(PEOPLE))[side.codes]
    told = side.with_vectors(rng.standard_normal(side.vectors.shape) * length[:, None])
    even = np.arange(len(side)) % 2 == 0
    correlation, p = length_correlation(told.take(even), told.take(~even)) or (0.0, 1.0)
    assert correlation > 0.8
    assert p < 0.01
    assert length_correlation(side.with_vectors(side.unit).take(even), told.take(~even)) is None
    few = told.codes < 4
    assert length_correlation(told.take(even & few), told.take(~even & few)) is None


def test_lengths_without_information_are_seldom_called_telling() -> None:
    rng = np.random.default_rng(4)
    side = voices()
    even = np.arange(len(side)) % 2 == 0
    alarms = 0
    for _ in range(200):
        noise = side.with_vectors(rng.standard_normal(side.vectors.shape))
        _, p = length_correlation(noise.take(even), noise.take(~even)) or (0.0, 1.0)
        alarms += p < 0.05
    assert alarms <= 20


def test_a_pseudo_voice_that_never_varies_is_no_copy() -> None:
    names = np.repeat([f"s{person}" for person in range(8)], 4).tolist()
    ids = [str(row) for row in range(len(names))]
    rng = np.random.default_rng(0)
    first = np.arange(len(names)) % 4 < 2
    vary = Embeddings(rng.standard_normal((len(names), 16)), ids, names)
    same = vary.with_vectors(np.repeat(rng.standard_normal((8, 16)), 4, axis=0))
    twice = vary.vectors.copy()
    twice[~first] = twice[first]
    assert not released_copies(vary.take(first), vary.take(~first)).any()
    assert not released_copies(same.take(first), same.take(~first)).any()
    doubled = vary.with_vectors(twice)
    assert released_copies(doubled.take(first), doubled.take(~first)).all()


@pytest.mark.parametrize(("draws", "expected"), [(50, 50), (0, None), (1, None)])
def test_draws_that_repeat_are_seen(draws: int, expected: int | None) -> None:
    """Rotations drawn per recording: from 50, never the same twice, and one for all."""
    rng = np.random.default_rng(0)
    names = np.repeat([f"s{person}" for person in range(40)], 4).tolist()
    ids = [str(row) for row in range(len(names))]
    original = Embeddings(rng.standard_normal((len(names), 24)), ids, names)
    turns = np.linalg.qr(rng.standard_normal((draws or 2 * len(names), 24, 24)))[0]

    def run(number: int) -> Embeddings:
        fresh = np.arange(len(names)) + number * len(names)
        chosen = rng.integers(0, draws, len(names)) if draws else fresh
        return original.with_vectors(np.einsum("ni,nij->nj", original.vectors, turns[chosen]))

    found = repeated_draws(original, [run(0), run(1)])
    assert found is not None
    assert found.size == (None if expected is None else pytest.approx(expected, rel=0.3))


def test_recordings_that_two_runs_make_the_same() -> None:
    """Any transformation, with some noise: seen where one recording gets the same draw twice."""
    rng = np.random.default_rng(0)
    names = np.repeat([f"s{person}" for person in range(40)], 4).tolist()
    original = Embeddings(rng.standard_normal((len(names), 24)), [str(row) for row in range(len(names))], names)
    maps = rng.standard_normal((20, 24, 24))

    def run() -> Embeddings:
        drawn = np.tanh(np.einsum("ni,nij->nj", original.vectors, maps[rng.integers(0, 20, len(names))]))
        return original.with_vectors(drawn + 0.05 * rng.standard_normal(drawn.shape))

    found = repeated_draws(original, [run(), run()])
    assert found is not None
    assert found.size == pytest.approx(20, rel=0.6)


def test_one_noisy_transformation_for_all_is_not_a_repeated_draw() -> None:
    rng = np.random.default_rng(0)
    names = np.repeat([f"s{person}" for person in range(45)], 6).tolist()
    original = Embeddings(rng.standard_normal((len(names), 32)), [str(row) for row in range(len(names))], names)
    turn = np.linalg.qr(rng.standard_normal((32, 32)))[0]
    run = original.with_vectors(original.vectors @ turn + 0.11 * rng.standard_normal(original.vectors.shape))
    found = repeated_draws(original, [run, run])
    assert found is not None
    assert found.size is None


def test_recordings_let_through_by_two_runs_are_not_a_repeated_draw() -> None:
    rng = np.random.default_rng(0)
    names = np.repeat([f"s{person}" for person in range(20)], 6).tolist()
    original = Embeddings(rng.standard_normal((len(names), 48)), [str(row) for row in range(len(names))], names)

    def run() -> Embeddings:
        changed = rng.standard_normal(original.vectors.shape)
        changed[:6] = original.vectors[:6] + 0.1 * rng.standard_normal((6, 48))
        return original.with_vectors(changed)

    found = repeated_draws(original, [run(), run()])
    assert found is not None
    assert found.size is None
    assert found.p > 0.05


def _voices(rng: np.random.Generator, people: int = 40, recordings: int = 6, dimension: int = 48) -> Embeddings:
    own = np.repeat(np.arange(people), recordings)
    rows = rng.standard_normal((people, dimension))[own] + 0.6 * rng.standard_normal((len(own), dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Embeddings(rows, [str(row) for row in range(len(own))], [f"s{person}" for person in own])


def _share_noticed(draws: int, seeds: int) -> float:
    """Of worlds in which each recording gets one of so many rotations, and noise a third as large as itself (without
    draws: noise alone), those in which likeness is kept too often for chance."""
    noticed = 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, draws])
        original = _voices(rng)
        turns = np.linalg.qr(rng.standard_normal((max(draws, 1), 48, 48)))[0]

        def run(rng: np.random.Generator, original: Embeddings, turns: np.ndarray) -> Embeddings:
            noise = rng.standard_normal(original.vectors.shape)
            if not draws:
                return original.with_vectors(noise)
            drawn = turns[rng.integers(0, draws, len(original))]
            return original.with_vectors(np.einsum("ni,nij->nj", original.vectors, drawn) + 0.05 * noise)

        found = repeated_draws(original, [run(rng, original, turns) for _ in range(2)], seed=seed)
        assert found is not None
        assert found.size is None  # no exact traces
        assert found.noticed == 880  # 2,640 pairs of one person's copies, of which three share a draw
        noticed += found.p < 0.05
    return noticed / seeds


def test_noisy_draws_from_a_finite_set_are_noticed() -> None:
    assert _share_noticed(300, 6) == 1
    assert _share_noticed(880, 10) >= 0.7


def test_copies_that_tell_nothing_are_hardly_ever_taken_for_repeated_draws() -> None:
    assert _share_noticed(0, 30) <= 0.15


def test_a_recording_that_is_there_twice_is_not_a_repeated_draw() -> None:
    """Of every person one recording is there under two ids, before and after a perfect anonymizer."""
    rng = np.random.default_rng(3)
    original = _voices(rng)
    rows, noise = original.vectors.copy(), rng.standard_normal(original.vectors.shape)
    rows[5::6], noise[5::6] = rows[::6], noise[::6]
    found = repeated_draws(original.with_vectors(rows), [original.with_vectors(noise)])
    assert found is not None
    assert found.p > 0.05


@pytest.mark.parametrize("sharing", [1, 2])
def test_runs_in_which_people_share_new_voices_are_runs_of_one_anonymizer(sharing: int) -> None:
    small = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        original = _voices(rng, 60)
        place = original.codes // sharing
        runs = [
            original.with_vectors(rng.standard_normal((60, 48))[place] + 0.6 * rng.standard_normal((360, 48)))
            for _ in range(2)
        ]
        p = run_difference(original, *runs, seed=seed)
        assert p is not None
        small += p < 0.01
    assert small <= 1


def test_a_release_whose_ids_are_mixed_up_is_unlike_a_run() -> None:
    """Each person has one new voice per run, which no original recording shows."""
    rng = np.random.default_rng(3)
    original = _voices(rng, 30)
    release, run = (
        rng.standard_normal((30, 48))[original.codes] + 0.6 * rng.standard_normal((180, 48)) for _ in range(2)
    )
    exchanged = [run_difference(original, *map(original.with_vectors, (rng.permutation(release), run)))]
    exchanged.append(run_difference(original, *map(original.with_vectors, (release, run))))
    assert exchanged[0] is not None
    assert exchanged[0] < 0.01
    assert exchanged[1] is not None
    assert exchanged[1] > 0.01
