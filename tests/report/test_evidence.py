"""Every figure of a page leads to its evidence, and one quantity has one number wherever the page tells it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import Opened

from veilmeter.core.estimate import Estimate
from veilmeter.report import write_report
from veilmeter.report.compare import write_comparison
from veilmeter.report.evidence import citation_rows, linked, with_cited, without_links
from veilmeter.report.rows import linking_of_all, row
from veilmeter.results.run_folder import read_results
from veilmeter.wording.citations import Citation, citations, cite, of_system
from veilmeter.wording.numbers import of_hundred

NUMBER = r"([0-9][0-9,.]*)(?: %| of 100)?(?: \[([0-9.,]+), ([0-9.,]+)\])?"


@pytest.fixture(scope="module")
def report(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(run, tmp_path_factory.mktemp("evidence") / "report.html")


def number(text: str) -> float:
    return float(text.replace(",", ""))


def shown(page: Any, where: str) -> list[tuple[str, str]]:
    """The figures of a part of the page: their text, and the id of the row that they lead to."""
    return [
        (" ".join(text.split()), target.removeprefix("#"))
        for text, target in page.locator(f"{where} a.number").evaluate_all(
            "links => links.map(link => [link.textContent, link.getAttribute('href')])"
        )
    ]


def test_every_figure_leads_to_a_row_with_the_same_number(browser: Any, report: Path) -> None:
    with Opened(browser, report) as opened:
        figures = shown(opened.page, "main")
        assert len(figures) > 100
        rows = dict(
            opened.page.locator("tr[data-measure]").evaluate_all(
                "rows => rows.map(row => [row.id, [...row.cells].map(cell => cell.textContent.trim())])"
            )
        )
        assert not opened.said
    assert {target for _, target in figures} <= set(rows)
    compared = 0
    for text, target in figures:
        value, found = rows[target][2], re.fullmatch(NUMBER, text)
        if found is None or not value.endswith(" %"):
            continue
        decimals = len(found[1].partition(".")[2])
        own = float(value.removesuffix(" %"))
        if abs(number(found[1]) - own) > 0.5 * 10**-decimals + 0.051:  # of people instead of recordings: counted below
            assert number(found[1]) <= 14, (text, rows[target])
            continue
        compared += 1
        if found[2] and rows[target][3]:
            ends = [number(end) for end in rows[target][3].strip("[]").split(", ")]
            assert [number(found[2]), number(found[3])] == pytest.approx(ends, abs=0.5 * 10**-decimals + 0.051), text
    assert compared > 50


def test_linking_has_one_number_on_the_whole_page(browser: Any, report: Path, run: Path) -> None:
    results = read_results(run)
    linking = linking_of_all(results)
    assert linking is not None
    told = of_hundred(linking.estimate)
    people = int(linking.estimate.at["speakers"])
    with Opened(browser, report) as opened:
        page = opened.page
        assert f"Of 100 recordings, {told} are linked" in page.locator("table.criteria").inner_text()
        assert f"Of 100 recordings, {told} are linked" in page.locator("#sign").inner_text()
        assert f"Of 100 recordings, {told} are linked" in page.locator("#annex").inner_text()
        dots = " ".join(page.locator("figure.dots").first.inner_text().split())
        worst = " ".join(page.locator("table.who tr.worst").inner_text().split())
        value, _, interval = told.partition(" ")
        assert f"{value} of 100 {interval}" in dots
        assert f"{value} of 100 {interval}" in worst
        found, low, high = (
            round(people * share / 100) for share in (linking.estimate.value, *(linking.estimate.interval or ()))
        )
        assert f"About {found} [{low}, {high}] of the {people} people" in page.locator(".lead").inner_text()
        # The calculator computes the same once more, from curves, when somebody touches it.
        before = page.locator("#release-answer").inner_text()
        assert before.startswith(f"About {found} [{low}, {high}] of the {people} people")
        page.locator("#release-people").dispatch_event("input")
        assert page.locator("#release-answer").inner_text() == before
    table = write_report(run, report.parent / "run.json", form="json")
    published = json.loads(table.read_text(encoding="utf-8"))
    stored = published["criteria"]["linking"]["estimate"]
    if not stored.get("group") and stored["speakers"] == people and "as_measured" not in linking.estimate.extra:
        assert stored["value"] == pytest.approx(linking.estimate.value)


def test_a_figure_opens_what_it_is_and_its_row_has_an_address(browser: Any, report: Path) -> None:
    with Opened(browser, report, unfold=False) as opened:
        page = opened.page
        first = page.locator(".lead a.number")
        target = str(first.get_attribute("href"))
        first.click()
        box = page.locator(".evidence")
        told = box.inner_text()
        for part in ("Linkability.", "attacker", "95 % interval", "chance", "method", "Row in the table"):
            assert part in told
        page.keyboard.press("Escape")
        assert box.count() == 0
        assert first.evaluate("link => link === document.activeElement")
        first.press("Enter")
        box.get_by_text("Row in the table").click()
        assert page.evaluate("location.hash") == target
        page.wait_for_selector(f".found[id='{target[1:]}']", state="visible")  # its section is unfolded by an event
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        page.wait_for_selector(f"[id='{target[1:]}']", state="visible")
        assert not opened.said


def test_a_comparison_names_the_system_of_every_figure(browser: Any, run: Path, make_run: Any, tmp_path: Path) -> None:
    other = make_run([f"speaker{n:02d}" for n in range(14)], seed=1)
    path = write_comparison([run, other], tmp_path / "c.html", resamples=20)
    with Opened(browser, path) as opened:
        figures = shown(opened.page, "#decision")
        rows = set(opened.page.locator("#numbers tr[data-measure]").evaluate_all("rows => rows.map(r => r.id)"))
        told = opened.page.locator("#decision .verdict").inner_text()
        owners = opened.page.locator("#numbers tr[data-measure] td:first-child").all_text_contents()
        assert not opened.said
    assert figures
    assert {target for _, target in figures} <= rows
    assert len({owner.split(": ")[0] for owner in owners}) == 2
    # Warnings are whole sentences.
    assert "recordings of the same people." in told
    assert ".." not in told
    assert "Mind that" not in told


def test_marks_are_links_in_text_and_nothing_elsewhere() -> None:
    point = Estimate(name="linkability", label="Linkability", value=40.0, unit="percent", at={"speakers": 20})
    with citations() as collected:
        text = f"a < b: {cite('40', point)} and {cite('40 %', point)}"
        with of_system("B1"):
            cite("40", point)
    assert [citation.system for citation in collected.made] == ["", "B1"]
    tables, targets = with_cited([("linking", [row("ignorant", point)])], collected.made[:1])
    assert targets == [tables[0][0].id]
    assert str(linked(text, targets)) == (
        f'a &lt; b: <a class="number" href="#{targets[0]}">40</a> and <a class="number" href="#{targets[0]}">40 %</a>'
    )
    assert without_links(text) == "a < b: 40 and 40 %"
    assert str(linked(text, [])) == "a &lt; b: 40 and 40 %"
    # Text that happens to hold such characters is neither a link nor an error.
    assert str(linked("\ue00099\ue001x\ue002\ue000", targets)) == "x"
    rows, ids = citation_rows(collected.made)
    assert [one.attacker for one in rows] == ["", "B1"]
    assert len(set(ids)) == 2


def test_a_figure_that_no_table_has_gets_a_row() -> None:
    point = Estimate(name="linkability", label="Linkability", value=40.0, unit="percent", at={"speakers": 20})
    cited = [
        Citation(
            point.with_(value=30.0, extra={"as_measured": 40.0, "several_attackers": True}).sign(attacker="ignorant")
        )
    ]
    tables, targets = with_cited([("linking", [row("ignorant", point)])], cited)
    assert [one.value for one in tables[0]] == ["40.0 %", "30.0 %"]
    assert tables[0][1].attacker == "the strongest attacker that was run (usually ignorant)"
    assert targets == [tables[0][1].id] != [tables[0][0].id]
    assert with_cited([("utility", [])], cited)[1] == [""]
