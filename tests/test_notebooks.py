"""The notebooks in examples/ run from the first cell to the last, each in seconds, and hold no outputs."""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair")
FILES = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))
NAMES = ["audio_to_verdict", "embeddings_to_comparison", "scores_to_zebra"]


def cells_of(path: Path) -> list[dict[str, Any]]:
    form = json.loads(path.read_text(encoding="utf-8"))
    assert (form["nbformat"], form["metadata"]["kernelspec"]["name"]) == (4, "python3")
    cells: list[dict[str, Any]] = form["cells"]
    return cells


def executed(path: Path) -> list[Any]:
    """What each cell of code shows: the value of its last line if that is an expression, as a notebook does it."""
    shown = []
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells_of(path)):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"{path.name}[{number}]")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}[{number}]", "exec"), names)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"{path.name}[{number}]", "eval"), names)
        shown.append(value)
    return shown


def test_there_are_three_and_they_are_short_and_without_outputs() -> None:
    assert [path.stem for path in FILES] == NAMES
    for path in FILES:
        cells = cells_of(path)
        assert path.stat().st_size < 10_000
        assert cells[0]["cell_type"] == "markdown"
        assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if "outputs" in cell)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_it_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if path.stem == "audio_to_verdict":
        pytest.importorskip("soundfile")
        pytest.importorskip("espeakng_loader")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    shown = executed(path)
    printed = capsys.readouterr().out
    if path.stem == "scores_to_zebra":
        assert "D_ECE 0.0" in printed
        assert hasattr(shown[2], "to_dict")
        assert shown[3] == ["ece_profiles.pdf", "det_curves.pdf", "densities.pdf"]
    elif path.stem == "embeddings_to_comparison":
        assert "\\*" in printed  # the difference between these two is sure
        assert "ignorant: EER: " in printed
        assert (tmp_path / "figures" / "linkability.svg").is_file()
    else:
        assert "_repr_html_" in dir(shown[-2])
        assert "linkability@12 <= 20%" in printed
        assert os.path.getsize("report.html") > 100_000
