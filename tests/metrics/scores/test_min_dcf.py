"""minDCF against every threshold tried one by one, its invariances, and that one file brings it everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.scores.rates import rates
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.data.scores import Scores
from veilmeter.metrics.measure import MEASURES
from veilmeter.metrics.scores.min_dcf import PRIORS, min_dcf
from veilmeter.metrics.scores.summary import measure, measure_stream
from veilmeter.results.limits import parse_limit

scores = st.lists(st.integers(-6, 6).map(float) | st.floats(-50, 50), min_size=1, max_size=40)
priors = st.sampled_from([0.005, *PRIORS, 0.5, 0.9])
NAMES = ("min_dcf@p=0.01", "min_dcf@p=0.05")


@given(scores, scores, priors)
def test_it_is_the_least_cost_of_all_thresholds(t: list[float], n: list[float], prior: float) -> None:
    costs = [prior * miss + (1 - prior) * false for miss, false in zip(*rates(t, n), strict=True)]
    assert min_dcf(t, n, prior) == pytest.approx(min(costs) / min(prior, 1 - prior), abs=1e-12)


@given(scores, scores, priors)
def test_it_lies_between_0_and_1_and_depends_on_ranks_only(t: list[float], n: list[float], prior: float) -> None:
    cost = min_dcf(t, n, prior)
    assert 0 <= cost <= 1
    rank = {x: float(number) for number, x in enumerate(sorted({*t, *n}))}
    assert min_dcf([rank[x] ** 3 for x in t], [rank[x] ** 3 for x in n], prior) == pytest.approx(cost, abs=1e-12)


@given(scores, scores)
def test_at_even_priors_it_is_at_most_twice_the_eer(t: list[float], n: list[float]) -> None:
    from veilmeter.metrics.scores.eer import eer

    assert min_dcf(t, n, 0.5) <= 2 * eer(t, n) / 100 + 1e-12


@pytest.mark.parametrize("prior", PRIORS)
def test_separated_scores_cost_nothing_and_noise_as_much_as_no_scores(prior: float) -> None:
    assert min_dcf([2.0, 3.0], [0.0, 1.0], prior) == 0
    assert min_dcf([0.0, 1.0], [2.0, 3.0], prior) == 1
    assert min_dcf([1.0] * 9, [1.0] * 99, prior) == 1
    rng = np.random.default_rng(0)
    assert min_dcf(rng.normal(size=20_000), rng.normal(size=400_000), prior) > 0.995


def correlated(people: int = 12, each: int = 6, shift: float = 2.0) -> Scores:
    rng = np.random.default_rng(1)
    names = [f"p{i}" for i in range(people)]
    voices = rng.normal(0, 0.4, (people, 1)) + rng.normal(size=(people, people * each))
    return Scores.from_matrix(voices + shift * np.eye(people).repeat(each, axis=1), names, np.repeat(names, each))


def test_it_has_interval_chance_and_stream() -> None:
    scores = correlated()
    page = measure(scores, resamples=100)
    streamed = measure_stream([(scores.values[i::7], scores.is_target[i::7]) for i in range(7)])
    for name in NAMES:
        point = page[name]
        assert point.interval is not None
        assert point.interval[0] <= point.value <= point.interval[1]
        assert point.null is not None
        assert point.null > 0.9
        assert point.inside_null is False
        assert streamed[name].value == pytest.approx(point.value, abs=1e-12)
    assert page[NAMES[0]].label == "minDCF at prior 1 %"


def test_it_is_in_the_command_and_can_be_gated(tmp_path: Path) -> None:
    scores = correlated()
    lines = [
        f"{enrolled} {tested}-{number} {value} {'target' if enrolled == tested else 'nontarget'}"
        for number, (enrolled, tested, value) in enumerate(
            zip(
                *(np.array(scores.names)[codes] for codes in (scores.enroll_speaker, scores.test_speaker)),
                scores.values,
                strict=True,
            )
        )
    ]
    path = tmp_path / "scores.txt"
    path.write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(app, ["measure", str(path), "--json", "--resamples", "50"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["estimates"]
    expected = measure(scores, intervals=False)
    assert [found[name]["value"] for name in NAMES] == pytest.approx([expected[name].value for name in NAMES])
    table = CliRunner().invoke(app, ["measure", str(path), "--stream"]).output
    assert "minDCF at prior 5 %" in table
    limit = parse_limit("min_dcf@p=0.01=0.9", "min")
    assert (limit.measure, limit.bound) == ("min_dcf@p=0.01", 0.9)


def test_it_needs_no_entry_elsewhere() -> None:
    """No other file of the package names it."""
    root = Path(__file__).parents[3] / "src" / "veilmeter"
    named = [path.name for path in root.rglob("*.py") if "min_dcf" in path.read_text(encoding="utf-8")]
    assert named == ["min_dcf.py"]
    assert "min_dcf@p" in MEASURES
