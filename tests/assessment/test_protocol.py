"""Which utterances people are known by and which are tried: disjoint, seeded, by session, or as lists say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import synthetic_voices as voices
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.assessment.protocol import make_protocol
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning
from veilmeter.data.embeddings import Embeddings

VOICES = voices.original(6, 5)


@given(st.integers(0, 50), st.lists(st.integers(1, 7), min_size=2, max_size=6), st.integers(1, 4))
def test_every_split_is_disjoint_and_complete(seed: int, counts: list[int], sessions: int) -> None:
    speakers = [f"s{i}" for i, n in enumerate(counts) for _ in range(n)]
    ids = [f"u{i}" for i in range(len(speakers))]
    session = [f"{s}-{i % sessions}" for i, s in enumerate(speakers)]
    e = Embeddings(np.ones((len(ids), 2)), ids, speakers, {"session": session})
    if max(counts) == 1:
        with pytest.raises(InputError, match="one utterance only"):
            make_protocol(e, seed=seed)
        return
    made = make_protocol(e, seed=seed)
    assert not set(made.enrollment) & set(made.trials)
    assert set(made.enrollment) | set(made.trials) == set(ids)
    of = dict(zip(ids, speakers, strict=True))
    assert {of[u] for u in made.enrollment} == set(speakers)
    assert make_protocol(e, seed=seed).trials == made.trials
    # Where a speaker has several sessions, none is on both sides.
    where = dict(zip(ids, session, strict=True))
    for speaker in set(speakers):
        sides = [{where[u] for u in side if of[u] == speaker} for side in (made.enrollment, made.trials)]
        if len(sides[0] | sides[1]) > 1:
            assert not sides[0] & sides[1]


def test_other_speakers_do_not_matter() -> None:
    some = VOICES.take(VOICES.codes < 3)
    wanted = [u for u in make_protocol(VOICES).trials if u in some.utterance_rows]
    assert list(make_protocol(some).trials) == wanted


def test_lists_and_keys(tmp_path: Path) -> None:
    enroll, trials = tmp_path / "enrolls", tmp_path / "trials"
    enroll.write_text("s000-0\ns000-1\ns001-0\n")
    trials.write_text("s000 s000-2 target\ns001 s000-2 nontarget\ns001 s001-3 target\n")
    made = make_protocol(VOICES, enroll=[str(enroll)], trials=[str(trials)])
    assert made.enrollment == ("s000-0", "s000-1", "s001-0")
    assert made.trials == ("s000-2", "s001-3")
    mask = made.mask(["s000", "s001"], ["s000-2", "s001-3"])
    assert mask is not None
    assert mask.tolist() == [[True, False], [True, True]]
    assert made.split == Finding("split_by_lists", {"found": False})
    found = make_protocol(VOICES, found_near=[tmp_path])
    assert (found.enrollment, found.trials, found.split) == (
        made.enrollment,
        made.trials,
        Finding("split_by_lists", {"found": True}),
    )
    # Without an enrollment list: everything else of the people in the key.
    rest = make_protocol(VOICES, trials=[str(trials)])
    assert set(rest.enrollment) == {f"s00{s}-{i}" for s in (0, 1) for i in range(5)} - {"s000-2", "s001-3"}
    # Without a trial list: everything else.
    assert len(make_protocol(VOICES, enroll=[str(enroll)]).trials) == 27


@pytest.mark.parametrize(
    ("enroll", "trials", "message"),
    [
        ("s000-0\n", "s000-0\ns001-0\n", "in the enrollment and in the trials"),
        ("nobody\n", "s000-1\n", "none of the 1 enrollment utterances"),
        ("s000-0\n", "s001 s000-1 target\n", "yet the trial with 's001' is called target"),
        ("s000-0\n", "a b c d\n", "neither an utterance id nor a trial"),
        ("s000-0\n", "\n", "this list is empty"),
        ("s000-0 s000-1\n", "s001-0\n", "e:1: there are 2 words on this line"),
        ("s000-0\n", "s000 s000-1 target\ns001-0\n", "a plain list of utterances was given together with a key"),
    ],
)
def test_wrong_lists(tmp_path: Path, enroll: str, trials: str, message: str) -> None:
    (tmp_path / "e").write_text(enroll)
    (tmp_path / "t").write_text(trials)
    with pytest.raises(InputError, match=message):
        make_protocol(VOICES, enroll=[str(tmp_path / "e")], trials=[str(tmp_path / "t")])


def test_what_the_lists_name_and_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "e").write_text("s000-0\nnobody\n")
    made = make_protocol(VOICES, enroll=[str(tmp_path / "e")])
    assert made.findings == (
        warning("listed_utterances_missing", list="enrollment", count=1),
        warning("people_tried_not_enrolled", count=5),
    )
