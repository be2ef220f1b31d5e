"""Extrapolated Linkability: the model, its fit, its back-test, and the truth in simulated populations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import unit
from veilmeter.metrics.legal.linkability import Linkability, count_better
from veilmeter.metrics.legal.population import BetaBinomial, back_test, fit, fit_both, population_linkability


def linked(better, impostors):
    n = len(better)
    return Linkability(np.asarray(better), impostors, np.arange(n), tuple(f"s{i}" for i in range(n)))


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
    plain, inflated = fit_both(r, 800)
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


def test_every_number_carries_its_back_test():
    rng = np.random.default_rng(3)
    link = linked(rng.binomial(400, rng.beta(0.4, 15.0, 200)), 400)
    found = population_linkability(link, [10**4, 10**6, 10**8])
    values = [one.value for one in found]
    assert values == sorted(values, reverse=True)
    for one, n in zip(found, (10**4, 10**6, 10**8), strict=True):
        assert "model-dependent" in one.method
        assert "back-test" in one.method
        assert one.extra["model_dependent"]
        assert one.extra["back_test"]["fitted"] == 21
        assert one.extra["back_test"]["speakers"] == 401
        assert one.interval[0] <= one.value <= one.interval[1]
        assert one.interval[1] <= link.interval(401)[1]  # more people never make it easier
        truth = float(BetaBinomial(0.4, 15.0).linkability(n))
        assert one.interval[0] <= truth <= one.interval[1]
    again = population_linkability(link, [10**6])[0]
    assert again == found[1]


def test_a_wrong_model_fails_its_back_test_and_widens_the_interval():
    rng = np.random.default_rng(4)
    right = linked(rng.binomial(400, rng.beta(0.4, 15.0, 300)), 400)
    wrong = linked(rng.binomial(400, np.where(rng.random(300) < 0.5, 0.004, 0.5)), 400)
    assert back_test(right).error < 1
    assert back_test(wrong).error > 2 * back_test(right).error
    (one,) = population_linkability(wrong, [8000])
    assert one.interval[0] <= 0.01


def test_nobody_beaten_says_little():
    (one,) = population_linkability(linked(np.zeros(30, int), 100), [10**6])
    assert one.value == 1.0
    assert one.interval == (0.0, 1.0)
    (near,) = population_linkability(linked(np.zeros(3000, int), 1000), [2000])
    assert near.interval[0] == pytest.approx(1 - 3 * 1999 / 3_000_000)


def test_what_cannot_be_extrapolated():
    with pytest.raises(InputError, match="nothing can be said"):
        population_linkability(linked([0, 1, 2], 8), [1000])
    with pytest.raises(InputError, match="measured, not extrapolated"):
        population_linkability(linked(np.arange(30), 40), [20])


SHAPES = {
    "gaussian": lambda rng, n: rng.standard_normal((n, 24)) * 0.77,
    "heavy tails": lambda rng, n: rng.standard_t(3, (n, 16)),
    "noisy people": lambda rng, n: rng.standard_normal((n, 32)) * np.exp(0.4 * rng.standard_normal((n, 1))) * 0.83,
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_truth_at_twenty_times_the_size_lies_in_the_interval(shape):
    """Ten simulated populations of each shape; the benchmark runs more."""
    inside = 0
    for seed in range(10):
        rng = np.random.default_rng([5, seed])
        fitted, factor, tested = 300, 20, 150
        mu = SHAPES[shape](rng, fitted * factor)
        enrol = unit(mu + 0.3 * rng.standard_normal(mu.shape))
        test = unit(mu + rng.standard_normal(mu.shape))
        many = np.arange(tested, tested + 600)
        truth = np.mean(count_better(test[many], many, enrol) == 0)
        own = np.arange(tested)
        link = linked(count_better(test[:tested], own, enrol[:fitted]), fitted - 1)
        (one,) = population_linkability(link, [fitted * factor], seed=seed)
        inside += one.interval[0] <= truth <= one.interval[1]
    assert inside >= 9
