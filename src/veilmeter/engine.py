"""Where work runs: this process, a pool of processes, or a Dask cluster. Nothing else knows.

A task is a top-level function of one item. It is called once an item, in any order and anywhere; what it returns
comes back with the item's number, so that the result never depends on where or in which order the work ran.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from veilmeter.errors import VeilmeterError, missing_extra

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """`run` yields (number of the item, result) as they come; `workers` is how many run at once."""

    workers: int

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]: ...

    def close(self) -> None: ...


def ordered(engine: Engine, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """All results in the order of the items."""
    results: dict[int, Result] = dict(engine.run(task, items))
    return [results[number] for number in range(len(items))]


class Here:
    """This process, one item after the other."""

    workers = 1

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        for number, item in enumerate(items):
            yield number, task(item)

    def close(self) -> None:
        pass


class Pool:
    """Processes on this machine, one thread each."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ProcessPoolExecutor(
            workers, mp_context=multiprocessing.get_context("spawn"), initializer=_single_threaded
        )

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        waiting: dict[Future[Any], int] = {}
        upcoming = iter(enumerate(items))
        try:
            while True:
                # A short queue: results of a long list must not pile up, and a stop must not wait for thousands.
                while len(waiting) < 4 * self.workers and (following := next(upcoming, None)) is not None:
                    waiting[self._pool.submit(task, following[1])] = following[0]
                if not waiting:
                    return
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _single_threaded() -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"


class Cluster:
    """A Dask cluster; `address` as in tcp://host:8786, or `local` for one on this machine."""

    def __init__(self, address: str, workers: int | None = None) -> None:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise missing_extra("distributed", "cluster") from None
        self._cluster: Any = None
        if address == "local":
            self._cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        try:
            self._client = Client(self._cluster or address, timeout="10s")
        except OSError as error:
            raise VeilmeterError(f"the cluster at {address} does not answer: {error}") from None
        self.workers = max(1, len(self._client.scheduler_info()["workers"]))

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        from distributed import as_completed

        futures = {self._client.submit(task, item, pure=False): number for number, item in enumerate(items)}
        for future in as_completed(list(futures)):
            yield futures.pop(future), future.result()

    def close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_engine(jobs: int | None = None, cluster: str | None = None) -> Engine:
    """`--jobs` and `--cluster` as an engine: all cores by default, this process alone with one job."""
    if cluster is not None:
        return Cluster(cluster, jobs)
    workers = cores() if jobs is None else jobs
    if workers < 1:
        raise VeilmeterError(f"--jobs {jobs} makes no sense", fix="give 1 or more")
    return Here() if workers == 1 else Pool(workers)
