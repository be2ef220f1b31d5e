"""Trying every draw of a finite set: a slow reference, what does not matter, and what cross-validation believes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.attacks.adaptive.worlds import linked

from veilmeter.attacks.adaptive import draws
from veilmeter.attacks.adaptive.draws import EACH_DRAW, draws_of_several, fit_draws
from veilmeter.attacks.adaptive.fitting import fit_adaptive
from veilmeter.attacks.adaptive.own_data import own_data, resolve_draws
from veilmeter.attacks.adaptive.training import DrawnPairs, make_training
from veilmeter.attacks.material import AttackerRun, Material, OtherPeople
from veilmeter.data.embeddings import Embeddings

PEOPLE, EACH, DIMENSION, DRAWS = 30, 4, 12, 20
Table = np.ndarray


def rotations(rng: np.random.Generator) -> Table:
    q, r = np.linalg.qr(rng.standard_normal((DRAWS, DIMENSION, DIMENSION)))
    return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]


class Codebook:
    """One of a few rotations for every recording; other recordings of the same people are tried."""

    def __init__(self, seed: int = 0, noise: float = 0.01) -> None:
        self.rng, self.noise = np.random.default_rng(seed), noise
        self.turns = rotations(self.rng)
        voices, others = self.rng.standard_normal((2, PEOPLE, DIMENSION))
        self.known, self.tried, self.others = self.say("s", voices), self.say("s", voices), self.say("o", others)

    def say(self, tag: str, voices: Table) -> Embeddings:
        rows = np.repeat(voices, EACH, axis=0) + 0.3 * self.rng.standard_normal((PEOPLE * EACH, DIMENSION))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # lengths tell nothing
        names = [f"{tag}{person}" for person in range(PEOPLE) for _ in range(EACH)]
        return Embeddings(rows, [f"{name}-{row % EACH}" for row, name in enumerate(names)], names)

    def copy(self, side: Embeddings, drawn: Table, names: Sequence[str] | None = None) -> Embeddings:
        rows = np.einsum("ni,nij->nj", side.vectors, self.turns[drawn])
        rows = rows + self.noise * self.rng.standard_normal(rows.shape)
        called = [str(draw) if names is None else names[draw] for draw in drawn]
        return side.with_vectors(rows).with_attributes({"draw": called} if any(called) else {})

    def run(self, names: Sequence[str] | None = None) -> AttackerRun:
        drawn = self.rng.integers(0, DRAWS, len(self.known))
        return AttackerRun(vectors=self.copy(self.known, drawn, names), draw="utterance", certain=True)

    def material(self, runs: Sequence[AttackerRun], others: OtherPeople | None = None) -> tuple[Material, Table]:
        trials = self.copy(self.tried, self.rng.integers(0, DRAWS, len(self.tried)))
        every = (np.arange(len(trials))[:, None],)
        material = Material(
            candidates=self.known, trials=trials.vectors, conversations=every, runs=tuple(runs), others=others
        )
        return material, trials.codes


def share_linked(material: Material, truth: Table, families: list[str] | None = None) -> float:
    fitted = fit_adaptive(own_data(material, resolve_draws(material)[0]), families)
    return linked(fitted.logits(material.trials).T, truth)


def slow_scores(pairs: DrawnPairs, mu: Table, strength: float, weight: float, x: Table) -> Table:
    """The definition, one draw and one candidate after the other, up to the whitening of what is left."""
    size = pairs.before.shape[1] + 1
    before, voices = (np.column_stack([side, np.full(len(side), draws.CONSTANT)]) for side in (pairs.before, mu))
    common = np.linalg.solve(before.T @ before + draws.COMMON * np.eye(size), before.T @ pairs.after)
    spread, templates = [], {}
    for draw in np.unique(pairs.draws):
        rows = np.flatnonzero(pairs.draws == draw)
        if len({int(label) for label in pairs.labels[rows]}) < 2:
            continue

        def learn(some: Table, common: Table = common) -> Table:
            y, rest = before[some], pairs.after[some] - before[some] @ common
            return common + np.linalg.solve(y.T @ y + strength * np.eye(size), y.T @ rest)

        learned = learn(rows)
        for row in rows:
            if pairs.labels[row] >= 0:
                without = learn(rows[rows != row]) if len(rows) > 1 else common
                away = before[row] - voices[pairs.labels[row]]
                spread.append(pairs.after[row] - before[row] @ without + away @ learned)
        for candidate in range(len(mu)):
            own = rows[pairs.labels[rows] == candidate]
            rest = pairs.after[own] - before[own] @ learned
            more = rest.sum(axis=0) / (len(own) + weight) if len(own) else 0.0
            templates[int(draw), candidate] = voices[candidate] @ learned + more
    covariance = np.mean([np.outer(row, row) for row in spread], axis=0)
    scales = np.sqrt(np.maximum(np.diag(covariance), draws.LEAST_VARIANCE * np.diag(covariance).mean()))
    shrunk = (1 - draws.SHRINKAGE) * covariance / np.outer(scales, scales)
    np.fill_diagonal(shrunk, 1.0)
    inverse = np.linalg.inv(shrunk * np.outer(scales, scales))
    scores = np.full((len(x), len(mu)), -np.inf)
    for (_, candidate), template in templates.items():
        for row, vector in enumerate(x):
            score = vector @ inverse @ template - template @ inverse @ template / 2
            scores[row, candidate] = max(scores[row, candidate], score)
    return scores


def some_pairs(rng: np.random.Generator, count: int, dimension: int = 5, people: int = 7) -> tuple[DrawnPairs, Table]:
    before, after = rng.standard_normal((2, count, dimension))
    pairs = DrawnPairs(before, after, rng.integers(0, 6, count), rng.integers(-1, people, count))
    return pairs, rng.standard_normal((people, dimension))


@pytest.mark.parametrize(("count", "seed"), [(12, 0), (40, 1), (200, 2)])  # fewer pairs per draw than dimensions, more
@pytest.mark.parametrize("parameters", EACH_DRAW.grid)
def test_scores_are_the_best_over_draws(count: int, seed: int, parameters: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    pairs, mu = some_pairs(rng, count)
    x = rng.standard_normal((9, 5))
    wanted = slow_scores(pairs, mu, *parameters, x)
    np.testing.assert_allclose(fit_draws(pairs, mu, *parameters).best(x), wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_names_of_draws_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs, mu = some_pairs(rng, 60)
    x = rng.standard_normal((9, 5))
    other = replace(pairs, draws=rng.permutation(6)[pairs.draws] + 3)
    ours, theirs = (fit_draws(some, mu, 0.5, 10.0).scores(x) for some in (pairs, other))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_draws_that_one_person_has_are_not_a_set() -> None:
    pairs = DrawnPairs(*np.zeros((2, 6, 1)), np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 3, 3, -1, 2]))
    assert draws_of_several(pairs).tolist() == [0, 2]
    assert draws_of_several(None).tolist() == []


def test_a_set_is_undone_only_where_draws_are_named() -> None:
    world = Codebook()
    named, truth = world.material([world.run() for _ in range(4)])
    found = share_linked(named, truth)
    assert found > 0.9
    plain = [replace(run, vectors=run.vectors.with_attributes({})) for run in named.runs]
    unnamed = replace(named, runs=tuple(plain))
    assert share_linked(unnamed, truth) < found - 0.3
    data = own_data(unnamed)
    everything = np.ones(len(data.labels), bool)
    assert make_training(data, data.views[0], everything, everything, (0, 1)).drawn is None
    assert fit_adaptive(data).draws == 0
    assert fit_adaptive(own_data(named)).draws == DRAWS


def test_other_names_for_the_same_draws_give_the_same_scores() -> None:
    scores = []
    for names in ([str(draw) for draw in range(DRAWS)], [chr(99 - draw) for draw in range(DRAWS)]):
        world = Codebook(3)
        material, _ = world.material([world.run(names) for _ in range(2)])
        scores.append(fit_adaptive(own_data(material)).logits(material.trials))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3, atol=1e-3)


def test_other_people_teach_what_a_draw_does() -> None:
    world = Codebook(1)
    runs = [world.run()]
    drawn = [world.rng.integers(0, DRAWS, len(world.others)) for _ in range(4)]
    others = OtherPeople(
        originals=world.others, runs=tuple(AttackerRun(vectors=world.copy(world.others, some)) for some in drawn)
    )
    alone, truth = world.material(runs)
    helped = replace(alone, others=others)
    assert share_linked(helped, truth, ["each-draw"]) > share_linked(alone, truth, ["each-draw"]) + 0.2


def one_per_draw(world: Codebook) -> list[AttackerRun]:
    full = [world.copy(world.known, np.full(len(world.known), draw)) for draw in range(DRAWS)]
    return [AttackerRun(vectors=run) for run in full]


def test_runs_with_one_draw_each_are_tested_by_recording() -> None:
    world = Codebook()
    material, truth = world.material(one_per_draw(world))
    levels, findings = resolve_draws(material)
    assert set(levels) == {"utterance"}
    assert not findings
    assert share_linked(material, truth) > 0.9


def voices_of_speakers(world: Codebook, run: AttackerRun) -> AttackerRun:
    """With a new voice for everybody, which no column names."""
    drawn = 3 * world.rng.standard_normal((PEOPLE, DIMENSION))[world.known.codes]
    return replace(run, vectors=run.vectors.with_vectors(run.vectors.vectors + drawn))


def kept_by_speakers(world: Codebook, run: AttackerRun) -> AttackerRun:
    """With one named draw for each speaker."""
    return replace(run, vectors=world.copy(world.known, world.known.codes % DRAWS))


@pytest.mark.parametrize("change", [voices_of_speakers, kept_by_speakers])
def test_a_draw_of_each_speaker_is_not_taken_for_one_of_the_recording(
    change: Callable[[Codebook, AttackerRun], AttackerRun],
) -> None:
    world = Codebook()
    material, _ = world.material([change(world, run) for run in one_per_draw(world)[:1]])
    assert resolve_draws(material)[0] == ("speaker",)


@pytest.mark.parametrize("seed", range(3))
def test_cross_validation_finds_nothing_where_a_voice_is_drawn_for_each_speaker(seed: int) -> None:
    """Voices of a small set replace those of speakers, one for each speaker and run, and the draws are named."""
    world = Codebook(seed)
    places = 3 * world.rng.standard_normal((DRAWS, DIMENSION))
    runs = []
    for _ in range(2):
        drawn = world.rng.integers(0, DRAWS, PEOPLE)[world.known.codes]
        rows = places[drawn] + 0.4 * world.rng.standard_normal((len(drawn), DIMENSION))
        vectors = world.known.with_vectors(rows).with_attributes({"draw": [str(draw) for draw in drawn]})
        runs.append(AttackerRun(vectors=vectors))
    material, _ = world.material(runs)
    validation = fit_adaptive(own_data(material, resolve_draws(material)[0])).validation
    assert validation is not None
    assert validation.linked < 4 / PEOPLE


def test_too_large_a_set_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Codebook()
    data = own_data(world.material([world.run() for _ in range(2)])[0])
    monkeypatch.setattr(draws, "MOST_TEMPLATES", PEOPLE * DRAWS - 1)
    assert fit_adaptive(data).draws == 0
