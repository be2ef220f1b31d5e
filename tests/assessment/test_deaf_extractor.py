"""An extractor that does not recognize some people, or some recordings, says nothing about them."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter import assess
from veilmeter.data.embeddings import Embeddings
from veilmeter.report.people import people_table
from veilmeter.results import trust
from veilmeter.results.model import Results
from veilmeter.wording import sentence

PEOPLE, RECORDINGS, DIMENSION = 60, 8, 48
OWN = np.repeat(np.arange(PEOPLE), RECORDINGS)
TAKE = np.tile(np.arange(RECORDINGS), PEOPLE)


def run(unheard: np.ndarray, seed: int = 0, **columns: list[str]) -> Results:
    """Noise in place of every recording; the originals of the `unheard` ones are noise, too."""
    rng = np.random.default_rng(seed)
    shape = (len(OWN), DIMENSION)
    original = rng.standard_normal((PEOPLE, DIMENSION))[OWN] + 0.6 * rng.standard_normal(shape)
    original[unheard] = rng.standard_normal(shape)[unheard]
    names = [f"s{person:03d}" for person in OWN]
    ids = [f"{name}-{take}" for name, take in zip(names, TAKE, strict=True)]
    sides = [Embeddings(rows, ids, names, columns) for rows in (original, rng.standard_normal(shape))]
    return assess(
        *sides, attackers=["ignorant"], measures=["scores", "linkability"], resamples=20, seed=seed, lengths=[1]
    ).results


def check_of(results: Results, name: str) -> trust.Check:
    return next(check for check in results.checks if check.name == name)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_group_that_is_not_recognized(seed: int) -> None:
    """Seven women of sixty: the mean over all looks fine."""
    results = run(OWN < 7, seed, gender=["f" if person < 7 else "m" for person in OWN])
    eer = results.attackers["original"].estimates.single("eer")
    assert eer is not None
    assert eer.value < 15
    assert not results.verdict.trustworthy
    strong = check_of(results, trust.STRONG)
    assert strong.failed
    assert "among people with gender f" in sentence(strong.finding)
    assert "does not recognize people with gender f well enough" in sentence(strong.finding)


def test_single_people_who_are_not_recognized_are_named() -> None:
    results = run((OWN == 3) | (OWN == 11))
    assert not results.verdict.trustworthy
    assert check_of(results, trust.STRONG).passed
    heard = check_of(results, trust.HEARD)
    assert heard.failed
    assert heard.finding.people == ("s003", "s011")
    assert "2 of 60 people (s003 and s011) are not recognized even on original speech" in sentence(heard.finding)
    table = people_table(results)
    assert table.columns[-1].title == "original speech"
    marked = {row.speaker for row in table.rows if row.cells[-1].text == "not recognized"}
    assert marked == {"s003", "s011"}


def test_a_language_that_is_not_recognized() -> None:
    """One recording in eight: too few to move anybody's mean far."""
    languages = ["de" if take == 0 else "en" for take in TAKE]
    results = run(TAKE == 0, language=languages)
    heard = check_of(results, trust.HEARD)
    assert heard.failed
    assert "Recordings with language de are not recognized even on original speech" in sentence(heard.finding)
    assert not results.verdict.trustworthy


def test_everybody_is_recognized() -> None:
    results = run(np.zeros(len(OWN), bool))
    heard = check_of(results, trust.HEARD)
    assert heard.passed
    assert "each of 60 people is recognized" in sentence(heard.finding)
    assert results.verdict.level == "low"
    assert results.verdict.trustworthy
    assert "original speech" not in [column.title for column in people_table(results).columns]
