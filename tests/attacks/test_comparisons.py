"""The best recording and normalized scores, against slow definitions and where they help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.attacks.adaptive.worlds import World, linked

from veilmeter.attacks.base import AttackerRun, Material, perform
from veilmeter.attacks.comparisons import NEAREST
from veilmeter.attacks.registry import ATTACKS
from veilmeter.data.embeddings import Embeddings

NAMES = ("best-recording", "normalized-lazy")


def prepared(seed: int = 0) -> tuple[Material, np.ndarray, np.ndarray, np.ndarray]:
    material, _ = World(people=5, each=3, seed=seed).material(("utterance", "utterance"))
    known = np.concatenate([run.vectors.vectors for run in material.runs]).astype(float)
    labels = np.tile(material.candidates.codes, 2)
    trials = material.trials.astype(float)
    sides = (side - known.mean(0) for side in (known, trials))
    copies, seen = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return material, copies, labels, seen


def test_the_best_recording_by_hand() -> None:
    material, copies, labels, seen = prepared()
    expected = [
        [max(seen[t] @ copies[i] for i in np.flatnonzero(labels == k)) for t in range(len(seen))] for k in range(5)
    ]
    np.testing.assert_allclose(perform(ATTACKS["best-recording"], material).scores, expected, atol=1e-6)


def test_normalized_scores_by_hand() -> None:
    material, copies, labels, seen = prepared()
    scores = perform(ATTACKS["normalized-lazy"], material).scores
    for k in range(5):
        model = copies[labels == k].mean(0)
        model /= np.linalg.norm(model)
        for t in (0, 7):
            raw = seen[t] @ model
            of_model = sorted(model @ copies[i] for i in np.flatnonzero(labels != k))[-NEAREST:]
            of_trial = sorted(seen[t] @ copy for copy in copies)[-NEAREST:]
            parts = [(raw - np.mean(cohort)) / np.std(cohort) for cohort in (of_model, of_trial)]
            assert scores[k, t] == pytest.approx(np.mean(parts), abs=1e-5)


def test_the_best_recording_helps_people_of_two_sessions() -> None:
    """Their mean lies where nobody is; one of their recordings is right beside."""
    rng = np.random.default_rng(0)
    places = rng.standard_normal((20, 12))  # two per person
    codes = np.repeat(np.arange(20), 3)
    people = [f"s{code // 2}" for code in codes]
    ids = [f"u{row}" for row in range(60)]
    original, copy = (Embeddings(places[codes] + 0.3 * rng.standard_normal((60, 12)), ids, people) for _ in range(2))
    trials = (places[codes] + 0.3 * rng.standard_normal((60, 12))).astype(np.float32)
    material = Material(
        candidates=original, trials=trials, conversations=(np.arange(60)[:, None],), runs=(AttackerRun(vectors=copy),)
    )
    shares = {name: linked(perform(ATTACKS[name], material).scores, codes // 2) for name in (*NAMES, "centered-lazy")}
    assert shares["best-recording"] > shares["centered-lazy"] + 0.1


@pytest.mark.parametrize("name", NAMES)
def test_chance_and_awkward_cases(name: str) -> None:
    shares = []
    for seed in range(6):
        material, truth = World(people=10, kept=0.0, seed=seed).material()
        shares.append(linked(perform(ATTACKS[name], material).scores, truth))
    assert float(np.mean(shares)) == pytest.approx(0.1, abs=0.07)
    lacking = replace(material.runs[0], vectors=material.runs[0].vectors.take(np.arange(40) >= 8))
    assert perform(ATTACKS[name], replace(material, runs=(lacking,))).scores.shape == (10, 40)
    assert perform(ATTACKS[name], replace(material, runs=())).scores.shape == (10, 40)
    one = material.candidates.take(material.candidates.codes == 0)
    assert "one candidate" in ATTACKS[name].missing(replace(material, candidates=one))
