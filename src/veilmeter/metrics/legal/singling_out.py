"""Singling Out (Vauquier et al. 2025, eq. 1-2): does an attacker's rule pick out exactly one of N people?

The predicate of an enrolled person is "scores above a threshold", calibrated to be true of one person in N on average.
How often such a rule isolates somebody, no matter whom, is the paper's measure. A rule that knows nobody isolates too:
1/e of the time in theory, 0.35 with an estimated threshold, more where speakers are consistent with themselves. So the
attack is reported with a measured control, the rule of a person who is not in the set, and with the residual risk that
is left when the control's share is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates, HasEstimates
from veilmeter.core.intervals import cluster_error, cluster_interval, logit_t
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import EmbeddingsLike, to_embeddings
from veilmeter.metrics.legal.conversations import (
    Conversations,
    conversations,
    ladder,
    models,
    refuse_other_dimension,
    speakers_by_length,
)
from veilmeter.metrics.legal.isolation import (
    RULES,
    WITHOUT_TARGET,
    Control,
    Counts,
    Rule,
    assign_outsiders,
    choose_control,
    isolate,
    kinds_of,
    without_target,
)
from veilmeter.metrics.measure import Measure, percentage_of

Rows = NDArray[np.int64]
PAPER_CHANCE = exp(-1)
CONVERSATIONS = 10  # K_s is at most this, in the paper


MEASURES = (
    Measure(
        name="singling_out",
        label="Singling Out",
        unit="percent",
        better="lower",
        meaning="The chance that an attacker's rule picks out exactly one person among N.",
        source="Vauquier et al. 2025",
        section="singling_out",
        equation="Pr{exactly one of N scores above the threshold}",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
    Measure(
        name="residual_risk",
        label="risk beyond the control",
        unit="percent",
        better="lower",
        meaning="Singling Out beyond what a rule without knowledge of anybody achieves.",
        source="Vauquier et al. 2025",
        section="singling_out",
        equation="(attack − control) / (1 − control)",
        high=100,
        bar=100,
    ),
    Measure(
        name="control",
        label="control",
        unit="percent",
        better="neither",
        meaning="How often a rule picks out exactly one person though it knows nobody: what Singling Out starts from.",
        source="cf. Giomi et al. 2023",
        section="singling_out",
        equation="the same, with the rule of a person who is not among the N",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
    Measure(
        name="hit_share",
        label="isolates the right one",
        unit="percent",
        better="lower",
        meaning="Of the people picked out, the share that the attacker was after.",
        source="Vauquier et al. 2025",
        section="singling_out",
        equation="Pr{the one above the threshold is the enrolled person | exactly one is}",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
)


@dataclass(frozen=True, eq=False)
class IsolationCounts:
    """How often each predicate isolated somebody among N people, for every N of `sizes`.

    `attack` and `control` count folds (predicates x sizes x draws); `names` are the predicates' targets. `cuts` is
    n = K_t - 1 of each target, `others` the number of calibration conversations of each test speaker. `controlled` says
    what the control is.
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...]
    attack: Counts
    control: Counts | None
    cuts: NDArray[np.int64]
    others: NDArray[np.int64]
    people: int
    draws: int
    folds: int
    rule: Rule
    length: int
    dropped: tuple[str, ...] = ()
    controlled: Control | None = None

    def per_predicate(self, speakers: int, *, control: bool = False) -> NDArray[np.float64]:
        """The share of draws and folds in which each predicate isolated somebody."""
        counts = self._control if control else self.attack
        return np.asarray(counts.isolated[:, self._column(speakers)].sum(axis=1) / (self.draws * self.folds))

    def chance(self, speakers: int) -> float:
        """The share that a rule without knowledge isolates when all scores are alike: see `chance`."""
        if self.rule == "balanced":
            return chance_of_balanced_rule(self.others)
        cuts, predicates = np.unique(self.cuts, return_counts=True)
        chances = [chance(int(n), float(self.others.mean())) for n in cuts]
        return float(np.average(chances, weights=predicates))

    def estimate(self, speakers: int, *, intervals: bool = True) -> Estimate:
        return self._rate(
            "singling_out",
            speakers,
            self.per_predicate(speakers),
            intervals,
            null=self.chance(speakers),
            method=self._method,
            extra={"paper_chance": 100 * PAPER_CHANCE},
        )

    def control_estimate(self, speakers: int, *, intervals: bool = True) -> Estimate:
        return self._rate(
            "control",
            speakers,
            self.per_predicate(speakers, control=True),
            intervals,
            null=self.chance(speakers),
            method=self._control_method,
            extra={"paper_chance": 100 * PAPER_CHANCE},
        )

    def residual_risk(self, speakers: int, *, intervals: bool = True) -> Estimate:
        """(attack - control) / (1 - control), paired by predicate; its interval from the delta method."""
        a, c = self.per_predicate(speakers), self.per_predicate(speakers, control=True)
        left = 1 - float(c.mean())
        value = (float(a.mean()) - float(c.mean())) / left if left > 0 else 0.0
        interval = None
        if intervals:
            interval = (0.0, 1.0)
            if left > 0 and len(self.names) > 1:
                # d value = (d attack - (1 - value) d control) / (1 - control)
                influence = (a - (1 - value) * c) / left
                clusters = np.arange(len(influence)) if self.controlled is None else self.controlled.clusters
                low, high = cluster_interval(influence - influence.mean() + value, clusters)
                interval = (max(-1.0, min(low, 1.0)), max(-1.0, min(1.0, high)))
        return self._estimate(
            "residual_risk", speakers, value, interval, null=0.0, method=f"against {self._control_method}"
        )

    def hit_share(self, speakers: int, *, intervals: bool = True) -> Estimate:
        """The share of isolations that picked the enrolled person (a ratio, clustered by predicate)."""
        column = self._column(speakers)
        hits = self.attack.hits[:, column].sum(axis=1).astype(float)
        isolated = self.attack.isolated[:, column].sum(axis=1).astype(float)
        total = float(isolated.sum())
        value = float(hits.sum()) / total if total else float("nan")
        interval = None
        if intervals and total and len(hits) > 1:
            influence = (hits - value * isolated) / isolated.mean()
            interval = logit_t(value, *cluster_error(influence, np.arange(len(hits))))
        return self._estimate(
            "hit_share",
            speakers,
            value,
            interval,
            null=1 / speakers,
            method=self._method,
            extra={"isolations": int(total)},
        )

    def estimates(self, speakers: Sequence[int] | None = None, *, intervals: bool = True) -> dict[str, list[Estimate]]:
        """All four curves."""
        wanted = self.sizes if speakers is None else speakers
        kinds: dict[str, Callable[..., Estimate]] = {"singling_out": self.estimate}
        if self.control is not None:
            kinds |= {"control": self.control_estimate, "residual_risk": self.residual_risk}
        kinds["hit_share"] = self.hit_share
        return {name: [make(n, intervals=intervals) for n in wanted] for name, make in kinds.items()}

    @property
    def _control(self) -> Counts:
        if self.control is None:
            raise InputError("Singling Out was measured without a control")
        return self.control

    @property
    def _control_method(self) -> str:
        return WITHOUT_TARGET if self.controlled is None else self.controlled.method

    @property
    def _method(self) -> str:
        return f"{self.rule} rule"

    def _column(self, speakers: int) -> int:
        if speakers not in self.sizes:
            raise InputError(f"Singling Out among {speakers} speakers was not measured")
        return self.sizes.index(speakers)

    def _rate(
        self,
        name: str,
        speakers: int,
        values: NDArray[np.float64],
        intervals: bool,
        **more: Any,
    ) -> Estimate:
        interval = logit_t(float(values.mean()), *cluster_error(values, np.arange(len(values)))) if intervals else None
        return self._estimate(name, speakers, float(values.mean()), interval, **more)

    def _estimate(
        self, name: str, speakers: int, value: float, interval: tuple[float, float] | None, **more: Any
    ) -> Estimate:
        return percentage_of(
            name,
            value,
            interval=interval,
            n={"predicates": len(self.names), "speakers": self.people, "draws": self.draws, "folds": self.folds},
            at={"speakers": speakers, "length": self.length},
            **more,
        )


def chance(cut: int, others: float) -> float:
    """How often a rule without knowledge isolates somebody, with the paper's rule and many people.

    All scores are alike in distribution; the threshold lies halfway between calibration scores n = `cut` and n+1, and
    each test speaker has M = `others` calibration scores on average. Going down the scores, the next one is a
    calibration score with p = M/(M+1), and q = M/(M+1/2) is the chance that no test score lies in the half gap below
    score n. One test score above: M p^n (1-p) q + p^n q (1-q), with n in front instead of M where they differ.

    >>> round(chance(9, 9), 4), round(chance(1, 9), 3), round(chance(9, 2), 3)
    (0.3496, 0.13, 0.067)
    """
    p, q = others / (others + 1), others / (others + 0.5)
    return float(cut * p**cut * (1 - p) * q + p**cut * q * (1 - q))


def chance_of_balanced_rule(others: ArrayLike, *, samples: int = 100_000) -> float:
    """The same for the balanced rule, where speakers have `others` (K_s - 1) calibration scores each: simulated.

    >>> round(chance_of_balanced_rule([9, 9, 9]), 2)
    0.35
    """
    m = np.asarray(others, dtype=float)
    values, people = np.unique(m, return_counts=True)
    if len(values) == 1:  # all weigh the same: the cut falls after M scores, as with the paper's rule
        return chance(int(values[0]), float(values[0]))
    rng = np.random.default_rng(20250003)
    # Calibration scores come in random order, each from a speaker with M of them in proportion to M people(M); test
    # scores fall among them as a Poisson process: one for every mean(M) calibration scores.
    rate = 1 / float(m.mean())
    share = values * people / np.sum(values * people)
    depth = int(values.max()) + 2
    weight = 1 / values[rng.choice(len(values), size=(samples, depth), p=share)]
    inside = np.cumsum(weight, axis=1) <= 1 + 1e-9
    cut = np.count_nonzero(inside, axis=1)
    # the gaps above score n, and half the gap below it, are exponential
    reach = rng.gamma(np.maximum(cut, 1)) * (cut > 0) + rng.exponential(0.5, samples)
    tests = rate * reach
    return float(np.mean(tests * np.exp(-tests)))


@dataclass(frozen=True, eq=False, repr=False)
class SinglingOut(HasEstimates):
    """Singling Out for conversations of one or several lengths: what `singling_out` gives.

    Attributes
    ----------
    estimates : Estimates
        The curves of each length, in percent: attack, control, residual risk, and share of hits.
    counts : mapping of int to IsolationCounts
        By length, what all of it follows from.
    """

    counts: Mapping[int, IsolationCounts]
    estimates: Estimates

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many utterances conversations have."""
        return tuple(self.counts)

    @property
    def summary(self) -> str:
        people = max(counts.people for counts in self.counts.values())
        return f"{len(self.estimates)} points among up to {people} people, length {', '.join(map(str, self.lengths))}"

    def at(self, speakers: int, length: int | None = None) -> Estimates:
        """The estimates among so many people, for the shortest length unless one is given."""
        wanted = self.lengths[0] if length is None else length
        return self.estimates.filter(speakers=speakers, length=wanted)


def singling_out(
    enroll: EmbeddingsLike,
    test: EmbeddingsLike,
    *,
    speakers: Sequence[int] = (),
    lengths: Sequence[int] = (1,),
    rule: Rule = "paper",
    draws: int = 5,
    folds: int = 10,
    predicates: int = 495,
    control: bool = True,
    intervals: bool = True,
    seed: int = 0,
) -> SinglingOut:
    """Measure how often an attacker's rule fits exactly one of N people.

    A rule made without knowing anybody in the set isolates somebody, too: the control measures how often, and the
    residual risk is what exceeds it.

    Parameters
    ----------
    enroll : Embeddings, path, DataFrame, or (vectors, speakers) or (vectors, utterances, speakers)
        Embeddings of the people whom the attacker knows; utterances are averaged per speaker.
    test : Embeddings, path, DataFrame, or (vectors, speakers) or (vectors, utterances, speakers)
        Embeddings of the anonymized recordings, by the same extractor.
    speakers : sequence of int
        Numbers of test speakers; by default round numbers up to everybody.
    lengths : sequence of int
        Utterances in a conversation; speakers with fewer than twice as many are left out.
    rule : {"paper", "balanced"}
        How the threshold is set.
    draws : int
        Random subsets of each size.
    folds : int
        Splits into calibration and test.
    predicates : int
        Enrolled people whose rules are tried, at most, drawn at random.
    control : bool
        Whether to measure the control.
    intervals : bool
        Whether to compute 95 % intervals, over people.
    seed : int
        Random seed.

    Returns
    -------
    SinglingOut
        The curves as `Estimates`, and the counts that they follow from.

    Raises
    ------
    InputError
        If the vectors have different dimensions, or too few speakers have enough utterances.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> voices = np.repeat(rng.normal(size=(20, 8)), 4, axis=0)
    >>> names = [f"s{row // 4}" for row in range(80)]
    >>> found = singling_out((voices, names), (voices + rng.normal(size=voices.shape), names), speakers=[20])
    >>> found.estimates.names
    ('singling_out', 'control', 'residual_risk', 'hit_share')
    """
    people, tested = to_embeddings(enroll, "enrollment"), to_embeddings(test, "test")
    refuse_other_dimension(people, tested)
    lengths = sorted({lengths} if isinstance(lengths, int) else set(lengths))
    points: list[Estimate] = []
    counts: dict[int, IsolationCounts] = {}
    for length, most in speakers_by_length(tested, lengths).items():
        counts[length] = count_isolations(
            people, tested, sorted(set(speakers)) or ladder(most), length=length, rule=rule, draws=draws, folds=folds,
            predicates=predicates, seed=seed, control=control,
        )  # fmt: skip
        points += Estimates.of(counts[length].estimates(intervals=intervals))
    return SinglingOut(counts, Estimates(points).sign(seed=seed))


def count_isolations(
    enroll: Embeddings,
    test: Embeddings,
    sizes: Sequence[int] | None = None,
    *,
    length: int = 1,
    rule: Rule = "paper",
    draws: int = 5,
    folds: int = 10,
    predicates: int | None = None,
    seed: int = 0,
    control: bool = True,
    most: int = CONVERSATIONS,
    progress: Callable[[int, int], None] | None = None,
) -> IsolationCounts:
    """Singling Out among `sizes` speakers of `test`, by predicates of the people of `enroll` who are among them.

    Test speakers with fewer than 2 `length` utterances are left out (`dropped`); without `sizes` it is among all
    others. With `predicates`, that many enrolled people are chosen at random. The control is the rule of a person who
    is not in the set: of enrolled outsiders who are people like those in it (`assign_outsiders`), else each predicate
    with its calibration in the same sets without its target, so that nothing but the target's presence tells the two
    apart. A random direction or a mixture of the voices in the set would know the people and isolate too often.
    """
    if rule not in RULES:
        raise InputError(f"unknown rule {rule!r}", fix=f"choose among {', '.join(RULES)}")
    if draws < 1 or folds < 2:
        raise InputError("there must be at least 1 draw and 2 folds")
    tested = conversations(test, length, least=2, most=most, seed=seed)
    people = models(enroll)
    rows, targets = aims(people.names, tested, predicates, seed, enroll.source)
    sizes = [len(tested.names)] if sizes is None else sizes
    check_sizes(sizes, tested)
    work = _Isolating(tested, tuple(sizes), draws, folds, rule, seed, progress)
    return work.count(people.vectors, rows, targets, kinds_of(enroll, people.names), people.names, control)


def singling_out_of_scores(
    scores: NDArray[np.floating],
    enrolled: Sequence[str],
    tested: Conversations,
    sizes: Sequence[int],
    *,
    rule: Rule = "paper",
    draws: int = 5,
    folds: int = 10,
    predicates: int | None = None,
    seed: int = 0,
) -> IsolationCounts:
    """The same where only scores exist: `scores` has one row per enrolled speaker, one column per conversation.

    The measure works on dot products of predicates and conversations. A column of the matrix, taken as a vector, and
    the row numbers as unit vectors give exactly these scores. Enrolled people who are not test speakers are outsiders.
    With `predicates`, no more enrolled people, and no more outsiders, are looked at.
    """
    check_sizes(sizes, tested)
    rows, targets = aims(enrolled, tested, predicates, seed)
    if predicates is not None and len(enrolled) > 2 * predicates:
        inside = set(tested.names)
        outsiders = np.flatnonzero([name not in inside for name in enrolled])
        outsiders = np.random.default_rng([seed, 2]).permutation(outsiders)[:predicates]
        kept = np.union1d(rows, outsiders)
        scores, enrolled = scores[kept], [enrolled[row] for row in kept.tolist()]
        rows = np.searchsorted(kept, rows)
    columns = replace(tested, vectors=np.ascontiguousarray(scores.T, np.float32))
    eye = np.eye(len(enrolled), dtype=np.float32)
    work = _Isolating(columns, tuple(sizes), draws, folds, rule, seed)
    return work.count(eye, rows, targets, [""] * len(enrolled), enrolled, True)


@dataclass(frozen=True)
class _Isolating:
    """How Singling Out is measured, whatever the rules are."""

    tested: Conversations
    sizes: tuple[int, ...]
    draws: int
    folds: int
    rule: Rule
    seed: int
    progress: Callable[[int, int], None] | None = None

    def count(
        self,
        vectors: NDArray[np.float32],
        rows: NDArray[np.int64],
        targets: NDArray[np.int64],
        kinds: Sequence[str],
        names: Sequence[str],
        control: bool,
    ) -> IsolationCounts:
        """With the rules of these `rows` of the enrolled people, whose targets among the test speakers are given."""
        counts = self._isolate(vectors[rows], targets, control)
        chosen = None
        inside = set(self.tested.names)
        outsiders = np.flatnonzero([name not in inside for name in names])
        controlled = without_target(len(rows)) if control else None
        if control and len(outsiders):
            chosen = assign_outsiders(outsiders, rows, kinds, self.seed)
            controlled = without_target(
                len(rows), f"the {len(outsiders)} enrolled outsiders are too few, or of another gender"
            )
        if chosen is not None:
            (theirs,) = self._isolate(vectors[chosen], targets, False)
            controlled = choose_control(self._shares(counts[1]), self._shares(theirs), chosen)
            counts[1] = theirs if controlled.outsiders else counts[1]
        return IsolationCounts(
            sizes=self.sizes,
            names=tuple(self.tested.names[t] for t in targets),
            attack=counts[0],
            control=counts[1] if control else None,
            cuts=self.tested.counts[targets] - 1,
            others=self.tested.counts - 1,
            people=len(self.tested.names),
            draws=self.draws,
            folds=self.folds,
            rule=self.rule,
            length=self.tested.length,
            dropped=self.tested.dropped,
            controlled=controlled,
        )

    def _isolate(self, vectors: NDArray[np.float32], targets: NDArray[np.int64], absent: bool) -> list[Counts]:
        return isolate(
            vectors,
            targets,
            self.tested,
            self.sizes,
            draws=self.draws,
            folds=self.folds,
            rule=self.rule,
            seed=self.seed,
            absent=absent,
            progress=self.progress,
        )

    def _shares(self, counts: Counts) -> NDArray[np.float64]:
        """Of isolations, of each predicate over all sizes and draws."""
        return np.asarray(counts.isolated.mean(axis=(1, 2)) / self.folds)


def aims(
    enrolled: Sequence[str], tested: Conversations, predicates: int | None, seed: int, source: str = ""
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The enrolled people who are test speakers too: their rows, and their numbers among the test speakers."""
    code = {name: number for number, name in enumerate(tested.names)}
    rows = np.flatnonzero([name in code for name in enrolled])
    if len(rows) == 0:
        raise InputError(
            f"no enrolled speaker has {2 * tested.length} utterances in the test, which conversations of "
            f"{tested.length} need",
            path=source or None,
            fix="use the same speaker names in the enrollment and in the test",
        )
    if predicates is not None and predicates < len(rows):
        if predicates < 1:
            raise InputError(f"predicates must be at least 1 (got {predicates})")
        rows = np.sort(np.random.default_rng([seed, 1]).choice(rows, predicates, replace=False))
    targets = np.array([code[enrolled[row]] for row in rows.tolist()])
    return rows, targets


def check_sizes(sizes: Sequence[int], tested: Conversations) -> None:
    most = len(tested.names)
    for n in sizes:
        if not 2 <= n <= most:
            raise InputError(
                f"Singling Out among {n} speakers was asked for; {most} have the {2 * tested.length} utterances that "
                f"conversations of {tested.length} need",
                fix=f"give numbers from 2 to {most}",
            )
