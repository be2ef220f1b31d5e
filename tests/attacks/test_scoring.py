"""Scores of back ends: every pair by one back end, none that heard either person; leaks of low variance are found."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.attacks.backends import LDA, PLDA, Cosine, single
from veilmeter.attacks.backends.base import BACKENDS, shrunk
from veilmeter.attacks.backends.scoring import CrossValidated, Fixed, KaldiFiles, Recipe
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.scores.eer import eer


def speech(people: int, each: int, dimension: int, identity: float, seed: int) -> Embeddings:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(people), each)
    x = identity * rng.standard_normal((people, dimension))[codes] + rng.standard_normal((len(codes), dimension))
    return Embeddings(x, [f"u{row}" for row in range(len(x))], [f"s{code}" for code in codes])


class Constant:
    """A back end that gives every pair its own number."""

    name = "constant"

    def __init__(self, number: float) -> None:
        self.number = number

    def project(self, vectors: np.ndarray) -> np.ndarray:
        return np.asarray(vectors, float)

    def compare(self, enrollment: object, test: object) -> np.ndarray:
        return np.full((len(enrollment), len(test)), self.number)  # type: ignore[arg-type]


@pytest.mark.parametrize("folds", [3, 4, 5])
def test_every_pair_is_scored_by_one_back_end_that_heard_neither(folds: int) -> None:
    material = speech(2 * folds, 2, 4, 1.0, 0)
    fold = {name: number % folds for number, name in enumerate(material.names)}
    pairs = [(a, b) for a in range(folds) for b in range(a + 1, folds)]
    backends = {pair: Constant(float(number)) for number, pair in enumerate(pairs)}
    scores = CrossValidated(backends, fold, folds).matrix(material, material, np.arange(len(material))[:, None])
    for row, person in enumerate(material.names):
        for column, other in enumerate(material.speakers):
            value = scores[row, column]
            assert value == int(value)  # one back end's number, not an average
            assert {fold[person], fold[other]} <= set(pairs[int(value)])


def test_cross_validated_linking_is_at_chance_without_information() -> None:
    """Averages of several back ends for targets only made this 0.0137 where 0.025 is right."""
    values = []
    for seed in range(8):
        material = speech(40, 6, 20, 0.0, seed)
        place = np.arange(len(material)) % 6
        enroll, test = material.take(place < 3), material.take(place >= 3)
        scorer = Recipe("lda", enroll, folds=5, seed=seed).scorer(enroll, test)
        scores = scorer.matrix(enroll, test, np.arange(len(test))[:, None])
        own = scores[test.codes, np.arange(len(test))]
        values.append(float(np.mean((scores >= own).sum(axis=0) == 1)))
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    assert abs(float(np.mean(values)) - 1 / 40) < max(3 * error, 0.008)


def test_a_leak_of_low_variance_is_found() -> None:
    """Six of 64 dimensions hold the speaker at a twentieth of the scale; shrunk towards a multiple of the identity,
    the covariance hides them (EER 45.6 %)."""
    rng = np.random.default_rng(0)

    def leaking(people: int) -> tuple[np.ndarray, np.ndarray]:
        codes = np.repeat(np.arange(people), 5)
        x = rng.standard_normal((len(codes), 64))
        x[:, :6] = 0.05 * (rng.standard_normal((people, 6))[codes] + 0.3 * x[:, :6])
        return x, codes

    train, train_codes = leaking(40)
    test, codes = leaking(40)
    for model, limit in ((LDA.fit(train, train_codes), 20), (PLDA.fit(train, train_codes), 20), (Cosine(), 101)):
        projected = single(model.project(test))
        scores = model.compare(projected, projected)
        same = codes[:, None] == codes[None, :]
        upper = np.triu(np.ones_like(same), 1).astype(bool)
        found = eer(scores[same & upper], scores[~same & upper])
        assert found < limit
    assert found > 40  # a plain cosine does not see it


def test_shrinking_keeps_variances_and_makes_it_invertible() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8, 20)) * np.geomspace(0.01, 1, 20)
    covariance = x.T @ x / 8
    mixed = shrunk(covariance, 8)
    np.testing.assert_allclose(np.diag(mixed), np.diag(covariance), rtol=1e-6)
    assert np.linalg.cond(mixed / np.sqrt(np.outer(np.diag(mixed), np.diag(mixed)))) < 1e3
    np.testing.assert_array_equal(shrunk(np.zeros((3, 3)), 5), np.eye(3))


def test_back_ends_by_name() -> None:
    material = speech(8, 4, 5, 1.0, 2)
    assert list(BACKENDS)[:4] == ["cosine", "centered-cosine", "lda", "plda"]
    for name in BACKENDS:
        kind = BACKENDS[name]
        assert kind.about
        recipe = Recipe(name, material if kind.needs_training else None)
        scorer = recipe.scorer(material, material)
        assert scorer.matrix(material, material, np.arange(32)[:, None]).shape == (8, 32)
        if kind.needs_training:
            with pytest.raises(InputError, match=f"the back end {name} needs training speech"):
                Recipe(name).scorer(material, material)
    with pytest.raises(InputError, match="did you mean 'plda'"):
        Recipe("pldaa").scorer(material, material)
    assert isinstance(Recipe().scorer(material, material), Fixed)
    assert KaldiFiles.of(None) is None


def test_too_few_people_for_cross_validation() -> None:
    few = speech(5, 3, 4, 1.0, 3)
    with pytest.raises(InputError, match="by cross-validation on 5 speakers"):
        Recipe("lda", few, folds=3).scorer(few, few)
