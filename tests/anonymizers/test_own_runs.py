"""Runs of an attacker's own: other seeds than the release's, a draw for every utterance where the system can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veilmeter.anonymizers.anonymize_corpus import own_seeds, run_again, turns
from veilmeter.anonymizers.base import Draw
from veilmeter.anonymizers.manifest import read_manifest
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Corpus, read_corpus
from veilmeter.speech.audio import read_recording, write_audio


@pytest.fixture
def speech(tmp_path: Path) -> Corpus:
    tone = (0.3 * np.sin(np.arange(16_000) * 0.2)).astype(np.float32)
    for number in range(6):
        write_audio(tmp_path / "speech" / f"s{number % 2}" / f"{number}.wav", tone)
    return read_corpus(tmp_path / "speech")


@pytest.mark.parametrize(("per", "different"), [(Draw.SPEAKER, 2), (Draw.UTTERANCE, 6)])
def test_the_draws_asked_for_are_made_and_recorded(speech: Corpus, tmp_path: Path, per: Draw, different: int) -> None:
    released = {"alpha_range": (0.6, 0.8), "seed": 3}
    done = run_again(speech, tmp_path / "run", "mcadams-random", released, seed=9, per=per)
    entries = read_manifest(done.manifest).values()
    assert done.draw == per
    assert len({entry.parameters["alpha"] for entry in entries}) == different
    assert {entry.parameters["seed"] for entry in entries} == {9}
    assert {entry.draw for entry in entries} == {str(per)}


def test_a_folder_with_other_draws_is_made_anew(speech: Corpus, tmp_path: Path) -> None:
    run_again(speech, tmp_path / "run", "mcadams-random", seed=9, per=Draw.SPEAKER)
    again = run_again(speech, tmp_path / "run", "mcadams-random", seed=9)
    assert (again.draw, again.kept) == (Draw.UTTERANCE, 0)
    assert run_again(speech, tmp_path / "run", "mcadams-random", seed=9).kept == 6


def test_a_system_without_chance_says_so(speech: Corpus, tmp_path: Path) -> None:
    assert run_again(speech, tmp_path / "run", "mcadams", {"alpha": 0.7}, seed=9).draw == Draw.NONE


@pytest.mark.parametrize(("choices", "runs"), [(2, 2), (5, 2), (20, 1), (50, 2)])
def test_everybody_gets_every_draw_of_a_finite_set(speech: Corpus, choices: int, runs: int) -> None:
    made = turns([speech], choices, runs)
    ids = {utterance.id: utterance.speaker for utterance in speech}
    assert all(set(run) == set(ids) for run in made[:runs])
    copies = [(ids[utterance], draw) for run in made for utterance, draw in run.items()]
    assert set(copies) == {(speaker, draw) for speaker in ("s0", "s1") for draw in range(choices)}
    assert len(copies) == max(2 * choices, runs * len(ids))  # no more than needed


def test_a_set_that_is_too_large_is_not_gone_through(speech: Corpus) -> None:
    made = turns([speech], 1000, 2)
    assert len(made) == 2
    assert len({draw for run in made for draw in run.values()}) > 8


def test_a_system_does_the_draws_that_it_is_told(speech: Corpus, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def softer(samples, draw=0):\n    return samples / (draw + 1)\n")
    wanted = {utterance.id: number for number, utterance in enumerate(speech)}
    options = {"choices": 8}
    done = run_again(speech, tmp_path / "run", f"{own}:softer", options, seed=9, draws=wanted)
    assert {entry.utterance: entry.parameters["draw"] for entry in done.entries} == wanted
    assert done.draw == Draw.UTTERANCE
    peaks = [np.abs(read_recording(done.out / str(entry.output)).samples).max() for entry in done.entries]
    np.testing.assert_allclose(peaks, [0.3 / (wanted[entry.utterance] + 1) for entry in done.entries], rtol=1e-2)
    by_chance = run_again(speech, tmp_path / "other", f"{own}:softer", options, seed=9)
    drawn = [entry.parameters["draw"] for entry in by_chance.entries]
    assert set(drawn) <= set(range(8))
    assert len(set(drawn)) > 1
    with pytest.raises(InputError, match="choices must be a number of draws"):
        run_again(speech, tmp_path / "none", f"{own}:softer", {"choices": 1}, seed=9)
    with pytest.raises(InputError, match="no option choices"):
        run_again(speech, tmp_path / "none", "mcadams", {"choices": 8}, seed=9)


def test_own_seeds_are_repeatable_and_differ_from_the_released_one() -> None:
    assert own_seeds(0, 3) == own_seeds(0, 3) != own_seeds(1, 3)
    assert all(released not in own_seeds(released, 5) for released in range(100))
