"""Curves, DET and ECE: the page and the papers' figures are drawn by the same functions, from the same numbers."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest
from tests.results.sample_results import sample

from veilmeter.attacks.attacker import color_of
from veilmeter.core import colors
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import text_finding
from veilmeter.core.intervals import normal_quantile
from veilmeter.report.figures import legal, style
from veilmeter.report.figures.page import csv_of, save_figures, section_figures
from veilmeter.report.figures.scores import det_lines, det_rows
from veilmeter.report.figures.systems import pareto_front, system_figures
from veilmeter.report.rows import section_rows
from veilmeter.results.model import AttackerResult, Criterion, Part, Results
from veilmeter.results.run_folder import read_results


def point(name: str, value: float, speakers: int, length: int = 1, **more: Any) -> Estimate:
    return Estimate(name=name, value=value, unit="percent", at={"speakers": speakers, "length": length}, **more)


def curves(high: float) -> dict[str, list[Estimate]]:
    """An attacker's curves: `high` sets its own level, so that no two attackers share a number."""
    sizes = (2, 10, 40)
    return {
        "linkability": [
            point("linkability", high / n, n, length, interval=(0.9 * high / n, 1.1 * high / n), null=100 / n)
            for length in (1, 3)
            for n in sizes
        ],
        "singling_out": [point("singling_out", high - n, n, null=37.0) for n in sizes],
        "control": [point("control", high / 2 - n / 10, n) for n in sizes],
        "population_linkability": [point("population_linkability", high / 100, 1000, interval=(0.0, high / 10))],
    }


ATTACKERS = {"ignorant": curves(50.0), "informed": curves(80.0)}
RESULTS: Results = replace(
    sample(),
    attackers={
        name: AttackerResult(name=name, about="", estimates=Estimates.of(own)) for name, own in ATTACKERS.items()
    },
)


def kinds(rows: list[dict[str, Any]], kind: str) -> dict[tuple[str, int, int], float]:
    return {(row["attacker"], row["length"], row["speakers"]): row["value"] for row in rows if row["kind"] == kind}


def drawn(figure: Any) -> list[dict[str, Any]]:
    (rows,) = figure.spec["datasets"].values()  # one table, however many panels
    return list(rows)


def layers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [layer for panel in spec["hconcat"] for layer in panel["layer"]]


def test_each_attacker_has_its_own_control() -> None:
    (figure,) = section_figures("singling_out", RESULTS, None)
    controls = kinds(drawn(figure), "control")
    for name, own in ATTACKERS.items():
        for one in own["control"]:
            assert controls[name, 1, one.at["speakers"]] == one.value
    assert len(controls) == sum(len(own["control"]) for own in ATTACKERS.values())
    dashed = [
        layer
        for layer in layers(figure.spec)
        if "'control'" in str(layer.get("transform")) and layer["mark"]["type"] == "line"
    ]
    assert len(dashed) == 1
    assert dashed[0]["encoding"]["color"]["field"] == "attacker"
    assert dashed[0]["encoding"]["color"]["scale"] == {
        "domain": ["ignorant", "informed"],
        "range": [color_of("ignorant"), color_of("informed")],
    }
    legend = dashed[0]["encoding"]["strokeDash"]["legend"]
    assert "control of that attacker" in legend["labelExpr"]
    assert "informed 40 % (control 36 %)" in figure.alt
    assert "ignorant 10 % (control 21 %)" in figure.alt


def test_the_csv_and_the_table_have_the_same_controls(run: Path, tmp_path: Path) -> None:
    results = read_results(run)
    save_figures(section_figures("singling_out", results, None), tmp_path, ())
    written = list(csv.DictReader(io.StringIO((tmp_path / "singling-out.csv").read_text())))
    table = [row for row in section_rows(results, "singling_out") if row.label.startswith("control")]
    assert {row.attacker for row in table} == {row["attacker"] for row in written if row["kind"] == "control"}
    for row in table:
        people = int(row.label.split(", ")[1].split()[0].replace(",", ""))
        length = int(row.label.split(", ")[2].split()[0])
        same = [
            float(line["value"])
            for line in written
            if line["kind"] == "control"
            and (line["attacker"], int(line["speakers"]), int(line["length"])) == (row.attacker, people, length)
        ]
        assert [f"{value:.1f} %" for value in same] == [row.value]


def test_linkability_has_guessing_once_and_a_continuation() -> None:
    (figure,) = section_figures("linking", RESULTS, 9.0)
    rows = drawn(figure)
    assert kinds(rows, "guessing") == {("", length, n): 100 / n for length in (1, 3) for n in (2, 10, 40)}
    assert kinds(rows, "extrapolated")["informed", 1, 1000] == 0.8
    assert set(kinds(rows, "limit").values()) == {9.0}
    assert len(figure.spec["hconcat"]) == 2
    assert "limit 9 %" in str(figure.spec)
    assert "magenta" in figure.caption
    assert "extrapolated" in figure.caption


def test_levels_of_the_papers_figure() -> None:
    rows = legal.curve_rows(ATTACKERS, "singling_out")
    assert kinds(rows, legal.PAPER) == {("", 1, n): 100 * exp(-1) for n in (2, 10, 40)}
    assert kinds(rows, legal.CHANCE) == {("", 1, n): 37.0 for n in (2, 10, 40)}
    chart = legal.legal_curves(ATTACKERS)
    assert chart is not None
    spec = chart.to_dict()
    assert [len(row["hconcat"]) for row in spec["vconcat"]] == [1, 2]
    assert legal.legal_curves({"ignorant": {}}) is None
    assert legal.population({"ignorant": {"linkability": ATTACKERS["ignorant"]["linkability"]}}) is None


def test_figures_of_one_and_of_all_attackers_are_files(tmp_path: Path) -> None:
    made = legal.save_all(ATTACKERS, tmp_path, ("svg",))
    assert {path.name for path in made} == {"legal.svg", "population.svg"}
    for path in made:
        text = path.read_text()
        assert "NaN" not in text
        assert color_of("informed").lower() in text.lower()


def test_no_intervals_no_bands() -> None:
    bare = {"ignorant": {"linkability": [point("linkability", 50.0, n, null=100 / n) for n in (2, 5)]}}
    rows = legal.curve_rows(bare, "linkability")
    assert all(row["low"] is None and row["high"] is None for row in rows)


def test_det_is_on_normal_deviates_with_a_diagonal_that_is_no_data() -> None:
    import altair as alt

    rows = det_rows([0.0, 10.0, 100.0], [100.0, 20.0, 0.0], attacker="informed")
    assert rows[1]["false"] == pytest.approx(normal_quantile(0.1), abs=1e-5)
    assert rows[1]["miss"] == pytest.approx(normal_quantile(0.2), abs=1e-5)
    assert rows[0]["attacker"] == "informed"
    spec = style.apply_style(det_lines(rows, "attacker", alt.Color("attacker:N"))).to_dict()
    text = csv_of(spec)
    assert text.splitlines()[0] == "attacker,order,false,miss,fpr,fnr"
    assert len(text.splitlines()) == 4


def test_names_keep_their_colors() -> None:
    assert style.hues(["original", "mine", "informed (0.1 bit)"])[::2] == [colors.GRAY, colors.RED]
    many = style.hues([f"system {number}" for number in range(20)])
    assert len(set(many)) == len(colors.PALETTE) + len(colors.DARK_PALETTE)  # twelve systems have twelve colors


def tooltips(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [tip for part in node for tip in tooltips(part)]
    if not isinstance(node, dict):
        return []
    own = node.get("tooltip") if isinstance(node.get("tooltip"), list) else []
    return own + [tip for key, part in node.items() if key != "tooltip" for tip in tooltips(part)]


def test_no_tooltip_shows_ten_digits() -> None:
    """Issue: "use 49.5268138801"."""
    use = Estimate(name="wer", label="WER", value=49.5268138801, unit="percent", interval=(40.0, 60.0))
    figures = system_figures({"a": system(wer=use), "b": system(wer=use.with_(value=20.0))})
    assert {figure.id for figure in figures} == {"trade-off", "linkability", "deid-gvd"}
    for figure in figures:
        numbers = [tip for tip in tooltips(figure.spec) if tip["type"] == "quantitative"]
        assert numbers
        assert all("format" in tip for tip in numbers)


def test_names_of_twelve_systems_do_not_cover_each_other() -> None:
    points = [(f"system {number}", 300 + 9.0 * number, 100 + 5.0 * (number % 3)) for number in range(12)]
    boxes = []
    for (name, *_), (x, y, end) in zip(points, style.place_names(points, 760, 360), strict=True):
        left = x if end == "left" else x - 6.2 * len(name)
        boxes.append((left, y - 6, left + 6.2 * len(name), y + 6))
    assert all(
        a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1] for a, b in itertools.combinations(boxes, 2)
    )


def test_columns_for_drawing_are_not_in_the_csv() -> None:
    rates = {name: Estimate(name="wer", value=value, unit="percent") for name, value in (("a", 2.0), ("b", 40.0))}
    figures = {figure.id: figure for figure in system_figures({name: system(wer=rate) for name, rate in rates.items()})}
    assert csv_of(figures["trade-off"].spec).splitlines()[0] == "system,use,linked,low_x,high_x,low_y,high_y,front"
    assert len(csv_of(figures["deid-gvd"].spec).splitlines()) == 6  # the line at 0, and two systems


def system(**estimates: Estimate) -> Results:
    worst = ATTACKERS["informed"]["linkability"][2]
    similarity = Estimates([
        Estimate(name="deid", value=90, unit="percent", interval=(80, 95)),
        Estimate(name="g_vd", value=-3, unit="dB"),
    ])  # fmt: skip
    parts = {"similarity": Part(name="similarity", estimates=similarity)}
    if estimates:
        parts["utility"] = Part(name="utility", estimates=Estimates(estimates.values()))
    linking = Criterion(name="linking", level="high", finding=text_finding(""), estimate=worst, attacker="informed")
    return replace(RESULTS, criteria={"linking": linking}, parts=parts)


def test_systems_are_colored_alike_in_both_figures() -> None:
    risks, linked, scattered = system_figures({"zeta": system(), "alpha": system()})
    assert risks.id == "risks"
    colors = layers(linked.spec)[-1]["encoding"]["color"]["scale"]
    points = next(layer for layer in scattered.spec["layer"] if layer["mark"].get("type") == "point")
    assert points["encoding"]["color"]["scale"] == colors


def test_privacy_stands_against_use_where_all_systems_have_it() -> None:
    use = {name: Estimate(name="quality", label="quality", value=value) for name, value in (("a", 3.0), ("b", 2.0))}
    figures = system_figures({name: system(quality=point) for name, point in use.items()})
    trade_off = next(figure for figure in figures if figure.id == "trade-off")
    assert "No other system beats a in either." in trade_off.caption
    # Without use in all of them, the risk alone leads.
    alone = system_figures({"a": system(quality=use["a"]), "b": system()})
    assert alone[0].id == "risks"
    assert not any(figure.id == "trade-off" for figure in alone)
    assert "limit_linked" in {parameter["name"] for parameter in alone[0].spec["params"]}


def test_no_axis_goes_beyond_what_a_measure_can_be() -> None:
    rates = {name: Estimate(name="wer", label="word error rate", value=value, interval=(low, value + 5.0), unit="percent")
             for name, value, low in (("a", 2.0, -1.0), ("b", 40.0, 30.0))}  # fmt: skip
    figures = system_figures({name: system(wer=rate) for name, rate in rates.items()})
    trade_off = next(figure for figure in figures if figure.id == "trade-off")
    low, high = next(
        layer["encoding"]["x"]["scale"]["domain"]
        for layer in trade_off.spec["layer"]
        if layer["mark"]["type"] == "point"
    )
    assert low == 0.0
    assert 45.0 < high < 50.0


def test_the_front_is_what_nobody_beats() -> None:
    points = [("a", 3.0, 0.4), ("b", 2.0, 0.2), ("c", 2.0, 0.3), ("d", 3.0, 0.4)]
    assert pareto_front(points) == ["a", "b", "d"]
