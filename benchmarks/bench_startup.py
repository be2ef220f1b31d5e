"""Start-up: processor time of commands on small files, over that of an interpreter that imports what they need, and
what they import.

The floor of `measure` and `linkability` is a process that imports numpy and the parts of scipy that `measure` uses. On
a quiet core processor time is what one waits. What only other commands need must not be imported; the packages that
take most of the time for imports are named with their share of it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.bench_reference import cpu_of

ROUNDS = 5
PEOPLE, EACH = 20, 3
FLOORS = {"numpy": "import numpy", "numpy and scipy": "import numpy, scipy.special, scipy.sparse"}
GOALS = {"--version": ("numpy", 0.27), "measure": ("numpy and scipy", 0.8), "linkability": ("numpy and scipy", 0.7)}
LAZY = {
    "altair", "dask", "jinja2", "jiwer", "onnxruntime", "pandas", "pyarrow", "scipy.linalg", "scipy.optimize",
    "scipy.stats", "soundfile", "soxr", "torch", "typst", "vl_convert",
}  # fmt: skip


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
                f"{name}: {seconds:.2f} CPU-s (at most {goal:g}) {'ok' if seconds <= goal else 'NOT REACHED'}; "
                f"{ratio:.2f} times importing {floor} ({least:.2f} CPU-s)"
            )
            _print_imports(line)


def _print_imports(line: list[str]) -> None:
    told = subprocess.run([line[0], "-X", "importtime", *line[1:]], capture_output=True, text=True, check=True).stderr
    seconds: Counter[str] = Counter()
    modules = set()
    for row in told.splitlines():
        if row.startswith("import time:") and row.count("|") == 2 and "self [us]" not in row:
            own, _, module = row.removeprefix("import time:").split("|")
            modules.add(module.strip())
            seconds[module.strip().partition(".")[0]] += int(own)
    shares = ", ".join(f"{name} {100 * own / seconds.total():.0f} %" for name, own in seconds.most_common(4))
    early = sorted(modules & LAZY)
    print(f"  imports: {len(modules)} modules; {shares}; needless: {', '.join(early) or 'none'}")


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
