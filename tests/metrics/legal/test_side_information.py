"""What an attribute of the target is worth to the attacker."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import models
from veilmeter.metrics.legal.side_information import linkability_knowing, singling_out_knowing
from veilmeter.metrics.legal.singling_out import count_isolations


def voices(seed=0, people=40, k=8, unknown=()):
    rng = np.random.default_rng(seed)
    mu = rng.standard_normal((people, 6))
    rows = [(s, u) for s in range(people) for u in range(k)]
    x = np.array([mu[s] + 1.2 * rng.standard_normal(6) for s, _ in rows])
    region = ["" if s in unknown else "abcd"[s % 4] for s, _ in rows]
    one = ["x"] * len(rows)
    e = Embeddings(x, [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows], {"region": region, "planet": one})
    late = np.array([u >= 3 for _, u in rows])
    return e.take(~late), e.take(late)


def test_only_rivals_with_the_attribute_count():
    enroll, test = voices(unknown=(3, 5))
    found = linkability_knowing(enroll, test, "region")
    people = models(enroll).vectors.astype(float)
    region = ["" if s in (3, 5) else "abcd"[s % 4] for s in range(40)]
    for i in range(len(test)):
        s = int(test.speakers[i][1:])
        scores = people @ test.unit[i].astype(float)
        rivals = [j for j in range(40) if j != s and ("" in (region[s], region[j]) or region[j] == region[s])]
        assert found.knowing.better[i] == sum(scores[j] >= scores[s] for j in rivals)
    assert (found.knowing.better <= found.without.better).all()
    (one,) = found.estimates([20])
    assert one.at["knows"] == "region"
    assert one.value > 100 * found.without.value(20)
    gain = one.value - 100 * found.without.value(20)
    assert one.extra["gain"] == pytest.approx(gain)
    assert 0 < one.extra["gain_interval"][0] < gain < one.extra["gain_interval"][1]


def test_an_attribute_that_all_share_is_worth_nothing():
    enroll, test = voices()
    found = linkability_knowing(enroll, test, "planet")
    np.testing.assert_array_equal(found.knowing.better, found.without.better)
    single = count_isolations(enroll, test, [10, 40])
    knowing = singling_out_knowing(enroll, test, "planet", [10, 40], without=single)
    np.testing.assert_array_equal(knowing.knowing.attack.isolated, single.attack.isolated)
    np.testing.assert_array_equal(knowing.knowing.control.isolated, single.control.isolated)


def test_singling_out_by_one_who_knows():
    enroll, test = voices()
    single = count_isolations(enroll, test, [20, 40])
    found = singling_out_knowing(enroll, test, "region", [20, 40], without=single).estimates()
    for one, plain, hit in zip(
        found["singling_out"], single.estimates()["singling_out"], found["hit_share"], strict=True
    ):
        assert one.at["knows"] == hit.at["knows"] == "region"
        assert one.extra["gain"] == pytest.approx(one.value - plain.value)
        assert hit.value > single.hit_share(one.at["speakers"]).value


def test_alone_with_an_attribute_means_singled_out():
    """The only one of their kind needs no voice: knowing is enough."""
    enroll, test = voices(people=12)
    region = np.where(test.speakers == "s0", "alone", "many")
    test = Embeddings(test.vectors, test.utterances, test.speakers, {"region": region})
    single = count_isolations(enroll, test, [12])
    knowing = singling_out_knowing(enroll, test, "region", [12], without=single).knowing
    alone = knowing.names.index("s0")
    assert knowing.per_predicate(12)[alone] == 1.0
    assert knowing.attack.hits[alone].sum() == 5 * 10


def test_a_column_that_is_missing_or_empty():
    enroll, test = voices(unknown=range(40))
    with pytest.raises(InputError, match="has a column 'accent'; there are: planet, region"):
        linkability_knowing(enroll, test, "accent")
    with pytest.raises(InputError, match="empty for everybody"):
        linkability_knowing(enroll, test, "region")
