"""How much of an attacker's error comes from where target voices lie (Franzreb et al. 2025, Panariello et al. 2025).

An anonymizer that gives recordings target voices moves them to where these lie. An attacker whose copies of two people
have the same target voice takes one for the other, however much of both is left: its error then says more about the
draw of target voices than about what they hide. What a candidate scores with *other* people's recordings of a target
voice is the target voice's part of their scores. Taken off, the rest is what the attacker would have found had it known
the target voices; everybody's part is learned without the two people who are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.intervals import LEVEL, cluster_interval
from veilmeter.metrics.discriminant import unit64
from veilmeter.metrics.scores.eer import eer

LEAST_PEOPLE = 6
LEAST_SHARED = 0.5  # of the recordings must have a target voice that other people have too
PRIOR = 2.0  # recordings' worth of a candidate's mean over all target voices
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # numbers of target voices to look for
SAME = 1e-9  # mean squared distance: below, all lie in one place
RECORDINGS_EACH = 4  # at least, on average, for a number of target voices to be looked for

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetVoices:
    """What target voices hide from the strongest attacker.

    Errors are the share of other candidates placed before the right one: `reported` that of the strongest attacker as
    it is, `informed` that of `attacker` once target voices are taken off; EERs beside them. `gain` is the interval of
    what this takes off that attacker's error, at 95 % for all attackers together.
    """

    attacker: str
    voices: int
    known: bool
    reported: float
    informed: float
    eer_reported: float
    eer_informed: float
    gain: tuple[float, float]

    @property
    def share(self) -> float:
        """The part of the reported error that comes from where target voices lie."""
        return max(0.0, 1 - self.informed / self.reported) if self.reported > 0 else 0.0


def target_voice_effect(
    scores: Mapping[str, Floats], own: Mapping[str, Codes], groups: Codes, *, known: bool
) -> TargetVoices | None:
    """Of attackers' scores (candidates x recordings), with the row of who speaks in each recording and the recordings'
    target voices. None where people do not share target voices, or there are too few of them."""
    if not scores:
        return None
    first = next(iter(own.values()))
    if len(np.unique(first)) < LEAST_PEOPLE or share_of_shared_voices(groups, first) < LEAST_SHARED:
        return None
    as_it_is = {name: share_ahead(table, own[name]) for name, table in scores.items()}
    strongest = min(as_it_is, key=lambda name: float(as_it_is[name].mean()))
    without = {name: without_target_voices(table, own[name], groups) for name, table in scores.items()}
    errors = {name: share_ahead(table, own[name]) for name, table in without.items()}
    best = min(errors, key=lambda name: float(errors[name].mean()))
    # Taking off a candidate's mean helps by itself, wherever some people resemble many others.
    plain = share_ahead(without_target_voices(scores[best], own[best], np.zeros_like(groups)), own[best])
    level = 1 - (1 - LEVEL) / len(scores)
    return TargetVoices(
        attacker=best,
        voices=len(np.unique(groups)),
        known=known,
        reported=float(as_it_is[strongest].mean()),
        informed=float(errors[best].mean()),
        eer_reported=_eer(scores[strongest], own[strongest]),
        eer_informed=_eer(without[best], own[best]),
        gain=cluster_interval(plain - errors[best], own[best], level=level),
    )


def share_of_shared_voices(groups: Codes, speakers: Codes) -> float:
    """The share of recordings whose target voice somebody else has too.

    >>> share_of_shared_voices(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2]))
    0.5
    """
    pairs = np.unique(np.stack([groups, speakers]), axis=1)
    people = np.bincount(pairs[0], minlength=int(groups.max()) + 1)
    return float(np.mean(people[groups] > 1))


def share_ahead(scores: Floats, own: Codes) -> Floats:
    """For each recording the share of other candidates who score as high as the right one; equal ones count half."""
    right = scores[own, np.arange(len(own))]
    ahead = (scores > right).sum(axis=0) + 0.5 * ((scores == right).sum(axis=0) - 1)
    return np.asarray(ahead / max(1, len(scores) - 1))


def without_target_voices(scores: Floats, own: Codes, groups: Codes) -> Floats:
    """Scores without what each candidate scores with other people's recordings of the same target voice.

    A cell of a candidate and a recording looks neither at the candidate's own recordings nor at those of whoever speaks
    in this one, so that right and wrong cells are treated alike.
    """
    n, voices, trials = len(scores), int(groups.max()) + 1, np.arange(len(own))
    places, cell = np.unique(own * voices + groups, return_inverse=True)  # a person with a target voice
    person, voice = places // voices, places % voices
    _, starts, speaker = np.unique(person, return_index=True, return_inverse=True)
    speaker = speaker[cell]
    order = np.argsort(cell, kind="stable")
    sums = np.add.reduceat(scores[:, order], np.searchsorted(cell[order], np.arange(len(places))), axis=1)
    counts = np.bincount(cell).astype(float)
    sums[person, np.arange(len(places))] = 0.0  # a candidate's own recordings are not impostors
    of_voice = (voice[:, None] == np.arange(voices)).astype(float)
    of_candidate = np.zeros((n, voices))
    of_candidate[person, voice] = counts
    # The candidate's scores with the same target voice, without the speaker's, and in how many recordings.
    usual_here = (sums @ of_voice)[:, groups]
    usual_here -= sums[:, cell]
    heard = (counts @ of_voice - of_candidate)[:, groups]
    heard -= counts[cell]
    heard[own, trials] += counts[cell]  # taken off before
    # The same over all target voices.
    of_person = np.add.reduceat(counts, starts)
    usual = np.add.reduceat(sums, starts, axis=1)[:, speaker]
    np.subtract(sums.sum(axis=1, keepdims=True), usual, out=usual)
    everywhere = (counts.sum() - of_candidate.sum(axis=1, keepdims=True)) - of_person[speaker]
    everywhere[own, trials] += of_person[speaker]
    usual /= np.maximum(everywhere, 1.0, out=everywhere)
    usual *= PRIOR
    usual_here += usual
    heard += PRIOR
    usual_here /= heard
    return np.asarray(np.subtract(scores, usual_here, out=usual_here))


def _eer(scores: Floats, own: Codes) -> float:
    right = np.arange(len(scores))[:, None] == own
    return eer(scores[right], scores[~right])


def found_target_voices(vectors: ArrayLike, *, seed: int = 0) -> Codes:
    """Groups of recordings that lie together, as many as stand apart best (Calinski and Harabasz 1974)."""
    from scipy.cluster.vq import ClusterError, kmeans2

    x = unit64(vectors)
    x = x - x.mean(axis=0)
    spread = float(np.sum(x**2))
    best, kept = -np.inf, np.zeros(len(x), np.int64)
    for size in SIZES:
        if size * RECORDINGS_EACH > len(x) or spread <= SAME * len(x):
            break
        try:
            centers, codes = kmeans2(x, size, minit="++", seed=np.random.default_rng([seed, size]), missing="raise")
        except ClusterError:
            continue  # fewer places than that
        within = float(np.sum((x - centers[codes]) ** 2))
        apart = (spread - within) / (size - 1) / max(within / (len(x) - size), 1e-12)
        if apart > best:
            best, kept = apart, np.asarray(codes, np.int64)
        if within <= SAME * len(x):
            break  # every place has its own
    return np.unique(kept, return_inverse=True)[1].astype(np.int64)
