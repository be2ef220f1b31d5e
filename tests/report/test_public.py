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
from tests.results.sample_results import sample

from veilmeter.assessment import assess
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Reference, as_findings
from veilmeter.data.embeddings import Embeddings
from veilmeter.report import write_figures, write_report
from veilmeter.report.compare import write_comparison
from veilmeter.report.decision import anonymizer_words
from veilmeter.report.public import Names, public, public_results, reported
from veilmeter.results.model import Input
from veilmeter.results.run_folder import read_results, write_results
from veilmeter.wording import annex_texts, sentence, sentences, text

SPEAKER, NUMBER, UTTERANCE, AGE = "CANARYspeaker", "9077104", "5588123", "7741"
CANARIES = (SPEAKER, NUMBER, UTTERANCE, "CANARYutterance", "CANARYfolder", "CANARYuser", "CANARYaccent", "CANARYfile")
# Ids that are words, too: nobody can search for these, so that sentences are compared instead.
WORDS = ("attacker", "people")
NAMES = (*(f"{SPEAKER}{n:02d}" for n in range(6)), *(f"{NUMBER}{n:02d}" for n in range(4)), *WORDS)


def canary_side(side: Embeddings) -> Embeddings:
    numbers = {name: number for number, name in enumerate(NAMES)}
    accents = [f"CANARYaccent{numbers[name] % 3}" for name in side.speakers]
    ages = [f"{AGE}{numbers[name] % 2}" for name in side.speakers]
    ids = [f"{'CANARYutterance-' if n % 2 else UTTERANCE}{name}" for n, name in enumerate(side.utterances)]
    genders = list(side.attributes["gender"])
    return Embeddings(side.vectors, ids, side.speakers, {"accent": accents, "age": ages, "gender": genders})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which everything that can have a name has a telling one."""
    folder = tmp_path_factory.mktemp("run")
    original, protected = (canary_side(side) for side in simulated(list(NAMES)))
    measures = ["scores", "similarity", "linkability", "singling-out", "inference"]
    assess(original, protected, out=folder, lengths=[1], resamples=20, measures=measures, by=["accent", "age"])
    results = read_results(folder)
    place = "/home/CANARYuser/CANARYfolder"
    told = replace(
        results,
        title="CANARYfolder against CANARYfolder",
        settings={**results.settings, "original": [place], "root": [place], "extractor": f"onnx:{place}/CANARYfile.onnx"},
        inputs={role: replace(entry, path=place, variant="CANARYfolder") for role, entry in results.inputs.items()},
        command=("veilmeter", "assess", f"{place}/a.toml", "--original", place, f"--anonymized={place}", "--seed", "1"),
        extractor={"name": f"onnx:{place}/CANARYfile.onnx", "version": "1", "path": place},
        warnings=as_findings((
            "utterance 'CANARYutterance-u3' of CANARYspeaker03 is silent", f"{place}/CANARYfile.wav can't be read",
            "accent CANARYaccent1: too few words", f"age {AGE}1: too few words", f"{NUMBER}02 has one recording",
            f"recording {UTTERANCE}4 is clipped", "attacker has one recording",
            Finding.of("recordings_left_out", count=2),
        )),
        remarks=as_findings((f"--root {place} had no effect", f"{NUMBER}03 was left out")),
        checks=(*results.checks, replace(results.checks[0], name="own",
                finding=Finding.of("of_others", people=(f"{SPEAKER}02",), first=Reference("speaker", f"{NUMBER}01"),
                second=Reference("speaker", f"{SPEAKER}01"), age=Reference("value", f"{AGE}0", "age"),
                words="people", file=Reference("file", place)))),
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
    assert f'"{AGE}1"' in readable(run / "results.json")
    shown = write_report(run, tmp_path / "r.html", show_ids=True)
    assert held(shown) == [SPEAKER, NUMBER, "CANARYaccent"]
    write_report(run, tmp_path / "r.html", show_ids=True)
    write_figures(run, tmp_path / "f", formats=("svg",), show_ids=True)
    assert held(tmp_path / "f" / "zoo.csv") == [SPEAKER, NUMBER]


@pytest.mark.parametrize("form", ["html", "json", "md", "latex", "pdf", "docx"])
def test_no_export_holds_a_canary(run: Path, tmp_path: Path, form: str) -> None:
    path = write_report(run, tmp_path / f"r.{form}", form=form)
    assert held(path) == []  # of a PDF: metadata, bookmarks and the texts of figures
    if form in ("html", "pdf"):
        annex = write_report(run, tmp_path / f"a.{form}", form=form, template="annex")
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
    assert found == ({SPEAKER, NUMBER, "CANARYaccent"} if show_ids else set())


def test_no_figure_holds_a_canary(run: Path, tmp_path: Path) -> None:
    write_figures(run, tmp_path / "figures", formats=("svg", "png", "pdf"))
    made = sorted((tmp_path / "figures").iterdir())
    assert {path.suffix for path in made} == {".svg", ".png", ".pdf", ".csv"}
    assert [path.name for path in made if held(path)] == []


def test_no_comparison_holds_a_canary(run: Path, tmp_path: Path) -> None:
    path = write_comparison([run, run], tmp_path / "c.html", resamples=10, bundle=True)
    assert [file.name for file in (path, *path.parent.iterdir()) if file.is_file() and held(file)] == []


def test_a_comparison_reads_each_run_once(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is written again meanwhile must not show figures of two runs on one page."""

    def fail(folder: Path) -> None:
        raise AssertionError(f"read again: {folder}")

    monkeypatch.setattr("veilmeter.report.public.read_results", fail)
    write_comparison([run, run], tmp_path / "c.html", resamples=10)


def test_the_files_of_a_gate_hold_no_canary(run: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from veilmeter.cli.main import app

    xml, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    words = ["gate", run, "--max", "linkability@2=50%", "--min", "eer=30", "--junit", xml, "--summary", page]
    CliRunner().invoke(app, [str(word) for word in words])
    assert annex_texts()["page.title"] in page.read_text(encoding="utf-8")
    assert [file.name for file in (xml, page) if held(file)] == []
    assert f"age {AGE}" not in page.read_text(encoding="utf-8")


def test_a_gate_that_could_not_be_checked_names_no_canary_either(run: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from veilmeter.cli.main import app

    xml, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    words = ["gate", run, "--max", "linkability@12=50%", "--by", "accent", "--junit", xml, "--summary", page]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert "CANARY" in str(done.exception)  # the terminal of whoever has the run may say it
    assert "linkability@12" in page.read_text(encoding="utf-8")
    assert [file.name for file in (xml, page) if held(file)] == []


def test_words_and_figures_that_are_ids_too_stay_in_sentences(run: Path) -> None:
    """To replace them would change what is said, and tell whose id it is."""
    before = reported(run).results
    after, names = public(reported(run), b"k" * 32)
    results = after.results
    assert "attacker" in sentence(before.people.finding)
    assert sentence(results.people.finding) == sentence(before.people.finding)
    headline = re.sub(rf"age {AGE}(\d)", lambda age: f"age #{int(age[1]) + 1}", text(before.verdict.headline))
    assert text(results.verdict.headline) == headline
    marked = results.checks[-1].finding
    assert marked.people == (names[f"{SPEAKER}02"],)
    assert sentence(marked) == (
        f"of_others: first {names[NUMBER + '01']}, second {names[SPEAKER + '01']}, age age #1, words people, file a file"
    )
    assert {person.speaker for person in results.people.persons} == set(names.values())
    assert {person.speaker for entry in results.attackers.values() for person in entry.people} == set(names.values())
    assert {point["speaker"] for point in results.parts["similarity"].details["zoo"]} == set(names.values())
    assert results.remarks == (Finding("remarks_left_out", {"count": 2}),)


def test_values_of_two_attributes_that_are_alike_are_kept_apart() -> None:
    names = Names({}, {"age": {"1": "#1", "7": "#2"}, "session": {"7": "#1"}})
    assert (names.value("age", "7"), names.value("session", "7"), names.value("length", "7")) == ("#2", "#1", "7")
    point = Estimate(name="linkability", value=0.7, at={"age": "7", "session": "7", "length": 7, "attack": "7"})
    assert names.estimate(point).at == {"age": "#2", "session": "#1", "length": 7, "attack": "7"}


def test_what_can_be_said_is_kept(run: Path) -> None:
    before = reported(run)
    after, names = public(before, b"k" * 32)
    results = after.results
    assert results.title == annex_texts()["page.title"]
    assert results.command == (
        "veilmeter", "assess", "PATH", "--original", "ORIGINAL", "--anonymized=ANONYMIZED", "--seed", "1",
    )  # fmt: skip
    assert sentences(results.warnings) == (
        sentence(Finding.of("recordings_left_out", count=2)),
        "7 warnings about single files or recordings are left out here; see results.json.",
    )
    divided = replace(
        before.results.parts["similarity"], by={"attacker": {"ignorant": Estimates(), "original": Estimates()}}
    )
    parts = {**before.results.parts, "similarity": divided}
    again, _ = public(replace(before, results=replace(before.results, parts=parts)), b"k" * 32)
    assert set(again.results.parts["similarity"].by["attacker"]) == {"ignorant", "original"}
    assert set(results.attackers["ignorant"].by["accent"]) == {"#1", "#2", "#3"}
    for name, attacker in before.results.attackers.items():
        assert [p.value for p in results.attackers[name].estimates] == [p.value for p in attacker.estimates]
    assert after.matrices is not None
    assert set(after.matrices.speakers) == set(names.values())
    assert np.array_equal(after.matrices.quadrants["OP"], before.matrices.quadrants["OP"])  # type: ignore[union-attr]
    assert json.dumps(results.settings["seed"]) == "0"


def test_an_anonymizer_is_named_where_its_name_is_no_secret() -> None:
    speech = Input(role="anonymized", kind="corpus", path="/home/me/x", sha256="", speakers=2, utterances=4)
    known = {"anonymizer": "mcadams", "anonymizer_version": "1", "anonymizer_parameters": {"alpha": 0.8, "at": "/home"}}
    secret = {"anonymizer": "/home/me/tool.py:Tool", "anonymizer_parameters": {"key": 3}}
    own = {"anonymizer": "acme-veil", "anonymizer_version": "3.1", "anonymizer_parameters": {"model": "/home/me/m.pt"}}
    command = {"anonymizer": "command", "anonymizer_version": "1"}
    named = ((known, "mcadams, version 1 (alpha 0.8)"), (own, "acme-veil, version 3.1"), (secret, ""), (command, ""))
    for details, words in named:
        results = replace(sample(), inputs={"anonymized": replace(speech, details=details)})
        assert anonymizer_words(public_results(results, Names({}, {}))) == words
