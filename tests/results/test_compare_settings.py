"""Which settings of runs differ, in words a person reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from veilmeter.results.compare import _shown, differing_settings


def runs(*attackers: dict[str, Any]) -> list[Any]:
    return [SimpleNamespace(settings={"attackers": tables, "seed": 0}) for tables in attackers]


def test_files_of_an_attacker_are_no_difference() -> None:
    table = {"backend": None, "original": [], "trials": []}
    same = runs({"ignorant": {**table, "scores": ["a.txt"]}}, {"ignorant": {**table, "scores": ["b.txt"]}})
    assert differing_settings(same) == {}


def test_what_was_chosen_for_an_attacker_is_said_in_words() -> None:
    (values,) = differing_settings(
        runs({"informed": {"backend": "plda", "lda": None}}, {"informed": {}, "ignorant": {}})
    ).values()
    assert [_shown(value) for value in values] == ["informed: backend plda", "informed, ignorant"]
