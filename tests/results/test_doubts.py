"""The meaning of a failed check is put in the same words everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_results import attacker, eer, link, sample
from typer.testing import CliRunner

from veilmeter.cli.assess import print_verdict
from veilmeter.cli.main import app
from veilmeter.core.findings import text_finding
from veilmeter.results import trust
from veilmeter.results.gate import gate
from veilmeter.results.model import Check, People, Results
from veilmeter.results.run_folder import write_results
from veilmeter.results.trust import TrustFacts, doubts, open_questions
from veilmeter.results.verdict import conclude
from veilmeter.wording import text


@pytest.fixture
def doubtful() -> Results:
    checks = (
        Check(name="enough speakers", finding=text_finding("10 speakers are too few."), passed=False),
        Check(
            name="strong on original speech",
            finding=text_finding("It was not measured."),
            passed=None,
            misleads="overestimated",
        ),
        Check(name="training speakers are others", finding=text_finding("None was given."), passed=None, applies=False),
    )
    verdict = replace(sample().verdict, trustworthy=False)
    return replace(sample(), checks=checks, verdict=verdict)


def test_terminal_and_gate_say_the_same(doubtful: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentences = list(map(text, doubts(doubtful) + open_questions(doubtful)))
    assert sentences == [
        "10 speakers are too few. The real risk may be lower or higher than these figures.",
        "It was not measured. The real risk may be higher than these figures.",
    ]
    print_verdict(doubtful, tmp_path)
    printed = " ".join(capsys.readouterr().out.split())
    assert all(sentence in printed for sentence in sentences)
    assert "NOT TRUSTWORTHY" in printed
    assert "0 passed, 1 failed, 1 could not be made; 1 not applicable here (training speakers are others)." in printed
    write_results(tmp_path, doubtful)
    gated = CliRunner().invoke(app, ["gate", str(tmp_path), "--trustworthy"])
    assert gated.exit_code == 1
    assert all(f"BROKEN  {sentence}" in gated.stdout for sentence in sentences)


def test_the_terminal_shows_all_three_criteria_by_both_legal_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = sample()
    for criteria in (results.criteria, {}):
        print_verdict(replace(results, criteria=criteria), tmp_path)
        printed = capsys.readouterr().out
        for name in ("linkability", "No Linkage", "Singling out", "No Record Isolation", "Inference", "No Inference"):
            assert f"\n{name} " in printed, name
    assert printed.count(" not measured ") == 3
    assert "EDPB Guidelines 02/2026 (a draft)" in " ".join(printed.split())


@pytest.mark.parametrize(("linked", "higher"), [(60.0, True), (100.0, False)])
def test_a_risk_that_is_as_high_as_it_can_be_is_not_said_to_be_higher(linked: float, higher: bool) -> None:
    weak = TrustFacts(compared=80, unchanged=0, trials=40, copies=0, own_runs=1, run_p=0.001)
    holders = {
        "original": attacker("original", eer(1)),
        "ignorant": attacker("ignorant", eer(2), link(linked, low=linked - 8, high=min(100.0, linked + 8))),
    }
    results = conclude(replace(sample(), attackers=holders, people=People()), weak)
    (wrong,) = (check for check in results.checks if check.name == trust.OWN_RUNS)
    assert wrong.failed
    assert ("may be higher" in text(trust.doubt(results, wrong))) is higher


def test_an_alarm_that_chance_cannot_explain_is_never_doubted_for_being_too_low_or_imprecise() -> None:
    """Fifty of a hundred are linked, five by chance: twenty people are too few to say how often, and a weak extractor
    may find more, but people are recognized."""
    weak = TrustFacts(compared=80, unchanged=0, trials=40, copies=0, own_runs=0)
    holders = {
        "original": attacker("original", eer(40)),
        "ignorant": attacker("ignorant", eer(30), link(50.0, low=28.0, high=72.0)),
    }
    alarm = conclude(replace(sample(), attackers=holders, people=People()), weak)
    assert alarm.verdict.level == "high"
    failed = {check.name for check in alarm.checks if check.failed}
    assert {trust.STRONG, trust.ENOUGH} <= failed
    assert alarm.verdict.trustworthy
    assert not trust.doubting_checks(alarm)
    assert len(doubts(alarm)) == len(failed)
    assert not gate(alarm, trustworthy=True).doubts
    assert not gate(alarm, max={"linkability": "60%"}, max_level="raised").doubts  # both are broken
    assert len(gate(alarm, max={"linkability": "80%"}).doubts) == len(failed)  # it holds, and the risk may be higher
    copied = conclude(replace(sample(), attackers=holders, people=People()), replace(weak, copies=20))
    assert not copied.verdict.trustworthy
    nobody = {**holders, "ignorant": attacker("ignorant", eer(50), link(5.0, low=2.0, high=10.0))}
    assert not conclude(replace(sample(), attackers=nobody, people=People()), weak).verdict.trustworthy
