"""The control of Singling Out: outsiders who are people like those in the set, against brute force and known truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import conversations, models
from veilmeter.metrics.legal.isolation import isolations
from veilmeter.metrics.legal.outsiders import FEWEST, OF_OUTSIDERS, WITHOUT_TARGET, assigned
from veilmeter.metrics.legal.singling_out import singling_out, singling_out_of_scores

INSIDE, EACH, DIMENSION = 30, 6, 24


def sides(
    outsiders: int, *, leak: float = 0.0, shift: float = 0.0, genders: str = "", seed: int = 0
) -> tuple[Embeddings, Embeddings]:
    """Enrolled people, of whom the last ones have no test recordings. Everybody is consistent with themselves in the
    test; `leak` is what the enrollment knows of that, and outsiders lie `shift` away from the others."""
    rng = np.random.default_rng(seed)
    people = INSIDE + outsiders
    heard = rng.standard_normal((people, DIMENSION))
    known = leak * heard + rng.standard_normal(heard.shape)
    known[INSIDE:] += shift
    heard += shift / 3  # voices have something in common, which rules of others do not
    names = [f"s{person:03d}" for person in range(people)]
    columns = {"gender": list(genders)} if genders else None
    enrol = Embeddings(known, names, names, columns)
    own = np.arange(INSIDE).repeat(EACH)
    test = heard[own] + 0.5 * rng.standard_normal((len(own), DIMENSION))
    return enrol, Embeddings(test, [f"{names[i]}-{row}" for row, i in enumerate(own)], [names[i] for i in own])


def test_outsiders_serve_as_control_exactly() -> None:
    enrol, test = sides(40, seed=1)
    measured = singling_out(enrol, test, [INSIDE], draws=1)
    assert measured.controlled is not None
    assert measured.controlled.method == OF_OUTSIDERS
    tested, people = conversations(test, 1, least=2, most=10, seed=0), models(enrol)
    chosen = assigned(np.arange(INSIDE, INSIDE + 40), np.arange(INSIDE), [""] * len(people), 0)
    assert chosen is not None
    everybody = [[np.arange(INSIDE)]] * INSIDE
    isolated, _ = isolations(people.vectors[chosen], np.arange(INSIDE), tested, everybody)
    np.testing.assert_array_equal(measured.per_predicate(INSIDE, control=True), isolated[:, 0].mean(axis=1))
    # The same from scores alone.
    columns = tested.vectors @ people.vectors.T
    again = singling_out_of_scores(columns.T, people.names, tested, [INSIDE], draws=1)
    np.testing.assert_array_equal(again.per_predicate(INSIDE, control=True), isolated[:, 0].mean(axis=1))


@pytest.mark.parametrize("outsiders", [0, 40])
def test_without_a_leak_nothing_is_left_beyond_the_control(outsiders: int) -> None:
    risks = [singling_out(*sides(outsiders, seed=seed), [INSIDE]).residual_risk(INSIDE) for seed in range(6)]
    assert abs(np.mean([risk.value for risk in risks])) < 0.06
    assert sum(risk.interval[0] <= 0 <= risk.interval[1] for risk in risks if risk.interval) >= 5


def test_both_controls_see_the_same_leak() -> None:
    alone, with_outsiders = (
        np.mean([singling_out(*sides(n, leak=1.0, seed=s), [INSIDE]).residual_risk(INSIDE).value for s in range(6)])
        for n in (0, 40)
    )
    assert alone > 0.2
    assert with_outsiders == pytest.approx(alone, abs=0.08)


def test_outsiders_unlike_the_others_do_not_serve_and_that_is_said() -> None:
    enrol, test = sides(40, shift=-1.0, seed=2)
    measured = singling_out(enrol, test, [INSIDE])
    method = measured.control_estimate(INSIDE).method
    assert method.startswith(WITHOUT_TARGET)
    assert "isolate differently" in method
    plain = singling_out(*sides(0, shift=-1.0, seed=2), [INSIDE])
    assert abs(measured.residual_risk(INSIDE).value) < 0.15
    assert plain.control_estimate(INSIDE).method == WITHOUT_TARGET


def test_few_outsiders_or_of_another_gender_do_not_serve() -> None:
    few = singling_out(*sides(FEWEST - 1, seed=3), [INSIDE])
    assert "too few" in few.control_estimate(INSIDE).method
    others = singling_out(*sides(40, genders="f" * INSIDE + "m" * 40, seed=3), [INSIDE])
    assert "of other kinds" in others.control_estimate(INSIDE).method


def test_outsiders_are_used_alike_and_stay_within_their_kind() -> None:
    kinds = ["f"] * 20 + ["m"] * 10 + ["f"] * 12 + ["m"] * 15
    chosen: NDArray[np.int64] | None = assigned(np.arange(30, 57), np.arange(30), kinds, 0)
    assert chosen is not None
    assert all(kinds[row] == kinds[target] for target, row in enumerate(chosen))
    assert np.bincount(chosen)[30:42].tolist().count(2) == 8
    assert assigned(np.arange(30, 42), np.arange(30), kinds, 0) is None
