"""TPR at low FPR against a literal reading of its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.scores.rates import rates

from veilmeter.metrics.scores.tpr import MEASURE, tpr_at_fpr

scores = st.lists(st.integers(-6, 6).map(float) | st.floats(-50, 50), min_size=1, max_size=40)


@given(scores, scores, st.sampled_from([0.0001, 0.01, 0.1, 0.25, 0.5, 1.0]))
def test_tpr_at_fpr_is_the_best_allowed_threshold(t: list[float], n: list[float], fpr: float) -> None:
    miss, false = rates(t, n)
    best = max(1 - m for m, f in zip(miss, false, strict=True) if f <= fpr + 1e-12)
    assert tpr_at_fpr(t, n, fpr) == pytest.approx(100 * best)


def test_names_of_rates() -> None:
    assert list(MEASURE.functions) == ["tpr@fpr=0.01", "tpr@fpr=0.001", "tpr@fpr=0.0001"]
