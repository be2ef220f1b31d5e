"""What ranks give away, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, entropy

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import models
from veilmeter.metrics.legal.linkability import LinkCounts, count_links
from veilmeter.metrics.legal.one_minus_eer import one_minus_eer
from veilmeter.metrics.legal.ranks import (
    HISTOGRAM,
    MODEL,
    BetaBinomial,
    disclosure,
    fit,
    identity_tpr,
    match_curve,
    rank_estimates,
    refit,
)


def linked(better, impostors):
    n = len(better)
    return LinkCounts(np.asarray(better), impostors, np.arange(n), tuple(f"s{i}" for i in range(n)))


def test_match_curve():
    link = linked([0, 0, 3, 9, 4], 9)
    found = {one.at["k"]: one for one in match_curve(link, (1, 4, 5, 10, 20))}
    assert {k: one.value for k, one in found.items()} == {1: 40.0, 4: 60.0, 5: 80.0}
    assert found[4].null == 40.0
    # among fewer, exact over all choices: the first place is Linkability
    for n in (2, 5, 9):
        best = match_curve(link, (1,), speakers=n)[0]
        assert best.value == pytest.approx(100 * link.value(n))
        assert best.interval == pytest.approx([100 * end for end in link.interval(n)])  # one figure, one interval


def test_match_curve_among_fewer_is_what_drawing_gives():
    rng = np.random.default_rng(0)
    link = linked([0, 2, 5, 11], 30)
    drawn = rng.hypergeometric(link.better, 30 - link.better, 11, size=(20_000, 4))
    for one in match_curve(link, (1, 2, 4), speakers=12):
        assert one.value == pytest.approx(100 * np.mean(drawn < one.at["k"]), abs=1)


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
    enroll, test = voices()
    found = identity_tpr(enroll, test.take(np.arange(len(test)) != 0))
    people = models(enroll)
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
        assert found.estimate(fpr).value == pytest.approx(100 * np.mean(each))
    assert [one.at["fpr"] for one in found.estimates((0.1, 0.001))] == [0.1]  # 38 others can't show one in a thousand


def test_all_of_it_at_once():
    enroll, test = voices()
    found = rank_estimates(count_links(enroll, test, length=3), intervals=False)
    assert set(found) == {"cmc", "rank_disclosure", "rank_disclosure_worst"}
    assert all(one.interval is None and one.at["length"] == 3 for curve in found.values() for one in curve)
    with pytest.raises(InputError, match="no test speaker is enrolled"):
        identity_tpr(enroll.take(enroll.speakers == "s0"), test.take(test.speakers == "s1"))


@pytest.mark.parametrize("dimension", [12, 37, 192, 256])
def test_voices_that_are_all_the_same_have_no_rate(dimension):
    """Rounding in a matrix product must not tell apart what is the same: everybody else passes, too."""
    voice = np.random.default_rng(dimension).standard_normal(dimension)
    one = Embeddings(np.tile(voice, (280, 1)), [str(i) for i in range(280)], [f"s{i // 7}" for i in range(280)])
    assert identity_tpr(one, one).estimate(0.1, intervals=False).value == 0
    (accuracy,) = one_minus_eer(one, one, [40], intervals=False)
    assert accuracy.value == 50


def test_the_model_is_scipys_beta_binomial():
    model = BetaBinomial(0.4, 7.0)
    r = np.arange(51)
    np.testing.assert_allclose(np.exp(model.log_ranks(50)), betabinom.pmf(r, 50, 0.4, 7.0), atol=1e-12)
    inflated = BetaBinomial(0.4, 7.0, 0.3)
    wanted = 0.7 * betabinom.pmf(r, 50, 0.4, 7.0) + 0.3 * (r == 0)
    np.testing.assert_allclose(np.exp(inflated.log_ranks(50)), wanted, atol=1e-12)
    # Linkability among everybody is the probability of no better impostor
    assert float(inflated.linkability(51)) == pytest.approx(wanted[0])


def test_linkability_is_the_mean_over_people():
    theta = np.random.default_rng(0).beta(0.5, 10.0, 400_000)
    for n in (2, 100, 10_000):
        mean = np.mean((1 - theta) ** (n - 1))
        assert float(BetaBinomial(0.5, 10.0).linkability(n)) == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize("never", [0.0, 0.3])
def test_the_fit_finds_what_made_the_data(never):
    rng = np.random.default_rng(1)
    theta = rng.beta(0.6, 12.0, 6000) * (rng.random(6000) >= never)
    r = rng.binomial(800, theta)
    plain = fit(r, 800)
    inflated = fit(r, 800, inflated=True)
    found = inflated if never else plain
    assert found.a == pytest.approx(0.6, rel=0.15)
    assert found.b == pytest.approx(12.0, rel=0.2)
    assert inflated.never == pytest.approx(never, abs=0.05)


@pytest.mark.parametrize("inflated", [False, True])
def test_no_other_parameters_are_likelier(inflated):
    """The optimum against a grid around it, by scipy's own density."""
    rng = np.random.default_rng(2)
    r = rng.binomial(60, rng.beta(0.8, 5.0, 300) * (rng.random(300) > 0.2))
    found = fit(r, 60, inflated=inflated)

    def likelihood(a, b, z):
        return np.log((1 - z) * betabinom.pmf(r, 60, a, b) + z * (r == 0)).sum()

    best = likelihood(found.a, found.b, found.never)
    for factor in (0.9, 0.97, 1.03, 1.1):
        assert likelihood(found.a * factor, found.b, found.never) <= best + 1e-4
        assert likelihood(found.a, found.b * factor, found.never) <= best + 1e-4
        if inflated:
            assert likelihood(found.a, found.b, found.never * factor) <= best + 1e-4


def test_weights_are_repetitions():
    r, times = np.array([0, 1, 5, 30]), np.array([4, 3, 2, 1])
    one, two = fit(r, 40, times), fit(np.repeat(r, times), 40)
    assert (one.a, one.b) == pytest.approx((two.a, two.b), rel=1e-4)


@pytest.mark.parametrize(
    ("a", "b", "impostors", "people"),
    [
        (0.5, 20, 500, 800),
        (1, 1, 300, 200),
        (0.02, 300, 1000, 300),
        (1, 1, 10, 15),
        (5, 50, 9, 40),
        (0.01, 1000, 99, 30),
    ],
)
def test_resamples_fitted_together_are_as_likely_as_fitted_alone(a, b, impostors, people):
    """Many people and few, who are nearly all first, or for whom hardly anything is known."""
    rng = np.random.default_rng(3)
    r = rng.binomial(impostors, rng.beta(a, b, people))
    ranks, where, observed = np.unique(r, return_inverse=True, return_counts=True)
    masses = np.array([np.bincount(rng.choice(where, people), minlength=len(ranks)) for _ in range(12)], float)
    near = fit(r, impostors)
    together = refit(ranks, observed.astype(float), masses, impostors, near)
    for model, mass in zip(together, masses, strict=True):
        alone = fit(ranks, impostors, mass, start=near)
        assert mass @ model.log_ranks(impostors)[ranks] >= mass @ alone.log_ranks(impostors)[ranks] - 1e-6
    assert refit(ranks, observed.astype(float), masses[5:7], impostors, near) == together[5:7]
