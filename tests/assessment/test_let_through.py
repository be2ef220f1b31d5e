"""A few recordings that were hardly changed are not lost among many: ten of a thousand are found."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter import assess
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.vector_checks import let_through
from veilmeter.results import trust
from veilmeter.results.model import Results
from veilmeter.wording import sentence

PEOPLE, RECORDINGS, DIMENSION = 100, 10, 48


def sides(seed: int, kept: int) -> list[Embeddings]:
    """Originals, and noise in place of all recordings but `kept`."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(PEOPLE), RECORDINGS)
    shape = (len(whose), DIMENSION)
    original = rng.standard_normal((PEOPLE, DIMENSION))[whose] + 0.6 * rng.standard_normal(shape)
    anonymized = rng.standard_normal(shape)
    rows = rng.choice(len(whose), kept, replace=False)
    anonymized[rows] = original[rows] + 0.3 * rng.standard_normal((kept, DIMENSION))
    names = [f"s{person:03d}" for person in whose]
    ids = [f"{name}-{row % RECORDINGS}" for row, name in enumerate(names)]
    return [Embeddings(vectors, ids, names) for vectors in (original, anonymized)]


def run(seed: int, kept: int) -> Results:
    return assess(
        *sides(seed, kept), attackers=["ignorant"], measures=["scores", "linkability"], resamples=20, seed=seed
    ).results


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ten_of_a_thousand_are_found(seed: int) -> None:
    results = run(seed, 10)
    assert results.verdict.level == "raised"
    disclosure = results.criteria["disclosure"]
    assert disclosure.level == "raised"
    assert "above all comparisons of different people" in sentence(disclosure.finding)
    check = next(check for check in results.checks if check.name == trust.CHANGED)
    assert check.failed
    assert "10 of 1,000 anonymized recordings are far more like the original" in sentence(check.finding)


def test_nothing_is_found_where_nothing_was_let_through() -> None:
    results = run(3, 0)
    assert results.verdict.level == "low"
    assert results.verdict.trustworthy
    assert sum(bool(np.any(let_through(*sides(seed, 0)))) for seed in range(10)) == 0
