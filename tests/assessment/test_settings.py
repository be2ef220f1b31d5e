"""Options by one set of names; what is not an option is an error with a suggestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from veilmeter.assessment import make_settings, read_settings
from veilmeter.assessment.run import who_attacks
from veilmeter.assessment.settings import attacker_names
from veilmeter.cli.assess import with_attackers
from veilmeter.core.errors import InputError
from veilmeter.metrics.legal.conversations import curve_sizes, sizes_to_draw


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lenghts": [1]}, "did you mean 'lengths'"),
        ({"attackers": ["informd"]}, "did you mean 'informed'"),
        ({"attackers": {"informed": {"backnd": "lda"}}}, "did you mean 'backend'"),
        ({"attackers": {"informed": {"backend": "ldaa"}}}, "did you mean 'lda'"),
        ({"attackers": {"informed": "lda"}}, "must be a table"),
        ({"measures": ["scoress"]}, "did you mean 'scores'"),
        ({"seed": "1"}, "seed must be a whole number"),
        ({"lengths": [0]}, "lengths must be at least 1 .got 0."),
        ({"lengths": "many"}, "whole numbers"),
        ({"intervals": 1}, "true or false"),
        ({"segments": 0.1}, "segments must be above 0.5"),
        ({"weak_attacker": -5}, "at least 0 and at most 50"),
        ({"attackers": {"ignorant": {"lda": "x"}}}, "belong to a plda file"),
        ({"attackers": {"ignorant": {"scores": ["a", "b"], "trials": ["c", "d", "e"]}}}, "2 score files but 3"),
        ({"attackers": {"ignorant": {"trials": ["c"]}}}, "trials are the key of score files"),
        ({"attackers": {"ignorant": {"adaptation": "finetune"}}}, "has no option adaptation"),
        ({"attackers": {"procrustes": {"plda": "x"}}}, "has no option plda"),
        ({"attackers": {"ignorant": {"plda": "x", "backend": "lda"}}}, "whole back end"),
        ({"attackers": {"ignorant": {"dimension": 3}}}, "the back end cosine has no dimension"),
        ({"attackers": ["procrustes"], "measures": ["scores"]}, "not the measures it belongs to"),
        ({"adapted_backend": "cosine"}, "learns nothing"),
        ({"attackers": {"informed": {"backend": "cosine"}}}, "learns nothing"),
        ({"resamples": 1}, "resamples must be at least 2 .got 1."),
        ({"option": ["a=1"]}, "belongs to an anonymizer that is run here"),
        ({"system_runs": 2}, "belongs to an anonymizer that is run here"),
        ({"system": "mcadams", "attacker_run": "x"}, "not both"),
        ({"system": "mcadams", "command": "x"}, "runs no command"),
        ({"train-original": "a", "train_original": "b"}, "train_original is given twice"),
        ({"no-intervals": True, "intervals": True}, "intervals is given twice"),
        ({"no-intervals": 1}, "no_intervals must be true or false"),
    ],
)
def test_mistakes_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_settings(values)


def test_all_attackers_by_default_and_those_asked_for() -> None:
    assert len(attacker_names(make_settings({}))) == 7
    assert attacker_names(make_settings({"attackers": ["informed", "oa"]})) == ["ignorant", "informed"]
    assert len(attacker_names(make_settings({"attackers": {"original": {"scores": "x"}}}))) == 7


def test_who_is_not_asked_for_is_said() -> None:
    assert who_attacks(make_settings({})) == ""
    assert who_attacks(make_settings({"attackers": {"original": {"scores": "x"}}})) == ""
    said = who_attacks(make_settings({"attackers": ["informed", "oa"]}))
    assert said.startswith("attackers: ignorant, informed; not asked for: lazy-informed, semi-informed, procrustes")
    assert "tables" not in said
    assert "tables [attackers.NAME]" in who_attacks(make_settings({"attackers": {"informed": {"backend": "plda"}}}))


def test_attackers_of_the_command_line_keep_what_the_file_says_of_them() -> None:
    file = {"original": {"scores": "o"}, "oa": {"backend": "plda"}, "informed": {"scores": "s", "dimension": 3}}
    found = make_settings({"attackers": with_attackers(file, ["informed", "procrustes"])})
    assert attacker_names(found) == ["informed", "procrustes"]
    assert found.attackers["informed"].dimension == 3
    assert found.attackers["original"].scores == ("o",)
    found = make_settings({"attackers": with_attackers(file, (), ["ignorant=a", "ignorant=b", "informed=c"])})
    assert attacker_names(found) == ["ignorant", "informed"]
    assert found.attackers["ignorant"].scores == ("a", "b")
    assert found.attackers["ignorant"].backend == "plda"  # the table that calls it oa
    assert found.attackers["informed"].scores == ("c",)  # the command line wins


@pytest.mark.parametrize("file", [None, {"original": {"scores": "o"}}])
def test_scores_of_one_attacker_leave_the_others_in(file: Any) -> None:
    found = make_settings({"attackers": with_attackers(file, (), ["ignorant=a"])})
    assert len(attacker_names(found)) == 7
    assert found.attackers["ignorant"].scores == ("a",)


@pytest.mark.parametrize(
    ("tables", "scores", "message"),
    [
        ({"ignorant": 3}, [], "attackers.ignorant must be a table"),
        ({"ignorant": {}, "oa": {}}, [], "twice, under two names"),
        (None, ["ignorant"], "which attacker"),
        (None, ["nobody=a"], "no attacker called 'nobody'"),
    ],
)
def test_mistakes_about_attackers(tables: Any, scores: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_attackers(tables, (), scores)


def test_toml(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        'original = ["a", "/b"]\nanonymized = "c"\ntrain-anonymized = "d"\nlengths = 3\nout = "run"\n'
        '[attackers.informed]\nbackend = "plda"\nscores = "s"\n[attackers.ignorant]\n'
    )
    values = read_settings(file)
    assert values.pop("out") == str(tmp_path / "run")
    settings = make_settings(values)
    assert settings.original == (str(tmp_path / "a"), "/b")
    assert settings.train_anonymized == (str(tmp_path / "d"),)
    assert settings.lengths == (3,)
    assert settings.attackers["informed"].scores == (str(tmp_path / "s"),)
    assert attacker_names(settings) == ["ignorant", "informed"]
    file.write_text("lengths = [1\n")
    with pytest.raises(InputError, match="invalid TOML"):
        read_settings(file)
    with pytest.raises(InputError, match="there is no such file"):
        read_settings(tmp_path / "gone.toml")


def test_every_path_in_a_file_is_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        'original = "speech"\nroot = ["audio", "/elsewhere"]\nextractor = ["onnx:model.onnx", "ecapa"]\nout = "run"\n'
    )
    found = read_settings(tmp_path / "a.toml")
    assert found["original"] == str(tmp_path / "speech")
    assert found["root"] == [str(tmp_path / "audio"), "/elsewhere"]
    assert found["extractor"] == [f"onnx:{tmp_path / 'model.onnx'}", "ecapa"]
    assert found["out"] == str(tmp_path / "run")


def test_every_number_of_people() -> None:
    every = make_settings({"original": "a", "anonymized": "b", "speakers": "all"})
    assert every == make_settings({"original": "a", "anonymized": "b", "speakers": ["all"]})
    assert curve_sizes(every.speakers, 6) == [2, 3, 4, 5, 6]
    assert curve_sizes(sizes_to_draw(every.speakers), 6) == [2, 5, 6]  # what is drawn stays at round numbers
    with pytest.raises(InputError, match="speakers must be at least 2"):
        make_settings({"original": "a", "anonymized": "b", "speakers": [1]})
    with pytest.raises(InputError, match="whole numbers"):
        make_settings({"original": "a", "anonymized": "b", "speakers": ["all", "20"]})
