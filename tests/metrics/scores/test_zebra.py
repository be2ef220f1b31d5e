"""ZEBRA against numerical integration of its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.metrics.calibration import BlockSets, pav
from veilmeter.metrics.scores import zebra

llrs = st.lists(st.floats(-20, 20), min_size=1, max_size=10)
scores = st.lists(st.integers(-5, 5).map(float) | st.floats(-9, 9), min_size=1, max_size=30)

# Gauss-Legendre nodes for the integral over the prior, on both halves so that the ends are dense.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)
PRIORS, PRIOR_WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


def integrated(t: list[float], n: list[float]) -> float:
    """The area between the prior's ECE and that of the ratios (eq. 11 to 13), over the prior."""
    logit = np.log(PRIORS) - np.log1p(-PRIORS)
    no_scores = -(PRIORS * np.log2(PRIORS) + (1 - PRIORS) * np.log2(1 - PRIORS))
    up = np.mean([np.logaddexp(0, -a - logit) for a in t], axis=0) / np.log(2)
    down = np.mean([np.logaddexp(0, b + logit) for b in n], axis=0) / np.log(2)
    return float(PRIOR_WEIGHTS @ (no_scores - PRIORS * up - (1 - PRIORS) * down))


@given(llrs, llrs)
def test_closed_form_is_the_area(t: list[float], n: list[float]) -> None:
    assert zebra.d_ece(t, n) == pytest.approx(integrated(t, n), abs=2e-4)


def test_z_is_smooth_where_its_forms_meet() -> None:
    for at in (0.3, -0.3):
        below, above = zebra.z([np.nextafter(at, -1), np.nextafter(at, 1)])
        assert below == pytest.approx(above, abs=1e-7)
    assert zebra.z([0.0])[0] == 0
    assert zebra.z([1e-12])[0] == pytest.approx(1e-12 / 3)


def test_z_at_the_ends() -> None:
    assert zebra.z([709.0, 710.0, 1e6, np.inf]).tolist() == [0.5] * 4
    assert zebra.z([-np.inf])[0] == -np.inf
    np.testing.assert_allclose(zebra.z([-800.0, -1e6]), [-798.5, -1e6 + 1.5])
    assert np.isnan(zebra.z([np.nan])[0])
    x = np.linspace(-50, 50, 5001)
    assert (np.diff(zebra.z(x)) > -1e-15).all()


@given(scores, scores)
def test_disclosure_is_between_nothing_and_all(t: list[float], n: list[float]) -> None:
    found = zebra.zebra(t, n)
    assert 0 <= found.d_ece <= zebra.MAX_D_ECE + 1e-12
    assert found.l_w >= 0
    assert found.inverted == (found.d_ece_flipped > found.d_ece)
    other = zebra.zebra([-x for x in t], [-x for x in n])
    assert other.d_ece == pytest.approx(found.d_ece_flipped, abs=1e-12)


@given(scores, scores)
def test_blocks_give_what_trials_give(t: list[float], n: list[float]) -> None:
    blocks = pav(t, n)
    found = zebra.DEce().of_blocks(BlockSets.single(blocks.targets, blocks.impostors))[0]
    assert found == pytest.approx(max(0, zebra.d_ece(blocks.apply(t), blocks.apply(n))), abs=1e-12)


def test_constant_and_separated_scores() -> None:
    nothing = zebra.zebra([1.0] * 500, [1.0] * 3000)
    assert nothing.d_ece == 0
    assert nothing.l_w < 0.05
    everything = zebra.zebra(np.arange(100.0) + 100, np.arange(100.0))
    assert everything.d_ece == pytest.approx(0.7213, abs=5e-5)
    assert everything.tag == "C"


def test_inverted_leakage_is_seen() -> None:
    rng = np.random.default_rng(0)
    found = zebra.zebra(rng.normal(-1, 1, 500), rng.normal(0, 1, 5000))
    assert found.inverted
    assert found.d_ece < 0.005 < 0.05 < found.d_ece_flipped


def test_tags_are_half_open() -> None:
    bounds = {0.0: "0", 1e-9: "A", 1.0: "B", 2.0: "C", 3.999: "C", 4.0: "D", 5.0: "E", 6.0: "F", 99.0: "F"}
    assert {value: zebra.tag(value) for value in bounds} == bounds
    with pytest.raises(InputError):
        zebra.tag(-1)


def test_a_calibration_that_is_sure_and_wrong_costs_everything() -> None:
    sure = zebra.train("isotonic", [1.0], [0.0], laplace=False)
    assert zebra.c_ece([0.0], [1.0], sure) == -np.inf
    assert np.isfinite(zebra.c_ece([0.0], [1.0], zebra.train("isotonic", [1.0], [0.0])))
    assert zebra.c_ece([1.0], [0.0], sure) == pytest.approx(zebra.MAX_D_ECE)
    with pytest.raises(InputError):
        zebra.train("magic", [1.0], [0.0])


def test_profile_meets_cllr_and_the_prior() -> None:
    from veilmeter.metrics.scores.cllr import cllr, min_cllr

    rng = np.random.default_rng(3)
    t, n = rng.normal(1, 1, 200), rng.normal(-1, 1, 900)
    found = zebra.ece_profile(t, n, log_odds=[0.0])
    assert found.actual[0] == pytest.approx(cllr(t, n))
    assert found.pav[0] == pytest.approx(min_cllr(t, n))
    assert found.prior[0] == pytest.approx(1)
    wide = zebra.ece_profile(t, n)
    assert (wide.pav <= np.minimum(wide.prior, wide.actual) + 1e-9).all()


def test_a_thinned_profile_is_close() -> None:
    rng = np.random.default_rng(4)
    t, n = rng.normal(1, 1, 5000), rng.normal(-1, 1, 9000)
    np.testing.assert_allclose(zebra.ece_profile(t, n, most=1000).actual, zebra.ece_profile(t, n).actual, atol=0.005)
