"""Several extractors together: what tells nothing gets no say, what tells something does."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.attacks.adaptive import fusion
from veilmeter.attacks.adaptive.fusion import Scores, fit_weights, fuse_channels, sum_with_weights
from veilmeter.attacks.material import Rows

PEOPLE, EACH = 8, 5
LABELS = np.repeat(np.arange(PEOPLE), EACH)


def heard(strength: float, seed: int, labels: Rows = LABELS) -> Scores:
    """Held-out scores of a method that tells people apart by so much."""
    scores = np.random.default_rng(seed).standard_normal((len(labels), PEOPLE))
    scores[np.arange(len(labels)), labels] += strength
    return scores.astype(np.float32)


def linked(weights: np.ndarray, methods: list[Scores]) -> float:
    return float(np.mean(sum_with_weights(methods, weights).argmax(axis=1) == LABELS))


def test_one_channel_is_fused_as_before() -> None:
    methods = [heard(1.0, 1), heard(0.5, 2)]
    weights, _ = fuse_channels(methods, [0, 0], LABELS)
    np.testing.assert_array_equal(weights, fit_weights(methods, LABELS)[0])


def test_channels_that_tell_nothing_cost_nothing() -> None:
    """Twelve methods of three channels on forty recordings: only those of the second channel tell anything. On new
    recordings the fusion finds as many as that channel alone; all weights at once find fewer."""
    channels = [0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2]
    lost, lost_at_once = [], []
    for seed in range(10):
        methods, new = (
            [heard(1.2 if channel == 1 else 0.0, start + 100 * seed + row) for row, channel in enumerate(channels)]
            for start in (0, 10_000)
        )
        alone = linked(fit_weights(methods[5:7], LABELS)[0], new[5:7])
        lost.append(alone - linked(fuse_channels(methods, channels, LABELS)[0], new))
        lost_at_once.append(alone - linked(fit_weights(methods, LABELS)[0], new))
    assert np.mean(lost) < 0.02
    assert np.mean(lost) < np.mean(lost_at_once) / 2


def test_channels_that_help_are_used() -> None:
    channels = [0, 1, 2]
    gains = []
    for seed in range(5):
        methods, new = ([heard(1.5, start + 100 * seed + row) for row in channels] for start in (0, 10_000))
        weights, loss = fuse_channels(methods, channels, LABELS)
        assert (weights > 0.2).all()
        assert 0 < loss < np.log(PEOPLE)
        gains.append(linked(weights, new) - max(linked(np.eye(3)[row], new) for row in channels))
    assert np.mean(gains) > 0.1


def test_of_many_recordings_a_part_chooses_the_pull_and_all_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = [heard(1.5, 1), heard(1.5, 2)]
    whole, _ = fuse_channels(methods, [0, 1], LABELS)
    monkeypatch.setattr(fusion, "MOST", methods[0].size // 2)
    monkeypatch.setattr(fusion, "PULLS", (0.001,))
    part, _ = fuse_channels(methods, [0, 1], LABELS)
    np.testing.assert_allclose(part, whole, atol=0.3)
    assert (part > 0.2).all()


def test_one_person_says_nothing_about_others() -> None:
    """With nobody to hold out, the best channel stands alone."""
    labels = np.zeros(4, np.int64)
    methods = [heard(0.2, 1, labels), heard(3.0, 2, labels)]
    weights, _ = fuse_channels(methods, [0, 1], labels)
    assert weights[0] == 0 < weights[1]
