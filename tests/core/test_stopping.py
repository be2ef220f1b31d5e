"""A signal that comes at a place where an exception is lost ends the work all the same, without a word of Python's."""

from __future__ import annotations

import subprocess
import sys
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
    time.sleep(20)
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
    time.sleep(20)
def work(folder):
    audio._Sink = Sink
    audio.write_blocks(folder + "/sound.flac", blocks())
"""
ALONE = """
import signal, sys, time
from veilmeter.core.processes import raised
from stopped_work import work
raised(signal.SIGTERM, KeyboardInterrupt)
begun = time.monotonic()
try:
    work(sys.argv[1])
except KeyboardInterrupt:
    print("stopped", flush=True)
assert time.monotonic() - begun < 15
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


@pytest.mark.parametrize("place", ["finalizer", "callback"])
@pytest.mark.parametrize("where", ["alone", "pooled"])
def test_where_an_exception_would_be_lost(place: str, where: str, tmp_path: Path) -> None:
    if place == "callback":
        pytest.importorskip("soundfile")
    (tmp_path / "stopped_work.py").write_text(FINALIZER if place == "finalizer" else CALLBACK)
    (tmp_path / "program.py").write_text(ALONE if where == "alone" else POOLED)
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path / "out"], capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout == ("stopped\n" if where == "alone" else "left with 143\n")
    assert not list((tmp_path / "out").iterdir())
