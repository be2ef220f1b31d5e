"""Where target voices lie: a world where they cause the error, one where nothing is left, and a slow reference."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.metrics.vector_checks import (
    PRIOR,
    found_target_voices,
    share_ahead,
    target_voice_effect,
    without_target_voices,
)

PEOPLE, EACH, VOICES, DIMENSION = 30, 4, 4, 24


def world(kept: float, far: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cosines of copies and trials whose target voices were drawn once per person, apart from each other; whose each
    trial is, its target voice, and its vector."""
    rng = np.random.default_rng(seed)
    people = rng.standard_normal((PEOPLE, DIMENSION))
    voices = far * rng.standard_normal((VOICES, DIMENSION))
    own = np.repeat(np.arange(PEOPLE), EACH)
    copied, tried = rng.integers(VOICES, size=(2, PEOPLE))
    copies = kept * people + voices[copied] + 0.2 * rng.standard_normal((PEOPLE, DIMENSION))
    trials = kept * people[own] + voices[tried[own]] + 0.4 * rng.standard_normal((len(own), DIMENSION))
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (copies, trials)]
    return unit[0] @ unit[1].T, own, tried[own], trials


@pytest.mark.parametrize("known", [True, False])
def test_error_that_comes_from_target_voices_is_found(known: bool) -> None:
    scores, own, voices, trials = world(kept=1.0, far=4.0)
    groups = voices if known else found_target_voices(trials)
    effect = target_voice_effect({"lazy": scores}, {"lazy": own}, groups, known=known)
    assert effect is not None
    assert effect.voices == VOICES
    assert effect.reported > 0.2
    assert effect.informed < 0.2
    assert effect.share > 0.4
    assert effect.gain[0] > 0
    assert effect.eer_informed < effect.eer_reported


@pytest.mark.parametrize(("kept", "far"), [(0.0, 4.0), (1.0, 0.0), (0.3, 0.0)], ids=["hidden", "clear", "weak"])
def test_nothing_is_found_where_target_voices_hide_nothing(kept: float, far: float) -> None:
    """Where nothing of the voice is left, and where no target voice moves anybody."""
    alarms = 0
    for seed in range(20):
        scores, own, voices, trials = world(kept, far, seed)
        for groups in (voices, found_target_voices(trials, seed=seed)):
            effect = target_voice_effect({"lazy": scores}, {"lazy": own}, groups, known=True)
            alarms += effect is not None and effect.gain[0] > 0 and effect.share > 0.2
    assert alarms <= 2


def test_people_with_target_voices_of_their_own_can_t_be_compared() -> None:
    scores, own, _, _ = world(kept=1.0, far=4.0)
    assert target_voice_effect({"lazy": scores}, {"lazy": own}, own, known=True) is None
    assert target_voice_effect({}, {}, own, known=True) is None


def test_the_target_voice_s_part_equals_a_slow_reference() -> None:
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((5, 17))
    own, groups = rng.integers(5, size=17), rng.integers(3, size=17)
    slow = scores.copy()
    for candidate in range(5):
        for trial in range(17):
            others = [j for j in range(17) if own[j] not in (candidate, own[trial])]
            alike = [j for j in others if groups[j] == groups[trial]]
            usual = scores[candidate, others].mean()
            part = (scores[candidate, alike].sum() + PRIOR * usual) / (len(alike) + PRIOR)
            slow[candidate, trial] -= part
    np.testing.assert_allclose(without_target_voices(scores, own, groups), slow, atol=1e-12)


def test_one_place_is_one_target_voice() -> None:
    assert set(found_target_voices(np.ones((40, 3))).tolist()) == {0}
    two = np.repeat([[1.0, 0, 0], [0, 1, 0]], 20, axis=0)
    assert len(set(found_target_voices(two).tolist())) == 2


def test_equal_scores_place_nobody_first() -> None:
    assert share_ahead(np.zeros((4, 2)), np.array([0, 3])).tolist() == [0.5, 0.5]
    assert share_ahead(np.eye(3), np.array([0, 1, 2])).tolist() == [0.0, 0.0, 0.0]
