"""LaTeX that compiles with any engine: escaped text, labels and numbers in math mode, tables."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from veilmeter.core.text import clean

NEEDS = "% needs \\usepackage{booktabs}"

_SPECIAL = {c: "\\" + c for c in "&%$#_{}"} | {
    "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "\\": "\\textbackslash{}", "<": "$<$", ">": "$>$",
    "|": "$|$", "[": "{[}", "*": "{*}", '"': "''",
    "–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "…": "\\dots{}",
    "·": "$\\cdot$", "†": "$\\dagger$",
    "×": "$\\times$", "−": "$-$", "±": "$\\pm$", "≤": "$\\le$", "≥": "$\\ge$", "≈": "$\\approx$", "→": "$\\to$",
    "←": "$\\leftarrow$", "↑": "$\\uparrow$", "↓": "$\\downarrow$", "∞": "$\\infty$", "ρ": "$\\rho$", "π": "$\\pi$",
    "α": "$\\alpha$", "θ": "$\\theta$", "²": "$^2$", "½": "$\\frac{1}{2}$", "ß": "\\ss{}", "ø": "\\o{}", "Ø": "\\O{}",
    "æ": "\\ae{}", "Æ": "\\AE{}", "œ": "\\oe{}", "Œ": "\\OE{}", "ł": "\\l{}", "Ł": "\\L{}",
    "å": "\\aa{}", "Å": "\\AA{}", "ı": "\\i{}", "\u00a0": "~",
}  # fmt: skip
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Escaped for LaTeX; what no engine knows without further packages is a question mark.

    >>> latex_text("50 % of D_sys"), latex_text("Noé → 語")
    ('50 \\\\% of D\\\\_sys', "No\\\\'{e} $\\\\to$ ?")
    """
    return "".join(_character(c) for c in clean(unicodedata.normalize("NFC", text)))


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character.isascii():
        return character
    base, *marks = list(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and base.isascii() and base.isalpha() and marks[0] in _ACCENTS:
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    return "?"


_SUBSCRIPT = re.compile(r"\b([A-Za-z])_([A-Za-z]+)\b")
_TAG = re.compile(r"[0A-F]|\(tag [0A-F]\)")
_ROUGH = re.compile(r"(-?[0-9.]+)e([+-]?)0*([0-9]+)")


def latex_label(label: str) -> str:
    """The words for a measure, with its symbols in math mode. For labels only: a name such as x_anon is not a symbol.

    >>> latex_label("D_ECE"), latex_label("l_w, L = 3")
    ('$D_{\\\\mathrm{ECE}}$', '$l_{w}$, $L = 3$')
    """
    parts = re.split(r"(\b[A-Za-z]_[A-Za-z]+\b|\bL = [0-9]+)", label)
    return "".join(_symbol(part) if number % 2 else latex_text(part) for number, part in enumerate(parts))


def _symbol(text: str) -> str:
    symbol = _SUBSCRIPT.fullmatch(text)
    if symbol is None:
        return f"${text}$"
    letter, below = symbol.groups()
    below = below if len(below) == 1 else f"\\mathrm{{{below}}}"
    return f"${letter}_{{{below}}}$"


def latex_number(text: str, *, bold: bool = False, mark: str = "") -> str:
    """A number, or an interval, as `Estimate` writes it, in math mode; `mark` is put above it.

    >>> latex_number("-1.38", bold=True, mark="*"), latex_number("[-inf, 3.2e-05]"), latex_number("30.9 %")
    ('${\\\\mathbf{-1.38}}^{*}$', '$[-\\\\infty, 3.2\\\\times 10^{-5}]$', '$30.9\\\\,\\\\%$')
    >>> latex_number("2.01 C"), latex_number("3.8e-05 %")
    ('$2.01$ (tag C)', '${<}0.1\\\\,\\\\%$')
    """
    if text.strip() in ("", "-", "–"):
        return "--" if text.strip() else ""
    number, _, unit = text.partition(" ") if not text.startswith("[") else (text, "", "")
    unit = unit.strip()
    if _TAG.fullmatch(unit):  # of the strongest evidence: a letter, not a unit
        return f"{latex_number(number, bold=bold, mark=mark)} (tag {unit.strip('()').removeprefix('tag ')})"
    if unit == "%" and _ROUGH.fullmatch(number) and abs(float(number)) < 0.1:
        number = "{<}0.1"
    math = _ROUGH.sub(lambda m: f"{m[1]}\\times 10^{{{m[2].replace('+', '')}{m[3]}}}", number)
    math = math.replace("inf", "\\infty")
    math = f"\\mathbf{{{math}}}" if bold else math
    math = f"{{{math}}}^{{{mark}}}" if mark else math  # in braces, as it may have an exponent of its own
    words = "" if not unit else "\\,\\%" if unit == "%" else f"\\,\\mathrm{{{latex_text(unit)}}}"
    return f"${math}{words}$"


def latex_table(
    columns: str, head: Sequence[str], rows: Iterable[Sequence[str] | None], remarks: Sequence[str] = ()
) -> str:
    """A table with booktabs' rules; cells are LaTeX already, None is a rule, remarks are comments above it."""
    lines = [NEEDS, *(f"% {' '.join(latex_text(remark).split())}" for remark in remarks)]
    lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", " & ".join(head) + " \\\\", "\\midrule"]
    lines += ["\\midrule" if row is None else " & ".join(row) + " \\\\" for row in rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"
