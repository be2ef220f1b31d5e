"""Which channel gives people away, as pure functions of what attackers found."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.core.estimate import Estimates
from veilmeter.metrics.legal.linkability import linkability_of_scores
from veilmeter.metrics.legal.ranks import MODEL, disclosure, speaker_disclosure
from veilmeter.results.channels import TOGETHER, channel_attackers, channels_of
from veilmeter.results.model import AttackerResult, LinkedPerson

NAMED = channel_attackers("campplus", ("words", "rhythm"))


def found(name: str, bits: dict[str, float]) -> AttackerResult:
    rows = [
        LinkedPerson(speaker=speaker, length=length, among=8, conversations=4, linked=0.25, bits=value + length)
        for speaker, value in bits.items()
        for length in (1, 3)
    ]
    return AttackerResult(name=name, about="", people=tuple(rows))


def test_each_person_has_the_channel_that_tells_most_of_them() -> None:
    attackers = {
        "adaptive": found("adaptive", {"ann": 0.5, "bob": -2.0, "eve": -3.0}),
        "adaptive@words": found("adaptive@words", {"ann": 0.1, "bob": 1.5, "eve": -2.0}),
        "fused": found("fused", {"ann": 0.6, "bob": 1.6, "eve": 1.9}),
    }
    channels = channels_of(attackers, NAMED, {}, {})
    assert channels is not None
    assert [(channel.name, channel.hears) for channel in channels.channels] == [
        ("campplus", "voice"), ("words", "words"), (TOGETHER, "everything"),
    ]  # fmt: skip
    people = {person.speaker: person for person in channels.people}
    # Of the lengths that were measured, the shortest counts; fusion is no channel of its own.
    assert {name: person.channel for name, person in people.items()} == {"ann": "campplus", "bob": "words", "eve": ""}
    assert people["bob"].bits == {"campplus": -1.0, "words": 2.5, TOGETHER: 2.6}
    assert [person.speaker for person in channels.people] == ["eve", "bob", "ann"]


def test_one_channel_is_nothing_to_compare() -> None:
    assert channels_of({"adaptive": found("adaptive", {"ann": 1.0})}, NAMED, {}, {}) is None


def test_a_person_s_bits_are_their_part_of_the_mean_disclosure() -> None:
    rng = np.random.default_rng(0)
    names = tuple(f"p{n}" for n in range(12))
    spoken = np.repeat(np.array(names, object), 20)
    own = np.repeat(np.arange(12), 20)
    scores = rng.standard_normal((12, len(spoken)))
    scores[own, np.arange(len(spoken))] += np.repeat(np.linspace(0, 4, 12), 20)  # the last person is given away
    link = linkability_of_scores(scores, names, spoken)
    assert link is not None
    bits = speaker_disclosure(link)
    whole = next(
        point for point in Estimates(disclosure(link, intervals=False)["rank_disclosure"]) if point.at["model"] == MODEL
    )
    # log2 N - H by the model, and the mean of log2(N P) of the ranks that it was fitted to
    assert bits.mean() == pytest.approx(whole.value, abs=0.1)
    assert bits[-1] > 2 > 0.3 > bits[0]
    # An attacker who knows nothing discloses nothing of anybody.
    nothing = linkability_of_scores(rng.standard_normal(scores.shape), names, spoken)
    assert nothing is not None
    assert np.abs(speaker_disclosure(nothing)).max() < 0.3
