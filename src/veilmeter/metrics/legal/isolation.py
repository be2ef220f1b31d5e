"""Does a predicate isolate exactly one person? The decision of Singling Out, for many subsets and folds at once.

For predicate p with target t, a subset X of the test speakers and fold f, each speaker s of X gives conversation
f mod K_s as test and the rest as calibration. With the calibration scores c in decreasing order and n = K_t - 1, the
threshold is (c[n] + c[n+1]) / 2 (1-based); the predicate isolates if exactly one test score lies above it.

Only the few best scores of the subset matter, so a sorted list of each predicate's best scores serves every subset:
a speaker is in the subset of size N if their random rank is below N, which makes the subsets of a draw nested.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, lcm, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.intervals import cluster_interval
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import Conversations


@dataclass(frozen=True, slots=True)
class Candidates:
    """Conversations in decreasing order of score: predicates x draws (or one for all) x places; -1 is padding."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PredicateGroup:
    """Predicates that are evaluated together, with the random orders of their draws."""

    vectors: NDArray[np.float32]
    targets: NDArray[np.int64]
    drawn: NDArray[np.int32]  # predicates x draws x speakers; the target stands first
    fits: NDArray[np.bool_] | None
    absent: bool  # the target is in no subset, and everybody moves up

    def places(self, speakers: NDArray[np.int64], candidates: Candidates) -> NDArray[np.int32]:
        """The place of each candidate's speaker in the order of each draw."""
        of = speakers[candidates.rows]
        shape = (*self.drawn.shape[:2], of.shape[2])
        place = np.take_along_axis(self.drawn, np.broadcast_to(of, shape), axis=2)
        nowhere = np.int32(self.drawn.shape[2])
        if self.absent:
            place = np.where(of == self.targets[:, None, None], nowhere, place - 1)
        return np.where(candidates.rows < 0, nowhere, place)

    def order(self, predicate: int, draw: int) -> NDArray[np.int32]:
        """Each speaker's place in the order of one draw."""
        place: NDArray[np.int32] = self.drawn[predicate, draw] - np.int32(self.absent)
        if self.absent:
            place[self.targets[predicate]] = len(place)
        return place


def in_order(rows: NDArray[np.int64], scores: NDArray[np.float32]) -> Candidates:
    """Sorted by score; who is out of the question (-inf) is padding."""
    order = np.argsort(-scores, axis=2, kind="stable")
    scores = np.take_along_axis(scores, order, axis=2)
    return Candidates(np.where(np.isneginf(scores), -1, np.take_along_axis(rows, order, axis=2)), scores)


def best_entries(
    candidates: Candidates, place: NDArray[np.int32], size: int, reach: int, depth: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The first `depth` entries within `reach` whose speakers are in the subset: a row per predicate and draw."""
    inside = place[:, :, :reach] < size
    slot = np.cumsum(inside, axis=2, dtype=np.int32)
    i, draw, column = np.nonzero(inside & (slot <= depth))
    case, slot = i * place.shape[1] + draw, slot[i, draw, column] - 1
    rows = np.full((place.shape[0] * place.shape[1], depth), -1, np.int64)
    scores = np.full(rows.shape, -np.inf, np.float32)
    source = draw if candidates.rows.shape[1] > 1 else 0
    rows[case, slot] = candidates.rows[i, source, column]
    scores[case, slot] = candidates.scores[i, source, column]
    return rows, scores


Rule = Literal["paper", "balanced"]
RULES: tuple[Rule, ...] = ("paper", "balanced")

DEPTH = 32  # entries of a subset looked at; ten calibration scores are needed, the exact way serves where these lack
COLUMNS = 1 << 14  # conversations scored at a time
PREDICATES = 512  # predicates scored at a time
TWINS = 1 << 14  # different vectors that are there twice or more, whose scores are made equal
KEEP = 1 << 28  # bytes of random ranks to keep; beyond, they are drawn again when needed
TOGETHER = 64  # predicates decided at a time
ORDERS = 1 << 25  # bytes of their random orders at a time
SAMPLE = 1 << 14  # conversations from which the cut of the list of best scores is guessed
_ROUNDING = 1e-9  # weights 1/(K-1) that sum to 1 may miss it by rounding


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a predicate isolated somebody, and the right one: over folds, one column per size, one row per draw."""

    isolated: NDArray[np.int64]  # predicates x sizes x draws
    hits: NDArray[np.int64]


def decide(
    scores: NDArray[np.floating],
    number: NDArray[np.integer],
    counts: NDArray[np.integer],
    target: NDArray[np.bool_],
    cut: NDArray[np.integer],
    folds: int,
    rule: Rule = "paper",
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Isolated, hit the target, list too short: each (cases x folds).

    Each case is a row of entries in decreasing order of score: which conversation of its speaker it is (`number`, -1
    for padding), how many that speaker has, and whether they are the target; `cut` is n = K_t - 1. Where the row has
    no score below the cut, the list was too short, or nobody else is left and everybody in it lies above.
    """
    # Entries first: what is added up and compared along them then goes on in long rows.
    number, counts, target = number.T[:, :, None], counts.T[:, :, None], target.T[:, :, None]
    test = number == np.arange(folds) % counts
    calibration = ~test & (number >= 0)
    if rule == "paper":  # footnote 4 of the paper: n = K_t - 1 scores, whoever they are from
        within = np.cumsum(calibration, axis=0, dtype=np.int32) <= cut[:, None]
    else:  # every speaker weighs the same, so that E[p] = 1/N with unequal K_s too
        within = np.cumsum(calibration / np.maximum(counts - 1, 1), axis=0) <= 1 + _ROUNDING
    s = np.ascontiguousarray(scores.T, np.float64)[:, :, None]
    last = np.where(calibration & within, s, np.inf).min(axis=0)
    following = np.where(calibration & ~within, s, -np.inf).max(axis=0)
    short = np.isneginf(following)
    with np.errstate(invalid="ignore"):  # inf - inf where a row is empty; such rows isolate nobody
        threshold = np.where(short, -np.inf, (last + following) / 2)
    above = test & (s > threshold)
    isolated = above.sum(axis=0) == 1
    hit = isolated & (above & target).any(axis=0)
    return isolated, hit, short


def isolations(
    predicates: ArrayLike,
    targets: ArrayLike,
    tested: Conversations,
    subsets: Sequence[Sequence[ArrayLike]],
    *,
    folds: int = 10,
    rule: Rule = "paper",
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Isolated and hit (predicates x draws x folds) for subsets given explicitly: `subsets[p][d]` are speaker indices.

    The plain way, which looks at every score of the subset. `allowed` (predicates x speakers) says who fits what the
    attacker knows besides; the others of the subset are out of the question.
    """
    p = np.asarray(predicates, np.float32)
    t = np.asarray(targets, np.int64)
    draws = len(subsets[0])
    isolated = np.zeros((len(p), draws, folds), bool)
    hits = np.zeros_like(isolated)
    starts, counts = _layout(tested)
    for i in range(len(p)):
        for d in range(draws):
            who = np.asarray(subsets[i][d], np.int64)
            if allowed is not None:
                who = who[allowed[i, who]]
            if not len(who):  # nobody fits what the attacker knows: nobody is isolated
                continue
            rows = np.concatenate([np.arange(starts[s], starts[s] + counts[s]) for s in who])
            scores = tested.vectors[rows] @ p[i]
            same = np.flatnonzero(tested.twins[rows] >= 0)
            if len(same):  # equal vectors, equal scores, wherever they stand
                _, first_of, where = np.unique(tested.twins[rows[same]], return_index=True, return_inverse=True)
                scores[same] = scores[same[first_of]][where]
            order = np.argsort(-scores, kind="stable")
            rows = rows[order]
            of = tested.speakers[rows]
            isolated[i, d], hits[i, d], _ = (
                decided[0]
                for decided in decide(
                    scores[order][None],
                    (rows - starts[of])[None],
                    counts[of][None],
                    (of == t[i])[None],
                    counts[t[i : i + 1]] - 1,
                    folds,
                    rule,
                )
            )
    return isolated, hits


def isolate(
    predicates: NDArray[np.float32],
    targets: NDArray[np.int64],
    tested: Conversations,
    sizes: Sequence[int],
    *,
    draws: int = 5,
    folds: int = 10,
    rule: Rule = "paper",
    seed: int = 0,
    allowed: NDArray[np.bool_] | None = None,
    absent: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Counts]:
    """How often predicates isolate somebody among random subsets of these sizes, each with its target in it.

    Subsets depend on the seed and the target's name alone, not on the order or the other predicates. With `absent`,
    the counts of the control follow: the same predicates with the same calibration in the same subsets without their
    targets, whose place the next person of the random order takes where there is one.
    """
    shape = (len(targets), len(sizes), draws)
    counts = [Counts(np.zeros(shape, np.int64), np.zeros(shape, np.int64)) for _ in range(1 + absent)]
    work = _IsolationWork(tested, list(sizes), draws, folds, rule, seed, absent)
    for start in range(0, len(targets), PREDICATES):
        part = slice(start, start + PREDICATES)
        mask = None if allowed is None else allowed[part]

        def step(done: int, total: int, start: int = start, part: slice = part) -> None:
            if progress is not None:
                size = len(targets[part])
                progress(start * total + done * size, len(targets) * total)

        work.run(predicates[part], targets[part], mask, [_cut(whole, part) for whole in counts], step)
    return counts


def _cut(counts: Counts, part: slice) -> Counts:
    return Counts(counts.isolated[part], counts.hits[part])


def _layout(tested: Conversations) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = tested.counts
    return np.concatenate([[0], np.cumsum(counts)[:-1]]), counts


class _IsolationWork:
    """One way of evaluating many predicates, with what all of them share."""

    def __init__(
        self,
        tested: Conversations,
        sizes: list[int],
        draws: int,
        folds: int,
        rule: Rule,
        seed: int,
        absent: bool = False,
    ) -> None:
        self.tested, self.sizes, self.draws, self.folds, self.rule, self.seed = tested, sizes, draws, folds, rule, seed
        self.absent = absent
        self.starts, self.counts = _layout(tested)
        # Fold f takes conversation f mod K_s: where K_s are alike, folds repeat.
        self.period = min(folds, lcm(*np.unique(self.counts).tolist()))
        self.number = (np.arange(len(tested)) - self.starts[tested.speakers]).astype(np.int16)
        people, conversations = len(tested.names), len(tested)
        # The places of twins, and the representative of each: the most frequent ones, so that memory is bounded.
        firsts, count = np.unique(tested.twins[tested.twins >= 0], return_counts=True)
        self.firsts = np.sort(firsts[np.argsort(-count, kind="stable")[:TWINS]])
        self.same = np.flatnonzero(np.isin(tested.twins, self.firsts)) if len(firsts) else np.empty(0, np.int64)
        self.twin = np.searchsorted(self.firsts, tested.twins[self.same])
        # A list of the M best scores serves subsets of N with M N/S >= 1.5 DEPTH, about; smaller ones are looked at
        # as a whole. The sum of both costs is least near this M.
        self.length = min(conversations, ceil(sqrt(DEPTH * people * draws * self.counts.mean())) + 8 * DEPTH)
        self.whole = max((n for n in sizes if n * self.length < 1.5 * DEPTH * people), default=0)
        if self.length * 2 >= conversations:  # no list worth having
            self.whole = max(sizes)
        self.gathered = self.whole + absent  # one person more, who takes the place of an absent target

    def ranks(self, target: int) -> NDArray[np.int32]:
        """Each speaker's place in the random order of each draw (draws x speakers); the target comes first."""
        name = hashlib.sha256(self.tested.names[target].encode("utf-8", "surrogateescape")).digest()
        rng = np.random.default_rng([self.seed, int.from_bytes(name[:8], "big")])
        people = len(self.tested.names)
        rank = np.empty((self.draws, people), np.int32)
        places = np.arange(people, dtype=np.int32)
        for draw in range(self.draws):
            rng.shuffle(places)
            rank[draw] = places
        rank += rank < rank[:, target, None]
        rank[:, target] = 0
        return rank

    def run(
        self,
        vectors: NDArray[np.float32],
        targets: NDArray[np.int64],
        allowed: NDArray[np.bool_] | None,
        totals: list[Counts],
        step: Callable[[int, int], None],
    ) -> None:
        large = [n for n in self.sizes if n > self.whole]
        small = [n for n in self.sizes if n <= self.whole]
        members: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        ranks: dict[int, NDArray[np.int32]] = {}
        for i, t in enumerate(targets.tolist()):
            rank = self.ranks(t)
            if small:
                members.append(self._members(rank))
            if len(targets) * rank.nbytes <= KEEP:
                ranks[i] = rank
        cut = self._guess(vectors, allowed) if large else np.full(len(vectors), np.inf, np.float32)
        lists: list[list[tuple[NDArray[np.int64], NDArray[np.float32]]]] = [[] for _ in vectors]
        gathered = [np.empty(len(rows), np.float32) for rows, _ in members]
        buffer = np.empty((len(vectors), min(COLUMNS, len(self.tested))), np.float32)
        shared = vectors @ self.tested.vectors[self.firsts].T
        for first in range(0, len(self.tested), COLUMNS):
            block = self.tested.vectors[first : first + COLUMNS]
            scores = buffer[:, : len(block)]
            np.matmul(vectors, block.T, out=scores)
            a, b = np.searchsorted(self.same, [first, first + len(block)])
            if a < b:
                scores[:, self.same[a:b] - first] = shared[:, self.twin[a:b]]
            if allowed is not None:
                inside = allowed[:, self.tested.speakers[first : first + COLUMNS]]
                scores[~inside] = -np.inf
            if large:
                for i, row in enumerate(scores):
                    best = np.flatnonzero(row >= cut[i])
                    lists[i].append((best + first, row[best]))
            for i, (rows, order) in enumerate(members):
                a, b = np.searchsorted(rows, [first, first + len(block)])
                gathered[i][order[a:b]] = scores[i, rows[a:b] - first]
            step(first + len(block), len(self.tested))
        widest = max(len(self.tested.names), self.gathered * int(self.counts.max()))
        group = max(1, min(TOGETHER, ORDERS // (4 * self.draws * widest)))
        for start in range(0, len(targets), group):
            part = slice(start, start + group)
            numbers = range(len(targets))[part]
            drawn = np.stack([ranks.pop(i) if i in ranks else self.ranks(int(targets[i])) for i in numbers])
            candidates: list[tuple[list[int], Candidates]] = []
            if small:
                candidates.append((small, self._small(drawn, gathered[part])))
            if large:
                candidates.append((large, self._large(lists[part])))
            fits = None if allowed is None else allowed[part]
            for counts, absent in zip(totals, (False, True), strict=False):
                together = PredicateGroup(vectors[part], targets[part], drawn, fits, absent)
                for sizes, ordered in candidates:
                    self._evaluate(together, ordered, sizes, _cut(counts, part))

    def _members(self, rank: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The conversations of the small subsets of all draws, ascending, and where each belongs in the flat list."""
        flat = np.concatenate([self._rows(np.flatnonzero(ranks < self.gathered)) for ranks in rank])
        order = np.argsort(flat, kind="stable")
        return flat[order], order

    def _rows(self, speakers: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = self.counts[speakers]
        ends = np.cumsum(counts)
        return np.repeat(self.starts[speakers] - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)

    def _guess(self, vectors: NDArray[np.float32], allowed: NDArray[np.bool_] | None) -> NDArray[np.float32]:
        """A score that about `length` conversations of each predicate exceed, from a sample of them."""
        n = len(self.tested)
        rows = np.sort(np.random.default_rng(self.seed).choice(n, min(SAMPLE, n), replace=False))
        scores = vectors @ self.tested.vectors[rows].T
        if allowed is not None:
            scores[~allowed[:, self.tested.speakers[rows]]] = -np.inf
        place = min(len(rows) - 1, ceil(self.length * len(rows) / n))
        cut = -np.partition(-scores, place, axis=1)[:, place]
        return np.maximum(cut, np.finfo(np.float32).min)  # who is out of the question (-inf) is on no list

    def _small(self, drawn: NDArray[np.int32], gathered: list[NDArray[np.float32]]) -> Candidates:
        """All conversations of the small subsets of each draw, by the order in which their members were gathered."""
        shape = (*drawn.shape[:2], -1)
        speakers = np.nonzero(drawn < self.gathered)[2].reshape(shape)
        number = np.arange(self.counts.max())
        there = number < self.counts[speakers][..., None]
        rows = np.where(there, self.starts[speakers][..., None] + number, -1)
        scores = np.full(rows.shape, -np.inf, np.float32)
        scores[there] = np.concatenate(gathered)
        return in_order(rows.reshape(shape), scores.reshape(shape))

    def _large(self, lists: list[list[tuple[NDArray[np.int64], NDArray[np.float32]]]]) -> Candidates:
        """The best conversations of each predicate, the same for all draws."""
        lengths = [sum(len(rows) for rows, _ in parts) for parts in lists]
        shape = (len(lists), 1, max(lengths))
        rows, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)
        for i, (parts, length) in enumerate(zip(lists, lengths, strict=True)):
            rows[i, 0, :length] = np.concatenate([part[0] for part in parts])
            scores[i, 0, :length] = np.concatenate([part[1] for part in parts])
        return in_order(rows, scores)

    def _evaluate(self, group: PredicateGroup, candidates: Candidates, sizes: list[int], totals: Counts) -> None:
        people = len(self.tested.names)
        depth = DEPTH
        if self.rule == "paper":  # K_t calibration scores decide, with test scores between them
            depth = min(DEPTH, 2 * int(self.counts[group.targets].max()) + 10)
        place = group.places(self.tested.speakers, candidates)
        targets = np.repeat(group.targets, self.draws)
        cut = self.counts[targets] - 1
        for n in sizes:
            # twice the depth on average is in the first 2 DEPTH S/N entries of a list
            reach = ceil(2 * DEPTH * people / n)
            rows, scores = best_entries(candidates, place, n, reach, depth)
            there = rows >= 0
            of = self.tested.speakers[rows]
            number = np.where(there, self.number[rows], -1)
            counts = np.where(there, self.counts[of], 2)
            right = there & (of == targets[:, None])
            isolated, hit, short = decide(scores, number, counts, right, cut, self.period, self.rule)
            for case in np.flatnonzero(short.any(axis=1)).tolist():  # look at the whole subset
                i, draw = divmod(case, self.draws)
                who = np.flatnonzero(group.order(i, draw) < n)
                exact = isolations(
                    group.vectors[i : i + 1], group.targets[i : i + 1], self.tested, [[who]], folds=self.period,
                    rule=self.rule, allowed=None if group.fits is None else group.fits[i : i + 1],
                )  # fmt: skip
                isolated[case], hit[case] = exact[0][0, 0], exact[1][0, 0]
            column = self.sizes.index(n)
            times = np.bincount(np.arange(self.folds) % self.period)
            totals.isolated[:, column] = (isolated @ times).reshape(-1, self.draws)
            totals.hits[:, column] = (hit @ times).reshape(-1, self.draws)


# --- the control
#
# Enrolled people who are in no set because they have no test recordings are such people already: their rules are
# applied to the same sets as the attack, with the same calibration. But they may differ from the people in the set:
# on x-vectors of women, rules of men isolate 14 % of the time where rules of other women isolate 31 %. So they serve
# as the control only if they are of the same kinds (gender, where it is known) and their rules isolate about as
# often, with confidence, as another enrolled person's rule in a set without that person, which is the control
# otherwise.

Rows = NDArray[np.int64]
WITHOUT_TARGET = "rules of people who are not in the set"
OF_OUTSIDERS = f"{WITHOUT_TARGET} (enrolled outsiders)"
FEWEST = 10  # outsiders: fewer can't be shown to be people like those in the set
MOST_APART = 0.20  # how far off their share of isolations may be at either end of its interval


@dataclass(frozen=True, slots=True)
class Control:
    """The method of the control, and which of its counts depend on one person's rule."""

    method: str
    clusters: Rows

    @property
    def outsiders(self) -> bool:
        return self.method == OF_OUTSIDERS


def without_target(predicates: int, why_not: str = "") -> Control:
    """Another enrolled person's rule; `why_not` says why those of outsiders, who are there, do not serve."""
    return Control(WITHOUT_TARGET + (f"; {why_not}" if why_not else ""), np.arange(predicates))


def kinds_of(enroll: Embeddings, names: Sequence[str], attribute: str = "gender") -> tuple[str, ...]:
    """The gender of each enrolled person; empty where it is not known."""
    column = enroll.attributes.get(attribute)
    known = {} if column is None else dict(zip(enroll.speakers, column, strict=True))
    return tuple(str(known.get(name, "")) for name in names)


def assign_outsiders(outsiders: Rows, targets: Rows, kinds: Sequence[str], seed: int) -> Rows | None:
    """For each target an outsider of the same kind, all of them used alike; None where a kind has too few. Both are
    rows of the enrolled people, whose kinds are given."""
    rng = np.random.default_rng([seed, 7])
    chosen = np.empty(len(targets), np.int64)
    kind = np.array(kinds, dtype=object)
    for value in sorted(set(kind[targets])):
        wanted, there = np.flatnonzero(kind[targets] == value), outsiders[kind[outsiders] == value]
        if len(there) < FEWEST:
            return None
        repeated = np.tile(rng.permutation(there), -(-len(wanted) // len(there)))
        chosen[wanted] = repeated[: len(wanted)]
    return chosen


def choose_control(without: NDArray[np.float64], theirs: NDArray[np.float64], chosen: Rows) -> Control:
    """Outsiders, if with 95 % confidence their rules isolate about as often: by share of isolations of each predicate
    in the set without its target, and of the outsider that was chosen in its place."""
    low, high = cluster_interval(theirs - without, chosen)
    if low <= 0 <= high and max(-low, high) <= MOST_APART:
        return Control(OF_OUTSIDERS, np.unique(chosen, return_inverse=True)[1].reshape(-1).astype(np.int64))
    shares = f"{100 * theirs.mean():.0f} % against {100 * without.mean():.0f} %"
    perhaps = "" if low > 0 or high < 0 else "may "
    return without_target(len(without), f"those of enrolled outsiders {perhaps}isolate differently ({shares})")
