"""Scores alone: what another system's attackers found, without any speech."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.assessment import Assessment, assess
from veilmeter.assessment.attack import effect_of_ties
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, about
from veilmeter.data.scores import read_scores
from veilmeter.metrics.scores.summary import measure
from veilmeter.report import write_report
from veilmeter.report.advice import advice
from veilmeter.results import trust
from veilmeter.results.gate import check_gate
from veilmeter.results.limits import parse_limit
from veilmeter.wording import sentence, sentences, text

PEOPLE = [f"s{number}" for number in range(12)]
PAIRS = [(a, f"{b}-u{n}", a == b) for a in PEOPLE for b in PEOPLE for n in range(3)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text("".join(f"{a} {u} {'target' if t else 'nontarget'}\n" for a, u, t in PAIRS))
    for name, distance, seed in (("oo", 4.0, 0), ("oa", 0.0, 1), ("aa", 2.0, 2), ("new", 0.0, 3)):
        noise = np.random.default_rng(seed).standard_normal(len(PAIRS))
        lines = [f"{a} {u} {noise[i] + distance * t:.6f}\n" for i, (a, u, t) in enumerate(PAIRS)]
        (tmp_path / name).write_text("".join(lines))
    return tmp_path


def command(place: Path, *words: str) -> Any:
    given = [word.replace("HERE", str(place)) for word in words]
    return CliRunner().invoke(app, given)


def assessed(place: Path, files: Mapping[str, str], **options: Any) -> Assessment:
    tables = {name: {"scores": str(place / file)} for name, file in files.items()}
    return assess(attackers=tables, trials=str(place / "key"), resamples=20, **options)


def test_the_same_figures_as_measuring_them(place: Path) -> None:
    found = assessed(place, {"original": "oo", "ignorant": "oa", "lazy-informed": "aa"}).results
    for name, file in (("original", "oo"), ("ignorant", "oa"), ("lazy-informed", "aa")):
        expected = measure(read_scores(place / file, place / "key"), resamples=20)
        for figure in ("eer", "d_ece", "min_cllr"):
            assert found.attackers[name].estimates[figure].value == expected[figure].value
    assert found.attackers["ignorant"].source == "scores"
    assert "zebra" in found.parts
    assert found.verdict.level in ("raised", "high")
    assert found.inputs["scores-ignorant"].kind == "scores"
    assert about(Finding("no_scores_given"), attacker="informed") in found.verdict.not_tested


def test_people_with_trials_are_not_denied(place: Path) -> None:
    """Four of twelve are enrolled; scores can't say who is linked, and more people would not change that."""
    rows = [(a, u, t) for a, u, t in PAIRS if a in PEOPLE[:4]]
    (place / "key").write_text("".join(f"{a} {u} {'target' if t else 'nontarget'}\n" for a, u, t in rows))
    kept = [line for line in (place / "aa").read_text().splitlines(True) if line.split()[0] in PEOPLE[:4]]
    (place / "aa").write_text("".join(kept))
    found = assessed(place, {"lazy-informed": "aa"}).results
    assert (found.protocol.enrolled_speakers, found.protocol.trial_speakers) == (4, 4)
    expected = "There is no result per person for 4 people who have trials: scores do not tell whom an attacker names."
    assert sentence(found.people.finding) == expected
    actions = [sentence(item.action) for item in advice(found)]
    assert not any("more people" in action for action in actions)
    assert "Assess recordings or embeddings: scores do not tell whom an attacker names." in actions
    assert "adaptive" in check_gate(found, [parse_limit("eer=1%", "min")]).not_run


def test_ties_are_a_doubt_only_where_they_move_a_measure(place: Path) -> None:
    """Scores of four decimals tie often, and it changes nothing; those of one decimal or of copies do."""
    rng = np.random.default_rng(0)
    t, n = np.sort(rng.normal(0.3, 0.25, 2000)), np.sort(rng.normal(0, 0.25, 40_000))
    assert effect_of_ties(t, n) == 0
    rounded = [np.round(scores, 4) for scores in (t, n)]
    assert np.mean(np.isin(*rounded)) > 0.5
    assert effect_of_ties(*rounded) < 0.1
    assert effect_of_ties(*(np.round(scores, 1) for scores in (t, n))) > trust.MOST_TIED
    assert effect_of_ties(np.zeros(5), np.zeros(5)) == pytest.approx(100)
    lines = [line.split() for line in (place / "aa").read_text().splitlines()]
    (place / "coarse").write_text("".join(f"{a} {u} {float(score):.0f}\n" for a, u, score in lines))
    checks = {check.name: check for check in assessed(place, {"lazy-informed": "coarse"}).results.checks}
    assert checks[trust.TIES].failed
    assert "percentage points: the scores are rounded" in text((checks[trust.TIES].finding,))


def test_scores_that_tell_nothing_are_no_reassurance(place: Path) -> None:
    found = assessed(place, {"ignorant": "oa"}).results
    assert found.criteria["disclosure"].level in ("low", "unknown")
    assert found.verdict.level == "unknown"
    assert text(found.verdict.headline).startswith("Too little was measured")
    assert {check.name for check in found.checks if check.open} >= {
        "strong on original speech", "anonymized differs from original", "attackers ran the anonymizer"
    }  # fmt: skip


def test_scores_in_bands_are_no_noise(place: Path) -> None:
    """Targets lie between impostors wherever these are: no threshold separates them, but anyone can read them off."""
    rng = np.random.default_rng(5)
    same = np.array([t for _, _, t in PAIRS])
    comb = np.round(2 * rng.standard_normal(len(PAIRS))) + 0.1 * rng.standard_normal(len(PAIRS))
    comb += same * rng.choice([-0.5, 0.5], len(PAIRS))
    (place / "comb").write_text("".join(f"{a} {u} {comb[i]:.6f}\n" for i, (a, u, _) in enumerate(PAIRS)))
    found = assessed(place, {"ignorant": "comb"}).results
    disclosure = found.criteria["disclosure"]
    assert disclosure.level == "raised"
    assert "lie in bands" in text([disclosure.finding])
    assert found.verdict.level == "raised"


def test_page_gate_and_compare(place: Path) -> None:
    common = ("--trials", "HERE/key", "--resamples", "20", "--jobs", "1", "--quiet")
    for run, file in (("run", "aa"), ("other", "new")):
        ran = command(place, "assess", "--scores", f"lazy-informed=HERE/{file}", *common, "--out", f"HERE/{run}")
        assert ran.exit_code == 0, ran.output
    assert "scores only, no recordings" in ran.output
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert "lazy-informed" in page
    assert command(place, "gate", "HERE/run", "--min", "eer=1%", "--even-if-doubted").exit_code == 0
    assert command(place, "gate", "HERE/run", "--min", "eer=45", "--even-if-doubted").exit_code == 1
    compared = command(place, "compare", "HERE/run", "HERE/other", "--resamples", "20")
    assert compared.exit_code == 0, compared.output
    assert "EER" in compared.output
    assert "do not assess the same" not in compared.output  # one key
    (place / "key").write_text((place / "key").read_text() + "\n")
    again = command(place, "assess", "--scores", "lazy-informed=HERE/aa", *common, "--out", "HERE/third")
    assert again.exit_code == 0
    other_key = command(place, "compare", "HERE/run", "HERE/third", "--resamples", "20")
    assert "do not assess the same trials" in " ".join(other_key.output.split())


def test_a_used_folder_equals_a_fresh_one(place: Path) -> None:
    assessed(place, {"ignorant": "aa"}, out=place / "used")
    write_report(place / "used")
    assessed(place, {"ignorant": "oa"}, out=place / "used")
    assessed(place, {"ignorant": "oa"}, out=place / "fresh")
    assert (place / "used/results.json").read_bytes() == (place / "fresh/results.json").read_bytes()
    assert not (place / "used/report.html").exists()


def test_what_has_no_effect_is_said_and_what_is_missing_refused(place: Path) -> None:
    found = assessed(place, {"ignorant": "oa"}, lengths=[5], by=["gender"], extractor="ge2e").results
    said = "\n".join(sentences(found.remarks))
    for option in ("--lengths 5", "--by gender", "--extractor ge2e"):
        assert f"{option} had no effect: only scores were given, no speech" in said
    assert found.settings["lengths"] is None
    with pytest.raises(InputError, match="the measures of scores were left out"):
        assessed(place, {"ignorant": "oa"}, measures=["linkability"])
    with pytest.raises(InputError, match="there is no anonymized speech"):
        assessed(place, {"ignorant": "oa"}, original=str(place / "oa"))
    with pytest.raises(InputError, match="there is no original speech"):
        assess(trials=str(place / "key"))
    with pytest.raises(InputError, match="it is unknown which trials are target trials"):
        assess(attackers={"ignorant": {"scores": str(place / "oa")}})
