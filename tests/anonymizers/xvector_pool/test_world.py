from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from veilmeter.anonymizers.xvector_pool import world
from veilmeter.core.errors import InputError, MissingExtra

try:
    world.vocoder()
except MissingExtra:
    pytest.skip("pyworld is not installed", allow_module_level=True)


def vowel(f0: float, seconds: float = 1.0, formants: tuple[float, ...] = (700, 1200, 2600)) -> np.ndarray:
    """Harmonics under a few resonances."""
    t = np.arange(int(seconds * world.RATE)) / world.RATE
    signal = np.zeros_like(t)
    for harmonic in np.arange(f0, 7600, f0):
        gain = sum(1 / (1 + ((harmonic - f) / 120) ** 2) for f in formants) + 1e-3
        signal += gain * np.sin(2 * np.pi * harmonic * t)
    return (0.3 * signal / np.abs(signal).max()).astype(np.float32)


@pytest.mark.parametrize("f0", [90.0, 140.0, 230.0])
def test_pitch_is_found_and_kept(f0: float) -> None:
    analysis = world.analyze(vowel(f0))
    assert analysis.voiced.mean() > 0.9
    np.testing.assert_allclose(np.median(analysis.f0[analysis.voiced]), f0, rtol=0.01)
    again = world.analyze(world.synthesize(analysis))
    np.testing.assert_allclose(np.median(again.f0[again.voiced]), f0, rtol=0.01)


def test_pitch_is_found_where_it_moves_quickly() -> None:
    t = np.arange(world.RATE) / world.RATE
    f0 = 160 * np.exp(0.6 * np.sin(2 * np.pi * 6 * t))
    phase = 2 * np.pi * np.cumsum(f0) / world.RATE
    signal = sum((h * f0 < 7000) / (1 + ((h * f0 - 900) / 500) ** 2) * np.sin(h * phase) for h in range(1, 40))
    tracked = world.pitch(0.3 * signal / np.abs(signal).max())[:-1]
    right = np.abs(np.log(np.maximum(tracked, 1) / f0[::160])) < 0.1
    assert right.mean() > 0.95


def test_rumble_does_not_pull_the_pitch_to_the_floor() -> None:
    speech = vowel(120.0)
    t = np.arange(len(speech)) / world.RATE
    noisy = speech + (0.5 * np.sin(2 * np.pi * 35 * t)).astype(np.float32)
    found = world.analyze(noisy)
    np.testing.assert_allclose(np.median(found.f0[found.voiced]), 120, rtol=0.02)


def test_synthesis_is_as_long_as_its_source_and_repeatable_and_keeps_its_level() -> None:
    samples = vowel(150.0, 0.777)
    analysis = world.analyze(samples)
    out = world.synthesize(analysis)
    assert out.dtype == np.float32
    assert len(out) == len(samples)
    loud = world.synthesize(analysis.with_voice(analysis.f0, analysis.cepstra + np.eye(1, world.ORDER) * 12))
    assert np.abs(loud).max() > 1
    np.testing.assert_array_equal(world.synthesize(world.analyze(samples)), out)


def test_a_warp_moves_the_formants_and_the_pitch() -> None:
    analysis = world.analyze(vowel(100.0, formants=(1000.0,)))
    warped = world.warp(analysis, 1.2, 1.5)
    decode = world.vocoder().decode_spectral_envelope
    peaks = [
        decode(np.ascontiguousarray(a.cepstra[40:60]), world.RATE, world.FFT).mean(axis=0)[16:].argmax() + 16
        for a in (analysis, warped)
    ]
    assert peaks[1] / peaks[0] == pytest.approx(1.2, abs=0.06)
    np.testing.assert_allclose(warped.f0, analysis.f0 * 1.5)
    same = world.warp(analysis, 1.0, 1.0)
    np.testing.assert_allclose(same.cepstra, analysis.cepstra, atol=0.05)


def test_silence_and_noise_pass_and_too_short_is_told() -> None:
    assert np.abs(world.synthesize(world.analyze(np.zeros(16000, np.float32)))).max() < 1e-3
    noise = np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32)
    assert np.isfinite(world.synthesize(world.analyze(noise))).all()
    with pytest.raises(InputError, match="at least"):
        world.analyze(np.zeros(800, np.float32))


def test_long_recordings_are_cut_where_it_is_quiet() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 0.1, 150 * world.RATE).astype(np.float32)
    quiet = int(61.3 * world.RATE)
    samples[quiet : quiet + 1600] = 0
    parts = list(world.quiet_cuts([samples]))
    in_pieces = list(world.quiet_cuts(np.array_split(samples, 17)))
    assert all(np.array_equal(part, piece) for part, piece in zip(parts, in_pieces, strict=True))
    np.testing.assert_array_equal(np.concatenate(parts), samples)
    assert [round(len(part) / world.RATE) for part in parts[:1]] == [61]
    assert quiet < len(parts[0]) < quiet + 1600
    assert max(len(part) for part in parts) <= 64 * world.RATE
    assert min(len(part) for part in parts) > world.RATE
    assert [len(part) for part in world.quiet_cuts([samples[: 63 * world.RATE]])] == [63 * world.RATE]


def test_the_vocoder_needs_no_setuptools(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyworld's package imports pkg_resources, which newer environments lack."""
    import sys

    monkeypatch.setitem(sys.modules, "pkg_resources", None)
    world.vocoder.cache_clear()
    assert callable(world.vocoder().dio)


def test_real_speech_survives_copy_synthesis(librispeech: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    file = sorted((librispeech / "test-other-10x10").glob("*/*.flac"))[0]
    samples = soundfile.read(file, dtype="float32")[0][: 4 * world.RATE]
    analysis = world.analyze(samples)
    again = world.analyze(world.synthesize(analysis))
    both = analysis.voiced & again.voiced
    assert both.sum() > 0.8 * analysis.voiced.sum()
    distance = np.abs(analysis.cepstra[both, 1:] - again.cepstra[both, 1:]).mean()
    assert distance < 0.5 * analysis.cepstra[:, 1:].std(axis=0).mean()
