"""Ids that two sides write differently."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from veilmeter.data.ids import match_ids


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
