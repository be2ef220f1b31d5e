"""The report in other forms: Markdown, LaTeX, JSON, and PDF printed by a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilmeter.core.errors import VeilmeterError
from veilmeter.core.text import clean, latex_text, markdown_text
from veilmeter.report import view
from veilmeter.report.annex import annex
from veilmeter.report.texts import CRITERIA

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def markdown(results: Mapping[str, Any], threshold: float | None = None) -> str:
    """The verdict, the tables and the annex as Markdown."""
    limit = view.threshold_sentence(results, threshold)
    verdict = results["verdict"]
    lines = [
        f"# {markdown_text(results.get('title', 'Assessment'))}",
        "",
        f"**{markdown_text(verdict.get('headline', ''))}**",
        "",
    ]
    banner = view.banner(results)
    lines += [f"> **{markdown_text(banner['title'])}**"]
    lines += [part for line in banner["lines"] for part in (">", f"> {markdown_text(line)}")] + [""]
    lines += [f"{markdown_text(sentence)}\n" for sentence in view.sentences(results)]
    lines += [markdown_text(limit["sentence"]), ""] if limit else []
    lines += ["| criterion | worst case | 95 % interval | chance | attacker | meaning |", "|---|---:|---|---:|---|---|"]
    for card in view.cards(results):
        cells = [card["title"], card["value"], card["interval"], card["null"], card["attacker"], card["sentence"]]
        lines.append("| " + " | ".join(markdown_text(cell) for cell in cells) + " |")
    lines += ["", "## Trust checks", ""]
    signs = {"passed": "passed", "failed": "**failed**", "unknown": "not applicable"}
    lines += [
        f"- {signs[check['state']]}: {markdown_text(check['title'])}. "
        f"{markdown_text((check['sentence'] + ' ' + check['meaning']).strip())}"
        for check in view.trust(results)
    ]
    lines += ["", "## Not tested", "", *(f"- {markdown_text(item)}" for item in view.not_tested(results))]
    for section in ("linking", "singling_out", "disclosure", "similarity", "inversion", "inference", "verification"):
        rows = view.section_rows(results, section)
        if rows:
            title = CRITERIA.get(
                section, {"similarity": "Likeness", "verification": "Verification"}.get(section, section)
            )
            lines += ["", f"## {title}", "", "| attacker | measure | value | 95 % interval | chance | method |"]
            lines += ["|---|---|---:|---|---:|---|"]
            lines += ["| " + " | ".join(markdown_text(cell) for cell in row.values()) + " |" for row in rows]
    for heading, items in annex(results, limit):
        lines += ["", f"## {heading}", "", *(f"- {markdown_text(item)}" for item in items)]
    return "\n".join(lines) + "\n"


def latex(results: Mapping[str, Any]) -> str:
    """The worst cases and all attackers' figures as two tables for a paper."""
    banner = view.banner(results)
    doubted = [] if banner["good"] else [banner["title"], *banner["lines"]]
    lines = ["% needs \\usepackage{booktabs}", *(f"% {' '.join(latex_text(line).split())}" for line in doubted)]
    lines += ["\\begin{tabular}{llrlrl}", "\\toprule"]
    lines += ["criterion & attacker & worst case & 95\\,\\% interval & chance & measure \\\\", "\\midrule"]
    for card in view.cards(results):
        cells = [card["title"], card["attacker"], card["value"], card["interval"], card["null"], card["measure"]]
        lines.append(" & ".join(latex_text(cell) for cell in cells) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", "", "\\begin{tabular}{llrlr}", "\\toprule"]
    lines += ["attacker & measure & value & 95\\,\\% interval & chance \\\\"]
    for section in ("linking", "singling_out", "disclosure", "similarity", "inversion", "inference", "verification"):
        rows = view.section_rows(results, section)
        lines += ["\\midrule"] if rows else []
        for row in rows:
            cells = [row["attacker"], row["label"], row["value"], row["interval"], row["null"]]
            lines.append(" & ".join(latex_text(cell) for cell in cells) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def pdf(page: str) -> bytes:
    """The page printed by a headless browser found on this machine."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise VeilmeterError(
            "a PDF is printed by a browser, and none was found",
            fix="install Chromium, or open the HTML report and print it to PDF",
        )
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        source, target = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page, encoding="utf-8")
        command = [browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        command += [
            "--disable-sync",
            "--disable-component-update",
            "--disable-extensions",
            f"--user-data-dir={folder}/p",
        ]
        command += ["--virtual-time-budget=30000", "--no-pdf-header-footer", f"--print-to-pdf={target}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses to run as root with it
        try:
            ran = subprocess.run([*command, source.as_uri()], capture_output=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            raise VeilmeterError("the browser did not finish printing", fix="print the HTML report by hand") from None
        if not target.is_file():
            last = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
            raise VeilmeterError(f"the browser did not print: {clean(last[0])}", fix="print the HTML report by hand")
        return target.read_bytes()
