"""Singling Out for any attacker: on vectors where a score is their cosine, else on tables of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.scoring import MOST_SCORES, ScoreTables
from veilmeter.attacks.base import Floats
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import Conversations, conversations
from veilmeter.metrics.legal.singling_out import CONVERSATIONS, singling_out, singling_out_of_scores

DRAWS, FOLDS = 5, 10
PREDICATES = 500  # enrolled people whose rules are tried, as many as in Vauquier et al. 2025


def isolation_conversations(test: Embeddings, length: int, seed: int, enrolled: int) -> Conversations | None:
    """The conversations that people are singled out by; None where fewer than two have enough of them.

    Where they would make too many scores with those who are enrolled, speakers have fewer of them, two at least, and
    where that is not enough, speakers are drawn.
    """
    allowed = max(2, MOST_SCORES // max(1, enrolled))
    most = CONVERSATIONS
    while most > 2 and int(np.minimum(np.bincount(test.codes) // length, most).sum()) > allowed:
        most -= 1
    try:
        spoken = conversations(test, length, least=2, most=most, seed=seed)
        if len(spoken) > allowed:
            drawn = np.random.default_rng([seed, 3]).permutation(spoken.names)[: max(2, allowed // most)].tolist()
            rows = _rows_of(test, drawn)
            spoken = conversations(test.take(rows), length, least=2, most=most, seed=seed)
            spoken = replace(spoken, utterances=rows[spoken.utterances])
    except InputError:
        return None
    return spoken if len(spoken.names) >= 2 else None


def _rows_of(test: Embeddings, names: Sequence[str]) -> NDArray[np.intp]:
    wanted = set(names)
    return np.flatnonzero([speaker in wanted for speaker in test.speakers])


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
            counted = singling_out(
                enroll,
                test.take(_rows_of(test, spoken.names)),
                list(sizes),
                length=spoken.length,
                draws=DRAWS,
                folds=FOLDS,
                predicates=PREDICATES,
                seed=seed,
                most=int(spoken.counts.max()),
            )
        elif scores is not None:
            counted = singling_out_of_scores(
                scores,
                enrolled,
                spoken,
                list(sizes),
                draws=DRAWS,
                folds=FOLDS,
                predicates=PREDICATES,
                seed=seed,
            )
        else:
            return {}
    except InputError:
        return {}
    return counted.estimates(intervals=intervals)
