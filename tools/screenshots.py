"""Screenshots of a report in the system's Chromium: `python tools/screenshots.py REPORT OUT [NAME]`.

Writes NAME.png (the top of the page, for the README), NAME-dark.png, NAME-phone.png, NAME-page.png (all of it) and
NAME.pdf into OUT.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright


def main(report: Path, out: Path, name: str = "report") -> None:
    browser_path = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
    if browser_path is None:
        raise SystemExit("There is no Chromium on this machine: run `make browser`.")
    out.mkdir(parents=True, exist_ok=True)
    shots = {
        name: {"viewport": {"width": 1100, "height": 1000}},
        f"{name}-dark": {"viewport": {"width": 1100, "height": 1000}, "color_scheme": "dark"},
        f"{name}-phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        for shot, options in shots.items():
            page = browser.new_context(**options).new_page()
            page.goto(report.resolve().as_uri())
            page.wait_for_selector("html[data-ready]", timeout=60_000)
            page.screenshot(path=out / f"{shot}.png", timeout=180_000)
            if shot == name:
                page.screenshot(path=out / f"{name}-page.png", full_page=True, timeout=180_000)
                page.pdf(path=out / f"{name}.pdf", format="A4", print_background=True)
        browser.close()
    print(out)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
