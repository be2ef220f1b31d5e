"""The annex for the file: an officer's checklist, what the controller states, and lines to fill in."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import simulated
from tests.results.sample_results import sample
from tests.test_english import judged
from tests.wording.samples import findings_of

from veilmeter.assessment import assess
from veilmeter.assessment.statements import AnnexEntries
from veilmeter.attacks.attacker import ATTACKERS
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import text_finding
from veilmeter.core.options import options_of
from veilmeter.report import exports, write_report
from veilmeter.report.annex import FILL_IN, Chapter, annex
from veilmeter.report.decision import decide
from veilmeter.results.model import Check, Part, Results
from veilmeter.results.run_folder import Costs, read_costs, read_results
from veilmeter.results.trust import LENGTHS, RELEASE, STILL_SPEECH, TARGETS
from veilmeter.wording import ANNEX_LANGUAGES, annex_texts, sentence, writing_in
from veilmeter.wording.codes import CODES
from veilmeter.wording.english import checks, decision, verdict
from veilmeter.wording.english.annex import TEXTS
from veilmeter.wording.english.decision import REMEDIES
from veilmeter.wording.french import annex as french_texts
from veilmeter.wording.french import findings as french

ROOT = Path(__file__).parents[2]

# What an officer expects in the file, as rows with a place for the entry.
CHECKLIST = (
    "Controller", "Contact", "Purpose of the release", "Recipients", "Third countries", "Legal basis", "Article 9",
    "Categories of people", "Form of the release", "Retention", "Anonymizer and version", "Safeguards", "Necessity",
    "Severity", "Likelihood as rated", "Scale", "Data protection officer", "Advice", "Article 36", "Decided by",
    "To be assessed again before", "earlier assessment", "If somebody is recognized", "SHA-256 of results.json",
)  # fmt: skip
STATED = {"controller": "Example <Hospital>", "severity": "limited", "review_date": "2027-11-01"}


def stating(**settings: Any) -> Results:
    results = sample()
    return replace(results, settings={**results.settings, **settings})


def rows_of(chapters: tuple[Chapter, ...]) -> dict[str, tuple[str, ...]]:
    """By their titles; who the recipients are is another table."""
    known = [chapter.table for chapter in chapters if chapter.table and chapter.title != TEXTS["recipients.title"]]
    return {row[0]: row[1:] for table in known for row in table.rows}


def chapters_of(results: Results) -> tuple[Chapter, ...]:
    return annex(results, decide(results, digest="d" * 64), "2026-11-18")


def test_the_checklist_of_an_officer_is_covered() -> None:
    titles = list(rows_of(chapters_of(sample())))
    assert [wanted for wanted in CHECKLIST if not any(wanted in title for title in titles)] == []


def test_every_entry_has_a_row_and_nothing_is_invented() -> None:
    rows = rows_of(chapters_of(sample()))
    for name in options_of(AnnexEntries):
        assert rows[TEXTS[f"entry.{name}"]][0] == FILL_IN, name


def test_what_was_stated_is_filled_in() -> None:
    rows = rows_of(chapters_of(stating(annex=STATED, recipients=[{"name": "research partner"}])))
    assert rows["Controller"] == ("Example <Hospital>",)
    assert rows["To be assessed again before"][0] == "2027-11-01"
    assert rows["Scale of severity and likelihood"][0].startswith("negligible, limited, significant, maximum")
    assert rows["Recipients"] == ("research partner",)
    assert rows["Contact"] == (FILL_IN,)


def test_the_last_chapter_is_the_decision_to_sign() -> None:
    assert chapters_of(sample())[-1].title == "Decision to sign"


def test_lines_to_fill_in_are_controls_of_the_document(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    path = write_report(stating(annex=STATED), tmp_path / "a.docx", form="docx")
    xml = docx.Document(str(path)).element.xml
    controls = dict(re.findall(r'<w:tag w:val="annex\.(\w+)"/>.*?<w:t(?: [^>]*)?>([^<]*)</w:t>', xml, re.DOTALL))
    assert controls.pop("option") == "☐"
    assert xml.count("<w14:checkbox>") == 4
    assert xml.count("<w:cantSplit/>") == xml.count("</w:tr>")
    assert set(controls) == set(options_of(AnnexEntries))
    assert controls["controller"] == "Example &lt;Hospital&gt;"
    assert controls["contact"] == TEXTS["fill_in"]
    assert xml.count("<w:sdt>") == xml.count("</w:sdt>") > len(controls)
    assert "<w:date>" in xml


def test_lines_to_fill_in_can_be_written_into_on_the_page(tmp_path: Path) -> None:
    page = write_report(stating(annex=STATED), tmp_path / "a.html", template="annex").read_text()
    assert "Example &lt;Hospital&gt;" in page
    assert '<div contenteditable="true" role="textbox" aria-multiline="true" aria-label="Contact"></div>' in page


def test_a_file_may_state_it_after_the_run(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[annex]\ncontroller = "Later Ltd"\n')
    before = stating(annex=STATED)
    text = write_report(before, tmp_path / "r.md", form="md", config=tmp_path / "s.toml").read_text()
    assert "Later Ltd" in text
    assert "2027-11-01" not in text


def test_a_reassurance_that_is_not_to_be_relied_on_says_so_first() -> None:
    results = sample()
    failed = Check(name="enough speakers", finding=text_finding("Too few."), passed=False, misleads="either")
    doubted = replace(
        results, checks=(*results.checks, failed), verdict=replace(results.verdict, trustworthy=False, level="low")
    )
    for told, place in ((results, 1), (doubted, 0)):
        first, *_ = chapters_of(told)
        words = decide(told).reliance
        assert first.paragraphs[place] == words
        assert rows_of(chapters_of(told))["Reliance"][0] == words
    assert "Do not rely on this result" in words


def test_scores_alone_refer_to_no_chapter_that_is_missing() -> None:
    results = replace(sample(), attackers={}, criteria={}, parts={})
    chapters = annex(results, decide(results), template="authority")
    titles = {chapter.title for chapter in chapters}
    (table,) = (chapter.table for chapter in chapters if chapter.title == TEXTS["standards.title"])
    assert table is not None
    assert {name for _, names in table.rows for name in names.split("; ")} <= titles
    assert TEXTS["individuals.title"] not in titles


# --- what an attack costs


def by_attacker(results: Results, **seconds: float) -> Chapter:
    decision = decide(results, costs=Costs({f"attacker-{name}": took for name, took in seconds.items()}))
    return next(c for c in annex(results, decision) if c.title == TEXTS["attackers.title"])


def test_the_cost_of_an_attack_is_what_it_took_here(run: Path) -> None:
    measured = read_costs(run).seconds
    results = read_results(run)
    assert {f"attacker-{name}" for name in results.attacks} <= set(measured)
    assert all(seconds >= 0 for seconds in measured.values())
    chapter = by_attacker(results, ignorant=12.34)
    assert chapter.table is not None
    cells = {row[0].split("(")[-1].rstrip(")"): row[2] for row in chapter.table.rows}
    protocol = results.protocol
    amount = f"{protocol.enrollment_utterances} known and {protocol.trial_utterances} released recordings"
    took = "12.3 processor seconds for the attack and its measurement; extracting voices not timed here"
    assert cells["ignorant"] == f"{took}; {amount}"
    assert cells["informed"].startswith("processor time of the attack not recorded; extracting voices not timed here; ")
    assert "running the anonymizer not timed here" in cells["informed"]
    entry = replace(results.inputs["original"], hours=2.0)
    recorded = replace(results, inputs={**results.inputs, "original": entry})
    costs = Costs({}, (5.0, 10), anonymizer=0.5, machine="a machine")
    chapter = next(c for c in annex(recorded, decide(recorded, costs=costs)) if c.title == TEXTS["attackers.title"])
    assert chapter.table is not None
    rows = {row[0].split("(")[-1].rstrip(")"): row[2] for row in chapter.table.rows}
    per_recording = 0.5 * (protocol.enrollment_utterances + protocol.trial_utterances)
    assert f"{per_recording:,.1f} for extracting voices" in rows["ignorant"]
    assert "anonymizer" not in rows["ignorant"]
    share = protocol.enrollment_utterances / entry.utterances
    assert f"{3600 * share:,.0f} for running the anonymizer" in rows["informed"]
    assert "Machine: a machine." in "".join(chapter.paragraphs)
    page = write_report(run, run.parent / "cost.md", form="md").read_text()
    assert f"{measured['attacker-ignorant']:,.1f} processor seconds" in page


def test_a_run_that_goes_on_keeps_what_its_attacks_took(tmp_path: Path) -> None:
    original, protected = simulated([f"s{n}" for n in range(6)], utterances=4)
    given: dict[str, Any] = {"lengths": [1], "resamples": 5, "attackers": ["ignorant"], "jobs": 1}
    assess(original, protected, out=tmp_path, measures=["linkability"], **given)
    first = read_costs(tmp_path).seconds
    assess(original, protected, out=tmp_path, measures=["linkability"], title="again", **given)
    assert first["attacker-ignorant"] == read_costs(tmp_path).seconds["attacker-ignorant"]


def test_the_margin_says_what_better_attackers_added() -> None:
    results = sample()
    weak = results.attackers["ignorant"]
    strong = replace(weak, name="adaptive", reference=False)
    both = replace(results, attackers={"ignorant": replace(weak, reference=True), "adaptive": strong})
    (same,) = (text for text in by_attacker(both).paragraphs if "Margin" in text)
    assert "does not bound what later attackers will find" in same


def test_every_attribute_has_its_control() -> None:
    points = [
        Estimate(name="inference", value=80.0, unit="percent", interval=(70.0, 90.0), null=50.0, null_range=(40.0, 60.0),
                 at={"attribute": attribute})
        for attribute in ("gender", "accent")
    ]  # fmt: skip
    counts = {"combined_people": 40, "combined_combinations": 9, "combined_alone": 3, "combined_alone_and_right": 2}
    part = Part(name="inference", estimates=Estimates(points), details=counts)
    results = replace(sample(), parts={"inference": part})
    (chapter,) = (c for c in chapters_of(results) if c.title == TEXTS["inference.title"])
    assert chapter.table is not None
    assert chapter.table.rows[0] == ("gender", "80 [70, 90]", "50 [40, 60]", "60 [40, 80]", "–")
    assert [row[0] for row in chapter.table.rows] == ["gender", "accent"]
    assert "3 people are alone with theirs, and for 2 of them" in chapter.paragraphs[1]
    assert "rarest" not in chapter.paragraphs[1]  # which earlier runs do not know
    counts |= {"combined_smallest": 1, "combined_typical": 8}
    shared = replace(sample(), parts={"inference": replace(part, details=counts)})
    (chapter,) = (c for c in chapters_of(shared) if c.title == TEXTS["inference.title"])
    assert (
        "rarest combination is shared by 1 person; half of the people are in a combination of at least 8."
        in (chapter.paragraphs[1])
    )
    assert not any(c.title == TEXTS["inference.title"] for c in chapters_of(replace(results, parts={})))


# --- no form of a report judges


@pytest.mark.parametrize(
    ("form", "template", "language"),
    [("html", "", None), ("md", "", None), ("latex", "", None)]
    + [(form, "authority" * (form == "html"), code) for form in ("html", "pia-json") for code in ANNEX_LANGUAGES],
)
def test_no_report_calls_data_anonymous_compliant_safe_or_legal(
    run: Path, tmp_path: Path, form: str, template: str, language: str | None
) -> None:
    """What is written, with everything that attackers and measures say of themselves."""
    path = write_report(run, tmp_path / "r", form=form, template=template, language=language)
    written = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", path.read_text(), flags=re.DOTALL)
    assert judged(" ".join(html.unescape(written).split())) == []


# --- languages, and the template for authorities


def used_keys() -> set[str]:
    report = ROOT / "src" / "veilmeter" / "report"
    source = "".join((report / name).read_text() for name in ("annex.py", "recipients.py"))
    chapters = {key.split(".")[0] for key in TEXTS}
    return {key for key in re.findall(r'"(\w+\.\w+)"', source) if key.split(".")[0] in chapters}


@pytest.mark.parametrize("language", [name for name in ANNEX_LANGUAGES if name != "en"])
def test_every_language_has_the_same_keys_and_fields(language: str) -> None:
    texts = annex_texts(language)
    assert set(texts) == set(TEXTS)
    for key, text in TEXTS.items():
        assert sorted(re.findall(r"{\w+", text)) == sorted(re.findall(r"{\w+", texts[key])), key
        assert texts[key].strip(), key


def test_every_text_that_is_asked_for_exists() -> None:
    assert used_keys() <= set(TEXTS)
    assert len(used_keys()) > 50


def annex_in(results: Results, language: str) -> tuple[Chapter, ...]:
    with writing_in(language):
        return annex(results, decide(results), "2026-11-18", template="authority")


def texts_of(chapters: tuple[Chapter, ...]) -> list[str]:
    cells = [cell for c in chapters if c.table for row in (c.table.head, *c.table.rows) for cell in row]
    return [*(text for c in chapters for text in (c.title, *c.paragraphs, *c.items)), *cells]


# Words that every English sentence of the annex has some of, and French has none of.
ENGLISH_WORDS = re.compile(
    r"\b(the|of|and|is|are|was|were|with|without|not|an|to|by|people|recordings?|guessing)\b", re.I
)


def test_a_whole_run_in_french_has_no_english_sentence(run: Path) -> None:
    results = read_results(run)
    settings = {**results.settings, "annex": {**STATED, "route": "contextual"}, "recipients": [{"name": "Partenaire"}]}
    chapters = annex_in(replace(results, settings=settings), "fr")
    kept = ("No Record Isolation", "Information Commissioner's Office", "Simulated voices")
    for text in texts_of(chapters):
        for name in kept:
            text = text.replace(name, "")
        assert not ENGLISH_WORDS.search(text), text
    assert any("2027" in text and "01/11/2027" in text for text in texts_of(chapters))
    assert not any(
        re.search(r"\d\.\d", text.replace("veilmeter " + results.version, "")) for text in texts_of(chapters)
    )


def test_every_finding_that_the_annex_may_show_has_a_french_sentence() -> None:
    elsewhere = {
        # preliminary results, the first page and the technical part; advice_remedy and others are in both
        "use", "use_measured", "use_not_measured", "channels", "text_floor", "distinctiveness", "guessing_finds",
        "original_speech_linked", "share_measured", "share_modeled", "share_unknown", "share_beyond_model",
        "more_in_technical_part", "more_in_annex", "systems_find", "no_system_reliable", "one_system_reliable",
        "system_protects_best", "system_protects_better", "no_system_better", "no_reliable_system_better",
        "best_system_unfit", "no_system_fit", "systems_not_judged", "use_not_compared", "trade_off",
    }  # fmt: skip
    shown = {code for subject in (verdict, checks, decision) for code in subject.WORDS.codes()}
    codes = list(CODES)  # in the order of their declarations, where those of what was not tested follow each other
    shown |= set(codes[codes.index("not_asked_for") : codes.index("release_count")])
    french_codes = set(french.WORDS.codes())
    assert shown - french_codes == elsewhere
    assert french_codes <= set(CODES)
    assert set(french_texts.ATTACKERS) == {name for name, attacker in ATTACKERS.items() if attacker.plain_words.time}
    assert set(french_texts.CHECKS) == set(REMEDIES) | {RELEASE, LENGTHS, TARGETS, STILL_SPEECH}


def test_every_french_sentence_can_be_written() -> None:
    with writing_in("fr"):
        for code in french.WORDS.codes():
            for finding in findings_of(CODES[code]):
                said = sentence(finding, "annex")
                assert said == french.WORDS.sentence(finding, "annex")
                assert said.strip(), code


def test_the_annex_in_french(tmp_path: Path) -> None:
    results = stating(annex={**STATED, "route": "simplified"})
    english, french = (annex_in(results, language) for language in ("en", "fr"))
    assert len(english) == len(french)
    assert french[-1].title == "Décision à signer"
    assert not {chapter.title for chapter in english} & {chapter.title for chapter in french}
    page = write_report(results, tmp_path / "a.html", template="authority", language="fr").read_text()
    assert '<html lang="fr">' in page
    assert "Responsable du traitement" in page
    with pytest.raises(InputError, match="only the annex is written in several languages"):
        write_report(results, tmp_path / "r.html", language="fr")
    with pytest.raises(InputError, match="unknown language"):
        write_report(results, tmp_path / "r.html", template="annex", language="de")


def test_the_template_for_authorities(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    path = write_report(sample(), tmp_path / "a.docx", form="docx", template="authority")
    document = docx.Document(str(path))
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    for clause in (6, 7, 8, 9):
        assert any(cell.startswith(f"ISO/IEC 27559:2022, clause {clause}:") for cell in cells)
    assert any("unlinkability" in cell for cell in cells)
    assert TEXTS["intruder.recordings"] in cells
    plain = write_report(sample(), tmp_path / "b.docx", form="docx")
    assert "ISO/IEC" not in "".join(p.text for p in docx.Document(str(plain)).paragraphs)
    with pytest.raises(InputError, match="unknown template"):
        write_report(sample(), tmp_path / "c.docx", form="docx", template="letter")


def test_the_pia_tool_gets_what_was_stated(tmp_path: Path) -> None:
    stated = {
        **STATED,
        "legal_basis": "Article 6(1)(e)",
        "officer": "A. Officer",
        "advice": "Wait.",
        "likelihood": "maximum",
    }
    form = json.loads(write_report(stating(annex=stated), tmp_path / "p.json", form="pia-json").read_text())
    answers = {answer["reference_to"]: answer["data"] for answer in form["answers"]}
    assert "Example &lt;Hospital&gt;" in answers[112]["text"]
    assert "Article 6(1)(e)" in answers[212]["text"]
    assert (answers[325]["gauge"], answers[326]["gauge"]) == (2, 4)
    assert (form["pia"]["dpos_names"], form["pia"]["dpo_opinion"]) == ("A. Officer", "Wait.")
    assert 211 not in answers
    own = {"severity": "4 of 5", "scale": "ours"}
    form = json.loads(write_report(stating(annex=own), tmp_path / "p.json", form="pia-json").read_text())
    assert {answer["data"]["gauge"] for answer in form["answers"]} == {None}


def test_tags_for_the_pia_tool_differ_where_it_cuts_them(tmp_path: Path, run: Path) -> None:
    """Its map of risks shows the first 27 characters of each tag."""
    for language in ANNEX_LANGUAGES:
        written = write_report(run, tmp_path / "p.json", form="pia-json", language=language)
        form = json.loads(written.read_text())
        for question in (322, 323, 324):
            (tags,) = (answer["data"]["list"] for answer in form["answers"] if answer["reference_to"] == question)
            assert tags
            assert len({tag[:27] for tag in tags}) == len(tags), tags
        assert all(len(measure["title"]) <= 120 for measure in form["measures"]), "the tool's field is that long"


def test_what_would_be_released_is_not_invented(tmp_path: Path, run: Path) -> None:
    assert rows_of(chapters_of(sample()))["What would be released"] == (FILL_IN,)
    assert rows_of(chapters_of(stating(title="Ward 3")))["What would be released"] == ("Ward 3",)
    page = write_report(run, tmp_path / "a.html", template="annex", language="fr").read_text()
    assert "Assessment of anonymized speech" not in page


def test_a_french_document_is_checked_and_set_as_french(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    for language, code in (("fr", "fr-FR"), ("en", "en-US")):
        path = write_report(stating(title="Ward 3"), tmp_path / "a.docx", form="docx", language=language)
        document = docx.Document(str(path))
        assert f'w:lang w:val="{code}"' in document.styles.element.xml
    many = [{"name": "A", "original_speech": True, "candidates": 5000}]
    path = write_report(stating(title="Ward 3", recipients=many), tmp_path / "a.docx", form="docx", language="fr")
    document = docx.Document(str(path))
    written = [paragraph.text for paragraph in document.paragraphs]
    written += [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    assert written[0] == "Ward 3\N{NO-BREAK SPACE}: annexe au dossier"
    assert "5\N{NO-BREAK SPACE}000 candidats ;".replace(" ;", "\N{NO-BREAK SPACE};") in "".join(written)
    assert not re.search(r"\d\?\d", "".join(written))
    assert not re.search(" [:;?!%»]|\N{NARROW NO-BREAK SPACE}", "".join(written))


# The questions of the PIA tool by the type of their answer, and the fields that its import reads
# (LINCnil/pia: src/assets/files/pia_architecture.json, src/app/services/pia.service.ts).
QUESTIONS = {
    "text": {111, 112, 113, 121, 122, 123, *range(211, 216), *range(221, 228)},
    "list": {10 * risk + number for risk in (32, 33, 34) for number in (1, 2, 3, 4)},
    "gauge": {10 * risk + number for risk in (32, 33, 34) for number in (5, 6)},
}
READ_BY_THE_IMPORT = {
    "pia": {
        "name", "category", "status", "author_name", "evaluator_name", "validator_name", "dpo_status", "dpo_opinion",
        "concerned_people_opinion", "concerned_people_status", "concerned_people_searched_opinion",
        "concerned_people_searched_content", "rejected_reason", "applied_adjustements", "dpos_names", "people_names",
        "structure_id", "created_at", "updated_at",
    },
    "answers": {"reference_to", "data", "created_at", "updated_at"},
    "measures": {"id", "title", "content", "placeholder", "created_at", "updated_at"},
}  # fmt: skip


def is_importable(form: dict[str, Any]) -> None:
    """What the tool's import and its pages ask of a file."""
    assert READ_BY_THE_IMPORT["pia"] <= set(form["pia"])
    assert "dbVersion" in form["pia"], "versions of 2018 refuse a file without it"
    assert isinstance(form["pia"]["status"], int)
    assert form["pia"]["structure_id"] is None, "no organization-specific template goes with it"
    for name in ("answers", "measures"):
        assert form[name]
        assert all(READ_BY_THE_IMPORT[name] <= set(item) for item in form[name]), name
    assert form["evaluations"] == form["comments"] == []
    for item in (form["pia"], *form["answers"], *form["measures"]):
        for field in ("created_at", "updated_at"):
            assert datetime.fromisoformat(item[field]).tzinfo is not None
    answered = [answer["reference_to"] for answer in form["answers"]]
    assert len(answered) == len(set(answered)), "the tool shows one answer per question"
    for answer in form["answers"]:
        data = answer["data"]
        assert set(data) == {"text", "gauge", "list"}
        (kind,) = (kind for kind, questions in QUESTIONS.items() if answer["reference_to"] in questions)
        assert bool(data["list"]) == (kind == "list"), answer
        assert data["gauge"] in (None, 1, 2, 3, 4) if kind == "gauge" else data["gauge"] is None
        assert kind == "list" or re.fullmatch(r"(<p>[^<>]+</p>)+", data["text"]), answer
    (chosen,) = (answer["data"]["list"] for answer in form["answers"] if answer["reference_to"] == 324)
    assert chosen == [measure["title"] for measure in form["measures"]], "measures are chosen by their titles"


@pytest.mark.parametrize("stated", [{}, {name: f"<{name}>" for name in ("controller", "safeguards", "incidents")}])
def test_the_file_for_the_pia_tool_has_what_its_import_reads(tmp_path: Path, run: Path, stated: dict[str, str]) -> None:
    results = read_results(run)
    results = replace(results, settings={**results.settings, "annex": stated, "recipients": [{"name": "A & B"}]})
    form = json.loads(write_report(results, tmp_path / "p.json", form="pia-json").read_text())
    is_importable(form)
    (data,) = (answer["data"]["text"] for answer in form["answers"] if answer["reference_to"] == 121)
    assert "A &amp; B" in data
    assert len(form["measures"]) == (3 if stated else 1)


def test_an_entry_of_several_lines_keeps_them(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    address = "Example Hospital\n1 Main Street\nSpringfield"
    path = write_report(stating(annex={"controller": address}), tmp_path / "a.docx", form="docx")
    xml = docx.Document(str(path)).element.xml
    assert re.search(r"Example Hospital</w:t>\s*<w:br/>\s*<w:t>1 Main Street", xml)
    assert "Hospital?" not in xml


def test_an_annex_on_paper_says_what_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The template prints both on the first page of an annex alone, which has no page before it."""
    typeset: dict[str, Any] = {}
    monkeypatch.setattr(exports, "_typeset", lambda folder, data: typeset.update(data) or b"")
    results = stating(title="Ward 3", notice="Not real people.")
    write_report(results, tmp_path / "a.pdf", form="pdf", template="annex")
    assert typeset["texts"]["whole_title"] == "Ward 3: annex for the file"
    assert (typeset["notice"], typeset["decision"]) == ("Not real people.", None)
    template = (ROOT / "src/veilmeter/report/page/report.typ").read_text()
    before_annex = template[: template.index("#chapters(data.annex)")].splitlines()[-4:]
    assert any("data.texts.whole_title" in line for line in before_annex)
    assert any("data.notice" in line for line in before_annex)
