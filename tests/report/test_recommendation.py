"""Which system a comparison calls the best: only where the strongest attacker surely finds fewer people."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.results.sample_results import attacker, link, sample

from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.report import compare
from veilmeter.report.compare import recommendation, surely_better, trade_off
from veilmeter.results.compare import ComparedFigure, Comparison
from veilmeter.results.model import Part
from veilmeter.wording import text


def comparison(**attackers: tuple[tuple[float, ...], tuple[bool, ...]]) -> Comparison:
    """Linkability by attacker in every run, and which of the differences to the first run are sure."""

    def point(value: float, sure: bool = False) -> Estimate:
        return Estimate(name="linkability", value=value, extra={"sure": sure})

    def figure(attacker: str) -> ComparedFigure:
        return ComparedFigure("Linkability among 6, L = 1", attacker)

    return Comparison(
        runs=(),
        values={figure(name): [point(value) for value in values] for name, (values, _) in attackers.items()},
        differences={
            figure(name): [point(value - values[0], sure) for value, sure in zip(values[1:], sures, strict=True)]
            for name, (values, sures) in attackers.items()
        },
    )


@pytest.mark.parametrize(
    ("compared", "best", "rest", "expected"),
    [
        (comparison(adaptive=((0.2, 0.9), (True,))), "a", ["b"], True),
        (comparison(adaptive=((0.2, 0.9), (False,))), "a", ["b"], False),
        (comparison(adaptive=((0.9, 0.2), (True,))), "b", ["a"], True),
        # A weak attacker fails against the first system, but another one finds everybody in it.
        (comparison(informed=((0.3, 1.0), (True,)), adaptive=((1.0, 1.0), (False,))), "a", ["b"], False),
        (comparison(informed=((1.0, 0.3), (True,)), adaptive=((1.0, 1.0), (False,))), "b", ["a"], False),
        # Of two that are not the first, no difference is known; the first one may not be reliable itself.
        (comparison(adaptive=((0.9, 0.2, 0.8), (True, False))), "b", ["a", "c"], False),
        (comparison(adaptive=((0.9, 0.2, 0.8), (True, False))), "b", ["c"], False),
        (comparison(adaptive=((0.2, 0.9, 0.8), (True, True))), "a", ["b", "c"], True),
    ],
)
def test_only_the_strongest_attacker_counts(compared: Comparison, best: str, rest: list[str], expected: bool) -> None:
    assert surely_better(best, rest, ["a", "b", "c"], compared) is expected


def system(name: str, level: str, *, reliable: bool = True) -> Any:
    verdict = SimpleNamespace(level=level, trustworthy=reliable)
    return SimpleNamespace(name=name, results=SimpleNamespace(verdict=verdict, parts={"utility": None}, channels=None))


def test_a_doubted_run_is_named_as_the_reason_why_nothing_is_claimed_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "release_of", lambda _: None)
    unsure = comparison(adaptive=((0.9, 0.8, 0.2), (False, False)))
    systems = [system("a", "high"), system("b", "high"), system("c", "low", reliable=False)]
    assert text(recommendation(systems, unsure)) == (
        "Of those whose figures can be relied on (a, b), none protects significantly better than the others: differences "
        "may be chance. None of these is fit for release: people can still be found. No conclusion about c: these figures can't be relied on yet."
    )
    assert text(recommendation(systems[:2], unsure)).startswith("None of them lets its strongest attacker")
    assert text(recommendation([system("a", "high"), system("c", "low", reliable=False)], unsure)).startswith(
        "Only the"
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
    assert not trade_off([compared("B1", 20.0, 18.0), compared("B2", 60.0, 30.0)])
