"""The page of 400 people: processor time of `write_report` in a fresh process, imports and all.

The floor is what Altair, Jinja and pyarrow take to be imported. The first page of an installation also puts the script
of its figures together, which is kept for the next ones; that is apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SPEAKERS, EACH, DIMENSION = 400, 6, 24
IMPORTS = "import altair, jinja2, pyarrow.parquet"
WRITE = "import sys; from veilmeter.report import write_report; write_report(sys.argv[1], sys.argv[1] + '/page.html')"
TIMED = "import time; {}; print(time.process_time())"


def run_of_many(folder: Path) -> None:
    """Six recordings of everybody, half protected, assessed by the measures that a page shows."""
    from veilmeter.assessment import assess
    from veilmeter.data.embeddings import Embeddings

    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(SPEAKERS), EACH)
    voices, others = rng.standard_normal((2, SPEAKERS, DIMENSION))
    names = [f"s{code:03}" for code in codes]
    ids = [f"{name}-{number}" for number, name in enumerate(names)]
    gender = {"gender": ["fm"[code % 2] for code in codes]}
    original, protected = (
        Embeddings(base[codes] + 0.7 * rng.standard_normal((len(codes), DIMENSION)), ids, names, gender)
        for base in (voices, 0.6 * voices + 0.4 * others)
    )
    assess(original, protected, out=folder, resamples=20)


def processor_seconds(code: str, *arguments: str, cache: Path) -> float:
    """Of a process of its own."""
    words = [sys.executable, "-c", TIMED.format(code), *arguments]
    surroundings = {**os.environ, "VEILMETER_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=surroundings, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, cache = Path(folder) / "run", Path(folder) / "cache"
        run_of_many(run)
        first = processor_seconds(WRITE, str(run), cache=cache)
        again = min(processor_seconds(WRITE, str(run), cache=cache) for _ in range(3))
        floor = min(processor_seconds(IMPORTS, cache=cache) for _ in range(3))
    print(f"the page of {SPEAKERS} people, processor time:")
    print(f"  {again:.1f} s, {again / floor:.1f} times what its libraries take to be imported ({floor:.1f} s)")
    print(f"  the first page of an installation: {first:.1f} s")


if __name__ == "__main__":
    main()
