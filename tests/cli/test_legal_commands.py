"""`veilmeter linkability` and `veilmeter singling-out`, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "veilmeter.cli.main", *map(str, words)], capture_output=True, text=True, check=False
    )


def found(*words):
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def voices():
    rng = np.random.default_rng(20250003)
    mu = rng.standard_normal((60, 16))
    return mu[:, None, :] + 1.5 * rng.standard_normal((60, 12, 16))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("legal")
    x = voices()
    parts = {
        "enroll": (range(60), range(10)),
        "test1": (range(30), [10]),
        "test2": (range(30), [10, 11]),
        "predicates": (range(20), [10, 11]),
        "said": (range(60), range(10)),
    }
    for name, (people, utterances) in parts.items():
        rows = [(s, u) for s in people for u in utterances]
        gender = ["fm"[s % 2] for s, _ in rows]
        e = Embeddings(
            [x[s, u] for s, u in rows], [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows], {"gender": gender}
        )
        write_embeddings(e, root / f"{name}.npz")
    return root


def test_a_curve_has_a_line_per_point_in_80_columns(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(
        "singling-out", "--enroll", folder / "enroll.npz", "--test", folder / "said.npz",
        "--speakers", "2,20", "--lengths", "1,3", "--draws", 1, "--folds", 2,
    )  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines()]
    risks = [line[4:6] for line in lines if line[:4] == ["risk", "beyond", "the", "control"]]
    assert risks == [["2", "1"], ["20", "1"], ["2", "3"], ["20", "3"]]
    assert ["measure", "speakers", "length"] in [line[:3] for line in lines]


def test_the_references_linkability(folder, reference):
    wanted = reference["legal"]["linkability"]
    for length in (1, 2):
        page = found(
            "linkability", "--enroll", folder / "enroll.npz", "--test", folder / f"test{length}.npz",
            "--speakers", "2,5", "--speakers", "10", "20", "40,60", "--lengths", length,
        )  # fmt: skip
        curve = page["estimates"]["linkability"]
        assert {str(one["speakers"]): one["value"] for one in curve} == pytest.approx(
            {n: 100 * share for n, share in wanted[f"L{length}"].items()}, abs=1e-10
        )
        assert all(one["length"] == length and one["unit"] == "percent" for one in curve)
        assert all(one["interval"][0] <= one["value"] <= one["interval"][1] for one in curve)
        assert page["warnings"] == []
        eer = page["estimates"]["one_minus_eer"]
        assert [one["speakers"] for one in eer] == [2, 5, 10, 20, 40, 60]
        assert 80 < eer[0]["value"] < 100


def test_the_references_singling_out(folder):
    page = found(
        "singling-out", "--enroll", folder / "predicates.npz", "--test", folder / "said.npz", "--speakers", "20,60"
    )
    names = {"singling_out", "control", "residual_risk", "hit_share", "one_minus_eer"}
    assert names <= set(page["estimates"])
    for name in names:
        assert [(one["speakers"], one["length"]) for one in page["estimates"][name]] == [(20, 1), (60, 1)]
    everybody = page["estimates"]["singling_out"][1]
    assert everybody["value"] == pytest.approx(40.5)
    assert everybody["null"] == pytest.approx(34.96, abs=1e-2)
    assert everybody["paper_chance"] == pytest.approx(36.79, abs=1e-2)
    assert page["estimates"]["singling_out"][0]["value"] == pytest.approx(42.69, abs=5)


def test_lengths_attributes_population_ranks_people_and_figures(folder, tmp_path):
    page = found(
        "linkability", "--enroll", folder / "enroll.npz", "--test", folder / "test2.npz", "--lengths", "1,2",
        "--population", "1e6,1e8", "--ranks", "--attribute", "gender", "--per-speaker", "--figures", tmp_path,
    )  # fmt: skip
    e = page["estimates"]
    assert [(one["speakers"], one["length"]) for one in e["linkability"]] == [
        (20, 1), (50, 1), (60, 1), (20, 2), (50, 2), (60, 2),
    ]  # fmt: skip
    assert [one["speakers"] for one in e["population_linkability"]] == [10**6, 10**8] * 2
    assert all("back_test" in one and one["model_dependent"] for one in e["population_linkability"])
    knowing = {(one["speakers"], one["length"]): one for one in e["linkability_knowing"]}
    assert all(knowing[one["speakers"], one["length"]]["value"] >= one["value"] for one in e["linkability"])
    assert {"cmc", "rank_disclosure", "rank_disclosure_worst", "identity_tpr"} <= set(e)
    each = [one for one in e["linkability_per_speaker"] if one["length"] == 1]
    assert len(each) == 30
    last = next(one for one in e["linkability"] if (one["speakers"], one["length"]) == (60, 1))
    assert np.mean([one["value"] for one in each]) == pytest.approx(last["value"])
    for name in ("legal", "population", "ranks"):
        for suffix in ("svg", "png", "pdf"):
            assert (tmp_path / f"{name}.{suffix}").stat().st_size > 1000


def test_singling_out_with_more_knowledge_beside_another_attacker(folder, tmp_path):
    words = ["singling-out", "--enroll", folder / "predicates.npz", "--test", folder / "said.npz", "--speakers", "20"]
    earlier = tmp_path / "ignorant.json"
    earlier.write_text(run(*words, "--json", "--no-intervals").stdout)
    page = found(
        *words, "--lengths", "1,3", "--rule", "balanced", "--attribute", "gender", "--per-speaker",
        "--figures", tmp_path / "f", "--name", "informed", "--beside", f"ignorant={earlier}",
    )  # fmt: skip
    e = page["estimates"]
    assert {"singling_out_knowing", "residual_risk_knowing", "singling_out_per_speaker"} <= set(e)
    assert all(one["method"] == "balanced rule" for one in e["singling_out"])
    svg = (tmp_path / "f" / "legal.svg").read_text()
    assert "ignorant" in svg
    assert "informed" in svg


def test_the_table_shows_its_numbers_on_a_narrow_terminal(folder):
    done = run("linkability", "--enroll", folder / "enroll.npz", "--test", folder / "test1.npz", "--population", "1e6")
    assert done.returncode == 0
    assert "…" not in done.stdout
    assert "back-test" in done.stdout.replace("\n", " ")
    assert "30.0 %" in done.stdout


def test_voiceprivacy_folders(vpc2020):
    root = vpc2020 / "extractor-original"
    page = found(
        "singling-out", "--enroll", root / "xvect_libri_test_enrolls_anon", "--test",
        root / "xvect_libri_test_trials_f_anon", "--speakers", "10,20", "--lengths", "1,3,30",
    )  # fmt: skip
    assert [(one["speakers"], one["length"]) for one in page["estimates"]["singling_out"]] == [
        (10, 1), (20, 1), (10, 3), (20, 3),
    ]  # fmt: skip
    values = {warning["code"]: warning["values"] for warning in page["warnings"]}
    assert values["sizes_left_out"]["length"] == 30
    assert values["people_not_enrolled"]["count"] == 4


def test_the_same_recordings_on_both_sides_are_a_trap(folder):
    page = found("linkability", "--enroll", folder / "enroll.npz", "--test", folder / "said.npz", "--speakers", "10")
    assert [w["values"]["count"] for w in page["warnings"] if w["code"] == "same_recording_enrolled"] == [600]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["linkability", "--speakers", "61"], "give at most 60"),
        (["linkability", "--speakers", "many"], "speakers must be a whole number"),
        (["linkability", "--speakers", "2.5"], "speakers must be a whole number"),
        (["linkability", "--lengths", "0"], "lengths must be at least 1 (got 0)"),
        (["linkability", "--lengths", "11"], "largest possible length is 10"),
        (["linkability", "--attribute", "accent"], "there are: gender"),
        (["linkability", "--population", "10"], "measured, not extrapolated"),
        (["linkability", "--json", "--csv"], "exclude each other"),
        (["linkability", "--beside", "x"], "--figures"),
        (["singling-out", "--speakers", "61"], "give at most 60"),
        (["singling-out", "--speakers", "1"], "speakers must be at least 2 (got 1)"),
        (["singling-out", "--rule", "fair"], "choose from paper, balanced"),
        (["singling-out", "--lengths", "6"], "give shorter lengths"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(folder, words, said):
    done = run(words[0], "--enroll", folder / "enroll.npz", "--test", folder / "said.npz", *words[1:])
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_each_person_and_the_population_say_how(folder):
    """Every estimate names its method; an extrapolation from few people is doubted, with the sizes of its back-test."""
    people = ["--enroll", folder / "enroll.npz", "--test", folder / "test2.npz", "--per-speaker", "--no-intervals"]
    page = found("linkability", *people, "--speakers", "20", "--population", "1e6", "--ranks")
    for curve in page["estimates"].values():
        assert all(point["method"] for point in curve)
    assert [w["values"]["count"] for w in page["warnings"] if w["code"] == "few_enrolled"] == [60]
    table = " ".join(run("linkability", *people, "--speakers", "20", "--population", "1e6").stdout.split())
    assert "fitted among 15 people, the model had to predict what was measured among 60." in table
    page = found("singling-out", *people, "--speakers", "20", "--draws", "1")
    for curve in page["estimates"].values():
        assert all(point["method"] and point["null"] is not None for point in curve)


def without_signatures(page):
    """The estimates without what names the files they come from."""
    curves = page["estimates"].items()
    return {name: [{**point, "signature": None} for point in curve] for name, curve in curves}


def test_distractors_are_further_enrolled_people(folder, tmp_path):
    """The same as an enrollment that holds them; their attributes count."""
    x = voices()
    enroll = [(s, u) for s in range(30) for u in range(10)]
    further = [(s, u) for s in range(30, 60) for u in range(10)]
    for name, rows in (("people", enroll), ("further", further)):
        gender = ["fm"[s % 2] for s, _ in rows]
        vectors = [x[s, u] for s, u in rows]
        e = Embeddings(vectors, [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows], {"gender": gender})
        write_embeddings(e, tmp_path / f"{name}.npz")
    test = ("--test", folder / "test2.npz", "--attribute", "gender", "--no-intervals")
    for command, sizes in (("linkability", "30,60"), ("singling-out", "20,30")):
        whole = found(command, "--enroll", folder / "enroll.npz", *test, "--speakers", sizes)
        parts = found(
            command, "--enroll", tmp_path / "people.npz", *test, "--speakers", sizes,
            "--distractors", tmp_path / "further.npz",
        )  # fmt: skip
        assert without_signatures(parts) == without_signatures(whole)
        assert parts["inputs"]["distractors"][0]["speakers"] == 30
    alone = found("linkability", "--enroll", tmp_path / "people.npz", *test, "--speakers", 30)
    assert alone["estimates"]["linkability"][0]["n"]["impostors"] == 29
    both = run("linkability", "--enroll", folder / "enroll.npz", *test, "--distractors", tmp_path / "further.npz")
    assert both.returncode == 2
    assert "'s30' is a distractor and enrolled, and so are 29 more" in both.stderr


def test_vectors_of_another_extractor_are_doubted(tmp_path: Path) -> None:
    """In the other extractor's space nobody is nearest to themselves."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(20, 32))
    spoken = np.repeat(np.arange(20), 4)
    voices = (base[spoken] + 0.3 * rng.normal(size=(80, 32))).astype(np.float32)
    for name, vectors in (("one", voices), ("same", voices + 0.1), ("other", -voices)):
        ids = [f"u{number}" for number in range(80)]
        write_embeddings(Embeddings(vectors, ids, [f"s{person}" for person in spoken]), tmp_path / f"{name}.npz")
    for test, doubted in (("same", False), ("other", True)):
        files = ["--enroll", str(tmp_path / "one.npz"), "--test", str(tmp_path / f"{test}.npz")]
        done = CliRunner().invoke(app, ["linkability", *files, "--no-intervals", "--json"])
        assert done.exit_code == 0
        codes = [found["code"] for found in json.loads(done.stdout)["warnings"]]
        assert ("linked_below_chance" in codes) is doubted
