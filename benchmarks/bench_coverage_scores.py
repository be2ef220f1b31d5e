"""Do the intervals of score measures cover? Correlated trials with a known truth, measured again and again.

Every person has an effect as enrolled and one as tested, every utterance one more: the variance of trials is made of
16 % + 16 % + 9 % shared parts. Target and impostor scores are normal with equal variances, so the truth is exact.
And how often do scores without information lie beyond the null range, where pairs of speakers have a likeness of their
own? One in twenty is right; labels shuffled trial by trial are beside it.
"""

from __future__ import annotations

import time
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.scores import Scores
from veilmeter.metrics.scores import zebra
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.summary import null_levels, replicates_of, score_functions, shape_of, values

MEASURES = ("eer", "d_ece", "min_cllr", "min_dcf@p=0.05", "tpr@fpr=0.01", "tpr@fpr=0.001")


def truth(distance: float) -> dict[str, float]:
    """Of an unlimited number of people: the log-likelihood ratio of equal-variance normals is linear."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    t, n = distance * nodes + distance**2 / 2, distance * nodes - distance**2 / 2
    d_ece = float(weights @ (zebra.z(t) + zebra.z(-n)) / (2 * np.log(2)))
    cllr = float(weights @ (np.logaddexp(0, -t) + np.logaddexp(0, n)) / (2 * np.log(2)))
    normal, prior = NormalDist(), 0.05
    threshold = distance / 2 + np.log((1 - prior) / prior) / distance
    min_dcf = normal.cdf(threshold - distance) + (1 - prior) / prior * normal.cdf(-threshold)
    tpr = {f"tpr@fpr={rate}": 100 * normal.cdf(normal.inv_cdf(rate) + distance) for rate in (0.01, 0.001)}
    eer = 100 * normal.cdf(-distance / 2)
    return {"eer": eer, "d_ece": d_ece, "min_cllr": cllr, "min_dcf@p=0.05": min_dcf, **tpr}


def trials(rng: np.random.Generator, people: int, utterances: int, distance: float, outsiders: int = 4) -> Scores:
    """Every enrolled person against every test utterance; outsiders are tested but not enrolled."""
    tested = people + outsiders
    enroll_effect, test_effect = rng.normal(0, 0.4, people), rng.normal(0, 0.4, tested)
    utterance_effect = rng.normal(0, 0.3, (tested, utterances))
    noise = rng.normal(0, np.sqrt(1 - 0.16 - 0.16 - 0.09), (people, tested, utterances))
    x = enroll_effect[:, None, None] + test_effect[None, :, None] + utterance_effect[None] + noise
    enroll, test = (np.broadcast_to(i[..., None], x.shape).ravel() for i in np.indices((people, tested)))
    return Scores(x.ravel() + distance * (enroll == test), enroll == test, enroll, test)


def coverage(
    *, people: int, utterances: int, distance: float, samples: int, resamples: int = 300, seed: int = 0
) -> dict[str, float]:
    """The share of samples whose interval covers the true value."""
    right = truth(distance)
    rng = np.random.default_rng([seed, people, utterances])
    hits = dict.fromkeys(MEASURES, 0)
    for number in range(samples):
        scores = trials(rng, people, utterances, distance)
        data = SortedScores.from_arrays(scores.targets, scores.impostors)
        found = values(data)
        spread = replicates_of(scores, data, resamples, number)
        for name in MEASURES:
            low, high = spread.interval(name, found[name], shape_of(name)) or (np.nan, np.nan)
            hits[name] += low <= right[name] <= high
    return {name: count / samples for name, count in hits.items()}


def coverage_of_few(*, people: int, utterances: int, exposed: float, samples: int, seed: int = 0) -> dict[str, float]:
    """The same of TPR where a share of people is recognized in every recording and everybody else by chance."""
    rng, normal = np.random.default_rng([seed, people]), NormalDist()
    hits = dict.fromkeys(("tpr@fpr=0.01", "tpr@fpr=0.001"), 0)
    for number in range(samples):
        plain = trials(rng, people, utterances, 0.0)
        distance = np.where(rng.random(people) < exposed, 6.0, 0.0)
        assert plain.enroll_speaker is not None
        moved = plain.values + plain.is_target * distance[plain.enroll_speaker]
        scores = Scores(moved, plain.is_target, plain.enroll_speaker, plain.test_speaker)
        data = SortedScores.from_arrays(scores.targets, scores.impostors)
        spread, found = replicates_of(scores, data, 200, number), values(data)
        for name in hits:
            rate = float(name.partition("=")[2])
            right = 100 * ((1 - exposed) * rate + exposed * normal.cdf(normal.inv_cdf(rate) + 6))
            low, high = spread.interval(name, found[name], shape_of(name)) or (np.nan, np.nan)
            hits[name] += low <= right <= high
    return {name: count / samples for name, count in hits.items()}


KINDS = ("heavy", "skewed", "goats", "unequal")  # worlds that no rule was chosen on
OTHER = ("eer", "d_ece", "min_cllr", "tpr@fpr=0.01", "tpr@fpr=0.001")
Floats = NDArray[np.float64]


def _effects(rng: np.random.Generator, kind: str, count: int, scale: float) -> Floats:
    """Of people and utterances: with heavy tails (Student's t, 4), skewed (exponential), or normal; one variance."""
    if kind == "heavy":
        return scale * rng.standard_t(4, count) / np.sqrt(2)
    if kind == "skewed":
        return scale * (rng.exponential(1, count) - 1)
    return scale * rng.normal(size=count)


def _distances(rng: np.random.Generator, kind: str, count: int, distance: float) -> Floats:
    """Of target scores from the others, per person: every fifth goat is 2 nearer."""
    return np.where(rng.random(count) < 0.2, distance - 2, distance) if kind == "goats" else np.full(count, distance)


def other_trials(rng: np.random.Generator, kind: str, people: int, utterances: int, distance: float) -> Scores:
    """As `trials`, in a world of this kind; with unequal numbers of utterances in the last."""
    tested = people + 4
    counts = np.full(tested, utterances)
    if kind == "unequal":
        counts = rng.integers(max(2, utterances // 3), 2 * utterances, tested)
    enrolled, spoken = (_effects(rng, kind, count, 0.4) for count in (people, tested))
    speaker = np.repeat(np.arange(tested), counts)
    said = spoken[speaker] + _effects(rng, kind, len(speaker), 0.3)
    x = enrolled[:, None] + said[None] + np.sqrt(0.59) * rng.normal(size=(people, len(speaker)))
    enroll, test = np.repeat(np.arange(people), len(speaker)), np.tile(speaker, people)
    moved = _distances(rng, kind, people, distance)[enroll] * (enroll == test)
    return Scores(x.ravel() + moved, enroll == test, enroll, test)


def other_truth(kind: str, distance: float, draws: int = 1_000_000) -> dict[str, float]:
    """Of so many independent trials of each class."""
    rng, functions = np.random.default_rng(1), score_functions()
    sides = []
    for moved in (_distances(rng, kind, draws, distance), np.zeros(draws)):
        shared = sum((_effects(rng, kind, draws, scale) for scale in (0.4, 0.4, 0.3)), np.zeros(draws))
        sides.append(np.sort(moved + shared + np.sqrt(0.59) * rng.normal(size=draws)))
    data = SortedScores(*sides)
    return {name: data.of(functions[name]) for name in OTHER}


def coverage_elsewhere(
    kind: str, *, people: int, utterances: int, distance: float, samples: int, seed: int = 7
) -> dict[str, tuple[float, float]]:
    """The share of samples whose interval covers the true value, and of those on the side of too much leakage."""
    right, rng = other_truth(kind, distance), np.random.default_rng(seed)
    hits, worse = dict.fromkeys(OTHER, 0), dict.fromkeys(OTHER, 0)
    for number in range(samples):
        scores = other_trials(rng, kind, people, utterances, distance)
        data = SortedScores(*scores.ordered)
        spread, found = replicates_of(scores, data, 200, number), values(data)
        for name in OTHER:
            low, high = spread.interval(name, found[name], shape_of(name)) or (np.nan, np.nan)
            hits[name] += low <= right[name] <= high
            is_leak_high = name == "d_ece" or name.startswith("tpr")
            worse[name] += right[name] < low if is_leak_high else right[name] > high
    return {name: (hits[name] / samples, worse[name] / samples) for name in OTHER}


def exceeded(*, people: int, utterances: int, likeness: float, samples: int, seed: int = 0) -> dict[str, list[float]]:
    """The share of samples without information beyond the null range: as it is, and with trials shuffled one by one."""
    rng = np.random.default_rng([seed, people, utterances])
    beyond = {name: np.zeros(2) for name in (*MEASURES, "l_w")}
    for number in range(samples):
        plain = trials(rng, people, utterances, 0.0)
        pairs = rng.normal(0, likeness, (people, people + 4))
        scores = Scores(
            plain.values + pairs[plain.enroll_speaker, plain.test_speaker],
            plain.is_target,
            plain.enroll_speaker,
            plain.test_speaker,
        )
        found = values(SortedScores.from_arrays(scores.targets, scores.impostors))
        for which, some in enumerate((scores, Scores(scores.values, scores.is_target))):
            null = null_levels(some, score_functions(), seed=number)
            for name, counts in beyond.items():
                low, high = null[name].range
                is_leak_high = name in ("d_ece", "l_w") or name.startswith("tpr")
                counts[which] += found[name] > high if is_leak_high else found[name] < low
    return {name: (counts / samples).tolist() for name, counts in beyond.items()}


def main(samples: int = 100) -> None:
    print(f"coverage of nominal 95 % intervals, {samples} samples each (standard error 2 points); truth in brackets")
    print(f"{'people':>7} {'utterances':>10}   " + "   ".join(f"{name:>18}" for name in MEASURES))
    settings = [(16, 20, 2.0), (16, 20, 0.3), (30, 10, 0.7), (50, 6, 1.5), (300, 3, 1.5), (16, 20, 4.65), (10, 10, 3.0)]
    for people, utterances, distance in settings:
        start = time.perf_counter()
        found = coverage(people=people, utterances=utterances, distance=distance, samples=samples, resamples=200)
        right = truth(distance)
        cells = "   ".join(f"{100 * rate:>6.1f} % ({right[name]:7.4g})" for name, rate in found.items())
        print(f"{people:>7} {utterances:>10}   {cells}   {time.perf_counter() - start:.0f} s", flush=True)
    print("the same where a share of people is always recognized and everybody else by chance")
    for people, utterances, exposed in [(16, 20, 0.05), (16, 20, 0.1), (40, 10, 0.03)]:
        found = coverage_of_few(people=people, utterances=utterances, exposed=exposed, samples=samples)
        cells = "   ".join(f"{name} {100 * rate:5.1f} %" for name, rate in found.items())
        print(f"{people:>7} {utterances:>10}   {100 * exposed:g} % of people   {cells}", flush=True)
    print("in other worlds; in brackets how often the interval lies on the side of too much leakage")
    for people, utterances, distance in [(10, 10, 3.0), (20, 8, 1.5)]:
        for kind in KINDS:
            elsewhere = coverage_elsewhere(
                kind, people=people, utterances=utterances, distance=distance, samples=samples
            )
            cells = "   ".join(f"{name} {100 * a:5.1f} % ({100 * b:4.1f})" for name, (a, b) in elsewhere.items())
            print(f"{people:>7} {utterances:>10}   {kind:>8}   {cells}", flush=True)
    print("without information beyond the null range (5 % is right), and with trials shuffled one by one")
    for people, utterances, likeness in [(10, 6, 0.5), (20, 10, 0.5), (40, 6, 0.5), (20, 10, 1.0)]:
        shares = exceeded(people=people, utterances=utterances, likeness=likeness, samples=samples)
        cells = "   ".join(f"{name} {100 * ours:4.1f} % ({100 * naive:4.1f})" for name, (ours, naive) in shares.items())
        print(f"{people:>7} {utterances:>10}   {cells}", flush=True)


if __name__ == "__main__":
    main()
