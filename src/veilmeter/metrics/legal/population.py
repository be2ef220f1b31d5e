"""Linkability in a population larger than was measured: a model, tested on the data it extrapolates from.

The number r_i of impostors that beat the right person among K is Binomial(K, theta_i), and theta varies over people as
a Beta distribution; in the zero-inflated variant a share of people is never beaten. Then, with B the Beta function,

    linkability(N') = E[(1 - theta)^(N'-1)] = z + (1 - z) B(a, b + N'-1) / B(a, b)

(equivalently Pitman-Yor uniqueness; cf. Rocher et al. 2025). What it gives far beyond the data depends on the model, so
the interval is the envelope of both variants' speaker bootstraps, widened by the error of a back-test: the model is
fitted to a gallery 20 times smaller than the measured one and has to predict what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, expit, gammaln, psi

from veilmeter.core.engine import Engine, ordered, stretches, worth
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import multiplicities, percentile
from veilmeter.metrics.legal.linkability import Linkability
from veilmeter.metrics.registry import estimate_of

FACTOR = 20  # how much smaller the gallery of the back-test is
FEWEST = 5  # impostors in the gallery of the back-test
THINNINGS = 8  # random galleries of the back-test
RESAMPLES = 100
WORTH_SENDING = 5_000_000  # conversations in all resamples: fewer are done here at once
_LOW, _HIGH = -9.0, 16.0  # of log a and log b
_MOST_INFLATION = 12.0  # of the logit of z


@dataclass(frozen=True, slots=True)
class BetaBinomial:
    """theta is Beta(a, b), and exactly zero for a share `never` of people."""

    a: float
    b: float
    never: float = 0.0

    def linkability(self, speakers: ArrayLike) -> NDArray[np.float64]:
        """Expected Linkability among this many people of an endless population.

        >>> float(BetaBinomial(1.0, 1.0).linkability(2))
        0.5
        """
        m = np.asarray(speakers, float) - 1
        beaten = np.exp(betaln(self.a, self.b + m) - betaln(self.a, self.b))
        return np.asarray(self.never + (1 - self.never) * beaten)

    def log_ranks(self, impostors: int) -> NDArray[np.float64]:
        """log P(r = 0), ..., log P(r = K)."""
        r = np.arange(impostors + 1)
        logs = _log_choose(impostors) + betaln(self.a + r, self.b + impostors - r) - betaln(self.a, self.b)
        logs += np.log1p(-self.never)
        logs[0] = np.logaddexp(logs[0], np.log(self.never)) if self.never > 0 else logs[0]
        return np.asarray(logs)


@dataclass(frozen=True, slots=True)
class BackTest:
    """The model fitted among `fitted` enrolled people had to predict Linkability among `speakers`."""

    fitted: int
    speakers: int
    predicted: float
    measured: float
    error: float  # of the worse variant, on the logit scale

    @property
    def factor(self) -> float:
        return self.speakers / self.fitted

    def __str__(self) -> str:
        return f"back-test {self.predicted:.3f} for {self.measured:.3f}, {self.fitted:,} to {self.speakers:,}"

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("fitted", "speakers", "predicted", "measured", "error")}


def fit(
    better: ArrayLike,
    impostors: int,
    weights: ArrayLike | None = None,
    *,
    inflated: bool = False,
    start: BetaBinomial | None = None,
) -> BetaBinomial:
    """Maximum likelihood of r_i, each with its weight.

    >>> r = np.random.default_rng(0).binomial(500, np.random.default_rng(1).beta(0.5, 20.0, 4000))
    >>> found = fit(r, 500)
    >>> round(found.a, 1), round(found.b)
    (0.5, 20)
    """
    from scipy.optimize import minimize

    ranks, where = np.unique(np.asarray(better, dtype=np.int64), return_inverse=True)
    mass = np.bincount(where, None if weights is None else np.asarray(weights, float)).astype(float)
    mass /= mass.sum()
    ranks, mass = ranks[mass > 0], mass[mass > 0]
    if start is None:
        mean = min(max(float(mass @ ranks) / impostors, 1e-6), 1 - 1e-6)
        start = BetaBinomial(0.5, max(0.5 * (1 - mean) / mean, 0.05), 0.1)
    zero = int(np.flatnonzero(ranks == 0)[0]) if ranks[0] == 0 else None
    if zero is None:
        inflated = False  # somebody beats everybody: no share of people is never beaten

    def cost(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        a, b = np.exp(x[:2])
        k = impostors
        logs = betaln(a + ranks, b + k - ranks) - betaln(a, b)
        both = psi(a + b) - psi(a + b + k)
        by_a, by_b = psi(a + ranks) - psi(a) + both, psi(b + k - ranks) - psi(b) + both
        if not inflated:
            return -float(mass @ logs), -np.array([a * (mass @ by_a), b * (mass @ by_b)])
        z = float(expit(x[2]))
        share = np.ones(len(ranks))  # of each rank's likelihood, the part that is not the inflation
        total = logs + np.log1p(-z)
        whole = float(np.logaddexp(np.log(z), total[zero]))
        share[zero], total[zero] = np.exp(total[zero] - whole), whole
        by_z = np.full(len(ranks), -z)
        by_z[zero] = (1 - share[zero]) * (1 - z) - share[zero] * z
        part = mass * share
        return -float(mass @ total), -np.array([a * (part @ by_a), b * (part @ by_b), mass @ by_z])

    x0 = [np.log(start.a), np.log(start.b)]
    bounds = [(_LOW, _HIGH)] * 2
    if inflated:
        x0.append(np.log(max(start.never, 1e-3) / (1 - min(start.never, 0.999))))
        bounds.append((-_MOST_INFLATION, _MOST_INFLATION))
    inside = [min(max(x, low), high) for x, (low, high) in zip(x0, bounds, strict=True)]
    best = minimize(cost, inside, jac=True, method="L-BFGS-B", bounds=bounds)
    a, b = np.exp(best.x[:2])
    return BetaBinomial(float(a), float(b), float(expit(best.x[2])) if inflated else 0.0)


def fit_both(better: ArrayLike, impostors: int, weights: ArrayLike | None = None) -> tuple[BetaBinomial, BetaBinomial]:
    """The plain and the zero-inflated model."""
    plain = fit(better, impostors, weights)
    return plain, fit(better, impostors, weights, inflated=True, start=replace(plain, never=0.05))


def back_test(link: Linkability, *, seed: int = 0) -> BackTest:
    """Fit among K/20 impostors, drawn at random from the measured ones, and predict what was measured among all."""
    fewer = _fewer(link)
    rng = np.random.default_rng([seed, 4])
    guesses = []
    for _ in range(THINNINGS):
        thinned = rng.hypergeometric(link.better, link.impostors - link.better, fewer)
        guesses.append([float(model.linkability(link.largest)) for model in fit_both(thinned, fewer, link.weights)])
    predicted = _logit(np.array(guesses)).mean(axis=0)
    measured = link.value(link.largest)
    return BackTest(
        fitted=fewer + 1,
        speakers=link.largest,
        predicted=float(expit(predicted.mean())),
        measured=measured,
        error=float(np.abs(predicted - _measured_logit(link, link.weights)).max()),
    )


def _fewer(link: Linkability) -> int:
    fewer = max(FEWEST, round(link.impostors / FACTOR))
    if fewer * 2 > link.impostors:
        raise InputError(
            f"only {link.largest} people are enrolled: nothing can be said about a larger population",
            fix=f"at least {2 * FEWEST + 1} are needed, some hundreds are better",
        )
    return fewer


def _measured_logit(link: Linkability, weights: NDArray[np.float64]) -> float:
    """Of Linkability among all; half a person away from 0 and 1, which have no logit."""
    half = 0.5 / int(np.count_nonzero(link.counts))
    return float(_logit(min(max(float(weights @ (link.better == 0)) / float(weights.sum()), half), 1 - half)))


def population_linkability(
    link: Linkability,
    populations: Sequence[int],
    *,
    intervals: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
    engine: Engine | None = None,
) -> list[Estimate]:
    """Linkability extrapolated to these numbers of people; model-dependent, and labelled so.

    The value lies halfway (in logits) between the plain and the zero-inflated model. Resamples of many people run on
    `engine`, if there is one.
    """
    tested = back_test(link, seed=seed)
    for population in populations:
        if population < link.largest:
            raise InputError(
                f"a population of {population:,} is smaller than the {link.largest:,} enrolled",
                fix="Linkability among so many is measured, not extrapolated",
            )
    sizes = np.asarray(populations, float)
    people = int(np.count_nonzero(link.counts))
    clear = not link.better.any()
    models = fit_both(link.better, link.impostors, link.weights)
    values = np.array([model.linkability(sizes) for model in models])
    low = high = middle = np.minimum(expit(_logit(values).mean(axis=0)), link.value(link.largest))
    if intervals and not clear:
        # The back-test goes up by a factor of 20 (or less); its error grows with the logarithm of the factor.
        reach = np.maximum(1.0, np.log(np.maximum(sizes / link.largest, 1.0)) / np.log(tested.factor))
        engine = worth(engine, resamples * len(link.better) >= WORTH_SENDING)
        work = [_Work(link, models, sizes, seed, part) for part in stretches(resamples, engine.workers)]
        found = ordered(engine, _bootstrap, work)
        guesses, errors = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
        widening = errors[:, :, None] * reach
        ends = np.array([[percentile(side[:, :, j]) for j in range(len(sizes))]
                         for side in (guesses - widening, guesses + widening)])  # fmt: skip
        low = np.minimum(expit(ends[0, :, 0]), middle)
        # more people never make it easier: what was measured among fewer is an upper bound
        high = np.maximum(np.minimum(expit(ends[1, :, 1]), link.interval(link.largest)[1]), middle)
    if clear:  # nobody was ever beaten: 3 of n K comparisons is the rule of three's bound
        middle = np.ones(len(sizes))
        low, high = np.maximum(0.0, 1 - 3 * (sizes - 1) / (people * link.impostors)), np.ones(len(sizes))
    return [
        estimate_of(
            "population_linkability",
            float(middle[j]),
            interval=(float(low[j]), float(high[j])) if intervals else None,
            null=1 / population,
            method=f"model-dependent; {tested}",
            n={"speakers": people, "impostors": link.impostors},
            at={"speakers": int(population), "length": link.length},
            extra={
                "model_dependent": True,
                "beta_binomial": float(values[0, j]),
                "zero_inflated": float(values[1, j]),
                "back_test": tested.to_json(),
            },
        )
        for j, population in enumerate(populations)
    ]


@dataclass(frozen=True, eq=False, slots=True)
class _Work:
    """Resamples to fit, by number."""

    link: Linkability
    models: tuple[BetaBinomial, BetaBinomial]
    sizes: NDArray[np.float64]
    seed: int
    numbers: range


def _bootstrap(work: _Work) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The engine's task: for resampled test speakers, logits of both models at `sizes` (models x resamples x sizes),
    and the absolute errors of their back-tests (models x resamples), which are as uncertain as all the rest."""
    link = work.link
    guesses = np.empty((2, len(work.numbers), len(work.sizes)))
    errors = np.empty((2, len(work.numbers)))
    fewer = _fewer(link)
    for i, number in enumerate(work.numbers):
        rng = np.random.default_rng([work.seed, 5, number])
        weights = link.weights * multiplicities(rng, len(link.names), 1)[0][link.speakers]
        thinned = rng.hypergeometric(link.better, link.impostors - link.better, fewer)
        measured = _measured_logit(link, weights)
        for j, model in enumerate(work.models):
            again = fit(link.better, link.impostors, weights, inflated=j == 1, start=model)
            guesses[j, i] = _logit(again.linkability(work.sizes))
            tried = fit(thinned, fewer, weights, inflated=j == 1, start=model)
            errors[j, i] = abs(float(_logit(tried.linkability(link.largest))) - measured)
    return guesses, errors


@lru_cache(maxsize=2)
def _log_choose(n: int) -> NDArray[np.float64]:
    """log C(n, 0), ..., log C(n, n)."""
    k = np.arange(n + 1)
    found = np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
    found.flags.writeable = False
    return found


def _logit(p: ArrayLike) -> NDArray[np.float64]:
    inside = np.clip(np.asarray(p, float), 1e-12, 1 - 1e-12)
    return np.asarray(np.log(inside) - np.log1p(-inside))
