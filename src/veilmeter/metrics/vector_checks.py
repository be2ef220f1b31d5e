"""Checks of the vectors themselves: copies of recordings, lengths that identify people, wrong runs, and target voices.

*Copies.* An anonymized recording may not have changed at all, or one recording may be in enrollment and trials under
two ids. Two vectors are of one recording where they are a hundred times closer than two recordings of one speaker
usually are: no extractor gives the same vector twice for different speech, and none gives exactly the same for a
recording that was scaled or encoded again. *Lengths.* Comparisons by angle ignore the length of a vector; an attacker
need not.

*Runs.* What an attacker finds by a run says nothing about a release that another system, or the same one with another
key, made. If both are runs of one anonymizer, it makes no difference which is which: for each person the two are
exchanged at random, and the distance of the two sets of recordings must not stand out. It is that of the means, of the
covariances, and of the covariances with the originals (what becomes of a voice); each is a sum over pairs of people, so
that an exchange changes signs only. Nor must each person's recordings be more alike in the run than in the release, as
they are where the release has wrong ids; less alike they may be, as attackers draw a new voice for each recording.
Released recordings that are linked to other released ones of the same person show that there is something to find,
whatever the attackers found.

*Target voices* (Franzreb et al. 2025, Panariello et al. 2025). An anonymizer that gives recordings target voices moves
them to where these lie. An attacker whose copies of two people have the same target voice takes one for the other,
however much of both is left: its error then says more about the draw of target voices than about what they hide. What
a candidate scores with *other* people's recordings of a target voice is the target voice's part of their scores. Taken
off, the rest is what the attacker would have found had it known the target voices; everybody's part is learned without
the two people who are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.intervals import LEVEL, cluster_interval, far_outliers
from veilmeter.data.embeddings import Embeddings, unit, unit64
from veilmeter.metrics.legal.chance import better_counts, linkability_draws, name_blocks, relabelings
from veilmeter.metrics.scores.eer import eer

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

CLOSER = 0.01  # of the usual distance (1 - cosine) of two recordings of one speaker
SMALLEST, LARGEST = 1e-6, 1e-2  # bounds of that distance: rounding, and voices that hardly resemble themselves
MOST_PAIRS = 1_000_000_000  # a few seconds; beyond, only recordings of the same speaker are compared
BLOCK = 2048
LEAST_PEOPLE = 6  # of a test over people: two to the sixth exchanges are the fewest among which one stands out
MOST_OTHERS = 1000  # originals of others that every recording is compared with


def find_unchanged(original: Embeddings, anonymized: Embeddings) -> NDArray[np.bool_] | None:
    """Which anonymized recordings are the original ones, row by row of the same utterances; None where the vectors are
    of different extractors."""
    if original.dimension != anonymized.dimension:
        return None
    distance = 1 - np.einsum("ij,ij->i", original.unit, anonymized.unit, dtype=np.float64)
    return np.asarray(distance < usual_distance(original) * CLOSER)


def let_through(original: Embeddings, anonymized: Embeddings, *, seed: int = 0) -> NDArray[np.bool_] | None:
    """Which anonymized recordings are far more like their own original than the others are, and than any is like an
    original of somebody else: outliers that the anonymizer seems to have let through. None where vectors are of
    different extractors.

    If nothing is kept of any voice, a recording of N comes out above all N x N comparisons with others once in N times.
    """
    if original.dimension != anonymized.dimension:
        return None
    own = np.einsum("ij,ij->i", original.unit, anonymized.unit, dtype=np.float64)
    found = far_outliers(own)
    if not found.any():
        return found
    some = np.random.default_rng([seed, 26]).permutation(len(original))[:MOST_OTHERS]
    others = np.full(len(anonymized), -np.inf)
    for start in range(0, len(anonymized), BLOCK):
        part = slice(start, start + BLOCK)
        cosines = anonymized.unit[part] @ original.unit[some].T
        cosines[anonymized.speakers[part][:, None] == original.speakers[some][None]] = -np.inf
        others[part] = cosines.max(axis=1)
    return np.asarray(found & (own > others.max()))


def copies(enrollment: Embeddings, trials: Embeddings) -> NDArray[np.bool_]:
    """Which trial recordings also occur in the enrollment, under any speaker's name."""
    limit = usual_distance(trials, enrollment) * CLOSER
    if len(enrollment) * len(trials) <= MOST_PAIRS:
        return _near(enrollment.unit, trials.unit, limit)
    return _near_own(enrollment, trials, limit)


def released_copies(enrollment: Embeddings, trials: Embeddings) -> NDArray[np.bool_]:
    """Which anonymized trials are also among the anonymized enrollment recordings of the same person, with the same
    vector. None where an anonymizer gives all recordings of a person the same vector, or those of different people as
    often: then it is the pseudo-voice that repeats."""
    distances = _distances_within(trials, enrollment)
    if not len(distances) or float(np.median(distances)) < SMALLEST:
        return np.zeros(len(trials), dtype=bool)
    own = _near_own(enrollment, trials, SMALLEST)
    if own.any() and len(enrollment) * len(trials) <= MOST_PAIRS:
        others = _near(enrollment.unit, trials.unit, SMALLEST) & ~own
        own &= np.count_nonzero(others) < np.count_nonzero(own)
    return own


def _near_own(enrollment: Embeddings, trials: Embeddings, limit: float) -> NDArray[np.bool_]:
    same = np.zeros(len(trials), dtype=bool)
    known = _rows_of(enrollment)
    for name, own in _rows_of(trials).items():
        if name in known:
            same[own] = _near(enrollment.unit[known[name]], trials.unit[own], limit)
    return same


def _rows_of(side: Embeddings) -> dict[str, NDArray[np.intp]]:
    order = np.argsort(side.codes, kind="stable")
    firsts = np.searchsorted(side.codes[order], np.arange(1, len(side.names)))
    return dict(zip(side.names, np.split(order, firsts), strict=True))


def _near(known: NDArray[np.float32], tried: NDArray[np.float32], limit: float) -> NDArray[np.bool_]:
    same = np.zeros(len(tried), dtype=bool)
    for start in range(0, len(tried), BLOCK):
        part = tried[start : start + BLOCK]
        best = np.full(len(part), -np.inf, np.float32)
        for first in range(0, len(known), BLOCK):
            np.maximum(best, (part @ known[first : first + BLOCK].T).max(axis=1), out=best)
        # float32 rounds 1 - cosine to about 1e-7, below the smallest limit
        same[start : start + BLOCK] = 1 - best.astype(np.float64) < limit
    return same


def usual_distance(*sides: Embeddings) -> float:
    """The median of 1 - cosine between two recordings of one speaker."""
    distances = _distances_within(*sides)
    usual = float(np.median(distances)) if len(distances) else LARGEST / CLOSER
    return float(np.clip(usual, SMALLEST / CLOSER, LARGEST / CLOSER))


def _distances_within(*sides: Embeddings) -> NDArray[np.float64]:
    """1 - cosine between two recordings of one speaker, next to each other in the order given."""
    distances = [np.zeros(0)]
    for side in sides:
        order = np.argsort(side.codes, kind="stable")
        codes, vectors = side.codes[order], side.unit[order]
        pairs = np.flatnonzero(codes[1:] == codes[:-1])
        distances.append(1 - np.einsum("ij,ij->i", vectors[pairs], vectors[pairs + 1], dtype=np.float64))
    return np.concatenate(distances)


SAME = 1e-4  # lengths that differ by less were made equal


def length_correlation(enrollment: Embeddings, trials: Embeddings) -> tuple[float, float] | None:
    """The correlation over people of the mean log length of their vectors in enrollment and in trials, and how often
    chance alone would give one as far from 0. None where there are too few people, or all lengths are the same."""
    people = sorted(set(enrollment.names) & set(trials.names))
    if len(people) < LEAST_PEOPLE:
        return None
    sides = [_mean_log_lengths(side, people) for side in (enrollment, trials)]
    if any(side.std() < SAME for side in sides):
        return None
    correlation = float(np.corrcoef(sides[0], sides[1])[0, 1])
    # Over permutations of people a correlation has mean 0 and variance 1 / (people - 1).
    z = abs(correlation) * math.sqrt(len(people) - 1)
    return correlation, 2 * (1 - NormalDist().cdf(z))


def _mean_log_lengths(side: Embeddings, people: list[str]) -> NDArray[np.float64]:
    lengths = np.log(np.maximum(np.linalg.norm(side.vectors.astype(np.float64), axis=1), 1e-30))
    means = np.bincount(side.codes, lengths, len(side.names)) / np.bincount(side.codes, minlength=len(side.names))
    place = {name: code for code, name in enumerate(side.names)}
    return np.asarray(means[[place[name] for name in people]])


DRAWS = 499
MOST_PEOPLE, MOST_RECORDINGS = 500, 4  # of each: more would hardly add power


def run_difference(original: Embeddings, released: Embeddings, run: Embeddings, *, seed: int = 0) -> float | None:
    """How often two runs of one anonymizer would differ as much as these, over the recordings that both have; None
    where there are too few people or other vectors."""
    rows = [u for u in run.utterances if u in released.utterance_rows and u in original.utterance_rows]
    clear, first, second = (_few(side.of_utterances(rows), seed) for side in (original, released, run))
    if len(clear.names) < LEAST_PEOPLE or first.dimension != second.dimension:
        return None
    whose = np.eye(len(clear.names))[clear.codes]
    (before,), (one, two) = _features(clear), _features(first, second)
    difference = one - two
    means = difference @ difference.T
    covariances = (one @ one.T) ** 2 + (two @ two.T) ** 2 - (one @ two.T) ** 2 - (two @ one.T) ** 2
    kept = (before @ before.T) * means
    by_person = [whose.T @ pairs @ whose for pairs in (means, covariances, kept)]
    counts = whose.sum(axis=0)
    alike = np.diag(whose.T @ (two @ two.T - one @ one.T) @ whose) - whose.T @ (two**2 - one**2).sum(axis=1)
    alike /= np.maximum(counts * (counts - 1), 1)  # without a recording and itself
    rng = np.random.default_rng([seed, 23])
    p = _exchange_p(by_person, alike, np.arange(len(clear.names)), rng)
    together = _people_who_share_voices(whose, (one, two))
    # People who share a voice are not independent evidence of how it was drawn.
    return p if together.max() + 1 < LEAST_SHARING else max(p, _exchange_p(by_person, alike, together, rng))


LEAST_SHARING = 10  # groups of people with voices of their own: two to the tenth exchanges
SAME_VOICE = 0.8  # of how much people resemble themselves


def _exchange_p(pairs: Sequence[Floats], alike: Floats, groups: Codes, rng: np.random.Generator) -> float:
    """How often an exchange of the two runs, at random for each group of people, makes them differ as much."""
    number = int(groups.max()) + 1
    signs = np.concatenate([np.ones((1, number)), rng.choice([-1.0, 1.0], (DRAWS, number))])[:, groups]
    distances = np.stack([*(_distances(between, signs) for between in pairs), signs @ alike])
    # The largest of them, each by its place among its own exchanges.
    places = (distances[:, :, None] >= distances[:, None, :] - 1e-9).mean(axis=2).max(axis=0)
    return float(np.mean(places >= places[0] - 1e-12))


def _people_who_share_voices(whose: Floats, runs: Sequence[Floats]) -> Codes:
    """Groups of people whose recordings resemble each other's, in both runs, nearly as much as their own."""
    alike = np.ones((whose.shape[1],) * 2, bool)
    counts = whose.sum(axis=0)
    for rows in runs:
        sums = whose.T @ unit(rows) @ unit(rows).T @ whose
        own = (np.diag(sums) - counts) / np.maximum(counts * (counts - 1), 1)  # without a recording and itself
        least = SAME_VOICE * np.sqrt(np.maximum(np.outer(own, own), 0))
        alike &= (sums / np.outer(counts, counts) >= least) & (least > SMALLEST)
    groups = np.arange(len(alike))
    for first, second in zip(*np.nonzero(np.triu(alike, 1)), strict=True):
        groups[groups == groups[second]] = groups[first]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _distances(pairs: Floats, signs: Floats) -> Floats:
    distances: Floats = np.einsum("ds,st,dt->d", signs, pairs, signs, optimize=True)
    return distances


def _features(*sides: Embeddings) -> list[Floats]:
    """Directions and, as one coordinate more, lengths, around what all sides have in common."""
    wide = [side.vectors.astype(np.float64) for side in sides]
    lengths = [np.log(np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)) for rows in wide]
    spread = 2 * max(float(np.std(np.concatenate(lengths))), 1e-6)
    rows = [np.hstack([unit(some), length / spread]) for some, length in zip(wide, lengths, strict=True)]
    origin = np.concatenate(rows).mean(axis=0)
    return [some - origin for some in rows]


CLOSE = (1e-5, 1e-4, 1e-3, 3e-3)  # differences of cosines that are looked at, each beside ten times as much
MANY_MORE = 6.0  # standard deviations above what neighboring differences give
WITHIN_BULK = 0.5  # of the median difference: only what is far more exact than most shows a repeated draw
LEAST_REPEATED = 8
MOST_TOGETHER = 2000  # copies that are compared with each other
SAME_SOUND = 0.05  # of the usual distance of two runs over one recording: the same draw again


@dataclass(frozen=True, slots=True)
class RepeatedDraws:
    """Evidence of repeated draws of an anonymizer.

    `size` is from about how many transformations it draws, where copies show that. `p` is how often chance alone would
    keep the likeness of recordings as often as these copies do, `noticed` how large a set would probably be noticed.
    `named` is from about how many it draws where the release names them; attackers tried `tried` of `set_size`.
    """

    size: int | None = None
    p: float = 1.0
    noticed: int = 0
    named: int | None = None
    tried: int = 0
    set_size: int = 0


@dataclass(frozen=True, slots=True)
class _Copies:
    """Recordings before and after; who speaks in each, and which run it is from."""

    before: Floats
    after: Floats
    speakers: Codes
    runs: Codes


def repeated_draws(original: Embeddings, runs: Sequence[Embeddings], *, seed: int = 0) -> RepeatedDraws | None:
    """Whether an anonymizer's draws repeat, by copies of the same recordings; None where there are none.

    Two recordings under one rotation (or another map that keeps angles) keep their cosine, under different ones they
    do not: pairs whose cosine is kept far more exactly than others show a repeated draw. So do recordings that two runs
    turn into nearly the same, where they turn others into something else. Noise hides the exact traces; then two
    recordings that resemble each other still resemble each other in more copies than chance explains.
    """
    copies_of = [run.take([u in original.utterance_rows for u in run.utterances]) for run in runs]
    copied = [run for run in copies_of if len(run)]
    if not copied:
        return None
    clear = [original.of_utterances(list(run.utterances)) for run in copied]
    before = np.concatenate([side.unit for side in clear]).astype(np.float64)
    after = np.concatenate([side.unit for side in copied]).astype(np.float64)
    changed = np.ones(len(before), bool)
    if before.shape[1] == after.shape[1]:  # what was hardly changed is not a draw
        changed = ~far_outliers(np.einsum("ij,ij->i", before, after))
        parts = np.split(changed, np.cumsum([len(run) for run in copied])[:-1])
        copied = [run.take(part) for run, part in zip(copied, parts, strict=True)]
    names = np.unique(np.concatenate([side.speakers.astype(str) for side in clear]), return_inverse=True)[1]
    numbers = np.repeat(np.arange(len(clear)), [len(side) for side in clear])
    rng = np.random.default_rng([seed, 27])
    some = np.sort(rng.permutation(np.flatnonzero(changed))[:MOST_TOGETHER])
    few = _Copies(before[some], after[some], names[some], numbers[some])
    size = _kept_angles(few.before, few.after)
    p, noticed = _kept_likeness(few, rng)
    return RepeatedDraws(size if size is not None else _same_again(copied), p, noticed)


MOST_PAIRS_TESTED = 20_000  # those that resemble each other most before; others show next to nothing
KEPT = (0.9, 0.7, 0.5)  # of a cosine, by draws with little and with much noise
SHARE_ALIKE = 1 / 300  # of pairs, if draws repeat
EXCHANGES = 199
LEAST_ALIKE = 3  # pairs of one person's copies with the same draw are noticed nine times in ten


def _kept_likeness(copies: _Copies, rng: np.random.Generator) -> tuple[float, int]:
    """How often chance would keep the cosines of so many pairs, and how large a set would be noticed.

    The likelihood ratio that a few pairs keep a part of their cosine and all others none, the largest over `KEPT`,
    against copies that are exchanged at random within their run: if copies say nothing about originals, that makes no
    difference. Copies of copies in the data are left out.
    """
    before, after = (unit(side - side.mean(axis=0)) for side in (copies.before, copies.after))
    first, second = np.triu_indices(len(before), 1)
    kept, cosines = (before @ before.T)[first, second], after @ after.T
    same_run = copies.runs[first] == copies.runs[second]
    twice = same_run & ((kept > 1 - LARGEST) | (cosines[first, second] > 1 - SMALLEST))
    first, second, kept = first[~twice], second[~twice], kept[~twice]
    spread = float(np.sqrt(np.mean(cosines[first, second] ** 2))) if len(first) else 0.0
    if spread < SMALLEST:
        return 1.0, 0
    own = int(np.count_nonzero(copies.speakers[first] == copies.speakers[second]))
    if len(kept) > MOST_PAIRS_TESTED:
        most = np.argpartition(-np.abs(kept), MOST_PAIRS_TESTED)[:MOST_PAIRS_TESTED]
        first, second, kept = first[most], second[most], kept[most]

    def evidence(order: Codes) -> list[float]:
        now = cosines[order[first], order[second]]
        ratios = []
        for share in KEPT:
            width = spread * math.sqrt(1 - share**2)
            log = (now / spread) ** 2 / 2 - ((now - share * kept) / width) ** 2 / 2 - math.log(width / spread)
            ratios.append(float(np.log1p(SHARE_ALIKE * np.expm1(np.minimum(log, 50))).sum()))
        return ratios

    runs = [np.flatnonzero(copies.runs == run) for run in np.unique(copies.runs)]  # one after the other
    orders = [np.arange(len(before))]
    orders += [np.concatenate([rng.permutation(rows) for rows in runs]) for _ in range(EXCHANGES)]
    found = np.array([evidence(order) for order in orders])
    places = (found[:, None] <= found[None] + 1e-12).mean(axis=1).min(axis=1)
    return float(np.mean(places <= places[0] + 1e-12)), own // LEAST_ALIKE


def _kept_angles(before: Floats, after: Floats) -> int | None:
    first, second = np.triu_indices(len(before), 1)
    cosines = (before @ before.T)[first, second]
    difference = np.abs((after @ after.T)[first, second] - cosines)[cosines < 1 - LARGEST]
    if not len(difference) or float(np.median(difference)) < CLOSE[-1]:
        return None  # nearly all cosines are kept: one transformation for all, or none
    for close in CLOSE:
        if 10 * close > WITHIN_BULK * float(np.median(difference)):
            break  # as exact as most: one transformation for all, with noise
        here, near, far = (np.count_nonzero(difference < factor * close) for factor in (1, 4, 10))
        # Of a range as wide as `close` further out; the second is continued to 0, as small differences are common.
        nearer, farther = (near - here) / 3, (far - near) / 6
        usual = max((far - here) / 9, nearer + (nearer - farther) * 4 / 9)
        if here - usual > max(LEAST_REPEATED, MANY_MORE * math.sqrt(usual)):
            return max(2, round(len(difference) / (here - usual)))
    return None


def _same_again(runs: Sequence[Embeddings]) -> int | None:
    pairs, same = 0, 0
    for number, run in enumerate(runs):
        for other in runs[:number]:
            both = [u for u in run.utterances if u in other.utterance_rows]
            if len(both) < 2 or run.dimension != other.dimension:
                continue
            one, two = run.of_utterances(both).unit, other.of_utterances(both).unit
            distance = 1 - np.einsum("ij,ij->i", one, two, dtype=np.float64)
            strangers = 1 - np.einsum("ij,ij->i", one, np.roll(two, 1, axis=0), dtype=np.float64)
            near = distance < SAME_SOUND * float(np.median(distance))
            # Where strangers come out as much alike, or most recordings do, nothing is drawn from a set.
            if (strangers < SAME_SOUND * float(np.median(distance))).any() or near.mean() > 0.5:
                return None
            pairs, same = pairs + len(both), same + int(near.sum())
    return max(2, round(pairs / same)) if same else None


def release_linking(known: Embeddings, tried: Embeddings, *, seed: int = 0) -> tuple[float, float] | None:
    """How often chance would link released trials to released recordings of the same people as well, by their cosine:
    among two people or among all, whichever stands out more; and how far from chance (0) to certainty (1) they are
    linked among all. None where fewer than two people are in both."""
    people = [name for name in known.names if name in set(tried.names)]
    if len(people) < 2:
        return None
    if len(people) > MOST_PEOPLE:
        drawn = np.random.default_rng([seed, 24]).choice(len(people), MOST_PEOPLE, replace=False)
        people = [people[row] for row in np.sort(drawn)]
    known, tried = (_few(side, seed, people) for side in (known, tried))
    place = {name: row for row, name in enumerate(people)}
    whose = np.array([place[name] for name in known.speakers], np.int64)
    sums = np.zeros((len(people), known.dimension))
    np.add.at(sums, whose, known.unit.astype(np.float64))
    own = np.array([place[name] for name in tried.speakers], np.int64)
    better = better_counts(unit(sums) @ tried.unit.T)
    names = relabelings(people, draws=DRAWS, seed=seed, blocks=name_blocks(own, len(people)))
    sizes = sorted({2, len(people)})
    rates = linkability_draws(better, own, sizes, names)
    p = min(1.0, len(sizes) * float((rates >= rates[:, :1] - 1e-12).mean(axis=1).min()))
    chance = 1 / len(people)
    return p, float((rates[-1, 0] - chance) / (1 - chance))


def _few(side: Embeddings, seed: int, people: list[str] | None = None) -> Embeddings:
    """At most so many recordings of at most so many people."""
    names = list(side.names) if people is None else people
    if len(names) > MOST_PEOPLE:
        names = [names[row] for row in np.random.default_rng([seed, 25]).choice(len(names), MOST_PEOPLE, replace=False)]
    wanted, left = set(names), dict.fromkeys(names, MOST_RECORDINGS)
    rows = []
    for row, speaker in enumerate(side.speakers):
        if speaker in wanted and left[speaker]:
            left[speaker] -= 1
            rows.append(row)
    return side.take(rows)


LEAST_SHARED = 0.5  # of the recordings must have a target voice that other people have too
PRIOR = 2.0  # recordings' worth of a candidate's mean over all target voices
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # numbers of target voices to look for
ONE_PLACE = 1e-9  # mean squared distance: below, all lie in one place
RECORDINGS_EACH = 4  # at least, on average, for a number of target voices to be looked for


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

    A cell of a candidate and a recording looks neither at the candidate's own recordings nor at those of the person
    who speaks in this one, so that right and wrong cells are treated alike.
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
        if size * RECORDINGS_EACH > len(x) or spread <= ONE_PLACE * len(x):
            break
        try:
            centers, codes = kmeans2(x, size, minit="++", seed=np.random.default_rng([seed, size]), missing="raise")
        except ClusterError:
            continue  # fewer places than that
        within = float(np.sum((x - centers[codes]) ** 2))
        apart = (spread - within) / (size - 1) / max(within / (len(x) - size), 1e-12)
        if apart > best:
            best, kept = apart, np.asarray(codes, np.int64)
        if within <= ONE_PLACE * len(x):
            break  # every place has its own
    return np.unique(kept, return_inverse=True)[1].astype(np.int64)
