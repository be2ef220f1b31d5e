"""Who is listed as unprotected, and what is said about everybody else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sample_results import attacker, sample

from veilmeter.results.model import Chance, LinkedPerson, Results
from veilmeter.results.people import Traits, people
from veilmeter.wording import sentence


def linked(speaker: str, share: float, *, among: int = 40, trials: int = 4, length: int = 1) -> LinkedPerson:
    return LinkedPerson(speaker=speaker, length=length, among=among, conversations=trials, linked=share)


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
    assert sentence(people(results_of({"ignorant": []})).finding).startswith("Nobody has a trial")


def test_the_attacker_that_finds_somebody_best_counts() -> None:
    found = people(
        results_of({"ignorant": [linked("a", 0.25)], "informed": [linked("a", 0.75), linked("a", 1.0, length=3)]}),
        Traits(gender={"a": "f"}, animal={"a": "dove"}, deid={"a": 12.0}),
    )
    (person,) = found.persons
    assert (person.attacker, person.risk.value, person.gender, person.animal, person.deid) == (
        "informed", 0.75, "f", "dove", 12.0,
    )  # fmt: skip
    assert set(person.by_attacker) == {"ignorant", "informed"}


def test_attackers_agree_or_not() -> None:
    shares = [0.1, 0.4, 0.9]
    same = {name: [linked(f"s{n}", share) for n, share in enumerate(shares)] for name in ("ignorant", "informed")}
    assert people(results_of(same)).stability == pytest.approx(1.0)
    other = same | {"informed": [linked(f"s{n}", share) for n, share in enumerate(reversed(shares))]}
    assert people(results_of(other)).stability == pytest.approx(0.0)
    everybody = {name: [linked(f"s{n}", 1.0) for n in range(3)] for name in ("ignorant", "informed")}
    assert people(results_of(everybody)).stability == pytest.approx(1.0)
    nobody = {name: [linked(f"s{n}", 0.1) for n in range(3)] for name in ("ignorant", "informed")}
    assert people(results_of(nobody)).stability is None


def test_one_person_who_is_always_linked_is_listed_whatever_chance_explains() -> None:
    """Three of three among sixty by five of six attackers; the number of people like that may still be chance."""
    names = ("ignorant", "lazy-informed", "semi-informed", "informed", "procrustes", "adaptive")
    luck = Chance(draws=499, tests=20, exposed=0.8, exposed_p=0.4, exposed_luck=0.5)

    def found(named: float) -> tuple[str, ...]:
        rows = {
            name: [
                LinkedPerson(
                    speaker=f"s{n}", length=1, among=60, conversations=3, linked=float(n == 34 and name != "informed"),
                    named=named if n == 34 else 1 / 60,
                )
                for n in range(60)
            ]
            for name in names
        }  # fmt: skip
        listed = people(replace(results_of(rows), chance=luck))
        return tuple(person.speaker for person in listed.persons if person.unprotected)

    assert found(1 / 60) == ("s34",)
    assert found(0.3) == ()  # named for everybody: right about their own recordings too
