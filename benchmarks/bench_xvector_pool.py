"""xvector-pool: how much faster than speech one core is, and where the time goes.

Processor time, not wall-clock time, so that other work on the machine hardly matters. Looking for the source's x-vector
comes on top, once per recording: it is CAM++'s time (`python -m benchmarks embed`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench_mcadams import speech
from veilmeter.anonymizers.xvector_pool import features, model, world
from veilmeter.speech.recognizers.moonshine import load_layer

ROUNDS = 3


def main() -> None:
    loaded = model.load(model.builtin_model())
    encoder = load_layer(loaded.layer)
    code = loaded.speaker_code(loaded.pool.average(loaded.pool.names[:10]))
    utterances = [features.level(samples)[0] for samples in speech()[:4]]
    seconds = sum(len(samples) for samples in utterances) / world.RATE
    loaded.convert(features.hear(utterances[0], encoder), code)  # warm up
    best: dict[str, float] = {}

    def timed(stage: str, work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        start = time.process_time()
        done = [work(item) for item in items]
        best[stage] = min(best.get(stage, np.inf), time.process_time() - start)
        return done

    for _ in range(ROUNDS):
        pitches = timed("pitch", world.pitch, utterances)
        energies = timed("energy", features.energy, utterances)
        framed = list(zip(utterances, [len(f0) for f0 in pitches], strict=True))
        contents = timed("recognizer's encoder", lambda pair: features.content(pair[0], encoder, pair[1]), framed)
        heard = [
            features.SourceFrames(f0, energy, content, len(samples), 1.0)
            for f0, energy, content, samples in zip(pitches, energies, contents, utterances, strict=True)
        ]
        converted = timed("conversion", lambda item: loaded.convert(item, code), heard)
        timed("synthesis", world.synthesize, converted)
    total = sum(best.values())
    print(f"xvector-pool: {seconds / total:.1f} times faster than real time on one core")
    for stage, spent in best.items():
        print(f"  {stage}: {100 * spent / total:.0f} % of the time")


if __name__ == "__main__":
    main()
