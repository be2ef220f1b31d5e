"""Runs of something other than the anonymizer must not reassure: everybody below is linked by a real run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from veilmeter import assess
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.vector_checks import release_linking, run_difference
from veilmeter.results import trust
from veilmeter.results.model import Results
from veilmeter.wording import sentence, text

PEOPLE, RECORDINGS, DIMENSION = 40, 6, 24
Table = np.ndarray


def rotation(rng: np.random.Generator) -> Table:
    q, r = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))
    return q * np.sign(np.diag(r))


class Rotated:
    """Voices that are rotated alike; `release` and `own_run` are two runs of that."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.whose = np.repeat(np.arange(PEOPLE), RECORDINGS)
        self.voices = self.rng.standard_normal((PEOPLE, DIMENSION))[self.whose] + 0.8 * self.noise()
        turn = rotation(self.rng)
        self.release, self.own_run = (self.voices @ turn + 0.1 * self.noise() for _ in range(2))

    def noise(self) -> Table:
        return self.rng.standard_normal((PEOPLE * RECORDINGS, DIMENSION))

    def side(self, vectors: Table, people: Callable[[int], bool] = lambda _: True) -> Embeddings:
        rows = np.flatnonzero([people(person) for person in self.whose])
        names = [f"s{person:02d}" for person in self.whose[rows]]
        ids = [f"s{self.whose[row]:02d}-{row % RECORDINGS}" for row in rows]
        return Embeddings(vectors[rows], ids, names, {"gender": ["fm"[person % 2] for person in self.whose[rows]]})


def run(world: Rotated, own: Embeddings | None, attackers: tuple[str, ...] = ("ignorant", "lazy-informed")) -> Results:
    return assess(
        world.side(world.voices), world.side(world.release), attacker_run=own, attackers=list(attackers),
        measures=["scores", "linkability"], resamples=20,
    ).results  # fmt: skip


def checks(results: Results) -> dict[str, bool | None]:
    return {check.name: check.passed for check in results.checks}


def test_a_real_run_links_everybody() -> None:
    world = Rotated(0)
    results = run(world, world.side(world.own_run))
    assert results.verdict.level == "high"
    assert results.verdict.trustworthy
    assert checks(results)[trust.OWN_RUNS]
    assert checks(results)[trust.RELEASE]


def test_the_original_speech_is_refused_as_a_run() -> None:
    world = Rotated(1)
    with pytest.raises(InputError, match="is original speech: nothing in it was anonymized"):
        run(world, world.side(world.voices))
    partly = np.where((world.whose < 30)[:, None], world.voices, world.own_run)
    with pytest.raises(InputError, match="75% of the recordings in the attacker's run 1 are original speech"):
        run(world, world.side(partly))


@pytest.mark.parametrize("wrong", ["noise", "another key"])
@pytest.mark.parametrize("seed", [2, 3])
def test_a_run_of_something_else_reassures_nobody(wrong: str, seed: int) -> None:
    world = Rotated(seed)
    vectors = world.noise() if wrong == "noise" else world.voices @ rotation(world.rng) + 0.1 * world.noise()
    results = run(world, world.side(vectors))
    assert results.verdict.level == "raised"
    assert not results.verdict.trustworthy
    assert checks(results)[trust.OWN_RUNS] is False
    assert checks(results)[trust.RELEASE] is False
    assert any("linked to each other" in sentence(finding) for finding in results.verdict.headline)


def test_people_whom_a_run_does_not_cover_leave_the_check_open() -> None:
    """Men are replaced by noise in every run; women are linked, and the attackers' run is of men only."""
    world = Rotated(4)
    men = (world.whose % 2 == 1)[:, None]
    world.release = np.where(men, world.noise(), world.release)
    own_run = np.where(men, world.noise(), world.own_run)
    results = run(world, world.side(own_run, lambda person: person % 2 == 1))
    assert results.verdict.level in ("raised", "high")
    assert checks(results)[trust.OWN_RUNS] is None
    assert checks(results)[trust.RELEASE] is False
    check = next(check for check in results.checks if check.name == trust.OWN_RUNS)
    assert "do not cover 20 enrolled people" in sentence(check.finding)


def test_a_run_that_nobody_used_does_not_count() -> None:
    world = Rotated(5)
    results = run(world, world.side(world.own_run), ("ignorant",))
    assert checks(results)[trust.OWN_RUNS] is None
    assert results.verdict.level == "raised"


def test_two_runs_of_one_anonymizer_seldom_differ() -> None:
    found = []
    for seed in range(40):
        world = Rotated(100 + seed)
        drawn = {}
        for name in ("release", "own"):  # a voice drawn for each person in the release, for each recording in the run
            voices = world.rng.standard_normal((PEOPLE, DIMENSION))[world.whose] if name == "release" else world.noise()
            drawn[name] = world.side(0.5 * world.voices + voices)
        found.append(run_difference(world.side(world.voices), drawn["release"], drawn["own"], seed=seed))
    assert sum(p is not None and p < trust.SURE_RUN for p in found) <= 2


def test_noise_seldom_links_itself() -> None:
    found = []
    for seed in range(60):
        world = Rotated(200 + seed)
        side = world.side(world.noise())
        first = [row % RECORDINGS < 3 for row in range(len(side))]
        found.append(release_linking(side.take(first), side.take(np.logical_not(first)), seed=seed))
    assert sum(links is not None and links[0] < trust.SURE_RELEASE for links in found) <= 3


def test_one_new_voice_per_person_and_run_links_the_release_only() -> None:
    """That is a fact and no reason to doubt: the attackers' run is one of this anonymizer."""
    world = Rotated(7)
    drawn = [world.rng.standard_normal((PEOPLE, DIMENSION))[world.whose] + 0.1 * world.noise() for _ in range(2)]
    world.release = drawn[0]
    results = run(world, world.side(drawn[1]))
    assert results.verdict.level == "raised"
    assert checks(results)[trust.RELEASE]
    assert "people are recognized" not in " ".join(sentence(check.finding) for check in results.checks)
    words = text(results.verdict.headline)
    assert "No attacker links released recordings to original ones, but released recordings of one person are" in words
    assert "the same new voice in all recordings" in text(results.verdict.remarks)
