"""Leaks that no affine method sees: found where they are, and nothing found where there is nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from tests.attacks.adaptive.worlds import linked

from veilmeter.attacks.adaptive.nonlinear import search_phases, search_signs
from veilmeter.attacks.attacker import ATTACKERS, perform
from veilmeter.attacks.material import AttackerRun, Material
from veilmeter.data.embeddings import Embeddings

PEOPLE, EACH, DIMENSION = 30, 6, 24
Rng = np.random.Generator
Leak = Callable[[np.ndarray, np.ndarray, np.ndarray, Rng], np.ndarray]


def phases(voices: np.ndarray, own: np.ndarray, drawn: np.ndarray, rng: Rng) -> np.ndarray:
    noise = rng.random((len(own), DIMENSION // 2))
    return np.concatenate([noise, (5 * noise + drawn[own, : DIMENSION // 2]) % 1], axis=1)


def one_phase(voices: np.ndarray, own: np.ndarray, drawn: np.ndarray, rng: Rng) -> np.ndarray:
    noise = rng.random((len(own), DIMENSION))
    noise[:, 7] = (5 * noise[:, 3] + drawn[own, 0]) % 1
    return noise


def parities(voices: np.ndarray, own: np.ndarray, drawn: np.ndarray, rng: Rng) -> np.ndarray:
    noise = rng.standard_normal((len(own), DIMENSION))
    wanted = np.where(drawn[own, : DIMENSION // 4] < 0.5, -1, 1)
    noise[:, ::4] *= np.sign(noise).reshape(len(own), -1, 4).prod(axis=2) * wanted
    return noise


def mirrored_at_random(voices: np.ndarray, own: np.ndarray, drawn: np.ndarray, rng: Rng) -> np.ndarray:
    return np.abs(voices) * rng.choice([-1, 1], voices.shape)


def perfect(voices: np.ndarray, own: np.ndarray, drawn: np.ndarray, rng: Rng) -> np.ndarray:
    return rng.standard_normal(voices.shape)


def attack(leak: Leak, *methods: str, seed: int = 0) -> tuple[float, dict[str, float]]:
    """The share linked, and the weights."""
    rng = np.random.default_rng([seed, 4])
    own = np.repeat(np.arange(PEOPLE), EACH)
    voices = rng.standard_normal((PEOPLE, DIMENSION))[own] + 0.5 * rng.standard_normal((len(own), DIMENSION))
    drawn = rng.random((PEOPLE, DIMENSION))
    ids = [f"s{person:02}-{row}" for row, person in enumerate(own)]
    names = [f"s{person:02}" for person in own]
    known = np.arange(len(own)) % EACH < EACH // 2
    original, release, run = (
        Embeddings(rows, ids, names) for rows in (voices, *(leak(voices, own, drawn, rng) for _ in range(2)))
    )
    material = Material(
        candidates=original.take(known),
        trials=release.take(~known).vectors,
        conversations=(np.arange(np.count_nonzero(~known))[:, None],),
        runs=(AttackerRun(vectors=run.take(known), draw="utterance", certain=True),),
    )
    outcome = perform(ATTACKERS["adaptive"], material)
    return linked(outcome.scores, own[~known]), outcome.details["weights"]


@pytest.mark.parametrize(
    ("leak", "method", "least"),
    [
        (phases, "interactions", 0.95),
        (one_phase, "interactions", 0.6),
        (parities, "interactions", 0.6),
        (mirrored_at_random, "kernel", 0.5),
    ],
)
def test_what_no_affine_method_sees_is_found(leak: Leak, method: str, least: float) -> None:
    found, weights = attack(leak)
    assert found > least
    assert any(name.startswith(method) and weight > 0.5 for name, weight in weights.items())


def test_nothing_is_found_where_there_is_nothing() -> None:
    shares, weights = zip(*(attack(perfect, seed=seed) for seed in range(4)), strict=True)
    assert np.mean(shares) < 2.5 / PEOPLE  # chance is 1 / PEOPLE
    # A method that fits chance would cost where there is something else to find.
    used = [name for of_seed in weights for name in of_seed if name.startswith(("kernel", "interactions"))]
    assert len(used) <= 1


def test_signs_of_products_are_counted_as_one_would() -> None:
    rng = np.random.default_rng(0)
    x, pairs = rng.standard_normal((60, 7)), 30
    first, second = np.arange(pairs), np.arange(pairs, 2 * pairs)
    x[second, 2] = np.abs(x[second, 2]) * np.sign(x[first][:, [0, 2, 3, 6]].prod(1) * x[second][:, [0, 3, 6]].prod(1))
    expected = {}
    for size in range(1, 5):
        for chosen in combinations(range(7), size):
            agree = np.sign(x[first][:, chosen].prod(axis=1) * x[second][:, chosen].prod(axis=1))
            if agree.sum() / np.sqrt(pairs) > 4:
                expected[chosen] = agree.sum() / np.sqrt(pairs)
    found = {tuple(rows.tolist()): above for above, (rows, _) in search_signs(x, first, second)}
    assert found == pytest.approx(expected)
    assert (0, 2, 3, 6) in found


def test_phases_are_refined() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 5))
    first, second = np.arange(100), np.arange(100, 200)
    person = rng.random(100)
    x[:, 1] = (2.345 * x[:, 4] + np.concatenate([person, person])) % 1
    above, (rows, turns) = max(search_phases(x, first, second), key=lambda entry: entry[0])
    assert rows.tolist() == [4, 1]
    assert above > 0.99 * np.sqrt(2 * 100)
    assert turns is not None
    multiple = round(turns[1])
    np.testing.assert_allclose(turns, [-2.345 * multiple, multiple], rtol=0.01)
