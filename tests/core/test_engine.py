"""Work runs here, in a pool or on a cluster with one result, and survives workers that die."""

from __future__ import annotations

import importlib
import os
import platform
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import process
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from veilmeter.core.cluster import Cluster
from veilmeter.core.engine import QUEUE, Here, Pool, cores, map_ordered, open_engine
from veilmeter.core.errors import InputError, VeilmeterError


def square(number: int) -> int:
    return number * number


def fail_on_three(number: int) -> int:
    if number == 3:
        raise InputError("three can't be done", path="list.txt", line=3)
    return number


def die_once(item: tuple[str, int]) -> int:
    """Kills its own process the first time it meets item 5, as the kernel does when memory runs out."""
    mark, number = item
    if number == 5 and not Path(mark).exists():
        Path(mark).write_text("died")
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def die_always(_number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def take_long(folder: str) -> None:
    """A long piece of work that clears up behind itself."""
    Path(folder, "begun").touch()
    try:
        time.sleep(60)
        Path(folder, "finished").touch()
    finally:
        Path(folder, "cleared up").touch()


def threads(_number: int) -> int:
    """Of linear algebra, at most."""
    return max(int(pool["num_threads"]) for pool in threadpool_info())


def faults(count: int) -> int:
    """How many pages the system had to give for arrays of a megabyte, of which there is never more than one."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        np.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def known_here_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], int]:
    """A function of a module that workers can't import."""
    (folder / "only_here.py").write_text("def double(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(folder)
    function: Callable[[int], int] = importlib.import_module("only_here").double
    return function


def test_a_pool_gives_what_this_process_gives() -> None:
    pool = Pool(2)
    try:
        assert map_ordered(pool, square, range(20)) == map_ordered(Here(), square, range(20))
        with threadpool_limits(2):
            assert map_ordered(pool, threads, [0]) == map_ordered(Here(), threads, [0]) == [1]
            assert threads(0) == 2
        assert map_ordered(pool, square, []) == []
    finally:
        pool.close()


@pytest.mark.parametrize("where", ["here", "pool"])
def test_an_error_keeps_its_place(where: str) -> None:
    engine = Here() if where == "here" else Pool(2)
    try:
        with pytest.raises(InputError, match=r"list\.txt:3: three can't be done"):
            map_ordered(engine, fail_on_three, range(10))
    finally:
        engine.close()


def test_a_killed_worker_costs_nothing(tmp_path: Path) -> None:
    pool = Pool(2)
    mark = tmp_path / "mark"
    try:
        assert map_ordered(pool, die_once, [(str(mark), n) for n in range(12)]) == [n * n for n in range(12)]
    finally:
        pool.close()
    assert mark.exists()


def test_work_that_always_kills_its_worker_ends_with_a_message() -> None:
    pool = Pool(2)
    try:
        with pytest.raises(VeilmeterError, match="died 3 times"):
            map_ordered(pool, die_always, range(4))
    finally:
        pool.close()


def test_work_that_nobody_waits_for_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the pool's own thread go on: Python must not leave while it closes what is between the processes."""
    manager = process._ExecutorManagerThread
    close = manager.join_executor_internals
    monkeypatch.setattr(manager, "join_executor_internals", lambda self: (close(self), time.sleep(0.3)))
    pool = Pool(2)
    results = pool.run(take_long, [str(tmp_path)])

    def stop(*_: object) -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(results)
    finally:
        signal.signal(signal.SIGALRM, before)
        pool.close()
    assert not [thread for thread in threading.enumerate() if isinstance(thread, manager)]
    assert {file.name for file in tmp_path.iterdir()} == {"begun", "cleared up"}
    assert map_ordered(pool, square, [3]) == [9]
    pool.close()


def test_a_cluster_gives_the_same_and_survives_a_killed_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    cluster = Cluster("local", 3)
    mark = tmp_path / "mark"
    try:
        assert cluster.workers == 3
        assert map_ordered(cluster, square, range(30)) == [n * n for n in range(30)]
        assert map_ordered(cluster, die_once, [(str(mark), n) for n in range(12)]) == [n * n for n in range(12)]
        with pytest.raises(InputError, match="three"):
            map_ordered(cluster, fail_on_three, range(5))
        fetched = map_ordered(cluster, faults, [200])[0]
        with pytest.raises(VeilmeterError, match=r"can't do this work: .*only_here"):
            map_ordered(cluster, known_here_only(tmp_path, monkeypatch), range(2))
    finally:
        cluster.close()
    assert mark.exists()
    if platform.libc_ver()[0] == "glibc":
        assert fetched < 20_000  # and not 200 times 256: freed memory is used again


class WorkersOnly:
    """A client that knows which workers there are, and which cores they may use."""

    status = "running"

    def __init__(self, workers: dict[str, tuple[str, tuple[int, ...]]]) -> None:
        self.workers = workers

    def scheduler_info(self, n_workers: int) -> dict[str, object]:
        return {"workers": {address: {"host": host} for address, (host, _) in self.workers.items()}}

    def run(self, _function: object, _pid: int, workers: list[str], on_error: str) -> dict[str, tuple[int, ...]]:
        return {address: self.workers[address][1] for address in workers if self.workers[address][1]}


@pytest.mark.parametrize(
    ("workers", "at_once", "preferred"),
    [
        ([("a", (0, 1))] * 4, 2, 2),
        ([("a", (0, 1))] * 3 + [("b", (0, 1))] * 3, 4, 4),
        ([("a", (0, 1))] * 2 + [("a", (2, 3))] * 2, 4 * QUEUE, 0),  # two jobs on one machine, each with its cores
        ([("a", (0, 1))] * 3 + [("b", ())] * 3, 5, 5),  # nothing is known of the second machine
        ([("a", (0, 1, 2, 3))], 2 * QUEUE, 0),
        ([], 2 * QUEUE, 0),
    ],
)
def test_workers_that_share_cores_get_no_more_than_these_can_do(
    workers: list[tuple[str, tuple[int, ...]]], at_once: int, preferred: int
) -> None:
    cluster = Cluster.__new__(Cluster)
    client = WorkersOnly({f"w{number}": worker for number, worker in enumerate(workers)})
    cluster._begin(client)
    cluster._look()
    assert (cluster._at_once, len(cluster._preferred)) == (at_once, preferred)


def test_workers_that_come_later_are_given_work() -> None:
    cluster = Cluster.__new__(Cluster)
    client = WorkersOnly({"w0": ("a", (0, 1))})
    cluster._begin(client)
    cluster._look()
    few = cluster._at_once
    client.workers |= {f"x{number}": (f"host {number}", (0, 1)) for number in range(20)}
    cluster._looked -= 2
    cluster._look()
    assert cluster._at_once == 21 * QUEUE > few


def at_work(_number: int) -> tuple[float, float]:
    begun = time.time()
    time.sleep(0.2)
    return begun, time.time()


@pytest.mark.slow
def test_more_workers_than_cores_take_turns() -> None:
    pytest.importorskip("distributed")
    cluster = Cluster("local", cores() + 2)
    try:
        stretches = map_ordered(cluster, at_work, range(4 * cores()))
    finally:
        cluster.close()
    together = [sum(begun <= other < ended for other, _ in stretches) for begun, ended in stretches]
    assert max(together) <= cores()


def test_workers_leave_when_the_main_process_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\n"
        "from veilmeter.core.engine import Pool\n"
        "def work(folder):\n"
        "    open(os.path.join(folder, str(os.getpid())), 'w').close()\n"
        "    time.sleep(900)\n"
        "if __name__ == '__main__':\n"
        "    list(Pool(2).run(work, [sys.argv[1]] * 2))\n"
    )
    folder = tmp_path / "pids"
    folder.mkdir()
    main = subprocess.Popen([sys.executable, str(program), str(folder)])
    deadline = time.monotonic() + 200
    while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    pids = [int(path.name) for path in folder.iterdir()]
    assert len(pids) == 2
    main.kill()
    main.wait()
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_options_become_engines(tmp_path: Path) -> None:
    assert isinstance(open_engine(1), Here)
    assert open_engine(3).workers == 3
    assert open_engine().workers == cores()
    with pytest.raises(InputError, match="jobs must be at least 1"):
        open_engine(0)
    with pytest.raises(InputError, match="not a cluster"):
        open_engine(cluster="nonsense")


def test_a_batch_system_needs_its_configuration(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    bomb = tmp_path / "bomb.yaml"
    bomb.write_text("a: &a [x, x]\nb: &b [*a, *a]\njobqueue: [*b, *b]\n")
    with pytest.raises(InputError, match="aliases"):
        open_engine(cluster=f"slurm:{bomb}")
    empty = tmp_path / "empty.yaml"
    empty.write_text("other: 1\n")
    with pytest.raises(InputError, match="jobqueue"):
        open_engine(cluster=f"slurm:{empty}")
    with pytest.raises(InputError, match="no configuration for slurm"):
        open_engine(cluster="slurm")


def test_a_job_that_starts_while_the_cluster_closes_spoils_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask has an assertion of its own there, which fails if the work was done before all jobs had begun."""
    distributed = pytest.importorskip("distributed")
    real = distributed.LocalCluster.close

    def close(cluster: Any, *given: Any, **named: Any) -> None:
        real(cluster, *given, **named)
        raise AssertionError("Status.running")

    monkeypatch.setattr(distributed.LocalCluster, "close", close)
    engine = open_engine(1, "local")
    try:
        assert map_ordered(engine, abs, [-3]) == [3]
    finally:
        engine.close()


def test_a_batch_cluster_is_made_from_the_users_file(tmp_path: Path) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue")
    config = tmp_path / "slurm.yaml"
    config.write_text("jobqueue:\n  slurm:\n    cores: 2\n    memory: 1GB\n    queue: short\n")
    made = []

    class Recorded:
        def __init__(self) -> None:
            import dask

            made.append(dask.config.get("jobqueue.slurm.queue"))

        def scale(self, jobs: int) -> None:
            made.append(jobs)

    from veilmeter.core.cluster import batch_cluster

    original = jobqueue.SLURMCluster
    jobqueue.SLURMCluster = Recorded
    try:
        batch_cluster("slurm", str(config), 7)
    finally:
        jobqueue.SLURMCluster = original
    assert made == ["short", 7]
