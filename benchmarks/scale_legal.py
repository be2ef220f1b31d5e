"""Linkability out of core, by hand: `python -m benchmarks.scale_legal [share]`.

10,000 test recordings against 1,000,000 enrolled people, 256-d, memory-mapped from disk: time, and memory of the
process. A share such as 0.25 makes the gallery smaller.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TESTED, ENROLLED, DIMENSION = 10_000, 1_000_000, 256


def main(share: float = 1.0) -> None:
    from veilmeter.metrics.legal.linkability import LinkCounts, count_better

    enrolled = int(ENROLLED * share)
    with tempfile.TemporaryDirectory() as folder:
        enroll = np.memmap(Path(folder) / "enroll.f32", np.float32, "w+", shape=(enrolled, DIMENSION))
        rng = np.random.default_rng(1)
        for a in range(0, enrolled, 50_000):
            enroll[a : a + 50_000] = rng.standard_normal((min(50_000, enrolled - a), DIMENSION), dtype=np.float32)
        own = np.sort(rng.choice(enrolled, TESTED, replace=False))
        test = enroll[own] + 2.5 * rng.standard_normal((TESTED, DIMENSION), dtype=np.float32)
        wall, work = time.perf_counter(), time.process_time()
        better = count_better(test, own, enroll)
        link = LinkCounts(better, enrolled - 1, np.arange(TESTED), tuple(map(str, own)))
        values = [link.estimate(n).value for n in (1000, enrolled)]
        wall, work = time.perf_counter() - wall, time.process_time() - work
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    flop = 2 * TESTED * enrolled * DIMENSION / wall / 1e9
    print(f"{TESTED:,} x {enrolled:,}: {wall:.0f} s ({work:.0f} CPU-s, {flop:.0f} GFLOP/s), {peak:.2f} GB, "
          f"Linkability {values[0]:.3f} among 1,000, {values[1]:.3f} among all")  # fmt: skip


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
