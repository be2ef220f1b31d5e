"""A function run in a process of its own with limits of time and memory.

A broken file may crash a library, keep it busy for ever, or make it ask for all the memory there is, and would take the
whole run with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError

MEMORY = 3 << 30  # bytes of address space beyond what is asked for
SECONDS, BYTES_A_SECOND = 30, 1 << 20  # of work on a file: far more than a sound one needs
_CHILD = "import sys; from veilmeter.core.confined import child; child(sys.argv[1:])"
_BROKEN = (OSError, ValueError, TypeError, RuntimeError, KeyError, UnicodeError, MemoryError, ArithmeticError)


def run_confined(function: str, path: Path, arguments: Sequence[str], what: str) -> dict[str, Any]:
    """What `module:function` returns when it is called with the path and the arguments: facts that JSON can hold.

    `what` is what the file should be, for the error: the function failed, died, or took too much time or memory.
    """
    size = path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
    limits = (SECONDS + size // BYTES_A_SECOND, MEMORY + 4 * min(size, 8 << 30))
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        answer = Path(folder, "answer.json")
        command = [sys.executable, "-P", "-c", _CHILD, function, str(answer), *map(str, limits), str(path), *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if not answer.is_file():
            how = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
            raise InputError(f"this is no sound {what}: its library broke off ({how})", path=path)
        facts: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in facts:
        raise InputError(f"this is no sound {what}: {facts['error']}", path=path)
    return facts


def child(arguments: Sequence[str]) -> None:
    """The process's own work: limits first, then the function, then the answer."""
    import importlib

    function, answer, seconds, memory, *rest = arguments
    module, _, name = function.partition(":")
    called = getattr(importlib.import_module(module), name)
    _limit(int(seconds), int(memory))
    try:
        facts = called(*rest)
    except MemoryError:
        facts = {"error": "it asks for more memory than a file of its size may"}
    except _BROKEN as error:
        facts = {"error": str(error) or type(error).__name__}
    Path(answer).write_text(json.dumps(facts), encoding="utf-8")


def _limit(seconds: int, memory: int) -> None:
    """Ends this process after so many seconds of work, and refuses it more memory than that."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
