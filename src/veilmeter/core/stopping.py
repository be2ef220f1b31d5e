"""Signals that stop a run: Ctrl-C, a closed terminal, Ctrl-\\ and `kill`.

A signal raises an exception in the main thread, so that files are closed and removed on the way out. In some places,
such as a finalizer or a callback from a library in C, Python drops an exception: there it is raised again a moment
later. A second signal often follows the first, from a terminal or a service manager, and must not disturb the clearing
up.
"""

from __future__ import annotations

import _thread
import math
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Windows lacks two of them.
STOPPING = frozenset(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)
CLEARING_SECONDS = 5.0  # during which further signals are ignored
_HAS_MASKS = hasattr(signal, "pthread_sigmask")  # not on Windows
_MOMENT = 0.01  # seconds
_WITH_CALLBACKS = "soundfile"
# A library in C may print what is raised while it is loaded, and go on; so does Python while it forks.
_UNSAFE = ("ExtensionFileLoader.create_module", "ExtensionFileLoader.exec_module", "Popen._execute_child")


class _Stop:
    """The handler of this process's signals, and whether one has come."""

    def __init__(self, kind: type[BaseException], arguments: tuple[Any, ...]) -> None:
        self._kind, self._arguments = kind, arguments
        self._number, self._is_waiting = 0, False
        self.raised = -math.inf  # when

    def handle(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        if _would_be_lost(frame):
            self._send_later()
        elif time.monotonic() - self.raised > CLEARING_SECONDS:
            self.raised = time.monotonic()
            raise self._kind(*self._arguments)

    def notice_lost(self, lost: Any) -> None:
        """Python's hook for an exception that it can't raise where it is."""
        if not issubclass(lost.exc_type, self._kind):
            sys.__unraisablehook__(lost)
            return
        self.raised = -math.inf
        self._send_later()

    def _send_later(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            _thread.start_new_thread(self._send, ())  # the main thread may hold a lock of `threading` just now

    def _send(self) -> None:
        """To the main thread itself: one that sleeps by now would not notice a signal that another thread got."""
        time.sleep(_MOMENT)
        self._is_waiting = False
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, self._number)
        else:
            signal.raise_signal(self._number)


def _would_be_lost(frame: FrameType | None) -> bool:
    library: Any = getattr(sys.modules.get(_WITH_CALLBACKS), "__file__", None)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename == library or code.co_qualname in _UNSAFE:
            return True
        frame = frame.f_back
    return False


_stops: list[_Stop] = []  # at most one: there is one main thread


def raise_on(numbers: Collection[signal.Signals], kind: type[BaseException], *arguments: Any) -> None:
    """From now on these signals raise such an exception: once, however many come while the process clears up."""
    _stops[:] = [_Stop(kind, arguments)]
    sys.unraisablehook = _stops[0].notice_lost
    for number in numbers:
        signal.signal(number, _stops[0].handle)


def was_stopped() -> bool:
    """Whether one of the signals of `raise_on` has come: an error since then may be how a library passes it on."""
    return any(stop.raised > -math.inf for stop in _stops)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """A signal must not interrupt the start of a process halfway. The new process inherits the mask, so that Ctrl-C,
    which reaches the whole group, never ends it in the middle of an import."""
    if not _HAS_MASKS:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through(number: signal.Signals) -> None:
    """In a process that was started with signals held back."""
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
