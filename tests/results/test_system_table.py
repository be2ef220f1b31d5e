"""Systems by measures: the figures shown, the best, significant differences, in every form."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_results import attacker, eer, link, sample
from tests.wording.test_latex import compiled
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimates
from veilmeter.metrics.measure import estimate_of
from veilmeter.results import comparison_tables
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
    table = system_table(runs, measures=["eer", "linkability@20", "ignorant:eer", "wer", "linkability@5,L3"])
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
    (column,) = system_table(runs[:2], measures=["informed:eer"]).columns
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
        system_table(runs, measures=[figure])


def test_every_form(runs: list[Path], tmp_path: Path) -> None:
    table = system_table(runs, measures=["eer", "linkability@20", "wer"])
    shown = comparison_tables.markdown(table, intervals=True).splitlines()
    assert shown[0] == "| system | EER (%) ↑ | Linkability among 20 (%) ↓ | word error rate (%) ↓ |"
    assert shown[3] == "| [b2] & é | **30.0**\\* [29.0, 31.0] | **20.0**\\* [19.0, 21.0] | **30.0** [29.0, 31.0] |"
    assert shown[4].startswith("| b3 † | 20.5 [19.5, 21.5] |")
    assert shown[4].endswith("| – |")
    text = comparison_tables.latex(table, intervals=True)
    assert "${\\mathbf{30.0}}^{*}$ $[29.0, 31.0]$" in text
    compiled(text, tmp_path)
    rows = list(csv.DictReader(io.StringIO(comparison_tables.table_csv(table))))
    assert {row["kind"] for row in rows} == {"value", "difference", "pair"}
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
    with pytest.raises(InputError, match="is for --table"):
        run("compare", *runs, "--intervals")


def test_names_are_unique_whatever_the_folders_are_called(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs[0])
    again = compare([".", Path("results.json"), runs[1]])
    assert len({run.name for run in again.runs}) == 3
    assert any("given more than once" in text for text in sentences(again.warnings))
    assert compare([".", runs[1]]).runs[0].name == "b_1"


TWELVE = [(20.0, 60.0), (20.4, 61.0), (28.0, 40.0), (28.5, 41.0), (29.9, 39.0), (35.0, 20.0), (36.5, 18.0),
          (38.0, 16.0), (40.0, 12.0), (41.0, 11.0), (47.0, 6.0), (47.0, 5.0)]  # fmt: skip


@pytest.fixture
def twelve(tmp_path: Path) -> list[Path]:
    """Twelve systems whose EERs are known to within a point, the first the weakest; two are alike to a digit."""
    return [
        system(tmp_path / f"system-{number:02}", error, linked, 30.0 - number)
        for number, (error, linked) in enumerate(TWELVE, 1)
    ]


def test_a_leaderboard_ranks_and_joins_what_does_not_differ(twelve: list[Path]) -> None:
    table = system_table(twelve, measures=["eer", "linkability@20"], sort="eer")
    assert table.systems[:2] == ("system-11", "system-12")
    assert table.systems[-1] == table.first == "system-01"
    column = table.ranking_column
    assert column is not None
    assert [cell.rank for cell in column.cells] == [1, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert len(column.pairs) == 66
    sure = {frozenset((pair.first, pair.second)) for pair in column.pairs if pair.sure}
    letters = {name: set(cell.alike) for name, cell in zip(table.systems, column.cells, strict=True)}
    for pair in column.pairs:
        differ = frozenset((pair.first, pair.second)) in sure
        assert differ == (not letters[pair.first] & letters[pair.second])
        expected = dict(zip(sorted(table.systems), TWELVE, strict=True))
        assert pair.estimate.value == pytest.approx(expected[pair.second][0] - expected[pair.first][0])
    # 20.0 and 20.4 by intervals of +-1 each: half-width of the difference 1.41; 41 against 47 is beyond any correction
    assert letters["system-01"] & letters["system-02"]
    assert not letters["system-10"] & letters["system-11"]


def test_pairwise_significance_is_holms_rule_over_all_pairs(twelve: list[Path]) -> None:
    """Against a slow reference: sorted probabilities times how many are left, never falling."""
    (column,) = system_table(twelve, measures=["eer"]).columns
    points = [pair.estimate for pair in column.pairs]
    raw = []
    for point in points:
        assert point.interval is not None
        reach = (point.interval[1] - point.interval[0]) / 2
        raw.append(math.erfc(1.959964 * abs(point.value) / reach / math.sqrt(2)))
    order = sorted(range(len(raw)), key=raw.__getitem__)
    running, adjusted = 0.0, [0.0] * len(raw)
    for place, number in enumerate(order):
        running = max(running, min(1.0, (len(raw) - place) * raw[number]))
        adjusted[number] = running
    assert [point.extra["p_adjusted"] for point in points] == pytest.approx(adjusted, abs=1e-6)


def test_a_leaderboard_of_twelve_is_one_screen(twelve: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("compare", *twelve, "--table", "--sort", "eer").splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if "system-" in line][:12]
    assert [row[1] for row in rows][:2] == ["system-11", "system-12"]
    assert [row[0] for row in rows] == ["1", "1", *map(str, range(3, 13))]
    last = [row for row in rows if row[1] == "system-01"]
    assert last == [["12", "system-01", last[0][2], "20.0", "60.0", "29.0"]]


def test_a_leaderboard_is_one_page(twelve: list[Path], tmp_path: Path) -> None:
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    run("compare", *twelve, "--table", "--sort", "eer", "--report", page, "--figures", figures, "--width", "8cm")
    text = page.read_text()
    assert text.count("<tr><td>") == 12
    assert "figure-ranking" in text
    drawn = list(csv.DictReader(io.StringIO((figures / "ranking.csv").read_text().split("\n\n")[0])))
    assert [row["system"] for row in drawn][-1] == "system-01"
    assert (figures / "ranking.pdf").stat().st_size > 1000


def test_a_page_of_groups_and_of_one_run_twice(twelve: list[Path], tmp_path: Path) -> None:
    """Groups have no picture of single runs, and a run that is named twice gets two names."""
    page = tmp_path / "page.html"
    for words in ([f"A={twelve[0]},{twelve[1]}", f"B={twelve[2]}", "--group"], [twelve[0], twelve[0]]):
        run("compare", *words, "--table", "--sort", "eer", "--report", page)
        assert page.read_text().count("<tr><td>") == 2
        page.unlink()


def test_one_run_is_a_table_but_no_comparison(runs: list[Path]) -> None:
    table = system_table(runs[:1], measures=["eer"])
    assert (table.systems, table.columns[0].pairs) == (("b_1",), ())
    with pytest.raises(InputError, match="one run can't be compared"):
        compare(runs[:1])


def test_labels_commas_and_spaces(twelve: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(twelve[0].parent)
    plain = json.loads(run("compare", "system-01", "system-02", "system-03", "--table", "--json"))
    ways = [
        ["system-01,system-02,system-03", "--table"],
        ["--table", "--measures", "eer", "linkability", "wer", "system-01", "system-02", "system-03"],
        ["--table", "--measures", "eer,linkability,wer", "system-01", "system-02,system-03"],
    ]
    for way in ways:
        assert json.loads(run("compare", *way, "--json"))["columns"] == plain["columns"]
    named = json.loads(run("compare", "B1=system-01", "my system=system-02", "--table", "--json"))
    assert named["systems"] == ["B1", "my system"]
    assert [one.name for one in compare(["B1=system-01,B2=system-02"]).runs] == ["B1", "B2"]
    for words, what in [(["B1=system-01", "B1=system-02"], "2 runs are called 'B1'"), (["=system-01"], "invalid run"),
                        (["B1=nowhere"], "nowhere: no results found")]:  # fmt: skip
        with pytest.raises(InputError, match=what):
            system_table(words)


def test_runs_of_one_name_are_a_mean_and_a_spread(twelve: list[Path]) -> None:
    folders = [f"A={twelve[0]},{twelve[2]}", f"B={twelve[5]},{twelve[6]},{twelve[7]}", f"C={twelve[8]}"]
    table = system_table(folders, measures=["eer"], sort="eer", group=True)
    assert table.systems == ("C", "B", "A")
    (column,) = table.columns
    one, several, two = column.cells
    assert (one.spread, one.runs, two.runs) == (None, 1, 2)
    assert several.estimate is not None
    assert several.estimate.value == pytest.approx(36.5)
    assert several.spread == pytest.approx(1.5)
    assert several.estimate.interval is not None
    half = math.hypot(1.0, 4.302653 * 1.5 / math.sqrt(3))  # speakers +-1; Student's t with 2 degrees of freedom
    assert several.estimate.interval == pytest.approx((36.5 - half, 36.5 + half), abs=1e-4)
    assert "| B | 3 | 36.5 ± 1.5 |" in comparison_tables.markdown(
        system_table(folders[1:], measures=["eer"], group=True)
    )
    with pytest.raises(InputError, match="no two runs have the same name"):
        system_table(twelve[:2], group=True)
