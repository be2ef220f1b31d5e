"""What leaves the house names nobody: canaries in ids, paths, user name, attributes and file names, in every export."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.report.conftest import simulated

from veilmeter.assessment import assess
from veilmeter.core.estimates import Estimates
from veilmeter.data.embeddings import Embeddings
from veilmeter.report import write_report
from veilmeter.report.compare import write_comparison
from veilmeter.report.public import TITLE, public
from veilmeter.report.source import reported
from veilmeter.results.run_folder import read_results, write_results

CANARIES = ("CANARYspeaker", "CANARYutterance", "CANARYfolder", "CANARYuser", "CANARYaccent", "CANARYfile")


def canary_side(side: Embeddings) -> Embeddings:
    speakers = [f"CANARYspeaker{name}" for name in side.speakers]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(speakers))}
    accents = [f"CANARYaccent{numbers[name] % 3}" for name in speakers]
    ids = [f"CANARYutterance-{name}" for name in side.utterances]
    return Embeddings(side.vectors, ids, speakers, {"accent": accents, "gender": list(side.attributes["gender"])})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which everything that can have a name has a telling one."""
    folder = tmp_path_factory.mktemp("run")
    original, protected = (canary_side(side) for side in simulated([f"{n:02d}" for n in range(12)]))
    measures = ["scores", "similarity", "linkability", "singling-out", "inference"]
    assess(original, protected, out=folder, lengths=[1], resamples=20, measures=measures, by=["accent"])
    results = read_results(folder)
    place = "/home/CANARYuser/CANARYfolder"
    told = replace(
        results,
        title="CANARYfolder against CANARYfolder",
        settings={**results.settings, "original": [place], "root": [place], "extractor": f"onnx:{place}/CANARYfile.onnx"},
        inputs={role: replace(entry, path=place, variant="CANARYfolder") for role, entry in results.inputs.items()},
        command=("veilmeter", "assess", f"{place}/a.toml", "--original", place, f"--anonymized={place}", "--seed", "1"),
        extractor={"name": f"onnx:{place}/CANARYfile.onnx", "version": "1", "path": place},
        warnings=(
            "utterance 'CANARYutterance-u3' of CANARYspeaker03 is silent", f"{place}/CANARYfile.wav can't be read",
            "accent CANARYaccent1: too few people", "2 recordings are short",
        ),
        remarks=(f"--root {place} had no effect",),
    )  # fmt: skip
    write_results(folder, told)
    return folder


def readable(path: Path) -> str:
    """Everything that a file says, however it is packed."""
    data = path.read_bytes()
    parts = [data]
    if data.startswith(b"PK"):
        archive = zipfile.ZipFile(io.BytesIO(data))
        parts += [archive.read(name) for name in archive.namelist()]
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", data, re.S):
        try:
            parts.append(zlib.decompressobj().decompress(stream))
        except zlib.error:
            continue
    text = "\n".join(part.decode("utf-8", "replace") for part in parts)
    return text


def held(path: Path) -> list[str]:
    text = readable(path)
    return [canary for canary in CANARIES if canary in text]


def test_the_search_finds_what_is_there(run: Path, tmp_path: Path) -> None:
    """A test that can't fail would prove nothing: with ids shown, they are found in every kind of file."""
    assert held(run / "results.json") == list(CANARIES)
    shown = write_report(run, tmp_path / "r.html", show_ids=True)
    assert held(shown) == ["CANARYspeaker", "CANARYaccent"]
    write_report(run, tmp_path / "r.html", show_ids=True, figures=tmp_path / "f", figure_formats=("svg",))
    assert held(tmp_path / "f" / "zoo.csv") == ["CANARYspeaker"]


@pytest.mark.parametrize("form", ["html", "json", "md", "latex", "pdf", "docx"])
def test_no_export_holds_a_canary(run: Path, tmp_path: Path, form: str) -> None:
    path = write_report(run, tmp_path / f"r.{form}", form=form)
    assert held(path) == []  # of a PDF: metadata, bookmarks and the texts of figures
    if form in ("html", "pdf"):
        annex = write_report(run, tmp_path / f"a.{form}", form=form, annex_only=True)
        assert held(annex) == []


@pytest.mark.parametrize("show_ids", [False, True])
def test_nothing_that_a_pdf_is_set_from_holds_a_canary(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, show_ids: bool
) -> None:
    """Its text is glyphs, which can't be searched: what it is made of can."""
    import typst

    found: set[str] = set()

    def compiled(template: str, **_options: object) -> bytes:
        found.update(canary for file in Path(template).parent.iterdir() for canary in held(file))
        return b"%PDF-"

    monkeypatch.setattr(typst, "compile", compiled)
    write_report(run, tmp_path / "r.pdf", form="pdf", show_ids=show_ids)
    assert found == ({"CANARYspeaker", "CANARYaccent"} if show_ids else set())


def test_no_figure_holds_a_canary(run: Path, tmp_path: Path) -> None:
    write_report(run, tmp_path / "r.html", figures=tmp_path / "figures", figure_formats=("svg", "png", "pdf"))
    made = sorted((tmp_path / "figures").iterdir())
    assert {path.suffix for path in made} == {".svg", ".png", ".pdf", ".csv"}
    assert [path.name for path in made if held(path)] == []


def test_no_comparison_holds_a_canary(run: Path, tmp_path: Path) -> None:
    path = write_comparison([run, run], tmp_path / "c.html", resamples=10, bundle=True)
    assert held(path) == []


def test_what_can_be_said_is_kept(run: Path) -> None:
    before = reported(run)
    after, names = public(before, b"k" * 32)
    results = after.results
    assert results.title == TITLE
    assert results.command == (
        "veilmeter", "assess", "PATH", "--original", "ORIGINAL", "--anonymized=ANONYMIZED", "--seed", "1",
    )  # fmt: skip
    assert results.warnings == (
        "2 recordings are short",
        "3 warnings about single files or recordings are left out here; see results.json.",
    )
    divided = replace(
        before.results.parts["similarity"], by={"attacker": {"ignorant": Estimates(), "original": Estimates()}}
    )
    parts = {**before.results.parts, "similarity": divided}
    again, _ = public(replace(before, results=replace(before.results, parts=parts)), b"k" * 32)
    assert set(again.results.parts["similarity"].by["attacker"]) == {"ignorant", "original"}
    assert set(results.attackers["ignorant"].by["accent"]) == {"accent 1", "accent 2", "accent 3"}
    for name, attacker in before.results.attackers.items():
        assert [p.value for p in results.attackers[name].estimates] == [p.value for p in attacker.estimates]
    assert after.matrices is not None
    assert set(after.matrices.speakers) == set(names.values())
    assert np.array_equal(after.matrices.quadrants["OP"], before.matrices.quadrants["OP"])  # type: ignore[union-attr]
    assert json.dumps(results.settings["seed"]) == "0"
