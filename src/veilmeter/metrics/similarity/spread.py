"""The uncertainty of a diagonal dominance, and its chance level: delete-one-speaker jackknife and permuted labels.

Resampling the speakers of a finished matrix looks easy and is wrong: the calibration was made on the same speakers, and
intervals that leave it alone cover the true value in 52 to 80 cases of 100 instead of 95. So each speaker in turn is
left out of the calibration and of the matrix. Scores are put into fine bins once; a calibration is then a short
isotonic regression, and its effect on D_diag is followed to first order (in the log domain and the geometric form
exactly).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, engine_for, map_ordered, stretches
from veilmeter.metrics.calibration import pool_starts, sigmoid, softplus

if TYPE_CHECKING:
    from veilmeter.metrics.similarity.matrices import Form, Kind, Pairs, SimilarityMatrix, SpeakerRectangles

Floats = NDArray[np.float64]

BINS = 4096
JOINED, MANY = 2, 300  # bins that are one where a speaker is left out, and of how many speakers at least
AT_ONCE = 64  # utterances whose pairs with all others are summed at a time
DRAWS = 20  # permutations for the level of chance
SENT = (10_000_000, 100_000_000)  # pairs of utterances: fewer are resampled here at once, more would fill the memory
_DRAWN_PAIRS = 5_000_000  # at most so many pairs over all draws, but at least three draws


@dataclass(frozen=True, eq=False, slots=True)
class Spread:
    """D_diag (signed) and D_diag in the log domain without each speaker in turn, and with permuted labels."""

    without: Floats
    without_log: Floats
    chance: Floats
    chance_log: Floats


def spread(
    scores: NDArray[np.floating],
    layout: SpeakerRectangles,
    matrix: SimilarityMatrix,
    *,
    form: Form,
    pairs: Pairs,
    seed: Sequence[int],
    draws: int = DRAWS,
    engine: Engine | None = None,
) -> Spread:
    """`scores` are sorted by speaker and, for OO, PP and the vpc rule, symmetric."""
    weight = 0.5 if pairs == "vpc" else 1.0  # an ordered pair of utterances, of which vpc counts each two once
    codes = _bin(scores)
    targets, impostors = _histograms(codes, layout, symmetric=matrix.kind != "OP" or pairs == "vpc")
    targets, impostors = targets * weight, impostors * weight
    total_t, total_n = targets.sum(0), impostors.sum(0) / 2  # an impostor pair is two people's
    counts = layout.pairs().astype(np.float64)  # the mirrored half is here, too
    slopes = _slopes(codes, layout, matrix, form, counts)
    engine = engine_for(engine, SENT[0] <= codes.size <= SENT[1])
    draws = max(3, min(draws, _DRAWN_PAIRS // len(codes) ** 2))
    parts = max(1, min(engine.workers, draws))
    shared = _Shared(codes, layout, matrix.kind, form, weight, total_t, total_n, counts, slopes, tuple(seed))
    work = [
        _SpreadWork(shared, targets[people.start : people.stop], impostors[people.start : people.stop], drawn)
        for people, drawn in zip(stretches(len(targets), parts), stretches(draws, parts), strict=True)
    ]
    shifts, chance = (np.concatenate(part) for part in zip(*map_ordered(engine, _resample, work), strict=True))
    return Spread(
        d_diag_without(matrix.similarity(form)) + shifts[:, 0],
        d_diag_without(matrix.log_similarity(form)) + shifts[:, 1],
        chance[:, 0],
        chance[:, 1],
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Shared:
    """What every resample of one matrix needs; totals are the bins of all target and impostor pairs."""

    codes: NDArray[np.uint16]
    layout: SpeakerRectangles
    kind: Kind
    form: Form
    weight: float
    total_t: Floats
    total_n: Floats
    counts: NDArray[np.floating]
    slopes: tuple[Floats, Floats]
    seed: tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class _SpreadWork:
    """Speakers to leave out, by the bins of their pairs, and permutations to draw, by number."""

    shared: _Shared
    targets: Floats
    impostors: Floats
    draws: range


def _resample(work: _SpreadWork) -> tuple[Floats, Floats]:
    """The engine's task: by how much D_diag, plain and in the log domain, moves without each of these speakers, as far
    as the calibration goes; and what these permutations give."""
    given = work.shared
    width = JOINED if len(given.layout.starts) >= MANY else 1  # one of many changes a calibration but little
    total_t, total_n, *slopes = (_join_bins(bins, width) for bins in (given.total_t, given.total_n, *given.slopes))
    everyone = _llrs_of_bins(total_t, total_n, None)
    base = _similarities(everyone, given.form)
    shifts = np.empty((len(work.targets), 2))
    left_out = (_join_bins(bins, width) for bins in (work.targets, work.impostors))
    for person, (t, n) in enumerate(zip(*left_out, strict=True)):
        llrs = _llrs_of_bins(total_t - t, total_n - n, everyone)
        change = _similarities(llrs, given.form) - base
        shifts[person] = [slope @ change for slope in slopes]
    chance = [_by_chance(given, np.random.default_rng([*given.seed, number])) for number in work.draws]
    return shifts, np.array(chance)


def _join_bins(bins: Floats, width: int) -> Floats:
    """Neighboring bins, in the last dimension, as one."""
    return np.asarray(bins.reshape(*bins.shape[:-1], -1, width).sum(axis=-1)) if width > 1 else bins


def d_diag_without(matrix: Floats) -> Floats:
    """D_diag of the matrix without each speaker in turn."""
    n = len(matrix)
    own = matrix.diagonal()
    diagonal = (own.sum() - own) / (n - 1)
    if n < 3:
        return np.full(n, np.nan)
    others = matrix.sum() - own.sum() - (matrix.sum(0) + matrix.sum(1) - 2 * own)
    dominance: Floats = diagonal - others / ((n - 1) * (n - 2))
    return dominance


def _bin(scores: NDArray[np.floating]) -> NDArray[np.uint16]:
    low, high = float(scores.min()), float(scores.max())
    scale = (BINS - 1) / (high - low) if high > low else 0.0
    codes = np.empty(scores.shape, np.uint16)
    for row, line in enumerate(scores):
        codes[row] = (line - low) * scale
    return codes


def _histograms(codes: NDArray[np.uint16], layout: SpeakerRectangles, *, symmetric: bool) -> tuple[Floats, Floats]:
    """For each speaker the bins of their target pairs, and of the impostor pairs with them on either side."""
    people, sizes = len(layout.starts), layout.ends - layout.starts
    squares = [codes[a:b, a:b].ravel() for a, b in zip(layout.starts, layout.ends, strict=True)]
    own = _count(np.concatenate(squares), np.repeat(np.arange(people), sizes**2), people)
    targets = own - _count(codes.diagonal(), layout.code, people)
    rows = _count_rows(codes, layout.code, people) - own
    return targets, 2 * rows if symmetric else rows + _count_rows(codes.T, layout.code, people) - own


def _count(codes: NDArray[np.uint16], speaker: NDArray[np.int64], people: int) -> Floats:
    """How many codes there are of each speaker in each bin."""
    places = speaker * BINS + codes
    return np.bincount(places, minlength=people * BINS).reshape(people, BINS).astype(np.float64)


def _count_rows(codes: NDArray[np.uint16], speaker: NDArray[np.int64], people: int) -> Floats:
    """As `_count`, of all codes in the rows of each speaker, a few speakers at a time."""
    counts = np.zeros((people, BINS))
    borders = np.searchsorted(speaker, np.arange(0, people + AT_ONCE, AT_ONCE))
    for number, (start, stop) in enumerate(pairwise(borders.tolist())):
        if start < stop:
            first, last = number * AT_ONCE, min(people, (number + 1) * AT_ONCE)
            of = np.repeat(speaker[start:stop] - first, codes.shape[1])
            counts[first:last] = _count(codes[start:stop].ravel(), of, last - first)
    return counts


def _llrs_of_bins(targets: Floats, impostors: Floats, otherwise: Floats | None) -> Floats:
    """PAV with Laplace's rule over bins; `otherwise` says what an empty bin gets. Not a number where one of both kinds
    of pairs is missing, as without one of two speakers: nothing can be calibrated there."""
    if not (targets.sum() > 0 and impostors.sum() > 0):
        return np.full(len(targets), np.nan)
    used = np.flatnonzero(targets + impostors > 0.25)
    t = np.concatenate([[1.0], targets[used], [1.0]])
    n = np.concatenate([[1.0], impostors[used], [1.0]])
    starts = pool_starts(t / (t + n), t + n)
    sizes = np.diff(np.append(starts, len(t)))
    ratio = np.log(np.add.reduceat(t, starts)) - np.log(np.add.reduceat(n, starts))
    llrs = np.zeros(len(targets)) if otherwise is None else otherwise.copy()
    llrs[used] = np.repeat(ratio, sizes)[1:-1] - np.log(targets.sum() / impostors.sum())
    return llrs


def _similarities(llrs: Floats, form: Form) -> Floats:
    return -softplus(-llrs) if form == "geometric" else llrs


def _slopes(
    codes: NDArray[np.uint16],
    layout: SpeakerRectangles,
    matrix: SimilarityMatrix,
    form: Form,
    counts: NDArray[np.floating],
) -> tuple[Floats, Floats]:
    """How D_diag, plain and in the log domain, changes with the value that each bin is given."""
    people = len(layout.starts)
    share = np.full((people, people), -1 / (people * (people - 1)))
    np.fill_diagonal(share, 1 / people)
    sim = matrix.similarity(form)
    if form == "geometric":
        weights = (share * sim / counts, share / counts / np.log(2))
    else:
        weights = (share * sim * (1 - sim) / counts, share * (1 - sim) / counts / np.log(2))
    sizes = layout.ends - layout.starts
    slopes = (np.zeros(BINS), np.zeros(BINS))
    for person in range(people):
        first, last = int(layout.starts[person]), int(layout.ends[person])
        block = codes[first:last].ravel()
        itself = codes[np.arange(first, last), np.arange(first, last)]
        for slope, weight in zip(slopes, weights, strict=True):
            line = np.repeat(weight[person], sizes)
            slope += np.bincount(block, np.tile(line, last - first), minlength=BINS)
            slope -= weight[person, person] * np.bincount(itself, minlength=BINS)
    return slopes


def _by_chance(given: _Shared, rng: np.random.Generator) -> tuple[float, float]:
    """D_diag, plain and in the log domain, if nothing linked utterances to speakers.

    Within a set the utterances are permuted among the speakers. Between the sets each speaker gets another one's
    protected voice, whole: that voice is still one voice, but it carries no information about whose it is.
    """
    codes, layout, kind, form, weight = given.codes, given.layout, given.kind, given.form, given.weight
    people = len(layout.starts)
    partner, deal = np.arange(people), np.arange(len(codes))
    if kind == "OP":
        ring = rng.permutation(people)
        partner[ring] = np.roll(ring, 1)
    else:
        deal = rng.permutation(len(codes))
    theirs = np.split(deal, layout.starts[1:])  # everybody's utterances
    pairs = [codes[np.ix_(theirs[person], theirs[other])].ravel() for person, other in enumerate(partner)]
    targets: Floats = weight * np.bincount(np.concatenate(pairs), minlength=BINS).astype(np.float64)
    if kind != "OP":
        targets -= weight * np.bincount(codes.diagonal(), minlength=BINS)
    values = _similarities(_llrs_of_bins(targets, given.total_t + given.total_n - targets, None), form)
    sums = _sum_by_speaker(codes, values, deal, layout)
    means = sums / given.counts
    if form == "geometric":
        sim, log = np.exp(means), means / np.log(2)
    else:
        sim, log = sigmoid(means), -softplus(-means) / np.log(2)
    linked = np.arange(people), partner
    plain, logarithmic = (_dominance(m, linked) for m in (sim, log))
    return plain, logarithmic


def _sum_by_speaker(
    codes: NDArray[np.uint16], values: Floats, deal: NDArray[np.intp], layout: SpeakerRectangles
) -> Floats:
    """The sum over all pairs of different utterances of each two speakers, where the utterances `deal` are, in this
    order, those of the speakers."""
    from scipy.sparse import csr_array

    people, count = len(layout.starts), len(codes)
    borders = np.append(layout.starts, count)
    of = csr_array((np.ones(count), deal, borders), (people, count))  # adds up rows without putting them in order
    by_speaker = of.tocsc()
    sums = np.zeros((people, people))
    for start in range(0, count, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        sums += by_speaker[:, part] @ (of @ values[codes[part].T]).T
    speaker = np.empty(count, np.intp)
    speaker[deal] = layout.code
    np.fill_diagonal(sums, sums.diagonal() - np.bincount(speaker, values[codes.diagonal()], people))
    return sums


def _dominance(matrix: Floats, linked: tuple[NDArray[np.int64], NDArray[np.int64]]) -> float:
    n = len(matrix)
    own = float(matrix[linked].sum())
    return own / n - (float(matrix.sum()) - own) / (n * (n - 1))
