"""Small corpora, and the plain implementation to agree with."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

Signal = NDArray[np.float64]


@pytest.fixture(scope="session")
def plain() -> ModuleType:
    """`benchmarks/plain_mcadams.py`, frame by frame."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "plain_mcadams.py"
    spec = importlib.util.spec_from_file_location("plain_mcadams", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain_mcadams"] = module
    spec.loader.exec_module(module)
    return module


def voice(seed: int, seconds: float = 0.7) -> Signal:
    """Pulses and breath through four formants that change every 50 ms."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    source = 0.02 * rng.standard_normal(int(seconds * 16_000))
    source[:: int(rng.integers(70, 160))] += 1.0
    parts = []
    for part in np.array_split(source, max(1, int(seconds * 20))):
        formants = rng.uniform([200, 900, 1900, 3000], [800, 1700, 2900, 6000])
        poles = 0.95 * np.exp(2j * np.pi * formants / 16_000)
        parts.append(lfilter([1.0], np.real(np.poly([*poles, *poles.conj()])), part))
    signal = np.concatenate(parts)
    return np.asarray(0.3 * signal / np.abs(signal).max())


@pytest.fixture
def make_voice() -> Callable[..., Signal]:
    return voice


@pytest.fixture
def folder_corpus(tmp_path: Path) -> Path:
    """Three speakers with four recordings each, a folder a speaker."""
    from veilmeter.speech.audio import write_audio

    root = tmp_path / "speech"
    for number in range(12):
        write_audio(root / f"s{number // 4}" / f"u{number % 4}.wav", voice(number))
    return root
