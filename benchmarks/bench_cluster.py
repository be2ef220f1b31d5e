"""`embed` and `assess` on a Dask cluster of four workers on this machine, against one process.

The cluster is there before the command starts, as it is where people have one; what its workers import and load counts.
Then once more, with one worker killed in the middle of its work. Printed are the speed by the clock, whether the bytes
are the same, the most memory a worker ever held, and what the loss cost. The clock means something only where two cores
are free, so what others do on the machine is measured too.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_embed import synthesized_corpus
from benchmarks.two_processes import SHARE

WORKERS, CORES, GOAL = 4, 2, 1.7
PEOPLE, EACH, DIMENSION = 3000, 6, 192
COPIES = 3  # of an hour of speech: with less, the start of four workers counts more than their work
RECORDINGS = 1200  # synthesized ones, where there is no real speech
SPEECH = "data/librispeech/train-clean-100-251x1"
ENVIRONMENT = dict(os.environ)  # as it is before Dask adds what its workers are to have
SHARED = Path(os.environ.get("VEILMETER_SHARED", Path(__file__).parents[2] / "shared"))


class Cost(NamedTuple):
    """By the clock, and processor time of the command itself and of the workers."""

    seconds: float
    own: float
    workers: float = 0.0


def main() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        print("Dask is not installed (veilmeter[cluster])")
        return
    from veilmeter.core.engine import cores
    from veilmeter.core.files import sha256

    if cores() < CORES:
        print("there is only one core")
        return
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        root = Path(folder)
        speech = _speech(root / "speech")
        _compare("embed", root, lambda out: ["embed", speech, out], sha256)
        clear, veiled = _vectors(root)
        sides = ["assess", "--original", clear, "--anonymized", veiled, "--no-report", "--out"]
        _compare("assess", root, lambda out: [*sides, out], lambda out: sha256(out / "results.json"))


def _compare(name: str, root: Path, command: Callable[[Path], list[Any]], bytes_of: Callable[[Path], str]) -> None:
    outs = [root / f"{name}-{where}" for where in ("alone", "cluster", "lost")]
    alone = _run([*command(outs[0]), "--jobs", 1])
    with _cluster() as (cluster, watch):
        shared = _run([*command(outs[1]), "--cluster", cluster.scheduler_address], cluster)
        tasks, most = len(watch.handed_out), max(_peak(nanny.pid) for nanny in cluster.workers.values())
    with _cluster() as (cluster, watch):
        lost = _run(
            [*command(outs[2]), "--cluster", cluster.scheduler_address],
            meanwhile=lambda: _kill_one(cluster, watch, tasks // 3),
        )
        again = sum(count - 1 for count in watch.handed_out.values())
    one, two, three = map(bytes_of, outs)
    print(f"{name}: one process {alone.seconds:.1f} s, {WORKERS} workers {shared.seconds:.1f} s for {tasks} tasks")
    print(f"  {alone.seconds / shared.seconds:.2f} times the speed by the clock (goal at least {GOAL})")
    if alone.own / alone.seconds < SHARE:
        ideal = shared.own + shared.workers / CORES
        percent = 100 * alone.own / alone.seconds
        print(f"  others were at work: one process got {percent:.0f} % of a core; by processor time, had they shared")
        print(f"  {CORES} cores, {alone.own / ideal:.2f} times")
    print(f"  processor time: {alone.own:.1f} s alone, {shared.own:.1f} s + {shared.workers:.1f} s of the workers")
    print(f"  the same bytes: {'yes' if one == two else 'NO'}; most memory of a worker: {most / 1e3:.2f} GB")
    same = "the same bytes" if one == three else "OTHER BYTES"
    print(f"  with a worker killed: {lost.seconds:.1f} s, {again} of {tasks} tasks handed out again, {same}")


class _Watch:
    """How often each task was handed to a worker, and how many are finished; a plugin of the scheduler."""

    def __init__(self) -> None:
        self.handed_out: dict[Any, int] = {}
        self.finished = 0

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        if finish == "processing":
            self.handed_out[key] = self.handed_out.get(key, 0) + 1
        self.finished += (start, finish) == ("processing", "memory")


@contextmanager
def _cluster() -> Iterator[tuple[Any, _Watch]]:
    import dask
    from distributed import LocalCluster, SchedulerPlugin

    from veilmeter.core.cluster import SELDOM

    class Plugin(_Watch, SchedulerPlugin):  # type: ignore[misc]
        pass

    with (
        dask.config.set(SELDOM),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        watch = Plugin()
        cluster.scheduler.add_plugin(watch)
        yield cluster, watch


def _run(words: list[Any], cluster: Any = None, meanwhile: Callable[[], None] = lambda: None) -> Cost:
    """`veilmeter ...` with linear algebra in one thread."""
    before = _workers(cluster)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    clock = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "veilmeter.cli.main", *map(str, words), "--quiet"],
        env={**ENVIRONMENT, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    meanwhile()
    if process.wait() not in (0, 3):
        raise SystemExit(f"veilmeter {words[0]} ended with exit code {process.returncode}")
    seconds = time.monotonic() - clock
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return Cost(seconds, own, _workers(cluster) - before)


def _workers(cluster: Any) -> float:
    """Processor time of the cluster's workers so far."""
    import psutil

    if cluster is None:
        return 0.0
    times = [psutil.Process(nanny.pid).cpu_times() for nanny in cluster.workers.values()]
    return sum(found.user + found.system for found in times)


def _peak(pid: int) -> float:
    """The most memory a process ever held, in MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3


def _kill_one(cluster: Any, watch: _Watch, after: int) -> None:
    """The worker that has something to do, once so many tasks are finished."""
    while watch.finished < max(after, 1):
        time.sleep(0.02)
    busy = {state.address for state in list(cluster.scheduler.workers.values()) if state.processing}
    os.kill(next(nanny.pid for nanny in cluster.workers.values() if nanny.worker_address in busy), signal.SIGKILL)


def _speech(folder: Path) -> Path:
    """Real speech where it lies here, about three hours with its copies; else voices of harmonics, as much."""
    if (real := SHARED / SPEECH).is_dir():
        folder.mkdir()
        for file in real.glob("*.flac"):
            speaker, chapter, number = file.stem.split("-")
            for copy in range(COPIES):
                shutil.copy(file, folder / f"{speaker}-{chapter}-{int(number) + 5000 * copy:04d}.flac")
        return folder
    synthesized_corpus(folder, RECORDINGS, 40)
    return folder


def _vectors(root: Path) -> list[Path]:
    """Two sides of as many people as keep a core busy for about three minutes."""
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import write_embeddings

    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(PEOPLE), EACH)
    names = [f"s{code:04d}" for code in codes]
    ids = [f"{name}-{row}" for row, name in enumerate(names)]
    noise = rng.standard_normal((2, len(codes), DIMENSION), dtype=np.float32)
    clear = rng.standard_normal((PEOPLE, DIMENSION), dtype=np.float32)[codes] + noise[0]
    about = {"gender": ["fm"[code % 2] for code in codes]}
    paths = [root / "clear.npz", root / "veiled.npz"]
    for path, vectors in zip(paths, (clear, 0.4 * clear + noise[1]), strict=True):
        write_embeddings(Embeddings(vectors, ids, names, about), path)
    return paths


if __name__ == "__main__":
    main()
