"""A signal that ends the work, raised as an exception where somebody can catch it.

Python runs the handler of a signal between any two instructions of the main thread. What is raised inside a finalizer
or a callback of libsndfile reaches nobody: Python prints it with its traceback, and the work goes on as if nobody had
asked it to stop. There the signal is sent again a moment later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

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
