"""Linkability and Singling Out at the papers' full scale: CPU-seconds, memory, the floor, and a plain loop.

22,024 speakers x 10 conversations, 256-d; 495 predicates, 5 draws x 10 folds, ten N from 20 to 22,024, attack and
control; Linkability 4,949 x 22,024 for all N', with intervals. Runs in a process of its own, so that its memory is its
own, with one thread, so that CPU-seconds are seconds of work.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

import numpy as np

SPEAKERS, CONVERSATIONS, DIMENSION, PREDICATES, TESTED = 22_024, 10, 256, 495, 4_949
DRAWS, FOLDS = 5, 10
CPU_SECONDS, GIGABYTES, TIMES_SLOWER = 15.0, 1.5, 300


def main() -> None:
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    subprocess.run([sys.executable, "-m", "benchmarks.bench_legal"], env={**os.environ, **one_thread}, check=True)


def measured() -> None:
    from veilmeter.data.embeddings import unit
    from veilmeter.metrics.legal.conversations import Conversations
    from veilmeter.metrics.legal.isolation import COLUMNS, isolate
    from veilmeter.metrics.legal.linkability import ENROLL_BLOCK, TEST_BLOCK, LinkCounts, count_better

    rng = np.random.default_rng(1)
    voices = rng.standard_normal((SPEAKERS, DIMENSION), dtype=np.float32)
    vectors = np.repeat(voices, CONVERSATIONS, axis=0)
    for a in range(0, len(vectors), 10_000):
        part = vectors[a : a + 10_000]
        part += 3 * rng.standard_normal(part.shape, dtype=np.float32)
        part[:] = unit(part)
    enroll = unit(voices + rng.standard_normal(voices.shape, dtype=np.float32))
    names = tuple(f"s{s}" for s in range(SPEAKERS))
    said = Conversations(vectors, np.repeat(np.arange(SPEAKERS), CONVERSATIONS), names, 1, np.empty((0, 1), np.int64))
    targets = rng.choice(SPEAKERS, PREDICATES, replace=False)
    sizes = [int(n) for n in np.unique(np.geomspace(20, SPEAKERS, 10).round())]

    start = time.process_time()
    attack, control = isolate(enroll[targets], targets, said, sizes, draws=DRAWS, folds=FOLDS, absent=True)
    single = time.process_time() - start
    tested = rng.choice(SPEAKERS, TESTED, replace=False)
    own = tested
    test = vectors[tested * CONVERSATIONS]
    start = time.process_time()
    better = count_better(test, own, enroll)
    link = LinkCounts(better, SPEAKERS - 1, np.arange(TESTED), tuple(names[s] for s in tested), 1, own)
    curve = link.curve
    link.estimates(sizes)
    linking = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

    floor_single = _products(enroll[targets], vectors, PREDICATES, COLUMNS)
    floor_linking = _products(test, enroll, TEST_BLOCK, ENROLL_BLOCK)
    total, floor = single + linking, floor_single + floor_linking
    cases = 2 * PREDICATES * DRAWS * FOLDS * len(sizes)
    print(f"Singling Out {single:.1f} CPU-s (matrix products alone {floor_single:.1f}), {cases:,} decisions")
    print(f"Linkability  {linking:.1f} CPU-s (matrix products alone {floor_linking:.1f}), all {len(curve):,} N'")
    print(f"together     {total:.1f} CPU-s (at most {CPU_SECONDS:g}), {floor / total:.0%} of it in the matrix products")
    print(f"memory       {peak:.2f} GB (under {GIGABYTES:g})")
    share = [counts.isolated.mean(axis=(0, 2)) / FOLDS for counts in (attack, control)]
    print(
        f"values       N = {sizes[0]} ... {sizes[-1]}: attack {share[0][0]:.2f} ... {share[0][-1]:.2f}, control "
        f"{share[1][0]:.2f} ... {share[1][-1]:.2f}, Linkability {curve[19]:.2f} ... {curve[-1]:.2f}"
    )

    people = 200
    slow_single = _plain_singling_out(enroll, said, [int(t) for t in targets[targets < people][:3]] or [0], people)
    slow_linking = _plain_linkability(test, own, enroll, people)
    quick_single, quick_linking = single / cases, linking / (TESTED * len(curve))
    print(f"a plain loop among {people} speakers, per decision: Singling Out {slow_single / quick_single:,.0f} times "
          f"slower, Linkability {slow_linking / quick_linking:,.0f} times (at least {TIMES_SLOWER})")  # fmt: skip
    good = total <= CPU_SECONDS and peak < GIGABYTES and slow_single >= TIMES_SLOWER * quick_single
    print("ok" if good else "NOT REACHED")


def _products(a: np.ndarray, b: np.ndarray, rows: int, columns: int) -> float:
    """CPU-seconds of the same matrix products, in the same blocks, and nothing else."""
    out = np.empty((rows, columns), np.float32)
    start = time.process_time()
    for first in range(0, len(b), columns):
        y = b[first : first + columns]
        for begin in range(0, len(a), rows):
            x = a[begin : begin + rows]
            np.matmul(x, y.T, out=out[: len(x), : len(y)])
    return time.process_time() - start


def _cosine(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def _plain_singling_out(enroll: np.ndarray, said: object, targets: list[int], people: int) -> float:
    """CPU-seconds per decision of the paper's procedure, written down as it reads."""
    vectors = said.vectors  # type: ignore[attr-defined]
    rng = np.random.default_rng(2)
    start, decisions = time.process_time(), 0
    for target in targets:
        subset = [target, *rng.permutation([s for s in range(people + 1) if s != target])[: people - 1]]
        for fold in range(FOLDS):
            calibration, test = [], []
            for s in subset:
                for k in range(CONVERSATIONS):
                    score = _cosine(vectors[s * CONVERSATIONS + k], enroll[target])
                    (test if k == fold else calibration).append(score)
            calibration.sort(reverse=True)
            threshold = (calibration[8] + calibration[9]) / 2
            _ = sum(score > threshold for score in test) == 1
            decisions += 1
    return (time.process_time() - start) / decisions


def _plain_linkability(test: np.ndarray, own: np.ndarray, enroll: np.ndarray, people: int) -> float:
    rng = np.random.default_rng(3)
    start = time.process_time()
    for i in range(20):
        others = rng.choice(len(enroll), people, replace=False)
        right = _cosine(test[i], enroll[own[i]])
        _ = right > max(_cosine(test[i], enroll[j]) for j in others if j != own[i])
    return (time.process_time() - start) / 20


if __name__ == "__main__":
    measured()
