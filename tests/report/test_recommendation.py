"""Which system a comparison calls the best: only where the strongest attacker finds significantly fewer people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.results.sample_results import attacker, link, sample

from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.report import compare
from veilmeter.report.compare import outdone_by, recommendation, trade_off
from veilmeter.results.compare import ComparedRun, Comparison
from veilmeter.results.model import LinkedPerson, Part
from veilmeter.wording import text


def ran(name: str, shares: Sequence[float], strongest: str = "adaptive") -> ComparedRun:
    """A run in which the strongest attacker links these shares of each person's recordings, and another one nobody."""
    rows = tuple(
        LinkedPerson(speaker=f"s{n}", length=1, among=20, conversations=10, linked=share)
        for n, share in enumerate(shares)
    )
    mean = sum(shares) / len(shares)
    estimates = {strongest: (mean, rows), "ignorant": (1.0, tuple(replace(row, linked=1.0) for row in rows))}
    attackers = {
        name: replace(attacker(name, link(value, low=value - 5, high=value + 5)), people=people)
        for name, (value, people) in estimates.items()
    }
    return ComparedRun(name, Path(name), replace(sample(), attackers=attackers))


def comparison(*runs: ComparedRun) -> Comparison:
    return Comparison(runs=runs, values={}, differences={})


SPREAD = [10.0 * (n % 5) for n in range(20)]  # of people: 20 on average


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"a": SPREAD, "b": [s + 50 for s in SPREAD]}, ["b"]),  # the same for everybody: paired, it is sure
        ({"a": SPREAD, "b": [s + 5 for s in SPREAD]}, ["b"]),
        ({"a": SPREAD, "b": SPREAD[::-1]}, []),
        ({"b": [s + 50 for s in SPREAD], "a": SPREAD}, ["b"]),  # whichever is first
        # Two that are not the first are compared, too.
        ({"c": [s + 50 for s in SPREAD], "a": SPREAD, "b": [s + 30 for s in SPREAD]}, ["c", "b"]),
        ({"c": SPREAD[::-1], "a": SPREAD, "b": [s + 30 for s in SPREAD]}, ["b"]),
    ],
)
def test_headlines_are_compared_two_by_two(shares: dict[str, list[float]], expected: list[str]) -> None:
    compared = comparison(*(ran(name, own) for name, own in shares.items()))
    assert outdone_by("a", list(shares), compared) == expected


def test_only_the_strongest_attacker_counts() -> None:
    """A weak attacker fails against the first system, but another one finds everybody in it."""
    everybody = [100.0] * 20
    compared = comparison(ran("a", everybody, "informed"), ran("b", everybody, "adaptive"))
    assert outdone_by("a", ["a", "b"], compared) == outdone_by("b", ["a", "b"], compared) == []


def system(name: str, level: str, *, reliable: bool = True) -> Any:
    verdict = SimpleNamespace(level=level, trustworthy=reliable)
    return SimpleNamespace(name=name, results=SimpleNamespace(verdict=verdict, parts={"utility": None}, channels=None))


def test_a_doubted_run_is_named_as_the_reason_why_nothing_is_claimed_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "release_of", lambda _: None)
    unsure = comparison(ran("a", SPREAD), ran("b", SPREAD[::-1]), ran("c", [0.0] * 20))
    systems = [system("a", "high"), system("b", "high"), system("c", "low", reliable=False)]
    assert text(recommendation(systems, unsure)) == (
        "Of those whose figures can be relied on (a, b), none protects significantly better than the others: differences "
        "may be chance. With each of them a risk of being found remains, which speaks against a release. No conclusion about c: these figures can't be relied on yet."
    )
    assert text(recommendation(systems[:2], unsure)).startswith("The best of them is not significantly better")
    assert text(recommendation([system("a", "high"), system("c", "low", reliable=False)], unsure)).startswith(
        "Only the"
    )


def test_the_best_is_named_with_those_it_is_significantly_better_than(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "release_of", lambda _: None)
    compared = comparison(ran("c", SPREAD[::-1]), ran("a", SPREAD), ran("b", [s + 30 for s in SPREAD]))
    systems = [system("c", "high"), system("a", "raised"), system("b", "high")]
    assert text(recommendation(systems, compared)) == (
        "a leaves the lowest risk (raised): its strongest attacker links significantly fewer recordings than with b. The "
        "difference to c may be chance. Even so, a risk of being found remains, which speaks against a release."
    )


def test_the_lowest_risk_is_told_with_its_cost_in_words() -> None:
    def compared(name: str, linked: float, wer: float) -> Any:
        part = Part(name="utility", estimates=Estimates([Estimate(name="wer", value=wer, unit="percent")]))
        attackers = {"ignorant": attacker("ignorant", link(linked, low=linked, high=linked))}
        return SimpleNamespace(name=name, results=replace(sample(), parts={"utility": part}, attackers=attackers))

    systems = [compared("B1", 20.0, 30.0), compared("B2", 60.0, 18.0)]
    assert text(trade_off(systems)) == (
        "With B1 the fewest recordings are linked, 20 [20, 20] of 100; a speech recognizer gets 12 more words in 100 "
        "wrong than with B2."
    )
    free = text(trade_off([compared("B1", 20.0, 18.0), compared("B2", 60.0, 30.0)]))
    assert free.endswith("of 100, and no other system has clearly fewer word errors.")
