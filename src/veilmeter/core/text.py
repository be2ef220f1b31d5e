"""Untrusted text: its numbers, and forms safe to show, as terminals, spreadsheets and browsers obey what is in ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_MOST_DIGITS = 18  # what 64 bits hold


def clean(text: str, keep: str = "") -> str:
    """Without control characters, but for those to keep: terminals obey escape sequences.

    >>> clean("a\\x1b[31mb\\nc"), clean("two\\nlines", keep="\\n")
    ('a?[31mb?c', 'two\\nlines')
    """
    return "".join(c if c.isprintable() or c in keep else "?" for c in text)


def duration(seconds: float) -> str:
    """As a person says it.

    >>> duration(42.4), duration(125), duration(7300)
    ('42 s', '2 min 5 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def rough_duration(seconds: float) -> str:
    """As precisely as an estimate deserves.

    >>> rough_duration(0.4), rough_duration(42), rough_duration(125), rough_duration(7300)
    ('1 s', '40 s', '2 min', '2 h')
    """
    if seconds < 10:
        return f"{max(1, round(seconds))} s"
    if seconds < 90:
        return f"{5 * round(seconds / 5)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.2g} h"


def parse_index(text: str) -> int | None:
    """A whole number from 0, such as an offset or an index; None for anything else, and for numbers that no file has.

    >>> parse_index("42"), parse_index("-1"), parse_index("9" * 5000), parse_index("²")
    (42, None, None, None)
    """
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() else None


def csv_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula and no terminal for a command.

    >>> csv_cell("=1+1"), csv_cell("a\\x1b[31m"), csv_cell(-2.5)
    ("'=1+1", 'a?[31m', -2.5)
    """
    if not isinstance(value, str):
        return value
    value = clean(value)
    return "'" + value if value[:1] in ("=", "+", "-", "@") else value


_MARKDOWN = str.maketrans({"\\": "\\\\", "|": "\\|", "*": "\\*", "`": "\\`", "<": "&lt;"})
_EDGE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # inside a word, as in D_sys, it does not mean emphasis


def markdown_text(text: Any) -> str:
    """Escaped for a cell of a Markdown table, or a line: no HTML, no link, no emphasis.

    >>> print(markdown_text("D_sys | <b>[x](y)"))
    D_sys \\| &lt;b>[x]\\(y)
    """
    return _EDGE.sub(r"\\_", clean(str(text)).translate(_MARKDOWN)).replace("](", "]\\(")


def few(names: Sequence[str], most: int = 5) -> str:
    """The first of many names.

    >>> few(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
