"""Extractors of other makers: what their own implementations gave for one signal, and SpeechBrain's front end."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fetched import fetched

from veilmeter.core.errors import InputError
from veilmeter.speech.extractors import load_extractor
from veilmeter.speech.extractors.base import EXTRACTORS
from veilmeter.speech.extractors.published import speechbrain_fbank

# The first numbers of the vector for `signal()`: by SpeechBrain 1.1.2 and by 3D-Speaker's module, with their own front
# ends; of the ResNet34 by ONNX Runtime itself, as it is published as a graph.
KNOWN = {
    "ecapa": (192, [-4.99723, 35.55732, 23.10000, -0.18783], 1e-3),
    "eres2net": (192, [-0.293963, 0.226445, -0.452262, -0.043046], 1e-4),
    "resnet34": (256, [0.069648, -0.025701, -0.040527, -0.009441], 1e-4),
}


def signal() -> np.ndarray:
    """Two seconds of a voice-like tone."""
    t = np.arange(32_000) / 16_000
    voice = sum(np.sin(2 * np.pi * k * (120 + 10 * np.sin(2 * np.pi * 2 * t)) * t) / k for k in range(1, 15))
    return (voice * 0.1 * (1 + 0.5 * np.sin(2 * np.pi * 3 * t))).astype(np.float32)


@pytest.mark.parametrize("name", KNOWN)
def test_the_vector_is_the_makers_own(name: str) -> None:
    extractor = fetched(lambda: load_extractor(name))
    dimension, first, tolerance = KNOWN[name]
    vector = extractor.embed(signal())
    assert vector.shape == (dimension,) == (extractor.dimension,)
    np.testing.assert_allclose(vector[:4], first, atol=tolerance)


def test_they_are_registered() -> None:
    assert {"ecapa", "eres2net", "resnet34"} <= set(EXTRACTORS)


def test_speechbrains_front_end_frame_by_frame() -> None:
    """The definition, one frame and one filter after the other."""
    samples = np.random.default_rng(0).standard_normal(4_000).astype(np.float32) * 0.1
    wide = np.concatenate([np.zeros(200), samples, np.zeros(200)])
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 400)
    mels = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    rows = []
    for start in range(0, len(wide) - 399, 160):
        power = np.abs(np.fft.fft(wide[start : start + 400] * window)[:201]) ** 2
        row = []
        for number in range(80):
            width = hertz[number + 1] - hertz[number]
            weights = [max(0.0, 1 - abs(40 * k - hertz[number + 1]) / width) for k in range(201)]
            row.append(10 * np.log10(max(1e-10, float(power @ weights))))
        rows.append(row)
    table = np.maximum(rows, np.max(rows) - 80)
    np.testing.assert_allclose(speechbrain_fbank(samples), table - table.mean(axis=0), atol=1e-3)
    with pytest.raises(InputError, match=r"0\.1 s"):
        speechbrain_fbank(samples[:100])
