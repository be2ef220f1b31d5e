"""A Dask cluster as an engine: its connection, its workers, and what goes wrong with them."""

from __future__ import annotations

import ctypes
import logging
import math
import os
import queue
import socket
import ssl
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from veilmeter._version import __version__
from veilmeter.core.engine import QUEUE, Item, Result, cores, single_threaded, start_resource_tracker
from veilmeter.core.errors import InputError, VeilmeterError, missing_extra, need
from veilmeter.core.files import read_input_text, scratch_folder
from veilmeter.core.option_groups import CLUSTER_HELP
from veilmeter.core.stopping import signals_held_back

BATCH_SYSTEMS = {"slurm": "SLURMCluster", "oar": "OARCluster", "pbs": "PBSCluster"}
LARGEST_CONFIG, DEEPEST_CONFIG = 100_000, 20
_LOOK_SECONDS = 1.0  # between two looks at which workers a cluster has
_ANSWER_SECONDS = 15.0  # for a scheduler or a worker that is asked something
_TELL_SECONDS = 5.0  # without a worker, until the user is told
_MUTE_SECONDS = 20.0  # without a sign of life of any worker, until the user is told: a busy one may miss a few
_FETCH_SECONDS = 10.0  # for a result to arrive, before the workers are looked at
_SILENT_SECONDS = 90.0  # without a sign of life, until a worker is dropped the first time
# Of Dask, in this process and in its workers: each has a level of its own.
_LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application", "asyncio")
_KEYS_HELP = "set them as docs/how-to/cluster.md shows"
_MOST_FRAMES = 1000  # of Dask's greeting
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


class Cluster:
    """A Dask cluster: its scheduler's address, `local` for one on this machine, or a batch system.

    A scheduler runs whatever is sent to it, so that the local one listens on this machine only, with keys that exist as
    long as it does. What goes wrong with a cluster is told in words; Dask's own log would be tracebacks.
    """

    def __init__(self, address: str, workers: int | None = None) -> None:
        need("distributed", "dask")
        from distributed import Client

        for logger in _LOGGERS:
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        self._cluster: Any = None
        self._scratch = ExitStack()
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
        scratch = str(self._scratch.enter_context(scratch_folder()))
        here = "127.0.0.1:0"  # with None the servers of figures would listen to everybody
        loggers = {"distributed.nanny.pre-spawn-environ.DASK_LOGGING": str(dict.fromkeys(_LOGGERS, "critical"))}
        start_resource_tracker()
        with dask.config.set(SELDOM | loggers | {"temporary-directory": scratch}), signals_held_back():
            return LocalCluster(
                n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=here,
                worker_dashboard_address=here, security=True, local_directory=scratch,
                silence_logs=logging.CRITICAL,
            )  # fmt: skip

    def _begin(self, client: Any) -> None:
        self._client = client
        self._cores: dict[str, tuple[int, ...]] = {}
        self._at_once, self._preferred, self._looked = 1, list[str](), -math.inf
        self._last_worker, self._patience, self._told = time.monotonic(), _SILENT_SECONDS, ""

    @property
    def workers(self) -> int:
        with _explain_cluster():
            return max(1, len(self._list_workers()))

    def _list_workers(self) -> dict[str, Any]:
        """The workers that the scheduler knows, by address."""
        about = self._ask(self._client.scheduler_info, n_workers=-1)
        if self._client.status not in ("running", "connecting") or "workers" not in about:  # closed just now
            raise _no_scheduler()
        workers: dict[str, Any] = about["workers"]
        return workers

    def _ask(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function that waits for the scheduler; the user is told if that takes long."""
        answer = _start(function, *arguments, **options)
        try:
            if not wait([answer], _TELL_SECONDS).done:
                self._tell("'s scheduler does not answer; waiting for it")
            return answer.result()
        except OSError:
            raise _no_scheduler() from None

    def _tell(self, trouble: str) -> None:
        """Tell the user once what is wrong with the cluster, until it is well again."""
        if trouble not in ("", self._told):
            print(f"the cluster{trouble} (Ctrl-C to stop; what was done is kept)", file=sys.stderr, flush=True)
        self._told = trouble

    def _look(self) -> None:
        """How many tasks are handed out at a time, and to whom: a few for each worker. Where workers share cores, as
        many as these can do, to as many workers: more would only take memory, and the processor's cache from each
        other. Workers come and go, so this is asked again and again. Hand-written: Dask does not know which workers
        share cores, so that neither its resources nor its adaptive scaling can express it."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        workers = self._list_workers()
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
        workers = self._list_workers()
        now = time.monotonic()
        latest = max((about["last_seen"] for about in workers.values()), default=0.0)  # by the scheduler's clock
        if not workers:
            self._tell(" has no worker left; waiting for one" if now - self._last_worker > _TELL_SECONDS else "")
        else:
            self._last_worker = now
            silence = self._ask(self._client.run_on_scheduler, time.time) - latest
            self._tell(" has no worker that answers; waiting for one" if silence > _MUTE_SECONDS else "")
        for address, about in workers.items():
            if latest - about["last_seen"] > self._patience:
                print(f"the worker {address} is silent; its work is given to others", file=sys.stderr, flush=True)
                self._ask(self._client.run_on_scheduler, _drop_worker, address)
                self._patience *= 2

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        from distributed.protocol.pickle import dumps

        numbers: dict[Any, int] = {}
        upcoming = iter(range(len(items)))
        folder = os.getcwd()
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def call(parcel: bytes, folder: str, version: str) -> Any:
            """Sent as code, not as a name: a worker that has no veilmeter, or another one, can say so."""
            import veilmeter

            if veilmeter.__version__ != version:
                raise ImportError(f"a worker has 'veilmeter' {veilmeter.__version__}, and this is {version}")
            from veilmeter.core.cluster import _on_worker

            return _on_worker(parcel, folder)

        def hand_out() -> None:
            self._look()
            for number in islice(upcoming, max(0, self._at_once - len(numbers))):
                to = {"workers": self._preferred, "allow_other_workers": True} if self._preferred else {}
                parcel = dumps((task, items[number]))  # the scheduler would unpack what it passes on
                with warnings.catch_warnings():  # that what is sent is large, and how to use Dask otherwise
                    warnings.filterwarnings("ignore", "Sending large graph")
                    future = self._client.submit(call, parcel, folder, __version__, pure=False, **to)
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
        self._scratch.close()


def check_address(address: str) -> None:
    """Refuse an invalid address of a Dask scheduler: Dask itself would try for a long time, or for ever."""
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if host is None or port is None or scheme not in ("tcp", "tls"):
        raise InputError(f"not a cluster: {address[:200]!r}", fix=CLUSTER_HELP)
    keys = _read_keys() if scheme == "tls" else None
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_SECONDS) as connection:
            is_here = ip_address(connection.getpeername()[0]).is_loopback
            greeting = _receive_greeting(connection, keys)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        if isinstance(error, TimeoutError):
            why = "it is silent"
        elif isinstance(error, ssl.SSLError):
            why = f"it uses no TLS, or other keys ({error.reason or why})"
        raise VeilmeterError(f"no Dask scheduler answers at {address}: {why}") from None
    if len(greeting) < 8 or not 0 < int.from_bytes(greeting, "little") < _MOST_FRAMES:
        raise VeilmeterError(f"no Dask scheduler answers at {address}: something else does")
    if scheme == "tcp" and not is_here:
        _ask_about(address)


def _read_keys() -> ssl.SSLContext:
    from distributed.security import Security

    try:
        keys: ssl.SSLContext | None = Security().get_connection_args("client")["ssl_context"]
    except (OSError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the TLS keys of Dask's configuration can't be used: {why}", fix=_KEYS_HELP) from None
    if keys is None:
        raise InputError("tls:// needs keys, and Dask's configuration names none", fix=_KEYS_HELP)
    return keys


def _receive_greeting(connection: socket.socket, keys: ssl.SSLContext | None) -> bytes:
    """A scheduler greets anyone who comes, at once, with a small number of frames. What waits for a request instead,
    such as a web server, gets one that it refuses; a scheduler waits for more than these bytes."""
    if keys is None:
        connection.sendall(b"?\r\n\r\n")
        return connection.recv(8)
    with keys.wrap_socket(connection) as encrypted:
        return encrypted.recv(8)


def _ask_about(address: str) -> None:
    """Another machine without TLS: anyone on the way can read and change what is sent."""
    note = "use it in a network you trust, or tls:// (docs/how-to/cluster.md)"
    print(f"{address} is not encrypted: {note}", file=sys.stderr)
    if sys.stdin is not None and sys.stdin.isatty() and input("go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise VeilmeterError("stopped before anything was sent to the cluster")


def _within(seconds: float, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The function's result; a TimeoutError if it takes longer than so many seconds."""
    return _start(function, *arguments, **options).result(seconds)


def _start(function: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
    """The function's result, which a thread works on."""
    outcome: Future[Any] = Future()

    def call() -> None:
        try:
            outcome.set_result(function(*arguments, **options))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return outcome


async def _drop_worker(address: str, dask_scheduler: Any = None) -> None:
    await dask_scheduler.remove_worker(address, stimulus_id="veilmeter-silent-worker")


def _no_scheduler() -> VeilmeterError:
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
            f"{error.allowed_failures + 1} workers of the cluster died over the same item",
            fix="give the workers more memory",
        ) from None
    except (CancelledError, ClosedClientError, CommClosedError):
        raise _no_scheduler() from None
    except (ImportError, AttributeError, RuntimeError) as error:
        if not any(mark in str(error) for mark in _OTHER_CODE):
            raise
        raise _other_code(error) from error


def _on_worker(parcel: bytes, folder: str) -> Any:
    """Do a task in the main process's working folder: paths may be relative to it."""
    from distributed.protocol.pickle import loads

    _keep_memory()
    with suppress(OSError):
        os.chdir(folder)
    try:
        task, item = loads(parcel)
    except (ImportError, AttributeError) as error:
        raise _other_code(error) from error
    with single_threaded():
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
