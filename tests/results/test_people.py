"""The people listed as unprotected, and the sentences about everybody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sample_results import attacker, sample

from veilmeter.core.estimate import Estimates
from veilmeter.core.findings import Finding
from veilmeter.metrics.legal.linkability import linkability_of_scores
from veilmeter.metrics.legal.ranks import MODEL, disclosure, speaker_disclosure
from veilmeter.results.model import AttackerResult, Chance, LinkedPerson, Results
from veilmeter.results.people import (
    TOGETHER,
    Traits,
    binomial,
    channel_attackers,
    channels_of,
    people,
    people_beside,
    risks_of_everybody,
    worst_person,
)
from veilmeter.wording import sentence


def linked(speaker: str, share: float, *, among: int = 40, trials: int = 4, length: int = 1) -> LinkedPerson:
    return LinkedPerson(speaker=speaker, length=length, among=among, conversations=trials, linked=100 * share)


def results_of(rows: dict[str, list[LinkedPerson]], chance: Chance | None = None) -> Results:
    holders = {name: attacker(name, people=tuple(of_attacker)) for name, of_attacker in rows.items()}
    return replace(sample(), attackers=holders, chance=chance)


def chance(expected: float, p: float, luck: float = 1.0) -> Chance:
    return Chance(draws=500, tests=10, exposed=expected, exposed_p=p, exposed_luck=luck)


def test_two_who_are_always_linked_are_said_to_be() -> None:
    everybody = people(
        results_of({"ignorant": [linked("a", 1.0, among=2), linked("b", 1.0, among=2)]}, chance(0.5, 0.01))
    )
    assert everybody.unprotected == ("a", "b")
    assert sentence(everybody.finding).startswith("2 of 2 speakers are linked more often than not")
    unsure = people(results_of({"ignorant": [linked("a", 1.0, among=2), linked("b", 1.0, among=2)]}, chance(0.5, 0.9)))
    assert unsure.unprotected == ()
    assert sentence(unsure.finding).startswith("2 of 2 speakers are linked more often than not")
    assert "no more than chance explains" in sentence(unsure.finding)
    both = [linked("a", 1.0, among=2), linked("b", 1.0, among=2)]
    suspect = people(results_of({"ignorant": both}, chance(0.5, 0.9, 0.94)))
    assert suspect.unprotected == ()
    assert "can't be distinguished from chance" in sentence(suspect.finding)


def test_nobody_is_called_chance_where_people_are_recognized() -> None:
    """Issue: "6 of 6 can't be distinguished from chance" under "People can be recognized"."""
    rows = [linked(f"s{number}", 1.0, among=6, trials=1) for number in range(6)]
    unsure = people(results_of({"ignorant": rows}, chance(1.2, 0.06, 0.05)))
    assert "can't be distinguished from chance" in sentence(unsure.finding)
    linking = replace(sample().criteria["linking"], level="high")
    words = sentence(people_beside({"linking": linking}, unsure).finding)
    assert "6 of 6 speakers are linked more often than not" in words
    assert "which" not in words
    assert words.endswith("For no single one of them can chance be ruled out, so nobody is listed as unprotected.")
    assert people_beside({"linking": replace(linking, level="unknown")}, unsure) == unsure


def test_one_trial_each_lists_nobody_by_luck() -> None:
    rows = [linked(f"s{n}", float(n < 3), trials=1) for n in range(40)]
    lucky = people(results_of({"ignorant": rows}, chance(2.9, 0.9)))
    assert lucky.unprotected == ()
    assert "3 of 40 speakers are linked" in sentence(lucky.finding)
    assert "by chance alone it would be about 3" in sentence(lucky.finding)
    surely = people(results_of({"ignorant": rows}, chance(0.4, 0.01)))
    assert len(surely.unprotected) == 3
    assert surely.expected_by_chance == 0.4


def test_without_relabeled_people_the_interval_must_exclude_luck_for_all_looks() -> None:
    once = [linked(f"s{n}", float(n < 3), trials=1) for n in range(40)]
    assert people(results_of({"ignorant": once})).unprotected == ()
    often = [linked(f"s{n}", float(n < 3), trials=20) for n in range(40)]
    assert people(results_of({"ignorant": often})).unprotected == ("s0", "s1", "s2")


def test_people_with_long_conversations_only_are_there() -> None:
    found = people(results_of({"ignorant": [linked("a", 1.0, length=3), linked("b", 0.0, length=3)]}))
    assert [person.speaker for person in found.persons] == ["a", "b"]
    assert "with 3 recordings" in sentence(found.finding) or "None of 2" in sentence(found.finding)
    nobody = replace(results_of({"ignorant": []}), protocol=replace(sample().protocol, trial_speakers=0))
    assert sentence(people(nobody).finding).startswith("Nobody has a trial")


def test_the_attacker_that_finds_somebody_best_counts() -> None:
    found = people(
        results_of({"ignorant": [linked("a", 0.25)], "informed": [linked("a", 0.75), linked("a", 1.0, length=3)]}),
        Traits(gender={"a": "f"}, animal={"a": "dove"}, deid={"a": 12.0}),
    )
    (person,) = found.persons
    assert (person.attacker, person.risk.value, person.gender, person.animal, person.deid) == (
        "informed", 75.0, "f", "dove", 12.0,
    )  # fmt: skip
    assert set(person.by_attacker) == {"ignorant", "informed"}


def test_attackers_agree_or_not() -> None:
    shares = [0.1, 0.4, 0.9]
    same = {name: [linked(f"s{n}", share) for n, share in enumerate(shares)] for name in ("ignorant", "informed")}
    assert people(results_of(same)).stability == pytest.approx(100.0)
    other = same | {"informed": [linked(f"s{n}", share) for n, share in enumerate(reversed(shares))]}
    assert people(results_of(other)).stability == pytest.approx(0.0)
    everybody = {name: [linked(f"s{n}", 1.0) for n in range(3)] for name in ("ignorant", "informed")}
    assert people(results_of(everybody)).stability == pytest.approx(100.0)
    nobody = {name: [linked(f"s{n}", 0.1) for n in range(3)] for name in ("ignorant", "informed")}
    assert people(results_of(nobody)).stability is None
    assert people(results_of(same | {"informed": nobody["informed"]})).stability is None  # only one finds somebody
    three = everybody | {"adaptive": [linked(f"s{n}", 0.1) for n in range(3)]}
    assert people(results_of(three)).stability == pytest.approx(100.0)  # the two who find people agree


def test_one_person_who_is_always_linked_is_listed_whatever_chance_explains() -> None:
    """Three of three among sixty by five of six attackers; the number of people like that may still be chance."""
    names = ("ignorant", "lazy-informed", "semi-informed", "informed", "procrustes", "adaptive")
    luck = Chance(draws=499, tests=20, exposed=0.8, exposed_p=0.4, exposed_luck=0.5)

    def found(named: float) -> tuple[str, ...]:
        rows = {
            name: [
                LinkedPerson(
                    speaker=f"s{n}", length=1, among=60, conversations=3,
                    linked=100.0 * (n == 34 and name != "informed"),
                    named=named if n == 34 else 100 / 60,
                )
                for n in range(60)
            ]
            for name in names
        }  # fmt: skip
        listed = people(replace(results_of(rows), chance=luck))
        return tuple(person.speaker for person in listed.persons if person.unprotected)

    assert found(100 / 60) == ("s34",)
    assert found(30.0) == ()  # named for everybody: right about their own recordings too


NAMED = channel_attackers("campplus", ("words", "rhythm"))


def found(name: str, bits: dict[str, float]) -> AttackerResult:
    rows = [
        LinkedPerson(speaker=speaker, length=length, among=8, conversations=4, linked=25.0, bits=value + length)
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
    # Of the lengths that were measured, the shortest counts; fusion does not count as a channel.
    assert {name: person.channel for name, person in people.items()} == {"ann": "campplus", "bob": "words", "eve": ""}
    assert people["bob"].bits == {"campplus": -1.0, "words": 2.5, TOGETHER: 2.6}
    assert [person.speaker for person in channels.people] == ["eve", "bob", "ann"]


def test_one_channel_is_nothing_to_compare() -> None:
    assert channels_of({"adaptive": found("adaptive", {"ann": 1.0})}, NAMED, {}, {}) is None


def test_words_alone_are_a_channel() -> None:
    """What they tell of original speech is the text floor."""
    only = {"adaptive": found("adaptive", {"ann": 1.0})}
    channels = channels_of(only, channel_attackers("words", ()), {}, {})
    assert channels is not None
    assert [(channel.name, channel.hears) for channel in channels.channels] == [("words", "words")]


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


# --- the individual, not the mean


def worst_of(rows: dict[str, list[LinkedPerson]]) -> dict[str, Any]:
    results = results_of(rows)
    found = worst_person(replace(results, people=people(results)))
    assert found is not None
    return dict(found.values)


def test_one_unprotected_person_is_told_whatever_the_mean_is() -> None:
    found = worst_of(
        {"ignorant": [linked("open", 1.0, trials=8), *(linked(f"s{n}", 0.0, trials=8) for n in range(39))]}
    )
    assert found["estimate"].value == 100
    assert not found["explained"]
    assert (found["total"], found["attackers"]) == (40, 1)
    told = sentence(Finding("worst_person", found))
    assert told.startswith("The person found most often is linked by an ignorant attacker in 8 of 8 trials.")
    assert "chance explains" not in told


def test_somebody_is_found_by_chance_among_many() -> None:
    found = worst_of(
        {"ignorant": [linked("lucky", 1.0, trials=1), *(linked(f"s{n}", 0.0, trials=1) for n in range(39))]}
    )
    assert found["explained"]
    assert "chance explains that" in sentence(Finding("worst_person", found))


def test_chance_does_not_explain_who_is_listed() -> None:
    """Too many people are linked in two of two trials for chance, though of none of them alone can that be said."""
    rows = {"ignorant": [*(linked(f"s{n}", float(n < 5), trials=2) for n in range(40))]}
    results = replace(results_of(rows), chance=chance(0.1, 0.001))
    found = people(results)
    assert len(found.unprotected) == 5
    told = worst_person(replace(results, people=found))
    assert told is not None
    assert not told.values["explained"]


def test_who_is_listed_and_who_stands_out_are_tested_at_one_level() -> None:
    """Three of four trials of somebody who is named for 4 % of the others: p is 0.04 for 120 people together."""
    rows = {"adaptive": [LinkedPerson(speaker=f"s{n}", length=1, among=120, conversations=4, linked=75.0 * (n == 0),
                                      named=4.3) for n in range(120)]}  # fmt: skip
    for tested, is_explained in ((None, False), (chance(0.5, 0.3, 0.7), True)):
        results = results_of(rows, tested)
        found = people(results)
        told = worst_person(replace(results, people=found))
        assert told is not None
        assert told.values["explained"] is is_explained
        assert bool(found.unprotected) is not is_explained


def test_chance_among_people_with_one_attribute_explains_more() -> None:
    results = results_of(
        {"ignorant": [linked("s0", 1.0, trials=3), *(linked(f"s{n}", 0.0, trials=3) for n in range(1, 40))]}
    )
    unlisted = replace(results, people=people(results, among=4))
    told = [worst_person(unlisted, among=among) for among in (None, 4)]
    assert [finding is not None and finding.values["explained"] for finding in told] == [False, True]


def test_what_chance_explains_of_one_it_may_not_explain_of_all() -> None:
    """People are recognized, though chance is ruled out for none of them alone: nobody is told that this is chance."""
    results = results_of({"ignorant": [linked(f"s{n}", 1.0, among=6, trials=2) for n in range(6)]})
    everybody = people(results)
    assert not everybody.unprotected
    linking = replace(results.criteria["linking"], level="high")
    found = worst_person(replace(results, people=everybody, criteria={"linking": linking}))
    assert found is not None
    assert found.values["explained"]
    assert sentence(found, "lay").endswith("guessing could explain that; for all of them together, it does not.")


def test_a_person_who_is_named_for_everybody_hides_nobody() -> None:
    """An attacker that names one person for every recording finds that one always."""
    hub = replace(linked("hub", 1.0, trials=8), named=100.0)
    found = worst_of({"ignorant": [hub, linked("open", 0.75, trials=8)]})
    assert found["estimate"].value == 75
    assert not found["explained"]


def test_intervals_of_everybody_hold_together() -> None:
    """In 95 of 100 assessments, not for each person in 95 of 100: everybody is linked with the same probability."""
    rng = np.random.default_rng(0)
    together = alone = 0
    for _ in range(300):
        rows = [linked(f"s{n}", k / 10, trials=10) for n, k in enumerate(rng.binomial(10, 0.3, 40))]
        results = results_of({"ignorant": rows})
        ends = [risk.interval for _, risk in risks_of_everybody(results)]
        together += all(end is not None and end[0] <= 30 <= end[1] for end in ends)
        single = [person.risk.interval for person in people(results).persons]
        alone += all(end is not None and end[0] <= 30 <= end[1] for end in single)
    assert together >= 0.93 * 300
    assert alone < 0.8 * 300


def test_probabilities_of_many_trials_do_not_overflow() -> None:
    assert binomial(20_000, 0.3).sum() == pytest.approx(1)
    assert binomial(3, 0.0).tolist() == [1, 0, 0, 0]
    assert binomial(3, 1.0).tolist() == [0, 0, 0, 1]
