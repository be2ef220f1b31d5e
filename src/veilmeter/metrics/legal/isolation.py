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
from math import ceil, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.metrics.legal.conversations import Conversations

Rule = Literal["paper", "balanced"]
RULES: tuple[Rule, ...] = ("paper", "balanced")

DEPTH = 32  # entries of a subset looked at; ten calibration scores are needed, the exact way serves where these lack
COLUMNS = 1 << 14  # conversations scored at a time
PREDICATES = 512  # predicates scored at a time
TWINS = 1 << 14  # different vectors that are there twice or more, whose scores are made equal
KEEP = 1 << 28  # bytes of random ranks to keep; beyond, they are drawn again when needed
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
    fold = np.arange(folds)
    test = number[:, :, None] == fold % counts[:, :, None]
    calibration = ~test & (number >= 0)[:, :, None]
    if rule == "paper":  # footnote 4 of the paper: n = K_t - 1 scores, whoever they are from
        within = np.cumsum(calibration, axis=1, dtype=np.int32) <= cut[:, None, None]
    else:  # every speaker weighs the same, so that E[p] = 1/N with unequal K_s too
        weights = calibration / np.maximum(counts - 1, 1)[:, :, None]
        within = np.cumsum(weights, axis=1) <= 1 + _ROUNDING
    kept = calibration & within
    s = scores.astype(np.float64)[:, :, None]
    last = np.where(kept, s, np.inf).min(axis=1)
    following = np.where(calibration & ~within, s, -np.inf).max(axis=1)
    short = np.isneginf(following)
    with np.errstate(invalid="ignore"):  # inf - inf where a row is empty; such rows isolate nobody
        threshold = np.where(short, -np.inf, (last + following) / 2)
    above = test & (s > threshold[:, None, :])
    isolated = np.count_nonzero(above, axis=1) == 1
    hit = isolated & (above & target[:, :, None]).any(axis=1)
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


def _without(rank: NDArray[np.int32], target: int) -> NDArray[np.int32]:
    """The random order without the target, who stood first: everybody moves up, the target is in no subset."""
    moved = rank - 1
    moved[:, target] = rank.shape[1]
    return moved


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
        for i, target in enumerate(targets.tolist()):
            drawn = ranks.pop(i) if i in ranks else self.ranks(target)
            fits = None if allowed is None else allowed[i]
            for counts, rank in zip(totals, (drawn, _without(drawn, target)), strict=False):
                cases = []
                if small:
                    rows, order = members[i]
                    cases += self._small(rows, order, gathered[i], drawn, rank, small)
                if large:
                    cases += self._large(lists[i], rank, large)
                self._evaluate(cases, vectors[i], target, rank, fits, counts, i)

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

    def _small(
        self,
        rows: NDArray[np.int64],
        order: NDArray[np.int64],
        scores: NDArray[np.float32],
        drawn: NDArray[np.int32],
        rank: NDArray[np.int32],
        sizes: list[int],
    ) -> list[tuple[int, int, NDArray[np.int64], NDArray[np.float32]]]:
        """The best entries of each small subset by `rank`; `drawn` is the order by which its members were gathered."""
        flat = np.empty_like(rows)
        flat[order] = rows
        cases, start = [], 0
        for draw in range(self.draws):
            stop = start + int(self.counts[drawn[draw] < self.gathered].sum())
            down = start + np.argsort(-scores[start:stop], kind="stable")
            down = down[np.isfinite(scores[down])]
            of, start = rank[draw][self.tested.speakers[flat[down]]], stop
            for n in sizes:
                some = down[np.flatnonzero(of < n)[:DEPTH]]
                cases.append((self.sizes.index(n), draw, flat[some], scores[some]))
        return cases

    def _large(
        self,
        parts: list[tuple[NDArray[np.int64], NDArray[np.float32]]],
        rank: NDArray[np.int32],
        sizes: list[int],
    ) -> list[tuple[int, int, NDArray[np.int64], NDArray[np.float32]]]:
        rows = np.concatenate([part[0] for part in parts])
        scores = np.concatenate([part[1] for part in parts])
        down = np.argsort(-scores, kind="stable")
        rows, scores = rows[down], scores[down]
        of = rank[:, self.tested.speakers[rows]]
        people = rank.shape[1]
        cases = []
        for n in sizes:
            # twice the depth on average is in the first 2 DEPTH S/N entries
            reach = ceil(2 * DEPTH * people / n)
            for draw in range(self.draws):
                some = np.flatnonzero(of[draw, :reach] < n)[:DEPTH]
                cases.append((self.sizes.index(n), draw, rows[some], scores[some]))
        return cases

    def _evaluate(
        self,
        cases: list[tuple[int, int, NDArray[np.int64], NDArray[np.float32]]],
        vector: NDArray[np.float32],
        target: int,
        rank: NDArray[np.int32],
        fits: NDArray[np.bool_] | None,
        totals: Counts,
        i: int,
    ) -> None:
        shape = (len(cases), DEPTH)
        scores = np.full(shape, -np.inf, np.float32)
        number = np.full(shape, -1, np.int16)
        counts = np.full(shape, 2, np.int64)
        right = np.zeros(shape, bool)
        for c, (_, _, rows, values) in enumerate(cases):
            w, of = len(rows), self.tested.speakers[rows]
            scores[c, :w], number[c, :w] = values, self.number[rows]
            counts[c, :w], right[c, :w] = self.counts[of], of == target
        cut = np.full(len(cases), self.counts[target] - 1)
        isolated, hit, short = decide(scores, number, counts, right, cut, self.folds, self.rule)
        for c in np.flatnonzero(short.any(axis=1)).tolist():  # look at the whole subset
            who = np.flatnonzero(rank[cases[c][1]] < self.sizes[cases[c][0]])
            exact = isolations(
                vector[None], [target], self.tested, [[who]], folds=self.folds, rule=self.rule,
                allowed=None if fits is None else fits[None],
            )  # fmt: skip
            isolated[c], hit[c] = exact[0][0, 0], exact[1][0, 0]
        for c, (size, draw, _, _) in enumerate(cases):
            totals.isolated[i, size, draw] = np.count_nonzero(isolated[c])
            totals.hits[i, size, draw] = np.count_nonzero(hit[c])
