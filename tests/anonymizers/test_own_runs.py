"""Runs of an attacker's own: other seeds than the release's, a draw for every utterance where the system can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veilmeter.anonymizers.anonymize_corpus import own_seeds, run_again
from veilmeter.anonymizers.base import Draw
from veilmeter.anonymizers.manifest import read_manifest
from veilmeter.data.corpus import Corpus, read_corpus
from veilmeter.speech.audio import write_audio


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


def test_own_seeds_are_repeatable_and_differ_from_the_released_one() -> None:
    assert own_seeds(0, 3) == own_seeds(0, 3) != own_seeds(1, 3)
    assert all(released not in own_seeds(released, 5) for released in range(100))
