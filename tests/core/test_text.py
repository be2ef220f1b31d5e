"""Whatever an id holds, what is shown of it is text."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.text import clean, csv_cell, markdown_text

NASTY = st.text(st.one_of(st.characters(), st.sampled_from("\\|<>*_`[]()&%$#{}~^=+-@'\"\n\r\t\x1b\x9b\u202e")))


@given(NASTY)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    for safe in (clean(text), csv_cell(text), markdown_text(text)):
        assert safe.isprintable()
    assert len(clean(text)) == len(text)


@given(NASTY)
def test_what_is_kept_is_kept(text: str) -> None:
    assert clean(text, keep="\n").count("\n") == text.count("\n")


@given(NASTY)
def test_a_cell_is_no_formula_and_comes_back(text: str) -> None:
    out = io.StringIO()
    csv.writer(out).writerow([csv_cell(text), "next"])
    cell, after = next(csv.reader([out.getvalue()]))
    assert after == "next"
    assert not cell.startswith(("=", "+", "-", "@"))
    assert cell.removeprefix("'") == clean(text).removeprefix("'")


@given(NASTY)
def test_markdown_holds_no_html_no_cell_no_link_and_no_emphasis(text: str) -> None:
    shown = markdown_text(text)
    assert "<" not in shown
    assert "](" not in shown
    bare = re.sub(r"\\[\\|*`_(]", "", shown)  # without what is escaped
    assert not set(bare) & set("\\|*`")
    # back again: nothing was lost
    assert re.sub(r"\\([\\|*`_(])", r"\1", shown).replace("&lt;", "<") == clean(text).replace("&lt;", "<")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("D_sys of l_w", "D_sys of l_w"), ("_x_", "\\_x\\_"), ("a__b", "a\\_\\_b"), (1.5, "1.5"), ("a\\|b", "a\\\\\\|b")],
)
def test_markdown_leaves_names_readable(text: object, shown: str) -> None:
    assert markdown_text(text) == shown
