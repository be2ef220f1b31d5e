"""Where work runs: this process, a pool of processes, or a Dask cluster. Nothing else knows.

A task is a top-level function of one item. It is called once per item, in any order and anywhere; what it returns
comes back with the item's number, so that the result never depends on where or in which order the work ran. A worker
that dies takes nothing with it: its items are given to another one.
"""

from __future__ import annotations

import ctypes
import logging
import math
import multiprocessing
import os
import queue
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from itertools import islice
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from veilmeter.core.errors import InputError, VeilmeterError, missing_extra, need
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
_ANSWER_SECONDS = 15.0  # for a scheduler or a worker that is asked something
_TELL_SECONDS = 5.0  # without a worker, until the user is told
_MUTE_SECONDS = 20.0  # without a sign of life of any worker, until the user is told: a busy one may miss a few
_FETCH_SECONDS = 10.0  # for a result to arrive, before the workers are looked at
_SILENT_SECONDS = 90.0  # without a sign of life, until a worker is dropped the first time
_MOST_FRAMES = 1000  # of Dask's greeting
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
    """A Dask cluster: its scheduler's address, `local` for one on this machine, or a batch system.

    A scheduler runs whatever is sent to it, so that the local one listens on this machine only, with keys that exist as
    long as it does. What goes wrong with a cluster is told in words; Dask's own log would be tracebacks.
    """

    def __init__(self, address: str, workers: int | None = None) -> None:
        need("distributed", "dask")
        from distributed import Client

        for logger in ("distributed", "tornado", "asyncio"):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        self._cluster: Any = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        kind, _, config = address.partition(":")
        if kind in BATCH_SYSTEMS:
            self._cluster = batch_cluster(kind, config or None, workers)
        elif address == "local":
            self._cluster = self._start_local(workers or cores())
        else:
            check_address(address)
        try:
            self._begin(_within(_ANSWER_SECONDS, Client, self._cluster or address, timeout="10s", set_as_default=False))
        except Exception as error:  # whatever answers there, or a cluster's configuration
            self._close_cluster()
            what = "it is silent" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise VeilmeterError(f"no Dask scheduler answers at {address}: {what.splitlines()[0]}") from None

    def _start_local(self, workers: int) -> Any:
        import dask
        from distributed import LocalCluster

        need("cryptography")
        self._scratch = tempfile.TemporaryDirectory(prefix="veilmeter-dask-", ignore_cleanup_errors=True)
        here = "127.0.0.1:0"  # with None the servers of figures would listen to everybody
        with dask.config.set(SELDOM | {"temporary-directory": self._scratch.name}):
            return LocalCluster(
                n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=here,
                worker_dashboard_address=here, security=True, local_directory=self._scratch.name,
            )  # fmt: skip

    def _begin(self, client: Any) -> None:
        self._client = client
        self._cores: dict[str, tuple[int, ...]] = {}
        self._at_once, self._preferred, self._looked = 1, list[str](), -math.inf
        self._last_worker, self._patience, self._told = time.monotonic(), _SILENT_SECONDS, False

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
            self._cores |= dict.fromkeys(new, ())  # of one that does not answer nothing is known
            with suppress(TimeoutError):
                own = _within(
                    _ANSWER_SECONDS, self._client.run, os.sched_getaffinity, 0, workers=new, on_error="ignore"
                )
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

    def _watch(self) -> None:
        """While no result comes: whether anybody is left to make one. A worker that gives no sign of life is dropped,
        so that others get its tasks; each time the patience doubles, as one that only seems dead must not be dropped
        again and again over the same work."""
        if self._client.status not in ("running", "connecting"):
            raise _lost()
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        now = time.monotonic()
        latest = max((about["last_seen"] for about in workers.values()), default=0.0)  # by the scheduler's clock
        if not workers:
            trouble = "has no worker left" if now - self._last_worker > _TELL_SECONDS else ""
        else:
            self._last_worker = now
            silence = self._client.run_on_scheduler(time.time) - latest
            trouble = "has no worker that answers" if silence > _MUTE_SECONDS else ""
        if trouble and not self._told:
            print(f"the cluster {trouble}; waiting for one (Ctrl-C to stop; what was done is kept)",
                  file=sys.stderr, flush=True)  # fmt: skip
        self._told = bool(trouble)
        for address, about in workers.items():
            if latest - about["last_seen"] > self._patience:
                print(f"the worker {address} is silent; its work is given to others", file=sys.stderr, flush=True)
                self._client.run_on_scheduler(_drop_worker, address)
                self._patience *= 2

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        from distributed.protocol.pickle import dumps

        numbers: dict[Any, int] = {}
        upcoming = iter(range(len(items)))
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def hand_out() -> None:
            self._look()
            for number in islice(upcoming, max(0, self._at_once - len(numbers))):
                to = {"workers": self._preferred, "allow_other_workers": True} if self._preferred else {}
                parcel = dumps((task, items[number]))  # the scheduler would unpack what it passes on
                with warnings.catch_warnings():  # that what is sent is large, and how to use Dask otherwise
                    warnings.filterwarnings("ignore", "Sending large graph")
                    future = self._client.submit(_on_worker, parcel, pure=False, **to)
                numbers[future.key] = number
                future.add_done_callback(done.put)

        with _explain_cluster():
            hand_out()
        while numbers:
            with _explain_cluster():
                try:
                    future = done.get(timeout=_LOOK_SECONDS)
                except queue.Empty:
                    self._watch()
                    continue
                number = numbers.pop(future.key)
                hand_out()  # before the result is fetched and put away, so that nobody waits for that
                result = self._fetch(future)
                future.release()
            yield number, result

    def _fetch(self, future: Any) -> Any:
        """A finished task's result, which a worker holds until it is fetched: one that falls silent just then is
        dropped, and another repeats the task. The time limit doubles, as large results may take longer."""
        limit = _FETCH_SECONDS
        while True:
            try:
                return future.result(timeout=limit)
            except TimeoutError:
                if future.status == "error":  # the task's own
                    raise
            self._watch()
            limit *= 2

    def close(self) -> None:
        with suppress(Exception):  # a scheduler that is gone; all work is done, or the error is on its way
            self._client.close(timeout=_ANSWER_SECONDS)
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            with suppress(AssertionError):  # Dask's own, where a job starts just then; all work is done
                self._cluster.close()
        if self._scratch is not None:
            self._scratch.cleanup()


def check_address(address: str) -> None:
    """An error for what is no address of a Dask scheduler: Dask itself would try for a long time, or for ever."""
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if host is None or port is None or scheme not in ("tcp", "tls"):
        raise InputError(f"not a cluster: {address[:200]!r}", fix=CLUSTER_HELP)
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_SECONDS) as connection:
            # A scheduler greets whoever comes, with a small number of frames. With TLS the guest speaks first.
            greeting = connection.recv(8, socket.MSG_WAITALL) if scheme == "tcp" else bytes([1] + 7 * [0])
            is_here = ip_address(connection.getpeername()[0]).is_loopback
    except (OSError, UnicodeError) as error:
        why = "it is silent" if isinstance(error, TimeoutError) else getattr(error, "strerror", None) or str(error)
        raise VeilmeterError(f"no Dask scheduler answers at {address}: {why}") from None
    if len(greeting) < 8 or not 0 < int.from_bytes(greeting, "little") < _MOST_FRAMES:
        raise VeilmeterError(f"no Dask scheduler answers at {address}: something else does")
    if scheme == "tcp" and not is_here:
        _ask_about(address)


def _ask_about(address: str) -> None:
    """Another machine without TLS: anyone on the way can read and change what is sent."""
    note = "use it in a network you trust, or tls:// (docs/how-to/cluster.md)"
    print(f"{address} is not encrypted: {note}", file=sys.stderr)
    if sys.stdin is not None and sys.stdin.isatty() and input("go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise VeilmeterError("stopped before anything was sent to the cluster")


def _within(seconds: float, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What the function returns; a TimeoutError where it does not within so many seconds."""
    outcome: Future[Any] = Future()

    def call() -> None:
        try:
            outcome.set_result(function(*arguments, **options))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return outcome.result(seconds)


async def _drop_worker(address: str, dask_scheduler: Any = None) -> None:
    await dask_scheduler.remove_worker(address, stimulus_id="veilmeter-silent-worker")


def _lost() -> VeilmeterError:
    return VeilmeterError(
        "the connection to the cluster's scheduler is lost",
        fix="run the same command again when it is back; what was done is kept",
    )


@contextmanager
def _explain_cluster() -> Iterator[None]:
    """Errors of the cluster, not of the work, in plain words."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise VeilmeterError(
            f"the workers of the cluster died over one item: {error}", fix="give the workers more memory"
        ) from None
    except (CancelledError, ClosedClientError, CommClosedError):
        raise _lost() from None
    except (ImportError, AttributeError, RuntimeError) as error:
        if not any(mark in str(error) for mark in _OTHER_CODE):
            raise
        raise _other_code(error) from error


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
