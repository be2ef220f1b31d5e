"""The report in other forms, for many people, and what it says of broken runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.assessment.tables import write_matrices
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.report import write_report
from veilmeter.report.html import Options, render
from veilmeter.report.run import Matrices, load_run, renamed


def test_markdown_says_the_verdict_first_and_names_nobody(run: Path, tmp_path: Path) -> None:
    text = write_report(run, tmp_path / "r.md", form="md", threshold=0.09).read_text()
    results = json.loads((run / "results.json").read_text())
    assert text.splitlines()[2].startswith("**")
    assert "limit of 0.09" in text
    assert "## Open questions for a lawyer" in text
    for person in results["speakers"]:
        assert person["speaker"] not in text


def test_latex_is_escaped(run: Path, tmp_path: Path) -> None:
    text = write_report(run, tmp_path / "r.tex", form="latex").read_text()
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 2
    for line in text.splitlines():
        if line.startswith("% "):  # what is needed, and what the run doubts
            continue
        assert "%" not in line.replace("\\%", "")
        assert "_" not in line.replace("\\_", "")


def test_json_has_pseudonyms_and_every_number(run: Path, tmp_path: Path) -> None:
    before = json.loads((run / "results.json").read_text())
    after = json.loads(write_report(run, tmp_path / "r.json", form="json").read_text())
    assert after["attackers"] == before["attackers"]
    assert {p["speaker"] for p in after["speakers"]}.isdisjoint(p["speaker"] for p in before["speakers"])


def test_pdf_is_printed(run: Path, tmp_path: Path, browser: Any) -> None:
    printed = write_report(run, tmp_path / "r.pdf", form="pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert len(printed) > 50_000


def test_pdf_without_a_browser_says_what_to_do(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(VeilmeterError, match="install Chromium"):
        write_report(run, tmp_path / "r.pdf", form="pdf")
    assert not (tmp_path / "r.pdf").exists()


def test_figures_are_files_with_their_data(run: Path, tmp_path: Path) -> None:
    write_report(run, tmp_path / "r.html", figures=tmp_path / "figures", figure_formats=("svg",))
    made = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"linkability.svg", "linkability.csv", "zebra.svg", "matrix.svg", "zoo.csv", "det.svg"} <= made
    assert (tmp_path / "figures" / "linkability.csv").read_text().startswith("attacker,speakers,length,value")


def test_pseudonyms_are_the_same_in_every_report_of_a_run(run: Path) -> None:
    first, second = renamed(load_run(run))[1], renamed(load_run(run))[1]
    assert first == second
    assert (run / "pseudonyms.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "can't be read"),
        ("[]", "not the result"),
        ('{"verdict": {}, "attackers": {}, "schema": 99}', "schema is 99"),
    ],
)
def test_what_is_no_run_is_said(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match="no results"):
        load_run(tmp_path)
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(InputError, match=message):
        load_run(tmp_path)


def test_a_threshold_is_a_probability(run: Path) -> None:
    with pytest.raises(InputError, match="not a probability"):
        write_report(run, threshold=9)


def test_matrices_come_back_as_they_were_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = ["b", "a", "c"]
    written = {kind: rng.random((3, 3)) for kind in ("OO", "OP", "PP")}
    (tmp_path / "tables").mkdir()
    write_matrices(tmp_path / "tables" / "matrices.parquet", names, written)
    (tmp_path / "results.json").write_text('{"verdict": {}, "attackers": {}, "schema": 1}')
    read = load_run(tmp_path).matrices
    assert read is not None
    assert read.speakers == tuple(names)
    for kind, matrix in written.items():
        assert np.array_equal(read.quadrants[kind], matrix)


def grown(run: Path, count: int) -> tuple[dict[str, Any], Matrices]:
    """The run as if it had `count` speakers: as many rows and matrices of that size."""
    loaded = load_run(run)
    results = json.loads(json.dumps(loaded.results))
    people, zoo = results["speakers"], results["similarity"]["zoo"]
    names = tuple(f"somebody-{number:06d}" for number in range(count))
    results["speakers"] = [{**people[n % len(people)], "speaker": name} for n, name in enumerate(names)]
    results["similarity"]["zoo"] = [{**zoo[n % len(zoo)], "speaker": name} for n, name in enumerate(names)]
    rng = np.random.default_rng(0)
    small = rng.random((count, count), np.float32)
    return results, Matrices(names, {"OO": small, "OP": small, "PP": small})


@pytest.mark.parametrize(("count", "megabytes"), [(400, 8), (5000, 15)])
def test_a_page_of_many_people_stays_light(
    run: Path, tmp_path: Path, browser: Any, count: int, megabytes: float
) -> None:
    results, matrices = grown(run, count)
    path = tmp_path / "many.html"
    path.write_text(render(results, matrices, Options(show_ids=True)), encoding="utf-8")
    assert path.stat().st_size < megabytes * 1e6
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    assert page.locator("#people-table tbody tr").count() == min(count, 1000)
    took = page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive")
    print(f"{count} speakers: {path.stat().st_size / 1e6:.1f} MB, interactive after {took:.0f} ms")
    page.locator("#people-table tbody tr").first.click()
    page.wait_for_timeout(200)
    assert page.locator("#figure-matrix svg path[stroke='#D55E00']").count() > 0
    page.close()


def test_a_run_without_optional_parts_still_reports(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = make_run([f"s{number}" for number in range(8)], measures=["scores"], intervals=False)
    text = write_report(run, tmp_path / "r.html").read_text()
    assert 'id="verdict"' in text
    assert 'id="singling_out"' not in text
