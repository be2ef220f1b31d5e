"""Extrapolated Linkability: the fit of the tail, the model by a plain loop, its back-test, simulated populations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import genpareto

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.metrics.legal.linkability import LinkCounts, count_links, linkability_of_scores
from veilmeter.metrics.legal.population import (
    ParetoTail,
    _extremal_index,
    back_test,
    fit_tail,
    population_linkability,
)


def voices(rng, people, d=24, share=1.0, clear=1.5, hidden=0.12):
    """Some people are as clear as before, the rest hidden."""
    return rng.standard_normal((people, d)) * np.where(rng.random((people, 1)) < share, clear, hidden)


def linked(rng, mu, fitted=50, times=3):
    """Linkability of the first people, a few conversations each."""
    enroll = unit(mu[:fitted] + 0.3 * rng.standard_normal((fitted, mu.shape[1])))
    who = np.arange(fitted).repeat(times)
    test = unit(mu[who] + rng.standard_normal((len(who), mu.shape[1])))
    names = [f"s{i}" for i in range(fitted)]
    return linkability_of_scores(enroll @ test.T, names, np.array(names, object)[who])


@pytest.mark.parametrize("shape", [0.0, -0.1, -0.3])
def test_the_tail_is_scipys_generalized_pareto(shape):
    tail = ParetoTail(shape, 1.7)
    x = np.linspace(0, 6, 50)
    np.testing.assert_allclose(tail.beyond(x), genpareto.sf(x, shape, scale=1.7), atol=1e-12)
    excesses = genpareto.rvs(shape, scale=1.7, size=20_000, random_state=1)
    found = fit_tail(excesses, np.ones(20_000))
    assert found.shape == pytest.approx(shape, abs=0.03)
    assert found.scale == pytest.approx(1.7, rel=0.05)


def test_no_other_tail_is_likelier():
    excesses = genpareto.rvs(-0.2, size=400, random_state=2)
    weights = np.random.default_rng(3).integers(0, 4, 400).astype(float)
    found = fit_tail(excesses, weights)
    best = weights @ genpareto.logpdf(excesses, found.shape, scale=found.scale)
    for shape in np.linspace(-0.5, 0, 26):
        for factor in (0.9, 0.97, 1.0, 1.03, 1.1):
            other = genpareto.logpdf(excesses[weights > 0], shape, scale=found.scale * factor)
            assert weights[weights > 0] @ other <= best + 0.05


def test_heavier_tails_are_taken_for_exponential_ones():
    assert fit_tail(genpareto.rvs(0.4, size=5000, random_state=0), np.ones(5000)).shape == 0.0
    assert fit_tail(np.zeros(3), np.ones(3)).beyond(1.0) == 0.0


def by_plain_loop(link, people):
    """T-norm, pooled deviation, empirical distribution and tail, written out; scores of a trial independent."""
    scores, right = link.sample.impostors.astype(float), link.sample.right.astype(float)
    means = np.nanmean(scores, axis=1)
    deviation = np.sqrt(np.nanmean((scores - means[:, None]) ** 2))
    pooled = np.sort(((scores - means[:, None]) / deviation)[~np.isnan(scores)])[::-1]
    cut = int(np.ceil(0.05 * len(pooled))) - 1
    tail = fit_tail(pooled[:cut] - pooled[cut], np.ones(cut))
    total = 0.0
    for mean, score in zip(means, right, strict=True):
        z = (score - mean) / deviation
        if z > pooled[cut]:
            beaten = (cut + 1) / len(pooled) * float(tail.beyond(z - pooled[cut]))
        else:
            beaten = np.mean(pooled >= z)
        total += (1 - beaten) ** (people - 1)
    return total / len(right)


def test_the_model_by_a_plain_loop():
    rng = np.random.default_rng(4)
    link = linked(rng, voices(rng, 60), fitted=60, times=2)
    (point,) = population_linkability(link, [1000], intervals=False)
    assert point.value == pytest.approx(100 * by_plain_loop(link, 1000), rel=0.02)


def test_scores_that_depend_on_each_other_count_as_fewer():
    """A clear recording scores high with the right person and with the whole family, an unclear one with nobody."""
    rng = np.random.default_rng(5)
    families = 1.3 * rng.standard_normal((30, 24))[rng.integers(30, size=60)]
    link = linked(rng, families + 0.9 * rng.standard_normal((60, 24)), fitted=60, times=4)
    measured = 100 * link.value(60)
    assert by_plain_loop(link, 60) < measured - 0.015
    now, later = population_linkability(link, [60, 5000], intervals=False)
    assert now.value == pytest.approx(measured, abs=0.2)
    assert 100 * by_plain_loop(link, 5000) < 0.8 * later.value < later.value < measured


def test_every_number_carries_its_back_test():
    rng = np.random.default_rng(3)
    link = linked(rng, voices(rng, 100, clear=0.8), fitted=100)
    sizes = [10**4, 10**6, 10**8]
    found = population_linkability(link, sizes, resamples=30)
    values = [point.value for point in found]
    assert values == sorted(values, reverse=True)
    for point in found:
        assert "model-dependent" in point.method
        assert "back-test" in point.method
        assert point.extra["model_dependent"]
        assert (point.extra["back_test"]["fitted"], point.extra["back_test"]["speakers"]) == (25, 100)
        assert point.interval[0] <= point.value <= point.interval[1]
        assert point.interval[1] <= 100 * link.interval(100)[1]  # more people never make it easier
    (again,) = population_linkability(link, sizes[1:2], resamples=30)
    assert (again.value, *again.interval) == pytest.approx((found[1].value, *found[1].interval))


def test_what_the_back_test_missed_widens_the_interval():
    """Families: impostors are rarely of one's own, and what few people show of them misleads."""
    rng = np.random.default_rng(5)
    families = 1.3 * rng.standard_normal((12, 24))[rng.integers(12, size=60)]
    link = linked(rng, families + 0.9 * rng.standard_normal((60, 24)), fitted=60)
    tested = back_test(link)
    assert tested.error > 0
    assert tested.missed == max(0.0, tested.error - tested.spread)
    (point,) = population_linkability(link, [10_000], resamples=30)
    assert point.interval[1] - point.interval[0] > 30


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_an_unprotected_minority_is_not_lost(share):
    """Those who are as clear as before are found among any number of people, and so many of them are expected."""
    rng = np.random.default_rng(6)
    found, truth = [], []
    for _ in range(6):
        mu = voices(rng, 5000, d=64, share=share)
        link = linked(rng, mu, fitted=100, times=1)
        (point,) = population_linkability(link, [5000], resamples=30)
        found.append(point)
        many = np.arange(100, 500)
        enroll = unit(mu + 0.3 * rng.standard_normal(mu.shape))
        test = unit(mu[many] + rng.standard_normal((len(many), 64)))
        truth.append(np.mean((test @ enroll.T).argmax(axis=1) == many))
    assert np.mean([point.value for point in found]) == pytest.approx(100 * share, rel=0.6)
    assert sum(p.interval[0] <= 100 * t <= p.interval[1] for p, t in zip(found, truth, strict=True)) >= 5


def test_a_few_people_can_not_rule_out_a_minority():
    rng = np.random.default_rng(7)
    (point,) = population_linkability(linked(rng, voices(rng, 50, share=0.0)), [10**6], resamples=30)
    assert point.value < 1
    assert point.interval[1] > 5  # 3 of 50 may be unprotected, and none of them be here


def test_vectors_and_scores_keep_the_same_sample():
    rng = np.random.default_rng(8)
    mu = voices(rng, 20)
    enroll = Embeddings(mu + 0.1, [f"e{i}" for i in range(20)], [f"s{i}" for i in range(20)])
    test = Embeddings(mu + rng.standard_normal(mu.shape), [f"t{i}" for i in range(20)], [f"s{i}" for i in range(20)])
    of_vectors = count_links(enroll, test)
    of_scores = linkability_of_scores(enroll.unit @ test.unit.T, enroll.names, np.array(test.speakers, object))
    np.testing.assert_array_equal(of_vectors.better, of_scores.better)
    np.testing.assert_allclose(of_vectors.sample.right, of_scores.sample.right, atol=1e-6)
    np.testing.assert_allclose(of_vectors.sample.impostors, of_scores.sample.impostors, atol=1e-6)


def test_what_cannot_be_extrapolated():
    rng = np.random.default_rng(9)
    with pytest.raises(InputError, match="can't be modeled"):
        population_linkability(linked(rng, voices(rng, 9), fitted=9), [1000])
    with pytest.raises(InputError, match="measured, not extrapolated"):
        population_linkability(linked(rng, voices(rng, 40), fitted=40), [20])
    with pytest.raises(InputError, match="without keeping scores"):
        population_linkability(LinkCounts(np.zeros(30, int), 40, np.arange(30), ("",) * 30), [100])


def test_the_extremal_index_says_what_was_measured():
    """Found by halving an interval instead; from almost no impostors that act alone to all of them."""
    rng = np.random.default_rng(8)
    for theta in (0.01, 0.03, 0.2, 0.7, 1.0, 3.0):
        logs, impostors = np.log1p(-rng.beta(0.5, 40, 500)), np.full(500, 200.0)
        first = rng.random(500) < np.exp(theta * impostors * logs)
        weights = rng.poisson(1, 500).astype(float)
        measured = np.average(first, weights=weights)
        low, high = 0.02, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            unbeaten = np.average(np.exp(middle * impostors * logs), weights=weights)
            low, high = (middle, high) if unbeaten > measured else (low, middle)
        assert _extremal_index(logs, weights, impostors, first) == pytest.approx(high, rel=1e-6)
    nobody_is_beaten = _extremal_index(np.zeros(9), np.ones(9), np.full(9, 20.0), np.ones(9, bool))
    assert nobody_is_beaten == 1.0
