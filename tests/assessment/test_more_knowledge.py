"""In an assessment: attackers who know more never do worse, and what more effort would bring is measured."""

from __future__ import annotations

import numpy as np

from veilmeter.assessment import assess
from veilmeter.core.estimate import Estimates
from veilmeter.data.embeddings import Embeddings

PEOPLE, EACH, DIMENSION = 12, 6, 10
RNG = np.random.default_rng(5)
CODES = np.repeat(np.arange(PEOPLE), EACH)
VOICES = RNG.standard_normal((PEOPLE, DIMENSION))[CODES] + 0.3 * RNG.standard_normal((PEOPLE * EACH, DIMENSION))
DIRECTIONS = RNG.standard_normal((3, DIMENSION))
FAST = {"measures": ["scores", "linkability"], "intervals": False, "lengths": [1], "resamples": 50}


def speech(vectors: np.ndarray, tag: str = "s") -> Embeddings:
    codes = np.arange(len(vectors)) // EACH
    return Embeddings(vectors, [f"{tag}{row}" for row in range(len(vectors))], [f"{tag}-{code}" for code in codes])


def copies() -> np.ndarray:
    drawn = 2 * RNG.standard_normal((len(VOICES), 3)) @ DIRECTIONS
    return VOICES + drawn + 0.2 * RNG.standard_normal(VOICES.shape)


def test_an_adaptation_that_fails_is_not_used() -> None:
    """Trained on speech without anybody in it, the informed attacker is worse than the ignorant one."""
    misleading = RNG.standard_normal((60, DIMENSION)) * np.geomspace(1e-3, 1e3, DIMENSION)
    results = assess(
        speech(VOICES), speech(VOICES + 0.1 * RNG.standard_normal(VOICES.shape)),
        train_anonymized=speech(misleading, "t"), attackers=["ignorant", "informed"], **FAST,
    ).results  # fmt: skip
    informed, ignorant = results.attackers["informed"], results.attackers["ignorant"]
    assert informed.details["taken_over_from"] == "ignorant"
    # With their intervals and what luck alone would give: those of the scores that they come from.
    assert list(informed.estimates) == list(ignorant.estimates)
    assert informed.backend == results.attackers["ignorant"].backend
    assert informed.details["own_estimates"]["eer"]["value"] > ignorant.estimates["eer"].value  # type: ignore[union-attr]
    replaced = [found.values for found in results.warnings if found.code == "method_replaced"]
    assert [(values["attacker"], values["other"]) for values in replaced] == [("informed", "ignorant")]


def test_the_adaptive_attacker_and_what_more_effort_brings() -> None:
    results = assess(
        speech(VOICES), speech(copies()), attacker_run=[speech(copies()), speech(copies())],
        attackers=["lazy-informed", "adaptive"], **FAST,
    ).results  # fmt: skip
    adaptive, lazy = (results.attackers[name].estimates for name in ("adaptive", "lazy-informed"))
    assert adaptive["eer"].value < lazy["eer"].value - 10  # type: ignore[union-attr]
    curve = adaptive["learning_linkability"]
    assert isinstance(curve, Estimates)
    assert [point.at["runs"] for point in curve if "runs" in point.at] == [1, 2]
    assert [point.at["recordings"] for point in curve if "recordings" in point.at] == [1, 2, 3]
    everything = adaptive.points("linkability").filter(speakers=PEOPLE).only().value
    assert curve.filter(runs=2).only().value == everything
    assert results.criteria["linking"].attacker == "adaptive"
    assert "learning_eer" not in lazy
