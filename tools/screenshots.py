"""Screenshots for the documentation, in the system's Chromium: `python tools/screenshots.py OUT RUN [RUN ...]`.

Writes the reports of the runs, compares them, and leaves decision.png, dark.png, phone.png, comparison.png and, where
pdftoppm is installed, pdf.png and annex.png (the first two pages on paper) in OUT. The first run is the one that is
shown alone. Colors are reduced where Pillow is installed: files stay small.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from veilmeter.report import write_report
from veilmeter.report.compare import write_comparison

WIDE = {"width": 1280, "height": 900}
TALL = {"width": 1280, "height": 1500}
PHONE = {"width": 390, "height": 1500}
PAGES = ("pdf", "annex")
COLORS = 256


def main(out: Path, runs: list[Path]) -> None:
    browser_path = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
    if browser_path is None:
        raise SystemExit("There is no Chromium on this machine: run `make browser`.")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        report = write_report(runs[0], folder / "report.html")
        shots = {
            "decision": (report, {"viewport": WIDE}),
            "dark": (report, {"viewport": WIDE, "color_scheme": "dark"}),
            "phone": (report, {"viewport": PHONE}),
        }
        if len(runs) > 1:
            shots["comparison"] = (write_comparison(runs, folder / "comparison.html"), {"viewport": TALL})
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        for shot, (page_file, options) in shots.items():
            page = browser.new_context(**options).new_page()
            page.goto(page_file.resolve().as_uri())
            page.wait_for_selector("html[data-ready]", timeout=120_000)
            page.screenshot(path=out / f"{shot}.png", timeout=180_000)
        browser.close()
        if shutil.which("pdftoppm"):
            paper = write_report(runs[0], folder / "report.pdf", form="pdf")
            for number, shot in enumerate(PAGES, 1):
                pages = ["-f", str(number), "-l", str(number), "-singlefile"]
                subprocess.run(["pdftoppm", "-r", "80", *pages, "-png", str(paper), str(out / shot)], check=True)
    for file in out.glob("*.png"):
        reduce_colors(file)
    print(out)


def reduce_colors(file: Path) -> None:
    """A page has few colors: a palette makes a third of the bytes."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(file) as image:
        reduced = image.convert("RGB").quantize(COLORS)
    reduced.save(file, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), [Path(run) for run in sys.argv[2:]])
