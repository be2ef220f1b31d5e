"""A page runs no script but its own, whatever folders are called; it can be clicked through, and read by everybody."""

from __future__ import annotations

import re
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.conftest import Opened

from veilmeter.report import write_report
from veilmeter.report.compare import write_comparison
from veilmeter.report.html import safe_link

SCHEMES = ("javascript", "JaVaScRiPt", "data", "vbscript", "file", "blob")


@given(st.text(max_size=60) | st.builds("{}:{}".format, st.sampled_from(SCHEMES), st.text(max_size=20)))
def test_no_address_becomes_script(address: str) -> None:
    made = safe_link(address)
    scheme = re.match(r"\s*([a-zA-Z][\w+.-]*):", made)
    assert scheme is None or scheme.group(1).lower() in ("http", "https")
    assert not made.startswith(("//", "\\"))
    assert not set(made) & set("<>\"' \n\t")


def test_every_link_of_the_templates_goes_through_one_function() -> None:
    folder = resources.files("veilmeter.report").joinpath("page")
    links = [
        link
        for file in folder.iterdir()
        if file.name.endswith(".j2")
        for link in re.findall(r'(?:href|src|action)="([^"]*)"', file.read_text())
    ]
    assert len(links) > 3
    assert [link for link in links if "|link }}" not in link and link != "data:,"] == []
    handlers = [file.name for file in folder.iterdir() if re.search(r"\son\w+=", file.read_text(encoding="utf-8"))]
    assert handlers == []


@pytest.fixture(scope="module")
def hostile_folder(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one in a folder with a name that would be a script."""
    root = tmp_path_factory.mktemp("systems")
    for name in ("javascript:alert(1)", "b"):
        shutil.copytree(run, root / name)
        write_report(root / name)
    return root


@pytest.mark.browser
def test_clicking_every_link_runs_nothing(browser: Any, hostile_folder: Path) -> None:
    runs = [hostile_folder / "javascript:alert(1)", hostile_folder / "b"]
    path = write_comparison(runs, hostile_folder / "compare.html", resamples=10)
    with Opened(browser, path) as opened:
        page = opened.page
        inside = page.locator("#decision a:is(.number, .permalink)")
        targets = inside.evaluate_all("links => links.map(link => link.getAttribute('href'))")
        assert targets
        assert all(target.startswith(("#row-", "#figure-")) for target in targets)
        for number in range(inside.count()):
            inside.nth(number).click()
            page.keyboard.press("Escape")
        reports = page.locator("#decision a:not(.number, .permalink)")
        assert reports.count() == 2
        for number in range(2):
            reports.nth(number).click()
            page.wait_for_selector("#people-table", state="attached")
            assert page.locator("h1").count() == 1
            page.go_back()
            page.wait_for_selector("html[data-ready]")
        # A script that somebody managed to put into the page is not run: only those whose hashes are known are.
        page.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s)"
        )
        assert page.evaluate("window.broken") is None
        assert [text for text in opened.said if "Content Security Policy" not in text] == []
        assert opened.said


@pytest.mark.browser
def test_pages_that_lie_in_one_file_open_from_it(browser: Any, hostile_folder: Path) -> None:
    runs = [hostile_folder / "javascript:alert(1)", hostile_folder / "b"]
    path = write_comparison(runs, hostile_folder / "sub" / "bundle.html", resamples=10, bundle=True)
    with Opened(browser, path) as opened:
        buttons = opened.page.locator("button[data-bundled]")
        assert buttons.count() == 2
        with opened.context.expect_page() as popup:
            buttons.first.click()
        inner = popup.value
        inner.wait_for_selector("html[data-ready]", timeout=60_000)
        assert inner.locator("#decision h1").inner_text() == "javascript:alert(1)"
        assert inner.locator(".chart svg").count() > 4
        assert opened.said == []


@pytest.mark.browser
def test_the_calculator_agrees_with_the_sentence(browser: Any, run: Path, tmp_path: Path) -> None:
    path = write_report(run, tmp_path / "r.html", release_size=500, candidates=10)
    with Opened(browser, path) as opened:
        page = opened.page
        said = page.locator("#release-answer").inner_text()
        assert "In a release of 500 people" in said
        page.fill("#release-people", "500")  # nothing changes: the script computes the same
        page.locator("#release-people").dispatch_event("input")
        assert page.locator("#release-answer").inner_text() == said
        page.fill("#release-candidates", "100000")
        assert "neither measured nor extrapolated" in page.locator("#release-basis").inner_text()
        page.select_option("#release-attacker", "ignorant")
        assert page.locator("#release-answer").inner_text() != said


@pytest.mark.browser
def test_sections_fold_and_links_open_them(browser: Any, run: Path, tmp_path: Path) -> None:
    path = write_report(run, tmp_path / "r.html")
    with Opened(browser, path, unfold=False) as opened:
        page = opened.page
        body = page.locator("#body-people")
        assert not body.is_visible()
        page.locator("nav.bar a", has_text="People").click()
        body.wait_for(state="visible")  # the page opens it once its address has changed
        page.locator("#people .folder").press("Enter")
        assert not body.is_visible()
        page.emulate_media(media="print")
        assert body.is_visible()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Any, run: Path, tmp_path: Path, scheme: str) -> None:
    """WCAG 2: 4.5 to 1 for text. Colors are computed by the browser, over the grounds that lie below."""
    path = write_report(run, tmp_path / "r.html")
    with Opened(browser, path, color_scheme=scheme) as opened:
        poor = opened.page.evaluate(CONTRAST)
        assert poor == []


CONTRAST = """() => {
  const parse = (c) => { const n = c.match(/[\\d.]+/g).map(Number); return c.startsWith('color(srgb') ? [255 * n[0], 255 * n[1], 255 * n[2], n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]).concat(1);
  const ground = (node) => { const layers = []; for (let n = node; n; n = n.parentElement) layers.push(parse(getComputedStyle(n).backgroundColor)); return layers.reverse().reduce((b, t) => over(t, b), [255, 255, 255, 1]); };
  const light = (c) => { const l = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const poor = new Set();
  for (const node of document.querySelectorAll('main *:not(svg *), nav *, footer')) {
    if (![...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim())) continue;
    if (node.closest('.chart') || !node.checkVisibility({ visibilityProperty: true }) || node.closest('.visually-hidden, script')) continue;
    const style = getComputedStyle(node), below = ground(node), ink = over(parse(style.color), below);
    const [a, b] = [light(ink), light(below)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.add(`${node.tagName}.${node.className} ${style.color} ${ratio.toFixed(2)}`);
  }
  return [...poor];
}"""
