"""Among very many people some are drawn, with a warning, and give the same figures as all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.assessment import analyses, assess, attack
from veilmeter.assessment.attack import isolation_conversations
from veilmeter.assessment.tasks import Stages, StoredArrays, TaskId, TaskKind, TaskResult
from veilmeter.attacks.inversion import evaluate, identity_map
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal import chance
from veilmeter.metrics.legal.conversations import conversations
from veilmeter.metrics.legal.singling_out import singling_out_of_scores

SPEAKERS, EACH, DIMENSION = 60, 6, 16


def voices(share: float, seed: int) -> Embeddings:
    """Of everybody six recordings, which have this share of their voice."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(SPEAKERS), EACH)
    names = [f"s{code:02}" for code in codes]
    own = rng.standard_normal((SPEAKERS, DIMENSION))[codes]
    noise = np.random.default_rng([1, seed]).standard_normal((len(codes), DIMENSION))
    ids = [f"{name}-{row}" for row, name in enumerate(names)]
    return Embeddings(share * own + noise, ids, names, {"gender": ["fm"[code % 2] for code in codes]})


ORIGINAL, PROTECTED = voices(3.0, 0), voices(1.0, 1)


def test_what_is_drawn_is_said_and_gives_about_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {
        "attackers": ["ignorant", "lazy-informed", "procrustes", "adaptive"], "lengths": [1],
        "measures": ["scores", "linkability", "similarity", "singling-out", "inversion"], "resamples": 40,
    }  # fmt: skip
    everybody = assess(ORIGINAL, PROTECTED, **options).results
    assert not [found.code for found in everybody.warnings if found.code.endswith("_drawn")]
    monkeypatch.setattr(analyses, "MOST_COMPARED", 90)
    monkeypatch.setattr(attack, "MOST_ISOLATION_SCORES", 60 * 100)
    monkeypatch.setattr(attack, "PREDICATES", 20)
    monkeypatch.setattr(chance, "MOST_CALIBRATED", 60 * 120)
    monkeypatch.setattr(analyses, "LOOKED_UP", 100)
    some = assess(ORIGINAL, PROTECTED, **options).results
    said = {found.code: dict(found.values) for found in some.warnings if found.code.endswith("_drawn")}
    similarity = {"recordings": 90, "all_recordings": 180, "speakers": 45, "all_speakers": 60, "part": "similarity"}
    assert said["similarity_drawn"] == similarity  # two each instead of three
    assert said["scores_drawn"] == {"length": 1, "drawn": 120, "possible": 180}
    assert said["isolation_speakers_drawn"] == {"length": 1, "drawn": 50, "possible": 60}
    assert said["isolation_conversations_drawn"] == {"length": 1, "most": 2}
    assert said["lookups_drawn"] == {"trials": 180, "most": 100, "part": "inversion"}
    assert said["isolation_rules_drawn"] == {"length": 1, "drawn": 20, "possible": 50}
    for name in ("ignorant", "lazy-informed"):
        ours, all_of_them = (found.attackers[name].estimates for found in (some, everybody))
        assert [point.value for point in ours.points("linkability")] == [
            point.value for point in all_of_them.points("linkability")
        ]
        eer, true_eer = ours.single("eer"), all_of_them.single("eer")
        assert eer is not None
        assert true_eer is not None
        assert eer.value == pytest.approx(true_eer.value, abs=4)
    deid, true_deid = (found.part("similarity").single("deid") for found in (some, everybody))
    assert deid is not None
    assert true_deid is not None
    # With so few people how many pairs there are decides much: the intervals agree, not the values.
    assert deid.interval is not None
    assert true_deid.interval is not None
    assert deid.interval[0] <= true_deid.interval[1]
    assert true_deid.interval[0] <= deid.interval[1]


def test_drawn_speakers_keep_their_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "MOST_ISOLATION_SCORES", 60 * 40)
    spoken = isolation_conversations(PROTECTED, 1, 0, 60)
    assert spoken is not None
    assert len(spoken.names) == 20
    for name, row in zip(np.array(spoken.names)[spoken.speakers], spoken.utterances[:, 0], strict=True):
        assert PROTECTED.speakers[row] == name
    monkeypatch.setattr(attack, "MOST_ISOLATION_SCORES", 60 * 200)
    fewer = isolation_conversations(PROTECTED, 1, 0, 60)
    assert fewer is not None
    assert len(fewer.names) == 60
    assert set(fewer.counts.tolist()) == {3}


def test_the_rules_of_some_are_those_that_all_have() -> None:
    """Whose scores are not looked at changes nothing for the others."""
    spoken = conversations(PROTECTED.take(np.arange(120)), 1, least=2)
    table = np.random.default_rng(0).normal(size=(SPEAKERS, len(spoken)))
    whole = singling_out_of_scores(table, ORIGINAL.names, spoken, [10])
    some = singling_out_of_scores(table, ORIGINAL.names, spoken, [10], predicates=8)
    assert len(some.names) == 8
    place = {name: row for row, name in enumerate(whole.names)}
    rows = [place[name] for name in some.names]
    # The draws of sets depend on how many rules there are: the same people, nearly the same shares.
    assert some.attack.isolated.mean() == pytest.approx(whole.attack.isolated[rows].mean(), rel=0.35)


@pytest.mark.parametrize("most", [7, 50, 10_000])
def test_recordings_that_are_looked_up_are_found_as_before(most: int) -> None:
    everything = evaluate(identity_map(DIMENSION), PROTECTED, ORIGINAL, ORIGINAL, within="")
    some = evaluate(identity_map(DIMENSION), PROTECTED, ORIGINAL, ORIGINAL, within="", most=most)
    (all_of_them,), (group,) = everything.groups, some.groups
    count = min(most, len(PROTECTED))
    for direction in ("whose", "where"):
        found, before = getattr(group, direction), getattr(all_of_them, direction)
        asked = ((np.arange(count) + 0.5) * (len(PROTECTED) / count)).astype(int)
        assert found.gallery == len(ORIGINAL)
        np.testing.assert_array_equal(found.nearer, before.nearer[asked])
    scores = group.scores()
    assert scores is not None
    assert len(scores) == count * SPEAKERS


def test_arrays_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    stages, arrays = Stages(tmp_path), {"b": np.arange(3.0), "a": np.zeros((2, 2))}
    task = TaskId(TaskKind.ANALYSIS, "task")
    stages.put(task, "key", TaskResult(), arrays)
    stored = stages.arrays_of(task, "key", arrays)
    assert isinstance(stored, StoredArrays)
    assert list(stored) == ["a", "b"]
    assert len(stored) == 2
    np.testing.assert_array_equal(stored["b"], arrays["b"])
    assert "c" not in stored
    with pytest.raises(KeyError):
        stored["c"]
    kept = stages.get(task, "key")
    assert kept is not None
    np.testing.assert_array_equal(kept[1]["a"], arrays["a"])
    assert Stages(None).arrays_of(task, "key", arrays) is arrays


def test_conversations_are_drawn_for_calibration_only_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chance.draw_columns(1000, 3000) == slice(None)
    drawn = chance.draw_columns(10_000, 10_000)
    assert not isinstance(drawn, slice)
    assert len(np.unique(drawn)) == 1000
    monkeypatch.setattr(chance, "MOST_CALIBRATED", 200)
    rng = np.random.default_rng(0)
    trials = chance.Trials(rng.normal(size=(20, 60)), np.repeat(np.arange(20), 3), tuple(f"s{i}" for i in range(20)))
    part = chance.draw_columns(20, 60)
    taken = replace(trials, scores=trials.scores[:, part], own=trials.own[part])
    monkeypatch.setattr(chance, "MOST_CALIBRATED", 10**6)
    alone = chance.name_trials(taken, draws=5)
    monkeypatch.setattr(chance, "MOST_CALIBRATED", 200)
    drawn_here = chance.name_trials(trials, draws=5)
    assert alone is not None
    assert drawn_here is not None
    np.testing.assert_array_equal(chance.d_ece_draws(drawn_here), chance.d_ece_draws(alone))
