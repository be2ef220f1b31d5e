"""Duplicates are found in the audio where vectors differ: a release that is only scaled, a trial that is enrolled."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from veilmeter.assessment import assess
from veilmeter.speech.audio import read_audio, write_audio
from veilmeter.wording import sentence

SOURCE = """import numpy as np
def embed(samples):
    spectrum = np.abs(np.fft.rfft(samples[: len(samples) // 512 * 512].reshape(-1, 512), axis=1))
    return np.append(np.log(spectrum.mean(0) + 1e-6), 100 * samples[0]).astype(np.float32)
"""


@pytest.fixture(scope="module")
def sides(librispeech: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real speech of six people; released scaled and cut, so that its vectors differ. One recording occurs twice."""
    root = tmp_path_factory.mktemp("sides")
    (root / "spectral.py").write_text(SOURCE)
    by_person: dict[str, list[Path]] = {}
    for path in sorted((librispeech / "test-other-10x10").rglob("*.flac")):
        by_person.setdefault(path.stem.split("-")[0], []).append(path)
    for speaker, paths in list(by_person.items())[:6]:
        for path in paths[:4]:
            samples = read_audio(path)
            write_audio(root / "original" / speaker / f"{path.stem}.wav", samples)
            write_audio(root / "scaled" / speaker / f"{path.stem}.wav", 0.8 * samples[777:])
            noise = np.random.default_rng(len(samples)).standard_normal(len(samples)).astype(np.float32)
            write_audio(root / "hidden" / speaker / f"{path.stem}.wav", 0.05 * noise)
    return root


def checks_of(root: Path, released: str) -> dict[str, object]:
    results = assess(
        root / "original", root / released, extractor=f"{root / 'spectral.py'}:embed", resamples=10, lengths=[1],
        measures=["scores", "linkability"],
    ).results  # fmt: skip
    return {check.name: check for check in results.checks}


def test_speech_that_was_only_scaled_is_called_unchanged(
    sides: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    found = checks_of(sides, "scaled")["anonymized differs from original"]
    assert found.passed is False
    assert "24 of 24" in sentence(found.finding)
    assert checks_of(sides, "hidden")["anonymized differs from original"].passed is True


def test_a_recording_that_is_enrolled_and_tried_is_noticed(
    sides: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    for side in ("original", "hidden"):
        shutil.copytree(sides / side, tmp_path / side)
        for folder in (tmp_path / side).iterdir():
            first, *others = sorted(folder.iterdir())
            for other in others:  # whichever are enrolled, some of the others are tried
                write_audio(other, 0.5 * np.concatenate([np.zeros(500, np.float32), read_audio(first)]))
    (tmp_path / "spectral.py").write_text(SOURCE)
    assert checks_of(tmp_path, "hidden")["no copies in enrollment and trials"].passed is False
    assert checks_of(sides, "hidden")["no copies in enrollment and trials"].passed is True
