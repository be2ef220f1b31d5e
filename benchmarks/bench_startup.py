"""Start-up: processor time of commands on small files, over that of an interpreter that imports what they need.

The floor of `measure` and `linkability` is a process that imports numpy and the parts of scipy that `measure` uses. On
a quiet core processor time is what one waits.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.bench_reference import cpu_of

ROUNDS = 5
PEOPLE, EACH = 20, 3
FLOORS = {"numpy": "import numpy", "numpy and scipy": "import numpy, scipy.special, scipy.sparse"}
GOALS = {"--version": ("numpy", 1.5), "measure": ("numpy and scipy", 2.0), "linkability": ("numpy and scipy", 1.3)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _files(root)
        command = [sys.executable, "-m", "veilmeter.cli.main"]
        vectors = ["--enroll", f"{root / 'enroll'}.npz", "--test", f"{root / 'test'}.npz"]
        wanted = {
            "--version": [*command, "--version"],
            "measure": [*command, "measure", f"{root / 'scores'}", "--trials", f"{root / 'trials'}"],
            "linkability": [*command, "linkability", *vectors, "--no-intervals"],
        }
        for line in (*wanted.values(), *([sys.executable, "-c", code] for code in FLOORS.values())):
            cpu_of(line)  # compiles modules that nobody has imported yet
        for name, line in wanted.items():
            floor, goal = GOALS[name]
            pairs = [(cpu_of(line), cpu_of([sys.executable, "-c", FLOORS[floor]])) for _ in range(ROUNDS)]
            seconds, least = (min(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            print(
                f"{name}: {seconds:.2f} CPU-s, importing {floor} {least:.2f}; ratio {ratio:.2f} (at most {goal:g}) "
                f"{'ok' if ratio <= goal else 'NOT REACHED'}"
            )


def _files(root: Path) -> None:
    """Scores of 1,200 trials with their key, and vectors of as many people."""
    rng = np.random.default_rng(0)
    scores, trials = [], []
    for enrolled in range(PEOPLE):
        for tried in range(PEOPLE):
            for number in range(EACH):
                target = enrolled == tried
                scores.append(f"s{enrolled} s{tried}-{number} {rng.normal(2.0 * target):.4f}\n")
                trials.append(f"s{enrolled} s{tried}-{number} {'target' if target else 'nontarget'}\n")
    (root / "scores").write_text("".join(scores))
    (root / "trials").write_text("".join(trials))
    voices = rng.standard_normal((PEOPLE, 1, 32))
    for name in ("enroll", "test"):
        vectors = (voices + rng.standard_normal((PEOPLE, EACH, 32))).reshape(-1, 32)
        ids = [f"s{s}-{name}-{u}" for s in range(PEOPLE) for u in range(EACH)]
        np.savez(root / f"{name}.npz", vectors=vectors, ids=ids, speakers=[i.split("-")[0] for i in ids])


if __name__ == "__main__":
    main()
