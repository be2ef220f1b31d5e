"""What the controller states in a settings file: read, checked, recorded, and never made up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import synthetic_voices as voices

from veilmeter.assessment import assess
from veilmeter.assessment.settings import make_settings, read_settings
from veilmeter.assessment.statements import AnnexEntries, read_annex, read_recipients, read_statements
from veilmeter.core.errors import InputError
from veilmeter.core.options import options_of
from veilmeter.results.run_folder import read_results

FILE = """
[annex]
controller = "Example Hospital"
legal-basis = "GDPR, Article 6(1)(e)"
severity = "significant"
review_date = 2027-11-01
route = "contextual"

[[recipients]]
name = "research partner"
original_speech = true
candidates = 20
"""


def test_an_assessment_records_what_the_file_states(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(FILE)
    known = voices.original(8, 4, 6)
    given = read_settings(tmp_path / "a.toml")
    assess(known, voices.partly(known), out=tmp_path / "run", lengths=[1], resamples=5, attackers=["ignorant"],
           measures=["linkability"], jobs=1, **given)  # fmt: skip
    settings = read_results(tmp_path / "run").settings
    assert settings["annex"] == {
        "controller": "Example Hospital",
        "legal_basis": "GDPR, Article 6(1)(e)",
        "route": "contextual",
        "severity": "significant",
        "review_date": "2027-11-01",
    }
    assert [recipient.name for recipient in read_recipients(settings["recipients"])] == ["research partner"]
    assert read_statements(tmp_path / "a.toml") == {name: settings[name] for name in ("annex", "recipients")}


def test_nothing_is_stated_that_was_not_given() -> None:
    assert AnnexEntries().given == {}
    assert read_annex({}) == {}
    assert make_settings({"original": "a", "anonymized": "b"}).annex == {}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"annex": {"controler": "x"}}, "annex: unknown option 'controler'"),
        ({"annex": "x"}, "annex must be a table"),
        ({"annex": {"controller": 3}}, "annex: controller must be text"),
        ({"annex": {"review_date": "next year"}}, "annex: review_date: not a date: 'next year'"),
        ({"annex": {"severity": "grave"}}, "severity: 'grave' is not on the scale negligible"),
        ({"annex": {"route": "short"}}, "route: unknown value 'short'"),
        ({"annex": {"route": "contextual"}}, "no recipient is declared"),
        ({"annex": {"incidents": "x" * 5001}}, "incidents has more than 5000 characters"),
        ({"recipients": {"name": "x"}}, "recipients must be tables"),
        ({"recipients": [{"anonymizer": True}]}, "recipient 1: --name is required"),
        ({"recipients": [{"name": "a", "anonymiser": True}]}, "recipient 1: unknown option 'anonymiser'"),
        ({"recipients": [{"name": "a", "candidates": 9}]}, "has 9 candidates and no original speech or labels"),
        ({"recipients": [{"name": "a"}, {"name": "a"}]}, "two recipients are called 'a'"),
        ({"recipients": [{"name": "a", "original_speech": "yes"}]}, "original_speech must be true or false"),
    ],
)
def test_wrong_statements_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        make_settings({"original": "a", "anonymized": "b", **values})


def test_an_own_scale_has_its_own_words() -> None:
    assert read_annex({"severity": "4 of 5", "scale": "ours, 1 to 5"})["severity"] == "4 of 5"


def test_a_file_without_statements_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("lengths = [1]\n")
    with pytest.raises(InputError, match=r"no table \[annex\] or \[\[recipients\]\]"):
        read_statements(tmp_path / "a.toml")


def test_every_entry_is_text_or_a_choice() -> None:
    assert {declared.item for declared in options_of(AnnexEntries).values()} == {str}
