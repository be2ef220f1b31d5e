from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.fetched import fetched

from veilmeter.core.errors import InputError, VeilmeterError

torch = pytest.importorskip("torch")
pytest.importorskip("kaldi_native_fbank")

from veilmeter.speech.extractors import campplus  # noqa: E402


@pytest.fixture(scope="module")
def extractor() -> campplus.TorchCampplus:
    torch.set_num_threads(1)
    return fetched(campplus.TorchCampplus)


def test_segment_means_are_the_means_of_segments() -> None:
    x = torch.randn(2, 3, 257, generator=torch.Generator().manual_seed(0))
    means = campplus.segment_means(x, 100)
    for start in (0, 100, 200):
        part = x[:, :, start : start + 100]
        expected = part.mean(dim=2, keepdim=True).expand_as(part)
        torch.testing.assert_close(means[:, :, start : start + 100], expected)
    reference = torch.nn.functional.avg_pool1d(x, 100, 100, ceil_mode=True)
    torch.testing.assert_close(means[:, :, ::100], reference)


def test_the_state_dict_has_the_published_shape_and_loads_strictly() -> None:
    state = campplus.CamPlusPlus().state_dict()
    assert len(state) == 937
    assert state["xvector.block3.tdnnd16.nonlinear1.batchnorm.weight"].shape == (992,)
    campplus.build_model(state)
    del state["head.conv1.weight"]
    with pytest.raises(VeilmeterError, match="CAM"):
        campplus.build_model(state)


def test_features_are_centered_and_blind_to_level() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 0.1, 16000).astype(np.float32)
    features = campplus.fbank(samples)
    assert features.shape == (98, 80)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(campplus.fbank(samples * 0.5), features, atol=1e-3)
    assert np.isfinite(campplus.fbank(np.zeros(16000, np.float32))).all()
    with pytest.raises(InputError):
        campplus.fbank(samples[:800])


def test_real_speakers_are_told_apart(extractor: campplus.TorchCampplus, librispeech: Path) -> None:
    """EER 0 over utterance pairs, and impostors near 0.10: with the wrong ReLU they would be near 0.38."""
    soundfile = pytest.importorskip("soundfile")
    vectors, speakers = [], []
    for folder in sorted(p for p in (librispeech / "test-other-10x10").iterdir() if p.is_dir()):
        for file in sorted(folder.glob("*.flac"))[:4]:
            samples = soundfile.read(file, dtype="float32")[0][: 6 * 16000]
            vectors.append(extractor.embed(samples))
            speakers.append(folder.name)
    unit = np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = np.triu_indices(len(unit), 1)
    scores = np.einsum("ij,ij->i", unit[first], unit[second])
    same = np.array(speakers)[first] == np.array(speakers)[second]
    threshold = np.sort(scores[~same])[-8]  # 1 % of the impostors at most
    assert (scores[same] < threshold).mean() < 0.02
    assert 0.05 < scores[~same].mean() < 0.15
    assert scores[same].mean() > 0.7
