"""`veilmeter similarity`: the documented JSON, what happens to sets that do not match, and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.errors import VeilmeterError
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import read_embeddings, write_embeddings


def run(*words: object) -> str:
    done = CliRunner().invoke(app, ["similarity", *map(str, words)])
    if isinstance(done.exception, VeilmeterError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def found(*words: object) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(run(*words, "--json"))
    return made


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(8), 6)
    ids, speakers = [f"u{i}" for i in range(48)], [f"s{c}" for c in codes]
    session = {"session": [f"k{i % 2}" for i in range(48)]}
    o = rng.normal(size=(8, 10))[codes] + 0.4 * rng.normal(size=(48, 10))
    write_embeddings(Embeddings(o, ids, speakers, session), tmp_path / "o.npz")
    for name, keep in (("near", 0.9), ("far", 0.1)):
        p = keep * o + (1 - keep) * rng.normal(size=(8, 10))[codes] + 0.3 * rng.normal(size=(48, 10))
        write_embeddings(Embeddings(p, ids, speakers), tmp_path / f"{name}.npz")
    return tmp_path


@pytest.mark.parametrize("sex", ["f", "m"])
@pytest.mark.parametrize("pairs", ["all", "vpc"])
@pytest.mark.parametrize("form", ["geometric", "arithmetic"])
def test_reference(vpc2020: Path, reference: dict[str, Any], sex: str, pairs: str, form: str) -> None:
    wanted = next(one for one in reference["similarity_matrices"][sex] if one["pairs"] == pairs)[form]
    folder = vpc2020 / "extractor-original"
    o, p = folder / f"xvect_libri_test_trials_{sex}", folder / f"xvect_libri_test_trials_{sex}_anon"
    page = found("--original", o, "--anonymized", p, "--form", form, "--pairs", pairs, "--no-intervals")
    values = {name: one["value"] for name, one in page["estimates"].items()}
    assert values["deid"] == pytest.approx(wanted["deid_percent"], abs=0.01)
    assert values["g_vd"] == pytest.approx(wanted["g_vd_db"], abs=0.001)
    assert values["d_diag_op"] == pytest.approx(wanted["d_diag_op_signed"], abs=1e-5)
    assert len(page["speakers"]) == 20


def test_json(sets: Path) -> None:
    page = found("--original", sets / "o.npz", "--anonymized", sets / "near.npz")
    assert set(page) == {"estimates", "speakers", "zoo", "inputs", "warnings", "version"}
    deid = page["estimates"]["deid"]
    assert deid["unit"] == "percent"
    assert deid["interval"][0] <= deid["value"] <= deid["interval"][1]
    assert deid["null"] > 80
    person = page["speakers"][0]
    assert person["speaker"] == "s0"
    assert set(person["zoo"]) == {"OO", "OP", "PP"}
    mean = np.mean([one["d_diag_op"] for one in page["speakers"]])
    assert mean == pytest.approx(page["estimates"]["d_diag_op"]["value"])
    assert page["inputs"]["original"]["utterances"] == 48
    again = found("--original", sets / "o.npz", "--anonymized", sets / "near.npz")
    assert again == page
    assert [w["values"]["count"] for w in page["warnings"] if w["code"] == "few_speakers"] == [8]


def test_several_systems_sessions_and_figures(sets: Path) -> None:
    page = found("--original", sets / "o.npz", "--anonymized", sets / "near.npz", "--anonymized", sets / "far.npz",
                 "--sessions", "--speakers", "2,8", "--figures", sets / "figures")  # fmt: skip
    deids = {one["system"]: one["value"] for one in page["estimates"]["deid"]}
    assert set(deids) == {"near", "far"}
    assert deids["far"] > deids["near"]
    across = page["estimates"]["linkability_across_sessions"]
    assert [(one["system"], one["speakers"]) for one in across] == [("near", 2), ("near", 8), ("far", 2), ("far", 8)]
    assert set(page["systems"]) == {"near", "far"}
    made = sorted(path.name for path in (sets / "figures").glob("*.svg"))
    kinds = ("matrices-1", "matrices-2", "speakers-1", "speakers-2", "zoo-1", "zoo-2")
    assert made == ["similarity-deid-gvd.svg", *(f"similarity-{kind}.svg" for kind in kinds)]
    assert len(list((sets / "figures").glob("*.p[nd][gf]"))) == 14


@pytest.mark.parametrize("form", ["--csv", "--markdown", "--latex", None])
def test_other_forms(sets: Path, form: str | None) -> None:
    out = run("--original", sets / "o.npz", "--anonymized", sets / "near.npz", form or "--per-speaker")
    assert "deid" in out.lower()
    assert ("$G_{\\mathrm{VD}}$" if form == "--latex" else "g_vd") in (out if form == "--latex" else out.lower())
    assert ("s3 (" in out) == (form is None)


def test_sets_that_do_not_match(sets: Path) -> None:
    e = read_embeddings(sets / "near.npz")
    lone = Embeddings([[1.0] * 10], ["extra"], ["s9"])
    write_embeddings(e.take(np.arange(43)), sets / "part.npz")  # all of s0 to s6, one utterance of s7
    page = found("--original", sets / "o.npz", "--anonymized", sets / "part.npz", "--no-intervals")
    assert page["estimates"]["deid"]["n"] == {"speakers": 7, "utterances": 42}
    values = {warning["code"]: warning["values"] for warning in page["warnings"]}
    assert values["utterances_unmatched"]["only_original"] == 5
    assert [speaker["id"] for speaker in values["speakers_left_out"]["examples"]] == ["s7"]
    write_embeddings(lone, sets / "other.npz")
    with pytest.raises(VeilmeterError, match="no utterance is in both"):
        run("--original", sets / "o.npz", "--anonymized", sets / "other.npz")
    write_embeddings(Embeddings(e.vectors[:, :4], e.utterances, e.speakers), sets / "short.npz")
    with pytest.raises(VeilmeterError, match="same extractor"):
        run("--original", sets / "o.npz", "--anonymized", sets / "short.npz")
    write_embeddings(e.take(np.arange(0, 48, 6)), sets / "single.npz")
    with pytest.raises(VeilmeterError, match="single utterance"):
        run("--original", sets / "o.npz", "--anonymized", sets / "single.npz")


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--form", "cubic"], "form: unknown value .cubic."),
        (["--pairs", "few"], "pairs: unknown value .few."),
        (["--backend", "magic"], "backend: unknown value .magic."),
        (["--speakers", "many", "--sessions"], "speakers must be a whole number"),
        (["--json", "--csv"], "exclude each other"),
        (["--sessions", "--session-column", "day"], "no column 'day'"),
        (["--session-column", "day"], "--session-column day can.t act here: --sessions is not given"),
        (["--speakers", "5"], "--speakers 5 can.t act here: --sessions is not given"),
        (["--lengths", "2"], "--lengths 2 can.t act here: --sessions is not given"),
        (["--sessions", "--speakers", "99"], "99 enrolled speakers"),
    ],
)
def test_wrong_options(sets: Path, words: list[str], match: str) -> None:
    with pytest.raises(VeilmeterError, match=match):
        run("--original", sets / "o.npz", "--anonymized", sets / "near.npz", *words)


def test_the_same_system_twice(sets: Path) -> None:
    with pytest.raises(VeilmeterError, match="given twice"):
        run("--original", sets / "o.npz", "--anonymized", sets / "near.npz", "--anonymized", sets / "near.npz")
