"""What the page says, sentence by sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from veilmeter.core.estimate import Estimate
from veilmeter.report import view
from veilmeter.report.annex import annex
from veilmeter.report.charts import criterion_figures


@pytest.fixture
def results(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "results.json").read_text())
    return found


def test_passing_its_checks_is_not_said_to_be_safe(results: dict[str, Any]) -> None:
    results["trust"] = [{"name": "a", "passed": True}, {"name": "b", "passed": None}]
    results["verdict"]["trustworthy"] = True
    said = view.banner(results)
    assert said["good"]
    assert "the 1 check that could be made of it passed" in said["title"]
    assert "no word on whether the release is safe" in said["lines"][0]


def test_a_failed_check_is_counted_among_those_that_could_be_made(results: dict[str, Any]) -> None:
    failed = {"name": "enough speakers", "passed": False, "sentence": "Too few."}
    results["trust"] = [failed, {"name": "b", "passed": None}, {"name": "c", "passed": True}]
    results["verdict"]["trustworthy"] = False
    said = view.banner(results)
    assert said["title"] == "Do not rely on this result yet: 1 of its own 2 checks failed."
    assert said["lines"] == ["Too few. The real risk may be lower or higher than these figures."]
    assert [check["meaning"] for check in view.trust(results)][1:] == ["", ""]


def test_a_run_without_a_list_of_checks_still_doubts(results: dict[str, Any]) -> None:
    results["trust"] = []
    results["verdict"] |= {"trustworthy": False, "distrust": ["Something."]}
    assert view.banner(results) == {
        "good": False,
        "title": "Do not rely on this result yet: its own checks failed.",
        "lines": ["Something."],
    }


def test_the_verdict_says_for_whom_and_what_was_left_out(results: dict[str, Any]) -> None:
    assert view.sentences(results)[0] == results["unprotected"]["sentence"]
    on_cards = {card["sentence"] for card in view.cards(results)}
    assert not on_cards & set(view.sentences(results))
    assert view.not_tested(results)[: len(results["verdict"]["not_tested"])] == results["verdict"]["not_tested"]
    assert any("What is said" in line for line in view.not_tested(results))


def test_cards_speak_in_percent_as_their_sentences_do(results: dict[str, Any]) -> None:
    card = next(card for card in view.cards(results) if card["title"] == "Linking recordings to a person")
    one = results["worst_case"]["linking"]["estimate"]
    assert card["value"] == f"{100 * one['value']:.1f} %"
    assert card["null"] == f"{100 * one['null']:.1f}"
    assert 0 <= card["gauge"]["low"] <= card["gauge"]["dot"] <= 100
    kept = next(card for card in view.cards(results) if card["title"] == "Voices kept apart")
    assert kept["null"] == ""


def test_the_annex_says_nothing_twice(results: dict[str, Any]) -> None:
    parts = dict(annex(results, None))
    measured = parts["Measured risk"]
    linking = results["worst_case"]["linking"]["sentence"]
    assert sum(linking in line for line in measured) == 1
    assert not any(linking in line for line in parts["Plausible attacks considered"])
    assert len(parts["Plausible attacks considered"]) >= 3


def test_parameters_that_were_not_given_are_left_out(results: dict[str, Any]) -> None:
    shown = dict(view.parameters(results))
    assert all(value not in ("", "None", "[]", "{}") for value in shown.values())
    assert shown["lengths"] == "1, 3"


def test_chance_stands_in_the_learning_curve() -> None:
    top1 = [Estimate(name="top1", value=30, unit="percent", null=5, at={"gender": "f"}).to_json()]
    points = [
        Estimate(name="top1", value=value, unit="percent", at={"gender": "f", "pairs": pairs}).to_json()
        for pairs, value in ((5, 10.0), (10, 20.0))
    ]
    (figure,) = criterion_figures(
        "inversion", {"inversion": {"estimates": {"top1": top1}, "learning_curve": points}}, None, None
    )
    assert [{"chance": 5.0}] in figure.spec["datasets"].values()
