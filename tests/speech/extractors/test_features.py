"""Log mel energies: Kaldi's own library is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.speech.extractors.onnx import fbank

Make = Callable[..., NDArray[np.float32]]


def kaldi(
    samples: NDArray[np.float32], bins: int = 80, window: str = "povey", scale: float = 1.0
) -> NDArray[np.float32]:
    library: Any = pytest.importorskip("kaldi_native_fbank")
    options = library.FbankOptions()
    options.frame_opts.samp_freq = 16000
    options.frame_opts.dither = 0.0
    options.frame_opts.window_type = window
    options.mel_opts.num_bins = bins
    options.energy_floor = 0.0
    computer = library.OnlineFbank(options)
    computer.accept_waveform(16000, samples * np.float32(scale))
    computer.input_finished()
    features = np.stack([computer.get_frame(n) for n in range(computer.num_frames_ready)])
    return np.asarray(features - features.mean(axis=0), np.float32)


@pytest.mark.parametrize(
    "options", [{}, {"window": "hamming", "scale": 32768.0}, {"bins": 40}, {"bins": 23, "window": "hamming"}]
)
def test_as_kaldi_computes_them(speechlike: Make, options: dict[str, Any]) -> None:
    samples = speechlike(7.0, 2)  # more than one block
    np.testing.assert_allclose(fbank(samples, **options), kaldi(samples, **options), atol=2e-3)


@given(samples=st.integers(1600, 12000), seed=st.integers(0, 99), level=st.sampled_from([0.0, 1e-5, 1e-3, 1.0]))
@settings(max_examples=30)
def test_as_kaldi_for_any_length_and_level(samples: int, seed: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    signal = (rng.standard_normal(samples) * 0.2 * level + rng.uniform(-0.1, 0.1)).astype(np.float32)
    found, expected = fbank(signal), kaldi(signal)
    assert found.shape == expected.shape == (1 + (samples - 400) // 160, 80)
    np.testing.assert_allclose(found, expected, atol=0.02 if level < 1e-4 else 2e-3)


def test_level_is_taken_away_and_a_tenth_of_a_second_is_needed(speechlike: Make) -> None:
    samples = speechlike(1.0, 1)
    features = fbank(samples)
    assert features.shape == (98, 80)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(fbank(samples, scale=32768), features, atol=1e-3)
    with pytest.raises(InputError, match=r"0\.1 s"):
        fbank(samples[:1000])
    with pytest.raises(InputError, match="povey or hamming"):
        fbank(samples, window="round")
