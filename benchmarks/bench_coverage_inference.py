"""Coverage of the intervals of attribute inference, and of the null range, where there is nothing to find.

Speakers differ from each other and recordings within speakers; the attribute is assigned at random, to speakers or to
recordings. The truth is 100 % divided by the number of values.
"""

from __future__ import annotations

import numpy as np

from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.inference import infer

WORLDS = 100


def voices(rng: np.random.Generator, people: int, each: int, d: int, values: int, *, of_recordings: bool) -> Embeddings:
    who = np.arange(people).repeat(each)
    x = rng.standard_normal((people, d))[who] + 0.5 * rng.standard_normal((len(who), d))
    label = rng.integers(values, size=len(who)) if of_recordings else rng.permutation(np.arange(people) % values)[who]
    names = [f"s{person}" for person in who]
    return Embeddings(x, [str(i) for i in range(len(who))], names, {"attribute": [f"v{code}" for code in label]})


def main() -> None:
    print(f"no signal, {WORLDS} worlds: interval holds chance (95 % is right), value above the null range (5 %), width")
    for people, each, d, values, of_recordings in [
        (20, 5, 32, 2, False), (40, 5, 64, 2, False), (30, 6, 32, 3, False), (20, 8, 32, 2, True), (40, 6, 64, 4, True),
    ]:  # fmt: skip
        rng = np.random.default_rng([people, each, values])
        rows = []
        for number in range(WORLDS):
            found = infer(voices(rng, people, each, d, values, of_recordings=of_recordings), "attribute", seed=number)
            point = found.estimate()
            low, high = point.interval or (np.nan, np.nan)
            rows.append((low <= 100 / values <= high, point.value > (point.null_range or (0, 0))[1], high - low))
        inside, above, width = np.mean(rows, axis=0)
        of = "recordings" if of_recordings else "speakers"
        print(
            f"  {people:3} speakers x {each}, {values} values of {of:10} {inside:.0%} {above:.0%} {width:.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
