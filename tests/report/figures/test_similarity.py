"""Figures: the right numbers in the right cells, at 5 and at 400 speakers; files that open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.core.estimate import Estimate
from veilmeter.metrics.similarity.matrices import Similarity, similarity
from veilmeter.metrics.similarity.zoo import zoo
from veilmeter.report.figures.similarity import quadrants, save_all, scatter, speaker_order, speakers_plot, zoo_plot
from veilmeter.report.figures.style import apply_style


@pytest.fixture(scope="module")
def small() -> Similarity:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(5), 4)
    o = rng.normal(size=(5, 6))[codes] + rng.normal(size=(20, 6)) * 0.4
    return similarity(o, o + 0.8 * rng.normal(size=o.shape), [f"<b>{c}" for c in codes])


def cells(chart: Any) -> dict[str, dict[tuple[str, str], float]]:
    form = chart.to_dict()
    found = {}
    for row in form["vconcat"]:
        for part in row["hconcat"]:
            (table,) = form["datasets"][part["data"]["name"]]
            assert part["transform"] == [{"flatten": ["row", "column", "similarity"]}]
            found[part["title"]] = {
                (row, column): value
                for row, column, value in zip(table["row"], table["column"], table["similarity"], strict=True)
            }
    return found


def test_quadrants(small: Similarity) -> None:
    found = cells(quadrants(small.similarities, small.names))
    assert list(found) == ["original with original", "original with anonymized", "anonymized with original",
                           "anonymized with anonymized"]  # fmt: skip
    for a, x in enumerate(small.names):
        for b, y in enumerate(small.names):
            op = small.similarities["OP"][a, b]
            assert found["original with anonymized"][x, y] == pytest.approx(op, abs=1e-4)
            assert found["anonymized with original"][y, x] == pytest.approx(op, abs=1e-4)
    order = speaker_order(small.similarities)
    assert (np.diff(small.per_speaker("OP")[order]) <= 1e-12).all()


def test_many_speakers_are_grouped_and_the_diagonal_stays() -> None:
    m = np.full((400, 400), 0.1)
    np.fill_diagonal(m, 0.9)
    chart = quadrants({"OO": m, "OP": m, "PP": m}, [str(i) for i in range(400)])
    found = cells(chart)["original with original"]
    assert len(found) == 60 * 60
    assert found["1-7", "1-7"] == pytest.approx(0.9)
    assert found["1-7", "8-14"] == pytest.approx(0.1)


def test_files(small: Similarity, tmp_path: Path) -> None:
    zoos = {"a": {kind: zoo(small.matrix(kind), small.names) for kind in ("OO", "OP", "PP")}}  # type: ignore[arg-type]
    one = {"deid": Estimate(name="deid", value=50.0), "g_vd": Estimate(name="g_vd", value=-3.0, interval=(-4.0, -2.0))}
    made = save_all({"a": small}, zoos, [one], tmp_path, formats=["svg", "png"])
    assert [path.name for path in made][::2] == ["similarity-matrices.svg", "similarity-zoo.svg",
                                                 "similarity-speakers.svg", "similarity-deid-gvd.svg"]  # fmt: skip
    for path in made:
        data = path.read_bytes()
        assert data.startswith(b"<svg" if path.suffix == ".svg" else b"\x89PNG")
        assert b"<b>0" not in data  # ids are text, never markup


def test_the_others_are_sound_charts(small: Similarity) -> None:
    zoos = {kind: zoo(small.matrix(kind), small.names) for kind in ("OO", "OP", "PP")}  # type: ignore[arg-type]
    assert len(apply_style(zoo_plot(zoos)).to_dict()["hconcat"]) == 3
    points = apply_style(speakers_plot(small)).to_dict()
    assert len(points["layer"]) == 2
    gone, near = Estimate(name="deid", value=99.0), Estimate(name="deid", value=9.0)
    both = [("a", gone, Estimate(name="g_vd", value=float("-inf"))), ("b", near, Estimate(name="g_vd", value=0.0))]
    chart = apply_style(scatter(both)).to_dict()
    assert [v["system"] for v in chart["datasets"][chart["layer"][1]["data"]["name"]]] == ["b"]
