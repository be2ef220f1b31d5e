"""Singling Out for any scorer: also for one that is no cosine of two vectors, such as PLDA or a cross-validated one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veilmeter.attacks.backends.scoring import Fixed, Scorer
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.metrics.legal.conversations import Conversations, conversations
from veilmeter.metrics.legal.singling_out import (
    CONVERSATIONS,
    SinglingOut,
    singling_out,
    singling_out_of_scores,
)

if TYPE_CHECKING:
    from veilmeter.assessment.measuring import Job

DRAWS, FOLDS = 5, 10


def isolate(job: Job, scorer: Scorer, lengths: tuple[int, ...]) -> dict[str, list[Estimate]]:
    """The curves `singling_out`, `control`, `residual_risk` and `hit_share`; lengths with too few speakers drop out."""
    curves: dict[str, list[Estimate]] = {}
    for length in lengths:
        try:
            found = _one_length(job, scorer, length)
        except InputError:
            continue
        if found is None:
            continue
        for name, points in found.estimates(intervals=job.intervals).items():
            curves.setdefault(name, []).extend(points)
    return curves


def _one_length(job: Job, scorer: Scorer, length: int) -> SinglingOut | None:
    said = conversations(job.test, length, least=2, most=CONVERSATIONS, seed=job.seed)
    sizes = sizes_of(job.sizes, len(said.names))
    if not sizes:
        return None
    if isinstance(scorer, Fixed) and scorer.is_cosine:
        other = scorer.test_backend or scorer.backend
        return singling_out(
            job.enrol.with_vectors(scorer.backend.project(job.enrol.vectors)),
            job.test.with_vectors(other.project(job.test.vectors)),
            sizes,
            length=length,
            draws=DRAWS,
            folds=FOLDS,
            seed=job.seed,
        )
    return _of_scores(job, scorer, said, sizes)


def sizes_of(wanted: tuple[int, ...], largest: int) -> list[int]:
    from veilmeter.assessment.measuring import curve_sizes

    return [n for n in curve_sizes(wanted, largest) if n >= 2]


def _of_scores(job: Job, scorer: Scorer, said: Conversations, sizes: list[int]) -> SinglingOut:
    """The same measure where only scores exist."""
    names = set(said.names)
    kept = np.array([speaker in names for speaker in job.enrol.speakers])
    if not kept.any():
        raise InputError("no enrolled speaker is among those to be singled out")
    enrol = job.enrol.take(kept)
    scores = scorer.matrix(enrol, job.test, said.utterances)
    return singling_out_of_scores(scores, enrol.names, said, sizes, draws=DRAWS, folds=FOLDS, seed=job.seed)
