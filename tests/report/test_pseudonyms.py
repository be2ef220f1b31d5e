"""Whatever ids look like, a public report is the same: nothing is taken for an id, and no id is taken for a word.

Two worlds differ in nothing but ids of people, recordings and files and in values of attributes. In one of them these
are numbers, letters, English words and veilmeter's own names. If a single one got through, or changed an ordinary word,
the reports of both worlds would differ.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.report.conftest import simulated

from veilmeter.assessment import assess
from veilmeter.core.findings import Finding, Reference, group_references, text_finding
from veilmeter.data.embeddings import Embeddings
from veilmeter.report import write_figures, write_report
from veilmeter.report.compare import write_comparison
from veilmeter.report.public import reported
from veilmeter.results.run_folder import read_results, write_results

SPEAKERS = ("5", "100", "the", "high", "people", "ignorant", "linkability", "a", "x/Y.wav", "Ængström木", "of", "EER")
RECORDINGS = (*map(str, range(60)), "attacker", "recording", "risk", "guessing", "95", "%", "P01", "b/c.wav", "é", "or",
              "#1", "I")  # fmt: skip
ACCENTS = ("the", "5", "speakers")
UNMISTAKABLE = ("x/Y.wav", "Ængström木", "Ængstr", "b/c.wav", "/home/Zoë", "Zoë")


PLACE, OTHER_PLACE = "/home/Zoë/100", "/data/project"


def ordered(ids: tuple[str, ...], prefix: str) -> dict[str, str]:
    """Other ids in the same order, so that pseudonyms and rows that go by it stay the same."""
    return {name: f"{prefix}{number:03d}" for number, name in enumerate(sorted(ids))}


VOICES, TAKES, KINDS = ordered(SPEAKERS, "voice"), ordered(RECORDINGS, "take"), ordered(ACCENTS, "kind")
TELLING = {harmless: name for ids in (VOICES, TAKES, KINDS) for name, harmless in ids.items()} | {OTHER_PLACE: PLACE}
HARMLESS = re.compile("|".join(map(re.escape, TELLING)))


def side_of(side: Embeddings) -> Embeddings:
    speakers = [VOICES[SPEAKERS[int(name)]] for name in side.speakers]
    recordings = [TAKES[name] for name in RECORDINGS[: len(side.utterances)]]
    accents = [KINDS[ACCENTS[int(name) % len(ACCENTS)]] for name in side.speakers]
    return Embeddings(side.vectors, recordings, speakers, {"accent": accents, "gender": side.attributes["gender"]})


def findings() -> tuple[Finding, ...]:
    """With a reference of every kind; one is by another package."""
    speaker, recording = VOICES["the"], TAKES["risk"]
    several = Finding(
        "of_every_kind",
        {
            "attacker": "ignorant",
            "who": Reference("speaker", speaker),
            "recordings": tuple(Reference("recording", TAKES[name]) for name in ("5", "%")),
            "file": Reference("file", f"{OTHER_PLACE}/{recording}.wav"),
            "group": group_references({"accent": KINDS["the"]}),
        },
        (speaker, VOICES["5"]),
    )
    return several, text_finding(f"{OTHER_PLACE}/{recording}.wav of {speaker} is silent")


def harmless_run(folder: Path) -> Path:
    original, anonymized = (side_of(side) for side in simulated([str(n) for n in range(len(SPEAKERS))]))
    measures = ["scores", "similarity", "linkability", "singling-out", "inference", "inversion"]
    assess(original, anonymized, out=folder, lengths=[1], resamples=20, measures=measures, by=["accent", "gender"])
    results = read_results(folder)
    told = replace(
        results, title=OTHER_PLACE,
        settings={**results.settings, "original": [OTHER_PLACE], "extractor": f"onnx:{OTHER_PLACE}/x.onnx"},
        command=("veilmeter", "assess", f"{OTHER_PLACE}/a.toml", "--original", OTHER_PLACE, "--seed", "0"),
        inputs={role: replace(entry, path=OTHER_PLACE) for role, entry in results.inputs.items()},
        warnings=(*results.warnings, *findings()), remarks=(*results.remarks, *findings()),
        verdict=replace(results.verdict, not_tested=(*results.verdict.not_tested, *findings())),
        extractor={"name": f"onnx:{OTHER_PLACE}/x.onnx", "version": "1"},
        protocol=replace(results.protocol, split=findings()[0]),
        attackers={
            name: replace(entry, trained_on=findings()[1]) for name, entry in results.attackers.items()
        },
    )  # fmt: skip
    write_results(folder, told)
    return folder


def telling_run(harmless: Path, folder: Path) -> Path:
    """The same with telling ids. Harmless ones occur nowhere else, so that they can be replaced as text."""
    shutil.copytree(harmless, folder)

    def telling(found: re.Match[str]) -> str:
        return json.dumps(TELLING[found[0]])[1:-1]

    matrices = folder / "tables" / "matrices.parquet"
    table = parquet.read_table(matrices)
    for place in ("row", "column"):
        ids = [TELLING[name] for name in table.column(place).to_pylist()]
        cells = pyarrow.array(ids).dictionary_encode()
        table = table.set_column(table.column_names.index(place), place, cells)
    parquet.write_table(table, matrices, row_group_size=len(SPEAKERS) ** 2)
    form = HARMLESS.sub(telling, (folder / "results.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(matrices.read_bytes()).hexdigest()
    form = form.replace(hashlib.sha256((harmless / "tables" / "matrices.parquet").read_bytes()).hexdigest(), digest)
    (folder / "results.json").write_text(form, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The telling and the harmless one, both in a folder of the same name."""
    harmless = harmless_run(tmp_path_factory.mktemp("harmless") / "run")
    return telling_run(harmless, tmp_path_factory.mktemp("telling") / "run"), harmless


def test_the_worlds_differ(runs: tuple[Path, Path]) -> None:
    """A test that can't fail would prove nothing."""
    telling, harmless = (read_results(run) for run in runs)
    assert {person.speaker for person in telling.people.persons} == set(SPEAKERS)
    assert {person.speaker for person in harmless.people.persons} == set(VOICES.values())
    assert set(telling.attackers["ignorant"].by["accent"]) == set(ACCENTS)
    assert set(reported(runs[0]).matrices.speakers) == set(SPEAKERS)  # type: ignore[union-attr]
    assert texts(runs[0] / "results.json") != texts(runs[1] / "results.json")


@pytest.fixture(autouse=True)
def _same_pseudonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of ids, which is the same in both worlds: else the key decides."""
    monkeypatch.setattr(
        "veilmeter.report.public.pseudonyms",
        lambda speakers, key: {name: f"P{number:02d}" for number, name in enumerate(sorted(set(speakers)), 1)},
    )


def texts(path: Path) -> str:
    """All text of a file but digests and the numbers that a chart's parts are counted by."""
    if path.suffix == ".docx":
        archive = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
        content = "\n".join(archive.read(name).decode("utf-8", "replace") for name in sorted(archive.namelist()))
        content = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "", content)
    else:
        content = path.read_text(encoding="utf-8")
    return re.sub(r"(?:\b|(?<=u003e))[0-9a-f]{64}\b|(?<=clip)\d+|(?<=gradient_)\d+", "", content)


def assert_same(first: Path, second: Path) -> None:
    telling, harmless = texts(first), texts(second)
    assert [name for name in UNMISTAKABLE if name in telling] == []
    pieces = zip(re.split(r"(?<=[>.,}])", telling), re.split(r"(?<=[>.,}])", harmless), strict=False)
    assert [(one, other) for one, other in pieces if one != other][:3] == []
    assert telling == harmless


@pytest.mark.parametrize("form", ["html", "json", "md", "latex", "docx"])
def test_a_report_does_not_depend_on_ids(runs: tuple[Path, Path], tmp_path: Path, form: str) -> None:
    suffix = "tex" if form == "latex" else form
    telling, harmless = (
        write_report(run, tmp_path / f"{number}.{suffix}", form=form) for number, run in enumerate(runs)
    )
    assert_same(telling, harmless)


def test_a_pdf_does_not_depend_on_ids(runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is glyphs, so what it is set from is compared."""
    import typst

    made: list[dict[str, str]] = []

    def compiled(template: str, **_options: object) -> bytes:
        made.append({file.name: texts(file) for file in Path(template).parent.iterdir()})
        return b"%PDF-"

    monkeypatch.setattr(typst, "compile", compiled)
    for run in runs:
        write_report(run, tmp_path / "r.pdf", form="pdf")
    telling, harmless = made
    assert "data.json" in telling
    assert [name for name in telling if telling[name] != harmless[name]] == []


def test_figures_do_not_depend_on_ids(runs: tuple[Path, Path], tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("telling", "harmless")]
    for run, folder in zip(runs, folders, strict=True):
        write_figures(run, folder, formats=("svg",))
    names = [sorted(file.name for file in folder.iterdir()) for folder in folders]
    assert names[0] == names[1]
    assert {Path(name).suffix for name in names[0]} == {".svg", ".csv"}
    for name in names[0]:
        assert_same(folders[0] / name, folders[1] / name)


def test_a_comparison_does_not_depend_on_ids(runs: tuple[Path, Path], tmp_path: Path) -> None:
    pages = [
        write_comparison([run, run], tmp_path / f"{number}.html", resamples=10, bundle=True)
        for number, run in enumerate(runs)
    ]
    assert_same(*pages)


def gate_files(run: Path, folder: Path) -> Iterator[Path]:
    from typer.testing import CliRunner

    from veilmeter.cli.main import app

    folder.mkdir()
    xml, page = folder / "gate.xml", folder / "gate.md"
    words: list[Any] = [
        "gate",
        run,
        "--max",
        "linkability@2=50%",
        "--min",
        "eer=30",
        "--by",
        "accent",
        "--baseline",
        run,
    ]
    CliRunner().invoke(app, [str(word) for word in [*words, "--junit", xml, "--summary", page]])
    yield from (xml, page)


def test_the_files_of_a_gate_do_not_depend_on_ids(runs: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = (gate_files(run, tmp_path / str(number)) for number, run in enumerate(runs))
    for telling, harmless in zip(first, second, strict=True):
        assert_same(telling, harmless)
