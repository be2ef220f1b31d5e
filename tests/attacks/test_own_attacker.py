"""An attacker that is added as docs/how-to/extending.md says: one file, known to everything that lists attackers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.assessment import assess
from veilmeter.attacks.attacker import ATTACKERS, attacker, color_of, default_attackers, plain_words
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.report import write_report
from veilmeter.report.figures.style import hues
from veilmeter.results.gate import check_gate
from veilmeter.results.model import Results
from veilmeter.results.run_folder import Assessment
from veilmeter.wording import sentences

DOCS = Path(__file__).parents[2] / "docs"
NAME = "nearest-mean"
FAST = {"measures": ["scores", "linkability"], "intervals": False, "lengths": [1], "resamples": 50, "jobs": 1}


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The code of the documentation as one module, found by its entry point."""
    text = (DOCS / "how-to" / "extending.md").read_text(encoding="utf-8")
    code = text.split("## An attacker\n")[1].split("```python\n")[1].split("```")[0]
    folder = tmp_path_factory.mktemp("installed")
    (folder / "nearest_mean.py").write_text(code)
    described = folder / "nearest_mean-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: nearest-mean\nVersion: 1\n")
    (described / "entry_points.txt").write_text(f"[veilmeter.attacks]\n{NAME} = nearest_mean:ATTACKER\n")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop("nearest_mean", None)
    ATTACKERS._loaded.pop(NAME, None)
    assert NAME not in ATTACKERS


def speech(vectors: np.ndarray, tag: str = "s") -> Embeddings:
    codes = np.arange(len(vectors)) // 6
    return Embeddings(vectors, [f"{tag}{row}" for row in range(len(vectors))], [f"{tag}-{code}" for code in codes])


def assessed(attackers: list[str], out: Path | None = None) -> Assessment:
    """Of twelve people who are hardly hidden; training speech without anybody in it ruins the informed attacker."""
    rng = np.random.default_rng(5)
    voices = np.repeat(rng.standard_normal((12, 10)), 6, axis=0) + 0.3 * rng.standard_normal((72, 10))
    misleading = rng.standard_normal((60, 10)) * np.geomspace(1e-3, 1e3, 10)
    hidden = speech(voices + 0.1 * rng.standard_normal(voices.shape))
    return assess(
        speech(voices), hidden, train_anonymized=speech(misleading, "t"), attackers=attackers, out=out, **FAST
    )


@pytest.fixture(scope="module")
def results(installed: None) -> Results:
    return assessed([NAME, "informed"]).results


def test_the_command_lists_it() -> None:
    listed = json.loads(CliRunner().invoke(app, ["attackers", "--json"]).stdout)[NAME]
    assert listed["words"]["who"] == "someone who averages voices"
    assert listed["color"] == "#882255"
    assert f"| {NAME} | original |" in CliRunner().invoke(app, ["attackers", "--markdown"]).stdout
    assert attacker("mean").name == NAME
    with pytest.raises(InputError, match=f"did you mean '{NAME}'"):
        attacker("nearest-men")


def test_it_is_planned_and_replaces_the_scores_of_one_who_knows_more(results: Results) -> None:
    assert results.attackers[NAME].backend == "cosine with the mean"
    assert results.attackers["informed"].details["taken_over_from"] == NAME


def test_who_runs_by_default_and_was_not_run_is_named(results: Results) -> None:
    assert default_attackers()[-1] == NAME
    without = assessed(["ignorant"]).results
    assert any(NAME in reason for reason in sentences(without.verdict.not_tested))
    assert NAME in check_gate(without, []).not_run
    assert NAME not in check_gate(results, []).not_run
    assert "adaptive" in check_gate(without, []).not_run


def test_the_page_has_its_words_and_color(tmp_path: Path) -> None:
    assessed([NAME, "ignorant"], tmp_path / "run")
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "someone who averages voices" in page.lower()
    assert "#882255" in page
    assert hues(["informed", NAME]) == [color_of("informed"), "#882255"]
    assert plain_words(NAME).time == "a day"


def test_its_table_has_the_options_of_any_attacker() -> None:
    with pytest.raises(InputError, match="no option backend"):
        assess(speech(np.eye(12)), speech(np.eye(12)), attackers={NAME: {"backend": "plda"}})


def test_an_attacker_of_a_file_is_listed_with_what_it_does() -> None:
    example = Path(__file__).parents[2] / "examples/plugin/src/veilmeter_example/attacker.py"
    listed = CliRunner().invoke(app, ["attackers", f"{example}:NearestRecording"])
    assert "nearest-recording" in listed.output
    assert "Compares each conversation with every original" in listed.output
    assert "nearest-recording" in json.loads(
        CliRunner().invoke(app, ["attackers", f"{example}:ATTACKER", "--json"]).stdout
    )
    assert isinstance(CliRunner().invoke(app, ["attackers", "nowhere.py:A"]).exception, InputError)
