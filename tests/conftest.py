"""Where the real data lies. Tests that need it skip when it is absent; CI has it."""

from __future__ import annotations

import json
import os

# One thread of linear algebra in each process of the tests, which are as many as there are cores: more would only wait
# for each other. Set before numpy and torch are imported; programs that tests start inherit it.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

# The same examples on every machine; VEILMETER_EXPLORE=1 looks for new ones.
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("VEILMETER_EXPLORE"),
    database=None,
)
settings.load_profile("default")

SHARED = Path(os.environ.get("VEILMETER_SHARED", Path(__file__).resolve().parents[1].parent / "shared"))


def _shared(*parts: str) -> Path:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the reference data {'/'.join(parts)} is not here")
    return path


@pytest.fixture(scope="session")
def vpc2020() -> Path:
    """Real x-vectors and scores: original and anonymized with B1, by two extractors."""
    return _shared("data", "vpc2020-b1")


@pytest.fixture(scope="session")
def librispeech() -> Path:
    """Real speech: test-other-10x10 and train-clean-100-251x1."""
    return _shared("data", "librispeech")


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """The values to reach: facts, which any clone has, while the data they were measured on lie elsewhere."""
    values: dict[str, Any] = json.loads(Path(__file__).with_name("fixtures").joinpath("reference.json").read_text())
    return values


@pytest.fixture(scope="session")
def speechlike() -> Callable[..., NDArray[np.float32]]:
    """`speechlike(seconds, seed, rate)`: harmonics under a moving envelope; no two seeds alike, nothing clipped."""

    def make(seconds: float = 1.0, seed: int = 0, rate: int = 16000) -> NDArray[np.float32]:
        rng = np.random.default_rng(seed)
        t = np.arange(int(seconds * rate)) / rate
        pitch = rng.uniform(90, 250)
        wave = sum(
            rng.uniform(0.2, 1) / k * np.sin(2 * np.pi * k * pitch * t + rng.uniform(0, 6)) for k in range(1, 12)
        )
        wave = wave * (0.4 + 0.3 * np.sin(2 * np.pi * rng.uniform(2, 5) * t)) + 0.01 * rng.standard_normal(len(t))
        return (0.5 * wave / np.abs(wave).max()).astype(np.float32)

    return make


BROKEN = {
    "empty-file": "empty", "no-samples": "empty", "garbage": "unreadable", "text": "unreadable", "pipe": "unreadable",
    "cut-wav": "truncated", "cut-flac": "truncated", "nan": "nan", "infinite": "nan", "short": "short",
    "silent": "silent", "dither": "silent", "integers-as-floats": "out-of-range", "clipped": "clipped",
    "huge-header": "truncated",
}  # fmt: skip
"""Ways to break a recording, and the kind each must be called."""


@pytest.fixture(scope="session")
def break_audio(speechlike: Callable[..., NDArray[np.float32]]) -> Callable[[Path, str, int], Path]:
    """`break_audio(path without suffix, way, seed)`: writes a file that is broken in that way, returns its path."""
    soundfile = pytest.importorskip("soundfile")

    def make(stem: Path, way: str, seed: int = 0) -> Path:
        good = speechlike(1.5, seed)
        wav, flac = stem.with_suffix(".wav"), stem.with_suffix(".flac")
        if way == "empty-file":
            wav.write_bytes(b"")
        elif way == "no-samples":
            soundfile.write(wav, good[:0], 16000)
        elif way == "garbage":
            wav.write_bytes(np.random.default_rng(seed).bytes(5000))
        elif way == "text":
            wav.write_text("this is not audio\n" * 50)
        elif way == "pipe":
            os.mkfifo(wav)  # without a writer: whoever opens it for reading waits forever
        elif way == "cut-wav":
            soundfile.write(wav, good, 16000)
            wav.write_bytes(wav.read_bytes()[:20000])
        elif way == "cut-flac":
            soundfile.write(flac, good, 16000)
            data = flac.read_bytes()
            flac.write_bytes(data[: len(data) * 2 // 3])
            return flac
        elif way in ("nan", "infinite"):
            bad = good.copy()
            bad[700] = np.nan if way == "nan" else np.inf
            soundfile.write(wav, bad, 16000, subtype="FLOAT")
        elif way == "short":
            soundfile.write(wav, good[:6000], 16000)
        elif way == "silent":
            soundfile.write(wav, np.zeros(24000), 16000)
        elif way == "dither":
            noise = np.random.default_rng(seed).integers(-2, 3, 24000) / 32768
            soundfile.write(flac, noise + 0.01, 16000)  # on top of an offset
            return flac
        elif way == "integers-as-floats":
            soundfile.write(wav, good * 20000, 16000, subtype="FLOAT")
        elif way == "clipped":
            soundfile.write(wav, np.clip(good * 6, -1, 32767 / 32768), 16000)
        elif way == "huge-header":
            soundfile.write(wav, good, 16000)
            data = bytearray(wav.read_bytes())
            data[40:44] = (2**31).to_bytes(4, "little")
            wav.write_bytes(data)
        return wav

    return make


@pytest.fixture(scope="session")
def broken_kinds() -> dict[str, str]:
    return BROKEN
