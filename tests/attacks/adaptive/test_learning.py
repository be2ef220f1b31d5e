"""What more effort brings, and attackers who know more."""

from __future__ import annotations

import numpy as np
import pytest
from tests.attacks.adaptive.worlds import World

from veilmeter.attacks.adaptive.learning import learning_curves, portions
from veilmeter.attacks.attacker import ATTACKERS, AttackerId, Success, perform, takeovers
from veilmeter.core.estimate import Estimates
from veilmeter.wording import sentence

KNOWING = ("ignorant", "lazy-informed", "procrustes", "informed")


def test_every_effort_that_can_vary_does() -> None:
    material, _ = World(people=5, each=3, others=8).material(("utterance", "utterance"))
    amounts: dict[str, list[int]] = {}
    for effort, amount, part in portions(material):
        amounts.setdefault(effort, []).append(amount)
        counts = np.bincount(part.candidates.codes)
        assert counts.tolist() == [amount if effort == "recordings" else 3] * 5
        assert len(part.runs) == (amount if effort == "runs" else 2)
        for run in part.runs:
            assert list(run.vectors.utterances) == list(part.candidates.utterances)
        people = 0 if part.others is None else len(part.others.originals.names)
        assert people == (amount if effort == "others" else 8)
    assert amounts == {"runs": [1, 2], "recordings": [1, 2, 3], "others": [0, 2, 4, 8]}


def test_many_runs_are_doubled_not_counted_one_by_one() -> None:
    material, _ = World(people=5, each=3).material(("utterance",) * 20)
    assert [amount for effort, amount, _ in portions(material) if effort == "runs"] == [1, 2, 4, 8, 16, 20]


def test_curves_end_at_the_attack_with_everything() -> None:
    material, truth = World(people=8, each=2, kept=0.6).material(("utterance", "utterance"))
    attack = ATTACKERS["two-view-lda"]
    names = [material.names[person] for person in truth]
    curves = learning_curves(material, names, lambda part: perform(attack, part).scores, intervals=False)
    assert curves.names == ("learning_eer", "learning_linkability")
    linking = curves["learning_linkability"]
    assert isinstance(linking, Estimates)
    scores = perform(attack, material).scores
    own = scores[truth, np.arange(len(truth))]
    expected = 100 * float(np.mean((scores >= own).sum(axis=0) == 1))
    assert linking.filter(runs=2).only().value == pytest.approx(expected)
    assert linking.filter(recordings=2).only().value == pytest.approx(expected)
    assert linking.filter(runs=1).only().null == pytest.approx(100 / 8)


def successes(**quality: float) -> dict[AttackerId, Success]:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(20), 8)
    names = [f"s{person}" for person in range(20)]
    spoken = [names[person] for person in truth]
    return {
        AttackerId(name): Success.of(rng.standard_normal((20, 160)) + signal * np.eye(20)[:, truth], names, spoken)
        for name, signal in quality.items()
    }


def test_who_knows_more_and_does_surely_worse_takes_over() -> None:
    done = successes(**{"ignorant": 3.0, "lazy-informed": 1.0, "informed": 3.1, "procrustes": 1.0})
    found = {takeover.attacker: takeover for takeover in takeovers(done)}
    assert {name: takeover.other for name, takeover in found.items()} == {
        "lazy-informed": "ignorant",
        "procrustes": "ignorant",
    }
    assert found["lazy-informed"].difference < 0
    assert "was replaced by that of the ignorant attacker" in sentence(found["lazy-informed"].finding)


def test_luck_is_no_reason_to_take_over() -> None:
    assert takeovers(successes(**dict.fromkeys(KNOWING, 1.0))) == ()
    # Nobody takes over from somebody who knows more, or other things.
    assert takeovers(successes(**{"ignorant": 0.0, "lazy-informed": 3.0})) == ()
    assert takeovers(successes(**{"lazy-informed": 0.0, "procrustes": 3.0})) == ()


def test_success_is_the_share_of_candidates_beaten() -> None:
    scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.5], [0.3, 0.9, 0.5]])
    found = Success.of(scores, ["a", "b", "c"], ["a", "b", "stranger"])
    assert found.ahead.tolist() == [1.0, 0.5]
    assert found.speakers.tolist() == ["a", "b"]


def test_the_adaptive_attacker_knows_all_that_the_papers_attackers_know() -> None:
    assert all(ATTACKERS["adaptive"].outranks(ATTACKERS[name]) for name in KNOWING)
    assert ATTACKERS["adaptive-unlabeled"].outranks(ATTACKERS["adaptive"])
