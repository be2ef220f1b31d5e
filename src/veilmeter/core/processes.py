"""Running a stranger's program: no shell, a time limit, little kept of what it prints, and nothing of it left running.

A program may start others, in sessions of their own. All of them inherit a mark in their environment, by which they
are found and ended: when the program ends or its time is over, and, after veilmeter itself was killed, when the next
run begins.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any

from veilmeter.core.errors import InputError

_MOMENT = 0.01  # seconds
_WITH_CALLBACKS = "soundfile"


def raised(number: int, exception: Callable[[], BaseException]) -> None:
    """From now on the signal raises what `exception` returns: once, however often it came where that would be lost."""
    waiting: list[threading.Timer] = []

    def handle(number: int, frame: FrameType | None) -> None:
        while waiting:
            waiting.pop().cancel()
        if not _would_be_lost(frame):
            raise exception()
        again = threading.Timer(_MOMENT, _send, (number,))
        again.daemon = True
        waiting.append(again)
        again.start()

    signal.signal(number, handle)


def _would_be_lost(frame: FrameType | None) -> bool:
    library: Any = getattr(sys.modules.get(_WITH_CALLBACKS), "__file__", None)
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename == library:
            return True
        frame = frame.f_back
    return False


def _send(number: int) -> None:
    """To the main thread itself: one that sleeps by now would not notice a signal that another thread got."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


MARK = "VEILMETER_WORK"
MOST_PRINTED, MOST_ERRORS = 1 << 20, 8000  # bytes kept of what a program prints on its two streams, from their end
TAIL = 2000  # characters of that in an error
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_ATTEMPTS = 20


def run_program(arguments: Sequence[str], mark: Path, timeout: float) -> str:
    """Run it to its end and give back what it printed; an InputError says how it failed and the last it printed.

    `mark` is its working folder.
    """
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, MARK: str(mark)},
            preexec_fn=_end_with_parent(),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InputError(f"{arguments[0]} can't be run: {getattr(error, 'strerror', None) or error}") from None
    assert process.stdout is not None
    assert process.stderr is not None
    printed, errors = _Tail(process.stdout, MOST_PRINTED), _Tail(process.stderr, MOST_ERRORS)
    try:
        code = process.wait(timeout=timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end_all(process, mark)
    if code == 0:
        return printed.text()
    how = f"was ended by signal {-code}" if code and code < 0 else f"ended with exit code {code}"
    if code is None:
        how = f"was still running after {timeout:g} s and was ended"
    words = (printed.text()[-TAIL:] + errors.text()).strip()[-TAIL:]
    raise InputError(
        f"{arguments[0]} {how}" + (f"; it said: {words}" if words else ""),
        fix="allow more with --timeout" if code is None else None,
    )


def end_marked(mark: Path) -> int:
    """End every process that was started with this mark, or for a folder below it; how many there were.

    Again until none is left, as one may just have started another. Only where the system has /proc.
    """
    ended: set[int] = set()
    for _ in range(_ATTEMPTS):
        running = [number for number in _marked(mark) if number != os.getpid()]
        if not running:
            break
        for number in running:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        ended.update(running)
        time.sleep(0.01)
    return len(ended)


def _marked(mark: Path) -> list[int]:
    wanted = f"{MARK}={mark}".encode("utf-8", "surrogateescape")
    marked = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or is somebody else's
            continue
        if any(line == wanted or line.startswith(wanted + b"/") for line in environment):
            marked.append(int(entry.name))
    return marked


def _end_all(process: subprocess.Popen[bytes], mark: Path) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    end_marked(mark)


def _end_with_parent() -> Callable[[], None] | None:
    """On Linux the program is ended by the system when this process is killed, so that none goes on without us."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up here: little may be done between fork and exec
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_DIE_WITH_PARENT, signal.SIGKILL)


class _Tail:
    """Reads a pipe to its end in a thread of its own, so that the program never waits, and keeps the last of it."""

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        self._pipe, self._most = pipe, most
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError), self._pipe:
            while block := os.read(self._pipe.fileno(), 1 << 16):
                self._kept = (self._kept + block)[-self._most :]

    def text(self) -> str:
        self._thread.join(timeout=1.0)
        return self._kept.decode("utf-8", "replace")
