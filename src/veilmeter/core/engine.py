"""Where work runs: this process, a pool of processes, or a Dask cluster. Nothing else knows.

A task is a top-level function of one item. It is called once per item, in any order and anywhere; what it returns
comes back with the item's number, so that the result never depends on where or in which order the work ran. A worker
that dies takes nothing with it: its items are given to another one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Protocol, TypeVar, cast

from veilmeter.core.devices import chosen_device, is_gpu_used
from veilmeter.core.errors import InputError, Stopped, VeilmeterError
from veilmeter.core.stopping import let_through, raise_on, signals_held_back

Item = TypeVar("Item")
Result = TypeVar("Result")
Say = Callable[[str], None]  # shows a line to the user
Progress = Callable[[int, int], None]  # gets how many items are done, and of how many

DEATHS = 3  # a pool is restarted so often without a result in between; then something is wrong with the work itself
LAST_WORDS_SECONDS = 3.0  # for a worker that was asked to stop, before it is killed
QUEUE = 4  # items handed out ahead for each worker: results must not pile up, and a stop must not wait for thousands


class Engine(Protocol):
    """`run` yields (number of the item, result) as they come; `workers` is how many run at once."""

    @property
    def workers(self) -> int: ...

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]: ...

    def close(self) -> None: ...


def map_ordered(engine: Engine, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """All results in the order of the items.

    >>> map_ordered(Here(), abs, [-2, 1])
    [2, 1]
    """
    results: dict[int, Result] = dict(engine.run(task, items))
    return [results[number] for number in range(len(items))]


def stretches(count: int, workers: int) -> list[range]:
    """0..count-1 in consecutive parts of nearly one size, one for each worker: for items that share large arrays.

    >>> stretches(7, 3)
    [range(0, 2), range(2, 4), range(4, 7)]
    """
    parts = max(1, min(count, workers))
    return [range(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The items, each being made by a thread while the one before is in use.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        upcoming = thread.submit(next, source, end)
        while (item := upcoming.result()) is not end:
            upcoming = thread.submit(next, source, end)
            yield cast(Item, item)


def single_threaded() -> Any:
    """Linear algebra in one thread: how a product is split among threads changes its last digits. Every engine runs
    every task like this."""
    return _thread_pools(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _thread_pools(_: int) -> Any:
    """Those of the libraries that are loaded by now."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


class Here:
    """This process, one item after the other."""

    workers = 1

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        for number, item in enumerate(items):
            with single_threaded():
                result = task(item)
            yield number, result

    def close(self) -> None:
        pass


class _WorkerProcess(SpawnProcess):
    """A worker that never prints a traceback: what goes wrong between the processes when a run is stopped is nobody's
    concern, and a worker that dies otherwise is noticed by the pool."""

    def run(self) -> None:
        try:
            super().run()
        except Exception:
            os._exit(1)


class _WorkerContext(SpawnContext):
    Process = _WorkerProcess


def start_resource_tracker() -> None:
    """A helper of multiprocessing that outlives all workers. Before them, as its start lets signals through again; and
    with signals held back, as it ignores only two of those that reach the whole group."""
    if os.name == "posix":
        with signals_held_back():
            resource_tracker.ensure_running()


@dataclass(frozen=True, slots=True)
class _InterruptibleTask:
    """A task in a worker. When it is asked to stop it leaves what is under way, so that files are removed and programs
    are ended that it had begun. Between two tasks, or before the first, a worker that is asked to stop ends at once."""

    task: Callable[[Any], Any]

    def __call__(self, item: Any) -> Any:
        raise_on({signal.SIGTERM}, Stopped, 128 + signal.SIGTERM)
        try:
            with single_threaded():
                return self.task(item)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Pool:
    """Processes on this machine, one thread each."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._handed_out: set[Future[Any]] = set()  # and not yet back

    def _start(self) -> ProcessPoolExecutor:
        if self._pool is None:
            start_resource_tracker()
            with signals_held_back():
                self._pool = ProcessPoolExecutor(self.workers, mp_context=_WorkerContext(), initializer=_prepare_worker)
        return self._pool

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        left = list(range(len(items)))[::-1]
        waiting: dict[Future[Any], int] = {}
        deaths = 0
        try:
            while left or waiting:
                try:
                    while left and len(waiting) < QUEUE * self.workers:
                        pool = self._start()
                        with signals_held_back():
                            future = pool.submit(_InterruptibleTask(task), items[left[-1]])
                        self._handed_out.add(future)
                        waiting[future] = left.pop()
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._handed_out.discard(future)
                        result = future.result()
                        yield waiting.pop(future), result
                        deaths = 0
                except BrokenProcessPool:
                    # Somebody killed a worker, or it ran out of memory. Nobody knows which item it was: all that were
                    # out are done again.
                    deaths += 1
                    if deaths == DEATHS:
                        raise VeilmeterError(
                            f"worker processes died {DEATHS} times without finishing anything",
                            fix="there may be too little memory; try fewer --jobs",
                        ) from None
                    left += sorted(waiting.values(), reverse=True)
                    waiting.clear()
                    self._handed_out.clear()
                    self.close()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Work that nobody waits for any longer is not finished: an hour of speech would keep a stopped run waiting."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        abandoned = [future for future in self._handed_out if not future.done() and not future.cancel()]
        self._handed_out.clear()
        if not abandoned:
            pool.shutdown(wait=True, cancel_futures=True)
            return
        processes, manager = list(pool._processes.values()), cast(Any, pool._executor_manager_thread)
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        _wait_for_end(processes)
        for process in processes:
            process.kill()
        if manager is not None:  # it closes what was open between the processes; Python must not leave before
            manager.join()


def _wait_for_end(processes: Iterable[Any]) -> None:
    """Each has time to clear up, however soon the others end."""
    running, end = {process.sentinel for process in processes}, time.monotonic() + LAST_WORDS_SECONDS
    while running and (left := end - time.monotonic()) > 0:
        running -= set(connection.wait(running, left))


def _prepare_worker() -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the main process ends the work
    let_through(signal.SIGTERM)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: Any) -> None:
    """A main process that was killed leaves nobody behind who works on for hours."""
    parent.join()
    os._exit(1)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def engine_for(engine: Engine | None, much: bool) -> Engine:
    """The engine that was given, for work that is worth sending to it; else this process."""
    return engine if engine is not None and much else Here()


def open_engine(jobs: int | None = None, cluster: str | None = None) -> Engine:
    """`--jobs` and `--cluster` as an engine: all cores by default, this process alone with one job."""
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be at least 1 (got {jobs})")
    if cluster is not None:
        if chosen_device() == "cuda":
            raise InputError("--device cuda is for this machine, not for --cluster", fix="leave one of them out")
        from veilmeter.core.cluster import Cluster

        return Cluster(cluster, jobs)
    workers = cores() if jobs is None else jobs
    if jobs is None and is_gpu_used():
        workers = 1
    return Here() if workers == 1 else Pool(workers)
