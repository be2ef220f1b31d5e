"""Gates by group, against an earlier run, and what they leave for a build server."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from sample_results import attacker, eer, link, sample
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding
from veilmeter.metrics.measure import estimate_of
from veilmeter.report.gate_files import junit
from veilmeter.results.gate import against_baseline, check_gate
from veilmeter.results.limits import check_limit, groups_of, parse_limit
from veilmeter.results.model import Check, Part, Results
from veilmeter.results.run_folder import results_from_json, results_to_json, write_results
from veilmeter.wording import sentence, sentences, text


def grouped() -> Results:
    """Women are found more often than men, and nobody within a group was tried among 20."""
    by = {"gender": {"f": Estimates([eer(20.0), link(70.0, speakers=10, low=60.0, high=80.0)]),
                     "m": Estimates([eer(40.0), link(20.0, speakers=10, low=10.0, high=30.0)])}}  # fmt: skip
    ignorant = attacker("ignorant", eer(30.0), link(40.0, low=30.0, high=50.0), by=by)
    return replace(sample(), attackers={"ignorant": ignorant})


def written(folder: Path, results: Results) -> Path:
    folder.mkdir(parents=True)
    write_results(folder, results)
    return folder


def run(*words: object) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, [str(word) for word in words])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome.exit_code, outcome.stdout


def test_each_group_is_held_against_the_limit_by_itself() -> None:
    outcome = check_gate(grouped(), [parse_limit("eer=30", "min")], by=["gender"])
    assert [(dict(check.group), check.holds, check.decisive) for check in outcome.limits] == [
        ({}, False, 17.0), ({"gender": "f"}, False, 17.0), ({"gender": "m"}, True, 37.0),
    ]  # fmt: skip
    assert sentence(outcome.limits[2].title) == "eer >= 30%, gender m"
    assert sentence(outcome.limits[2].finding) == "40.0 % [37.0, 43.0] (ignorant)"
    assert sentence(outcome.scope) == "the attackers ignorant; of everybody and within gender f, m"


def test_a_group_that_is_not_known_is_no_group_that_passed() -> None:
    with pytest.raises(InputError, match=r"within gender f \(it was measured among 10 people"):
        check_gate(grouped(), [parse_limit("linkability@20=90%", "max")], by=["gender"])
    with pytest.raises(InputError, match="no figures within groups by accent"):
        groups_of(grouped(), "accent")
    # Without --by it is reported instead.
    (check,) = check_gate(grouped(), [parse_limit("linkability@20=90%", "max")]).limits
    assert check.holds
    assert sentences(check.not_measured) == ("ignorant (gender f)", "ignorant (gender m)")


def test_what_a_part_says_of_one_attacker_is_no_group_of_people() -> None:
    runs = Part(name="runs", estimates=Estimates([link(10.0)]), by={"attacker": {"ignorant": Estimates([eer(20.0)])}})
    outcome = check_gate(replace(grouped(), parts={"runs": runs}), [parse_limit("linkability@20=90%", "max")])
    assert sentences(outcome.limits[0].not_measured) == ("ignorant (gender f)", "ignorant (gender m)")
    assert sentence(outcome.scope) == "the attackers ignorant; runs; of everybody and within gender f, m"


def test_the_worse_of_value_and_interval_counts() -> None:
    odd = replace(sample(), attackers={"ignorant": attacker("ignorant", link(90.0, low=0.0, high=10.0))})
    assert not check_limit(odd, parse_limit("linkability@20=20%", "max")).holds
    unknown = link(10.0).with_(interval=(0.0, float("nan")))
    odd = replace(sample(), attackers={"ignorant": attacker("ignorant", unknown)})
    assert not check_limit(odd, parse_limit("linkability@20=20%", "max")).holds


def test_a_figure_in_a_strange_unit_is_refused() -> None:
    odd = replace(sample(), attackers={"ignorant": attacker("ignorant", link(90.0).with_(unit="bit"))})
    with pytest.raises(InputError, match="instead of 'percent'"):
        check_limit(odd, parse_limit("linkability@20=20%", "max"))


def test_a_verdict_that_distrusts_itself_fails_without_a_failed_check() -> None:
    distrusted = replace(sample(), verdict=replace(sample().verdict, trustworthy=False))
    limits = [parse_limit("eer=1%", "min")]
    assert check_gate(sample(), limits).passed
    assert not check_gate(distrusted, limits).passed


def test_values_without_intervals_are_open() -> None:
    bare = replace(sample(), attackers={"ignorant": attacker("ignorant", eer(30.0).with_(interval=None))})
    outcome = check_gate(bare, [parse_limit("eer=20", "min")], trustworthy=True)
    assert [text(question) for question in outcome.open_questions] == [
        "eer >= 20%: the figure has no interval, so only its value was checked."
    ]
    assert not outcome.passed


def contradictions() -> list[tuple[str, dict[str, Any]]]:
    """What a file may say, and what is wrong with it."""
    form = json.dumps(results_to_json(sample()))

    def changed(change: Any) -> dict[str, Any]:
        fresh: dict[str, Any] = json.loads(form)
        change(fresh)
        return fresh

    return [
        ("Linkability can't be",
         changed(lambda f: f["attackers"]["ignorant"]["estimates"]["linkability"][1].update(value=170))),
        ("EER can't be",
         changed(lambda f: f["attackers"]["ignorant"]["estimates"]["eer"].update(value=-5))),
        ("its level is low, yet that of linking is raised", changed(lambda f: f["verdict"].update(level="low"))),
        ("its level is unknown, yet that of linking", changed(lambda f: f["verdict"].update(level="unknown"))),
        ("it rests on 1, yet ignorant has 40",
         changed(lambda f: f["criteria"]["linking"]["estimate"].update(value=1, interval=[0, 2]))),
    ]  # fmt: skip


@pytest.mark.parametrize(("what", "form"), contradictions(), ids=lambda part: part if isinstance(part, str) else "")
def test_results_that_contradict_themselves_are_refused(what: str, form: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=what):
        results_from_json(form)


def systems(folder: Path, change: float, reach: float = 1.0, **fields: Any) -> tuple[Path, Path]:
    """A baseline, and a run whose EER and word error rate are higher by `change`."""

    def results(by: float) -> Results:
        words = estimate_of("wer", 20.0 + by, interval=(20 + by - reach, 20 + by + reach))
        baseline = estimate_of("wer_original", 15.0 + by, interval=(15.0 + by, 15.0 + by))
        part = Part(name="utility", estimates=Estimates([words, baseline]))
        attackers = {"ignorant": attacker("ignorant", eer(30.0 + by, reach))}
        return replace(sample(), attackers=attackers, parts={"utility": part}, criteria={})

    before = written(folder / "before", results(0.0))
    return before, written(folder / "now", replace(results(change), **fields))


def test_a_sure_worsening_fails_in_the_direction_of_its_measure(tmp_path: Path) -> None:
    before, now = systems(tmp_path, -10.0)
    found = against_baseline(before, now, resamples=20)
    assert [str(worse.figure) for worse in found.worse] == ["ignorant: EER"]  # a lower word error rate is none
    assert (found.compared, found.better) == (2, 1)
    assert not check_gate(sample(), [], baseline=found).passed
    before, now = systems(tmp_path / "other", 10.0)
    found = against_baseline(before, now, resamples=20)
    assert [str(worse.figure) for worse in found.worse] == ["word error rate"]


def test_an_unsure_worsening_passes_and_says_what_differs(tmp_path: Path) -> None:
    before, now = systems(tmp_path, -1.0, settings={"precision": 20.0})
    found = against_baseline(before, now, resamples=20)
    assert found.worse == ()
    assert check_gate(sample(), [], baseline=found).passed
    assert any("The setting precision differs: 10 (before), 20 (now)" in text for text in sentences(found.remarks))


def test_what_can_not_be_compared_is_open_or_refused(tmp_path: Path) -> None:
    before, now = systems(tmp_path, -10.0)
    with pytest.raises(InputError, match="its own baseline"):
        against_baseline(now, tmp_path / "before" / ".." / "now")
    bare = Estimates([eer(20.0).with_(interval=None)])
    attackers = {"ignorant": attacker("ignorant", *bare)}
    without = written(tmp_path / "bare", replace(sample(), attackers=attackers, parts={}, criteria={}))
    with pytest.raises(InputError, match="none of the figures has an interval"):
        against_baseline(before, without)
    informed = {"informed": attacker("informed", eer(5.0)), "ignorant": attacker("ignorant", eer(30.0))}
    parts = {"utility": Part(name="utility", estimates=Estimates([estimate_of("wer", 9.0, interval=(8.0, 10.0))]))}
    stronger = written(tmp_path / "stronger", replace(sample(), attackers=informed, criteria={}, parts=parts))
    found = against_baseline(stronger, now)
    assert [finding.values["attacker"] for finding in found.untested] == ["informed"]
    outcome = check_gate(sample(), [], baseline=found, trustworthy=True)
    assert not outcome.passed
    assert "The informed attacker can't be compared with stronger" in text(outcome.open_questions[-1])


def test_groups_are_compared_where_asked_for(tmp_path: Path) -> None:
    def results(women: float) -> Results:
        by = {"gender": {"f": Estimates([eer(women, 1.0)]), "m": Estimates([eer(40.0, 1.0)])}}
        return replace(sample(), attackers={"ignorant": attacker("ignorant", eer(30.0), by=by)}, criteria={}, parts={})

    before, now = written(tmp_path / "before", results(40.0)), written(tmp_path / "now", results(10.0))
    assert against_baseline(before, now).worse == ()
    (worse,) = against_baseline(before, now, by=["gender"]).worse
    assert str(worse.figure) == "ignorant: EER, gender f"


def test_what_a_build_server_gets(tmp_path: Path) -> None:
    results = grouped()
    doubted = Check(
        name="c",
        finding=Finding("of_others", {"what": "It <failed> & \x1b[31m | broke."}),
        passed=False,
        misleads="overestimated",
    )
    verdict = replace(results.verdict, trustworthy=False)
    folder = written(tmp_path / "run", replace(results, checks=(doubted,), verdict=verdict, criteria={}))
    xml, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    words = ["gate", folder, "--min", "eer=30", "--by", "gender", "--junit", xml, "--summary", page]
    assert run(*words)[0] == 1
    suite = ElementTree.parse(xml).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "3", "0")
    assert [case.get("name") for case in suite][:3] == ["eer >= 30%", "eer >= 30%, gender f", "eer >= 30%, gender m"]
    assert [len(case.findall("failure")) for case in suite] == [1, 1, 0, 1]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("## Privacy gate: failed\n")
    assert re.search(r"\| eer >= 30%, gender f \| \*\*broken\*\* \| 20.0 % \[17.0, 23.0\] \(ignorant\) \|", text)
    assert "- of_others: what It &lt;failed> & ?[31m \\| broke." in text
    # A gate that can't be checked leaves no earlier file to speak for it.
    with pytest.raises(InputError, match="no measure 'wer'"):
        run("gate", folder, "--max", "wer=3", "--junit", xml, "--summary", page)
    assert ElementTree.parse(xml).getroot().get("errors") == "1"
    assert page.read_text(encoding="utf-8").startswith("## Privacy gate: could not be checked\n")
    with pytest.raises(InputError, match="no results found"):
        run("gate", tmp_path / "nowhere", "--max", "wer=3", "--junit", xml)
    assert "no results found" in xml.read_text()
    assert str(tmp_path) not in xml.read_text()


def test_a_gate_without_doubts_has_a_case_that_passed() -> None:
    outcome = check_gate(sample(), [parse_limit("eer=1%", "min")])
    suite = ElementTree.fromstring(junit(outcome))[0]
    assert [len(case) and case[0].tag for case in suite] == ["system-out", "system-out"]
    assert isinstance(outcome.limits[0].candidate.estimate, Estimate)


def test_the_command_with_a_baseline(tmp_path: Path) -> None:
    before, now = systems(tmp_path, -10.0)
    code, text = run("gate", now, "--baseline", before, "--resamples", 20)
    assert code == 1
    assert "BROKEN  worse than before: ignorant: EER: 20.0 %, before 30.0 %; difference -10.0 points [" in text
    form = json.loads(run("gate", now, "--baseline", before, "--resamples", 20, "--json")[1])
    assert form["baseline"]["worse"][0]["title"] == "ignorant: EER"
    assert run("gate", before, "--baseline", now, "--resamples", 20)[0] == 1  # words get worse the other way round
