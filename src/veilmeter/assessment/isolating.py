"""Singling Out for any scorer: also for one that is no cosine of two vectors, such as PLDA or a cross-validated one.

The measure works on dot products of predicates and conversations. A column of a score matrix, taken as a vector, and
the row numbers as unit vectors give exactly these scores.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from veilmeter.attacks.backends.scoring import Fixed, Scorer
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.metrics.legal.conversations import Conversations, conversations
from veilmeter.metrics.legal.isolation import isolate as count_isolations
from veilmeter.metrics.legal.singling_out import CONVERSATIONS, SinglingOut, singling_out

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
    """The same measure where only scores exist. The control's voices are mixtures of enrolled voices with random
    weights: as much a voice as any, but nobody's."""
    code = {name: number for number, name in enumerate(said.names)}
    names = [name for name in job.enrol.names if name in code]
    if not names:
        raise InputError("no enrolled speaker is among those to be singled out")
    wanted = set(names)
    enrol = job.enrol.take(np.array([speaker in wanted for speaker in job.enrol.speakers]))
    attack = scorer.matrix(enrol, job.test, said.utterances)
    control = scorer.matrix(_strangers(enrol, job.seed), job.test, said.utterances)
    people = len(enrol.names)
    columns = np.concatenate([attack, control]).T.astype(np.float32)
    eye = np.eye(2 * people, dtype=np.float32)
    stacked = Conversations(columns, said.speakers, said.names, said.length, said.utterances, said.dropped)
    targets = np.array([code[name] for name in enrol.names])
    counts = count_isolations(
        [eye[:people], eye[people:]], targets, stacked, sizes, draws=DRAWS, folds=FOLDS, seed=job.seed
    )
    return SinglingOut(
        sizes=tuple(sizes),
        names=enrol.names,
        attack=counts[0],
        control=counts[1],
        control_kind="random voices",
        stand_ins=np.arange(people),
        cuts=said.counts[targets] - 1,
        others=said.counts - 1,
        people=len(said.names),
        draws=DRAWS,
        folds=FOLDS,
        rule="paper",
        length=said.length,
        dropped=said.dropped,
    )


def _strangers(enrol: Embeddings, seed: int) -> Embeddings:
    """One random voice for each enrolled person, under their name so that cross-validation treats it alike."""
    means = np.zeros((len(enrol.names), enrol.dimension))
    np.add.at(means, enrol.codes, enrol.unit.astype(np.float64))
    means /= np.bincount(enrol.codes)[:, None]
    centre = means.mean(axis=0)
    voices = np.empty_like(means)
    for row, name in enumerate(enrol.names):
        digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
        mix = np.random.default_rng([seed, 3, int.from_bytes(digest[:8], "big")]).standard_normal(len(means))
        voices[row] = centre + (mix - mix.mean()) @ means / np.sqrt(max(len(means) - 1, 1))
    return Embeddings(unit(voices), [f"stranger-{row}" for row in range(len(voices))], enrol.names)
