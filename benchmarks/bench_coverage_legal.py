"""Do the intervals of the legal measures hold what they promise?

Simulated worlds whose truth is known: nominal 95 % intervals of Linkability and Singling Out must cover 92-98 % of the
time, though trials share speakers; beside them a Wilson interval that takes trials for independent. What is
extrapolated to a population is `bench_population`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORLDS = 400


def main() -> None:
    good = [linkability(), singling_out()]
    print("ok" if all(good) else "NOT REACHED")


def linkability() -> bool:
    from veilmeter.core.intervals import wilson
    from veilmeter.data.embeddings import unit
    from veilmeter.metrics.legal.linkability import LinkCounts, count_better

    print("Linkability: dimension, noise, test speakers, enrolled, conversations; N', truth, covered, Wilson on trials")
    rng = np.random.default_rng(1)
    fine = True
    for d, noise, tested, enrolled, each in [(8, 1.5, 30, 30, 5), (16, 1.0, 30, 60, 3), (16, 2.0, 100, 300, 5)]:
        sizes = sorted({5, enrolled // 2, enrolled})

        def world(people: int, tests: int, of: int, d: int = d, noise: float = noise) -> tuple[NDArray[np.int64], ...]:
            mu = rng.standard_normal((people, d))
            own = np.repeat(np.arange(tests), of)
            beats = np.zeros((len(own), people), bool)
            enroll = unit(mu + noise / np.sqrt(10) * rng.standard_normal(mu.shape))
            test = unit(mu[own] + noise * rng.standard_normal((len(own), d)))
            return count_better(test, own, enroll, beats=beats), own, beats

        big = 3000
        truths = np.mean(
            [LinkCounts(world(big, big, 1)[0], big - 1, np.arange(big), ("",) * big).curve for _ in range(6)], axis=0
        )
        inside = {n: np.zeros(2) for n in sizes}
        for _ in range(WORLDS):
            better, own, beats = world(enrolled, tested, each)
            link = LinkCounts(better, enrolled - 1, own, ("",) * tested, 1, own, beats)
            for n in sizes:
                for k, (low, high) in enumerate([link.interval(n), wilson(link.value(n) * len(own), len(own))]):
                    inside[n][k] += low <= truths[n - 1] <= high
        for n in sizes:
            ours, naive = inside[n] / WORLDS
            fine &= _within(ours)
            print(
                f"  {d:3} {noise:4} {tested:4} {enrolled:4} {each:2}   {n:4} {truths[n - 1]:.3f} {ours:.1%} {naive:.1%}"
            )
    return fine


def singling_out() -> bool:
    from veilmeter.core.intervals import cluster_error, cluster_interval, logit_t, wilson
    from veilmeter.data.embeddings import unit
    from veilmeter.metrics.legal.conversations import Conversations
    from veilmeter.metrics.legal.isolation import isolate

    print(
        "Singling Out: test speakers, predicates, dimension, noise; N, truth, covered, residual risk, Wilson on trials"
    )
    rng = np.random.default_rng(2)
    fine = True
    for people, predicates, d, noise in [(30, 30, 8, 1.5), (60, 20, 16, 1.5), (60, 60, 16, 1.0), (100, 50, 16, 0.7)]:
        sizes = sorted({5, people // 2, people})
        rates = np.empty((WORLDS, 2, predicates, len(sizes)))
        for world in range(WORLDS):
            mu = rng.standard_normal((people, d))
            vectors = unit(np.repeat(mu, 10, axis=0) + noise * rng.standard_normal((10 * people, d)))
            said = Conversations(
                vectors, np.repeat(np.arange(people), 10), tuple(map(str, range(people))), 1, np.empty((0, 1), np.int64)
            )
            known = unit(mu[:predicates] + noise / np.sqrt(10) * rng.standard_normal((predicates, d)))
            both = isolate(known, np.arange(predicates), said, sizes, seed=world, absent=True)
            rates[world] = [counts.isolated.mean(axis=2) / 10 for counts in both]
        truth = rates.mean(axis=(0, 2))  # the estimator has no bias: its mean over all worlds
        for j, n in enumerate(sizes):
            t, c = truth[:, j]
            risk, inside = (t - c) / (1 - c), np.zeros(3)
            for attack, control in rates[..., j]:
                value, left = attack.mean(), 1 - control.mean()
                low, high = logit_t(float(value), *cluster_error(attack, np.arange(predicates)))
                inside[0] += low <= t <= high
                found = (value - control.mean()) / left
                influence = (attack - (1 - found) * control) / left
                low, high = cluster_interval(influence - influence.mean() + found, np.arange(predicates))
                inside[1] += low <= risk <= high
                low, high = wilson(float(value) * predicates * 50, predicates * 50)
                inside[2] += low <= t <= high
            ours, residual, naive = inside / WORLDS
            fine &= _within(ours) and _within(residual)
            print(f"  {people:4} {predicates:3} {d:3} {noise:4}   {n:4} {t:.3f} {ours:.1%} {residual:.1%} {naive:.1%}")
    return fine


def _within(rate: float) -> bool:
    """92-98 %, give or take what this many worlds can't tell (two standard errors)."""
    slack = 2 * np.sqrt(0.95 * 0.05 / WORLDS)
    return bool(0.92 - slack <= rate <= 0.98 + slack)


if __name__ == "__main__":
    main()
