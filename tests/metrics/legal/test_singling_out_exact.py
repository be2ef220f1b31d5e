"""The exact expectation of Singling Out over all subsets, as an oracle: checked by enumeration, it checks the rest.

For one predicate and fold, let a and b be the calibration scores number n and n+1 of the subset, and A > B their
values. A subset counts if the speakers of a and b are in it, n-1 of its calibration scores lie above A and none between
A and B, and exactly one of its test scores lies above (A+B)/2. Speakers who have alpha calibration scores above A and
tau (0 or 1) test scores above the threshold are alike, so the subsets are counted by how many of each kind they hold:
a sum over the partitions of what is missing to n-1. Speakers with neither are free.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from veilmeter.data.embeddings import unit
from veilmeter.metrics.legal.conversations import Conversations
from veilmeter.metrics.legal.isolation import isolate, isolations


def partitions(total, largest=None):
    largest = total if largest is None else largest
    if total == 0:
        yield {}
        return
    for part in range(min(total, largest), 0, -1):
        for rest in partitions(total - part, part):
            yield {**rest, part: rest.get(part, 0) + 1}


def exact_isolation(scores, target, fold, sizes):
    """P(isolation) for every size over all subsets with the target; `scores[s]` are those of the conversations of s."""
    people = len(scores)
    test = np.array([s[fold % len(s)] for s in scores])
    calibration = [np.delete(s, fold % len(s)) for s in scores]
    n = len(scores[target]) - 1
    a_value = np.concatenate(calibration)
    a_speaker = np.repeat(np.arange(people), [len(c) for c in calibration])
    alpha = np.stack([(c[None, :] > a_value[:, None]).sum(1) for c in calibration], axis=1)
    below = [np.where(c[None, :] < a_value[:, None], c[None, :], -np.inf).max(1) for c in calibration]
    following = np.stack(below, axis=1)  # each speaker's best calibration score below A
    kept = alpha[:, target] <= n - 1
    a_value, a_speaker, alpha, following = a_value[kept], a_speaker[kept], alpha[kept], following[kept]
    rows = np.arange(len(a_value))
    # b is the best score below A of some speaker; nobody in the subset may have one between
    b_value = following
    valid = (
        np.isfinite(b_value) & (b_value >= following[:, [target]]) & (b_value >= following[rows, a_speaker][:, None])
    )
    i, j = np.nonzero(valid)
    a_at, b_at, sa, sb = a_value[i], b_value[i, j], a_speaker[i], j
    forced = np.zeros((len(i), people), bool)
    forced[np.arange(len(i)), sa] = forced[np.arange(len(i)), sb] = forced[:, target] = True
    missing = n - 1 - np.where(forced, alpha[i], 0).sum(1)
    above = test[None, :] > ((a_at + b_at) / 2)[:, None]
    have = (above & forced).sum(1)
    candidate = ~forced & (following[i] <= b_at[:, None])
    ok = (missing >= 0) & (have <= 1)
    kinds = {(k, tau): (candidate & (alpha[i] == k) & (above == bool(tau))).sum(1) for k in range(n) for tau in (0, 1)}
    table = np.array([[comb(m, k) for k in range(people + 1)] for m in range(people + 1)], float)
    free, held = kinds[0, 0], forced.sum(1)
    result = np.zeros(len(sizes))
    for lack in range(n):
        for pick in np.unique(have[ok & (missing == lack)]):
            at = np.flatnonzero(ok & (missing == lack) & (have == pick))
            extra = [None] if pick == 1 else range(lack + 1)  # the one above may have calibration scores of its own
            for own in extra:
                ways_one = np.ones(len(at)) if own is None else kinds[own, 1][at].astype(float)
                for parts in partitions(lack - (own or 0)):
                    ways = ways_one.copy()
                    for k, times in parts.items():
                        ways = ways * table[kinds[k, 0][at], times]
                    chosen = held[at] + sum(parts.values()) + (own is not None)
                    for number, size in enumerate(sizes):
                        more = size - chosen
                        fits = (more >= 0) & (more <= free[at])
                        result[number] += np.sum(ways[fits] * table[free[at][fits], more[fits]])
    return result / np.array([comb(people - 1, size - 1) for size in sizes], float)


def made(rng, counts, d=4, noise=1.0):
    mu = rng.standard_normal((len(counts), d))
    vectors = np.concatenate([mu[s] + noise * rng.standard_normal((k, d)) for s, k in enumerate(counts)])
    speakers = np.repeat(np.arange(len(counts)), counts)
    names = tuple(f"s{s}" for s in range(len(counts)))
    return Conversations(unit(vectors), speakers, names, 1, np.arange(len(vectors))[:, None]), unit(mu)


def split(said, vector):
    scores = said.vectors @ vector
    return [scores[said.speakers == s].astype(float) for s in range(len(said.names))]


@pytest.mark.parametrize("counts", [[3] * 6, [2, 3, 4, 3, 2, 5], [4, 2, 2, 2, 2], [2, 2, 2, 2], [5, 4, 3, 5, 4, 3, 5]])
def test_the_oracle_agrees_with_enumeration(counts):
    rng = np.random.default_rng(sum(counts))
    said, mu = made(rng, counts)
    people = len(counts)
    sizes = list(range(2, people + 1))
    for target in range(3):
        subsets = [
            [(target, *rest) for rest in combinations([s for s in range(people) if s != target], size - 1)]
            for size in sizes
        ]
        plain = [isolations(mu[[target]], [target], said, [some], folds=5)[0][0].mean(0) for some in subsets]
        for fold in range(5):
            exact = exact_isolation(split(said, mu[target]), target, fold, sizes)
            np.testing.assert_allclose(exact, [p[fold] for p in plain], atol=1e-12)


def test_the_production_estimator_agrees_with_the_oracle():
    """With unequal numbers of conversations, and sizes on both sides of the list of best scores."""
    rng = np.random.default_rng(4)
    counts = rng.integers(2, 6, 40)
    said, mu = made(rng, counts, d=6)
    sizes, targets, folds = [3, 10, 25, 40], np.arange(6), 4
    exact = np.array(
        [np.mean([exact_isolation(split(said, mu[t]), t, f, sizes) for f in range(folds)], axis=0) for t in targets]
    )
    draws = 400
    found = isolate(mu[targets], targets, said, sizes, draws=draws, folds=folds)[0].isolated / folds
    error = found.std(axis=2, ddof=1) / np.sqrt(draws)
    z = (found.mean(axis=2) - exact) / np.maximum(error, 1e-12)
    np.testing.assert_allclose(found.mean(axis=2)[:, -1], exact[:, -1], atol=1e-12)  # everybody: nothing is random
    assert np.abs(z[:, :-1]).max() < 4
    assert abs(z[:, :-1].mean()) < 4 / np.sqrt(z[:, :-1].size)


@pytest.mark.slow
def test_the_reference_over_all_subsets(reference):
    legal = reference["legal"]
    rng = np.random.default_rng(20250003)
    mu = rng.standard_normal((60, 16))
    x = mu[:, None, :] + 1.5 * rng.standard_normal((60, 12, 16))
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    predicates = u[:20, 10:].mean(axis=1)
    wanted = legal["singling_out"]["exact_over_all_subsets_L1"]
    sizes = [int(n) for n in wanted]
    total = np.zeros(len(sizes))
    for t in range(20):
        scores = u[:, :10] @ (predicates[t] / np.linalg.norm(predicates[t]))
        for fold in range(10):
            total += exact_isolation(list(scores), t, fold, sizes)
    np.testing.assert_allclose(total / 200, list(wanted.values()), atol=1e-11)
