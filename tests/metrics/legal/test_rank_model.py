"""The Beta-binomial model of ranks: its density, its fit, and what it says of Linkability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom

from veilmeter.metrics.legal.rank_model import BetaBinomial, fit, refit


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
