"""Two sides are matched once: by utterance, with the original's word on who spoke."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.core.findings import references, warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import match, match_ids, with_people_of


def side(ids: list[str], speakers: list[str] | None = None, seed: int = 0, **attributes: list[str]) -> Embeddings:
    vectors = np.random.default_rng(seed).standard_normal((len(ids), 3))
    return Embeddings(vectors, ids, speakers or [name[0] for name in ids], attributes)


def test_in_the_order_of_the_original() -> None:
    both = match(side(["a1", "a2", "b1"]), side(["b1", "c1", "a1"], seed=1))
    assert both.original.utterances.tolist() == both.anonymized.utterances.tolist() == ["a1", "b1"]
    np.testing.assert_array_equal(both.anonymized.vectors, side(["b1", "c1", "a1"], seed=1).vectors[[2, 0]])
    assert both.unmatched == {"only_original": 1, "only_anonymized": 1, "speaker_differs": 0}
    assert both.left_out == (("a2", "only_original"), ("c1", "only_anonymized"))
    assert both.findings() == [warning("utterances_unmatched", **both.unmatched)]


def test_disputed_recordings_are_left_out() -> None:
    both = match(side(["a1", "a2", "b1"]), side(["a1", "a2", "b1"], ["a", "b", "b"]))
    assert both.original.utterances.tolist() == ["a1", "b1"]
    assert both.unmatched["speaker_differs"] == 1
    with pytest.raises(InputError, match="every anonymized utterance names another speaker"):
        match(side(["a1", "b1"]), side(["a1", "b1"], ["x", "y"]))
    with pytest.raises(InputError, match="no utterance is in both"):
        match(side(["a1"]), side(["b1"]))


def test_attributes_are_those_of_the_person() -> None:
    original = side(["a1", "b1"], gender=["f", "m"], accent=["x", "y"])
    both = match(original, side(["b1", "a1"], gender=["f", "m"], accent=["y", "x"], vocoder=["1", "2"]))
    assert {name: list(column) for name, column in both.original.attributes.items()} == {
        "gender": ["f", "m"], "accent": ["x", "y"],
    }  # fmt: skip
    assert {name: list(column) for name, column in both.anonymized.attributes.items()} == {
        "gender": ["f", "m"], "accent": ["x", "y"], "pseudo_gender": ["m", "f"], "pseudo_vocoder": ["2", "1"],
    }  # fmt: skip


def test_ids_written_differently() -> None:
    both = match(side(["a1", "b1"]), side(["out/b1.wav", "out/a1.wav"], ["b", "a"]))
    assert both.anonymized.utterances.tolist() == ["a1", "b1"]
    found = both.findings()[0]
    assert (found.code, found.values["count"]) == ("ids_matched", 2)
    assert references(found) == ()  # ids name people, and warnings go into reports
    assert sum(both.unmatched.values()) == 0


def test_people_of_sets_that_are_not_matched() -> None:
    clear = side(["a1", "a2", "b1"], gender=["f", "f", "m"], session=["1", "2", "1"])
    trials = side(["a2", "a9", "c1"], gender=["m", "m", "m"])
    found = with_people_of(trials, [clear])
    assert list(found.attributes["gender"]) == ["f", "f", ""]  # wrong about a: it describes voices, and c is unknown
    assert list(found.attributes["pseudo_gender"]) == ["m", "m", "m"]
    assert list(found.attributes["session"]) == ["2", "", ""]  # a person's sessions differ: only the recording's counts
    assert with_people_of(clear, [clear]) is clear
    agreeing = with_people_of(side(["a9", "c1"], gender=["f", "m"]), [clear])
    assert list(agreeing.attributes["gender"]) == ["f", "m"]


names = st.lists(st.sampled_from([f"{s}{n}" for s in "abc" for n in range(4)]), min_size=1, unique=True)


@given(names, names)
def test_every_recording_is_matched_or_counted(first: list[str], second: list[str]) -> None:
    if not set(first) & set(second):
        return
    both = match(side(first), side(second))
    assert len(both) + both.unmatched["only_original"] == len(first)
    assert len(both) + both.unmatched["only_anonymized"] == len(second)
    assert both.original.utterances.tolist() == [name for name in first if name in second]
    assert len(both.left_out) == sum(both.unmatched.values())


def test_every_way_of_writing_and_its_count() -> None:
    assert match_ids(["a", "b.wav", "caf\u00e9"], ["a", "b", "cafe\u0301"]).ways == {"exact": 1, "form": 2}
    assert match_ids(["x/y/a", "x/y/b"], ["other/a", "other/b"]).ways == {"exact": 0, "path": 2}
    assert match_ids(["x/1/a", "x/2/b"], ["a", "y/b"]).ways == {"exact": 0, "name": 2}
    assert match_ids(["\uff21\uff22"], ["AB.flac"]).partner == {"\uff21\uff22": "AB.flac"}


def test_people_with_equal_file_names_are_never_matched() -> None:
    matched = match_ids(["anna/1", "bert/1", "bert/2"], ["bert/1", "carl/1", "bert/2"])
    assert matched.partner == {"bert/1": "bert/1", "bert/2": "bert/2"}
    assert match_ids(["anna/1", "bert/1"], ["carl/1", "dora/1"]).partner == {}


def test_what_could_be_two_is_none() -> None:
    matched = match_ids(["a.wav", "a.flac", "b"], ["a", "b"])
    assert matched.partner == {"b": "b"}
    assert set(matched.ambiguous) == {"a.wav", "a.flac"}
    (lost,) = matched.findings("here", "there")
    assert (lost.code, lost.values["count"]) == ("ids_ambiguous", 2)


NAMES = st.text(st.sampled_from("ab/.wv1\u0301\u00e9"), min_size=1, max_size=6)


@given(st.lists(NAMES, max_size=8), st.lists(NAMES, max_size=8))
def test_partners_are_one_to_one_and_exact_where_possible(first: list[str], second: list[str]) -> None:
    matched = match_ids(first, second)
    assert set(matched.partner) <= set(first)
    assert set(matched.partner.values()) <= set(second)
    assert len(set(matched.partner.values())) == len(matched.partner)
    assert all(matched.partner[name] == name for name in set(first) & set(second))
    assert sum(matched.ways.values()) == len(matched.partner)
