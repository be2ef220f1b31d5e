"""Whatever a name or a number holds, its LaTeX is text or mathematics, never a command; the tables compile."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.wording.latex import latex_label, latex_number, latex_table, latex_text

latexwalker = pytest.importorskip("pylatexenc.latexwalker")

NASTY = st.text(st.one_of(st.characters(), st.sampled_from("\\|<>*_`[]()&%$#{}~^=+-@'\"\n\r\t\x1b\x9bÿñßłåé→≥†語")))
COMMANDS = {"textasciitilde", "textasciicircum", "textbackslash", "dots", "cdot", "times", "pm", "le", "ge", "approx",
            "to", "leftarrow", "uparrow", "downarrow", "infty", "rho", "pi", "alpha", "theta", "frac", "ss", "o", "O",
            "ae", "AE", "oe", "OE", "l", "L", "aa", "AA", "i", "u", "r", "H", "v", "c", "dagger"}  # fmt: skip


def parsed(text: str) -> None:
    """Reads it as LaTeX does; unbalanced braces, mathematics or environments are errors."""
    latexwalker.LatexWalker(text, tolerant_parsing=False).get_latex_nodes()


@given(NASTY)
def test_text_is_ascii_runs_no_command_and_parses(text: str) -> None:
    shown = latex_text(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert set(re.findall(r"\\([A-Za-z]+)", shown)) <= COMMANDS
    assert not shown.startswith(("[", "*"))  # behind a row's end they would be read as its options
    parsed(shown)


@given(NASTY)
def test_labels_parse_too(text: str) -> None:
    parsed(latex_label(text))


@given(st.floats(), st.sampled_from(["", " %", " dB", " bit"]))
def test_numbers_are_mathematics(value: float, unit: str) -> None:
    for text in (f"{value:.3g}", f"{value:.1f}{unit}", f"[{value:.2g}, 3.0]"):
        shown = latex_number(text.replace("nan", "-"), bold=True, mark="*")
        assert re.fullmatch(r"\$[^$]*\$|--", shown), text
        assert "e+" not in shown
        parsed(shown)


@pytest.mark.parametrize(
    ("label", "shown"),
    [("D_ECE", r"$D_{\mathrm{ECE}}$"), ("l_w", "$l_{w}$"), ("|D_diag(OO)|", r"$|$$D_{\mathrm{diag}}$(OO)$|$"),
     ("Linkability among 20, L = 3", "Linkability among 20, $L = 3$"), ("TPR at FPR 1 %", r"TPR at FPR 1 \%")],
)  # fmt: skip
def test_symbols_of_measures(label: str, shown: str) -> None:
    assert latex_label(label) == shown


def compiled(text: str, folder: Path) -> None:
    """With TeX where there is one; it must not even warn of a box that is broken."""
    parsed(text)
    engine = shutil.which("pdflatex") or shutil.which("tectonic")
    if engine is None:
        return
    source = folder / "table.tex"
    source.write_text(
        f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{text}\n\\end{{document}}\n",
        encoding="ascii",
    )
    words = [
        engine,
        *(["-interaction=nonstopmode", "-halt-on-error"] if engine.endswith("pdflatex") else []),
        source.name,
    ]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if "booktabs.sty' not found" in done.stdout:  # a TeX without the package that every table needs
        return
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "table.pdf").stat().st_size > 1000


def test_a_table_compiles(tmp_path: Path) -> None:
    names = ["[x]", "*", "a_b & c", "Noé → 語 ≥ 3", "\\input{x}", "ŠčřžŁ", '"quoted"', "100 % #1 ^~{}"]
    rows = [[latex_text(name), latex_label(name), latex_number("-1.2e-07 dB", mark="*")] for name in names]
    text = latex_table("llr", ["system", "label", "number"], [*rows, None, rows[0]], ["a remark\nof two lines & more"])
    compiled(text, tmp_path)
