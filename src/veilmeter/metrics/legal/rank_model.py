"""How the rank of the right person among K impostors is distributed: the Beta-binomial model.

The number r_i of impostors that beat the right person is Binomial(K, theta_i), and theta varies over people as a Beta
distribution; in the zero-inflated variant a share of people is never beaten. Then, with B the Beta function,

    linkability(N') = E[(1 - theta)^(N'-1)] = z + (1 - z) B(a, b + N'-1) / B(a, b)

(equivalently Pitman-Yor uniqueness; cf. Rocher et al. 2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

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
