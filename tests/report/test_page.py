"""The page as a browser shows it: whole, quiet, linked, and harmless whatever the ids are."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import HOSTILE, Opened

from veilmeter.report import write_figures, write_report
from veilmeter.report.html import Options, render
from veilmeter.report.public import reported
from veilmeter.results.run_folder import read_results

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(run: Path) -> Path:
    return write_report(run, threshold="9%")


def test_nothing_is_loaded_and_nothing_complains(browser: Any, report: Path) -> None:
    with Opened(browser, report) as opened:
        assert opened.said == []
        assert [url for url in opened.asked if not url.startswith(("data:", report.as_uri()))] == []


def test_every_section_and_figure_is_drawn(browser: Any, report: Path) -> None:
    with Opened(browser, report) as opened:
        page = opened.page
        assert page.locator("section#decision h1").is_visible()
        for section in (
            "linking",
            "singling_out",
            "disclosure",
            "similarity",
            "verification",
            "people",
            "method",
            "annex",
        ):
            assert page.locator(f"section#{section} h2").is_visible(), section
            assert page.locator(f"section#{section} .body").is_visible(), section
        charts = page.locator(".chart")
        assert charts.count() >= 6
        for number in range(charts.count()):
            assert charts.nth(number).locator("svg").count() == 1
            assert charts.nth(number).get_attribute("aria-label")
            box = charts.nth(number).locator("svg").bounding_box()
            assert box["width"] > 200
            assert box["height"] > 150
        captions = page.locator("figure:not(.dots) figcaption").all_inner_texts()
        assert all(len(caption) > 60 for caption in captions)


def test_choosing_in_the_zoo_marks_matrix_and_table(browser: Any, report: Path) -> None:
    with Opened(browser, report) as opened:
        page = opened.page
        page.locator("#figure-zoo path[aria-roledescription]").first.click()
        row = page.locator("#people-table tr.chosen")
        assert row.count() == 1
        name = row.get_attribute("data-speaker")
        assert name in page.locator("#chosen").inner_text()
        framed = page.locator("#figure-matrix svg path[stroke='#D55E00']")
        page.wait_for_timeout(300)
        assert framed.count() > 20
        page.locator(f"#people-table tr[data-speaker='{name}']").press("Enter")
        assert page.locator("#people-table tr.chosen").count() == 0


def test_the_table_sorts_and_searches_by_keyboard(browser: Any, report: Path) -> None:
    with Opened(browser, report) as opened:
        page = opened.page

        def first_column() -> list[str]:
            return page.locator("#people-table tbody tr:not([hidden]) td:first-child").all_inner_texts()

        head = page.locator("#people-table th").first
        head.press("Enter")
        assert first_column() == sorted(first_column())
        head.press("Enter")
        assert first_column() == sorted(first_column(), reverse=True)
        page.locator("#people-table th", has_text="highest risk").click()
        risks = [float(text) for text in page.locator("#people-table tbody td:nth-child(2)").all_inner_texts()]
        assert risks == sorted(risks)
        page.fill("#people-search", first_column()[0])
        assert len(first_column()) == 1


def test_every_figure_gives_its_data(browser: Any, report: Path) -> None:
    with Opened(browser, report) as opened:
        page = opened.page
        for button in page.locator("button[data-csv]").all():
            with page.expect_download() as download:
                button.click()
            lines = Path(download.value.path()).read_text().splitlines()
            assert len(lines) > 5
            columns = lines[0].split(",")
            assert len(columns) > 2
            assert {len(row) for row in csv.reader(line for line in lines if line)} == {len(columns)}  # one table


def test_figures_and_tables_can_be_taken_along(browser: Any, report: Path) -> None:
    with Opened(browser, report) as opened:
        page = opened.page
        with page.expect_download() as download:
            page.click("button[data-svg=figure-linkability]")
        assert download.value.suggested_filename == "linkability.svg"
        drawing = Path(download.value.path()).read_text()
        assert "var(--" not in drawing
        assert "http://www.w3.org/2000/svg" in drawing
        with page.expect_download() as download:
            page.click("button[data-png=figure-linkability]")
        assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
        with page.expect_download() as download:
            page.click("#body-people button:has-text('Table as CSV')")
        rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
        assert len(rows) == 15
        assert {len(row) for row in rows} == {len(rows[0])}
        page.click("#body-people button:has-text('Copy table')")
        page.wait_for_selector("#body-people button:has-text('Copied')")
        assert opened.said == []


def test_an_address_holds_what_was_chosen(browser: Any, report: Path) -> None:
    with Opened(browser, report, unfold=False) as opened:
        page = opened.page
        assert page.locator("#chosen-dot").is_hidden()
        page.locator(".strip [data-person]").first.click()
        name = page.locator(".strip [data-person]").first.get_attribute("data-person")
        assert page.locator("#chosen-dot").inner_text().startswith(f"{name}: ")
        page.fill("#release-candidates", "9")
        answer = page.locator("#release-answer").inner_text()
        page.click("#chosen-dot a")  # to the table, which keeps the choice
        page.wait_for_function("() => !document.getElementById('people').classList.contains('closed')")
        address = page.url
        assert address.endswith(f"#people;person={name};release-candidates=9")
        other = opened.context.new_page()
        other.goto(address)
        other.wait_for_selector("html[data-ready]", timeout=60_000)
        assert other.locator("#release-answer").inner_text() == answer
        assert other.locator("tr.chosen").get_attribute("data-speaker") == name
        assert "closed" not in (other.locator("#people").get_attribute("class") or "")
        assert opened.said == []


def test_a_legend_shows_one_line_alone(browser: Any, report: Path) -> None:
    dimmed = "() => [...document.querySelectorAll('#figure-det .role-mark path')].map(p => p.style.opacity)"
    with Opened(browser, report) as opened:
        page = opened.page
        entry = page.locator("#figure-det .role-legend .role-scope text").nth(1)
        entry.click()
        before = page.evaluate(dimmed)
        assert before.count("") == 1  # the line of that attacker
        assert before.count("0.08") >= 3
        entry.click()
        assert set(page.evaluate(dimmed)) == {""}


def test_what_can_not_be_relied_on_is_not_green(run: Path) -> None:
    results = read_results(run)
    low = {name: replace(criterion, level="low") for name, criterion in results.criteria.items()}
    for is_reliable in (True, False):
        verdict = replace(results.verdict, level="low", trustworthy=is_reliable)
        text = render(replace(reported(run), results=replace(results, criteria=low, verdict=verdict)), Options())
        decision = text[text.index('id="decision"') : text.index('id="sign"')]
        assert ('class="chip low"' in decision) is is_reliable


def test_every_figure_and_criterion_has_a_link(browser: Any, report: Path) -> None:
    with Opened(browser, report, unfold=False) as opened:
        page = opened.page
        page.click("table.criteria a:has-text('Linking')")
        page.wait_for_function("() => !document.getElementById('linking').classList.contains('closed')")
        links = page.locator("a.permalink").evaluate_all("all => all.map(a => a.hash.slice(1))")
        assert len(links) >= 5
        assert all(page.locator(f"[id='{link}']").count() == 1 for link in links)


def test_the_matrix_gives_a_row_a_pair(browser: Any, report: Path, run: Path, tmp_path: Path) -> None:
    write_figures(run, tmp_path / "figures", formats=())
    with Opened(browser, report) as opened:
        text = opened.page.evaluate("window.veilmeterCsv('figure-matrix')")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 4 * 14 * 14
    assert {row["quadrant"] for row in rows} == {
        f"{one} with {other}" for one in ("original", "anonymized") for other in ("original", "anonymized")
    }
    written = list(csv.DictReader(io.StringIO((tmp_path / "figures" / "matrix.csv").read_text())))
    assert [(r["quadrant"], float(r["similarity"])) for r in written] == [
        (r["quadrant"], float(r["similarity"])) for r in rows
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_the_dark(any_browser: Any, report: Path, scheme: str) -> None:
    with Opened(any_browser, report, viewport={"width": 390, "height": 844}, color_scheme=scheme) as opened:
        page = opened.page
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        colors = page.evaluate(
            "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        )
        assert colors[0] != colors[1]
        ink = [int(part) for part in colors[0][4:-1].split(",")]
        assert (sum(ink) > 380) == (scheme == "dark")
        # Figures are drawn for the width there is, not made so small that nobody can read them.
        assert min(scales_of_figures(page)) > 0.85


def scales_of_figures(page: Any) -> list[float]:
    script = "s => s.getBoundingClientRect().width / s.viewBox.baseVal.width"
    found: list[float] = page.evaluate(f"[...document.querySelectorAll('.chart svg')].map({script})")
    return found


@pytest.mark.parametrize("width", [320, 700, 1200])
def test_figures_fit_by_construction(any_browser: Any, report: Path, width: int) -> None:
    with Opened(any_browser, report, viewport={"width": width, "height": 900}) as opened:
        assert min(scales_of_figures(opened.page)) > 0.99
        # Nothing of a figure's text is cut off at its edges.
        cut = opened.page.evaluate(
            """[...document.querySelectorAll('.chart svg')].flatMap(svg => {
                const frame = svg.getBoundingClientRect();
                return [...svg.querySelectorAll('text')].filter(t => t.textContent.trim()).map(t => t.getBoundingClientRect())
                    .filter(box => box.left < frame.left - 1 || box.right > frame.right + 1).length; })"""
        )
        assert cut
        assert max(cut) == 0


def test_choosing_dark_needs_no_second_drawing_and_paper_is_light(browser: Any, report: Path) -> None:
    def inks(page: Any) -> list[str]:
        script = """[...document.querySelectorAll('.chart')].map(c => getComputedStyle(
            [...c.querySelectorAll('text')].find(t => t.getAttribute('fill') === 'var(--ink)')).fill)"""
        found: list[str] = page.evaluate(script)
        return found

    with Opened(browser, report, color_scheme="light") as opened:
        page = opened.page
        page.evaluate("document.querySelectorAll('.chart svg').forEach(s => { s.dataset.first = 'yes'; })")
        assert set(inks(page)) == {"rgb(29, 37, 48)"}
        page.click("#theme")
        assert set(inks(page)) == {"rgb(228, 233, 239)"}
        assert page.locator(".chart svg:not([data-first])").count() == 0
        page.emulate_media(media="print", color_scheme="dark")
        assert set(inks(page)) == {"rgb(0, 0, 0)"}
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_page_answers_before_all_figures_are_drawn(browser: Any, report: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.add_init_script(
        "document.addEventListener('DOMContentLoaded', () => {"
        " window.atFirst = document.querySelectorAll('.chart svg').length; });"
    )
    page.goto(report.as_uri())
    assert page.evaluate("window.atFirst") == 0
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    assert page.locator(".chart svg").count() == page.locator(".chart").count()
    page.close()


def test_print_cuts_no_figure(any_browser: Any, report: Path) -> None:
    with Opened(any_browser, report) as opened:
        opened.page.emulate_media(media="print")
        widths = opened.page.evaluate(
            "[...document.querySelectorAll('figure:not(.dots)')].map(f => [f.clientWidth, f.querySelector('svg').getBoundingClientRect().width])"
        )
        assert all(drawn <= room + 1 for room, drawn in widths)
        titles = opened.page.locator(".fold h2 button")
        assert titles.count() > 3
        assert all(title.is_visible() for title in titles.all())
        printed = opened.page.pdf(format="A4")
        assert printed[:5] == b"%PDF-"
        assert opened.page.evaluate(
            "[...document.querySelectorAll('figure:not(.dots)')].every(f => getComputedStyle(f).breakInside === 'avoid')"
        )
        # A4 less its margins is 688 pixels wide: no table may stick out.
        opened.page.set_viewport_size({"width": 688, "height": 1000})
        opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert opened.page.evaluate("document.querySelector('details.print').open")
        wide = opened.page.evaluate("[...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().right)")
        assert max(wide) <= 689


def test_several_systems_side_by_side(browser: Any, run: Path, make_run: Any, tmp_path: Path) -> None:
    from veilmeter.report.compare import write_comparison

    other = make_run([f"speaker{number:02d}" for number in range(14)], seed=3)
    path = write_comparison([run, other], tmp_path / "compare.html", resamples=20)
    for width in (1200, 390):
        with Opened(browser, path, viewport={"width": width, "height": 900}) as opened:
            page = opened.page
            assert opened.said == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # A row's name takes at most a few lines; "anywhere" once broke it letter by letter.
            heads = page.locator("#differences th[scope=row]")
            assert heads.count() > 5
            assert all(head.bounding_box()["width"] >= 140 for head in heads.all()[:10])
            assert max(head.bounding_box()["height"] for head in heads.all()[:10]) < 130


@pytest.mark.parametrize("show_ids", [False, True])
def test_hostile_ids_are_text_and_nothing_else(browser: Any, hostile_run: Path, tmp_path: Path, show_ids: bool) -> None:
    path = write_report(hostile_run, tmp_path / "report.html", show_ids=show_ids)
    text = path.read_text(encoding="utf-8")
    with Opened(browser, path) as opened:
        assert opened.said == []
        names = opened.page.locator("#people-table tbody td:first-child").all_text_contents()
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1200
        opened.page.locator("#people-table tbody tr").first.click()
        assert opened.page.locator("#people-table tr.chosen").count() == 1
    if show_ids:
        assert set(HOSTILE) & set(names)
        assert "<script>alert(1)</script>" in names
    else:
        assert all(name.startswith("P") for name in names)
        for name in HOSTILE:
            assert name not in text


def test_sound_plays_where_it_was_allowed(browser: Any, tmp_path: Path, run: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    import numpy as np

    from veilmeter.data.corpus import Utterance
    from veilmeter.report.html import Options, render
    from veilmeter.report.public import public, reported
    from veilmeter.report.sound import PlayedRecording, data_uri

    tone = tmp_path / "tone.wav"
    soundfile.write(tone, 0.1 * np.sin(np.arange(16_000) / 10), 16_000)
    shown, names = public(reported(run), b"k" * 32)
    uri = data_uri(Utterance("tone", "a", tone))
    first, second = (person.speaker for person in shown.results.people.persons[:2])
    played = PlayedRecording(uri, uri, named=second, named_sound=uri)
    path = tmp_path / "sound.html"
    path.write_text(render(shown, Options(recordings={first: [played]})), encoding="utf-8")
    with Opened(browser, path) as opened:
        page = opened.page
        # The person with the highest risk can be heard at once, and a sign shows who else can be.
        assert page.locator("#chosen-dot audio").count() == 3
        assert f"the strongest attacker named {second} (wrong)" in page.locator("#chosen-dot").inner_text()
        marked = page.locator(".strip .sound")
        assert [marked.count(), marked.get_attribute("data-person")] == [1, first]
        assert "♪" in marked.evaluate("dot => getComputedStyle(dot, '::after').content")
        # Who switches from before to after goes on at the same place; another recording begins at its start.
        places = page.locator("#chosen-dot").evaluate(
            """async box => {
                const [before, after, named] = box.querySelectorAll("audio");
                await before.play();
                while (before.currentTime < 0.45) await new Promise(r => setTimeout(r, 20));
                before.dispatchEvent(new Event("timeupdate"));
                await after.play(); const kept = after.currentTime; await named.play();
                return [kept > 0.3, named.currentTime < 0.1, before.paused, after.paused];
            }"""
        )
        assert places == [True, True, True, True]
        page.locator("#people-table tbody tr").first.click()
        sounds = page.locator("#chosen audio")
        assert sounds.count() == 3
        played = sounds.first.evaluate(
            "async a => { await a.play(); await new Promise(r => setTimeout(r, 400)); return [a.duration, a.currentTime, a.error]; }"
        )
        assert played[0] == pytest.approx(1.0, abs=0.2)
        assert played[1] > 0
        assert played[2] is None
        # Such a page says at the top what it holds, and does not claim to name nobody.
        assert "contains recordings" in page.locator("#decision .banner").first.inner_text()
        assert "names nobody" not in page.locator("footer").inner_text()
    assert first in names.values()


def test_the_decision_is_one_screen_and_one_printed_page(
    any_browser: Any, report: Path, request: pytest.FixtureRequest
) -> None:
    """Verdict, people and criteria are seen at once, with fonts of the usual width nearly all the rest; paper holds all of
    it. No text is smaller than 14 pixels."""
    wide = request.node.callspec.params["any_browser"] == "dejavu"
    with Opened(any_browser, report, unfold=False, viewport={"width": 1280, "height": 900}) as opened:
        page = opened.page
        box = page.locator("#decision").bounding_box()
        assert box["y"] + box["height"] <= (1300 if wide else 1120)
        criteria = page.locator("#decision table.criteria").bounding_box()
        assert criteria["y"] + criteria["height"] <= 700
        sizes = page.evaluate(
            "[...document.querySelectorAll('#decision *')].filter(e => !e.closest('.visually-hidden') && "
            "[...e.childNodes].some(c => c.nodeType === 3 && c.textContent.trim()))"
            ".map(e => parseFloat(getComputedStyle(e).fontSize))"
        )
        assert min(sizes) >= 14
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 688, "height": 1000})  # A4 between its margins
        assert page.locator("#decision").bounding_box()["height"] <= 1024  # 271 mm
