"""Everything that reads files: how to make a sound input for it, and how to read it.

A reader gets a folder with sound files of which one was changed. It may read them or refuse them (`VeilmeterError`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.fuzzing import corpora, models, run_folders, vectors

Files = dict[str, bytes]


@dataclass(frozen=True)
class Reader:
    """`kind` is what inputs are counted by. Files that end with one of `changed` are broken, all of them by default.
    `seal` repairs checksums after a change, so that it gets past them. `cost` says how many times fewer inputs it gets:
    readers that start a process or compute something."""

    kind: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    changed: tuple[str, ...] = ("",)
    seal: Callable[[Path], object] | None = None
    cost: int = 1


def readers() -> dict[str, Reader]:
    """All of them by name."""
    found = {
        f"layout {name}": Reader("layouts", make, corpora.read(name), changed, cost=8)
        for name, (make, changed) in corpora.LAYOUTS.items()
    }
    found |= {
        f"list {name}": Reader("lists", make, read, cost=cost) for name, (make, read, cost) in corpora.LISTS.items()
    }
    found |= {
        f"audio {suffix}": Reader("audio", corpora.make_audio(suffix), corpora.read_audio(suffix), cost=2)
        for suffix in corpora.AUDIO
    }
    found |= {
        f"vectors {name}": Reader("vectors", make, read, cost=cost)
        for name, (make, read, cost) in vectors.VECTORS.items()
    }
    found |= {
        f"model {name}": Reader("models", make, read, changed, cost=cost)
        for name, (make, read, changed, cost) in models.MODELS.items()
    }
    found |= {
        f"run {name}": Reader("run folders", run_folders.make, read, changed, seal, cost)
        for name, (read, changed, seal, cost) in run_folders.RUNS.items()
    }
    found |= {
        f"kept {name}": Reader("kept work", make, read, changed, cost=cost)
        for name, (make, read, changed, cost) in run_folders.KEPT.items()
    }
    return found
