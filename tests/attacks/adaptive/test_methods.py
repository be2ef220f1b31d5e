"""Methods, splits, fusion and the test of draws against slow, plain definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from tests.attacks.adaptive.worlds import World

from veilmeter.attacks.adaptive.draws import EACH_DRAW
from veilmeter.attacks.adaptive.families import FAMILIES
from veilmeter.attacks.adaptive.fitting import fit_adaptive
from veilmeter.attacks.adaptive.fusion import cross_entropy, fit_weights, least_loss, log_odds, log_softmax
from veilmeter.attacks.adaptive.own_data import (
    OwnData,
    draw_level,
    folds_of,
    own_data,
    resolve_draws,
    speaker_splits,
    splits,
)
from veilmeter.attacks.adaptive.training import TrainingSet, make_training
from veilmeter.attacks.material import AttackerRun, OtherPeople


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return unit(a) @ unit(b).T


def standardize(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean(1, keepdims=True)) / scores.std(1, keepdims=True)


def prepared(people: int = 7, dimension: int = 6, **world: float) -> tuple[TrainingSet, OwnData, np.ndarray]:
    material, _ = World(people=people, dimension=dimension, **world).material(("utterance", "utterance"))  # type: ignore[arg-type]
    data = own_data(material)
    everything = np.ones(len(data.labels), bool)
    training = make_training(data, data.views[0], everything, everything, (0, 1))
    return training, data, training.space.apply(material.trials.astype(float))


def slow_ridge(x: np.ndarray, targets: np.ndarray, strength: float) -> np.ndarray:
    return np.linalg.inv(x.T @ x + strength * np.eye(x.shape[1])) @ x.T @ targets


def slow_two_view(t: TrainingSet, trials: np.ndarray, parameters: tuple[float, ...]) -> np.ndarray:
    """METHODS' formula by the letter: cosines in the whitened span of the class means."""
    share, strength, kept, shrinkage = parameters
    means = np.stack([t.x[t.labels == k].mean(0) for k in range(t.candidates)])
    center = means.mean(0)
    gram = t.mu @ t.mu.T
    n = t.candidates
    predicted = gram @ np.linalg.inv(gram + strength * np.trace(gram) / n * np.eye(n)) @ (means - center)
    rest = means - center - predicted
    within = sum(np.outer(x - means[k], x - means[k]) for x, k in zip(t.x, t.labels, strict=True)) / len(t.x)
    if t.within is not None:
        within = (1 - share) * within + share * t.within
    covariance = within + (1 - kept) * rest.T @ rest / n + 1e-3 * np.mean((t.x - center) ** 2) * np.eye(len(within))
    target = (
        np.diag(np.diag(covariance))
        if shrinkage < 0
        else np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    )
    covariance = (1 - abs(shrinkage)) * covariance + abs(shrinkage) * target
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    models = (predicted + kept * rest) @ whiten.T
    seen = (trials - center) @ whiten.T
    basis = np.linalg.svd(models, full_matrices=False)[2][: np.linalg.matrix_rank(models)]
    return cosine(seen @ basis.T, models @ basis.T)


@pytest.mark.parametrize("dimension", [6, 40])
@pytest.mark.parametrize("others", [0, 30])
def test_methods_are_what_they_say(dimension: int, others: int) -> None:
    t, _, trials = prepared(dimension=dimension, others=others)
    one_hot = np.eye(t.candidates)[t.labels]
    means = np.stack([t.x[t.labels == k].mean(0) for k in range(t.candidates)])
    expected = {
        ("lazy", ()): cosine(trials, means),
        ("ignorant", ()): cosine(trials, t.mu),
        ("ridge", (0.3,)): trials @ slow_ridge(t.x, one_hot, 0.3),
        ("ridge-to-mean", (3.0,)): cosine(trials @ slow_ridge(t.x, t.mu[t.labels], 3.0), t.mu),
    }
    expected |= {
        ("two-view-lda", parameters): slow_two_view(t, trials, parameters)
        for parameters in FAMILIES["two-view-lda"].grid[:: 7 if others else 5]
        if others or parameters[0] == 0
    }
    if others:
        assert t.pairs_x is not None
        assert t.pairs_y is not None
        x = np.concatenate([np.sqrt(3) * t.x, t.pairs_x])
        y = np.concatenate([np.sqrt(3) * t.mu[t.labels], t.pairs_y])
        expected["pooled-ridge", (3.0, 1.0)] = cosine(trials @ slow_ridge(x, y, 1.0), t.mu)
    for (name, parameters), scores in expected.items():
        ((_, scorer),) = FAMILIES[name].fit(t, [parameters])
        np.testing.assert_allclose(standardize(scorer.scores(trials).astype(float)), standardize(scores), atol=2e-3)


def test_softmax_regression_is_at_its_minimum() -> None:
    from veilmeter.attacks.adaptive.methods import SCALE, regression

    t, _, _ = prepared(people=4)
    weights, offset = regression(t.x, t.labels, 4, 1e-2)

    def loss(w: np.ndarray, b: np.ndarray) -> float:
        posteriors = log_softmax(t.x @ w + b)
        penalty = np.sum((w / SCALE) ** 2) + np.sum((b / (0.1 * SCALE)) ** 2)
        return float(-posteriors[np.arange(len(t.x)), t.labels].mean() + 1e-2 * penalty)

    best = loss(weights, offset)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert best <= loss(weights + 0.3 * rng.standard_normal(weights.shape), offset) + 1e-6
        assert best <= loss(weights, offset + 0.1 * rng.standard_normal(4)) + 1e-6


@given(
    counts=st.lists(st.integers(1, 7), min_size=2, max_size=6),
    draws=st.lists(st.sampled_from(["utterance", "speaker"]), min_size=1, max_size=3),
    missing=st.integers(0, 2**16),
)
@settings(max_examples=60, deadline=None)
def test_what_is_tested_was_not_trained_on(counts: list[int], draws: list[str], missing: int) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    rng = np.random.default_rng(missing)
    present = rng.random((len(draws), len(labels))) < 0.8
    data = OwnData(len(counts), labels, tuple(draws), present, np.full(present.shape, -1), ())  # type: ignore[arg-type]
    several = np.bincount(labels)[labels] > 1
    for split in splits(data):
        for run, rows in split.tests:
            assert present[run, rows].all()
            if several.any():
                assert not split.train[rows].any()  # the utterance leaves every run and the originals' means
                assert not split.copied[rows].any()
            if draws[run] == "speaker" or not several.any():
                assert run not in split.train_runs  # its draws are those of the whole run
    for split in speaker_splits(data):
        tested = np.unique(np.concatenate([labels[rows] for _, rows in split.tests]))
        assert not np.isin(labels[split.copied], tested).any()
        for _, rows in split.tests:
            assert not split.train[rows[several[rows]]].any()


def test_one_run_with_one_draw_each_is_never_cross_validated() -> None:
    data = OwnData(3, np.repeat(np.arange(3), 4), ("speaker",), np.ones((1, 12), bool), np.full((1, 12), -1), ())
    assert list(splits(data)) == []
    material, _ = World(people=6).material(("speaker",))
    validation = fit_adaptive(own_data(material)).validation
    assert validation is not None
    assert validation.held == "people"


def test_where_others_teach_everything_nobody_is_trained_on() -> None:
    material, _ = World(people=6, others=20).material(("speaker",))
    data = own_data(material)
    held = list(speaker_splits(data))
    assert not any(split.copied[data.labels == person].any() for split in held for person in range(6))
    assert sorted(np.concatenate([rows for split in held for _, rows in split.tests])) == list(range(24))
    fitted = fit_adaptive(data)
    assert fitted.validation is not None
    assert {name.split(" ")[0] for name in fitted.validation.methods} == {"ignorant", "pooled-ridge"}


def test_every_method_has_a_default_that_can_be_fitted() -> None:
    # With one recording of each other person there is no covariance within them.
    material, _ = World(people=6, others=20).material(("speaker",))
    assert material.others is not None
    first = material.others.originals.take(np.arange(40) % 2 == 0)
    single = OtherPeople(originals=first, runs=material.others.runs[:1])
    data = own_data(replace(material, others=single))
    assert data.views[0].others is not None
    for name, family in FAMILIES.items():
        if name == EACH_DRAW.name:  # no draw is named here
            continue
        members = fit_adaptive(data, [name]).members
        assert len(members) == max(1, len(family.defaults) if not family.transfers else 1), name


def test_folds_are_contiguous() -> None:
    fold = folds_of(np.array([1, 0, 1, 1, 0, 1, 1, 1, 2]))
    assert fold.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, -1]


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_weights_have_the_least_cross_entropy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 60)
    useful = rng.standard_normal((60, 4)) + 1.5 * np.eye(4)[labels]
    useless = rng.standard_normal((60, 4))
    misleading = -useful + rng.standard_normal((60, 4))
    methods = [scores.astype(np.float32) for scores in (useful, useless, misleading)]
    weights, loss = fit_weights(methods, labels)
    assert (weights >= 0).all()
    for other in rng.uniform(0, 3, (30, 3)):
        assert loss <= cross_entropy(other, methods, labels, 1e-3)[0] + 1e-4
    found = minimize_scalar(
        lambda w: cross_entropy(np.array([w]), methods[:1], labels, 1e-3)[0], bounds=(0, 50), method="bounded"
    )
    assert least_loss(methods[0], labels) == pytest.approx(found.fun, abs=2e-3)


@given(st.integers(0, 10_000), st.integers(2, 9))
@settings(max_examples=25, deadline=None)
def test_log_odds(seed: int, n: int) -> None:
    logits = 4 * np.random.default_rng(seed).standard_normal((5, n))
    posterior = np.exp(log_softmax(logits))
    np.testing.assert_allclose(
        log_odds(logits), np.log(posterior / (1 - posterior)) + np.log(n - 1), rtol=1e-6, atol=1e-8
    )


class TestDraws:
    @pytest.mark.parametrize("kept", [0.0, 0.4, 1.0])
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("draw", ["utterance", "speaker"])
    def test_two_runs_tell_what_a_draw_covers(self, kept: float, seed: int, draw: str) -> None:
        material, _ = World(people=15, kept=kept, seed=seed).material((draw, draw))  # type: ignore[arg-type]
        runs = [run.vectors for run in material.runs]
        assert draw_level(material.candidates, runs[0], runs[1:]).level == draw

    @pytest.mark.parametrize("seed", range(3))
    def test_of_two_runs_the_right_one_is_found(self, seed: int) -> None:
        material, _ = World(people=15, kept=0.3, seed=seed).material(("utterance", "speaker"))
        first, second = (run.vectors for run in material.runs)
        assert draw_level(material.candidates, first, [second]).level == "utterance"
        assert draw_level(material.candidates, second, [first]).level == "speaker"

    @pytest.mark.parametrize("kept", [0.0, 0.4])
    @pytest.mark.parametrize("draw", ["utterance", "speaker"])
    def test_one_run_alone(self, kept: float, draw: str) -> None:
        levels = []
        for seed in range(5):
            material, _ = World(people=20, kept=kept, seed=seed).material((draw,))  # type: ignore[arg-type]
            levels.append(draw_level(material.candidates, material.runs[0].vectors).level)
        assert levels.count(draw) >= 4

    def test_runs_without_any_draw(self) -> None:
        material, _ = World(people=6).material()
        run = material.runs[0].vectors
        assert draw_level(material.candidates, run, [run]).level == "utterance"

    def test_one_recording_each(self) -> None:
        material, _ = World(people=6, each=1).material()
        assert draw_level(material.candidates, material.runs[0].vectors).level == "unknown"

    @pytest.mark.parametrize("runs", [1, 2])
    def test_a_wrong_flag_does_not_ruin_the_choice(self, runs: int) -> None:
        material, _ = World(people=15, kept=0.3).material(("speaker",) * runs)
        wrong = tuple(replace(run, draw="utterance", name=f"run {i}") for i, run in enumerate(material.runs))
        levels, findings = resolve_draws(replace(material, runs=wrong))
        assert levels == ("speaker",) * runs
        assert len(findings) == runs
        assert findings[0].code == "draw_taken_per_speaker"
        recorded = tuple(replace(run, certain=True) for run in wrong)
        assert resolve_draws(replace(material, runs=recorded)) == (("utterance",) * runs, [])
        silent = tuple(AttackerRun(vectors=run.vectors) for run in material.runs)
        levels, findings = resolve_draws(replace(material, runs=silent))
        assert levels == ("speaker",) * runs
        assert findings[0].code == "draw_unknown"

    def test_a_flag_that_is_too_careful_is_kept_and_said(self) -> None:
        material, _ = World(people=15, kept=0.3).material(("utterance", "utterance"))
        careful = tuple(replace(run, draw="speaker") for run in material.runs)
        levels, findings = resolve_draws(replace(material, runs=careful))
        assert levels == ("speaker", "speaker")
        assert findings[0].code == "draw_looks_per_utterance"
