"""Linkability in a population larger than was measured: a model of scores, tested on the data it extrapolates from.

Ranks only know how many of the few impostors at hand were better; scores know by how much. From each trial's scores the
mean of its impostor scores is subtracted (T-norm) and all are divided by the pooled standard deviation. F is the
distribution of all impostor scores so normalized, empirical up to its 95th percentile with a generalized Pareto tail of
shape <= 0 above; z_i is the normalized score of trial i with the right person. Then

    linkability(N') = mean_i F(z_i)^(theta (N'-1)).

With theta = 1 the scores of a trial would be independent of each other. They may not be: a clear recording scores high
with everybody who sounds like its speaker, the right person among them, an unclear one low. As in the theory of
extremes of dependent variables, n impostors then act like theta n independent ones, theta being the extremal index
(Leadbetter 1983). The people at hand show it: theta <= 1 is what makes the model agree with Linkability measured among
all of them.

What it gives far beyond the data depends on the model: people are resampled in both roles, as speakers and as
impostors, and where a fit on part of the people fails to predict what was measured among all, the interval is widened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimates
from veilmeter.core.intervals import multiplicities, percentile, wilson
from veilmeter.metrics.calibration import order_of
from veilmeter.metrics.legal.linkability import Linkability, LinkCounts, ScoreSample
from veilmeter.metrics.measure import Measure, percentage_of

Floats = NDArray[np.float64]
TAIL = 0.05  # the share of impostor scores that the generalized Pareto distribution describes
CANDIDATES = 0.2, 0.1  # the share among which the tail is looked for, whoever is drawn; of many scores less
STEEPEST = -0.5  # the least shape: a tail that ends more abruptly is not estimated well
POOLED = 100_000  # impostor scores of which the tail is estimated: a few thousand lie in it
PART = 4  # the back-test is fitted among a quarter of the people
FEWEST = 5  # impostors in the back-test
PARTS = 8  # random quarters
RESAMPLES = 100
COARSE = 6  # of the places at which a tail's likelihood is looked at, every so many are looked at first
LEAST_THETA = 0.02


MEASURE = Measure(
    name="population_linkability",
    label="Linkability in a population",
    unit="percent",
    better="lower",
    meaning="Linkability extrapolated by a model to a population larger than was measured.",
    source="cf. Rocher et al. 2025",
    section="linking",
    equation="mean over recordings of F(z)^(N′−1), F the distribution of impostor scores with a Pareto tail",
    low=0,
    high=100,
    bar=100,
    headline=False,
)


@dataclass(frozen=True, slots=True)
class BackTest:
    """The model fitted among `fitted` enrolled people had to predict Linkability among `speakers`.

    `error` is how far the mean prediction was off, and `spread` how far apart predictions from different people were,
    both on the logit scale.
    """

    fitted: int
    speakers: int
    predicted: float
    measured: float
    error: float
    spread: float

    @property
    def factor(self) -> float:
        return self.speakers / self.fitted

    @property
    def missed(self) -> float:
        """The part of the error that is not due to who was drawn."""
        return max(0.0, self.error - self.spread)

    def __str__(self) -> str:
        return (
            f"back-test {100 * self.predicted:.1f} % for {100 * self.measured:.1f} %, "
            f"{self.fitted:,} to {self.speakers:,}"
        )

    def to_json(self) -> dict[str, Any]:
        """Its fields, the shares in percent."""
        return asdict(self) | {"predicted": 100 * self.predicted, "measured": 100 * self.measured}


@dataclass(frozen=True, slots=True)
class ParetoTail:
    """P(excess > x) = (1 + shape x / scale)^(-1/shape), exp(-x / scale) where the shape is 0."""

    shape: float
    scale: float

    def beyond(self, excess: ArrayLike) -> Floats:
        x = np.asarray(excess, np.float64) / self.scale
        if self.shape == 0:
            return np.exp(-x)
        return np.asarray(np.maximum(1 + self.shape * x, 0) ** (-1 / self.shape))


def fit_tail(excesses: Floats, weights: Floats) -> ParetoTail:
    """Maximum likelihood with a shape from -0.5 to 0.

    With t = -shape / scale the best shape is mean log(1 - t x): a search over t is all there is (Grimshaw 1993).

    >>> tail = fit_tail(np.random.default_rng(0).uniform(0, 2, 4000) ** 2, np.ones(4000))
    >>> tail.shape < 0
    True
    """
    total, top = float(weights.sum()), float(excesses.max(initial=0.0))
    mean = float(weights @ excesses) / total if total else 0.0
    if not top > 0 or not mean > 0:
        return ParetoTail(0.0, max(mean, 1e-12))
    grid = np.geomspace(1e-3, 0.999, 60) / top

    def likeliest(t: Floats) -> tuple[float, int, ParetoTail]:
        shapes = np.log1p(-np.outer(t, excesses)) @ weights / total
        scales = -shapes / t
        likelihoods = np.where(shapes >= STEEPEST, -(np.log(scales) + shapes + 1), -np.inf)
        best = int(np.argmax(likelihoods))
        return float(likelihoods[best]), best, ParetoTail(float(shapes[best]), float(scales[best]))

    near = COARSE * likeliest(grid[::COARSE])[1]  # the likelihood has one summit: around the best of a few places
    likelihood, _, tail = likeliest(grid[max(0, near - COARSE + 1) : near + COARSE])
    return tail if likelihood > -(np.log(mean) + 1) else ParetoTail(0.0, mean)


class _Model:
    """The scores of a sample of trials, and what all fits to drawn people share."""

    def __init__(self, sample: ScoreSample) -> None:
        self.sample = sample
        self.there = ~np.isnan(sample.impostors)
        # Products with truth values would convert them every time; single precision counts people exactly.
        self.counted = self.there.astype(np.float32)
        self.scores = np.where(self.there, sample.impostors, 0).astype(np.float64)
        self.squares = self.scores**2
        self.right = sample.right.astype(np.float64)
        self.beats = (self.there & (sample.impostors >= sample.right[:, None])).astype(np.float32)
        n, k = self.scores.shape
        rows, share = np.arange(n), CANDIDATES[0]
        if n * k > POOLED:
            share = CANDIDATES[1]
            rows = np.sort(np.random.default_rng(0).choice(n, max(1, POOLED // k), replace=False))
        self.rows = rows
        mean, deviation, _ = self._normalization(np.ones((1, n)), np.ones((1, k)))
        z = (self.scores[rows] - mean[0, rows, None]) / deviation
        pooled = np.sort(z[self.there[rows]])
        self.shares = np.linspace(0, 1, 201)
        self.body = np.quantile(pooled, self.shares)
        where = np.argwhere(self.there[rows] & (z >= np.quantile(pooled, 1 - share)))
        self.at, self.columns = rows[where[:, 0]], where[:, 1]
        self.candidates = self.scores[self.at, self.columns]

    def _normalization(self, row: Floats, column: Floats) -> tuple[Floats, Floats, Floats]:
        """The mean impostor score of each trial (draws x trials), the pooled standard deviation of each draw, and how
        many impostors each trial has (draws x trials)."""
        weight = (column.astype(np.float32) @ self.counted.T).astype(np.float64)
        mean = column @ self.scores.T / np.maximum(weight, 1e-12)
        spread = column @ self.squares.T / np.maximum(weight, 1e-12) - mean**2
        shares = row * weight
        pooled = (shares * spread).sum(axis=1) / shares.sum(axis=1)
        return mean, np.sqrt(np.maximum(pooled, 1e-24)), weight

    def linkability(self, sizes: Floats, row: Floats, column: Floats) -> Floats:
        """Among so many people (draws x sizes), with these weights of the trials and of the impostors in each draw.

        All draws at once, so that what they need of the scores are products of matrices.
        """
        mean, deviation, weight = self._normalization(row, column)
        totals = (row * weight)[:, self.rows].sum(axis=1)
        present = (column > 0).astype(np.float32)
        impostors, first = present @ self.counted.T, present @ self.beats.T < 0.5
        curves = np.empty((len(row), len(sizes)))
        for draw, weights in enumerate(row):
            logs = self._log_unbeaten(weights, column[draw], mean[draw], float(deviation[draw]), float(totals[draw]))
            logs *= _extremal_index(logs, weights, impostors[draw], first[draw])
            curves[draw] = weights @ np.exp(np.outer(logs, sizes - 1)) / weights.sum()
        return curves

    def _log_unbeaten(self, row: Floats, column: Floats, mean: Floats, deviation: float, total: float) -> Floats:
        """Of each trial the log-probability that one impostor does not reach the score with the right person."""
        z = (self.candidates - mean[self.at]) / deviation
        weights = row[self.at] * column[self.columns]
        down = order_of(-z)
        z, weights = z[down], weights[down]
        above = np.cumsum(weights)
        cut = min(int(np.searchsorted(above, TAIL * total)), len(z) - 1)
        share = above[cut] / total
        tail = fit_tail(z[:cut] - z[cut], weights[:cut])
        right = (self.right - mean) / deviation
        beaten = 1 - np.interp(right, self.body, self.shares)
        near = right >= z[-1]
        beaten[near] = np.interp(-right[near], -z, above / total)
        far = right > z[cut]
        beaten[far] = share * tail.beyond(right[far] - z[cut])
        return np.asarray(np.log1p(-np.clip(beaten, 0, 1 - 1e-12)))

    def everybody(self, sizes: Floats) -> Floats:
        n, k = self.scores.shape
        return np.asarray(self.linkability(sizes, np.ones((1, n)), np.ones((1, k)))[0])

    def resample(self, sizes: Floats, own: NDArray[np.int64], resamples: int, seed: int) -> Floats:
        """For drawn people in both roles (resamples x sizes); a draw that leaves too few is repeated."""
        people, where = np.unique(np.concatenate([own, self.sample.people]), return_inverse=True)
        rng = np.random.default_rng([seed, 5])
        kept: list[Floats] = []
        while len(kept) < resamples:
            drawn = multiplicities(rng, len(people), 1)[0].astype(np.float64)[where]
            if drawn[: len(own)].sum() > 0 and np.count_nonzero(drawn[len(own) :]) > 2:
                kept.append(drawn)
        row, column = np.split(np.stack(kept), [len(own)], axis=1)
        return self.linkability(sizes, row, column)


def _extremal_index(logs: Floats, row: Floats, impostors: Floats, first: NDArray[np.bool_]) -> float:
    """The theta with which the model says what was measured among the drawn people, each of them there once."""
    share = row / row.sum()
    half = 0.5 / np.count_nonzero(row)  # of a trial: what was never seen may still happen
    measured = float(np.clip(share @ first, half, 1 - half))
    alone = logs * impostors
    theta = LEAST_THETA
    # The unbeaten share falls with theta, ever more slowly: Newton's steps from below never go too far.
    while theta < 1:
        unbeaten = share * np.exp(theta * alone)
        above, slope = float(unbeaten.sum()) - measured, float(unbeaten @ alone)
        if above <= 1e-9 * measured:
            break
        theta = min(1.0, theta - above / slope) if slope < 0 else 1.0
    return theta


def back_test(link: LinkCounts, *, seed: int = 0) -> BackTest:
    """Fit among a quarter of the enrolled people, drawn at random, and predict what was measured among all."""
    return _back_test(link, _Model(_sample(link)), seed)


def _back_test(link: LinkCounts, model: _Model, seed: int) -> BackTest:
    n, k = model.scores.shape
    fitted = max(FEWEST + 1, k // PART)
    rng = np.random.default_rng([seed, 4])
    column = np.zeros((PARTS, k))
    for part in column:
        part[rng.choice(k, fitted, replace=False)] = 1
    guesses = model.linkability(np.array([float(link.largest)]), np.ones((PARTS, n)), column)[:, 0]
    half = 0.5 / int(np.count_nonzero(link.counts))  # a person away from 0 and 1, which have no logit
    logits = _logit(np.clip(guesses, half, 1 - half))
    measured = link.value(link.largest)
    error = abs(float(logits.mean() - _logit(min(max(measured, half), 1 - half))))
    return BackTest(fitted, link.largest, float(_expit(logits.mean())), measured, error, float(logits.std(ddof=1)))


def _sample(link: LinkCounts) -> ScoreSample:
    if link.sample is None or link.own is None:
        raise InputError("Linkability was counted without keeping scores: there is nothing to extrapolate from")
    if link.impostors < 2 * FEWEST:
        raise InputError(
            f"only {link.largest} people are enrolled: a larger population can't be modeled",
            fix=f"at least {2 * FEWEST + 1} are needed, some hundreds are better",
        )
    return link.sample


def population_linkability(
    link: Linkability | LinkCounts,
    populations: Sequence[int],
    *,
    intervals: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimates:
    """Extrapolate Linkability to a larger population; the values depend on a model, and say so.

    Parameters
    ----------
    link : Linkability
        What `linkability` measured; every length in it is extrapolated.
    populations : sequence of int
        Numbers of people, at least as many as are enrolled.
    intervals : bool
        Whether to compute 95 % intervals, widened by what a back-test missed.
    resamples : int
        Bootstrap resamples of the speakers.
    seed : int
        Random seed.

    Returns
    -------
    Estimates
        One point per length and population.

    Raises
    ------
    InputError
        If a population is smaller than the people enrolled, or too few are enrolled.

    Examples
    --------
    >>> from veilmeter.metrics.legal.linkability import linkability
    >>> voices = np.random.default_rng(0).normal(size=(60, 8))
    >>> names = [f"s{row}" for row in range(60)]
    >>> linked = linkability((voices, names), (voices + 0.5, names))
    >>> population_linkability(linked, [1000], resamples=50).filter(speakers=1000)
    Estimates(1: population_linkability)
    """
    if isinstance(link, Linkability):
        return Estimates(
            point
            for counts in link.counts.values()
            for point in population_linkability(
                counts, populations, intervals=intervals, resamples=resamples, seed=seed
            )
        )
    sample = _sample(link)
    for population in populations:
        if population < link.largest:
            raise InputError(
                f"a population of {population:,} is smaller than the {link.largest:,} enrolled",
                fix="Linkability among so many is measured, not extrapolated",
            )
    model = _Model(sample)
    tested = _back_test(link, model, seed)
    sizes = np.asarray(populations, np.float64)
    people = int(np.count_nonzero(link.counts))
    values = np.minimum(model.everybody(sizes), link.value(link.largest))  # more people never make it easier
    ends: list[tuple[float, float] | None] = [None] * len(sizes)
    if intervals:
        assert link.own is not None
        drawn = _logit(model.resample(sizes, link.own[sample.rows], resamples, seed))
        # The back-test goes up by some factor; what it missed grows with the logarithm of the factor.
        reach = np.maximum(1.0, np.log(sizes / link.largest) / np.log(tested.factor))
        highest = link.interval(link.largest)[1]
        ends = [
            _interval(float(values[j]), drawn[:, j], tested.missed * float(reach[j]), people, highest)
            for j in range(len(sizes))
        ]
    return Estimates(
        percentage_of(
            "population_linkability",
            float(values[j]),
            interval=ends[j],
            null=1 / population,
            method=f"model-dependent; {tested}",
            n={"speakers": people, "impostors": link.impostors},
            at={"speakers": int(population), "length": link.length},
            extra={"model_dependent": True, "back_test": tested.to_json(), "unseen_share": 100 * unseen_share(people)},
        )
        for j, population in enumerate(populations)
    )


def unseen_share(people: int) -> float:
    """A kind of people, such as the unprotected, that makes up a smaller share of the population than this is missing
    among so many with a probability of 5 % or more: no estimate from them can show it.

    >>> round(unseen_share(50), 3)
    0.058
    """
    return float(1 - 0.05 ** (1 / people))


def _interval(value: float, drawn: Floats, missed: float, people: int, highest: float) -> tuple[float, float]:
    """The interval of resamples, widened by what the back-test missed, and upwards by what so few people can't show:
    unprotected people are perhaps not among them."""
    low, high = percentile(drawn)
    few = wilson(value * people, people)[1]
    low, high = float(_expit(low - missed)), max(float(_expit(high + missed)), few)
    return (min(low, value), max(min(high, highest), value))


def _logit(p: ArrayLike) -> Floats:
    inside = np.clip(np.asarray(p, np.float64), 1e-12, 1 - 1e-12)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _expit(x: ArrayLike) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.asarray(x, np.float64))))
