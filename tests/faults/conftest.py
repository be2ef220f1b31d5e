"""A small assessment to disturb, as a command of its own, and disks that are full or read-only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.speech.audio import write_audio

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SPEAKERS, EACH, DIMENSION = 10, 6, 12


class Disk:
    """A file system of its own on `folder`, in memory, that can be full or read-only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mounted(self, *options: str) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(self.folder)], check=True)

    def again(self, *options: str) -> None:
        subprocess.run(["mount", "-o", ",".join(["remount", *options]), str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    found = Disk(tmp_path / "disk")
    found.folder.mkdir()
    try:
        found.mounted("size=64m")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine does not let us mount a file system")
    try:
        yield found
    finally:
        subprocess.run(["umount", "-l", str(found.folder)], check=True)


@pytest.fixture(scope="session")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """original.npz and anonymized.npz: speakers with a place each, of which the anonymized keep a part."""
    folder = tmp_path_factory.mktemp("voices")
    rng = np.random.default_rng(0)
    places, others = rng.standard_normal((2, SPEAKERS, DIMENSION))
    names = [f"s{code:02}" for code in range(SPEAKERS) for _ in range(EACH)]
    ids = [f"{name}-{number % EACH}" for number, name in enumerate(names)]
    attributes = {"gender": ["fm"[int(name[1:]) % 2] for name in names]}
    for side, base in (("original", places), ("anonymized", 0.6 * places + 0.4 * others)):
        vectors = np.repeat(base, EACH, 0) + 0.5 * rng.standard_normal((len(names), DIMENSION))
        write_embeddings(Embeddings(vectors.astype(np.float32), ids, names, attributes), folder / f"{side}.npz")
    return folder


@pytest.fixture(scope="session")
def speech(tmp_path_factory: pytest.TempPathFactory, speechlike: Callable[..., np.ndarray]) -> Path:
    """A corpus of 3 speakers with 4 recordings each."""
    folder = tmp_path_factory.mktemp("speech")
    for speaker in range(3):
        for number in range(4):
            write_audio(folder / f"s{speaker}" / f"u{number}.wav", speechlike(0.8, 10 * speaker + number))
    return folder


@pytest.fixture(scope="session")
def own_extractor(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A quick one, that says in a file how often it was called."""
    file = tmp_path_factory.mktemp("own") / "own.py"
    file.write_text(
        "import os\nimport numpy as np\n"
        "def embed(samples):\n"
        "    if os.environ.get('EXTRACTOR_LOG'):\n"
        "        with open(os.environ['EXTRACTOR_LOG'], 'a') as log:\n"
        "            log.write('x')\n"
        "    return np.log1p(np.abs(np.fft.rfft(samples[:8000]))[:4000].reshape(16, 250).mean(axis=1))\n"
    )
    return f"{file}:embed"


def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """`veilmeter ...` in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "veilmeter.cli.main", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **ENVIRONMENT, **environment}, start_new_session=True,
    )  # fmt: skip


def run(*arguments: object, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `veilmeter ...`."""
    process = start(*arguments, **environment)
    out, err = process.communicate(timeout=250)
    return process.returncode, out, err


@pytest.fixture(scope="session")
def command() -> Callable[..., tuple[int, str, str]]:
    return run


@pytest.fixture(scope="session")
def background() -> Callable[..., subprocess.Popen[str]]:
    return start


@pytest.fixture(scope="session")
def assessment(voices: Path) -> Callable[..., list[str]]:
    """The arguments of a small assessment into a folder."""

    def arguments(out: Path, *more: object) -> list[str]:
        return [
            "assess", "--original", str(voices / "original.npz"), "--anonymized", str(voices / "anonymized.npz"),
            "--attackers", "ignorant", "lazy-informed", "informed", "--measures", "scores", "linkability", "inference",
            "--lengths", "1", "3", "--resamples", "20", "--no-report", "--quiet", "--out", str(out), *map(str, more),
        ]  # fmt: skip

    return arguments


@pytest.fixture(scope="session")
def whole_run(
    assessment: Callable[..., list[str]], command: Callable[..., tuple[int, str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:  # fmt: skip
    """The folder of the small assessment in one process that nothing happened to."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    code, _, err = command(*assessment(out, "--jobs", 1))
    assert code == 0, err
    return out


@pytest.fixture(scope="session")
def undisturbed(whole_run: Path) -> bytes:
    return (whole_run / "results.json").read_bytes()
