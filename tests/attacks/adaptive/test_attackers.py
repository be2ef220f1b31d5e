"""The adaptive attacker in worlds with a known truth, and in every awkward case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.attacks.adaptive.worlds import World, linked

from veilmeter.attacks.adaptive.draws import EACH_DRAW
from veilmeter.attacks.adaptive.families import FAMILIES
from veilmeter.attacks.attacker import ATTACKERS, ScoringAttacker, perform
from veilmeter.attacks.material import AttackerRun, Floats, Material
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning
from veilmeter.core.keys import key_of
from veilmeter.data.embeddings import Embeddings
from veilmeter.wording import sentence

ADAPTIVE = ATTACKERS["adaptive"]


def test_it_beats_the_lazy_attacker_and_more_runs_help() -> None:
    shares: dict[str, list[float]] = {"lazy": [], "one": [], "three": []}
    for seed in range(2):
        material, truth = World(people=20, kept=0.5, seed=seed).material(("utterance", "utterance", "utterance"))
        one = replace(material, runs=material.runs[:1])
        shares["lazy"].append(linked(perform(ATTACKERS["centered-lazy"], one).scores, truth))
        shares["one"].append(linked(perform(ADAPTIVE, one).scores, truth))
        shares["three"].append(linked(perform(ADAPTIVE, material).scores, truth))
    lazy, one_run, three = (float(np.mean(values)) for values in shares.values())
    assert lazy + 0.1 < one_run < three


def test_a_draw_per_utterance_beats_a_draw_per_speaker() -> None:
    shares = []
    for draw in ("speaker", "utterance"):
        values = []
        for seed in range(3):
            material, truth = World(people=20, kept=0.5, seed=seed).material((draw,))
            values.append(linked(perform(ADAPTIVE, material).scores, truth))
        shares.append(float(np.mean(values)))
    assert shares[0] < shares[1]


def test_other_people_help() -> None:
    gains = []
    for seed in range(3):
        material, truth = World(people=12, each=2, kept=0.4, others=100, seed=seed).material()
        with_others = linked(perform(ADAPTIVE, material).scores, truth)
        gains.append(with_others - linked(perform(ADAPTIVE, replace(material, others=None)).scores, truth))
    assert float(np.mean(gains)) > 0.05


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("adaptive", "utterance"),
        ("adaptive", "speaker"),
        ("adaptive-unlabeled", "utterance"),
        ("adaptive-pseudonyms", "speaker"),
    ],
)
def test_a_perfect_anonymizer_gives_chance(name: str, draw: str) -> None:
    values, draws = [], 10 if name == "adaptive" else 5
    for seed in range(draws):
        material, truth = World(people=8, each=3, dimension=8, kept=0.0, seed=seed).material((draw,))  # type: ignore[arg-type]
        values.append(linked(perform(ATTACKERS[name], material).scores, truth))
    # A person's recordings share a draw: there are as many independent guesses as people.
    assert abs(float(np.mean(values)) - 1 / 8) < 3.5 * np.sqrt(1 / 8 * 7 / 8 / (8 * draws))


def test_scores_are_likelihood_ratios() -> None:
    """The posterior that they imply is right on average: calibrated on its own data, tested on others'."""
    chosen, right = [], []
    for seed in range(4):
        material, truth = World(people=15, kept=0.5, seed=seed).material(("utterance", "utterance"))
        ratios = perform(ADAPTIVE, material).scores
        odds = np.exp(ratios - np.log(len(material.names) - 1))
        posterior = odds / (1 + odds)
        np.testing.assert_allclose(posterior.sum(axis=0), 1, atol=1e-6)
        chosen.append(posterior.max(axis=0))
        right.append(posterior.argmax(axis=0) == truth)
    assert abs(float(np.mean(chosen)) - float(np.mean(right))) < 0.1


CASES = {
    "one enrollment utterance each": (World(each=1), ("utterance",), {}),
    "one enrollment utterance each in two runs": (World(each=1), ("utterance", "utterance"), {}),
    "one utterance, draws per speaker": (World(each=1), ("speaker", "speaker"), {}),
    "two speakers": (World(people=2, each=3), ("utterance",), {}),
    "two speakers, one draw each": (World(people=2, each=2), ("speaker",), {}),
    "unequal counts": (World(people=6), ("utterance", "speaker"), {"counts": [1, 2, 9, 1, 4, 3]}),
    "more dimensions than samples": (World(people=5, each=2, dimension=60), ("utterance",), {}),
    "originals and copies of different extractors": (World(people=10), ("utterance",), {"copied": 11}),
    "other people": (World(people=8, others=5), ("speaker",), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_works(case: str) -> None:
    world, draws, options = CASES[case]
    values, chance = [], 1 / world.people
    for seed in range(2):
        material, truth = replace(world, kept=1.0, seed=seed).material(draws, **options)
        outcome = perform(ADAPTIVE, material)
        assert outcome.scores.shape == (world.people, len(truth))
        values.append(linked(outcome.scores, truth))
    if world.people > 2:  # of two people, two draws may say nothing
        assert float(np.mean(values)) > 2 * chance


def without(run: AttackerRun, dropped: set[str]) -> AttackerRun:
    return replace(run, vectors=run.vectors.take(np.array([u not in dropped for u in run.vectors.utterances])))


def test_a_run_that_lacks_recordings_is_used_for_the_rest() -> None:
    material, truth = World(people=12, kept=0.6).material(("utterance", "utterance"))
    dropped = {"s0-0", "s0-1", "s0-2", "s0-3", "s5-2"}
    partial = replace(material, runs=(material.runs[0], without(material.runs[1], dropped)))
    outcome = perform(ADAPTIVE, partial)
    assert outcome.details["runs"][1]["recordings"] == 12 * 4 - 5
    lost = {found.code: found.values for found in outcome.findings}["run_lacks_recordings"]
    assert (lost["count"], lost["recordings"]) == (5, 48)
    alone = linked(perform(ADAPTIVE, replace(material, runs=material.runs[:1])).scores, truth)
    assert linked(outcome.scores, truth) >= alone - 0.1


def test_people_without_any_copy_are_still_found() -> None:
    shares = []
    for seed in range(2):
        material, truth = World(people=20, kept=1.0, others=60, seed=seed).material()
        gone = {
            u
            for u, s in zip(material.candidates.utterances, material.candidates.speakers, strict=True)
            if s in ("s1", "s2")
        }
        partial = replace(material, runs=(without(material.runs[0], gone),))
        outcome = perform(ADAPTIVE, partial)
        assert warning("candidates_without_copy", count=2, candidates=20) in outcome.findings
        theirs = np.isin(truth, (1, 2))
        shares.append(linked(outcome.scores[:, theirs], truth[theirs]))
    assert float(np.mean(shares)) > 0.3


def test_without_the_anonymizer_it_says_so() -> None:
    material, _ = World(people=10, kept=0.7).material()
    alone = perform(ADAPTIVE, replace(material, runs=()))
    assert warning("anonymizer_not_run") in alone.findings
    assert set(alone.details["weights"]) == {"ignorant"}
    released = replace(material, runs=(replace(material.runs[0], own=False),))
    assert warning("enrolled_from_released_run") in perform(ADAPTIVE, released).findings
    both = replace(material, runs=(replace(material.runs[0], own=False), material.runs[0]))
    assert [run["own"] for run in perform(ADAPTIVE, both).details["runs"]] == [True]


def test_conversations_are_sums_of_their_recordings() -> None:
    material, truth = World(people=8, trials_each=6, kept=0.3).material()
    rows = np.arange(len(truth)).reshape(8, 6)
    both = replace(material, conversations=(np.arange(len(truth))[:, None], rows))
    single, whole = both.split(np.asarray(perform(ADAPTIVE, both).scores))
    # A ratio gives the posterior, and posteriors of independent recordings multiply.
    logs = single - np.log(len(both.names) - 1)
    posteriors = -np.log1p(np.exp(-logs))
    summed = np.stack([posteriors[:, row].sum(axis=1) for row in rows], axis=1)
    np.testing.assert_array_equal(summed.argsort(axis=0)[-1], whole.argmax(axis=0))
    assert linked(whole, np.arange(8)) >= linked(single, truth)


def test_looking_at_the_whole_release_or_at_pseudonyms_helps() -> None:
    shares = {name: [] for name in ("adaptive", "adaptive-unlabeled", "adaptive-pseudonyms")}  # type: ignore[var-annotated]
    for seed in range(3):
        material, truth = World(people=12, kept=0.4, trials_each=6, seed=seed).material(("utterance", "utterance"))
        for name, values in shares.items():
            values.append(linked(perform(ATTACKERS[name], material).scores, truth))
    alone, together, pseudonyms = (float(np.mean(values)) for values in shares.values())
    assert alone < together
    assert alone < pseudonyms
    assert all(ATTACKERS[name].apart for name in ("adaptive-unlabeled", "adaptive-pseudonyms"))
    assert not ADAPTIVE.apart


def test_every_method_is_an_attacker() -> None:
    material, truth = World(people=10, others=40, kept=1.0).material(("utterance", "utterance"))
    names = {"lazy": "centered-lazy", "ignorant": "centered-ignorant"}
    for family in FAMILIES:
        attack = ATTACKERS[names.get(family, family)]
        if family == EACH_DRAW.name:  # no draw is named here
            with pytest.raises(InputError, match="none of the methods each-draw can be fitted"):
                perform(attack, material)
            continue
        outcome = perform(attack, material)
        assert all(choice.startswith(family) for choice in outcome.details["weights"])
        if family != "ignorant":  # the world turns vectors, so originals and copies can't be compared as they are
            assert linked(outcome.scores, truth) > 0.15


def test_a_leak_in_the_length_of_vectors_is_found() -> None:
    rng = np.random.default_rng(0)
    speakers = np.repeat(np.arange(8), 6)
    lengths = np.geomspace(1, 8, 8)[speakers] * np.exp(0.05 * rng.standard_normal(48))

    def noise() -> np.ndarray:
        x = rng.standard_normal((48, 16))
        return x / np.linalg.norm(x, axis=1, keepdims=True) * lengths[:, None]

    ids = [f"u{number}" for number in range(48)]
    candidates = Embeddings(noise(), ids, [f"s{speaker}" for speaker in speakers])
    run = AttackerRun(vectors=candidates.with_vectors(noise()), draw="utterance")
    material = Material(
        candidates=candidates, trials=noise().astype(np.float32), conversations=(np.arange(48)[:, None],), runs=(run,)
    )
    assert linked(perform(ADAPTIVE, material).scores, speakers) > 0.25


def test_several_extractors_are_fused() -> None:
    shares = []
    for seed in range(2):
        first, truth = World(people=12, kept=0.5, seed=seed).material(("utterance", "utterance"))
        rng = np.random.default_rng(seed)
        # The second extractor hears the same recordings with noise of its own.
        blur = [
            x + 0.7 * rng.standard_normal(x.shape) for x in (first.trials, *(run.vectors.vectors for run in first.runs))
        ]
        second = replace(
            first,
            trials=blur[0].astype(np.float32),
            runs=tuple(
                replace(run, vectors=run.vectors.with_vectors(x)) for run, x in zip(first.runs, blur[1:], strict=True)
            ),
        )
        outcome = perform(ADAPTIVE, replace(second, views={"other": first}))
        assert any("extractor 2" in choice for choice in outcome.details["weights"])
        shares.append(linked(outcome.scores, truth) - linked(perform(ADAPTIVE, second).scores, truth))
    assert float(np.mean(shares)) > 0


def test_an_extractor_that_was_trained_on_the_copies_is_not_tested_on_them() -> None:
    """It knows them by heart, and hears nothing in new recordings: whoever believes the test is lost."""
    material, truth = World(people=12, kept=0.5).material(("utterance", "utterance"))
    rng = np.random.default_rng(0)
    by_heart = 10 * np.eye(12)[material.candidates.codes]
    noisy = [by_heart + 0.1 * rng.standard_normal(by_heart.shape) for _ in material.runs]
    overfitted = replace(
        material,
        trials=rng.standard_normal((len(material.trials), 12)).astype(np.float32),
        runs=tuple(
            replace(run, vectors=run.vectors.with_vectors(x)) for run, x in zip(material.runs, noisy, strict=True)
        ),
    )
    alone = linked(perform(ADAPTIVE, material).scores, truth)
    believed = linked(perform(ADAPTIVE, replace(material, views={"tuned": overfitted})).scores, truth)
    outcome = perform(ADAPTIVE, replace(material, views={"tuned": replace(overfitted, seen=True)}))
    assert believed < 0.5 * alone
    assert linked(outcome.scores, truth) > 0.8 * alone
    assert not any("extractor 2" in name for name in outcome.details["validation"]["methods"])


def test_it_does_not_depend_on_what_else_was_released() -> None:
    material, _ = World(people=10).material()
    whole = np.asarray(perform(ADAPTIVE, material).scores)
    few = replace(material, trials=material.trials[:7], conversations=(np.arange(7)[:, None],), pseudonyms=None)
    np.testing.assert_allclose(perform(ADAPTIVE, few).scores, whole[:, :7], atol=1e-4)


class Guess(ScoringAttacker):
    """A plug-in attack in five lines."""

    name = "guess"
    about = "guesses"

    def __init__(self, shape: tuple[int, int] | None = None) -> None:
        self.shape = shape

    def scores(self, material: Material) -> Floats:
        shape = self.shape or (len(material.names), material.columns)
        return np.random.default_rng(material.seed).standard_normal(shape)


def test_a_strangers_attack_is_checked() -> None:
    material, _ = World(people=5).material()
    assert perform(Guess(), material).scores.shape == (5, 20)
    with pytest.raises(InputError, match=r"shape \(2, 2\), not \(5, 20\)"):
        perform(Guess((2, 2)), material)
    ATTACKERS.register("guess", Guess())
    assert ATTACKERS["guess"].name == "guess"
    with pytest.raises(InputError, match="is not an attack"):
        ATTACKERS.register("no attack", "just a word")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="did you mean 'two-view-lda'"):
        ATTACKERS["two-view-lds"]


def test_what_can_not_be_done_is_said() -> None:
    material, _ = World(people=5).material()
    unknown = replace(material, pseudonyms=None)
    short = replace(material, trials=material.trials[:, :5])
    for name, part, reason in (
        ("adaptive-pseudonyms", unknown, "share a pseudonym"),
        ("adaptive", short, "copies have 16 numbers per vector, the released vectors 5"),
    ):
        attacker = ATTACKERS[name]
        assert isinstance(attacker, ScoringAttacker)
        missing = attacker.missing(part)
        assert isinstance(missing, Finding)
        assert reason in sentence(missing)
        with pytest.raises(InputError, match=f"the attacker {name} can't be run"):
            perform(attacker, part)
    with pytest.raises(InputError, match="none of the methods pooled-ridge"):
        perform(ATTACKERS["pooled-ridge"], material)


def test_attacks_have_keys() -> None:
    keys = {key_of(perform, ATTACKERS[name]) for name in ATTACKERS if name != "guess"}
    assert len(keys) == len([name for name in ATTACKERS if name != "guess"])
