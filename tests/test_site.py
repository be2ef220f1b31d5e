"""The documentation's site: it builds without a broken link, has every page and fetches nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

pytest.importorskip("material")
pytest.importorskip("mkdocstrings")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    words = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--strict",
        "--config-file",
        str(ROOT / "mkdocs.yml"),
        "-d",
        str(out),
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return out


def test_every_page_is_there_and_in_the_list(site: Path) -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert {page.removesuffix("md") + "html" for page in pages} <= {
        path.relative_to(site).as_posix() for path in site.rglob("*.html")
    }
    listed = set(re.findall(r"([\w/-]+\.md)", (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]))
    assert listed == pages


def test_the_reference_is_filled_from_docstrings(site: Path) -> None:
    text = (site / "reference" / "docstrings.html").read_text(encoding="utf-8")
    for name in re.findall(
        r"^::: veilmeter\.([\w.]+)$", (DOCS / "reference" / "docstrings.md").read_text(), re.MULTILINE
    ):
        assert f'id="veilmeter.{name}"' in text


def test_nothing_is_fetched_when_it_is_viewed(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"?(?:https?:)?//", text) == []
        assert re.findall(r"<link[^>]*rel=\"?stylesheet[^>]*href=\"?(?:https?:)?//", text) == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?://", sheet.read_text(encoding="utf-8"))
