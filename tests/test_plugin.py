"""The example package, installed: one of each thing that can be added to veilmeter is found and used without a change
to veilmeter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.docs_workspace import embeddings, voice

from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.speech.audio import read_audio, write_audio

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "examples" / "plugin"
CODE = PLUGIN / "src" / "veilmeter_example"

pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package where pip puts it; no network, as what builds it is installed already."""
    place = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    subprocess.run([*pip, "--target", str(place), str(PLUGIN)], check=True, env=environment)
    return place


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calls of eight customers in the plug-in's own layout, and vectors of 20 people before and after."""
    root = tmp_path_factory.mktemp("world")
    lines = []
    for number in range(8):
        for call in range(4):
            lines.append(f"call{number}-{call} customer{number}")
            write_audio(root / "calls" / f"call{number}-{call}.wav", voice(f"c{number}", call))
    (root / "calls" / "calls.txt").write_text("\n".join(lines) + "\n")
    for name, kind in (("original.npz", "original"), ("anonymized.npz", "anonymized"), ("second.npz", "second")):
        write_embeddings(embeddings(kind), root / name)
    return root


def run(line: str, installed: Path, world: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = [sys.executable, "-m", "veilmeter.cli.main", *line.split()]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(words, cwd=world, capture_output=True, text=True, check=False, env=environment)


def succeeds(line: str, installed: Path, world: Path) -> str:
    ran = run(line, installed, world)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_layout_anonymizer_extractor_and_recognizer(installed: Path, world: Path) -> None:
    assert "calls" in succeeds("check calls", installed, world)
    succeeds("anonymize calls softer --system softer --per utterance --seed 2 --jobs 1 --quiet", installed, world)
    manifest = [json.loads(line) for line in (world / "softer.manifest.jsonl").read_text().splitlines()]
    assert {entry["draw"] for entry in manifest} == {"utterance"}
    factor = {entry["utterance"]: entry["parameters"]["factor"] for entry in manifest}["call0-0"]
    heard, original = read_audio(world / "softer" / "call0-0.flac"), read_audio(world / "calls" / "call0-0.wav")
    np.testing.assert_allclose(heard, original * factor, atol=2 / 32768)
    succeeds("embed calls vectors --extractor band-energies --jobs 1 --quiet", installed, world)
    succeeds("transcribe calls words --recognizer counting --language de --jobs 1 --quiet", installed, world)
    texts = [path.read_text() for path in (world / "words").iterdir() if path.suffix in (".txt", ".csv")]
    assert any("second" in text for text in texts)


def test_an_added_name_is_suggested(installed: Path, world: Path) -> None:
    ran = run("anonymize calls other --system sofer --jobs 1", installed, world)
    assert ran.returncode == 2
    assert "did you mean 'softer'" in ran.stderr


def test_the_documentation_names_every_example() -> None:
    text = (ROOT / "docs" / "how-to" / "extending.md").read_text(encoding="utf-8")
    named = re.findall(r"\| \[`(\w+\.py)`\]\([^)]+\) \|", text)
    assert sorted(named) == sorted(path.name for path in CODE.glob("*.py") if path.name != "__init__.py")


@pytest.fixture(scope="module")
def run_folder(installed: Path, world: Path) -> Path:
    """An assessment with the package's attack and back end; its measures come by themselves."""
    common = "--attackers ignorant,nearest-recording --measures scores,linkability --lengths 1 --no-intervals --jobs 1"
    for name, hidden in (("run", "anonymized.npz"), ("other", "second.npz")):
        line = f"assess --original original.npz --anonymized {hidden} --backend euclidean {common} --quiet --out {name}"
        ran = run(line, installed, world)
        assert ran.returncode in (0, 3), ran.stderr
    return world / "run"


def test_measures_attack_and_back_end_are_in_the_results(run_folder: Path) -> None:
    results = json.loads((run_folder / "results.json").read_text())
    assert {"ignorant", "nearest-recording"} <= set(results["attackers"])
    for attacker in ("ignorant", "nearest-recording"):
        assert 0 < results["attackers"][attacker]["estimates"]["auc"]["value"] < 100
    assert "Euclidean distance" in json.dumps(results["attackers"]["ignorant"])
    parts = [part["estimates"] for part in results["parts"].values()]
    (shift,) = [estimates["mean_shift"] for estimates in parts if "mean_shift" in estimates]
    assert shift["value"] > 0.5


def test_a_measure_of_scores_is_in_the_command_and_says_that_it_has_no_interval(installed: Path, world: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"p{enrolled} p{tested}-{number} {rng.normal(2.0 * (enrolled == tested)):.4f} "
        + ("target" if enrolled == tested else "nontarget")
        for enrolled in range(8)
        for tested in range(8)
        for number in range(4)
    ]
    (world / "scores.txt").write_text("\n".join(lines) + "\n")
    page = json.loads(succeeds("measure scores.txt --resamples 50 --json", installed, world))
    assert 50 < page["estimates"]["auc"]["value"] < 100
    assert page["estimates"]["auc"]["interval"] is None
    table = succeeds("measure scores.txt --resamples 50", installed, world)
    assert "AUC" in table
    assert "No interval: AUC." in " ".join(table.split())


def test_measures_are_gated_and_compared(installed: Path, world: Path, run_folder: Path) -> None:
    assert run("gate run --max auc=100% --even-if-doubted", installed, world).returncode == 0
    broken = run("gate run --max auc=40% --even-if-doubted", installed, world)
    assert broken.returncode == 1
    assert "BROKEN  auc" in broken.stdout
    assert "AUC" in succeeds("compare run other --resamples 20 --markdown", installed, world)


def test_measures_and_attack_are_on_the_page(run_folder: Path) -> None:
    page = (run_folder / "report.html").read_text(encoding="utf-8")
    for words in ("AUC", "mean shift", "nearest-recording"):
        assert words in page


@pytest.fixture(scope="module")
def heard(installed: Path, world: Path) -> Path:
    """Two assessments of recordings with the package's layout, anonymizer, extractor and recognizer."""
    common = (
        "--extractor band-energies --recognizer counting --attackers ignorant --measures scores,utility --lengths 1"
    )
    rest = "--utility-rated 0 --no-intervals --jobs 1 --quiet"
    for name, seed in (("quiet", 1), ("quieter", 2)):
        succeeds(f"anonymize calls {name} --system softer --seed {seed} --jobs 1 --quiet", installed, world)
        ran = run(f"assess --original calls --anonymized {name} {common} {rest} --out run-{name}", installed, world)
        assert ran.returncode in (0, 3), ran.stderr
    return world / "run-quiet"


def test_a_measure_of_recordings_from_results_to_page_gate_and_compare(
    installed: Path, world: Path, heard: Path
) -> None:
    results = json.loads((heard / "results.json").read_text())
    change = results["parts"]["utility"]["estimates"]["level_change"]
    manifest = [json.loads(line) for line in (world / "quiet.manifest.jsonl").read_text().splitlines()]
    expected = np.mean([20 * np.log10(entry["parameters"]["factor"]) for entry in manifest])
    assert change["value"] == pytest.approx(expected, abs=0.05)
    assert change["interval"][0] < change["value"] < change["interval"][1]
    assert "level change" in (heard / "report.html").read_text(encoding="utf-8")
    limits = (("--max level_change=3", 0), (f"--min level_change={expected + 1:.2f}", 1))
    for limit, code in limits:
        gated = run(f"gate run-quiet {limit} --even-if-doubted", installed, world)
        assert (gated.returncode, "level_change" in gated.stdout) == (code, True), gated.stdout + gated.stderr
    assert "level change" in succeeds("compare run-quiet run-quieter --resamples 20 --markdown", installed, world)
