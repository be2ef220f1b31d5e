from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from veilmeter.anonymizers.xvector_pool import training
from veilmeter.anonymizers.xvector_pool.model import Whitening
from veilmeter.core.errors import InputError


def speakers(seed: int, count: int = 120, dimension: int = 24) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(count, dimension)) * np.linspace(2, 0.5, dimension) + 0.5).astype(np.float32)


def test_whitened_speakers_have_no_correlation_and_variance_one() -> None:
    x = speakers(0)
    whitening = Whitening.fit(x, 16)
    z = whitening(x)
    assert z.shape == (120, 16)
    np.testing.assert_allclose(np.cov(z.T), np.eye(16), atol=1e-5)
    np.testing.assert_allclose(whitening(x * 7), z, atol=1e-4)  # length says nothing
    assert Whitening.fit(x[:5], 16).dimension == 4
    with pytest.raises(InputError):
        Whitening.fit(np.ones((5, 3)), 16)


def test_ridge_leave_one_out_error_is_the_one_of_leaving_one_out() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 4)) + 3
    y = x @ [1, -2, 0, 0.5] + 4 + rng.normal(size=30)
    ridge = training.fit_ridge(x, y, [2.0])
    errors = []
    for left in range(30):
        kept = np.arange(30) != left
        center, level = x[kept].mean(axis=0), y[kept].mean()
        slope = np.linalg.solve(
            (x[kept] - center).T @ (x[kept] - center) + 2.0 * np.eye(4), (x[kept] - center).T @ (y[kept] - level)
        )
        errors.append(y[left] - level - (x[left] - center) @ slope)
    assert ridge.r_squared == pytest.approx(1 - np.mean(np.square(errors)) / y.var(), abs=1e-9)
    best = training.fit_ridge(x, y)
    assert best.r_squared >= ridge.r_squared - 1e-12
    np.testing.assert_allclose(best.weights[:-1], [1, -2, 0, 0.5], atol=0.6)


def test_plda_tells_pieces_of_one_speaker_from_others() -> None:
    rng = np.random.default_rng(2)
    people = rng.normal(size=(60, 12))
    codes = np.repeat(np.arange(60), 4)
    pieces = (people[codes] + 0.3 * rng.normal(size=(240, 12))).astype(np.float32)
    whitening = Whitening.fit(people, 8)
    plda = training.fit_plda(whitening, pieces, [str(c) for c in codes])
    units = pieces / np.linalg.norm(pieces, axis=1, keepdims=True)
    scores = plda.scores(units[0], units[1:])
    assert scores[:3].min() > np.sort(scores[3:])[-5]
    assert (scores[3:] < 0).mean() > 0.9


def test_no_voice_of_the_pool_is_a_real_person() -> None:
    x = speakers(3, dimension=96) - np.float32(0.5)
    genders = ["f", "m"] * 60
    x[::2] += 0.2
    drawn = training.draw_pool(x, genders, 40, seed=0)
    assert len(drawn.pool) == 80
    assert drawn.pool.genders.count("f") == 40
    assert len(set(drawn.pool.names)) == 80
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = drawn.pool.unit @ units.T
    assert cosines.max() == pytest.approx(drawn.largest_cosine, abs=1e-5)
    assert drawn.largest_cosine < training.SAME_PERSON
    # the distribution is the speakers': a drawn woman is on the women's side of the axis between the genders
    axis = units[::2].mean(axis=0) - units[1::2].mean(axis=0)
    sides = drawn.pool.unit @ axis
    assert sides[:40].mean() > sides[40:].mean()
    again = training.draw_pool(x, genders, 40, seed=0)
    np.testing.assert_array_equal(again.pool.vectors, drawn.pool.vectors)
    assert not np.array_equal(training.draw_pool(x, genders, 40, seed=1).pool.vectors, drawn.pool.vectors)


def test_close_draws_are_thrown_away_and_a_hopeless_limit_is_told() -> None:
    x = speakers(4, dimension=32)
    drawn = training.draw_pool(x, [""] * 120, 30, seed=0, limit=0.6)
    assert drawn.largest_cosine < 0.6
    assert drawn.rejected > 0
    assert set(drawn.pool.genders) == {""}
    with pytest.raises(InputError, match="unlike"):
        training.draw_pool(x, [""] * 120, 1, seed=0, limit=-0.9)
