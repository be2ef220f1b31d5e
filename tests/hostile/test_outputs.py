"""Ids that are HTML, escape sequences, formulas: harmless in everything any command prints."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings

HOSTILE = (
    "=cmd|'/C_calc'!A0",
    "+1+cmd",
    "-2+3",
    "@SUM(1)",
    "\x1b]0;owned\x07",
    "\x9b31mred",
    "a\x1b[2Jgone",
    "\u202egnp.evil",
    "<script>alert(1)</script>",
    "|x|[link](javascript:alert(1))",
    "\\input{/etc/passwd}$_",
    "plain",
)
FORMS = ("table", "json", "csv", "markdown", "latex")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    places = rng.standard_normal((len(HOSTILE), 8))
    names = [name for name in HOSTILE for _ in range(4)]
    ids = [f"{name}-{number % 4}" for number, name in enumerate(names)]
    found = {}
    for side in ("original", "anonymized"):
        vectors = np.repeat(places, 4, 0) + rng.standard_normal((len(names), 8))
        found[side] = folder / f"{side}.npz"
        # A column that is called like a formula, too: it becomes a parameter's name.
        columns = {"gender": ["=f" if number % 8 < 4 else "\x1b[1mm" for number in range(len(names))]}
        write_embeddings(Embeddings(vectors.astype(np.float32), ids, names, columns), found[side])
    solid = [name for name in HOSTILE if not any(c.isspace() for c in name)]
    lines = [
        (a, f"{b}-0", rng.normal(1.0 if a == b else 0.0), "target" if a == b else "nontarget")
        for a in solid
        for b in solid
    ]
    found["scores"], found["key"] = folder / "scores", folder / "key"
    found["scores"].write_text("".join(f"{a} {b} {x:.4f}\n" for a, b, x, _ in lines))
    found["key"].write_text("".join(f"{a} {b} {kind}\n" for a, b, _, kind in lines))
    broken = folder / "broken"
    broken.write_text("".join(f"{a} {b} {'=1+1' if a == b else x}\n" for a, b, x, _ in lines))
    found["broken"] = broken
    audio = folder / "speech" / "s\x1b[31m" / "=x\x9b.wav"
    audio.parent.mkdir(parents=True)
    audio.write_bytes(b"nothing")
    found["speech"] = folder / "speech"
    return found


def said(arguments: list[object]) -> tuple[str, int]:
    """All a command prints, standard error included, and its exit code."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    error = done.exception
    if error is not None and not isinstance(error, SystemExit):
        from veilmeter.cli.main import _printable
        from veilmeter.core.errors import VeilmeterError

        assert isinstance(error, VeilmeterError), repr(error)
        return done.output + _printable(str(error)), 2  # as `main` prints it
    return done.output, done.exit_code


def assert_harmless(text: str, form: str) -> None:
    for number, line in enumerate(text.split("\n")):
        bad = [c for c in line if not c.isprintable() and not (form == "csv" and c == "\r")]
        assert not bad, f"line {number}: {line!r}"
    if form == "csv":
        rows = [row for row in csv.reader(io.StringIO(text)) if row]
        for cell in (cell for row in rows for cell in row):
            if cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
                float(cell)  # a number, or a formula that got through
    if form == "markdown":
        assert "<script" not in text
        assert "](javascript" not in text
    if form == "latex":
        assert "\\input{" not in text


COMMANDS: dict[str, Callable[[dict[str, Path]], list[object]]] = {
    "measure": lambda f: ["measure", f["scores"], "--trials", f["key"], "--per-speaker", "--no-intervals"],
    "similarity": lambda f: ["similarity", "--original", f["original"], "--anonymized", f["anonymized"],
                             "--per-speaker", "--no-intervals"],
    "linkability": lambda f: ["linkability", "--enroll", f["original"], "--test", f["anonymized"], "--per-speaker",
                              "--attribute", "gender", "--no-intervals", "--name", "\x1b[31m=x",
                              "--figures", f["original"].parent / "drawn"],
    "singling-out": lambda f: ["singling-out", "--enroll", f["original"], "--test", f["anonymized"], "--per-speaker",
                               "--attribute", "gender", "--no-intervals", "--draws", 1, "--folds", 2],
    "invert": lambda f: ["invert", "--clear-train", f["original"], "--anonymized-train", f["anonymized"],
                         "--clear-trials", f["original"], "--anonymized-trials", f["anonymized"], "--per-speaker",
                         "--no-intervals", "--jobs", 1, "--shuffles", 0],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_ids_are_harmless_in_every_form(files: dict[str, Path], name: str) -> None:
    for form in FORMS:
        extra = [] if form == "table" else [f"--{form}"]
        text, code = said([*COMMANDS[name](files), *extra])
        assert code == 0, text
        out = text
        if form != "table":  # warnings go to standard error, and are clean as well
            out = "\n".join(line for line in text.split("\n") if not line.startswith("warning: "))
            assert_harmless(text, "table")
        assert_harmless(out, form)
        if form == "json":
            found = json.loads(out)
            assert HOSTILE[5] in json.dumps(found, ensure_ascii=False), "an id did not come through as it is"


def test_ids_are_harmless_in_messages(files: dict[str, Path], tmp_path: Path) -> None:
    for arguments in (
        ["check", files["scores"], "--trials", files["broken"]],
        ["check", files["broken"], "--trials", files["key"]],
        ["check", files["original"]],
        ["check", files["speech"]],
        ["check", files["speech"], "--json"],
        ["measure", files["broken"], "--trials", files["key"]],
        ["measure", files["scores"], "--trials", files["broken"]],
        ["embed", files["speech"], tmp_path / "embedded", "--quiet", "--jobs", 1],
        ["anonymize", files["speech"], tmp_path / "anonymized", "--quiet", "--jobs", 1],
        ["linkability", "--enroll", files["original"], "--test", files["anonymized"], "--attribute", "\x1b[31mnone"],
        ["similarity", "--original", tmp_path / "\x9b31m", "--anonymized", files["anonymized"]],
    ):
        text, _ = said(arguments)
        assert text
        assert_harmless(text, "text")


def test_assess_says_nothing_dangerous(files: dict[str, Path], tmp_path: Path) -> None:
    common = ["assess", "--original", files["original"], "--anonymized", files["anonymized"], "--attackers", "ignorant",
              "lazy-informed", "--measures", "scores", "linkability", "inference", "--lengths", 1, "--no-intervals",
              "--jobs", 1, "--out", tmp_path / "run", "--title", "\x1b[31m<b>=x"]  # fmt: skip
    for more in (["--no-report"], ["--no-report", "--json"], []):
        text, code = said([*common, *more])
        assert code == 0, text
        assert_harmless(text, "text")
    for arguments in (
        ["compare", tmp_path / "run", tmp_path / "run", "--csv"],
        ["gate", tmp_path / "run", "--max", "linkability@2=50%"],
        ["report", tmp_path / "run", "--format", "md", "--out", tmp_path / "report.md"],
        ["report", tmp_path / "run", "--show-ids", "--figures", tmp_path / "figures"],
    ):
        text, _ = said(arguments)
        assert_harmless(text, "text")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script>alert(1)" not in page
    tables = list((tmp_path / "figures").glob("*.csv"))
    assert tables
    for table in tables:
        assert_harmless(table.read_text(), "csv")
    assert "<script" not in (tmp_path / "report.md").read_text()
