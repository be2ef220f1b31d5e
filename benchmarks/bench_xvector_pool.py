"""xvector-pool: how much faster than speech one core is, and where the time goes.

Processor time, not wall-clock time, so that other work on the machine hardly matters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench_mcadams import speech
from veilmeter.anonymizers.xvector_pool import model, world

ROUNDS = 3


def main() -> None:
    loaded = model.load(model.shipped())
    code = loaded.speaker_code(loaded.pool.average(loaded.pool.names[:10]))
    utterances = [np.asarray(samples, np.float32) for samples in speech()[:4]]
    seconds = sum(len(samples) for samples in utterances) / world.RATE
    loaded.convert(world.analyze(utterances[0]), code)  # warm up
    best: dict[str, float] = {}

    def timed(stage: str, work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        start = time.process_time()
        done = [work(item) for item in items]
        best[stage] = min(best.get(stage, np.inf), time.process_time() - start)
        return done

    for _ in range(ROUNDS):
        analyses = timed("analysis", world.analyze, utterances)
        converted = timed("conversion", lambda a: loaded.convert(a, code), analyses)
        timed("synthesis", world.synthesize, converted)
    total = sum(best.values())
    print(f"xvector-pool: {seconds / total:.1f} times faster than real time on one core")
    for stage, spent in best.items():
        print(f"  {stage}: {100 * spent / total:.0f} % of the time")


if __name__ == "__main__":
    main()
