"""The report in other forms, for many people, and what it says of broken runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.results.sample_results import sample

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.metrics.measure import MEASURES
from veilmeter.metrics.similarity.matrices import KINDS
from veilmeter.report import write_figures, write_report
from veilmeter.report.exports import latex
from veilmeter.report.html import Options, render, technical_sections
from veilmeter.report.public import Reported, public, reported, run_key
from veilmeter.results.model import Results
from veilmeter.results.run_folder import Matrices, read_matrices, read_results, write_matrices


def test_markdown_says_the_decision_first_and_names_nobody(run: Path, tmp_path: Path) -> None:
    text = write_report(run, tmp_path / "r.md", form="md", threshold="9%").read_text()
    results = read_results(run)
    assert text.splitlines()[2].startswith("**")
    assert "limit of 9 in 100 that was named for this report" in text
    assert "## Open questions for a lawyer" in text
    for person in results.people.persons:
        assert person.speaker not in text


def test_latex_is_escaped_and_keeps_what_must_be_known(run: Path, tmp_path: Path) -> None:
    results = read_results(run)
    noticed = replace(results, settings={**results.settings, "notice": "Synthetic voices."})
    text = write_report(noticed, tmp_path / "r.tex", form="latex").read_text()
    assert f"% veilmeter {results.version}" in text
    assert "% Synthetic voices." in text
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 2
    for line in text.splitlines():
        if line.startswith("% "):  # what is needed, and what the run doubts
            continue
        assert "%" not in line.replace("\\%", "")
        words = "".join(line.replace("\\$", "").split("$")[::2])  # without what is mathematics
        assert "_" not in words.replace("\\_", "")


def test_json_has_pseudonyms_and_every_number(run: Path, tmp_path: Path) -> None:
    before = json.loads((run / "results.json").read_text())
    after = json.loads(write_report(run, tmp_path / "r.json", form="json").read_text())
    for name, entry in before["attackers"].items():
        assert after["attackers"][name]["estimates"] == entry["estimates"]
    ids = {person["speaker"] for person in before["people"]["persons"]}
    assert {person["speaker"] for person in after["people"]["persons"]}.isdisjoint(ids)


@pytest.mark.parametrize(("paper", "size"), [("a4", (595.28, 841.89)), ("letter", (612.0, 792.0))])
def test_a_pdf_needs_no_browser(
    run: Path, tmp_path: Path, paper: str, size: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    printed = write_report(run, tmp_path / "r.pdf", form="pdf", paper=paper).read_bytes()
    assert printed.startswith(b"%PDF-")
    boxes = {tuple(map(float, box.split()[2:])) for box in re.findall(rb"/MediaBox ?\[([^\]]+)\]", printed)}
    assert boxes
    for width, height in boxes:
        assert (width, height) == pytest.approx(size, abs=0.1)
    annex = write_report(run, tmp_path / "a.pdf", form="pdf", template="annex").read_bytes()
    assert annex.count(b"/Type /Page\n") + annex.count(b"/Type/Page/") < printed.count(b"/Page")


def test_the_annex_is_a_document_of_its_own(run: Path, tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    path = write_report(run, tmp_path / "annex.docx", form="docx")
    document = docx.Document(str(path))
    text = "\n".join(p.text for p in document.paragraphs)
    for title in ("The release", "Likelihood and severity per attacker", "Mitigations", "Decision to sign"):
        assert title in text
    assert document.core_properties.created.year >= 2026  # not the template's
    assert {"PAGE", "NUMPAGES"} == set(re.findall(r'w:instr="(\w+)"', document.sections[0].footer._element.xml))
    assert "w:tblHeader" in document.tables[-1].rows[0]._tr.xml
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    assert "Recipients" in cells
    assert "To be assessed again before" in cells
    page = write_report(run, tmp_path / "annex.html", template="annex").read_text()
    assert "To be assessed again before" in page
    assert "vegaEmbed" not in page.split("</script>")[0]
    with pytest.raises(InputError, match="annex can't be written"):
        write_report(run, form="md", template="annex")


def test_figures_are_files_with_their_data(run: Path, tmp_path: Path) -> None:
    write_figures(run, tmp_path / "figures", formats=("svg",))
    made = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"linkability.svg", "linkability.csv", "zebra.svg", "matrix.svg", "zoo.csv", "det.svg"} <= made
    assert (tmp_path / "figures" / "linkability.csv").read_text().startswith("attacker,speakers,length,value")


def test_pseudonyms_are_the_same_in_every_report_of_a_run(run: Path) -> None:
    first, second = (public(reported(run), run_key(run))[1] for _ in range(2))
    assert first == second
    assert (run / "pseudonyms.key").stat().st_mode & 0o077 == 0


def test_a_key_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"k" * 32)
    (tmp_path / "pseudonyms.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="link to another file"):
        run_key(tmp_path)


def test_results_in_memory_need_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give `out`"):
        write_report(sample())
    text = write_report(sample(), tmp_path / "r.html").read_text()
    assert "Protection is partial." in text


def test_a_measure_of_another_package_stands_in_its_section_or_apart(tmp_path: Path) -> None:
    base = sample()
    known = MEASURES["eer"]
    added = Estimate(name="loudness_gap", label="loudness gap", value=3.2, unit="dB")
    other = Estimate(name="eer_per_speaker", label=known.label, value=12.0, unit="percent")
    ignorant = base.attackers["ignorant"]
    attackers = {
        **base.attackers,
        "ignorant": replace(ignorant, estimates=ignorant.estimates + Estimates([added, other])),
    }
    text = write_report(replace(base, attackers=attackers), tmp_path / "r.html").read_text()
    further = text[text.index('<section id="further"') :]
    further = further[: further.index("</section>")]
    assert "loudness gap" in further
    assert "3.20 dB" in further
    assert "12.0 %" not in further  # a variant of a known measure stands with it


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_no_number_of_threshold_or_paper_that_makes_no_sense(run: Path, form: str) -> None:
    with pytest.raises(InputError, match="must lie between 0 % and 100 %"):
        write_report(run, form=form, threshold=109)
    with pytest.raises(InputError, match="may be a fraction or a percentage"):
        write_report(run, form=form, threshold=0.09)
    with pytest.raises(InputError, match="unknown paper"):
        write_report(run, form=form, paper="a5")


def test_matrices_come_back_as_they_were_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = ["b", "a", "c"]
    written = {kind: rng.random((3, 3)) for kind in KINDS}
    write_matrices(tmp_path / "matrices.parquet", Matrices(tuple(names), written))
    read = read_matrices(tmp_path / "matrices.parquet")
    assert read.speakers == tuple(names)
    for kind, matrix in written.items():
        assert np.array_equal(read.quadrants[kind], matrix)


def test_matrices_that_expand_are_refused(tmp_path: Path) -> None:
    constant = pa.DictionaryArray.from_arrays(np.zeros(5_000_000, np.int32), ["OO"])
    columns = {"quadrant": constant, "row": constant, "column": constant, "similarity": np.zeros(5_000_000)}
    pq.write_table(pa.table(columns), tmp_path / "matrices.parquet")
    assert (tmp_path / "matrices.parquet").stat().st_size < 500_000
    with pytest.raises(InputError, match="far more than the file can hold"):
        read_matrices(tmp_path / "matrices.parquet")


def test_latex_marks_what_is_a_model_s(run: Path) -> None:
    given = reported(run)
    name, holder = next(iter(given.results.attacks.items()))
    beyond = Estimate(name="population_linkability", value=3.8e-05, unit="percent", at={"speakers": 1000, "length": 1})
    changed = replace(holder, estimates=Estimates([*holder.estimates, beyond]))
    results = replace(given.results, attackers={**given.results.attackers, name: changed})
    text = latex(replace(given, results=results), Options())
    (line,) = [line for line in text.splitlines() if "1,000 people" in line]
    assert "$^{\\dagger}$" in line
    assert "${<}0.1\\,\\%$" in line
    assert "% $\\dagger$: an estimate of a model" in text
    assert "dagger" not in latex(given, Options())


def test_every_specification_fits_its_schema(run: Path) -> None:
    """The page does not check them, which would take most of its time."""
    import altair as alt
    from altair.utils.schemapi import validate_jsonschema

    given, schema = reported(run), alt.load_schema()
    sections = technical_sections(given.results, given.matrices, None)
    specs = [figure.spec for section in sections for figure in section.figures]
    assert len(specs) >= 5
    assert all(validate_jsonschema(spec, schema, raise_error=False) is None for spec in specs)
    assert validate_jsonschema({**specs[0], "config": {"axis": 7}}, schema, raise_error=False) is not None


def grown(run: Path, count: int) -> Reported:
    """The run as if it had `count` speakers: as many rows and matrices of that size."""
    results = reported(run).results
    persons, similarity = results.people.persons, results.parts["similarity"]
    points = list(similarity.details["zoo"])
    names = tuple(f"somebody-{number:06d}" for number in range(count))
    people = tuple(replace(persons[n % len(persons)], speaker=name) for n, name in enumerate(names))
    zoo = [{**points[n % len(points)], "speaker": name} for n, name in enumerate(names)]
    part = replace(similarity, details={**similarity.details, "zoo": zoo})
    small: Any = np.random.default_rng(0).random((count, count), np.float32)
    more: Results = replace(
        results, people=replace(results.people, persons=people), parts={**results.parts, "similarity": part}
    )
    return Reported(results=more, matrices=Matrices(names, {"OO": small, "OP": small, "PP": small}))


@pytest.mark.browser
@pytest.mark.parametrize(("count", "megabytes"), [(400, 8), (5000, 15)])
def test_a_page_of_many_people_stays_light(
    run: Path, tmp_path: Path, browser: Any, count: int, megabytes: float
) -> None:
    path = tmp_path / "many.html"
    path.write_text(render(grown(run, count), Options(show_ids=True)), encoding="utf-8")
    assert path.stat().st_size < megabytes * 1e6
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    assert page.locator("#people-table tbody tr").count() == min(count, 1000)
    took = page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive")
    print(f"{count} speakers: {path.stat().st_size / 1e6:.1f} MB, interactive after {took:.0f} ms")
    page.click("#unfold")
    page.locator("#people-table tbody tr").first.click()
    page.wait_for_timeout(200)
    assert page.locator("#figure-matrix svg path[stroke='#D55E00']").count() > 0
    page.close()


def test_a_run_without_optional_parts_still_reports(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = make_run([f"s{number}" for number in range(8)], measures=["scores"], intervals=False)
    text = write_report(run, tmp_path / "r.html").read_text()
    assert 'id="decision"' in text
    assert 'id="singling_out"' not in text
    assert write_report(run, tmp_path / "r.pdf", form="pdf").read_bytes().startswith(b"%PDF-")


def test_what_a_form_can_not_show_is_refused(run: Path, tmp_path: Path) -> None:
    text = write_report(run, tmp_path / "r.tex", form="latex", threshold="9%").read_text()
    assert "% The limit of 9 in 100 that was named for this report" in text
    for form, options, name in (
        ("json", {"threshold": "9%"}, "--threshold"),
        ("latex", {"release_size": 100}, "--release-size"),
        ("json", {"candidates": 100}, "--candidates"),
        ("html", {"paper": "letter"}, "--paper"),
        ("pdf", {"with_audio": True}, "--with-audio"),
    ):
        with pytest.raises(InputError, match=f"{name} has no effect in the format '{form}'"):
            write_report(run, tmp_path / "r", form=form, **options)  # type: ignore[arg-type]


def test_the_pia_tool_can_import_the_file(run: Path, tmp_path: Path) -> None:
    """By the rules of the tool's own import: a `pia` with a name, an integer status and dates; answers to questions that
    it has, with text, gauge and list; measures with a title and content."""
    results = read_results(run)
    title = "Voices <script>alert(1)</script> & more"
    hostile = replace(results, title=title, settings={**results.settings, "title": title})
    form = json.loads(write_report(hostile, tmp_path / "r.json", form="pia-json").read_text())
    assert sorted(form) == ["answers", "comments", "evaluations", "measures", "pia"]
    assert form["pia"]["name"] == title
    assert form["pia"]["status"] == 0
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", form["pia"][key]) for key in ("created_at", "updated_at"))
    known = {111, 112, 113, 121, 122, 123, *range(211, 216), *range(221, 228), *range(321, 327)}
    answers = {answer["reference_to"]: answer["data"] for answer in form["answers"]}
    assert set(answers) <= known
    assert all(sorted(data) == ["gauge", "list", "text"] for data in answers.values())
    assert {data["gauge"] for data in answers.values()} == {None}  # the rating is for those who sign
    assert all("<script" not in data["text"] for data in answers.values())
    assert "&lt;script&gt;" in answers[111]["text"]
    linking = next(line for line in answers[326]["text"].split("<p>") if line.startswith("Link"))
    assert re.search(r"\d", linking)
    assert [measure["title"] for measure in form["measures"]] == answers[324]["list"]
    for person in results.people.persons:
        assert person.speaker not in json.dumps(form)
