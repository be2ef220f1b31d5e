"""A gender is not a person: where nothing but an attribute is kept, the risk is raised at most, and it is named."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter import assess
from veilmeter.data.embeddings import Embeddings
from veilmeter.results.model import Results
from veilmeter.wording import text

PEOPLE, RECORDINGS, DIMENSION = 100, 6, 32


def run(seed: int, *, attribute: str, known: bool = True, women_kept: bool = False) -> Results:
    """Everybody's recordings are noise around one of two vectors; with `women_kept` half of the people keep theirs."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(PEOPLE), RECORDINGS)
    shape = (len(whose), DIMENSION)
    kind = rng.standard_normal((2, DIMENSION))[whose % 2]
    original = kind + rng.standard_normal((PEOPLE, DIMENSION))[whose] + 0.6 * rng.standard_normal(shape)

    def anonymized() -> np.ndarray:
        changed = kind + rng.standard_normal(shape)
        return np.where((whose % 2 == 0)[:, None], original + 0.2 * changed, changed) if women_kept else changed

    names = [f"s{person:02d}" for person in whose]
    ids = [f"{name}-{row % RECORDINGS}" for row, name in enumerate(names)]
    columns = {attribute: ["ab"[person % 2] for person in whose]} if known else {}
    release, own = (Embeddings(anonymized(), ids, names, columns) for _ in range(2))
    return assess(
        Embeddings(original, ids, names, columns), release, attacker_run=own, lengths=[1, 3], resamples=20, seed=seed,
        attackers=["ignorant", "lazy-informed"], measures=["scores", "linkability", "singling-out"],
        by=[attribute] if known else None,
    ).results  # fmt: skip


@pytest.mark.parametrize("attribute", ["gender", "accent"])
@pytest.mark.parametrize("seed", [0, 1])
def test_only_an_attribute_is_kept(seed: int, attribute: str) -> None:
    results = run(seed, attribute=attribute)
    assert results.verdict.level == "raised"
    assert results.verdict.trustworthy
    assert f"only the {attribute} is kept" in text(results.verdict.headline)


def test_who_is_found_among_two_only_is_not_recognized() -> None:
    """Nobody said what the kept attribute is."""
    results = run(2, attribute="gender", known=False)
    assert results.verdict.level == "raised"
    assert "is kept" not in text(results.verdict.headline)


def test_a_group_that_is_recognized_is_high() -> None:
    results = run(3, attribute="gender", women_kept=True)
    assert results.verdict.level == "high"
    assert "is kept" not in text(results.verdict.headline)


@pytest.mark.parametrize("seed", [0, 1])
def test_two_attributes_kept_list_nobody(seed: int) -> None:
    """Gender and accent are kept and nothing else: whoever is found often is found among eight people."""
    rng = np.random.default_rng([seed, 2])
    whose = np.repeat(np.arange(80), RECORDINGS)
    gender, accent = (whose // 5) % 2, whose % 5
    kind = rng.standard_normal((5, DIMENSION))[accent] + rng.standard_normal((2, DIMENSION))[gender]
    voice = rng.standard_normal((80, DIMENSION))[whose] + 0.6 * rng.standard_normal((len(whose), DIMENSION))
    names = [f"s{person:02d}" for person in whose]
    ids = [f"{name}-{row % RECORDINGS}" for row, name in enumerate(names)]
    columns = {"gender": ["fm"[value] for value in gender], "accent": [f"a{value}" for value in accent]}
    sides = [
        Embeddings(rows, ids, names, columns)
        for rows in (voice, *(kind + rng.standard_normal(kind.shape) for _ in range(2)))
    ]
    results = assess(
        *sides[:2], attacker_run=sides[2], lengths=[1, 3], resamples=20, seed=seed, by=["gender", "accent"],
        attackers=["ignorant", "lazy-informed", "adaptive"], measures=["scores", "linkability"],
    ).results  # fmt: skip
    assert results.verdict.level == "raised"
    assert not results.people.unprotected
    assert "only the" in text(results.verdict.headline)
