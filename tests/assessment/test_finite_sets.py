"""Anonymizers that draw from a finite set: attackers try every draw that is named, however that is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter import assess
from veilmeter.assessment.evidence import draws_by_name
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import load_passes, write_embeddings
from veilmeter.results import trust
from veilmeter.results.model import Check, Results
from veilmeter.speech.audio import write_audio
from veilmeter.wording import sentence

PEOPLE, EACH, DIMENSION, DRAWS = 60, 6, 24, 8
FAST: dict[str, Any] = {"measures": ["scores", "linkability"], "resamples": 20, "attackers": ["ignorant", "adaptive"]}


class World:
    """Rotations, or voices that replace the speaker's (`kept` = 0), one of a few for every recording."""

    def __init__(self, kept: float = 1.0, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        own = np.repeat(np.arange(PEOPLE), EACH)
        voices = self.rng.standard_normal((PEOPLE, DIMENSION))[own]
        rows = voices + 0.6 * self.rng.standard_normal(voices.shape)
        names = [f"s{person:02d}" for person in own]
        ids = [f"{name}-{row % EACH}" for row, name in enumerate(names)]
        self.original = Embeddings(rows / np.linalg.norm(rows, axis=1, keepdims=True), ids, names)
        q, r = np.linalg.qr(self.rng.standard_normal((DRAWS, DIMENSION, DIMENSION)))
        self.turns = kept * q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]
        self.places = (1 - kept) * self.rng.standard_normal((DRAWS, DIMENSION))
        self.release = self.copies(self.rng.integers(0, DRAWS, len(own)))

    def copies(self, drawn: Any) -> Embeddings:
        draws = np.broadcast_to(drawn, len(self.original))
        rows = np.einsum("ni,nij->nj", self.original.vectors, self.turns[draws]) + self.places[draws]
        rows = rows + 0.05 * self.rng.standard_normal(rows.shape)
        return self.original.with_vectors(rows).with_attributes({"draw": [str(draw) for draw in draws]})

    def assess(self, runs: Any) -> Results:
        return assess(self.original, self.release, attacker_run=runs, **FAST).results


def draws_check(results: Results) -> Check:
    return next(check for check in results.checks if check.name == trust.DRAWS)


def linked(results: Results) -> float:
    found = results.attackers["adaptive"].estimates.points("linkability")
    return found.filter(length=1, speakers=PEOPLE).only().value


def given_as(form: str, world: World, folder: Path) -> Any:
    runs = [world.copies(draw) for draw in range(DRAWS)]
    if form == "one file per draw":
        for draw, run in enumerate(runs):
            write_embeddings(run, folder / f"{draw}.npz")
        return [str(folder / f"{draw}.npz") for draw in range(DRAWS)]
    whole = {name: np.concatenate([getattr(run, name) for run in runs]) for name in ("vectors", "speakers")}
    ids = np.concatenate([run.utterances for run in runs])
    draws = np.concatenate([run.attributes["draw"] for run in runs])
    np.savez(
        folder / "copies.npz", ids=ids.astype(str), vectors=whole["vectors"], speakers=whole["speakers"].astype(str),
        draw=draws.astype(str),
    )  # fmt: skip
    return str(folder / "copies.npz")


@pytest.mark.parametrize("form", ["one file per draw", "one file"])
def test_rotations_that_are_named_are_undone(form: str, tmp_path: Path) -> None:
    world = World()
    results = world.assess(given_as(form, world, tmp_path))
    assert linked(results) > 95
    assert results.verdict.level == "high"
    assert results.verdict.trustworthy
    assert results.attackers["adaptive"].details["draws_tried"] == DRAWS
    own = next(check for check in results.checks if check.name == trust.OWN_RUNS)
    assert own.passed  # each run has one draw for everybody, and is a run of this anonymizer all the same


def test_a_set_that_keeps_nothing_is_low_and_trusted_once_it_was_tried() -> None:
    world = World(kept=0.0, seed=1)
    tried = world.assess([world.copies(draw) for draw in range(DRAWS)])
    assert draws_check(tried).passed
    assert f"tried each of the {DRAWS} draws on everybody" in sentence(draws_check(tried).finding)
    assert not [check.name for check in tried.checks if check.failed and check.name != trust.ENOUGH]
    assert tried.verdict.level in ("low", "unknown")  # 60 people are few
    part = world.assess([world.copies(draw) for draw in range(3)])
    assert draws_check(part).failed
    assert "tried 3 of them on everybody" in sentence(draws_check(part).finding)
    assert not part.verdict.trustworthy


def test_a_draw_is_tried_only_if_an_attacker_does() -> None:
    world = World(kept=0.0)
    runs = [world.copies(draw) for draw in range(DRAWS)]
    results = assess(world.original, world.release, attacker_run=runs, **{**FAST, "attackers": ["ignorant"]}).results
    assert draws_check(results).failed
    some = [run.take(run.codes > 0) for run in runs]  # nobody tried them on the first person
    assert draws_check(world.assess(some)).failed


def test_runs_with_one_draw_each_of_something_else_are_not_runs_of_the_anonymizer() -> None:
    world, other = World(), World(seed=1)
    foreign = [world.original.with_vectors(run.vectors).with_attributes(run.attributes)
               for run in (other.copies(draw) for draw in range(DRAWS))]  # fmt: skip
    own = next(check for check in world.assess(foreign).checks if check.name == trust.OWN_RUNS)
    assert own.failed


def test_a_column_of_the_release_alone_names_draws() -> None:
    world = World()
    results = assess(world.original, world.release, **{**FAST, "attackers": ["ignorant"]}).results
    assert draws_by_name(world.release) is not None
    assert draws_check(results).finding.values["set_size"] == DRAWS


def test_passes_hold_every_utterance_once(tmp_path: Path) -> None:
    rows = np.arange(1, 15).reshape(7, 2)
    ids = ["a", "b", "a", "a", "b", "b", "c"]
    draws = ["0", "0", "1", "2", "1", "1", "5"]
    np.savez(tmp_path / "x.npz", ids=ids, vectors=rows.astype(np.float32), speakers=ids, draw=draws)
    first, second, third = load_passes(tmp_path / "x.npz")
    assert first.embeddings.utterances.tolist() == ["a", "b", "c"]
    assert second.embeddings.attributes["draw"].tolist() == ["1", "1"]
    assert second.embeddings.vectors.tolist() == [[5, 6], [9, 10]]
    assert [problem.kind for problem in second.problems] == ["same-id-twice"]  # one draw twice
    assert third.embeddings.utterances.tolist() == ["a"]


TONES = 12


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """People who hum at their own pitch."""
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    time = np.arange(16_000) / 16_000
    for person in range(TONES):
        for number in range(4):
            tone = np.sin(2 * np.pi * (150 + 60 * person) * time) + 0.05 * rng.standard_normal(16_000)
            write_audio(tmp_path / "speech" / f"s{person:02d}" / f"{number}.wav", (0.2 * tone).astype(np.float32))
    own = "import numpy as np\n\ndef shifted(samples, draw=0):\n"
    own += "    spectrum = np.roll(np.fft.rfft(samples), 400 * (draw + 1))\n"
    own += "    return np.fft.irfft(spectrum, len(samples)).astype(np.float32)\n"
    own += "\ndef bands(samples):\n    power = np.abs(np.fft.rfft(samples[:16000]))[:6000]\n"
    own += "    return np.log(power.reshape(100, 60).mean(1) + 1e-3)\n"
    (tmp_path / "own.py").write_text(own)
    return tmp_path / "speech"


def test_a_system_that_can_be_told_its_draw_is_told_each(speech: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    run = assess(
        speech, system=f"{own}:shifted", option=["choices=5"], extractor=f"{own}:bands", out=tmp_path / "run",
        utility=False, **FAST,
    )  # fmt: skip
    assert run.results.attackers["adaptive"].details["draws_tried"] == 5
    runs = run.results.protocol.details["attacker_runs"]
    assert sum(entry["recordings"] for entry in runs) == TONES * 5  # two runs over two recordings each, and one more
    assert len(runs) == 3
    assert draws_check(run.results).finding.values.get("set_size", 5) == 5
    assert not any(finding.code == "run_lacks_recordings" for finding in run.results.warnings)
