"""The demo, from synthetic voices to a page in a browser: drawn, quiet, labeled synthetic, and it can be heard."""

from __future__ import annotations

from typing import Any

import pytest
from tests.report.conftest import Opened

from veilmeter.core.errors import VeilmeterError
from veilmeter.demo.story import NOTICE, Told, tell

pytestmark = [pytest.mark.browser, pytest.mark.slow]
pytest.importorskip("espeakng_loader")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    said: list[str] = []
    try:
        found = tell(tmp_path_factory.mktemp("demo"), fast=True, jobs=1, say=said.append)
    except VeilmeterError as error:
        if "weights" in str(error):
            pytest.skip(f"the extractor's weights can't be had here: {error}")
        raise
    assert any("synthetic voices" in line for line in said)
    return found


def test_the_page_is_quiet_labelled_and_sounds(told: Told, browser: Any) -> None:
    with Opened(browser, told.report) as opened:
        page = opened.page
        assert opened.said == []
        assert [url for url in opened.asked if not url.startswith(("data:", "file:"))] == []
        assert page.locator("#decision .notice").inner_text() == NOTICE
        assert "synthetic voices" in page.locator("h1").inner_text()
        page.locator("#people-table tbody tr").first.click()
        sounds = page.locator("#chosen audio")
        assert sounds.count() == 6  # two recordings: before, after, and one of whom the attacker named
        played = sounds.first.evaluate(
            "async a => { await a.play(); await new Promise(r => setTimeout(r, 400)); return [a.duration, a.error]; }"
        )
        assert played[0] > 1
        assert played[1] is None


def test_it_can_be_told_again_at_once(told: Told) -> None:
    before = (told.runs["b2"] / "results.json").read_bytes()
    again = tell(told.report.parents[2], fast=True, jobs=1, say=lambda _text: None)
    assert (again.runs["b2"] / "results.json").read_bytes() == before
    assert list(again.headlines.values()) == list(told.headlines.values())
