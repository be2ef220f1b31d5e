"""The annex for the file: an officer's checklist, what the controller states, and lines to fill in."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import simulated
from tests.results.sample_results import sample

from veilmeter.assessment import assess
from veilmeter.assessment.statements import AnnexEntries
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.options import options_of
from veilmeter.report import write_report
from veilmeter.report.annex import FILL_IN, Chapter, annex
from veilmeter.report.decision import decide
from veilmeter.results.model import Part, Results
from veilmeter.results.run_folder import processor_seconds, read_results
from veilmeter.wording.english.annex import TEXTS

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
    assert set(controls) == set(options_of(AnnexEntries))
    assert controls["controller"] == "Example &lt;Hospital&gt;"
    assert controls["contact"] == TEXTS["fill_in"]
    assert xml.count("<w:sdt>") == xml.count("</w:sdt>") > len(controls)
    assert "<w:date>" in xml


def test_lines_to_fill_in_can_be_written_into_on_the_page(tmp_path: Path) -> None:
    page = write_report(stating(annex=STATED), tmp_path / "a.html", annex_only=True).read_text()
    assert "Example &lt;Hospital&gt;" in page
    assert '<div contenteditable="true" role="textbox" aria-multiline="true" aria-label="Contact"></div>' in page


def test_a_file_may_state_it_after_the_run(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[annex]\ncontroller = "Later Ltd"\n')
    before = stating(annex=STATED)
    text = write_report(before, tmp_path / "r.md", form="md", config=tmp_path / "s.toml").read_text()
    assert "Later Ltd" in text
    assert "2027-11-01" not in text


# --- what an attack costs


def by_attacker(results: Results, **seconds: float) -> Chapter:
    decision = decide(results, seconds={f"attacker-{name}": took for name, took in seconds.items()})
    return next(c for c in annex(results, decision) if c.title == TEXTS["attackers.title"])


def test_the_cost_of_an_attack_is_what_it_took_here(run: Path) -> None:
    measured = processor_seconds(run)
    results = read_results(run)
    assert {f"attacker-{name}" for name in results.attacks} <= set(measured)
    assert all(seconds >= 0 for seconds in measured.values())
    chapter = by_attacker(results, ignorant=12.34)
    assert chapter.table is not None
    cells = {row[0].split("(")[-1].rstrip(")"): row[2] for row in chapter.table.rows}
    protocol = results.protocol
    amount = f"{protocol.enrollment_utterances} known and {protocol.trial_utterances} released recordings"
    assert cells["ignorant"] == f"12.3 processor seconds; {amount}"
    assert cells["informed"] == f"{amount}; processor time not recorded"
    page = write_report(run, run.parent / "cost.md", form="md").read_text()
    assert f"{measured['attacker-ignorant']:,.1f} processor seconds" in page


def test_a_run_that_goes_on_keeps_what_its_attacks_took(tmp_path: Path) -> None:
    original, protected = simulated([f"s{n}" for n in range(6)], utterances=4)
    given: dict[str, Any] = {"lengths": [1], "resamples": 5, "attackers": ["ignorant"], "jobs": 1}
    assess(original, protected, out=tmp_path, measures=["linkability"], **given)
    first = processor_seconds(tmp_path)
    assess(original, protected, out=tmp_path, measures=["linkability"], title="again", **given)
    assert first["attacker-ignorant"] == processor_seconds(tmp_path)["attacker-ignorant"]


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
    assert not any(c.title == TEXTS["inference.title"] for c in chapters_of(replace(results, parts={})))
