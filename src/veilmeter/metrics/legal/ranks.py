"""Disclosure by the rank of the right person among N (Bäckström et al. 2025, Chandra et al. 2026).

The rank is r_i + 1, from the same pass over the scores as Linkability. A rank discloses log2 N - H(rank) bits on
average and max_k log2(N P(rank = k)) at worst, with P the histogram of the ranks or the Beta-binomial model that also
extrapolates Linkability: histograms of few recordings over many ranks look more telling than they are.

In that model the number r_i of impostors that beat the right person is Binomial(K, theta_i), and theta varies over
people as a Beta distribution; in the zero-inflated variant a share z of people is never beaten. With B the Beta
function,

    linkability(N') = E[(1 - theta)^(N'-1)] = z + (1 - z) B(a, b + N'-1) / B(a, b)

(equivalently Pitman-Yor uniqueness; cf. Rocher et al. 2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.engine import Engine, engine_for, map_ordered, stretches
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import cluster_error, logit_t, multiplicities, percentile
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import conversations, models, row_dots
from veilmeter.metrics.legal.linkability import ENROLL_BLOCK, LinkCounts
from veilmeter.metrics.measure import Measure, estimate_of, percentage_of

_LOW, _HIGH = -9.0, 16.0  # of log a and log b
_MOST_INFLATION = 12.0  # of the logit of z
MOST_STEPS = 12  # of Newton's, each of which leaves about a tenth of the error


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
        beaten = np.exp(scipy.special.betaln(self.a, self.b + m) - scipy.special.betaln(self.a, self.b))
        return np.asarray(self.never + (1 - self.never) * beaten)

    def log_ranks(self, impostors: int) -> NDArray[np.float64]:
        """log P(r = 0), ..., log P(r = K)."""
        r = np.arange(impostors + 1)
        logs = (
            _log_choose(impostors)
            + scipy.special.betaln(self.a + r, self.b + impostors - r)
            - scipy.special.betaln(self.a, self.b)
        )
        logs += np.log1p(-self.never)
        logs[0] = np.logaddexp(logs[0], np.log(self.never)) if self.never > 0 else logs[0]
        return np.asarray(logs)


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
        logs = scipy.special.betaln(a + ranks, b + k - ranks) - scipy.special.betaln(a, b)
        both = scipy.special.psi(a + b) - scipy.special.psi(a + b + k)
        by_a, by_b = (
            scipy.special.psi(a + ranks) - scipy.special.psi(a) + both,
            scipy.special.psi(b + k - ranks) - scipy.special.psi(b) + both,
        )
        if not inflated:
            return -float(mass @ logs), -np.array([a * (mass @ by_a), b * (mass @ by_b)])
        z = float(scipy.special.expit(x[2]))
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
    return BetaBinomial(float(a), float(b), float(scipy.special.expit(best.x[2])) if inflated else 0.0)


def refit(
    ranks: NDArray[np.int64],
    observed: NDArray[np.float64],
    masses: NDArray[np.float64],
    impostors: int,
    near: BetaBinomial,
) -> list[BetaBinomial]:
    """As `fit`, of many resamples of data to which `near` was fitted: how often each of the distinct `ranks` was
    `observed`, and in a row of `masses` how often it was drawn.

    Newton's steps with the curvature at `near`, all resamples together: so close to it a few of them do. What they do
    not settle is fitted by itself.
    """
    k, center = impostors, np.log([near.a, near.b])
    shares = masses / masses.sum(axis=1, keepdims=True)

    def slopes(x: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = np.exp(x).T[:, :, None]
        both = scipy.special.psi(a + b) - scipy.special.psi(a + b + k)
        return np.concatenate(
            [
                np.einsum("ij,ij->i", shares, slope)[:, None] * scale
                for scale, slope in (
                    (a, scipy.special.psi(a + ranks) - scipy.special.psi(a) + both),
                    (b, scipy.special.psi(b + k - ranks) - scipy.special.psi(b) + both),
                )
            ],
            axis=1,
        )

    everybody = np.tile(observed / observed.sum(), (4, 1))
    step = 1e-4 * np.eye(2)
    ahead, behind = np.split(slopes(center + np.concatenate([step, -step]), everybody), 2)
    curvature = (ahead - behind) / 2e-4
    x = np.tile(center, (len(masses), 1))
    settled = np.zeros(len(masses), bool)
    if np.linalg.eigvalsh((curvature + curvature.T) / 2).max() < -1e-9:  # a summit, and not a flat one
        inverse = np.linalg.inv(curvature)
        for _ in range(MOST_STEPS):
            moving = np.flatnonzero(~settled)
            slope = slopes(x[moving], shares[moving])
            change = slope[:, :1] * inverse[:, 0] + slope[:, 1:] * inverse[:, 1]  # of each by itself, to the last bit
            x[moving] -= np.clip(change, -1, 1)
            settled[moving] = np.abs(change).max(axis=1) < 1e-5
            if settled.all():
                break
        settled &= ((x > _LOW) & (x < _HIGH)).all(axis=1)
    return [
        BetaBinomial(*np.exp(point).tolist()) if done else fit(ranks, impostors, mass, start=near)
        for point, done, mass in zip(x, settled, masses, strict=True)
    ]


@lru_cache(maxsize=2)
def _log_choose(n: int) -> NDArray[np.float64]:
    """log C(n, 0), ..., log C(n, n)."""
    k = np.arange(n + 1)
    logarithms = np.asarray(
        scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1)
    )
    logarithms.flags.writeable = False
    return logarithms


TOP = (1, 5, 10, 20, 50, 100)
LOW_FPRS = (0.01, 0.001, 0.0001)
RESAMPLES, OF_MANY = 200, 100  # of people; fewer where there are so many that an end is known well enough
MANY = 2000  # conversations
WORTH_SENDING = 100_000  # enrolled people; with fewer all resamples take a few seconds
HISTOGRAM, MODEL = "histogram", "beta-binomial"


MEASURES = (
    Measure(
        name="rank_disclosure",
        label="rank disclosure",
        unit="bit",
        better="lower",
        meaning="Information that the rank of the true speaker among N discloses, on average.",
        source="Bäckström et al. 2025",
        section="linking",
        equation="log₂ N − H(rank)",
        low=0,
        headline=False,
    ),
    Measure(
        name="rank_disclosure_worst",
        label="worst rank disclosure",
        unit="bit",
        better="lower",
        meaning="Information that the most revealing rank discloses.",
        source="Bäckström et al. 2025",
        section="linking",
        equation="maxₖ log₂ (N Pr{rank = k})",
        low=0,
        headline=False,
    ),
    Measure(
        name="cmc",
        label="top-k identification",
        unit="percent",
        better="lower",
        meaning="The chance that the right person is among the k best matches.",
        source="ISO/IEC 19795-1",
        section="linking",
        equation="Pr{rank ≤ k}",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
    Measure(
        name="identity_tpr@fpr",
        label="TPR, own threshold each",
        unit="percent",
        better="lower",
        meaning="The share of a person's recordings recognized with a personal threshold that almost nobody else "
        "passes.",
        source="VoxGuard 2025",
        section="verification",
        low=0,
        high=100,
        bar=100,
        family_label="TPR, own threshold each, at FPR",
        headline=False,
    ),
)


def rank_estimates(
    link: LinkCounts,
    *,
    top: Sequence[int] = TOP,
    intervals: bool = True,
    seed: int = 0,
    engine: Engine | None = None,
) -> dict[str, list[Estimate]]:
    """Cumulative match curve and rank disclosure among everybody enrolled."""
    curve = match_curve(link, top, intervals=intervals)
    return {"cmc": curve} | disclosure(link, intervals=intervals, seed=seed, engine=engine)


def match_curve(
    link: LinkCounts, top: Sequence[int] = TOP, *, speakers: int | None = None, intervals: bool = True
) -> list[Estimate]:
    """The chance that the right person is among the k best of `speakers` enrolled people, exact over all choices."""
    n = link.largest if speakers is None else speakers
    curve = []
    for k in sorted({k for k in top if 1 <= k < n}):
        each = _among(link, k, n)
        value = float(each.mean())
        ends = None
        if intervals:  # the best one alone is Linkability, the same figure with the same interval
            ends = link.interval(n) if k == 1 else logit_t(value, *cluster_error(each, link.speakers))
        curve.append(
            percentage_of(
                "cmc", value, interval=ends,
                null=k / n, method="exact", n=_counts(link), at={"k": k, "speakers": n, "length": link.length},
            )
        )  # fmt: skip
    return curve


def _among(link: LinkCounts, k: int, speakers: int) -> NDArray[np.float64]:
    """P(fewer than k of the r_i better impostors are among the speakers - 1 drawn)."""
    if speakers == link.largest:
        return (link.better < k).astype(float)
    from scipy.stats import hypergeom

    ranks, where = np.unique(link.better, return_inverse=True)
    return np.asarray(hypergeom.cdf(k - 1, link.impostors, ranks, speakers - 1)[where])


def disclosure(
    link: LinkCounts, *, intervals: bool = True, seed: int = 0, engine: Engine | None = None
) -> dict[str, list[Estimate]]:
    """Mean and worst disclosure, each by the model and by the histogram; chance from ranks without information.

    Where many are enrolled, resamples run on `engine`, if there is one.
    """
    n = link.largest
    rng = np.random.default_rng([seed, 6])
    model = fit(link.better, link.impostors, link.weights)
    values = _values(link, link.weights, model)
    replicates: dict[str, NDArray[np.float64]] = {}
    rounds = RESAMPLES if len(link.better) < MANY else OF_MANY
    if intervals:
        engine = engine_for(engine, n >= WORTH_SENDING)
        work = [_RankWork(link, model, seed, part) for part in stretches(rounds, engine.workers)]
        parts = map_ordered(engine, _resample, work)
        replicates = {name: np.concatenate([part[name] for part in parts]) for name in values}
    # What it gives when every rank is as likely as any other, at the same counts
    uniform = np.array([_of_histogram(rng.integers(n, size=len(link.better)), link.weights, n) for _ in range(rounds)])
    null = {MODEL: np.zeros(2), HISTOGRAM: uniform.mean(axis=0)}
    curves: dict[str, list[Estimate]] = {"rank_disclosure": [], "rank_disclosure_worst": []}
    for name, both in values.items():
        for which, key in enumerate(curves):
            interval = None
            if intervals:
                # resampling adds to a histogram's bias as much as sampling did: take it off
                spread = replicates[name][:, which]
                bias = float(spread.mean()) - both[which] if name == HISTOGRAM else 0.0
                low, high = percentile(spread - bias)
                interval = (max(0.0, min(low, both[which])), max(high, both[which]))
            curves[key].append(
                _estimate(
                    key,
                    link,
                    both[which],
                    interval,
                    null=float(null[name][which]),
                    null_range=tuple(np.quantile(uniform[:, which], [0.05, 0.95]).tolist())
                    if name == HISTOGRAM
                    else None,
                    method="Beta-binomial" if name == MODEL else "histogram",
                    at={"speakers": n, "model": name},
                )
            )
    return curves


@dataclass(frozen=True, eq=False, slots=True)
class _RankWork:
    """Resamples of the test speakers, by number."""

    link: LinkCounts
    model: BetaBinomial  # of all, near which those of resamples are looked for
    seed: int
    numbers: range


def _resample(work: _RankWork) -> dict[str, NDArray[np.float64]]:
    """The engine's task: mean and worst disclosure of each resample."""
    link = work.link
    ranks, where = np.unique(link.better, return_inverse=True)
    weights = []
    for number in work.numbers:
        times = multiplicities(np.random.default_rng([work.seed, 6, number]), len(link.names), 1)[0]
        weights.append(link.weights * times[link.speakers])
    masses = np.array([np.bincount(where, drawn, len(ranks)) for drawn in (link.weights, *weights)], np.float64)
    models = refit(ranks, masses[0], masses[1:], link.impostors, work.model)
    draws = [_values(link, drawn, model) for drawn, model in zip(weights, models, strict=True)]
    return {name: np.array([disclosed[name] for disclosed in draws]) for name in draws[0]}


def _values(link: LinkCounts, weights: NDArray[np.float64], model: BetaBinomial) -> dict[str, tuple[float, float]]:
    return {MODEL: _of_model(link, model), HISTOGRAM: _of_histogram(link.better, weights, link.largest)}


def _of_histogram(better: NDArray[np.int64], weights: NDArray[np.float64], n: int) -> tuple[float, float]:
    p = np.bincount(better, weights, n)
    p = p[p > 0] / weights.sum()
    return max(0.0, float(np.log2(n) + p @ np.log2(p))), float(np.log2(n * p.max()))


def _of_model(link: LinkCounts, model: BetaBinomial) -> tuple[float, float]:
    logs = model.log_ranks(link.impostors)
    p = np.exp(logs)
    bits = np.log2(link.largest)
    return max(0.0, float(bits + p @ logs / np.log(2))), float(bits + logs.max() / np.log(2))


def speaker_disclosure(link: LinkCounts) -> NDArray[np.float64]:
    """The disclosure by the ranks of each test speaker, in the order of `names`: the mean of log2(N P(rank)) over their
    conversations, with P by the model. Below zero for people whom the attacker places behind others.

    >>> clear = LinkCounts(np.zeros(8, np.int64), 3, np.repeat([0, 1], 4), ("a", "b"))
    >>> np.round(speaker_disclosure(clear), 2).tolist()
    [2.0, 2.0]
    """
    logs = fit(link.better, link.impostors, link.weights).log_ranks(link.impostors)
    bits = np.log2(link.largest) + logs[link.better] / np.log(2)
    return np.asarray(np.bincount(link.speakers, bits, len(link.names)) / np.maximum(link.counts, 1))


@dataclass(frozen=True, eq=False)
class IdentityTpr:
    """How many of other people's recordings score at least as high against a person's model as each of that person's.

    `false` are those counts, one a test conversation, of `others` recordings of other people; `speakers` index `names`.
    """

    false: NDArray[np.int64]
    others: NDArray[np.int64]
    speakers: NDArray[np.int64]
    names: tuple[str, ...]
    length: int

    def per_speaker(self, fpr: float) -> NDArray[np.float64]:
        """Of each person: the share of their conversations above the threshold that at most `fpr` of others pass."""
        hit = self.false <= np.floor(fpr * self.others + 1e-9)
        return np.asarray(
            np.bincount(self.speakers, hit, len(self.names)) / np.bincount(self.speakers, minlength=len(self.names))
        )

    def estimate(self, fpr: float, *, intervals: bool = True) -> Estimate:
        each = self.per_speaker(fpr)
        value = float(each.mean())
        return percentage_of(
            f"identity_tpr@fpr={fpr:g}",
            value,
            interval=logit_t(value, *cluster_error(each, np.arange(len(each)))) if intervals else None,
            null=fpr,
            method="threshold of each person",
            n={"speakers": len(each), "conversations": len(self.false), "impostors": int(self.others.min())},
            at={"fpr": fpr, "length": self.length},
        )

    def estimates(self, fprs: Sequence[float] = LOW_FPRS, *, intervals: bool = True) -> list[Estimate]:
        """Where there are enough recordings of others for such a low rate to mean anything."""
        return [self.estimate(f, intervals=intervals) for f in fprs if f * self.others.min() >= 1]


def identity_tpr(
    enroll: Embeddings, test: Embeddings, *, length: int = 1, most: int | None = None, seed: int = 0
) -> IdentityTpr:
    """Verification against each enrolled person's model, with a personal threshold (VoxGuard 2025)."""
    people = models(enroll)
    tested = conversations(test, length, most=most, seed=seed)
    code = {name: number for number, name in enumerate(people.names)}
    rows = [(number, code[name]) for number, name in enumerate(tested.names) if name in code]
    if not rows:
        raise InputError("no test speaker is enrolled", path=test.source or None)
    starts = np.concatenate([[0], np.cumsum(tested.counts)])
    false: list[NDArray[np.int64]] = []
    block = max(1, (1 << 24) // len(tested))
    for first in range(0, len(rows), block):
        part = rows[first : first + block]
        own = [np.arange(starts[s], starts[s + 1]) for s, _ in part]
        model = people.vectors[[row for _, row in part]]
        right = [row_dots(tested.vectors[columns], model[i]) for i, columns in enumerate(own)]
        counts = [np.zeros(len(columns), np.int64) for columns in own]
        for begin in range(0, len(tested), ENROLL_BLOCK):
            scores = model @ tested.vectors[begin : begin + ENROLL_BLOCK].T
            for i, columns in enumerate(own):
                inside = columns[(columns >= begin) & (columns < begin + scores.shape[1])] - begin
                scores[i, inside] = -np.inf  # a person's own recordings can't be false alarms
                counts[i] += [_as_good(scores[i], score, tested.vectors[begin:], model[i]) for score in right[i]]
        false += counts
    kept = [s for s, _ in rows]
    counts_of = tested.counts[kept]
    speakers = np.repeat(np.arange(len(kept)), counts_of)
    return IdentityTpr(
        np.concatenate(false),
        (len(tested) - counts_of)[speakers],
        speakers,
        tuple(tested.names[s] for s in kept),
        length,
    )


def _as_good(
    scores: NDArray[np.float32], right: np.float64, vectors: NDArray[np.float32], model: NDArray[np.float32]
) -> int:
    """How many scores are at least `right`; what float32 can't tell from it is compared again in float64."""
    slack = 4 * np.sqrt(len(model)) * np.finfo(np.float32).eps
    near = np.flatnonzero(scores >= np.float32(right - slack))
    sure = scores[near] >= np.float32(right + slack)
    close = near[~sure]
    return int(np.count_nonzero(sure)) + int(np.count_nonzero(row_dots(vectors[close], model) >= right))


def _estimate(
    name: str,
    link: LinkCounts,
    value: float,
    interval: tuple[float, float] | None,
    *,
    null: float,
    method: str,
    at: dict[str, int | str],
    null_range: tuple[float, ...] | None = None,
) -> Estimate:
    return estimate_of(
        name,
        value,
        interval=interval,
        null=null,
        null_range=None if null_range is None else (null_range[0], null_range[1]),
        method=method,
        n=_counts(link),
        at={**at, "length": link.length},
    )


def _counts(link: LinkCounts) -> dict[str, int]:
    return {"speakers": int(np.count_nonzero(link.counts)), "conversations": len(link.better)}
