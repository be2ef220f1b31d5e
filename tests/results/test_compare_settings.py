"""Which settings of runs differ, in words a person reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from veilmeter.results.compare import _text_of, differing_settings


def runs(*attackers: dict[str, Any]) -> list[Any]:
    return [run(attackers=tables, seed=0) for tables in attackers]


def run(**settings: Any) -> Any:
    return SimpleNamespace(settings=settings, incidental=("title", "attacker_run", "attackers.scores"))


def test_what_names_or_places_a_run_is_no_difference() -> None:
    assert differing_settings([run(title="a", attacker_run=["x"]), run(title="b", attacker_run=["y"])]) == {}


def test_nothing_is_no_difference_however_it_is_written() -> None:
    assert differing_settings([run(option=None, title="", by=[]), run(option=[], title="b", by=None)]) == {}
    assert differing_settings([run(option=None), run(option=["a=1"])]) == {"option": [None, ["a=1"]]}


def test_files_of_an_attacker_are_no_difference() -> None:
    table = {"backend": None, "original": [], "trials": []}
    same = runs({"ignorant": {**table, "scores": ["a.txt"]}}, {"ignorant": {**table, "scores": ["b.txt"]}})
    assert differing_settings(same) == {}


def test_what_was_chosen_for_an_attacker_is_said_in_words() -> None:
    (values,) = differing_settings(
        runs({"informed": {"backend": "plda", "lda": None}}, {"informed": {}, "ignorant": {}})
    ).values()
    assert [_text_of(value) for value in values] == ["informed: backend plda", "informed, ignorant"]
