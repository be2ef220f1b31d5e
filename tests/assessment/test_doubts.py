"""What a failed check means is said for each of them, and in the same words everywhere."""

from __future__ import annotations

import html
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.assessment import assess
from veilmeter.cli.verdict import print_verdict
from veilmeter.data.embeddings import Embeddings
from veilmeter.results import trust, verdict
from veilmeter.results.doubts import doubts, meaning

EITHER, HIGHER, LOWER = "lower or higher than these figures", "may be higher than", "may be lower than"


def failed() -> dict[str, trust.Check]:
    """Every check, made to fail by its own function."""
    rng = np.random.default_rng(0)
    same = Embeddings(rng.standard_normal((4, 3)), [f"u{n}" for n in range(4)], ["a", "a", "b", "b"])
    linking = {
        "level": "raised",
        "estimate": {"value": 0.3, "interval": [0.1, 0.6], "n": {"speakers": 10}, "null": 0.1},
    }
    informed = {"ignorant": {"value": 10.0}, "informed": {"value": 30.0, "interval": [25, 35]}}
    made = [
        trust.strong_on_original({"value": 40.0}, 15.0),
        trust.adapted_not_worse(informed, ["informed"]),
        trust.not_identical(same, same),
        trust.enough_speakers(linking, 0.1),
        trust.training_disjoint(["a"], {"train_original": ["a"]}),
        trust.other_sessions(0.9),
        trust.no_ties({"ignorant": 0.5}),
        trust.not_inverted({"ignorant": {"value": 0.1, "flipped": 0.4}}),
    ]
    assert all(check.passed is False for check in made)
    return {check.name: check for check in made}


EXPECTED = {
    "strong on original speech": HIGHER,
    "adaptation helps": HIGHER,
    "anonymized differs from original": "not protected at all",
    "enough speakers": EITHER,
    "training speakers are others": LOWER,
    "enrolment and trials of different sessions": LOWER,
    "scores without ties": EITHER,
    "scores are not inverted": HIGHER,
}


def test_every_check_says_what_its_failure_means() -> None:
    checks = failed()
    assert set(checks) == set(EXPECTED)
    for name, check in checks.items():
        assert EXPECTED[name] in meaning(check.to_json()), name
        assert doubts({"trust": [check.to_json()]}) == [f"{check.sentence} {meaning(check.to_json())}"]


def test_a_check_of_another_version_says_what_its_run_says() -> None:
    assert meaning({"name": "new one", "errs": "it may rain"}) == "It may rain."
    assert meaning({"name": "new one"}) == "The figures may be wrong."
    assert doubts({}) == []


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run of so few speakers that nothing can be claimed."""
    rng = np.random.default_rng(3)
    voices = np.repeat(rng.standard_normal((6, 12)), 4, 0)
    ids, speakers = [f"u{n}" for n in range(24)], [f"s{n // 4}" for n in range(24)]
    original = Embeddings(voices + 0.4 * rng.standard_normal(voices.shape), ids, speakers)
    anonymized = Embeddings(0.35 * voices + rng.standard_normal(voices.shape), ids, speakers)
    folder = tmp_path_factory.mktemp("doubt")
    found = assess(original, anonymized, out=folder, measures=["scores", "linkability"], resamples=50)
    results = dict(found.results)
    name = "enough speakers"
    assert [check["passed"] for check in results["trust"] if check["name"] == name] == [False]
    return folder, results


def test_terminal_page_markdown_latex_gate_and_comparison_say_the_same(
    doubtful: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from typer.testing import CliRunner

    from veilmeter.cli.main import app
    from veilmeter.report import write_report
    from veilmeter.report.compare import write_comparison

    folder, results = doubtful
    told = doubts(results)
    assert any(EITHER in said for said in told)

    def missing(text: str) -> list[str]:
        flat = " ".join(html.unescape(text).replace("\\", "").replace("%", "").split())
        return [said for said in told if " ".join(said.replace("%", "").split()) not in flat]

    print_verdict(results, folder)
    assert missing(capsys.readouterr().out) == []
    page = write_report(folder, tmp_path / "r.html").read_text()
    assert missing(page.split('id="linking"')[0]) == []  # the verdict
    assert missing(page.split('id="annex"')[-1]) == []
    assert "higher than the figures below" not in page
    assert missing(write_report(folder, tmp_path / "r.md", form="md").read_text()) == []
    assert missing(write_report(folder, tmp_path / "r.tex", form="latex").read_text()) == []
    shutil.copytree(folder, tmp_path / "other")
    compared = write_comparison([folder, tmp_path / "other"], tmp_path / "c.html", resamples=20)
    assert missing(compared.read_text()) == []
    gated = CliRunner().invoke(app, ["gate", str(folder), "--trustworthy"])
    assert gated.exit_code == 1
    assert missing(gated.stdout) == []


def test_an_attribute_lost_in_noise_hides_none_that_is_not() -> None:
    noise = {"value": 63.0, "null": 50.0, "null_range": [35.0, 65.0], "interval": [50.0, 76.0]}
    told = {"value": 29.0, "null": 12.5, "null_range": [3.0, 18.0], "interval": [22.0, 37.0]}
    case = verdict.inference({"inference": {"gender": {"estimate": noise}, "accent": {"estimate": told}}})
    assert case is not None
    assert case["level"] == "raised"
    assert case["sentence"].startswith("The attribute accent is guessed right for 29 [22, 37] of 100")
    assert "guessing gives 12.5" in case["sentence"]


def test_what_guessing_achieves_among_many_does_not_vanish() -> None:
    one = {"speakers": 400, "length": 1, "value": 0.5, "unit": "probability", "interval": [0.4, 0.6]}
    case = verdict.linking({"attackers": {"informed": {"estimates": {"linkability": [one]}}}})
    assert case is not None
    assert case["sentence"].endswith("among 400; guessing links 0.25.")
