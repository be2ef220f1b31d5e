"""What ranks give away, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import models
from veilmeter.metrics.legal.linkability import Linkability, linkability
from veilmeter.metrics.legal.one_minus_eer import one_minus_eer
from veilmeter.metrics.legal.ranks import HISTOGRAM, MODEL, disclosure, identity_tpr, match_curve, rank_estimates


def linked(better, impostors):
    n = len(better)
    return Linkability(np.asarray(better), impostors, np.arange(n), tuple(f"s{i}" for i in range(n)))


def test_match_curve():
    link = linked([0, 0, 3, 9, 4], 9)
    found = {one.at["k"]: one for one in match_curve(link, (1, 4, 5, 10, 20))}
    assert {k: one.value for k, one in found.items()} == {1: 0.4, 4: 0.6, 5: 0.8}
    assert found[4].null == 0.4
    # among fewer, exact over all choices: the first place is Linkability
    for n in (2, 5, 9):
        assert match_curve(link, (1,), speakers=n)[0].value == pytest.approx(link.value(n))


def test_match_curve_among_fewer_is_what_drawing_gives():
    rng = np.random.default_rng(0)
    link = linked([0, 2, 5, 11], 30)
    drawn = rng.hypergeometric(link.better, 30 - link.better, 11, size=(20_000, 4))
    for one in match_curve(link, (1, 2, 4), speakers=12):
        assert one.value == pytest.approx(np.mean(drawn < one.at["k"]), abs=0.01)


def test_disclosure_by_the_histogram():
    better = np.array([0, 0, 0, 1, 1, 7])
    found = disclosure(linked(better, 15))
    by = {(name, one.at["model"]): one for name, both in found.items() for one in both}
    p = np.array([3, 2, 1]) / 6
    assert by["rank_disclosure", HISTOGRAM].value == pytest.approx(4 - entropy(p, base=2))
    assert by["rank_disclosure_worst", HISTOGRAM].value == pytest.approx(np.log2(16 * 0.5))
    assert by["rank_disclosure", HISTOGRAM].null > 1  # six recordings over sixteen ranks: telling by accident
    assert by["rank_disclosure", HISTOGRAM].null_range[0] < by["rank_disclosure", HISTOGRAM].null


def test_disclosure_by_the_model():
    rng = np.random.default_rng(1)
    sharp = disclosure(linked(rng.binomial(200, rng.beta(0.3, 20, 500)), 200))
    blind = disclosure(linked(rng.integers(201, size=500), 200))
    one = next(o for o in sharp["rank_disclosure"] if o.at["model"] == MODEL)
    none = next(o for o in blind["rank_disclosure"] if o.at["model"] == MODEL)
    hist = next(o for o in blind["rank_disclosure"] if o.at["model"] == HISTOGRAM)
    assert one.value > 2
    assert one.interval[0] < one.value < one.interval[1]
    assert none.value < 0.02
    assert hist.inside_null
    worst = next(o for o in sharp["rank_disclosure_worst"] if o.at["model"] == MODEL)
    assert one.value < worst.value <= np.log2(201)


def test_disclosure_is_all_or_nothing():
    sure = disclosure(linked(np.zeros(50, int), 63))
    assert all(o.value == pytest.approx(6, abs=0.05) for both in sure.values() for o in both)


def voices(seed=2, people=14, k=6):
    rng = np.random.default_rng(seed)
    mu = rng.standard_normal((people, 6))
    rows = [(s, u) for s in range(people) for u in range(k)]
    x = np.array([mu[s] + 0.8 * rng.standard_normal(6) for s, _ in rows])
    e = Embeddings(x, [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows])
    late = np.array([u >= 3 for _, u in rows])
    return e.take(~late), e.take(late)


def test_threshold_of_each_person():
    enrol, test = voices()
    found = identity_tpr(enrol, test.take(np.arange(len(test)) != 0))
    people = models(enrol)
    unit = test.unit[1:]
    speakers = np.array(list(test.speakers[1:]))
    for fpr in (0.05, 0.1, 0.5):
        each = []
        for s, name in enumerate(people.names):
            scores = unit @ people.vectors[s]
            own, other = scores[speakers == name], np.sort(scores[speakers != name])[::-1]
            allowed = int(fpr * len(other))
            each.append(np.mean(own > other[allowed]))
        np.testing.assert_allclose(found.per_speaker(fpr), each)
        assert found.estimate(fpr).value == pytest.approx(np.mean(each))
    assert [one.at["fpr"] for one in found.estimates((0.1, 0.001))] == [0.1]  # 38 others can't show one in a thousand


def test_all_of_it_at_once():
    enrol, test = voices()
    found = rank_estimates(linkability(enrol, test, length=3), intervals=False)
    assert set(found) == {"cmc", "rank_disclosure", "rank_disclosure_worst"}
    assert all(one.interval is None and one.at["length"] == 3 for curve in found.values() for one in curve)
    with pytest.raises(InputError, match="no test speaker is enrolled"):
        identity_tpr(enrol.take(enrol.speakers == "s0"), test.take(test.speakers == "s1"))


@pytest.mark.parametrize("dimension", [12, 37, 192, 256])
def test_voices_that_are_all_the_same_have_no_rate(dimension):
    """Rounding in a matrix product must not tell apart what is the same: everybody else passes, too."""
    voice = np.random.default_rng(dimension).standard_normal(dimension)
    one = Embeddings(np.tile(voice, (280, 1)), [str(i) for i in range(280)], [f"s{i // 7}" for i in range(280)])
    assert identity_tpr(one, one).estimate(0.1, intervals=False).value == 0
    (accuracy,) = one_minus_eer(one, one, [40], intervals=False)
    assert accuracy.value == 0.5
