"""Linkability: the reference's fractions, enumeration, ties, blocks, intervals."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.core.intervals import logit_t
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.metrics.legal.conversations import conversations, models, speaker_attribute
from veilmeter.metrics.legal.linkability import (
    LinkCounts,
    better_impostors,
    count_better,
    count_links,
    link_probability,
)


def voices():
    """The reference's fixture."""
    rng = np.random.default_rng(20250003)
    mu = rng.standard_normal((60, 16))
    return mu[:, None, :] + 1.5 * rng.standard_normal((60, 12, 16))


def embed(x, speakers, utterances):
    rows = [(s, u) for s in speakers for u in utterances]
    return Embeddings([x[s, u] for s, u in rows], [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows])


@pytest.mark.parametrize(("length", "utterances"), [(1, [10]), (2, [10, 11])])
def test_the_reference(reference, length, utterances):
    wanted = reference["legal"]["linkability"]
    x = voices()
    link = count_links(embed(x, range(60), range(10)), embed(x, range(30), utterances), length=length)
    better = wanted[f"L{length}_better_impostors"]
    assert link.better.tolist() == better
    for n, value in wanted[f"L{length}"].items():
        m = int(n) - 1
        fraction = sum(Fraction(comb(59 - r, m), comb(59, m)) for r in better) / 30
        assert link.exact(int(n)) == fraction
        assert float(fraction) == pytest.approx(value, abs=1e-15)
        assert link.value(int(n)) == pytest.approx(value, abs=1e-14)
        assert link.curve[m] == pytest.approx(value, abs=1e-14)


@given(
    st.integers(2, 6).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 3), min_size=k, max_size=k), min_size=1, max_size=4)
    )
)
def test_enumeration_gives_the_same_fraction(rows):
    """Every choice of impostors, counted; integer scores, so there are many ties, and a tie is a failure."""
    scores = np.array(rows)
    items, people = scores.shape
    own = np.arange(items) % people
    link = LinkCounts(better_impostors(scores, own), people - 1, np.arange(items), tuple(f"t{i}" for i in range(items)))
    for size in range(1, people + 1):
        total = Fraction(0)
        for i in range(items):
            others = [j for j in range(people) if j != own[i]]
            choices = list(combinations(others, size - 1))
            won = sum(all(scores[i, own[i]] > scores[i, j] for j in some) for some in choices)
            total += Fraction(won, len(choices))
        assert link.exact(size) == total / items
        assert link.value(size) == pytest.approx(float(total / items), abs=1e-12)
        assert link.curve[size - 1] == pytest.approx(float(total / items), abs=1e-12)


@given(st.integers(1, 400), st.data())
def test_probability_of_a_link(impostors, data):
    r = data.draw(st.integers(0, impostors))
    n = data.draw(st.integers(1, impostors + 1))
    exact = Fraction(comb(impostors - r, n - 1), comb(impostors, n - 1))
    assert float(link_probability([r], impostors, n)[0]) == pytest.approx(float(exact), rel=1e-11, abs=1e-300)


def test_probability_is_accurate_at_common_voice_size():
    k = 22_023
    for r, n in [(1, 22_024), (1, 20), (37, 1000), (500, 100), (22_000, 3)]:
        exact = Fraction(comb(k - r, n - 1), comb(k, n - 1))
        assert float(link_probability([r], k, n)[0]) == pytest.approx(float(exact), rel=1e-10)


def test_counts_do_not_depend_on_blocks_and_ties_are_failures():
    rng = np.random.default_rng(1)
    enroll = rng.standard_normal((300, 24)).astype(np.float32)
    enroll[7], enroll[250] = enroll[5], 4 * enroll[5]  # the same voice under three names, one of them louder
    own = rng.integers(300, size=70)
    own[:3] = 5, 7, 250
    test = (enroll[own] + rng.standard_normal((70, 24))).astype(np.float32)
    test[:3] = enroll[5]
    x, y = unit(test).astype(float), unit(enroll).astype(float)
    plain = [sum(x[i] @ y[j] >= x[i] @ y[own[i]] for j in range(300) if j != own[i]) for i in range(70)]
    assert plain[0] >= 1
    beats = np.zeros((70, 300), bool)
    for block in [(1024, 8192), (7, 13), (1, 300), (70, 1)]:
        counts = count_better(test, own, enroll, block=block, beats=beats)
        assert counts[:3].tolist() == [2, 2, 2]
        np.testing.assert_array_equal(counts, plain)
        np.testing.assert_array_equal(beats.sum(1), counts)


def test_only_impostors_of_the_same_group_count():
    rng = np.random.default_rng(2)
    enroll, own = rng.standard_normal((50, 8)), np.arange(20)
    test = enroll[:20] + 2 * rng.standard_normal((20, 8))
    group = rng.integers(-1, 3, 50)
    found = count_better(test, own, enroll, groups=(group[own], group), block=(6, 11))
    x, y = unit(test).astype(float), unit(enroll).astype(float)
    for i in range(20):
        rivals = [j for j in range(50) if j != i and (group[i] < 0 or group[j] < 0 or group[j] == group[i])]
        assert found[i] == sum(x[i] @ y[j] >= x[i] @ y[i] for j in rivals)


def test_a_file_on_disk_is_read_in_parts(tmp_path):
    rng = np.random.default_rng(3)
    enroll = rng.standard_normal((500, 16)).astype(np.float32)
    disk = np.memmap(tmp_path / "enroll.f32", np.float32, "w+", shape=enroll.shape)
    disk[:] = enroll
    own = np.arange(40)
    test = (enroll[:40] + rng.standard_normal((40, 16))).astype(np.float32)
    np.testing.assert_array_equal(count_better(test, own, disk, block=(16, 64)), count_better(test, own, enroll))


def test_every_conversation_counts_alike():
    """Eq. 4 is over all test data: somebody with more conversations has more of them in the mean."""
    link = LinkCounts(np.array([0, 0, 0, 4]), 4, np.array([0, 0, 0, 1]), ("much", "little"))
    assert link.value(5) == 0.75 == link.curve[4] == link.exact(5)
    assert link.per_speaker(5).tolist() == [1.0, 0.0]
    assert link.interval(5)[0] < 0.75 < link.interval(5)[1]


def test_unequal_numbers_of_conversations_by_the_formula():
    """mean_i C(K - r_i, N'-1) / C(K, N'-1), with i over the conversations, from vectors to value."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((9, 1, 6)) + 0.9 * rng.standard_normal((9, 12, 6))
    enroll = embed(x, range(9), range(6))
    rows = [(s, u) for s in range(7) for u in range(6, 8 + s % 5)]
    test = Embeddings([x[s, u] for s, u in rows], [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows])
    models_of = [sum(unit(x[s, :6]).astype(float)) for s in range(9)]
    scores = np.array([[x[s, u] @ m / np.linalg.norm(m) for m in models_of] for s, u in rows])
    link = count_links(enroll, test)
    for n in (2, 4, 9):
        total = Fraction(0)
        for i, (s, _) in enumerate(rows):
            better = sum(scores[i, j] >= scores[i, s] for j in range(9) if j != s)
            total += Fraction(comb(8 - int(better), n - 1), comb(8, n - 1))
        assert link.exact(n) == total / len(rows)
        assert 0 <= link.value(n) <= 1
        assert link.value(n) == pytest.approx(float(total / len(rows)), abs=1e-12)
    assert link.value(1) == 1


def test_both_roles_jackknife_is_what_deleting_each_person_gives():
    rng = np.random.default_rng(5)
    scores = rng.standard_normal((12, 12)) + 1.5 * np.eye(12)
    own = np.arange(12)
    beats = (scores >= scores[own, own][:, None]) & ~np.eye(12, dtype=bool)
    link = LinkCounts(beats.sum(1), 11, own, tuple(map(str, own)), 1, own, beats)
    size = 5
    gallery, person = np.empty(12), np.empty(12)
    without = link_probability(link.better, 10, size)  # everybody else's, with one impostor less to draw from
    for g in range(12):
        rest = beats.copy()
        rest[:, g] = False
        gallery[g] = link_probability(rest.sum(1), 10, size).mean() - without.mean()
        person[g] = np.delete(link.per_speaker(size), g).mean()
    effect = person - person.mean() + (gallery - gallery.mean()) / np.sqrt(1 + 4 / 10)
    both, one = 11 / 12 * np.sum((effect - effect.mean()) ** 2), link.per_speaker(size).var(ddof=1) / 12
    assert both > one
    error = np.sqrt((both + one) / 2)
    assert link.interval(size) == pytest.approx(logit_t(link.value(size), error, 12), abs=1e-6)


def test_a_voice_that_attracts_everybody_does_not_make_the_interval_narrow():
    """Its own link and what it takes from the others cancel out, but it might not have been among the tested."""
    beats = np.zeros((10, 20), bool)
    beats[1:, 0] = True
    link = LinkCounts(beats.sum(1), 19, np.arange(10), tuple(map(str, range(10))), 1, np.arange(10), beats)
    low, high = link.interval(20)
    assert low < 1 / 20
    assert high > 0.4


def test_intervals_at_the_ends_are_wilsons():
    link = LinkCounts(np.zeros(20, int), 30, np.arange(20), tuple(map(str, range(20))))
    low, high = link.interval(31)
    assert (round(low, 3), high) == (0.839, 1.0)


def test_estimates_say_what_they_are():
    link = LinkCounts(np.array([0, 1, 2]), 9, np.arange(3), ("a", "b", "c"), length=3)
    one = link.estimates([5])[0]
    assert one.to_json()["speakers"] == 5
    assert one.to_json()["length"] == 3
    assert one.null == 20.0
    assert one.better == "lower"
    assert one.interval[0] < one.value < one.interval[1]
    with pytest.raises(InputError, match="largest possible number is 10"):
        link.estimate(11)


def test_conversations_are_neighbours_and_leftovers_are_dropped():
    x = np.random.default_rng(6).standard_normal((7, 3))
    e = Embeddings(x, list("abcdefg"), ["p", "p", "q", "p", "q", "p", "p"])
    found = conversations(e, 2)
    assert found.utterances.tolist() == [[0, 1], [3, 5], [2, 4]]
    assert found.names == ("p", "q")
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    mean = u[[3, 5]].mean(0)
    np.testing.assert_allclose(found.vectors[1], mean / np.linalg.norm(mean), atol=1e-6)
    assert conversations(e, 1, least=3).dropped == ("q",)
    some = conversations(e, 1, most=2, seed=3)
    assert some.counts.tolist() == [2, 2]
    # the same choice whoever else is there, and in whatever order
    other = conversations(e.take([6, 5, 3, 1, 0][::-1]), 1, most=2, seed=3)
    np.testing.assert_array_equal(some.vectors[:2], other.vectors)
    with pytest.raises(InputError, match="largest possible length is 2"):
        conversations(e, 3, least=2)


def test_means_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch):
    rng = np.random.default_rng(8)
    speakers = [f"p{s}" for s in rng.integers(9, size=100)]
    e = Embeddings(rng.standard_normal((100, 5)), [str(i) for i in range(100)], speakers)
    whole = models(e)
    for s, name in enumerate(whole.names):
        mean = e.unit[e.speakers == name].astype(float).mean(0)
        np.testing.assert_allclose(whole.vectors[s], mean / np.linalg.norm(mean), atol=1e-6)
    for block in (1, 7, 30):
        monkeypatch.setattr("veilmeter.metrics.legal.conversations._BLOCK", block)
        np.testing.assert_array_equal(models(e).vectors, whole.vectors)
        assert conversations(e, 2).vectors.shape[0] == sum(c // 2 for c in np.bincount(e.codes))


def test_what_cannot_be_linked_is_an_error():
    x = np.random.default_rng(7).standard_normal((4, 3))
    a = Embeddings(x, list("abcd"), list("ppqq"))
    b = Embeddings(x, list("abcd"), list("rrss"))
    with pytest.raises(InputError, match="no test speaker is enrolled"):
        count_links(a, b)
    with pytest.raises(InputError, match="only one speaker"):
        count_links(a.take([0, 1]), a)
    with pytest.raises(InputError, match="cancel out"):
        models(Embeddings([[1.0, 0.0], [-1.0, 0.0]], ["a", "b"], ["p", "p"]))


def test_an_attribute_belongs_to_the_person():
    x = np.eye(3)
    e = Embeddings(x, list("abc"), list("ppq"), {"gender": ["f", "", "m"], "mood": ["x", "y", "x"]})
    assert speaker_attribute(e, "gender", ["q", "p", "r"]).tolist() == ["m", "f", ""]
    with pytest.raises(InputError, match="two values of mood"):
        speaker_attribute(e, "mood", ["p"])
    with pytest.raises(InputError, match="no column 'age'; there are: gender, mood"):
        speaker_attribute(e, "age", ["p"])


@pytest.mark.parametrize("noise", [0.5, 4.0, 20.0])
def test_no_end_of_an_interval_rises_with_the_number_of_people(noise: float) -> None:
    """Linkability among more people is never larger, so no end of its interval is; that of the most people stays."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(20, 16))
        people, spoken = np.arange(20), np.repeat(np.arange(20), 2)
        enrolled = Embeddings(base, [f"e{i}" for i in people], [f"s{i}" for i in people])
        tried = Embeddings(
            base[spoken] + noise * rng.normal(size=(40, 16)), [f"t{i}" for i in range(40)], [f"s{i}" for i in spoken]
        )
        link = count_links(enrolled, tried)
        points = link.estimates([20, 2, 5, 10, 19, 15])
        assert points[0].interval == pytest.approx([100 * end for end in link.interval(20)])
        points.sort(key=lambda point: point.at["speakers"])
        for fewer, more in pairwise(points):
            assert fewer.interval[0] >= more.interval[0]
            assert fewer.interval[1] >= more.interval[1]
            assert fewer.interval[0] <= fewer.value <= fewer.interval[1]
