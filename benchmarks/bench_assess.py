"""A whole assessment of embeddings: where its time goes, and what is left when an earlier run is kept.

The floor is the bare linear algebra of its attackers: every enrolled person against every recording, once for each
attacker and length. The rest is what makes figures trustworthy: intervals, null levels, controls.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np

SPEAKERS, EACH, DIMENSION = 40, 40, 192
LENGTHS = (1, 3)


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from veilmeter.assessment import assess
    from veilmeter.data.embeddings import Embeddings, unit

    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(SPEAKERS), EACH)
    places = rng.standard_normal((SPEAKERS, DIMENSION))
    names = [f"s{code:02}" for code in codes]
    ids = [f"{name}-{number}" for number, name in enumerate(names)]
    gender = {"gender": ["fm"[code % 2] for code in codes]}
    clear = Embeddings(places[codes] + rng.standard_normal((len(codes), DIMENSION)), ids, names, gender)
    moved = 0.4 * clear.vectors + 2 * rng.standard_normal((len(codes), 8)) @ rng.standard_normal((8, DIMENSION))
    protected = clear.with_vectors(moved)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        start = time.process_time()
        first = assess(clear, protected, out=out, lengths=LENGTHS)
        fresh = time.process_time() - start
        start = time.process_time()
        assess(clear, protected, out=out, lengths=LENGTHS)
        kept = time.process_time() - start
        start = time.process_time()
        assess(clear, protected, lengths=LENGTHS, intervals=False)
        bare = time.process_time() - start
    start = time.process_time()
    for _ in range(len(first.results.attackers) * len(LENGTHS)):
        unit(places) @ unit(clear.vectors).T
    floor = time.process_time() - start
    print(f"{SPEAKERS} speakers, {len(codes)} recordings, {len(first.results.attackers)} attackers, processor time:")
    print(f"  with intervals {fresh:.1f} s, {fresh / bare:.1f} times that without ({bare:.1f} s)")
    print(f"  going on from a finished run: 1/{fresh / kept:.0f} of it")
    print(f"  bare scoring: 1/{fresh / max(floor, 1e-9):.0f} of it")


if __name__ == "__main__":
    main()
