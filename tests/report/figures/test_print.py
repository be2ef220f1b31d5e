"""Figures for print: as wide as asked for, in the font asked for; sets of scores in one figure; systems side by side."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert
from tests.results.sample_results import attacker, sample
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.data.scores import Scores
from veilmeter.metrics.scores.zebra import zebra
from veilmeter.report.figures import legal, overlays
from veilmeter.report.figures.page import csv_of, section_figures
from veilmeter.report.figures.similarity import quadrants
from veilmeter.report.figures.style import apply_style, save
from veilmeter.report.figures.typesetting import Typesetting, points_of, typeset


def sets() -> dict[str, Scores]:
    rng = np.random.default_rng(0)
    shifts = {"OO": 4.0, "OP": 0.5, "PP": 2.0}
    return {name: Scores.from_arrays(targets=rng.normal(shift, 1, 200), impostors=rng.normal(0, 1, 900))
            for name, shift in shifts.items()}  # fmt: skip


def curves(people: int) -> dict[str, Any]:
    points = [Estimate(name="linkability", value=1 / n**0.3, interval=(0.5 / n**0.3, 1 / n**0.3), null=1 / n,
                       at={"speakers": n, "length": length}) for n in range(2, people + 1) for length in (1, 3)]  # fmt: skip
    return {"ignorant": {"linkability": points}}


def size(svg: str) -> tuple[float, float]:
    found = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', svg)
    assert found
    return float(found[1]), float(found[2])


@pytest.mark.parametrize("width", ["8.6cm"])
def test_a_figure_is_as_wide_as_asked_for_in_every_format(width: str, tmp_path: Path) -> None:
    chart = legal.legal_curves(curves(20))
    assert chart is not None
    svg, png, pdf = save(chart, tmp_path, "legal", ("svg", "png", "pdf"), Typesetting(points_of(width), font_size=8))
    wide = points_of(width)
    assert size(svg.read_text())[0] == pytest.approx(wide, abs=1)
    (box,) = re.findall(rb"MediaBox\s*\[0 0 ([0-9.]+) ", pdf.read_bytes())
    assert float(box) == pytest.approx(wide, abs=1)
    pixels = int.from_bytes(png.read_bytes()[16:20], "big")
    assert pixels == pytest.approx(wide / 72 * 300, rel=0.02)


def test_text_keeps_its_size_where_plots_shrink(tmp_path: Path) -> None:
    chart = legal.legal_curves(curves(20))
    assert chart is not None
    (path,) = save(chart, tmp_path, "legal", ("svg",), Typesetting(points_of("12cm"), "DejaVu Serif", 8))
    text = path.read_text()
    assert "DejaVu Serif" in text
    shown = size(text)[0] / float(re.search(r'viewBox="0 0 ([0-9.]+)', text)[1])  # type: ignore[index]
    assert 0.95 < shown < 1.05
    sizes = {float(found) for found in re.findall(r'font-size="([0-9.]+)px"', text)}
    assert 8.0 in sizes


def test_a_long_legend_and_a_matrix_keep_room_in_a_narrow_column(tmp_path: Path) -> None:
    """Issue: at 8.6 cm the ZEBRA plot was a stamp, and the matrix 28 cm high."""
    setting = Typesetting(points_of("8.6cm"), font_size=8)
    profile = {"log_odds": [-3.0, 0.0, 3.0], "pav": [0.0, 0.6, 0.0], "prior": [0.0, 1.0, 0.0]}
    figures = [Estimate(name="d_ece", value=0.3, unit="bit"), Estimate(name="l_w", value=2.0, extra={"tag": "C"})]
    attackers = {
        name: replace(attacker(name, *figures), profile=profile) for name in ("ignorant", "wasserstein-procrustes")
    }
    (zebra_figure,) = section_figures("disclosure", replace(sample(), attackers=attackers), None)
    fitted, factor = typeset(zebra_figure.spec, setting, vl_convert.vegalite_to_svg)
    assert fitted["width"] > 0.6 * points_of("8.6cm")
    assert 0.9 < factor < 1.1
    assert csv_of(zebra_figure.spec).splitlines()[1].startswith("ignorant,")  # without figures in the name
    square = np.eye(20)
    chart = quadrants({"OO": square, "OP": square, "PP": square}, [f"s{n}" for n in range(20)])
    (svg,) = save(apply_style(chart), tmp_path, "matrix", ("svg",), setting)
    wide, high = size(svg.read_text())
    assert high < 1.6 * wide
    assert "Liberation Sans" in svg.read_text()  # which the PDF embeds
    assert "Inter" not in svg.read_text()


def test_plots_keep_room_in_a_narrow_column() -> None:
    """Two panels and a long legend: the panels go one below the other, the legend into several rows."""
    look = legal.Look(width=400, height=280, x_title="people to choose from", y_title="linked", bottom=True)
    names = [f"system {number}" for number in range(4)]
    rows = legal.curve_rows({name: curves(20)["ignorant"] for name in names}, "linkability")
    spec = apply_style(legal.curve_panels(rows, names, title="L = {}", look=look)).to_dict()
    fitted, factor = typeset(spec, Typesetting(points_of("8.6cm"), font_size=8), vl_convert.vegalite_to_svg)
    assert len(fitted["vconcat"]) == 2
    assert all(panel["width"] >= 99 for panel in fitted["vconcat"])
    assert 0.6 < factor <= 1.05


@pytest.mark.parametrize("width", ["8.6 parsec", "-3cm", "nan", "1e9cm", "0", ""])
def test_widths_that_are_none(width: str) -> None:
    with pytest.raises(InputError):
        Typesetting(points_of(width))


def test_overlays_of_all_three_sets(tmp_path: Path) -> None:
    made = overlays.save_overlays(sets(), tmp_path, ("svg", "json"))
    assert [path.name for path in made if path.suffix == ".svg"] == [
        "ece_profiles.svg",
        "det_curves.svg",
        "densities.svg",
    ]
    profile = json.loads((tmp_path / "ece_profiles.json").read_text())
    names = profile["encoding"]["color"]["scale"]["domain"]
    assert [name.split(":")[0] for name in names[:3]] == [overlays.WORDS[key] for key in ("OO", "OP", "PP")]
    assert profile["encoding"]["color"]["scale"]["range"][:3] == ["#767676", "#D55E00", "#0072B2"]
    found = float(names[1].rpartition(": ")[2].removesuffix(" bit"))
    assert found == pytest.approx(zebra(sets()["OP"].targets, sets()["OP"].impostors).d_ece, abs=6e-4)
    densities = json.loads((tmp_path / "densities.json").read_text())
    (rows,) = densities["datasets"].values()
    step = sorted({row["score"] for row in rows})[1] - sorted({row["score"] for row in rows})[0]
    for key in overlays.WORDS.values():  # each density has the area 1
        for kind in ("target", "impostor"):
            area = step * sum(row["density"] for row in rows if row["set"] == key and row["trials"] == kind)
            assert area == pytest.approx(1)
    with pytest.raises(InputError, match="no scores"):
        overlays.densities({})


def test_every_number_of_people_of_an_exact_curve(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    people = np.repeat(rng.standard_normal((60, 8)), 2, 0)
    speakers = [f"s{n // 2}" for n in range(120)]
    for name in ("a", "b"):
        ids = [f"{name}{n}" for n in range(120)]
        noisy = people + 0.6 * rng.standard_normal(people.shape)
        write_embeddings(Embeddings(noisy, ids, speakers), tmp_path / f"{name}.npz")
    words = ["linkability", "--enroll", tmp_path / "a.npz", "--test", tmp_path / "b.npz", "--speakers", "all",
             "--no-intervals", "--json", "--figures", tmp_path / "f", "--width", "9cm"]  # fmt: skip
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    curve = json.loads(done.stdout)["estimates"]["linkability"]
    assert [point["speakers"] for point in curve] == list(range(2, 61))
    drawn = (tmp_path / "f" / "legal.svg").read_text()
    assert size(drawn)[0] == pytest.approx(points_of("9cm"), abs=1)


def test_options_of_figures_need_figures(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--width", "8cm"])
    assert isinstance(done.exception, InputError)
    assert "--figures DIR" in str(done.exception)
