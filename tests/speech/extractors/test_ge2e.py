"""GE2E: its front end against its definition, its windows, and real speakers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.fetched import fetched

from veilmeter.core.errors import VeilmeterError
from veilmeter.data.corpus import read_corpus
from veilmeter.speech.audio import read_audio
from veilmeter.speech.extractors.ge2e import Ge2e, load_ge2e, mel_filters, mel_spectrogram, window_starts

torch = pytest.importorskip("torch")


def slaney(hertz: float) -> float:
    return hertz * 3 / 200 if hertz < 1000 else 15 + 27 * float(np.log(hertz / 1000) / np.log(6.4))


def test_filters_are_triangles_of_area_one_between_equal_steps_of_mel() -> None:
    filters = mel_filters()
    assert filters.shape == (40, 201)
    frequencies = np.linspace(0, 8000, 201)
    mels = np.array([slaney(f) for f in frequencies])
    step = slaney(8000) / 41
    for number, row in enumerate(filters):
        inside = (mels > number * step) & (mels < (number + 2) * step)
        assert (row[inside] > 0).all()
        assert (row[~inside] == 0).all()
    # Wide triangles are sampled finely enough for the area to be seen.
    np.testing.assert_allclose(filters[20:].sum(axis=1) * 40, 1, rtol=0.02)


def test_spectrogram_against_a_plain_sum(speechlike: Callable[..., NDArray[np.float32]]) -> None:
    samples = speechlike(0.1, 4).astype(float)
    found = mel_spectrogram(samples.astype(np.float32))
    assert found.shape == (11, 40)
    window = 0.5 * (1 - np.cos(2 * np.pi * np.arange(400) / 400))
    padded = np.concatenate([np.zeros(200), samples, np.zeros(200)])
    n = np.arange(400)
    for frame in (0, 5, 10):
        piece = padded[160 * frame : 160 * frame + 400] * window
        power = np.array([abs(np.sum(piece * np.exp(-2j * np.pi * k * n / 400))) ** 2 for k in range(201)])
        np.testing.assert_allclose(found[frame], mel_filters() @ power, rtol=1e-3, atol=1e-7)


@given(st.integers(160, 16000 * 60))
def test_windows_cover_the_utterance(samples: int) -> None:
    starts = window_starts(samples)
    assert starts[0] == 0
    assert np.diff(starts).tolist() == [77] * (len(starts) - 1)
    if len(starts) > 1:  # the last window is at least three quarters full, one more would not be
        assert (samples - starts[-1] * 160) / 25600 >= 0.75
    assert (samples - (starts[-1] + 77) * 160) / 25600 < 0.75 or samples < (starts[-1] + 160) * 160


def test_not_its_parameters() -> None:
    with pytest.raises(VeilmeterError, match="not the parameters of GE2E"):
        Ge2e({"linear.weight": torch.zeros(2, 2)}, "0")


def test_real_speakers_are_told_apart(librispeech: Path) -> None:
    extractor = fetched(load_ge2e)
    corpus = read_corpus(librispeech / "test-other-10x10")
    chosen = [u for s in corpus.speakers[:5] for u in corpus.by_speaker[s][:2]]
    vectors = np.array([extractor.embed(read_audio(u.path)) for u in chosen])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    scores = vectors @ vectors.T
    own = np.array([scores[i, i ^ 1] for i in range(10)])
    others = scores[~np.kron(np.eye(5, dtype=bool), np.ones((2, 2), bool))]
    assert own.mean() > 0.8
    assert own.mean() - others.mean() > 0.2
    soft = read_audio(chosen[0].path)
    np.testing.assert_allclose(
        extractor.embed(soft * np.float32(0.05)), extractor.embed(soft * np.float32(0.02)), atol=1e-4
    )
