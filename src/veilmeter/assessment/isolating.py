"""Singling Out for any attacker: on vectors where a score is their cosine, else on tables of scores."""

from __future__ import annotations

from collections.abc import Sequence

from veilmeter.assessment.scoring import ScoreTables
from veilmeter.attacks.base import Floats
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import Conversations, conversations
from veilmeter.metrics.legal.singling_out import CONVERSATIONS, singling_out, singling_out_of_scores

DRAWS, FOLDS = 5, 10


def isolation_conversations(test: Embeddings, length: int, seed: int) -> Conversations | None:
    """The conversations that people are singled out by; None where fewer than two have enough of them."""
    try:
        spoken = conversations(test, length, least=2, most=CONVERSATIONS, seed=seed)
    except InputError:
        return None
    return spoken if len(spoken.names) >= 2 else None


def isolation_curves(
    scored: ScoreTables,
    enrolled: Sequence[str],
    spoken: Conversations,
    scores: Floats | None,
    sizes: Sequence[int],
    *,
    intervals: bool,
    seed: int,
) -> dict[str, list[Estimate]]:
    """The curves `singling_out`, `control`, `residual_risk` and `hit_share` of one length; none where nobody who is
    enrolled can be singled out."""
    try:
        if scored.sides is not None:
            enroll, test = scored.sides
            counted = singling_out(enroll, test, list(sizes), length=spoken.length, draws=DRAWS, folds=FOLDS, seed=seed)
        elif scores is not None:
            counted = singling_out_of_scores(scores, enrolled, spoken, list(sizes), draws=DRAWS, folds=FOLDS, seed=seed)
        else:
            return {}
    except InputError:
        return {}
    return counted.estimates(intervals=intervals)
