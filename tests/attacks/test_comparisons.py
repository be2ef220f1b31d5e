"""The best recording and normalized scores: of back ends and of the adaptive attacker, against slow definitions and
where they help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.attacks.adaptive.worlds import World, linked

from veilmeter.attacks.adaptive.families import FAMILIES
from veilmeter.attacks.adaptive.own_data import own_data
from veilmeter.attacks.adaptive.training import make_training
from veilmeter.attacks.attacker import ATTACKERS, perform
from veilmeter.attacks.backends.base import NEAREST, refuse_unknown_backends
from veilmeter.attacks.backends.scoring import Recipe
from veilmeter.attacks.material import AttackerRun, Material
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.data.embeddings import Embeddings

NAMES = ("best-recording", "normalized-lazy")


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def slow(copies: np.ndarray, labels: np.ndarray, trials: np.ndarray, *, best: bool, norm: bool) -> np.ndarray:
    """Cosines of unit vectors, trials x people, one cell after the other."""
    people = int(labels.max()) + 1
    most = min(NEAREST, *(int((labels != k).sum()) for k in range(people)))
    scores = np.zeros((len(trials), people))
    for k in range(people):
        model = copies[labels == k].mean(0)
        model = model / np.linalg.norm(model)
        for t, trial in enumerate(trials):
            raw = max(trial @ copy for copy in copies[labels == k]) if best else trial @ model
            if norm:
                of_model = sorted(model @ copy for copy in copies[labels != k])[-most:]
                of_trial = sorted(trial @ copy for copy in copies)[-NEAREST:]
                raw = np.mean([(raw - np.mean(cohort)) / np.std(cohort) for cohort in (of_model, of_trial)])
            scores[t, k] = raw
    return scores


@pytest.mark.parametrize("name", NAMES)
def test_methods_by_hand(name: str) -> None:
    material, _ = World(people=5, each=3).material(("utterance", "utterance"))
    data = own_data(material)
    everything = np.ones(len(data.labels), bool)
    training = make_training(data, data.views[0], everything, everything, (0, 1))
    trials = training.space.apply(material.trials.astype(float))
    ((_, scorer),) = FAMILIES[name].fit(training, [()])
    expected = slow(unit(training.x), training.labels, unit(trials), best=name == NAMES[0], norm=name == NAMES[1])
    expected -= expected.mean(1, keepdims=True)
    found = scorer.scores(trials)
    # Standardizing scales every trial by itself.
    np.testing.assert_allclose(unit(found), unit(expected), atol=1e-5)


@pytest.mark.parametrize("options", ["best", "normalized", "best,normalized"])
def test_options_of_back_ends_by_hand(options: str) -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(6), [2, 3, 4, 1, 5, 3])
    names = [f"s{code}" for code in codes]
    enroll = Embeddings(rng.standard_normal((len(codes), 5)), [f"e{i}" for i in range(len(codes))], names)
    test = Embeddings(rng.standard_normal((7, 5)), [f"t{i}" for i in range(7)], ["s0"] * 7)
    scorer = Recipe(f"cosine:{options}").scorer(enroll, test)
    expected = slow(enroll.unit, codes, test.unit, best="best" in options, norm="normalized" in options)
    np.testing.assert_allclose(scorer.matrix(enroll, test, np.arange(7)[:, None]), expected.T, atol=1e-5)
    assert ("best recording" in scorer.name) == ("best" in options)
    trained = Recipe(f"lda:{options}", enroll, folds=6)
    assert trained.scorer(enroll, test).matrix(enroll, test, np.arange(7)[:, None]).shape == (6, 7)


def test_unknown_options_are_refused() -> None:
    refuse_unknown_backends("lda:best", None, "cosine")
    with pytest.raises(InputError, match="no option 'worst'"):
        refuse_unknown_backends("cosine:worst")
    with pytest.raises(InputError, match="no back end"):
        refuse_unknown_backends("cosin:best")


def two_sessions() -> tuple[Material, np.ndarray]:
    """People whose recordings lie in two places: their mean lies where nobody is, one of them is right beside."""
    rng = np.random.default_rng(0)
    places = rng.standard_normal((40, 6))
    codes = np.repeat(np.arange(40), 4)
    people = [f"s{code // 2:02}" for code in codes]
    ids = [f"u{row}" for row in range(len(codes))]

    def heard() -> np.ndarray:
        return places[codes] + 0.25 * rng.standard_normal((len(codes), 6))

    original, *copies = (Embeddings(heard(), ids, people) for _ in range(3))
    runs = tuple(AttackerRun(vectors=copy, draw="utterance", certain=True) for copy in copies)
    trials = heard().astype(np.float32)
    rows = np.arange(len(codes))[:, None]
    return Material(candidates=original, trials=trials, conversations=(rows,), runs=runs), codes // 2


def test_the_adaptive_attacker_chooses_the_best_recording_where_it_helps() -> None:
    material, truth = two_sessions()
    shares = {name: linked(perform(ATTACKERS[name], material).scores, truth) for name in (*NAMES, "centered-lazy")}
    assert shares["best-recording"] > shares["centered-lazy"] + 0.1
    adaptive = perform(ATTACKERS["adaptive"], material)
    assert adaptive.details["weights"]["best-recording"] > 0.3
    assert linked(adaptive.scores, truth) > shares["best-recording"] - 0.03


@pytest.mark.parametrize("name", NAMES)
def test_chance_and_awkward_cases(name: str) -> None:
    shares = []
    for seed in range(6):
        material, truth = World(people=10, kept=0.0, seed=seed).material()
        shares.append(linked(perform(ATTACKERS[name], material).scores, truth))
    assert float(np.mean(shares)) == pytest.approx(0.1, abs=0.07)
    lacking = replace(material.runs[0], vectors=material.runs[0].vectors.take(np.arange(40) >= 8))
    assert perform(ATTACKERS[name], replace(material, runs=(lacking,))).scores.shape == (10, 40)
    one = material.candidates.take(material.candidates.codes == 0)
    assert ATTACKERS[name].missing(replace(material, candidates=one)) == Finding("one_candidate")
