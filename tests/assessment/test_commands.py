"""assess, compare, gate and attackers as commands, on two runs of synthetic voices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_voices as voices
from typer.testing import CliRunner

from veilmeter.assessment import Settings, assess, read_results
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, about
from veilmeter.data.formats.vectors import write_embeddings

ORIGINAL = voices.original(14, 6)


def run(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems, assessed: one that does little, and noise."""
    root = tmp_path_factory.mktemp("commands")
    write_embeddings(ORIGINAL, root / "original.npz")
    write_embeddings(voices.partly(ORIGINAL), root / "partly.npz")
    write_embeddings(voices.noise(ORIGINAL), root / "noise.npz")
    (root / "partly.toml").write_text(
        'original = "original.npz"\nanonymized = "partly.npz"\ntitle = "partly"\nresamples = 30\nlengths = [1, 3]\n'
        'measures = ["scores", "linkability", "similarity", "inference"]\nattackers = ["ignorant", "lazy-informed"]\n'
    )
    code, _ = run("assess", root / "partly.toml", "--out", root / "partly", "--jobs", 1, "--no-report", "--quiet")
    assert code == 0
    options: dict[str, Any] = {"resamples": 30, "lengths": [1, 3], "attackers": ["ignorant", "lazy-informed"]}
    measures = ["scores", "linkability", "similarity"]
    assess(root / "original.npz", root / "noise.npz", out=root / "noise", title="noise", measures=measures, **options)
    return root


READERS = (
    "assessment.run.read_results",
    "report.public._day",
    "report.public.read_matrices",
    "report.public.read_results",
    "report.public.table_of",
    "results.run_folder.read_results",
    "results.run_folder.read_table",
    "results.run_folder.table_of",
)


def test_the_page_of_an_assessment_is_made_without_reading_its_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError(f"read from disk: {arguments}")

    with monkeypatch.context() as patch:
        for reader in READERS:
            patch.setattr(f"veilmeter.{reader}", fail)
        code, _ = run("assess", folder / "partly.toml", "--threshold", "9%", "--out", tmp_path / "run", "--quiet")
        assert code == 0
    page = (tmp_path / "run" / "report.html").read_bytes()
    assert (tmp_path / "run" / "tables" / "matrices.parquet").is_file()
    assert run("report", tmp_path / "run", "--out", tmp_path / "again.html")[0] == 0
    assert (tmp_path / "again.html").read_bytes() == page


def test_the_verdict_is_printed(folder: Path) -> None:
    code, text = run(
        "assess", folder / "partly.toml", "--out", folder / "partly", "--jobs", 1, "--no-report", "--quiet"
    )
    assert code == 0
    joined = " ".join(text.split())
    for words in ("partly", "Of 100 recordings", "to the right person among 14", "Not tested:", "informed attacker",
                  "Trust checks:", "for a lawyer to judge", "results.json", "Lowest EER:"):  # fmt: skip
        assert words in joined, words
    results = read_results(folder / "partly")
    assert results.command[0] == "veilmeter"
    assert results.settings["title"] == "partly"


def test_options_win_over_the_file_and_lists_need_no_repetition(folder: Path, tmp_path: Path) -> None:
    code, text = run(
        "assess", folder / "partly.toml", "--lengths", 1, 2, "--measures", "linkability", "--seed", 5,
        "--out", tmp_path / "r", "--jobs", 1, "--no-report", "--quiet", "--json",
    )  # fmt: skip
    assert code == 0
    results = json.loads(text)
    assert results["parameters"]["lengths"] == [1, 2]
    assert results["seed"] == 5
    assert "eer" not in results["attackers"]["ignorant"]["estimates"]


def test_every_option_of_the_command_may_stand_in_the_file(folder: Path, tmp_path: Path) -> None:
    own = "jobs = 1\nno-report = true\nno-intervals = true\nquiet = true\njson = true\n"
    file = folder / "all.toml"
    file.write_text(own + (folder / "partly.toml").read_text())
    result = CliRunner().invoke(app, ["assess", str(file), "--out", str(tmp_path / "r"), "--measures", "scores"])
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)
    assert results["parameters"]["intervals"] is False
    assert not (tmp_path / "r" / "report.html").exists()
    file.write_text(own.replace("jobs = 1", "jobs = true") + (folder / "partly.toml").read_text())
    with pytest.raises(InputError, match=r"jobs must be a whole number \(got True\)"):
        CliRunner().invoke(app, ["assess", str(file), "--out", str(tmp_path / "r")], catch_exceptions=False)


def test_a_run_says_first_whom_it_leaves_out(folder: Path) -> None:
    file = folder / "tables.toml"
    named = (folder / "partly.toml").read_text().replace('attackers = ["ignorant", "lazy-informed"]\n', "")
    file.write_text(named + '[attackers.ignorant]\nbackend = "centered-cosine"\n')
    words = ["assess", file, "--out", folder / "tables", "--jobs", 1, "--no-report", "--measures", "linkability"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0
    first, second = done.stderr.splitlines()[:2]
    assert first.endswith(
        "attackers: ignorant; not asked for: lazy-informed, semi-informed, informed, procrustes, "
        "wasserstein-procrustes, adaptive (where there are tables [attackers.NAME], only those attackers are run)"
    )
    assert "checking the inputs" in second
    results = read_results(folder / "tables")
    assert set(results.attackers) == {"original", "ignorant"}
    assert about(Finding("not_asked_for"), attacker="informed") in results.verdict.not_tested


@pytest.mark.parametrize("role", ["--anonymized", "--train-anonymized"])
def test_strict_stops_at_a_broken_vector(folder: Path, role: str) -> None:
    broken = voices.partly(ORIGINAL)
    vectors = broken.vectors.copy()
    vectors[[5, 8]] = np.nan
    names = {"ids": np.array(broken.utterances, str), "speakers": np.array(broken.speakers, str)}
    np.savez(folder / "broken.npz", vectors=vectors, **names)
    words = ["assess", folder / "partly.toml", role, folder / "broken.npz", "--out", folder / "strict", "--jobs", 1]
    with pytest.raises(InputError, match=f"{broken.utterances[5]}.*there is 1 more problem"):
        run(*words, "--strict", "--quiet")


def test_recordings_that_were_left_out_end_with_three(folder: Path) -> None:
    write_embeddings(voices.partly(ORIGINAL).take(np.arange(6, len(ORIGINAL))), folder / "fewer.npz")
    words = ["assess", folder / "partly.toml", "--anonymized", folder / "fewer.npz", "--out", folder / "fewer"]
    code, text = run(*words, "--measures", "scores", "--no-intervals", "--no-report", "--jobs", 1, "--quiet")
    assert code == 3
    assert "6 original utterances without an anonymized version" in " ".join(text.split())


def test_a_seed_of_zero_wins_over_the_file_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*, settings: Settings, **_: object) -> None:
        raise InputError(f"seed {settings.seed}, intervals {settings.intervals}")

    monkeypatch.setattr("veilmeter.assessment.run.run_assessment", stop)
    file = folder / "seeded.toml"
    file.write_text((folder / "partly.toml").read_text() + "seed = 7\n")
    with pytest.raises(InputError, match="seed 7, intervals True"):
        run("assess", file, "--out", folder / "nothing")
    with pytest.raises(InputError, match="seed 0, intervals False"):
        run("assess", file, "--out", folder / "nothing", "--seed", 0, "--no-intervals")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["assess", "--original", "x", "--out", "y"], "there is no anonymized speech"),
        (["assess", "--original", "x"], "a folder for the results is required"),
        (["assess", "--original", "x", "--anonymized", "y", "--out", "OUT"], "there is no such file or folder"),
        (["assess", "--scores", "ignorant", "--out", "y"], "which attacker"),
        (["gate", "nowhere", "--max", "eer=1"], "no results found"),
        (["gate", "RUN"], "no limit was given"),
        (["compare", "RUN"], "one run can't be compared"),
    ],
)
def test_mistakes(folder: Path, tmp_path: Path, words: list[str], message: str) -> None:
    places = {"x": tmp_path / "x", "y": tmp_path / "y", "OUT": tmp_path / "OUT", "RUN": folder / "partly"}
    placed = [str(places.get(word, word)) for word in words]
    with pytest.raises(InputError, match=message):
        run(*placed)


def test_attackers() -> None:
    code, text = run("attackers", "--json")
    assert code == 0
    found = json.loads(text)
    assert found["informed"]["aliases"] == {"voiceprivacy": "semi-informed", "vauquier2025": "informed"}
    assert "| informed |" in run("attackers", "--markdown")[1]
    shown = CliRunner().invoke(app, ["attackers"], env={"COLUMNS": "80"}).output
    words = ("wasserstein-procrustes", "lazy-informed", "semi-informed", "VoicePrivacy: ", "anonymized")
    assert all(word in shown for word in words)
    assert all(len(line) <= 80 for line in shown.splitlines())
