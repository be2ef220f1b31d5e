"""A signal that comes at a place where an exception is lost ends the work all the same, without a word of Python's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# What is interrupted where: in the finalizer of an object, or while libsndfile calls back to write.
FINALIZER = """
import os, signal, time
class Finalized:
    def __del__(self):
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000))
def work(folder):
    Finalized()
    time.sleep(150)
"""
CALLBACK = """
import os, signal, time
import numpy as np
from veilmeter.speech import audio
class Sink(audio._Sink):
    begun = False
    def write(self, data):
        for _ in range(0 if Sink.begun else 3):  # and no more of them while the file is being closed
            os.kill(os.getpid(), signal.SIGTERM)
        Sink.begun = True
        return super().write(data)
def blocks():
    yield np.zeros(1000)
    time.sleep(150)
def work(folder):
    audio._Sink = Sink
    audio.write_blocks(folder + "/sound.flac", blocks())
"""
CTYPES = """
import ctypes, os, signal, time
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)
    sum(range(1000))
    return 0
def work(folder):
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(), 2, 4, compare)
    time.sleep(150)
"""
REFERENCE = """
import os, signal, time, weakref
class Thing:
    pass
def gone(reference):
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)
    sum(range(1000))
def work(folder):
    thing = Thing()
    reference = weakref.ref(thing, gone)
    del thing
    time.sleep(150)
"""
IMPORT = """
import os, signal, sys, time
from importlib.machinery import ExtensionFileLoader
class Loader:
    "The initialization of a module in C that prints what is raised in it, and goes on."
    def exec_module(self):
        try:
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGTERM)
            sum(range(1000))
        except BaseException as error:
            print("lost:", type(error).__name__, file=sys.stderr)
    exec_module.__code__ = exec_module.__code__.replace(co_qualname=ExtensionFileLoader.exec_module.__qualname__)
def work(folder):
    Loader().exec_module()
    time.sleep(150)
"""
ALONE = """
import signal, sys, time
from veilmeter.core.stopping import raise_on
from stopped_work import work
raise_on({signal.SIGTERM}, KeyboardInterrupt)
begun = time.monotonic()
try:
    work(sys.argv[1])
except KeyboardInterrupt:
    print("stopped", flush=True)
assert time.monotonic() - begun < 100
"""
POOLED = """
import sys
from veilmeter.core.engine import Pool
from stopped_work import work
if __name__ == "__main__":
    pool = Pool(1)
    try:
        list(pool.run(work, [sys.argv[1]]))
    except SystemExit as leave:
        print("left with", leave.code)
    finally:
        pool.close()
"""


PLACES = {"finalizer": FINALIZER, "callback": CALLBACK, "ctypes": CTYPES, "weak reference": REFERENCE, "import": IMPORT}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("where", ["alone", "pooled"])
def test_where_an_exception_would_be_lost(place: str, where: str, tmp_path: Path) -> None:
    if place == "callback":
        pytest.importorskip("soundfile")
    (tmp_path / "stopped_work.py").write_text(PLACES[place])
    (tmp_path / "program.py").write_text(ALONE if where == "alone" else POOLED)
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path / "out"], capture_output=True, text=True, timeout=200
    )
    assert done.stderr == ""
    assert done.stdout == ("stopped\n" if where == "alone" else "left with 143\n")
    assert not list((tmp_path / "out").iterdir())


SLOW_START = """
import sys, time
if "--multiprocessing-fork" in sys.orig_argv:  # a worker on a busy machine
    time.sleep(1.5)
"""
STOPPED_AT_START = """
import signal, sys, time
from veilmeter.core.engine import Pool
def work(item):
    if item == 0:
        raise ValueError("the first item ends the run")
    time.sleep(150)
if __name__ == "__main__":
    pool = Pool(3)
    try:
        list(pool.run(work, range(12)))
    except (ValueError, KeyboardInterrupt) as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run ends already
        print("ended by", type(error).__name__)
    finally:
        pool.close()
"""


@pytest.mark.parametrize("moment", [None, 0.8, 1.6, 2.0])
def test_a_run_that_ends_while_workers_start_prints_no_traceback(moment: float | None, tmp_path: Path) -> None:
    """By an error, or by Ctrl-C at some moment, which reaches the workers too."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    (tmp_path / "program.py").write_text(STOPPED_AT_START)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    process = subprocess.Popen(
        [sys.executable, tmp_path / "program.py"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    if moment is not None:
        time.sleep(moment)
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    # Ctrl-C before the program's own `try` is Python's to report; a worker must never report anything.
    assert "SpawnProcess" not in err
    assert "spawn_main" not in err
    assert not out or err == ""


WAITING = """
import sys, time
from veilmeter.cli import main as command
def app(prog_name):
    try:
        print("begun", flush=True)
        time.sleep(150)
    except KeyboardInterrupt:
        raise SystemExit(130)  # as typer does
command.app = app
command.main()
"""


WRAPPED = WAITING.replace(
    "    except",
    """
    except KeyboardInterrupt:
        raise RuntimeError("Error calling __set_name__")  # as Python does, and libraries
    except""",
)


@pytest.mark.parametrize("program", [WAITING, WRAPPED], ids=["as it is", "wrapped"])
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT"])
def test_a_closed_terminal_and_quit_stop_as_ctrl_c_does(how: str, program: str) -> None:
    number = getattr(signal, how)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.startswith("stopped; the same command goes on")


def test_nohup_is_respected() -> None:
    code = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + WAITING.replace("150", "2")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")


def stop_when(line: str, how: signal.Signals, *words: str, **environment: str) -> tuple[int, str]:
    """The exit code and the errors of a Python program that gets a signal after it printed this line."""
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment}, preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == line + "\n"
    process.send_signal(how)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def test_ctrl_c_while_modules_are_loaded_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(150)\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    ended = stop_when("loading", signal.SIGINT, "-m", "veilmeter.cli", "attackers", PYTHONPATH=path)
    assert ended == (-signal.SIGINT, "")


AT_FORK = """
import os, signal, subprocess, time
from veilmeter.core.stopping import raise_on
raise_on({signal.SIGTERM}, KeyboardInterrupt)
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGTERM))
try:
    subprocess.run(["true"], preexec_fn=lambda: None)
    time.sleep(5)
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_signal_while_a_program_is_started_is_not_lost() -> None:
    """Python prints what is raised in the functions that it calls at a fork, such as those of `logging`."""
    done = subprocess.run([sys.executable, "-c", AT_FORK], capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.stderr) == ("stopped\n", "")


CLEARING = """
import os, signal, time
from veilmeter.core.stopping import STOPPING, raise_on
raise_on(STOPPING, KeyboardInterrupt)
try:
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(150)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(0.2)
    print("cleared up")
"""


def test_a_second_signal_does_not_disturb_the_clearing_up() -> None:
    """A service manager sends two, and so does a shell whose terminal is closed."""
    done = subprocess.run([sys.executable, "-c", CLEARING], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "cleared up\n", "")


LEAVING = """
import atexit, sys, time
from veilmeter.cli import main as command
def leave():
    print("leaving", flush=True)
    time.sleep(1)
atexit.register(leave)
def app(prog_name):
    raise SystemExit(3)
command.app = app
command.main()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_work_changes_nothing(how: signal.Signals) -> None:
    assert stop_when("leaving", how, "-c", LEAVING) == (3, "")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_user_code_that_takes_a_stream_away_keeps_no_command_from_leaving(stream: str) -> None:
    program = LEAVING.replace("raise SystemExit", f"sys.{stream} = None\n    raise SystemExit")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (3, "")


def test_full_streams_change_no_exit_code() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "veilmeter.cli", "measure", "nowhere.txt"]
        done = subprocess.run(command, stdout=full, stderr=full, timeout=100, check=False)
    assert done.returncode == 2


def test_a_function_that_never_ends_does_not_keep_the_command_from_leaving() -> None:
    program = LEAVING.replace("sleep(1)", "sleep(150)").replace(
        "command.app", "command.LEAVING_SECONDS = 0.2\ncommand.app"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (3, "leaving\n")


def test_a_thread_that_is_still_at_work_is_waited_for() -> None:
    program = LEAVING.replace("import atexit", "import threading, atexit").replace("atexit.register(leave)", "")
    program = program.replace("raise SystemExit", "threading.Timer(0.2, leave).start()\n    raise SystemExit")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (3, "leaving\n")


BUSY_POOL = """
import os, sys, time
from veilmeter.core.engine import open_engine
def work(item):
    print("working", flush=True)
    time.sleep(150)
if __name__ == "__main__":
    from veilmeter.cli import main as command
    def app(prog_name):
        engine = open_engine(2, sys.argv[1] if sys.argv[1:] else None)
        try:
            list(engine.run(work, [1]))
        except KeyboardInterrupt:
            raise SystemExit(130)  # as typer does
        finally:
            engine.close()
    command.app = app
    command.main()
"""


@pytest.mark.parametrize("cluster", [(), ("local",)])
@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_for_the_whole_group_prints_no_traceback(
    how: signal.Signals, cluster: tuple[str, ...], tmp_path: Path
) -> None:
    """A closed terminal and Ctrl-\\ reach workers and the helpers of multiprocessing too."""
    (tmp_path / "program.py").write_text(BUSY_POOL)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "program.py", *cluster], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    os.killpg(process.pid, how)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == "stopped; the same command goes on from what is finished\n"
