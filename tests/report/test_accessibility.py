"""Pages that everybody can read: axe-core finds nothing serious on any page, in light and in dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import Opened, serious_violations

from veilmeter.report import write_report
from veilmeter.report.compare import write_comparison

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        "report": write_report(run, folder / "report.html", threshold="9%"),
        "annex": write_report(run, folder / "annex.html", template="annex"),
        "comparison": write_comparison([run, run], folder / "comparison.html", resamples=20),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["report", "annex", "comparison"])
def test_axe_finds_nothing_serious(browser: Any, pages: dict[str, Path], kind: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed: make env")
    with Opened(browser, pages[kind], color_scheme=scheme, bypass_csp=True) as opened:
        assert serious_violations(axe, opened.page) == {}


def test_axe_would_find_pale_text(browser: Any, tmp_path: Path) -> None:
    """The test above can fail."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed: make env")
    page = tmp_path / "pale.html"
    page.write_text(
        '<html lang="en"><title>p</title><main><p style="color:#ddd;background:#fff">pale</p></main></html>'
    )
    context = browser.new_context(bypass_csp=True)
    opened = context.new_page()
    opened.goto(page.as_uri())
    assert "color-contrast" in {v["id"] for v in axe.Axe().run(opened).response["violations"]}
    context.close()
