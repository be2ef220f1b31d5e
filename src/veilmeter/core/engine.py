"""Where work runs: this process, a pool of processes, or a Dask cluster. Nothing else knows.

A task is a top-level function of one item. It is called once per item, in any order and anywhere; what it returns
comes back with the item's number, so that the result never depends on where or in which order the work ran. A worker
that dies takes nothing with it: its items are given to another one.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from veilmeter.core.errors import InputError, VeilmeterError, missing_extra
from veilmeter.core.files import read_input_text
from veilmeter.core.option_groups import CLUSTER_HELP
from veilmeter.core.processes import raise_on_signal

BATCH_SYSTEMS = {"slurm": "SLURMCluster", "oar": "OARCluster", "pbs": "PBSCluster"}
LARGEST_CONFIG, DEEPEST_CONFIG = 100_000, 20


def batch_cluster(kind: str, config: str | None, workers: int | None) -> Any:
    """A Dask cluster whose workers are jobs of a batch system, as the user's configuration describes them."""
    try:
        import dask
        import dask_jobqueue
    except ImportError:
        raise missing_extra("dask-jobqueue", "cluster") from None
    if config is not None:
        dask.config.update(dask.config.config, read_config(Path(config)))
    if not dask.config.get(f"jobqueue.{kind}.cores", None):
        raise InputError(
            f"dask-jobqueue has no configuration for {kind}",
            fix=f"name it as --cluster {kind}:FILE.yaml (jobqueue: {{{kind}: {{cores: .., memory: ..}}}})",
        )
    cluster = getattr(dask_jobqueue, BATCH_SYSTEMS[kind])()
    cluster.scale(jobs=workers or 1)
    return cluster


def read_config(path: Path) -> dict[str, Any]:
    import yaml

    text = read_input_text(path, most=LARGEST_CONFIG)
    try:
        # Aliases let a few lines grow to gigabytes, and deep nesting takes minutes; a configuration needs neither.
        if not _is_flat(text):
            raise InputError(
                "not a plain configuration file", path=path, fix="write it without YAML aliases or deep nesting"
            )
        config = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an integer of thousands of digits
        raise InputError(f"this is not YAML: {error}", path=path) from None
    if not isinstance(config, dict) or "jobqueue" not in config:
        raise InputError("no `jobqueue` section in it", path=path)
    return config


def _is_flat(text: str) -> bool:
    """No aliases, and nothing deeper than a few levels; stops reading where that is clear."""
    import yaml

    depth = 0
    for event in yaml.parse(text):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST_CONFIG or isinstance(event, yaml.AliasEvent):
            return False
    return True


Item = TypeVar("Item")
Result = TypeVar("Result")
Say = Callable[[str], None]  # shows a line to the user
Progress = Callable[[int, int], None]  # gets how many items are done, and of how many
ShowProgress = Callable[[str], AbstractContextManager[Progress | None]]  # shows the progress of work with this title

DEATHS = 3  # a pool is restarted so often without a result in between; then something is wrong with the work itself
LAST_WORDS_SECONDS = 3.0  # for a worker that was asked to stop, before it is killed
_LOOK_SECONDS = 1.0  # between two looks at which workers a cluster has
QUEUE = 4  # items handed out ahead for each worker: results must not pile up, and a stop must not wait for thousands
_HAS_MASKS = hasattr(signal, "pthread_sigmask")  # not on Windows
_STOPPING = {signal.SIGINT, signal.SIGTERM} | ({signal.SIGHUP, signal.SIGQUIT} if _HAS_MASKS else set())
_GLIBC = ((-3, 1 << 25), (-1, 1 << 26))  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, where they end up by themselves
# How often Dask looks at itself: four workers that do nothing take a seventh of a core as it comes, a thirtieth so, and
# its profiler takes a twentieth of the time of those that work.
SELDOM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.worker.memory.monitor-interval": "500ms",
}
# What Dask says where a scheduler or a worker has no veilmeter, or another one.
_OTHER_CODE = ("'veilmeter", "_on_worker", "deserialization of the task graph")


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


class Here:
    """This process, one item after the other."""

    workers = 1

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        for number, item in enumerate(items):
            yield number, task(item)

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


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """A signal must not interrupt the start of a process halfway. The new process inherits the mask, so that Ctrl-C,
    which reaches the whole group, never ends it in the middle of an import."""
    if not _HAS_MASKS:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class _InterruptibleTask:
    """A task in a worker. When it is asked to stop it leaves what is under way, so that files are removed and programs
    are ended that it had begun. Between two tasks, or before the first, a worker that is asked to stop ends at once."""

    task: Callable[[Any], Any]

    def __call__(self, item: Any) -> Any:
        raise_on_signal(signal.SIGTERM, _stop_once)
        try:
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
            if _HAS_MASKS:
                resource_tracker.ensure_running()  # it would let signals through again in the middle of a start
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
                        with _signals_held_back():
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
        processes = list(pool._processes.values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        _wait_for_end(processes)
        for process in processes:
            process.kill()
        pool.shutdown(wait=True)  # nobody works any longer: this closes what was open between the processes


def _wait_for_end(processes: Iterable[Any]) -> None:
    """Each has time to clear up, however soon the others end."""
    running, end = {process.sentinel for process in processes}, time.monotonic() + LAST_WORDS_SECONDS
    while running and (left := end - time.monotonic()) > 0:
        running -= set(connection.wait(running, left))


def _prepare_worker() -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the main process ends the work
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _stop_once() -> SystemExit:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not disturb the clearing up
    return SystemExit(128 + signal.SIGTERM)


def _leave_with(parent: Any) -> None:
    """A main process that was killed leaves nobody behind who works on for hours."""
    parent.join()
    os._exit(1)


class Cluster:
    """A Dask cluster: its scheduler's address, `local` for one on this machine, or a batch system."""

    def __init__(self, address: str, workers: int | None = None) -> None:
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError:
            raise missing_extra("distributed", "cluster") from None
        self._cluster: Any = None
        kind, _, config = address.partition(":")
        if kind in BATCH_SYSTEMS:
            self._cluster = batch_cluster(kind, config or None, workers)
        elif address == "local":
            with dask.config.set(SELDOM):
                self._cluster = LocalCluster(n_workers=workers or cores(), threads_per_worker=1, dashboard_address=None)
        elif "://" not in address:
            raise InputError(f"not a cluster: {address!r}", fix=CLUSTER_HELP)
        try:
            self._begin(Client(self._cluster or address, timeout="10s", set_as_default=False))
        except OSError as error:
            raise VeilmeterError(f"the cluster at {address} does not answer: {error}") from None

    def _begin(self, client: Any) -> None:
        self._client = client
        self._cores: dict[str, tuple[int, ...]] = {}
        self._at_once, self._preferred, self._looked = 1, list[str](), -math.inf

    @property
    def workers(self) -> int:
        return max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def _look(self) -> None:
        """How many tasks are handed out at a time, and to whom: a few for each worker. Where workers share cores, as
        many as these can do, to as many workers: more would only take memory, and the processor's cache from each
        other. Workers come and go, so this is asked again and again. Hand-written: Dask does not know which workers
        share cores, so that neither its resources nor its adaptive scaling can express it."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        new = [address for address in workers if address not in self._cores]
        if new and hasattr(os, "sched_getaffinity"):
            own = self._client.run(os.sched_getaffinity, 0, workers=new, on_error="ignore")
            self._cores |= {address: tuple(sorted(cores)) for address, cores in own.items()}
        sharing: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for address, about in workers.items():
            sharing.setdefault((about["host"], self._cores.get(address, ())), []).append(address)
        seats = [address for (_, cores), those in sharing.items() for address in those[: len(cores) or None]]
        if len(seats) < len(workers):
            self._at_once, self._preferred = len(seats), seats
        else:
            self._at_once, self._preferred = QUEUE * max(len(workers), 2), []
        self._looked = time.monotonic()

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        from distributed import KilledWorker, as_completed
        from distributed.protocol.pickle import dumps

        numbers: dict[Any, int] = {}
        upcoming = iter(range(len(items)))
        done = as_completed([], loop=self._client.loop)

        def hand_out() -> None:
            self._look()
            for number in islice(upcoming, max(0, self._at_once - len(numbers))):
                to = {"workers": self._preferred, "allow_other_workers": True} if self._preferred else {}
                parcel = dumps((task, items[number]))  # the scheduler would unpack what it passes on
                with warnings.catch_warnings():  # that what is sent is large, and how to use Dask otherwise
                    warnings.filterwarnings("ignore", "Sending large graph")
                    future = self._client.submit(_on_worker, parcel, pure=False, **to)
                numbers[future.key] = number
                done.add(future)

        hand_out()
        for future in done:
            number = numbers.pop(future.key)
            hand_out()  # before the result is fetched and put away, so that nobody waits for that
            try:
                result = future.result()
            except KilledWorker as error:
                raise VeilmeterError(
                    f"the workers of the cluster died over one item: {error}", fix="give the workers more memory"
                ) from None
            except (ImportError, AttributeError, RuntimeError) as error:
                if not any(mark in str(error) for mark in _OTHER_CODE):
                    raise
                raise _other_code(error) from error
            future.release()
            yield number, result

    def close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            with suppress(AssertionError):  # Dask's own, where a job starts just then; all work is done
                self._cluster.close()


def _on_worker(parcel: bytes) -> Any:
    from distributed.protocol.pickle import loads

    _keep_memory()
    try:
        task, item = loads(parcel)
    except (ImportError, AttributeError) as error:
        raise _other_code(error) from error
    return task(item)


def _other_code(error: Exception) -> VeilmeterError:
    return VeilmeterError(
        f"the cluster can't do this work: {error}",
        fix="install the same version of veilmeter, with its extras, for the scheduler and all workers",
    )


@cache
def _keep_memory() -> None:
    """Let a worker use freed memory again, as any other process does: Dask has it given back to the system at once, and
    arrays that come and go would be fetched again each time, page by page, which takes a quarter of the time.
    By ctypes: glibc reads the variables that would do it before Python starts, and no library sets them later."""
    with suppress(OSError, AttributeError, TypeError):  # only the C library of most Linux systems has this
        mallopt = ctypes.CDLL(None).mallopt
        for setting, size in _GLIBC:
            mallopt(setting, size)


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
        return Cluster(cluster, jobs)
    workers = cores() if jobs is None else jobs
    return Here() if workers == 1 else Pool(workers)
