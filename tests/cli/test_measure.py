"""`veilmeter measure` and `veilmeter check` as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.cli import main as cli
from veilmeter.cli.main import app
from veilmeter.cli.output import Page, emit
from veilmeter.core.errors import InputError
from veilmeter.metrics.measure import estimate_of

ALWAYS = {
    "eer", "cllr", "min_cllr", "calibration_loss", "d_ece", "l_w", "d_sys",
    "tpr@fpr=0.01", "tpr@fpr=0.001", "tpr@fpr=0.0001", "min_dcf@p=0.01", "min_dcf@p=0.05",
}  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def done(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["veilmeter", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        try:
            cli.run_command()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        out = capsys.readouterr()
        return code, out.out, out.err

    return done


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Six enrolled speakers, four utterances each of eight."""
    rng = np.random.default_rng(0)
    scores, key = [], []
    for e in range(6):
        for t in range(8):
            for u in range(4):
                scores.append(f"s{e} s{t}-{u} {rng.normal() + 2 * (e == t):.5f}")
                key.append(f"s{e} s{t}-{u} {'target' if e == t else 'nontarget'}")
    (tmp_path / "scores").write_text("\n".join(scores) + "\n")
    (tmp_path / "trials").write_text("\n".join(key) + "\n")
    return tmp_path / "scores", tmp_path / "trials"


OWN = """
import veilmeter

@veilmeter.measure_of("scores", unit="percent", better="higher")
def overlap(scores):
    "The share of target scores below the highest impostor score."
    return 100 * float((scores.targets < scores.impostors.max()).mean())

@veilmeter.measure_of("embeddings", unit="percent")
def other(original, anonymized):
    return 0.0
"""


def test_measures_that_are_asked_for(tmp_path: Path) -> None:
    """By name and from a file; words that are files are score files, and other measures are not computed."""
    rng = np.random.default_rng(0)
    rows = [(f"s{i}", f"s{j}-{k}", i == j) for i in range(8) for j in range(8) for k in range(2)]
    lines = [f"{a} {b} {rng.normal(2 * t):.4f} {'target' if t else 'nontarget'}" for a, b, t in rows]
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "own.py").write_text(OWN)
    own = f"{tmp_path}/own.py:overlap"

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["measure", *arguments, "--no-intervals"])

    one = run(f"{tmp_path}/a.txt", "--json", "--measures", "eer", own)
    assert list(json.loads(one.stdout)["estimates"]) == ["eer", "overlap"]
    both = run("--measures", "eer", own, f"{tmp_path}/a.txt", f"{tmp_path}/b.txt")
    assert both.exit_code == 0, both.output
    assert both.output.splitlines()[0].split() == ["file", "EER", "overlap"]
    for arguments, message in (
        (["--measures", f"{tmp_path}/own.py:other"], "other is not a measure of scores"),
        (["--measures", "eerr"], "eer"),
        (["--measures", "eer", "--figures", f"{tmp_path}/figures"], "leave out --measures"),
    ):
        with pytest.raises(InputError, match=message):
            raise run(f"{tmp_path}/a.txt", *arguments).exception


def test_json_has_its_documented_shape(run, files: tuple[Path, Path]) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("measure", files[0], "--trials", files[1], "--json", "--resamples", 60)
    assert code == 0
    page = json.loads(out)
    assert set(page) == {"estimates", "inputs", "warnings", "version"}
    assert set(page["estimates"]) == ALWAYS
    eer = page["estimates"]["eer"]
    assert {"value", "unit", "interval", "null", "null_range", "method", "n", "better"} <= set(eer)
    assert eer["unit"] == "percent"
    assert eer["method"] == "rocch"
    assert eer["n"] == {"targets": 24, "impostors": 168, "speakers": 14}
    assert page["estimates"]["l_w"]["tag"] in "0ABCDEF"
    assert page["inputs"]["scores"]["sha256"]


def test_values_do_not_depend_on_intervals(run, files: tuple[Path, Path]) -> None:  # type: ignore[no-untyped-def]
    pages = [
        json.loads(run("measure", files[0], "--trials", files[1], "--json", *more)[1])
        for more in ([], ["--no-intervals"], ["--seed", "5"])
    ]
    for name in ALWAYS:
        assert len({page["estimates"][name]["value"] for page in pages}) == 1
    assert pages[1]["estimates"]["eer"]["interval"] is None
    assert pages[0]["estimates"]["eer"]["interval"] != pages[2]["estimates"]["eer"]["interval"]


@pytest.mark.parametrize("form", ["--csv", "--markdown", "--latex"])
def test_other_forms(run, files: tuple[Path, Path], form: str) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("measure", files[0], "--trials", files[1], "--no-intervals", form)
    assert code == 0
    if form == "--csv":
        rows = list(csv.DictReader(io.StringIO(out)))
        assert {row["measure"] for row in rows} == ALWAYS
    else:
        assert ("$D_{\\mathrm{ECE}}$" if form == "--latex" else "| D_ECE |") in out


def test_the_table_is_for_people(run, files: tuple[Path, Path]) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("measure", files[0], "--trials", files[1], "--per-speaker", "--resamples", 60)
    assert code == 0
    assert "24 target and 168 impostor trials of 14 speakers" in " ".join(out.split())
    assert "For whom is protection weakest?" in out
    assert "Tag " in out
    assert "…" not in out


def test_every_score_file_from_the_shell(run, vpc2020: Path, reference: dict[str, Any]) -> None:  # type: ignore[no-untyped-def]
    for extractor, runs in reference["scores"].items():
        for name, expected in runs.items():
            gender = name.removesuffix("_anon")[-1]
            key = vpc2020 / extractor / f"xvect_libri_test_trials_{gender}" / "meta" / "trials"
            scores = vpc2020 / extractor / "results" / name / "scores"
            code, out, _ = run("measure", scores, "--trials", key, "--json", "--no-intervals")
            assert code == 0
            found = json.loads(out)["estimates"]
            assert found["eer"]["value"] == pytest.approx(expected["rocch_eer_percent"], abs=0.01)
            assert found["d_ece"]["value"] == pytest.approx(expected["d_ece_bits"], abs=1e-5)
            assert found["l_w"]["value"] == pytest.approx(expected["l_w"], abs=1e-4)
            assert found["l_w"]["tag"] == expected["tag"]
            assert found["cllr"]["value"] == pytest.approx(expected["cllr"], abs=1e-3)
            assert found["min_cllr"]["value"] == pytest.approx(expected["min_cllr"], abs=1e-4)
            assert found["d_sys"]["value"] == pytest.approx(expected["d_sys"], abs=1e-5)


def test_three_sets_and_a_second_run(run, vpc2020: Path, reference: dict[str, Any]) -> None:  # type: ignore[no-untyped-def]
    results = vpc2020 / "extractor-original" / "results"
    oo, op, pp = (
        results / f"ASV-libri_test_enrolls{a}-libri_test_trials_f{b}" / "scores"
        for a, b in (("", ""), ("", "_anon"), ("_anon", "_anon"))
    )
    key = vpc2020 / "extractor-original" / "xvect_libri_test_trials_f" / "meta" / "trials"
    code, out, _ = run(
        "measure", "--original", oo, "--mixed", op, "--protected", pp, "--trials", key, "--calibrate-on", pp,
        "--calibration-trials", key, "--json", "--no-intervals",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)["estimates"]
    names = ("d_ece_op_oo", "min_cllr_op_oo", "g_d_ece", "g_min_cllr")
    expected = reference["normalised"]["extractor-original"]["f"]
    np.testing.assert_allclose([found[name]["value"] for name in names], expected, atol=2e-3)
    assert [found[name]["unit"] for name in names] == ["percent", "percent", "dB", "dB"]
    assert found["c_ece_linear"]["value"] < 0
    assert found["d_ece"]["value"] == found["d_ece_op"]["value"]
    code, _, err = run("measure", "--original", oo, "--mixed", op, "--trials", key)
    assert code == 2
    assert "--protected" in err


def test_scores_without_information_are_not_called_evidence(run, files: tuple[Path, Path], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    equal = tmp_path / "equal"
    equal.write_text("".join(f"{line.rsplit(maxsplit=1)[0]} 0.5\n" for line in files[0].read_text().splitlines()))
    code, out, _ = run("measure", equal, "--trials", files[1], "--no-intervals")
    assert code == 0
    assert "Tag A, which scores without information reach too." in " ".join(out.split())
    assert "there is some evidence" not in out


def test_a_flipped_sign_is_said(run, files: tuple[Path, Path], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    lines = [line.split() for line in files[0].read_text().splitlines()]
    flipped = tmp_path / "flipped"
    flipped.write_text("".join(f"{a} {b} {-float(c)}\n" for a, b, c in lines))
    code, out, err = run("measure", flipped, "--trials", files[1], "--json", "--no-intervals")
    assert code == 0
    assert "Inverted scores" in err
    assert "are the labels swapped?" in err
    page = json.loads(out)
    assert "scores_inverted" in [warning["code"] for warning in page["warnings"]]
    assert page["estimates"]["d_ece"]["inverted"] is True


def test_figures(run, files: tuple[Path, Path], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "figures"
    code, _, _ = run("measure", files[0], "--trials", files[1], "--no-intervals", "--figures", folder)
    assert code == 0
    made = {path.name for path in folder.iterdir()}
    assert made == {
        f"{n}.{f}" for n in ("ece_profile", "histogram", "det", "calibration") for f in ("svg", "png", "pdf")
    }
    assert (folder / "det.svg").read_text().count("EER") >= 1
    assert (folder / "det.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "det.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["measure"], "a score file is required"),
        (["measure", "nowhere", "--trials", "nowhere"], "no such file"),
        (["measure", "{scores}"], "--trials"),
        (["measure", "{trials}", "--trials", "{trials}"], "trial key"),
        (["measure", "{scores}", "--trials", "{trials}", "--json", "--csv"], "exclude"),
        (["measure", "{scores}", "--trials", "{trials}", "--eer-method", "best"], "rocch"),
        (["measure", "{scores}", "--trials", "{trials}", "--layout", "nist"], "voxceleb"),
        (["measure", "{scores}", "--trials", "{trials}", "--calibration-trials", "{trials}"], "--calibrate-on"),
    ],
)
def test_mistakes_are_one_line_and_code_2(run, files: tuple[Path, Path], more: list[str], words: str) -> None:  # type: ignore[no-untyped-def]
    code, out, err = run(*(part.format(scores=files[0], trials=files[1]) for part in more))
    assert code == 2
    assert words in err
    assert "Traceback" not in out + err


def test_check_says_what_is_wrong(run, files: tuple[Path, Path], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("check", *files)
    assert code == 0
    assert out.count(": fine") == 2
    code, out, _ = run("check", files[0], "--trials", files[1])
    assert code == 0
    bad = tmp_path / "bad"
    bad.write_bytes(b"a \x1b[31mb 1\na c nan\na d x\n")
    code, out, _ = run("check", bad, tmp_path / "nothing")
    assert code == 2
    assert "line 2" in out
    assert "line 3" in out
    assert "no such file" in out
    assert "\x1b" not in out
    code, out, _ = run("check", bad, "--json")
    assert code == 2
    found = json.loads(out)["files"][0]
    assert found["usable"] is False
    assert {problem["kind"] for problem in found["problems"]} == {"not-finite", "not-a-number"}


def test_starting_is_light() -> None:
    """What a score file needs is imported, and nothing heavier: the command must answer at once."""
    code = (
        "import sys, veilmeter.cli.measure, veilmeter.cli.output;"
        "import veilmeter.data.formats.scores, veilmeter.metrics.scores.summary;"
        "print([m for m in ('scipy.optimize', 'scipy.special', 'pyarrow', 'altair', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_streaming_gives_the_same_values(run, files: tuple[Path, Path]) -> None:  # type: ignore[no-untyped-def]
    whole = json.loads(run("measure", files[0], "--trials", files[1], "--json", "--no-intervals")[1])
    code, out, _ = run("measure", files[0], "--trials", files[1], "--json", "--stream")
    assert code == 0
    streamed = json.loads(out)
    for name in ALWAYS:
        assert streamed["estimates"][name]["value"] == pytest.approx(whole["estimates"][name]["value"], abs=1e-9)
    code, _, err = run("measure", files[0], "--trials", files[1], "--stream", "--layout", "nonsense")
    assert code == 2
    assert "unknown layout 'nonsense'" in err
    code, _, err = run("measure", files[0], "--trials", files[1], "--stream", "--per-speaker")
    assert code == 2
    assert "--stream" in err


def test_where_it_runs_changes_nothing(  # type: ignore[no-untyped-def]
    run, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "veilmeter.metrics.scores.resampling.WORTH_SENDING", 0
    )  # even these few trials go to the processes
    asked = ("measure", files[0], "--trials", files[1], "--json", "--resamples", 60)
    code, alone, _ = run(*asked, "--jobs", 1)
    assert code == 0
    assert run(*asked, "--jobs", 2)[:2] == (0, alone)


def test_a_cluster_that_is_none(run, files: tuple[Path, Path]) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("distributed")
    code, _, err = run("measure", files[0], "--trials", files[1], "--cluster", "nowhere")
    assert code == 2
    assert "not a cluster: 'nowhere'" in " ".join(err.split())


def test_only_values_on_the_unsafe_side_of_chance_are_bright(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    values = {"leak": 40.0, "chance": 49.0, "safe": 52.0}
    eers = [estimate_of("eer", value, label=name, null_range=(48.0, 51.0)) for name, value in values.items()]
    emit(Page("title", {"eer": eers}))
    printed = capsys.readouterr().out.splitlines()
    dim = {name: any(name in line and "\x1b[2m" in line for line in printed) for name in values}
    assert dim == {"leak": False, "chance": True, "safe": True}


def test_several_files_are_one_table(run, files: tuple[Path, Path], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    scores, key = files
    weaker = tmp_path / "weaker.csv"
    lines = [line.split() for line in scores.read_text().splitlines()]
    weaker.write_text("enroll,test,score\n" + "".join(f"{a},{u},{float(s) / 9:.6f}\n" for a, u, s in lines[::-1]))
    code, out, _ = run("measure", scores, weaker, "--trials", key, "--no-intervals")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["file", "scores", "weaker.csv"]
    code, out, _ = run("measure", scores, weaker, "--trials", key, "--no-intervals", "--csv")
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["measure"] == "eer"]
    assert [row["file"] for row in rows] == ["scores", "weaker.csv"]
    assert rows[0]["value"] == rows[1]["value"]
    code, out, _ = run("measure", scores, weaker, "--trials", key, "--no-intervals", "--json")
    assert [point["file"] for point in json.loads(out)["estimates"]["d_ece"]] == ["scores", "weaker.csv"]
    code, _, err = run("measure", scores, weaker, "--trials", key, "--per-speaker")
    assert code == 2
    assert "--per-speaker is about one score file, not 2" in err
    code, _, err = run("measure", scores, scores, "--trials", key)
    assert code == 2
    assert "given twice" in err


def test_standard_input_and_named_columns(files: tuple[Path, Path]) -> None:
    scores, key = files
    turned = "".join(f"x {s} {a} {u}\n" for a, u, s in map(str.split, scores.read_text().splitlines()))
    command = [sys.executable, "-m", "veilmeter.cli.main", "measure", "-", "--trials", str(key), "--no-intervals"]
    asked = subprocess.run(command, input=turned, capture_output=True, text=True, check=False)
    assert asked.returncode == 2
    assert "which of the 4 columns is which? The first line is: x " in asked.stderr
    named = [*command, "--columns", "-,score,enroll,test", "--json"]
    done = subprocess.run(named, input=turned, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["estimates"]["eer"]["n"]["targets"] == 24


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_standard_input_without_end_is_refused(device: str, tmp_path: Path) -> None:
    """It would fill the disk."""
    with open(device, "rb") as given:
        done = subprocess.run(
            [sys.executable, "-m", "veilmeter.cli.main", "measure", "-"], stdin=given, capture_output=True, text=True,
            timeout=200, env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "standard input is not a score file" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_standard_input_that_is_closed_or_too_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from veilmeter.cli import measure

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for stream, message in ((None, "no standard input"), (io.TextIOWrapper(io.BytesIO(b"a b 1\n")), "does not fit")):
        measure._kept_input.cache_clear()
        monkeypatch.setattr(measure, "SPARED_DISK", 1 << 60)
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(InputError, match=message):
            measure._kept_input(Path("-"))
    measure._kept_input.cache_clear()
