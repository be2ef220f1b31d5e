"""An anonymizer that only seems to protect because of its target voices is distinguished from one that hides people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.anonymizers.anonymize_corpus import manifest_path
from veilmeter.anonymizers.manifest import Entry, write_manifest
from veilmeter.assessment import assess, attack
from veilmeter.assessment.evidence import draws_by_name, target_voice_labels
from veilmeter.assessment.inputs import with_recorded_draws
from veilmeter.core.findings import warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import match
from veilmeter.metrics.vector_checks import TargetVoices
from veilmeter.results.model import Check
from veilmeter.results.trust import TARGETS, check_target_voices
from veilmeter.wording import sentence

PEOPLE, EACH, DIMENSION = 30, 6, 32
FAST: dict[str, Any] = {"lengths": [1], "measures": ["scores", "linkability"], "resamples": 50}


def sides(kept: float, *, column: bool) -> dict[str, Embeddings]:
    """Voices that become one of four target voices, drawn per person, and keep some of their own."""
    rng = np.random.default_rng(4)
    people = rng.standard_normal((PEOPLE, DIMENSION))
    targets = 6 * rng.standard_normal((4, DIMENSION))
    codes = np.repeat(np.arange(PEOPLE), EACH)
    names = [f"p{code:02}" for code in codes]
    ids = [f"p{code:02}-{number % EACH}" for number, code in enumerate(codes)]
    heard = people[codes] + 0.3 * rng.standard_normal((len(codes), DIMENSION))

    def anonymized() -> Embeddings:
        drawn = rng.integers(4, size=PEOPLE)[codes]
        vectors = kept * heard + targets[drawn] + 0.3 * rng.standard_normal(heard.shape)
        return Embeddings(vectors, ids, names, {"target_voice": [f"t{n}" for n in drawn]} if column else None)

    return {"original": Embeddings(heard, ids, names), "anonymized": anonymized(), "attacker_run": anonymized()}


def checked(kept: float, *, column: bool) -> Check:
    results = assess(**sides(kept, column=column), attackers=["ignorant", "lazy-informed"], **FAST).results  # type: ignore[arg-type]
    return next(check for check in results.checks if check.name == TARGETS)


@pytest.mark.parametrize("column", [True, False], ids=["known", "found"])
def test_privacy_that_rests_on_target_voices_is_overestimated(column: bool) -> None:
    check = checked(kept=0.6, column=column)
    assert check.failed
    assert check.misleads == "overestimated"
    assert "privacy is overestimated" in sentence(check.finding)
    assert ("target voices lie" if column else "clusters recordings lie in") in sentence(check.finding)


@pytest.mark.parametrize("cells", [2_000_000, PEOPLE * 40], ids=["all", "some"])
def test_it_is_found_where_trials_are_drawn(cells: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Then only the trials in which attackers are compared come home from the tasks, and there are no tables."""
    monkeypatch.setattr(attack, "MOST_SCORES", PEOPLE * 2 * PEOPLE)
    monkeypatch.setattr(attack, "MOST_CELLS", cells)
    attackers = ["ignorant", "lazy-informed"]
    run = assess(**sides(0.6, column=True), attackers=attackers, out=tmp_path, **FAST)  # type: ignore[arg-type]
    assert warning("trials_drawn", length=1, drawn=60, possible=90) in run.results.warnings
    assert not list((tmp_path / "tables").glob("scores-*"))
    kept = [np.load(file)["scores"].shape for file in (tmp_path / "stages").glob("attacker-*.npz")]
    assert set(kept) == {(PEOPLE, 60 if cells > PEOPLE * 40 else 30)}
    assert next(check for check in run.results.checks if check.name == TARGETS).failed


def test_target_voices_do_not_excuse_an_anonymizer_that_hides_people() -> None:
    check = checked(kept=0.0, column=True)
    assert check.passed
    assert "hardly" in sentence(check.finding)


def test_a_difference_that_may_be_chance_is_called_so() -> None:
    effect = TargetVoices(
        attacker="adaptive", voices=5, known=True, reported=0.004, informed=0.0, eer_reported=0.6, eer_informed=0.2,
        gain=(-0.003, 0.011),
    )  # fmt: skip
    check = check_target_voices(effect, None)
    assert check.passed
    assert sentence(check.finding).startswith(
        "100 % of the strongest attacker's error seems to come from where the 5 target"
    )
    assert "may be chance" in sentence(check.finding)


def entry(number: int, parameters: dict[str, Any], pseudo_speaker: str | None = None) -> Entry:
    return Entry(f"u{number}", "s", "a", None, "b", None, "x", "1", parameters, pseudo_speaker)


def test_target_voices_of_a_manifest() -> None:
    vectors = Embeddings(np.ones((10, 2)), [f"u{n}" for n in range(10)], ["s"] * 10)
    named = {f"u{n}": entry(n, {}, f"voice{n % 3}") for n in range(10)}
    assert target_voice_labels(vectors, named).tolist() == [n % 3 for n in range(10)]  # type: ignore[union-attr]
    drawn = {f"u{n}": entry(n, {"alpha": 0.5 + n / 20, "seed": 1}) for n in range(10)}
    assert target_voice_labels(vectors, drawn).tolist() == [n // 2 for n in range(10)]  # type: ignore[union-attr]
    listed = {f"u{n}": entry(n, {"members": ["a", "b"][: 1 + n % 2]}) for n in range(10)}
    assert target_voice_labels(vectors, listed).tolist() == [(n + 1) % 2 for n in range(10)]  # type: ignore[union-attr]
    same = {f"u{n}": entry(n, {"alpha": 0.8}) for n in range(10)}
    assert target_voice_labels(vectors, same) is None
    assert target_voice_labels(vectors, {"u0": named["u0"]}) is None


def test_draws_that_are_named_show_whether_people_share_them(tmp_path: Path) -> None:
    names = [f"p{row // 2}" for row in range(40)]
    ids = [f"u{row}" for row in range(40)]

    def count(draws: list[str] | None, entries: dict[str, Entry] | None = None) -> int | None:
        original = Embeddings(np.eye(40), ids, names)
        copies = Embeddings(np.eye(40), ids, names, {"draw": draws} if draws else None)
        if entries:
            write_manifest(manifest_path(tmp_path / "copies"), entries.values())
            copies = with_recorded_draws(copies, tmp_path / "copies")
        return draws_by_name(match(original, copies).anonymized)

    shared = [str(7 * row % 5) for row in range(40)]
    assert count(shared) == 5
    assert count(["0"] * 40) is None  # one for all
    assert count(ids) is None  # continuous
    assert count(names) is None  # everybody has their own
    assert count(None) is None
    entries = {
        name: Entry(name, "p", "", None, None, None, "own", "1", {"codeword": int(draw)})
        for name, draw in zip(ids, shared, strict=True)
    }
    assert count(None, entries) == 5
    assert count(None, {**entries, "u3": replace(entries["u3"], parameters={})}) is None
