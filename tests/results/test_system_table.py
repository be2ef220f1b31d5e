"""Systems by measures: the figures shown, the best, what surely differs, in every form."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_results import attacker, eer, link, sample
from tests.report.test_latex import compiled
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimates
from veilmeter.metrics.measure import estimate_of
from veilmeter.report import comparison_tables
from veilmeter.results.compare import ComparedFigure, compare
from veilmeter.results.model import Part
from veilmeter.results.run_folder import write_results
from veilmeter.results.system_table import SystemTable, system_table
from veilmeter.wording import sentences


def system(folder: Path, error: float, linked: float, wer: float | None = None, **fields: Any) -> Path:
    """A run whose informed attacker is stronger than its ignorant one by ten points."""
    attackers = {
        "original": attacker("original", eer(2.0)),
        "ignorant": attacker("ignorant", eer(error + 10, 1.0), link(linked / 2, low=0.0, high=50.0)),
        "informed": attacker("informed", eer(error, 1.0), link(linked, low=linked - 1, high=linked + 1),
                             link(linked, length=3, speakers=5)),
        "apart": attacker("apart", eer(0.0, 0.0), apart=True),
    }  # fmt: skip
    words = [] if wer is None else [estimate_of("wer", wer, interval=(wer - 1, wer + 1))]
    parts = {"utility": Part(name="utility", estimates=Estimates(words))}
    folder.mkdir(parents=True)
    write_results(folder, replace(sample(), attackers=attackers, parts=parts, criteria={}, **fields))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    distrusted = replace(sample().verdict, trustworthy=False)
    return [
        system(tmp_path / "b_1", 20.0, 50.0, 30.0),
        system(tmp_path / "[b2] & é", 30.0, 20.0, 30.0),
        system(tmp_path / "b3", 20.5, 40.0, None, verdict=distrusted),
    ]


def cells(table: SystemTable, figure: str) -> list[tuple[float | None, str, bool, bool]]:
    (column,) = [column for column in table.columns if column.figure.text == figure]
    return [(cell.estimate and cell.estimate.value, cell.place, cell.best, cell.sure) for cell in column.cells]


def test_the_strongest_attacker_the_best_and_what_is_sure(runs: list[Path]) -> None:
    table = system_table(runs, ["eer", "linkability@20", "ignorant:eer", "wer", "linkability@5,L3"])
    assert cells(table, "eer") == [
        (20.0, "informed", False, False), (30.0, "informed", True, True), (20.5, "informed", False, False),
    ]  # fmt: skip
    assert [best for *_, best, _ in cells(table, "linkability@20")] == [False, True, False]
    assert [value for value, *_ in cells(table, "ignorant:eer")] == [30.0, 40.0, 30.5]
    assert cells(table, "wer") == [
        (30.0, "utility", True, False), (30.0, "utility", True, False), (None, "", False, False),
    ]  # fmt: skip
    assert table.doubted == ("b3",)
    assert any("wer was not measured for b3" in remark for remark in sentences(table.remarks))
    labels = [column.label for column in table.columns]
    assert labels[:3] == ["EER", "Linkability among 20", "ignorant: EER"]
    assert labels[4] == "Linkability among 5, L = 3"


def test_the_usual_columns_are_those_that_all_runs_have(runs: list[Path]) -> None:
    assert [column.figure.text for column in system_table(runs).columns] == ["eer", "linkability"]
    assert [column.figure.text for column in system_table(runs[:2]).columns] == ["eer", "linkability", "wer"]


def test_differences_are_those_of_compare(runs: list[Path]) -> None:
    """The same attacker in both runs: the same difference, and the same interval."""
    (column,) = system_table(runs[:2], ["informed:eer"]).columns
    difference = column.cells[1].difference
    (expected,) = compare(runs[:2]).differences[ComparedFigure("EER", "informed")]
    assert difference is not None
    assert (difference.value, difference.interval) == (expected.value, expected.interval)


@pytest.mark.parametrize(
    ("figure", "what"),
    [("eeer", "did you mean 'eer'"), ("linkability@7", "measured among 5, 20 people"), ("eer=3", "invalid figure"),
     ("nobody:eer", "the runs share no such point"), ("", "invalid figure"), ("eer@L", "invalid figure")],
)  # fmt: skip
def test_what_no_run_has_is_refused(figure: str, what: str, runs: list[Path]) -> None:
    with pytest.raises(InputError, match=what):
        system_table(runs, [figure])


def test_every_form(runs: list[Path], tmp_path: Path) -> None:
    table = system_table(runs, ["eer", "linkability@20", "wer"])
    shown = comparison_tables.markdown(table, intervals=True).splitlines()
    assert shown[0] == "| system | EER (%) ↑ | Linkability among 20 (%) ↓ | word error rate (%) ↓ |"
    assert shown[3] == "| [b2] & é | **30.0**\\* [29.0, 31.0] | **20.0**\\* [19.0, 21.0] | **30.0** [29.0, 31.0] |"
    assert shown[4].startswith("| b3 † | 20.5 [19.5, 21.5] |")
    assert shown[4].endswith("| – |")
    text = comparison_tables.latex(table, intervals=True)
    assert "${\\mathbf{30.0}}^{*}$ $[29.0, 31.0]$" in text
    compiled(text, tmp_path)
    rows = list(csv.DictReader(io.StringIO(comparison_tables.table_csv(table))))
    assert {row["kind"] for row in rows} == {"value", "difference"}
    (row,) = [r for r in rows if r["kind"] == "difference" and r["figure"] == "eer" and r["system"] == "b3"]
    assert (float(row["value"]), row["sure"]) == (0.5, "false")


def run(*words: object) -> str:
    outcome = CliRunner().invoke(app, [str(word) for word in words])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


def test_the_command(runs: list[Path], tmp_path: Path) -> None:
    words = ["compare", *runs, "--table", "--measures", "eer,linkability@20,L1", "wer"]
    text = run(*words)
    assert "30.0*" in text
    assert "†: the self-checks of this assessment failed" in text
    form = json.loads(run(*words, "--json"))
    assert [column["figure"] for column in form["columns"]] == ["eer", "linkability@20,L1", "wer"]
    assert form["columns"][2]["cells"][2] is None
    rows = list(csv.DictReader(io.StringIO(run("compare", *runs, "--csv"))))
    kinds = [(row["figure"], row["run"], row["kind"]) for row in rows]
    assert kinds[:2] == [("ignorant: EER", "b_1", "value"), ("ignorant: EER", "[b2] & é", "value")]
    assert ("ignorant: EER", "b3", "difference") in kinds
    assert len(set(kinds)) == len(kinds)
    for latex in (run(*words, "--latex"), run("compare", *runs, "--latex")):
        compiled(latex, tmp_path)
    with pytest.raises(InputError, match="are for --table"):
        run("compare", *runs, "--intervals")


def test_names_are_unique_whatever_the_folders_are_called(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs[0])
    again = compare([".", Path("results.json"), runs[1]])
    assert len({run.name for run in again.runs}) == 3
    assert any("given more than once" in text for text in sentences(again.warnings))
    assert compare([".", runs[1]]).runs[0].name == "b_1"
