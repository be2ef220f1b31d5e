"""A cluster in trouble: an address that is none, workers that die or fall silent, a scheduler that is gone."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info

from veilmeter.core import cluster as module
from veilmeter.core.cluster import Cluster
from veilmeter.core.engine import map_ordered
from veilmeter.core.errors import InputError, VeilmeterError

pytest.importorskip("distributed")


def slowly(number: int) -> int:
    time.sleep(0.3)
    return number * number


def threads(_: object) -> int:
    """Of linear algebra, at most."""
    import numpy as np

    np.ones(1)
    return max(int(pool["num_threads"]) for pool in threadpool_info())


@pytest.mark.parametrize(
    "address",
    ["", "x", "tcp://", "tcp://:", "tcp://:8786", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://127.0.0.1:-1",
     "tcp://[::1", "http://127.0.0.1:80", "ucx://127.0.0.1:1", "inproc://a", "://", "local:"],
)  # fmt: skip
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(InputError, match="not a cluster"):
        Cluster(address)


@pytest.fixture
def own_keys() -> Iterator[None]:
    """TLS keys in Dask's configuration that belong to no scheduler."""
    pytest.importorskip("cryptography")
    import dask
    from distributed import Security

    keys = Security.temporary()
    names = {"ca-file": keys.tls_ca_file, "client.cert": keys.tls_client_cert, "client.key": keys.tls_client_key}
    with dask.config.set({f"distributed.comm.tls.{name}": value for name, value in names.items()}):
        yield


@pytest.mark.usefixtures("own_keys")
@pytest.mark.parametrize(
    ("scheme", "answer", "why"),
    [("tcp", None, "it is silent"), ("tls", None, "it is silent"),
     ("tcp", b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else does"), ("tls", b"HTTP/1.1 400 ", "uses no TLS"),
     ("tcp", b"", "something else does"), ("tls", b"", "no TLS")],
)  # fmt: skip
def test_what_is_no_scheduler_is_told_within_seconds(
    scheme: str, answer: bytes | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but a scheduler speaks first."""
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)  # silence
                if answer is not None:
                    connection.recv(1000)
                    connection.sendall(answer)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(VeilmeterError, match=f"no Dask scheduler answers.*{why}"):
            Cluster(f"{scheme}://127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()
    with pytest.raises(VeilmeterError, match="no Dask scheduler answers"):
        Cluster("tcp://127.0.0.1:1")


def loud_loggers(_: object) -> list[str]:
    """Those of Dask that would print a traceback: some have a level of their own."""
    loggers = [logging.getLogger(name) for name in (*logging.root.manager.loggerDict, "asyncio")]
    roots = ("distributed", "tornado", "asyncio")
    return [one.name for one in loggers if one.name.split(".")[0] in roots and one.isEnabledFor(logging.ERROR)]


def test_tls_needs_keys() -> None:
    with pytest.raises(InputError, match="needs keys"):
        Cluster("tls://127.0.0.1:1")


@pytest.mark.usefixtures("own_keys")
def test_a_local_cluster_is_nobody_elses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It listens on this machine only, takes nobody without its keys, and leaves nothing behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 5.0)
    cluster = Cluster("local", 1)
    try:
        address = cluster._cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        assert map_ordered(cluster, abs, [-1, 2]) == [1, 2]
        assert loud_loggers(None) == []
        assert map_ordered(cluster, loud_loggers, [None]) == [[]]  # a run that ends early meets errors in workers
        for scheme, why in (("tcp", "something else"), ("tls", "other keys")):
            with pytest.raises(VeilmeterError, match=f"no Dask scheduler answers.*{why}"):
                Cluster(address.replace("tls", scheme))
    finally:
        cluster.close()
    assert list(tmp_path.iterdir()) == []


def test_another_machine_is_asked_about(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Connection:
        def __enter__(self) -> Connection:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def sendall(self, _: bytes) -> None:
            pass

        def recv(self, *_: object) -> bytes:
            return (3).to_bytes(8, "little")

        def getpeername(self) -> tuple[str, int]:
            return peer, 8786

    monkeypatch.setattr(module.socket, "create_connection", lambda *_, **__: Connection())
    monkeypatch.setattr(module, "_read_keys", lambda: type("Keys", (), {"wrap_socket": lambda _, socket: socket})())
    monkeypatch.setattr("builtins.input", lambda _: "n")
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    peer = "127.0.0.1"
    module.check_address("tcp://here:8786")
    peer = "192.0.2.1"
    module.check_address("tls://elsewhere:8786")
    assert capsys.readouterr().err == ""
    with pytest.raises(VeilmeterError, match="before anything was sent"):
        module.check_address("tcp://elsewhere:8786")
    monkeypatch.setattr("builtins.input", lambda _: "y")
    module.check_address("tcp://elsewhere:8786")
    assert "is not encrypted" in capsys.readouterr().err


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started = []

    def start_one(*words: str) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
        command = [sys.executable, "-m", *words]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.kill()
        process.wait()


def scheduler(start: Callable[..., subprocess.Popen[str]], folder: Path) -> tuple[subprocess.Popen[str], str]:
    file = folder / "scheduler.json"
    process = start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                    "--scheduler-file", str(file))  # fmt: skip
    import json

    end = time.monotonic() + 60
    while time.monotonic() < end:
        if file.is_file() and file.stat().st_size:
            return process, str(json.loads(file.read_text())["address"])
        time.sleep(0.1)
    raise AssertionError("no scheduler")


def worker(start: Callable[..., subprocess.Popen[str]], address: str) -> subprocess.Popen[str]:
    return start("distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard")


def test_silent_and_killed_workers_and_a_scheduler_that_is_gone(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "_SILENT_SECONDS", 3.0)
    monkeypatch.setattr(module, "_TELL_SECONDS", 1.0)
    main, address = scheduler(start, tmp_path)
    workers = [worker(start, address) for _ in range(2)]
    cluster = Cluster(address)
    try:
        cluster._client.wait_for_workers(2, timeout=200)
        assert map_ordered(cluster, os.path.abspath, ["corpus"]) == [os.path.abspath("corpus")]
        assert map_ordered(cluster, threads, [0]) == [1]  # though these workers were not started by a nanny
        results = cluster.run(slowly, range(12))
        done = dict([next(results)])
        workers[0].send_signal(signal.SIGSTOP)  # the other one gets its tasks
        done |= dict(results)
        assert done == {number: number * number for number in range(12)}

        results = cluster.run(slowly, range(6))
        done = dict([next(results)])
        for process in workers:
            process.kill()
        threading.Timer(4.0, worker, (start, address)).start()
        done |= dict(results)
        assert done == {number: number * number for number in range(6)}
        told = capfd.readouterr().err
        assert "no worker left; waiting" in told
        assert "no worker that answers" not in told
        assert "Traceback" not in told

        results = cluster.run(slowly, range(20))
        next(results)
        main.kill()
        with pytest.raises(VeilmeterError, match="scheduler is lost"):
            list(results)
        for more in (lambda: list(cluster.run(slowly, range(2))), lambda: cluster.workers):
            with pytest.raises(VeilmeterError, match="scheduler is lost"):
                more()
    finally:
        cluster.close()
    assert "Traceback" not in capfd.readouterr().err


WITHOUT = """import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "veilmeter":
            raise ModuleNotFoundError("No module named 'veilmeter'")
sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (WITHOUT, "No module named 'veilmeter'"),
        ("import veilmeter; veilmeter.__version__ = '0.0.9'", "0.0.9, and this"),
    ],
)
def test_workers_without_veilmeter_or_with_another_one_say_so(
    code: str, told: str, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    _, address = scheduler(start, tmp_path)
    (tmp_path / "sitecustomize.py").write_text(code)
    worker(start, address)
    cluster = Cluster(address)
    try:
        with pytest.raises(VeilmeterError, match=f"{told}.*install the same version"):
            list(cluster.run(slowly, range(3)))
    finally:
        cluster.close()


@pytest.mark.parametrize(
    ("who", "told"),
    [("worker", "the cluster has no worker that answers; waiting for one (Ctrl-C to stop"),
     ("scheduler", "the cluster's scheduler does not answer; waiting for it (Ctrl-C to stop")],
)  # fmt: skip
def test_the_only_one_falls_silent(
    who: str, told: str, start: Callable[..., subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Nobody else can have its work: the user is told once, and it goes on when the worker does."""
    monkeypatch.setattr(module, "_MUTE_SECONDS", 3.0)
    main, address = scheduler(start, tmp_path)
    worker_process = worker(start, address)
    silent = worker_process if who == "worker" else main
    cluster = Cluster(address)
    try:
        cluster._client.wait_for_workers(1, timeout=200)
        results = cluster.run(slowly, range(6))
        done = dict([next(results)])
        silent.send_signal(signal.SIGSTOP)
        threading.Timer(8.0, silent.send_signal, (signal.SIGCONT,)).start()
        done |= dict(results)
        assert done == {number: number * number for number in range(6)}
    finally:
        cluster.close()
    assert capfd.readouterr().err.count(told) == 1


def test_a_worker_falls_silent_with_a_finished_result(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results stay on the workers until they are fetched: waiting for one took ten minutes."""
    monkeypatch.setattr(module, "_SILENT_SECONDS", 2.0)
    monkeypatch.setattr(module, "_FETCH_SECONDS", 1.0)
    _, address = scheduler(start, tmp_path)
    processes = {process.pid: process for process in (worker(start, address) for _ in range(2))}
    cluster = Cluster(address)
    fetch = cluster._fetch

    def stop_whoever_has_it(future: Any) -> Any:
        holder = cluster._client.who_has([future])[future.key][0]
        pid = cluster._client.run(os.getpid, workers=[holder])[holder]
        monkeypatch.setattr(cluster, "_fetch", fetch)
        processes[pid].send_signal(signal.SIGSTOP)
        return fetch(future)

    monkeypatch.setattr(cluster, "_fetch", stop_whoever_has_it)
    try:
        cluster._client.wait_for_workers(2, timeout=200)
        began = time.monotonic()
        assert dict(cluster.run(slowly, range(4))) == {number: number * number for number in range(4)}
        assert time.monotonic() - began < 240  # ten minutes before
    finally:
        cluster.close()
