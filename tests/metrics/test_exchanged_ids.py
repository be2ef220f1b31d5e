"""Recordings under the ids of other people's recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.exchanged_ids import duration_correlation, exchanged_ids

EACH, DIMENSION = 5, 40


class Voices:
    """Original recordings of some people, and what anonymizers make of them."""

    def __init__(self, people: int, seed: int) -> None:
        self.rng = np.random.default_rng([seed, people])
        self.own = np.repeat(np.arange(people), EACH)
        self.original = self.per_person(people) + 0.6 * self.noise()

    def noise(self) -> NDArray[np.float64]:
        return self.rng.standard_normal((len(self.own), DIMENSION))

    def per_person(self, number: int) -> NDArray[np.float64]:
        """One of so many voices for each person."""
        return self.rng.standard_normal((number, DIMENSION))[self.own % number]

    def kept(self, share: float = 0.7) -> NDArray[np.float64]:
        return share * self.original + self.noise()

    def side(self, vectors: NDArray[np.float64]) -> Embeddings:
        return Embeddings(vectors, [f"u{row}" for row in range(len(vectors))], [f"s{person}" for person in self.own])

    def p(self, released: NDArray[np.float64], *runs: NDArray[np.float64]) -> float:
        found = exchanged_ids([self.side(rows) for rows in (self.original, *runs)], self.side(released), self.genders)
        assert found is not None
        return found

    @property
    def genders(self) -> Sequence[dict[str, str]]:
        return [{f"s{person}": "fm"[person % 2] for person in self.own}]

    def other_people(self, step: int = 2) -> NDArray[np.int64]:
        """Everybody's recordings under the ids of somebody else, here of the same gender."""
        return np.roll(np.arange(len(self.own)), step * EACH)


@pytest.mark.parametrize("people", [20, 60])
def test_ids_that_are_mixed_up_are_noticed(people: int) -> None:
    voices = Voices(people, 1)
    released = voices.kept()
    everything = voices.rng.permutation(len(released))
    assert voices.p(released) == 1.0
    assert voices.p(released[everything]) < 0.001
    assert voices.p(released[voices.other_people()]) < 0.001
    half = np.arange(len(released))
    half[::2] = voices.rng.permutation(half[::2])
    assert voices.p(1.5 * voices.original[half] + voices.noise()) < 0.001


def test_a_leak_that_only_a_run_shows_is_noticed_by_the_run() -> None:
    voices = Voices(30, 2)
    turn = np.linalg.qr(voices.rng.standard_normal((DIMENSION, DIMENSION)))[0]
    released, run = (voices.original @ turn + 0.1 * voices.noise() for _ in range(2))
    exchanged = released[voices.rng.permutation(len(released))]
    assert voices.p(released, run) > 0.01
    assert voices.p(exchanged) > 0.01
    assert voices.p(exchanged, run) < 0.001
    assert voices.p(released, run[voices.other_people(1)]) < 0.001


SAFE: dict[str, Callable[[Voices], NDArray[np.float64]]] = {
    "noise": Voices.noise,
    "new voices": lambda voices: voices.per_person(int(voices.own.max()) + 1) + 0.6 * voices.noise(),
    "five target voices": lambda voices: voices.per_person(5) + 0.2 * voices.noise(),
    "the gender": lambda voices: voices.per_person(2) + voices.noise(),
    "an accent of four people": lambda voices: voices.per_person((int(voices.own.max()) + 1) // 4) + voices.noise(),
    "one voice": lambda voices: voices.rng.standard_normal(DIMENSION) + 0.1 * voices.noise(),
    "a faint leak": lambda voices: voices.kept(0.2),
}


@pytest.mark.parametrize("safe", SAFE)
def test_right_ids_are_not_called_wrong(safe: str) -> None:
    for seed in range(12):
        voices = Voices((10, 24, 60)[seed % 3], 100 + seed)
        released, run = (SAFE[safe](voices) for _ in range(2))
        assert voices.p(released, run) >= 0.001


def test_equal_chances_give_small_values_seldom() -> None:
    """Where all originals are equally likely, the value is a probability; elsewhere it is larger."""
    found = [voices.p(voices.noise()) for voices in (Voices(30, 500 + seed) for seed in range(100))]
    assert sum(p < 0.1 for p in found) <= 20


def test_of_too_few_people_or_of_other_vectors_nothing_is_known() -> None:
    few, voices = Voices(5, 1), Voices(20, 1)
    assert exchanged_ids([few.side(few.original)], few.side(few.noise())) is None
    assert exchanged_ids([voices.side(voices.original)], voices.side(voices.noise()[:, :12])) is None


def test_an_attribute_that_leaves_one_other_person_explains_the_match() -> None:
    voices = Voices(60, 2)
    pairs = voices.rng.standard_normal((30, DIMENSION))[voices.own // 2]
    released, original = (voices.side(rows) for rows in (pairs + 0.5 * voices.noise(), pairs + 0.5 * voices.noise()))
    accents = {f"s{person}": str(person // 2) for person in voices.own}
    explained, unexplained = (exchanged_ids([original], released, groups) for groups in ([accents], []))
    assert explained is not None
    assert explained > 0.01
    assert unexplained is not None
    assert unexplained < 0.001


def timed(seconds: NDArray[np.float64]) -> Embeddings:
    ids = [str(row) for row in range(len(seconds))]
    return Embeddings(np.ones((len(seconds), 2)), ids, ids, durations=seconds)


def test_durations_agree_under_the_right_ids_only() -> None:
    rng = np.random.default_rng(0)
    seconds = rng.uniform(2, 12, 60)
    slower = 1.2 * seconds * rng.uniform(0.9, 1.1, 60)
    right = duration_correlation(timed(seconds), timed(slower))
    wrong = duration_correlation(timed(seconds), timed(rng.permutation(slower)))
    assert right is not None
    assert right[0] > 0.9
    assert right[1] < 1e-6
    assert wrong is not None
    assert wrong[1] > 0.01
    assert duration_correlation(timed(seconds), timed(np.full(60, 3.0))) is None
    assert duration_correlation(timed(seconds[:10]), timed(slower[:10])) is None
