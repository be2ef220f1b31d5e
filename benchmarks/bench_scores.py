"""Score measures against np.sort of the same array, a plain PAV loop, and what reading and intervals cost.

Times are the processor's, the least of several rounds in which both sides take turns: a busy machine hits both alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Here, Pool
from veilmeter.data.formats.scores import read_score_table, read_scores, stream
from veilmeter.data.scores import Scores
from veilmeter.metrics.scores.summary import measure, measure_stream

SHARED = Path(os.environ.get("VEILMETER_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this process and of those it starts."""
    before = sum(os.times()[2:4]), time.process_time()
    work()
    return sum(os.times()[2:4]) - before[0] + time.process_time() - before[1]


def made(n: int, share: float, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < share
    return rng.normal(size=n) + 1.5 * labels, labels


def plain_pav(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> list[float]:
    """Pool adjacent violators as textbooks have it: sort all scores, then one at a time."""
    sums: list[float] = []
    sizes: list[int] = []
    for label in labels[np.argsort(scores)].tolist():
        total, size = float(label), 1
        while sums and sums[-1] * size >= total * sizes[-1]:
            total += sums.pop()
            size += sizes.pop()
        sums.append(total)
        sizes.append(size)
    return [a / b for a, b in zip(sums, sizes, strict=True)]


def against_sort(n: int, share: float, rounds: int) -> tuple[float, float, float]:
    """The time of all measures in sorts, in seconds, and the peak of memory in arrays of the input's size."""
    values, labels = made(n, share)
    sort, ours = [], []
    for _ in range(rounds):
        sort.append(seconds(lambda: np.sort(values)))
        ours.append(seconds(lambda: measure(Scores(values, labels), intervals=False)))
    tracemalloc.start()
    measure(Scores(values, labels), intervals=False)
    peak = tracemalloc.get_traced_memory()[1] / values.nbytes
    tracemalloc.stop()
    return min(ours) / min(sort), min(ours), peak


def main() -> None:
    print("all measures without intervals, in times of np.sort of the same array")
    for n, share, goal, rounds in [(2_000_000, 0.05, 8, 7), (2_000_000, 0.5, 15, 7), (20_000_000, 0.05, 8, 2)]:
        ratio, took, peak = against_sort(n, share, rounds)
        print(
            f"  {n:>10,} scores, {share:.0%} targets: {ratio:5.2f} sorts (at most {goal}), {took:.3f} s, "
            f"memory {peak:.1f} arrays (at most 6)",
            flush=True,
        )
    values, labels = made(2_000_000, 0.05)
    loop = seconds(lambda: plain_pav(values, labels))
    quick = min(seconds(lambda: measure(Scores(values, labels), intervals=False)) for _ in range(3))
    print(
        f"  plain PAV loop on 2,000,000 scores, nothing else: {loop:.2f} s, {loop / quick:.0f} times all our measures"
    )
    reading()
    real()
    resampled()


def reading() -> None:
    """A million lines, against Python's plain loop over the same lines."""
    with tempfile.TemporaryDirectory() as folder:
        path, key = Path(folder, "scores"), Path(folder, "trials")
        ids = [(f"spk{i // 1000:04d}", f"spk{i % 1000:04d}-{i % 1000 * 7:05d}-0001") for i in range(1_000_000)]
        path.write_text("".join(f"{a} {b} {i % 977 / 7:.5f}\n" for i, (a, b) in enumerate(ids)))
        key.write_text("".join(f"{a} {b} {'target' if b.startswith(a) else 'nontarget'}\n" for a, b in ids))

        def plainly() -> None:
            with open(path) as handle:
                [(a, b, float(c)) for a, b, c in map(str.split, handle)]

        table = min(seconds(lambda: read_score_table(path)) for _ in range(3))
        both = min(seconds(lambda: read_scores(path, key)) for _ in range(2))
        plain = min(seconds(plainly) for _ in range(2))
        streamed = seconds(lambda: measure_stream(stream(path, key)))
    print(f"reading 1,000,000 score lines: {table:.2f} s ({table / plain:.2f} of a plain Python loop's {plain:.2f} s); "
          f"with a key of 1,000,000 lines, joined: {both:.2f} s; streamed and measured: {streamed:.2f} s")  # fmt: skip


def real() -> None:
    """libri_test_f: intervals, and the command from the shell."""
    root = SHARED / "data" / "vpc2020-b1" / "extractor-original"
    path = root / "results" / "ASV-libri_test_enrolls_anon-libri_test_trials_f_anon" / "scores"
    key = root / "xvect_libri_test_trials_f" / "meta" / "trials"
    if not path.exists():
        print("libri_test_f is not here")
        return
    scores = read_scores(path, key)
    took = min(seconds(lambda: measure(scores, resamples=1000)) for _ in range(3))
    command = [sys.executable, "-m", "veilmeter.cli.main", "measure", str(path), "--trials", str(key)]
    shell = min(seconds(lambda: subprocess.run(command, capture_output=True, check=True)) for _ in range(3))
    bare = min(seconds(lambda: subprocess.run([sys.executable, "-c", "import numpy"], check=True)) for _ in range(3))
    print(f"libri_test_f, 1,000 speaker resamples and the null level: {took:.2f} s (at most 2)")
    print(f"libri_test_f, the whole command from the shell: {shell:.2f} s (at most 1.5), "
          f"{shell / bare:.1f} times `import numpy`")  # fmt: skip


def resampled() -> None:
    """Speaker resamples of a large set: here, and in two processes of the engine. Seconds of the clock, start-up of the
    processes included."""
    speakers, each = 300, 5
    enroll = np.repeat(np.arange(speakers), speakers * each)
    test = np.tile(np.repeat(np.arange(speakers), each), speakers)
    values = np.random.default_rng(0).normal(size=len(enroll)) + 1.5 * (enroll == test)
    scores = Scores(values, enroll == test, enroll, test)
    took = []
    for engine in (Here(), Pool(2)):
        start = time.monotonic()
        found = measure(scores, engine=engine)
        took.append((time.monotonic() - start, found))
        engine.close()
    same = "the same" if took[0][1] == took[1][1] else "DIFFERENT"
    print(f"{len(scores):,} trials, 1,000 resamples: {took[0][0]:.1f} s in one process, {took[1][0]:.1f} s in two "
          f"({took[0][0] / took[1][0]:.2f} times faster, {same} intervals)")  # fmt: skip


if __name__ == "__main__":
    main()
