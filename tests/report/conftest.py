"""Runs to report on: made by the real assessment from simulated embeddings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.assessment import assess
from veilmeter.data.embeddings import Embeddings

HOSTILE = (
    "<script>alert(1)</script>",
    "../../x",
    "n" * 300,
    "\U0001f600\U0001f680",
    "\u202e\u0645\u062a\u0643\u0644\u0645",
    "=cmd|' /C calc'!A0",
    '"><img src=x onerror=alert(1)>',
    "a\x1b[31mred",
)


def simulated(
    names: list[str], *, utterances: int = 6, dimension: int = 24, kept: float = 0.6, seed: int = 0
) -> list[Embeddings]:
    """Original and protected vectors: a voice each, of which a share is kept."""
    rng = np.random.default_rng(seed)
    voices = rng.standard_normal((len(names), dimension))
    other = rng.standard_normal((len(names), dimension))
    ids = [f"u{number}" for number in range(len(names) * utterances)]
    speakers = [name for name in names for _ in range(utterances)]
    genders = ["fm"[number % 2] for number in range(len(names)) for _ in range(utterances)]
    sessions = [f"s{number % 2}" for number in range(len(ids))]
    made = []
    for base in (voices, kept * voices + (1 - kept) * other):
        vectors = np.repeat(base, utterances, 0) + 0.7 * rng.standard_normal((len(ids), dimension))
        made.append(Embeddings(vectors, ids, speakers, {"gender": genders, "session": sessions}))
    return made


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def make(names: list[str], **options: Any) -> Path:
        folder = tmp_path_factory.mktemp("run")
        original, protected = simulated(names)
        chosen = {
            "lengths": [1, 3],
            "resamples": 50,
            "measures": ["scores", "similarity", "linkability", "singling-out"],
        }
        assess(original, protected, out=folder, title="Simulated voices", **{**chosen, **options})
        return folder

    return make


@pytest.fixture(scope="session")
def run(make_run: Callable[..., Path]) -> Path:
    return make_run([f"speaker{number:02d}" for number in range(14)])


@pytest.fixture(scope="session")
def hostile_run(make_run: Callable[..., Path]) -> Path:
    return make_run([*HOSTILE, "plain1", "plain2", "plain3", "plain4"])


FONTS = {"dejavu": "DejaVu*.ttf", "liberation": "Liberation*.ttf"}  # tools/install-browser brings both


def only_these_fonts(folder: Path, pattern: str) -> Path:
    """A fontconfig file that knows no other fonts: text is wider with some than with others."""
    there = sorted(Path("/usr/share/fonts").rglob(pattern))
    if not there:
        pytest.skip(f"there are no fonts {pattern} on this machine")
    fonts = folder / "fonts"
    fonts.mkdir()
    for font in there:
        (fonts / font.name).symlink_to(font)
    file = folder / "fonts.conf"
    file.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
        f"<fontconfig><dir>{fonts}</dir><cachedir>{folder / 'cache'}</cachedir></fontconfig>"
    )
    return file


@pytest.fixture(scope="session")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """`launched(fonts)`: the system's Chromium, which `make test` installs, with one set of fonts; started once."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    started: dict[str, Any] = {}
    with sync_api.sync_playwright() as playwright:

        def launch(fonts: str) -> Any:
            if fonts not in started:
                file = only_these_fonts(tmp_path_factory.mktemp(fonts), FONTS[fonts])
                started[fonts] = playwright.chromium.launch(
                    executable_path=path,
                    env={**os.environ, "FONTCONFIG_FILE": str(file)},
                    args=[
                        "--no-sandbox",
                        "--disable-gpu",
                        "--disable-background-networking",
                        "--autoplay-policy=no-user-gesture-required",
                    ],
                )
            return started[fonts]

        yield launch
        for browser in started.values():
            browser.close()


@pytest.fixture
def browser(launched: Callable[[str], Any]) -> Any:
    return launched("dejavu")


@pytest.fixture(params=list(FONTS))
def any_browser(request: pytest.FixtureRequest, launched: Callable[[str], Any]) -> Any:
    """For what depends on how wide letters are: the same with each set of fonts."""
    return launched(request.param)


class Opened:
    """A page with everything it said and asked for."""

    def __init__(self, browser: Any, path: Path, *, unfold: bool = True, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)
        if unfold and self.page.locator("#unfold").count():
            self.page.click("#unfold")

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def serious_violations(axe: Any, page: Any) -> dict[str, list[str]]:
    """What axe-core calls serious or critical on a page, by rule, with the first elements."""
    return {
        violation["id"]: [node["html"][:160] for node in violation["nodes"][:3]]
        for violation in axe.Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
    }
