"""Linkability (Vauquier et al. 2025, eq. 3-4): is a protected recording linked to the right one of N' people?

One pass over the scores gives r_i, the number of impostors that score at least as high as the right person (a tie is
a failure). The expectation over every choice of N'-1 of the K impostors is then exact, for every N' at once:

    linkability(N') = mean_i C(K - r_i, N'-1) / C(K, N'-1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates, HasEstimates
from veilmeter.core.intervals import LEVEL, cluster_error, logit_t
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.data.formats.vectors import EmbeddingsLike, to_embeddings
from veilmeter.metrics.legal.conversations import (
    conversations,
    ladder,
    models,
    per_speaker_estimates,
    refuse_other_dimension,
    row_dots,
)
from veilmeter.metrics.measure import Measure, percentage_of

TEST_BLOCK, ENROLL_BLOCK = 1024, 8192  # 32 MB of scores at a time, whatever the number of speakers
SAMPLED_CONVERSATIONS, SAMPLED_PEOPLE = 8192, 1024  # of which scores are kept, to extrapolate from: at most 32 MB
KEEP = 1 << 24  # keep who beats whom (for the both-roles jackknife) up to this many pairs: 16 MB

Progress = Callable[[int, int], None]


MEASURES = (
    Measure(
        name="linkability",
        label="Linkability",
        unit="percent",
        better="lower",
        meaning="The chance that a protected recording is linked to the right person among N' enrolled ones.",
        source="Vauquier et al. 2025",
        section="linking",
        equation="mean over recordings of C(K−r, N′−1) / C(K, N′−1), r the better impostors among K",
        low=0,
        high=100,
        bar=100,
    ),
    Measure(
        name="learning_linkability",
        label="Linkability with more effort",
        unit="percent",
        better="lower",
        meaning="The chance of a link when the attacker has fewer or more runs, recordings or other people's speech.",
        source="veilmeter",
        section="linking",
        equation="the Linkability of the same attack with part of what there is",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
)


class VectorRows(Protocol):
    """Vectors that can be had in part: an array or a memory-mapped file."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, key: slice | NDArray[np.int64], /) -> NDArray[np.floating]: ...


@dataclass(frozen=True, eq=False, slots=True)
class ScoreSample:
    """Scores of some conversations (`rows`): with the right person, and with other enrolled people.

    `impostors` (rows x people) is NaN where the column is the right person; `people` says who the columns are.
    """

    rows: NDArray[np.int64]
    right: NDArray[np.float32]
    impostors: NDArray[np.float32]
    people: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkCounts:
    """What one pass over the scores gives; every number below follows from it.

    `better` is r_i for each test conversation, `impostors` K, `speakers` the test speaker of each conversation as an
    index into `names`. `beats` (conversations x enrolled people), where kept, says who is at least as good as the
    right person, and `own` which enrolled person that is. `sample` are scores, to extrapolate from.
    """

    better: NDArray[np.int64]
    impostors: int
    speakers: NDArray[np.int64]
    names: tuple[str, ...]
    length: int = 1
    own: NDArray[np.int64] | None = None
    beats: NDArray[np.bool_] | None = None
    sample: ScoreSample | None = None

    @property
    def largest(self) -> int:
        """The largest N': everybody enrolled."""
        return self.impostors + 1

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many conversations each test speaker has."""
        return np.bincount(self.speakers, minlength=len(self.names))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the conversations for a mean over all test data (eq. 4): all equal; they sum to 1."""
        return np.full(len(self.better), 1 / len(self.better))

    def per_conversation(self, speakers: int) -> NDArray[np.float64]:
        """The probability of a link among `speakers` enrolled people, for each test conversation."""
        self._check(speakers)
        return link_probability(self.better, self.impostors, speakers)

    def per_speaker(self, speakers: int) -> NDArray[np.float64]:
        """The same for each test speaker, in the order of `names`."""
        return np.bincount(self.speakers, self.per_conversation(speakers), len(self.names)) / self.counts

    def value(self, speakers: int) -> float:
        """The mean over all test conversations."""
        return float(self.per_conversation(speakers).mean())

    @cached_property
    def curve(self) -> NDArray[np.float64]:
        """Linkability for N' = 1, 2, ..., K+1: `curve[N' - 1]`."""
        rank, count = np.unique(self.better, return_counts=True)
        mass = count / len(self.better)
        k = self.impostors
        steps = np.arange(k, dtype=float)
        values = np.zeros(k + 1)
        for r, weight in zip(rank, mass, strict=True):
            # P(m+1) = P(m) (K-r-m)/(K-m): a running product, exact to m rounding errors
            ahead = k - int(r)
            values[0] += weight
            values[1 : ahead + 1] += weight * np.cumprod((ahead - steps[:ahead]) / (k - steps[:ahead]))
        return values

    def exact(self, speakers: int) -> Fraction:
        """The value as a fraction, without rounding."""
        self._check(speakers)
        k, m = self.impostors, speakers - 1
        ranks = zip(*(x.tolist() for x in np.unique(self.better, return_counts=True)), strict=True)
        total = sum((count * Fraction(comb(k - r, m), comb(k, m)) for r, count in ranks), Fraction(0))
        return total / len(self.better)

    def interval(self, speakers: int, *, level: float = LEVEL) -> tuple[float, float]:
        """Clustered by speaker: both-roles jackknife where `beats` is kept, else t; Wilson's at 0 and 1."""
        return self._interval(speakers, self._beats(), level)

    def _beats(self) -> NDArray[np.float32] | None:
        """`beats` as numbers: a product with truth values converts them every time."""
        return None if self.beats is None else self.beats.astype(np.float32)

    def _interval(self, speakers: int, beats: NDArray[np.float32] | None, level: float = LEVEL) -> tuple[float, float]:
        people = int(np.count_nonzero(self.counts))
        error = float(np.sqrt(self._variance(speakers, beats))) if people > 1 else 0.0
        return logit_t(self.value(speakers), error, people, level=level)

    def _variance(self, speakers: int, beats: NDArray[np.float32] | None) -> float:
        each = self.per_conversation(speakers)
        one_role = cluster_error(each, self.speakers)[0] ** 2
        if beats is None or self.own is None or self.impostors < 2:
            return one_role
        # Delete each person in both roles: as a test speaker and as an impostor. Without person g, K and perhaps
        # r_i fall by one; where all K impostors are drawn, the spread is that of K-1 drawn.
        k = self.impostors - 1
        drawn = min(speakers, k + 1)
        without = link_probability(np.minimum(self.better, k), k, drawn)
        with_one_less = link_probability(np.maximum(self.better - 1, 0), k, drawn)
        gain = self.weights * (with_one_less - without)
        gallery = np.asarray(gain.astype(np.float32) @ beats, float)  # the mean's rise without each impostor
        gallery -= gallery.mean()
        # The jackknife overstates the spread of a statistic of m out of K by 1 + m/K; of a maximum (m = K), twofold.
        gallery /= np.sqrt(1 + (drawn - 1) / k)
        person = np.zeros(len(gallery), dtype=bool)
        person[self.own] = True
        total = np.bincount(self.speakers, each - each.mean(), len(self.names))
        gallery[self.own[np.unique(self.speakers, return_index=True)[1]]] -= total / (len(each) - self.counts)
        both_roles = sum(
            (len(role) - 1) / len(role) * float(np.sum((role - role.mean()) ** 2))
            for role in (gallery[person], gallery[~person])
            if len(role) > 1
        )
        # Where one voice attracts everybody, its two roles cancel out; but it might not have been among the tested.
        # The noise of each deletion adds to the jackknife's spread: with all of what it says in excess, 95 % intervals
        # covered 98 % of simulated worlds, with half of it 96 %.
        return one_role + max(0.0, both_roles - one_role) / 2

    def estimate(self, speakers: int, *, intervals: bool = True) -> Estimate:
        return self._estimate(speakers, self.interval(speakers) if intervals else None)

    def _estimate(self, speakers: int, interval: tuple[float, float] | None) -> Estimate:
        return percentage_of(
            "linkability",
            self.value(speakers),
            interval=interval,
            null=1 / speakers,
            method="exact",
            n={
                "speakers": int(np.count_nonzero(self.counts)),
                "conversations": len(self.better),
                "impostors": self.impostors,
            },
            at={"speakers": speakers, "length": self.length},
        )

    def estimates(self, speakers: Sequence[int], *, intervals: bool = True) -> list[Estimate]:
        """The curve at these N'. It never rises, and neither do the ends of its intervals: what is linked among more
        people is linked among fewer, so each interval yields to those of larger N', the largest to none."""
        if not intervals:
            return [self._estimate(n, None) for n in speakers]
        beats, ends, lowest, highest = self._beats(), {}, 0.0, 0.0
        for n in sorted(set(speakers), reverse=True):
            low, high = self._interval(n, beats)
            lowest, highest = max(low, lowest), max(high, highest)
            ends[n] = lowest, highest
        return [self._estimate(n, ends[n]) for n in speakers]

    def _check(self, speakers: int) -> None:
        if not 1 <= speakers <= self.largest:
            raise InputError(
                f"Linkability among {speakers} enrolled speakers was asked for, there are {self.largest}",
                fix=f"the largest possible number is {self.largest}",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Linkability(HasEstimates):
    """Linkability for conversations of one or several lengths: what `linkability` gives.

    Attributes
    ----------
    estimates : Estimates
        The curve of each length, in percent.
    counts : mapping of int to LinkCounts
        By length, what all of it follows from: exact values for every number of people, one by one.
    """

    counts: Mapping[int, LinkCounts]
    estimates: Estimates

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many utterances conversations have."""
        return tuple(self.counts)

    @property
    def largest(self) -> int:
        """The number of people who are enrolled."""
        return next(iter(self.counts.values())).largest

    @property
    def summary(self) -> str:
        lengths = ", ".join(map(str, self.lengths))
        return f"{len(self.estimates)} points among up to {self.largest} enrolled people, length {lengths}"

    def at(self, speakers: int, length: int | None = None) -> Estimate:
        """The estimate among so many enrolled people, for the shortest length unless one is given.

        Raises
        ------
        InputError
            If there are not so many people, or this length was not measured.
        """
        counts = self._of_length(length)
        known = self.estimates.filter(speakers=speakers, length=counts.length)
        return known.only() if len(known) else counts.estimate(speakers)

    def per_speaker(self, speakers: int | None = None, length: int | None = None) -> Estimates:
        """The Linkability of each test speaker, the most exposed first, among everybody unless a number is given."""
        counts = self._of_length(length)
        among = counts.largest if speakers is None else speakers
        behind = [{"conversations": int(count)} for count in counts.counts]
        rows = zip(counts.names, counts.per_speaker(among), behind, strict=True)
        return Estimates(
            per_speaker_estimates(
                "linkability", rows, speakers=among, length=counts.length, method="exact", null=1 / among
            )
        )

    def _of_length(self, length: int | None) -> LinkCounts:
        wanted = self.lengths[0] if length is None else length
        if wanted not in self.counts:
            raise InputError(
                f"Linkability of conversations of {wanted} utterances was not measured",
                fix=f"the lengths are {', '.join(map(str, self.lengths))}",
            )
        return self.counts[wanted]


def linkability(
    enroll: EmbeddingsLike,
    test: EmbeddingsLike,
    *,
    speakers: Sequence[int] = (),
    lengths: Sequence[int] = (1,),
    conversations: int | None = None,
    intervals: bool = True,
    seed: int = 0,
) -> Linkability:
    """Measure how often a recording is linked to the right person among N' enrolled ones, by cosine similarity.

    The rate is exact over all choices of impostors; ties count as failures of the attacker. Test speakers who are not
    enrolled can't be linked and are left out, as are those with fewer utterances than a conversation has.

    Parameters
    ----------
    enroll : Embeddings, path, DataFrame, or (vectors, speakers) or (vectors, utterances, speakers)
        Embeddings of the people whom the attacker knows; utterances are averaged per speaker.
    test : Embeddings, path, DataFrame, or (vectors, speakers) or (vectors, utterances, speakers)
        Embeddings of the anonymized recordings, by the same extractor.
    speakers : sequence of int
        Numbers of enrolled people; by default round numbers up to everybody.
    lengths : sequence of int
        Utterances in a conversation.
    conversations : int, optional
        Conversations per test speaker at most, drawn at random; by default all.
    intervals : bool
        Whether to compute 95 % intervals, over speakers.
    seed : int
        Random seed.

    Returns
    -------
    Linkability
        The curves as `Estimates`, and the counts that they follow from.

    Raises
    ------
    InputError
        If the vectors have different dimensions, nobody of the test is enrolled, or there are too few people.

    Examples
    --------
    >>> import numpy as np
    >>> voices = np.random.default_rng(0).normal(size=(30, 8))
    >>> names = [f"s{row}" for row in range(30)]
    >>> linked = linkability((voices, names), (voices + 0.5, names), speakers=[20, 30])
    >>> print(linked.at(20))
    Linkability at speakers 20, length 1 95.6 % [77.4, 99.3] (exact, chance 5.0)
    """
    people, tested = to_embeddings(enroll, "enrollment"), to_embeddings(test, "test")
    refuse_other_dimension(people, tested)
    counts = {
        length: count_links(people, tested, length=length, most=conversations, seed=seed)
        for length in sorted({lengths} if isinstance(lengths, int) else set(lengths))
    }
    points: list[Estimate] = []
    for link in counts.values():
        points += link.estimates(sorted(set(speakers)) or ladder(link.largest), intervals=intervals)
    drawn = {} if conversations is None else {"conversations_at_most": conversations, "seed": seed}
    return Linkability(counts, Estimates(points).sign(**drawn))


def link_probability(better: ArrayLike, impostors: int, speakers: int) -> NDArray[np.float64]:
    """C(K - r, N'-1) / C(K, N'-1): the chance that none of the r better impostors is among the N'-1 drawn.

    >>> link_probability([0, 1, 3], impostors=3, speakers=3).round(4).tolist()
    [1.0, 0.3333, 0.0]
    """
    r = np.asarray(better, dtype=np.int64)
    k, m = impostors, speakers - 1
    rank, where = np.unique(r, return_inverse=True)
    # prod_{j<r} (K-m-j)/(K-j), and the same with r and m exchanged: a running sum of logarithms over the shorter
    values = np.zeros(len(rank))
    possible = rank <= k - m
    top = int(rank[possible].max()) if possible.any() else 0
    steps = np.arange(top, dtype=float)
    logs = np.concatenate([[0.0], np.cumsum(np.log1p(-m / (k - steps)))])
    values[possible] = np.exp(logs[rank[possible]])
    return values[where].reshape(r.shape)


def better_impostors(scores: ArrayLike, own: ArrayLike) -> NDArray[np.int64]:
    """r_i from a score matrix (test conversations x enrolled people) and the column of the right person.

    >>> better_impostors([[0.9, 0.2, 0.9], [0.1, 0.8, 0.3]], own=[0, 1]).tolist()
    [1, 0]
    """
    s = np.asarray(scores)
    right = np.asarray(own, dtype=np.int64)
    return np.asarray((s >= np.take_along_axis(s, right[:, None], 1)).sum(1) - 1, dtype=np.int64)


def count_better(
    test: NDArray[np.float32],
    own: NDArray[np.int64],
    enroll: VectorRows,
    *,
    groups: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    beats: NDArray[np.bool_] | None = None,
    block: tuple[int, int] = (TEST_BLOCK, ENROLL_BLOCK),
    progress: Progress | None = None,
) -> NDArray[np.int64]:
    """r_i by cosine similarity, in blocks: memory is bounded by the block, not by the score matrix.

    Scores that float32 can't tell from the right person's are compared again in float64, so the counts do not depend
    on the size of the blocks, the number of threads or the BLAS. `groups` (of tests and enrolled people; -1: unknown)
    lets only impostors of the same or an unknown group count. `beats`, if given, is filled with who beats whom.
    """
    x = unit(test)
    n, d = x.shape
    size = enroll.shape[0]
    right = np.concatenate(
        [row_dots(x[a : a + TEST_BLOCK], unit(enroll[own[a : a + TEST_BLOCK]])) for a in range(0, n, TEST_BLOCK)]
    )
    slack = 4 * np.sqrt(d) * np.finfo(np.float32).eps
    surely, perhaps = (right + slack).astype(np.float32), (right - slack).astype(np.float32)
    counts = np.zeros(n, dtype=np.int64)
    rows, columns = min(block[0], n), min(block[1], size)
    scores = np.empty((rows, columns), np.float32)
    above = np.empty((rows, columns), bool)
    near = np.empty((rows, columns), bool)
    done, total = 0, n * size
    for first in range(0, size, columns):
        y = unit(enroll[first : first + columns])
        for start in range(0, n, rows):
            part = slice(start, min(start + rows, n))
            h, w = part.stop - start, len(y)
            s, sure, maybe = scores[:h, :w], above[:h, :w], near[:h, :w]
            np.matmul(x[part], y.T, out=s)
            mine = np.flatnonzero((own[part] >= first) & (own[part] < first + w))
            s[mine, own[part][mine] - first] = -2.0  # the right person is not an impostor
            if groups is not None:
                theirs = groups[1][first : first + w]
                known = groups[0][part] >= 0
                s[known[:, None] & (theirs >= 0) & (theirs != groups[0][part][:, None])] = -2.0
            np.greater_equal(s, surely[part, None], out=sure)
            np.greater_equal(s, perhaps[part, None], out=maybe)
            for i in range(h):  # count_nonzero of one row is far faster than a sum over an axis
                count = np.count_nonzero(sure[i])
                if np.count_nonzero(maybe[i]) != count:
                    close = np.flatnonzero(maybe[i] & ~sure[i])
                    tied = close[row_dots(x[start + i], y[close]) >= right[start + i]]
                    sure[i, tied] = True
                    count += len(tied)
                counts[start + i] += count
            if beats is not None:
                beats[part, first : first + w] = sure
            done += h * w
            if progress is not None:
                progress(done, total)
    return counts


def count_links(
    enroll: Embeddings,
    test: Embeddings,
    *,
    length: int = 1,
    most: int | None = None,
    seed: int = 0,
    keep: int = KEEP,
    progress: Progress | None = None,
) -> LinkCounts:
    """Linkability of `test` recordings to the people of `enroll`, by cosine similarity.

    Enrollment models are averaged over all utterances of a speaker. Every conversation of `length` test utterances
    counts alike (at most `most` a speaker). Test speakers who are not enrolled can't be linked and are left out, as
    are those with fewer than `length` utterances.
    """
    people = models(enroll)
    code = {name: number for number, name in enumerate(people.names)}
    known = np.array([speaker in code for speaker in test.speakers])
    if not known.any():
        raise InputError(
            "no test speaker is enrolled",
            path=test.source or None,
            fix="use the same speaker names in the enrollment and in the test",
        )
    if len(people) < 2:
        raise InputError("only one speaker is enrolled: nobody could be mistaken for them", path=enroll.source or None)
    tested = conversations(test if known.all() else test.take(known), length, most=most, seed=seed)
    own = np.array([code[name] for name in tested.names])[tested.speakers]
    beats = np.zeros((len(tested), len(people)), bool) if len(tested) * len(people) <= keep else None
    better = count_better(tested.vectors, own, people.vectors, beats=beats, progress=progress)
    rows, columns = draw_sample(len(tested), len(people), seed)
    right = row_dots(tested.vectors[rows], people.vectors[own[rows]])
    sample = _sample(tested.vectors[rows] @ people.vectors[columns].T, right, own[rows], rows, columns)
    return LinkCounts(better, len(people) - 1, tested.speakers, tested.names, length, own, beats, sample)


def linkability_of_scores(
    scores: NDArray[np.floating],
    enrolled: Sequence[str],
    spoken: NDArray[np.object_],
    *,
    length: int = 1,
    seed: int = 0,
) -> LinkCounts | None:
    """From a matrix of scores (enrolled people x conversations) and who they are of, whatever made the scores.

    None if fewer than two people are enrolled, or nobody of them speaks.
    """
    code = {name: number for number, name in enumerate(enrolled)}
    known = np.flatnonzero([name in code for name in spoken])
    if len(code) < 2 or not len(known):
        return None
    own = np.array([code[name] for name in spoken[known]])
    theirs = (scores if len(known) == scores.shape[1] else scores[:, known]).T
    right = theirs[np.arange(len(own)), own]
    beats = theirs >= right[:, None]
    beats[np.arange(len(own)), own] = False
    names = tuple(dict.fromkeys(spoken[known]))
    position = {name: number for number, name in enumerate(names)}
    speakers = np.array([position[name] for name in spoken[known]])
    rows, columns = draw_sample(len(own), len(enrolled), seed)
    sample = _sample(theirs[np.ix_(rows, columns)], right[rows], own[rows], rows, columns)
    better = np.count_nonzero(beats, axis=1)
    kept = beats if beats.size <= KEEP else None
    return LinkCounts(better, len(code) - 1, speakers, names, length, own, kept, sample)


def draw_sample(conversations: int, people: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which conversations and which enrolled people to keep scores of: all of them where they are not too many."""
    rng = np.random.default_rng([seed, 6])
    sides = [(conversations, SAMPLED_CONVERSATIONS), (people, SAMPLED_PEOPLE)]
    rows, columns = (
        np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False)).astype(np.int64) for n, most in sides
    )
    return rows, columns


def _sample(
    scores: NDArray[np.floating],
    right: NDArray[np.floating],
    own: NDArray[np.int64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> ScoreSample:
    impostors = scores.astype(np.float32)
    impostors[own[:, None] == columns] = np.nan
    return ScoreSample(rows, right.astype(np.float32), impostors, columns)
