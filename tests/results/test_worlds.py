"""A small part of the simulation benchmark: the whole is `python -m benchmarks.worlds`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.world_cases import WORLDS, Truth, draw_rotation
from benchmarks.world_coverage import ReferenceDraw, covers, covers_everywhere, draw_reference, wanted_references
from benchmarks.world_outcomes import ATTACKERS, OPTIONS, Outcome, assess_world, quickly
from benchmarks.world_traps import TRAPS
from benchmarks.worlds import read_kept, summary, tasks

from veilmeter import assess
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.results.trust import OWN_IDS

FAST = {"lengths": [1, 3], "measures": ["scores", "linkability"], "resamples": 30}


@pytest.mark.parametrize(
    ("world", "people", "attackers"),
    [
        ("10 % unprotected", 40, ("ignorant",)),
        ("rotation", 20, ("lazy-informed",)),
        ("one gender", 20, ("ignorant",)),
        ("few sessions", 30, ("ignorant",)),
        ("norm", 30, ("lazy-informed",)),
        ("deaf", 20, ("ignorant",)),
    ],
)
def test_people_who_can_be_recognized_are_never_called_safe(
    world: str, people: int, attackers: tuple[str, ...]
) -> None:
    assert not assess_world(world, people, 1, attackers, FAST).falsely_reassuring


@pytest.mark.parametrize("world", ["mixed ids, fainter", "mixed people, rotation", "mixed within gender"])
def test_ids_in_the_wrong_order_are_noticed(world: str) -> None:
    outcome = assess_world(world, 24, 1, ("ignorant", "lazy-informed"), FAST)
    assert OWN_IDS in outcome.distrust
    assert not outcome.trustworthy
    assert not outcome.untrue


@pytest.mark.parametrize(
    ("world", "people", "attackers"),
    [
        ("perfect", 24, ("ignorant", "lazy-informed")),
        ("new voices", 24, ("ignorant", "lazy-informed")),
        ("one voice", 20, ("ignorant", "lazy-informed")),
        ("copies", 20, ("ignorant", "lazy-informed")),
        ("released copies", 20, ("ignorant", "lazy-informed")),
        ("perfect, unequal", 30, ("adaptive",)),
    ],
)
def test_nobody_is_trustworthily_called_recognizable(world: str, people: int, attackers: tuple[str, ...]) -> None:
    outcome = assess_world(world, people, 3, attackers, FAST)  # one seed in twenty may be called recognizable by chance
    assert not outcome.false_alarm
    if world in ("copies", "released copies"):
        assert "no copies in enrollment and trials" in outcome.distrust


@pytest.mark.parametrize(
    ("world", "people"),
    [("unknown people", 60), ("gender", 60), ("accents", 100), ("run with another key", 60), ("own voices", 60)],
)
def test_findings_agree_with_the_truth(world: str, people: int) -> None:
    outcome = assess_world(world, people, 1, ("ignorant", "lazy-informed"), FAST)
    assert not outcome.falsely_reassuring
    assert not outcome.false_alarm
    assert not outcome.untrue


def test_a_finding_that_is_not_true_of_a_world_is_noticed() -> None:
    world = TRAPS["own voices"]
    wrong = replace(world, make=lambda voices: replace(world.make(voices), truth=Truth(one_voice=False, own_run=False)))
    with patch.dict(TRAPS, {"own voices": wrong}):
        untrue = assess_world("own voices", 60, 1, ("ignorant", "lazy-informed"), FAST).untrue
    assert "one voice per speaker is claimed for a release that has none" in untrue
    assert "a run of something else passes for one of the anonymizer" in untrue


POINT = "ignorant, 1 utterances among 20"


def outcome_of(level: str, recognizable: bool, trustworthy: bool, seed: int, **more: Any) -> Outcome:
    given: dict[str, Any] = {
        "world": "w",
        "point": POINT,
        "interval": (0.0, 0.1 if seed else 0.01),
        "curve": {POINT: 0.05},
        "chance": 0.05,
        **more,
    }
    return Outcome(
        people=20, seed=seed, recognizable=recognizable, level=level, trustworthy=trustworthy, distrust=(), seconds=0.0,  # type: ignore[arg-type]
        **given,
    )  # fmt: skip


def test_the_benchmark_counts_what_is_wrong() -> None:
    cases = [
        outcome_of("low", True, True, 0),
        outcome_of("low", True, False, 1),
        outcome_of("raised", False, True, 2),
        outcome_of("unknown", False, True, 3),
        outcome_of("high", True, True, 4),
    ]
    assert [case.falsely_reassuring for case in cases] == [True, False, False, False, False]
    assert [case.false_alarm for case in cases] == [False, False, True, False, False]
    assert covers(cases) == [False, True, True, True, True]
    text = "\n".join(summary(cases))
    assert "false reassurance: 1 of 3" in text
    assert "trusted false alarms: 1 of 2" in text
    assert "80.0% of 5" in text


def test_a_second_sitting_reads_the_results_of_the_first(tmp_path: Path) -> None:
    past = [outcome_of("low", True, True, 0), outcome_of("high", True, False, 1)]
    draws = [ReferenceDraw("w", 20, 1000, {POINT: 0.04}, 0.5)]
    kept = tmp_path / "benchmark.jsonl"
    rows = [*map(asdict, past), *map(asdict, draws)]
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_kept(kept) == (past, draws)
    assert read_kept(tmp_path / "nothing") == ([], [])


def test_reference_draws_give_the_figure_of_the_headline() -> None:
    outcome = assess_world("one gender", 20, 1000, ("ignorant",), FAST)
    world, people, seed, attackers = wanted_references([outcome])[0]
    assert attackers == ("ignorant",)
    assert outcome.point.endswith("among 20")
    assert draw_reference(world, people, seed, attackers).curve == outcome.curve


def test_reference_draws_include_attackers_whose_method_may_be_used() -> None:
    informed = outcome_of("high", True, True, 0, point="informed, 1 utterances among 20")
    assert {task[3] for task in wanted_references([informed])} == {
        ("ignorant", "lazy-informed", "informed", "procrustes")
    }
    assert not wanted_references([outcome_of("low", False, True, 0)])  # the truth is what guessing gives


def test_coverage_is_that_of_intervals_whose_truth_is_known() -> None:
    """95 % intervals of a normal variable, each compared with eight draws: 94 to 96 % cover the truth."""
    rng = np.random.default_rng(5)
    outcomes, references = [], []
    for number in range(4000):
        value, *others = rng.normal(0.5, 0.02, 9)
        of_world = {"world": str(number), "curve": {POINT: value}, "interval": (value - 0.0392, value + 0.0392)}
        outcomes.append(outcome_of("high", True, True, number, **of_world))
        references += [
            ReferenceDraw(str(number), 20, 1000 + seed, {POINT: other}, 0.0) for seed, other in enumerate(others)
        ]
    assert 0.94 < np.mean(covers_everywhere(outcomes, references)) < 0.96


def test_where_nobody_is_recognized_the_truth_is_what_guessing_gives() -> None:
    assert covers([outcome_of("low", False, True, 1), outcome_of("low", False, True, 0)]) == [True, False]
    assert (
        covers([outcome_of("low", True, True, 1)], [ReferenceDraw("w", 20, 1000, {POINT: 0.2}, 0.0)]) == []
    )  # one is too few


def test_every_world_is_assessed_once_per_size_and_seed() -> None:
    every = tasks([*WORLDS], {20: (2, 3), 40: (1, 1), 400: (1, 1)})
    assert len(every) == len(set(every))
    assert ("perfect", 20, 1) in every
    assert ("three people", 3, 1) in every
    assert ("perfect", 20, 2) in every
    assert ("rotation", 20, 2) not in every
    assert ("three people", 20, 0) not in every
    assert ("deaf", 400, 0) not in every  # large worlds are few


@pytest.mark.parametrize("kept", [(0.0, 0.0), (0.0, 0.3)])
def test_intervals_of_differences_hold_the_truth_also_near_chance(kept: tuple[float, float]) -> None:
    """Of 40 worlds, 95 % intervals miss at most 6 (99.5 %)."""
    from benchmarks.bench_coverage_compare import coverage

    shares = coverage(40, 14, 3, kept)
    assert min(shares.values()) >= 34 / 40, shares


def test_rotations_are_drawn_uniformly() -> None:
    """The trace of a uniformly random rotation is 0 on average, with variance 1."""
    rng = np.random.default_rng(0)
    assert abs(np.mean([np.trace(draw_rotation(rng, 24)) for _ in range(100)])) < 0.4


def test_draws_from_a_finite_set_are_noticed() -> None:
    """Trying all rotations links everybody; the attackers that run try none of them."""
    outcome = assess_world("codebook", 60, 0, ("ignorant", "adaptive"), FAST)
    assert not outcome.falsely_reassuring
    assert "no finite set left untried" in outcome.distrust


def test_a_finite_set_that_the_release_names_is_noticed_whatever_the_noise() -> None:
    """Few people, and no run of the attackers: nothing else would show it."""
    outcome = assess_world("noisy codebook, named", 20, 0, ("ignorant", "adaptive"), FAST)
    assert not outcome.falsely_reassuring
    assert "no finite set left untried" in outcome.distrust


def test_a_wrong_run_does_not_show_that_only_the_gender_is_kept() -> None:
    """Every voice is rotated alike, and the attackers' run has another rotation: attackers who find no more than the
    gender have missed the rest."""
    rng = np.random.default_rng([1, 45, 32])
    own = np.repeat(np.arange(45), 6)
    original = unit(rng.standard_normal((45, 32))[own] + rng.standard_normal((270, 32)))
    runs = [unit(original @ draw_rotation(rng, 32) + 0.02 * rng.standard_normal(original.shape)) for _ in range(2)]
    names = [f"p{person:03d}" for person in own]
    sides = [
        Embeddings(
            rows,
            [f"{name}-{row}" for row, name in enumerate(names)],
            names,
            {"gender": ["fm"[person % 2] for person in own]},
        )
        for rows in (original, *runs)
    ]
    roles = dict(zip(("original", "anonymized", "attacker_run"), sides, strict=True))
    with quickly():
        results = assess(**roles, attackers=list(ATTACKERS), seed=1, by=["gender"], **OPTIONS).results
    assert "only_attribute_kept" not in [finding.code for finding in results.verdict.headline]


def test_nobody_is_listed_where_people_of_one_accent_are_alike() -> None:
    """One in seven highest scores is the right person's by chance, as seven people have each accent."""
    outcome = assess_world("accents of seven", 150, 1)
    assert outcome.level == "raised"
    assert not outcome.untrue


def test_one_person_who_is_found_is_not_an_attribute_that_is_kept() -> None:
    """Within women and men too few are left to show it, but what is found among everybody is not gone there."""
    outcome = assess_world("one faint person", 40, 2)
    assert outcome.level == "raised"
    assert not outcome.untrue


@pytest.mark.parametrize(("world", "people"), [("small noisy codebook", 40), ("noisy codebook", 100)])
def test_noisy_draws_that_nobody_names_are_not_called_low_and_trusted(world: str, people: int) -> None:
    outcome = assess_world(world, people, 0, ("ignorant", "lazy-informed"), FAST)
    assert "no finite set left untried" in outcome.distrust
    assert not outcome.falsely_reassuring


@pytest.mark.parametrize("world", ["weaker run", "shared voices"])
def test_a_wrong_run_or_new_voices_are_not_repeated_draws(world: str) -> None:
    outcome = assess_world(world, 60, 0, ("ignorant", "lazy-informed"), FAST)
    assert "no finite set left untried" not in outcome.distrust
    assert not outcome.untrue
    assert outcome.level in (("low", "unknown") if world == "weaker run" else ("raised",))
