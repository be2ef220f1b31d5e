"""Synthesizers, and mixtures of voices."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fetched import fetched

from veilmeter.anonymizers.cascade.voices import (
    FRAME,
    LEAST_DISTANCE,
    LENGTHS,
    RATE,
    STYLE,
    BaseVoices,
    load_pool,
    load_synthesizer,
)
from veilmeter.speech import weights

PHONES = "ðə bˈOt lˈɛft ðə hˈɑɹbəɹ."
HAS_KOKORO = all((weights.cache_folder() / w.filename).exists() for w in (weights.KOKORO, weights.KOKORO_STYLES))


@pytest.fixture(scope="module")
def pool() -> BaseVoices:
    rng = np.random.default_rng(0)
    names = tuple(f"a{gender}_{number}" for gender in "fm" for number in range(6))
    centers = rng.standard_normal((12, 1, STYLE))
    return BaseVoices(names, (centers + 0.1 * rng.standard_normal((12, LENGTHS, STYLE))).astype(np.float32))


def test_a_mixture_is_far_from_every_base_voice(pool: BaseVoices) -> None:
    drawn = [pool.draw(np.random.default_rng(seed)) for seed in range(100)]
    sounds = pool.styles[:, :, : STYLE // 2].mean(axis=1)
    genders = (sounds[:6], sounds[6:])
    apart = np.median([np.linalg.norm(g[one] - g[two]) for g in genders for one in range(6) for two in range(one)])
    for voice in drawn:
        assert sum(voice.mixture.values()) == pytest.approx(1)
        assert {name[1] for name in voice.mixture} == {voice.gender}
        mixed = sum(share * sounds[pool.names.index(name)] for name, share in voice.mixture.items())
        distances = np.linalg.norm(sounds - mixed, axis=1) / apart
        assert distances.min() == pytest.approx(voice.distance, abs=2e-3)
        assert distances.min() >= LEAST_DISTANCE - 2e-3
        assert pool.names[int(distances.argmin())] == voice.nearest
    assert {voice.gender for voice in drawn} == {"f", "m"}
    assert len({voice.name for voice in drawn}) > 90
    assert pool.draw(np.random.default_rng(3)) == drawn[3]


def test_a_style_is_the_mixture_of_styles(pool: BaseVoices) -> None:
    style = pool.style({"af_0": 0.25, "af_1": 0.75}, 17)
    np.testing.assert_allclose(style, 0.25 * pool.styles[0, 17] + 0.75 * pool.styles[1, 17], rtol=1e-5)
    assert pool.style({"af_0": 1.0}, 5000).shape == (STYLE,)


class Slower:
    """Twice as long, an octave lower."""

    def durations(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        return 2 * own

    def melody(self, own: NDArray[np.float64], durations: NDArray[np.int64]) -> NDArray[np.float64]:
        assert len(own) == 2 * durations.sum()
        return own / 2


class AsItIs(Slower):
    def durations(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        return own

    def melody(self, own: NDArray[np.float64], durations: NDArray[np.int64]) -> NDArray[np.float64]:
        return own


def pitch(samples: NDArray[np.float32]) -> float:
    """By the highest peak of the autocorrelation of the loudest fifth of a second."""
    width = RATE // 5
    start = int(np.convolve(samples**2, np.ones(width), "valid").argmax())
    part = samples[start : start + width]
    correlation = np.correlate(part, part, "full")[width - 1 :]
    low, high = RATE // 500, RATE // 60
    return RATE / (low + int(correlation[low:high].argmax()))


KOKORO = pytest.param("kokoro", marks=pytest.mark.skipif(not HAS_KOKORO, reason="Kokoro is not in the cache"))


@pytest.mark.slow
@pytest.mark.parametrize("voice", ["fast", KOKORO])
def test_rhythm_and_melody_can_be_given(voice: str) -> None:
    plain = fetched(partial(load_synthesizer, voice))
    told = fetched(partial(load_synthesizer, voice, with_prosody=True))
    mixture = load_pool().draw(np.random.default_rng(1)).mixture if voice == "kokoro" else {}
    samples = plain.speak(PHONES, mixture)
    assert 1.0 < len(samples) / RATE < 4.0
    np.testing.assert_array_equal(samples, plain.speak(PHONES, mixture))
    np.testing.assert_allclose(told.speak(PHONES, mixture, AsItIs()), samples, atol=1e-6)
    slower = told.speak(PHONES, mixture, Slower())
    assert len(slower) == pytest.approx(2 * len(samples), abs=4 * FRAME)
    assert pitch(slower) == pytest.approx(pitch(samples) / 2, rel=0.25)
