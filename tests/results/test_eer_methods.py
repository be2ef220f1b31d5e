"""The EER by another method: chosen in `assess`, or computed again from a run's scores by `compare` and `gate`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.assessment import assess
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.option_groups import EER_METHODS
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.scores.eer import eer
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.summary import replicates_of
from veilmeter.results.compare import ComparedFigure, compare
from veilmeter.results.differences import pair_trials, read_run_scores
from veilmeter.results.eer_methods import with_eer_method
from veilmeter.results.gate import gate
from veilmeter.results.model import Results
from veilmeter.results.run_folder import read_results
from veilmeter.results.system_table import system_table
from veilmeter.wording import sentences


def voices(kept: float) -> tuple[Embeddings, Embeddings]:
    """Fourteen speakers, half of them women, with six recordings, and the same with a part of the voice kept."""
    rng = np.random.default_rng(0)
    own = np.repeat(rng.standard_normal((14, 24)), 6, 0)
    ids, speakers = [f"u{n}" for n in range(84)], [f"s{n // 6:02d}" for n in range(84)]
    gender = {"gender": ["fm"[n // 6 % 2] for n in range(84)]}
    noise = np.random.default_rng(9).standard_normal(own.shape)
    original = Embeddings(own + 0.4 * rng.standard_normal(own.shape), ids, speakers, gender)
    return original, Embeddings(kept * own + noise, ids, speakers, gender)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems by the default, and both once more by the challenge's rule."""
    root = tmp_path_factory.mktemp("eers")
    options: dict[str, Any] = {"resamples": 50, "lengths": [1, 3], "measures": ["scores", "linkability"]}
    options["attackers"] = ["ignorant", "lazy-informed"]
    for name, kept in (("a", 0.5), ("b", 0.2)):
        assess(*voices(kept), out=root / name, title=name, **options)
        other = f"{name}-speechbrain"
        assess(*voices(kept), out=root / other, title=other, eer_method="speechbrain", **options)
    return root


def eers_of(results: Results) -> dict[tuple[str, ...], tuple[float, Any, str]]:
    return {
        (name, *group): (point.value, point.interval, point.method)
        for name, attacker in results.attackers.items()
        for group, estimates in [
            ((), attacker.estimates),
            *(((key, value), found) for key, values in attacker.by.items() for value, found in values.items()),
        ]
        for point in estimates.points("eer")
    }


def test_the_method_of_an_assessment(runs: Path) -> None:
    results = read_results(runs / "a-speechbrain")
    scores = read_run_scores(runs / "a-speechbrain", results, "ignorant")
    assert scores is not None
    found = results.attackers["ignorant"].estimates
    assert found["eer"].method == "speechbrain"
    assert found["eer"].value == pytest.approx(eer(*scores.ordered, "speechbrain"))
    assert found["eer"].value != pytest.approx(eer(*scores.ordered))
    assert {point.method for point in found.points("one_minus_eer")} == {"speechbrain"}
    assert results.settings["eer_method"] == "speechbrain"


def test_computed_again_it_is_what_the_assessment_would_have_found(runs: Path) -> None:
    again = with_eer_method(read_results(runs / "a"), runs / "a", "speechbrain")
    expected = eers_of(read_results(runs / "a-speechbrain"))
    assert ("ignorant", "gender", "f") in expected
    assert eers_of(again) == expected
    assert with_eer_method(again, runs / "a", "speechbrain") is again
    assert eers_of(with_eer_method(again, runs / "a", "rocch")) == eers_of(read_results(runs / "a"))


def test_figures_on_the_eer_are_by_the_same_method_or_left_out(runs: Path) -> None:
    again = with_eer_method(read_results(runs / "a"), runs / "a", "speechbrain")
    points = again.attackers["ignorant"].estimates.points("one_minus_eer")
    assert [(point.at["length"], point.method) for point in points] == [(1, "speechbrain")]
    assert points[0].value == pytest.approx(100 - again.attackers["ignorant"].estimates["eer"].value)


@pytest.mark.parametrize("method", EER_METHODS)
def test_differences_are_resampled_by_the_method_of_the_runs(runs: Path, method: str) -> None:
    folders = [runs / "a", runs / "b"]
    opened = [with_eer_method(read_results(folder), folder, method) for folder in folders]
    trials = pair_trials([(f, r, "ignorant") for f, r in zip(folders, opened, strict=True)], 50, 0)
    assert trials is not None
    for folder, results, replicates in zip(folders, opened, trials.replicates, strict=True):
        scores = read_run_scores(folder, results, "ignorant")
        assert scores is not None
        expected = replicates_of(scores, SortedScores(*scores.ordered), 50, 0, eer_method=method)
        np.testing.assert_array_equal(replicates.samples["eer"], expected.samples["eer"])


def test_runs_by_the_method_that_is_asked_for_are_compared_by_it(runs: Path) -> None:
    figure = ComparedFigure("EER", "ignorant")
    asked = compare(runs / "a", runs / "b", resamples=50, eer_method="speechbrain")
    there = compare(runs / "a-speechbrain", runs / "b-speechbrain", resamples=50)
    assert asked.differences[figure][0].interval == there.differences[figure][0].interval
    assert [point.value for point in asked.values[figure]] == [point.value for point in there.values[figure]]
    mixed = compare(runs / "a", runs / "b-speechbrain", resamples=50)
    assert any("eer_method differs: rocch (a), speechbrain" in line for line in sentences(mixed.warnings))
    same = compare(runs / "a", runs / "b-speechbrain", resamples=50, eer_method="roc")
    assert not same.warnings


def test_tables_name_the_method(runs: Path) -> None:
    table = system_table(runs / "a", runs / "b", measures=["eer"], resamples=50, eer_method="interpolated")
    assert "EER by the method interpolated" in list(sentences(table.remarks))
    assert "EER by the method" not in " ".join(
        sentences(system_table(runs / "a", measures=["linkability"], resamples=50).remarks)
    )


def test_a_limit_holds_or_not_by_the_method(runs: Path) -> None:
    group = {"by": ["gender"], "even_if_doubted": True}
    checked = gate(runs / "a", min={"eer": "1%"}, eer_method="speechbrain", **group)
    expected = eers_of(read_results(runs / "a-speechbrain"))
    for check in checked.limits:
        point = check.candidate.estimate
        assert point.method == "speechbrain"
        assert point.value in {value for value, *_ in expected.values()}
    assert gate(runs / "b", baseline=runs / "a", eer_method="roc", even_if_doubted=True, resamples=50).baseline


def test_commands(runs: Path) -> None:
    folders = [str(runs / "a"), str(runs / "b")]
    chosen = ["--eer-method", "speechbrain"]
    shown = CliRunner().invoke(app, ["compare", *folders, "--resamples", "50", *chosen])
    assert shown.exit_code == 0, shown.output
    assert "EER by the method speechbrain" in shown.output
    table = CliRunner().invoke(app, ["compare", *folders, "--resamples", "50", "--table", "--latex", *chosen])
    assert "EER by the method speechbrain" in table.output
    limit = CliRunner().invoke(app, ["gate", folders[0], "--min", "eer=1%", *chosen])
    assert "EER by the method speechbrain." in limit.output
    wrong = CliRunner().invoke(app, ["gate", folders[0], "--min", "eer=1%", "--eer-method", "roch"])
    assert isinstance(wrong.exception, InputError)
    assert "did you mean 'roc" in str(wrong.exception)


def test_the_page_of_a_comparison_names_the_method(runs: Path, tmp_path: Path) -> None:
    from veilmeter.report.compare import render_comparison

    compared = compare(runs / "a", runs / "b", resamples=50, eer_method="interpolated")
    assert "EER by the method interpolated." in render_comparison(compared, tmp_path)


def test_a_run_without_scores_says_what_to_do(runs: Path, tmp_path: Path) -> None:
    results = read_results(runs / "a")
    with pytest.raises(InputError, match="assess again with --eer-method roc"):
        with_eer_method(results, None, "roc")
    shutil.copytree(runs / "a", tmp_path / "a")
    (tmp_path / "a" / "tables" / "scores-ignorant.parquet").unlink()
    with pytest.raises(InputError, match="missing"):
        with_eer_method(results, tmp_path / "a", "roc")
