"""What makes a page of many people cheap: data that Altair does not copy, a script that is kept, few imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest

from veilmeter.report import html
from veilmeter.report.figures.style import table

VERSION = "1.0"
SCRIPT = "window.vegaEmbed = null;"


def test_a_table_is_what_altair_would_have_written() -> None:
    rows: list[dict[str, Any]] = [{"a": np.float64(1.5), "b": "x"}, {"a": np.int64(2), "b": float("nan")}]
    plain_rows = [{"a": 1.5, "b": "x"}, {"a": 2, "b": None}]

    def chart(data: alt.InlineData) -> Any:
        line = alt.Chart(data).mark_line().encode(x="a:Q", y="b:N")
        return alt.hconcat(line + line.mark_point(), line).to_dict()

    assert chart(table(rows)) == chart(alt.InlineData(values=plain_rows))


def test_joining_charts_copies_no_rows() -> None:
    data = table([{"a": 1}])
    joined = alt.layer(alt.Chart(data).mark_line(), alt.Chart(data).mark_point())
    assert joined.copy().data is data


def test_the_script_is_put_together_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def bundle(_package: object) -> str:
        built.append(SCRIPT)
        return SCRIPT

    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(html, "_bundle", bundle)
    for _ in range(2):
        html.vega_script.cache_clear()
        assert html.vega_script() == SCRIPT
    assert len(built) == 1
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "file"))
    html.vega_script.cache_clear()
    assert html.vega_script() == SCRIPT
    html.vega_script.cache_clear()


def test_a_script_that_is_damaged_or_not_ones_own_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / html._name(VERSION, SCRIPT)
    path.write_text(SCRIPT)
    path.chmod(0o600)
    assert html.kept_script(tmp_path, VERSION) == SCRIPT
    assert html.kept_script(tmp_path, "2.0") is None
    path.chmod(0o622)
    assert html.kept_script(tmp_path, VERSION) is None
    path.chmod(0o600)
    path.write_text(SCRIPT[:-1])
    assert html.kept_script(tmp_path, VERSION) is None
    path.unlink()
    (tmp_path / "elsewhere.js").write_text(SCRIPT)
    path.symlink_to(tmp_path / "elsewhere.js")
    assert html.kept_script(tmp_path, VERSION) is None


def test_a_page_imports_neither_pandas_nor_scipy(run: Path, tmp_path: Path) -> None:
    """Each takes longer to be imported than a page to be written; scipy alone brings no part of it."""
    code = (
        "import sys; from veilmeter.report import write_report; write_report(*sys.argv[1:]);"
        "print([name for name in ('pandas', 'scipy.special', 'veilmeter.assessment.run') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run), str(tmp_path / "page.html")],
        capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
