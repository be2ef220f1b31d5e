"""Runs side by side: the difference of what is shown, paired where it can be, and what is sure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sample_results import attacker, eer, link, sample
from typer.testing import CliRunner

from veilmeter.assessment import assess
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.intervals import cluster_interval, t_quantile
from veilmeter.data.embeddings import Embeddings
from veilmeter.results.compare import ComparedFigure, Comparison, _text_of, compare, differing_settings
from veilmeter.results.differences import _of_links
from veilmeter.results.model import LinkedPerson, Results
from veilmeter.results.run_folder import write_results
from veilmeter.wording import sentences, text


def voices(noise: float, kept: float, seed: int = 0) -> tuple[Embeddings, Embeddings]:
    """Fourteen speakers with six recordings, and the same with only a part of the voice kept."""
    rng = np.random.default_rng(seed)
    own = np.repeat(rng.standard_normal((14, 24)), 6, 0)
    ids, speakers = [f"u{n}" for n in range(84)], [f"s{n // 6:02d}" for n in range(84)]
    original = Embeddings(own + 0.4 * rng.standard_normal(own.shape), ids, speakers)
    return original, Embeddings(kept * own + noise * np.random.default_rng(9).standard_normal(own.shape), ids, speakers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems, assessed: one that keeps something, and noise; and the second once more with another seed."""
    root = tmp_path_factory.mktemp("compare")
    options: dict[str, Any] = {"resamples": 50, "lengths": [1, 3], "measures": ["scores", "linkability"]}
    options["attackers"] = ["ignorant", "lazy-informed"]
    for name, (noise, kept, seed) in {"partly": (1.0, 0.7, 0), "noise": (1.0, 0.0, 0), "seeded": (1.0, 0.0, 5)}.items():
        original, anonymized = voices(noise, kept)
        assess(original, anonymized, out=root / name, title=name, seed=seed, **options)
    original, anonymized = voices(1.0, 0.0)
    for name, kept in {"lost-recordings": np.arange(84) % 41 > 0, "lost-person": np.arange(84) > 5}.items():
        assess(original, anonymized.take(kept), out=root / name, title=name, **options)
    return root


@pytest.fixture(scope="module")
def compared(folder: Path) -> Comparison:
    return compare([folder / "partly", folder / "noise"], resamples=50)


def test_a_difference_is_that_of_the_values_shown(compared: Comparison) -> None:
    assert any(figure.label == "Linkability among 14, L = 3" for figure in compared.values)
    for title, (first, second) in compared.values.items():
        (difference,) = compared.differences[title]
        assert difference.value == pytest.approx(second.value - first.value, abs=1e-12), title
        assert difference.interval is not None
        assert difference.interval[0] <= difference.value <= difference.interval[1]
        assert difference.method == "paired by speaker"
    assert (
        compared.differences[ComparedFigure("Linkability among 14, L = 1", "lazy-informed")][0].value < 0
    )  # noise links less


def test_the_summary_comes_first_and_counts_what_is_sure(compared: Comparison) -> None:
    assert text(compared.summary[0]).startswith("partly: ")
    sure = [point for points in compared.differences.values() for point in points if point.extra["sure"]]
    assert f"{len(sure)} are significant" in text(compared.summary[-1])
    assert sure
    assert all(point.interval is not None and not point.interval[0] <= 0 <= point.interval[1] for point in sure)


def test_a_run_does_not_differ_from_itself(folder: Path) -> None:
    same = compare([folder / "partly", folder / "partly"], resamples=20)
    for title, points in same.differences.items():
        for point in points:
            assert point.value == 0, title
            assert point.interval == (0, 0), title
            assert not point.extra["sure"]


def test_other_recordings_of_the_same_people_are_paired(folder: Path) -> None:
    other = compare([folder / "noise", folder / "seeded"], resamples=20)
    assert {point.method for points in other.differences.values() for point in points} == {"paired by speaker"}
    assert any("partly different recordings of the same people" in text for text in sentences(other.warnings))
    assert any("The setting seed differs: 0 (noise), 5 (seeded)" in text for text in sentences(other.warnings))
    assert other.settings["seed"] == [0, 5]


def test_a_system_that_lost_recordings_is_paired_and_one_that_lost_a_person_is_not(folder: Path) -> None:
    lost_recordings, lost_person = (
        compare([folder / "partly", folder / name], resamples=20) for name in ("lost-recordings", "lost-person")
    )
    assert {point.method for points in lost_recordings.differences.values() for point in points} == {
        "paired by speaker"
    }
    assert "not paired" in {point.method for points in lost_person.differences.values() for point in points}
    assert any("do not have the same people" in text for text in sentences(lost_person.warnings))


def test_paired_links_weigh_conversations_as_their_shares_do() -> None:
    rng = np.random.default_rng(3)

    def side(counts: list[int]) -> list[LinkedPerson]:
        return [
            LinkedPerson(speaker=f"s{n}", length=1, among=9, conversations=c, linked=100 * float(rng.random()))
            for n, c in enumerate(counts)
        ]

    def share(people: list[LinkedPerson]) -> float:
        return float(np.average([row.linked for row in people], weights=[row.conversations for row in people]))

    counts = [3, 2, 5, 3, 4, 3, 1, 3, 3]
    first, alike, fewer = side(counts), side(counts), side([3, 1, 5, 3, 2, 3, 1, 3, 3])
    changes = np.repeat([b.linked - a.linked for a, b in zip(first, alike, strict=True)], counts)
    expected = cluster_interval(changes, np.repeat(np.arange(9), counts))
    assert _of_links(first, alike, share(alike) - share(first)) == pytest.approx(expected)
    # With unequal counts: each person left out in turn, which is close to it.
    ends = _of_links(first, fewer, 0.0)
    assert ends is not None
    left_out = [share(fewer[:n] + fewer[n + 1 :]) - share(first[:n] + first[n + 1 :]) for n in range(9)]
    jackknife = np.sqrt(8 / 9 * np.sum((np.array(left_out) - np.mean(left_out)) ** 2))
    assert ends[1] / t_quantile(8, 0.975) == pytest.approx(jackknife, rel=0.25)
    assert _of_links(first, fewer[1:], 0.0) is None


def written(folder: Path, results: Results) -> Path:
    folder.mkdir()
    write_results(folder, results)
    return folder


def test_every_setting_and_attacker_that_differs_is_named(tmp_path: Path) -> None:
    base = sample()
    first = written(tmp_path / "a", base)
    changed = replace(
        base,
        settings={**base.settings, "precision": 20.0, "lengths": [1, 3]},
        attackers={**base.attackers, "informed": attacker("informed", eer(20))},
    )
    ignorant = replace(base.attackers["ignorant"], backend="plda")
    second = written(tmp_path / "b", replace(changed, attackers={**changed.attackers, "ignorant": ignorant}))
    warnings = " | ".join(sentences(compare([first, second]).warnings))
    assert "The setting precision differs: 10 (a), 20 (b)" in warnings
    assert "The setting lengths differs: none (a), 1, 3 (b)" in warnings
    assert "The informed attacker was run only in b" in warnings
    assert "The ignorant attacker uses different methods" in warnings
    assert "recordings of the same people" not in warnings


def test_holms_rule_over_all_differences(tmp_path: Path) -> None:
    base = sample()
    near, far = eer(30.0, 1.0), eer(32.0, 1.0)
    first = written(tmp_path / "a", replace(base, attackers={"ignorant": attacker("ignorant", near)}))
    second = written(tmp_path / "b", replace(base, attackers={"ignorant": attacker("ignorant", far)}))
    (alone,) = compare([first, second]).differences[ComparedFigure("EER", "ignorant")]
    assert alone.interval == pytest.approx((2 - 2**0.5, 2 + 2**0.5))
    assert alone.extra["sure"]
    names = ["informed", "lazy-informed", "procrustes", "semi-informed", "wasserstein-procrustes"]
    others = {name: attacker(name, link(30.0, low=20.0, high=40.0), eer(30.0)) for name in names}
    for number, point in enumerate((near, far)):
        results = replace(base, attackers={"ignorant": attacker("ignorant", point), **others})
        write_results((first, second)[number], results)
    among_many = compare([first, second]).differences[ComparedFigure("EER", "ignorant")][0]
    assert among_many.extra["p_adjusted"] == pytest.approx(11 * alone.extra["p_adjusted"])
    assert not among_many.extra["sure"]


def test_nothing_to_compare(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", sample())
    with pytest.raises(InputError, match="one run can't be compared"):
        compare([folder])
    other = written(tmp_path / "b", replace(sample(), attackers={}, parts={}, criteria={}))
    with pytest.raises(InputError, match="nothing in common"):
        compare([folder, other])


def test_a_table_that_is_not_of_this_run_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "noise", tmp_path / "noise")
    shutil.copy(folder / "partly" / "tables" / "scores-ignorant.parquet", tmp_path / "noise" / "tables")
    with pytest.raises(InputError, match="not the one that the run wrote"):
        compare([folder / "partly", tmp_path / "noise"])


def test_the_command(folder: Path) -> None:
    outcome = CliRunner().invoke(app, ["compare", str(folder / "partly"), str(folder / "noise"), "--resamples", "20"])
    assert outcome.exit_code == 0, outcome.output
    text = " ".join(outcome.stdout.split())
    assert text.startswith("noise against partly partly: ")
    assert "noise against partly: ignorant attacker measure partly noise difference" in text
    assert "] * " in text  # a significant difference is marked
    words = ["compare", str(folder / "partly"), str(folder / "noise"), "--resamples", "20", "--json"]
    form = json.loads(CliRunner().invoke(app, words).stdout)
    assert form["differences"]["ignorant: EER"][0]["method"] == "paired by speaker"
    assert len(form["summary"]) == 3


def test_a_folder_that_the_terminal_can_not_spell(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "noise", tmp_path / "nöise 語")
    words = [sys.executable, "-m", "veilmeter.cli.main", "compare", str(folder / "partly"), str(tmp_path / "nöise 語")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run([*words, "--table", "--resamples", "10"], capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


def runs_with(*attackers: dict[str, Any]) -> list[Any]:
    return [run_with(attackers=tables, seed=0) for tables in attackers]


def run_with(**settings: Any) -> Any:
    return SimpleNamespace(settings=settings, incidental=("title", "attacker_run", "attackers.scores"))


def test_what_names_or_places_a_run_is_no_difference() -> None:
    assert differing_settings([run_with(title="a", attacker_run=["x"]), run_with(title="b", attacker_run=["y"])]) == {}


def test_nothing_is_no_difference_however_it_is_written() -> None:
    assert differing_settings([run_with(option=None, title="", by=[]), run_with(option=[], title="b", by=None)]) == {}
    assert differing_settings([run_with(option=None), run_with(option=["a=1"])]) == {"option": [None, ["a=1"]]}


def test_files_of_an_attacker_are_no_difference() -> None:
    table = {"backend": None, "original": [], "trials": []}
    same = runs_with({"ignorant": {**table, "scores": ["a.txt"]}}, {"ignorant": {**table, "scores": ["b.txt"]}})
    assert differing_settings(same) == {}


def test_what_was_chosen_for_an_attacker_is_said_in_words() -> None:
    (values,) = differing_settings(
        runs_with({"informed": {"backend": "plda", "lda": None}}, {"informed": {}, "ignorant": {}})
    ).values()
    assert [_text_of(value) for value in values] == ["informed: backend plda", "informed, ignorant"]


@pytest.mark.parametrize("trustworthy", [True, False])
def test_a_level_that_is_not_to_be_relied_on_is_not_told_alone(trustworthy: bool) -> None:
    results = sample()
    told = replace(results, verdict=replace(results.verdict, trustworthy=trustworthy))
    (first, *_) = compare([told, told], resamples=10).summary
    assert ("risk, but this result is not trustworthy." in text(first)) is not trustworthy


def test_the_summary_compares_like_with_like() -> None:
    """The worst case may be that of a group; what holds for everybody comes first."""
    results = sample()
    worst = replace(results.criteria["linking"], group={"gender": "f"})
    grouped = replace(results, criteria={**results.criteria, "linking": worst})
    for told, expected in ((results, 1), (grouped, 2)):
        (first, *_) = compare([told, told], resamples=10).summary
        assert [finding.code for finding in first].count("linking") == expected
