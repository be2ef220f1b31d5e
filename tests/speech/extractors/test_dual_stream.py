"""The dual-stream ECAPA-TDNN: its mel stream is the published ECAPA, and it learns with WavLM left as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.fetched import fetched
from tests.tiny_ssl import signal, write_model

torch = pytest.importorskip("torch")

from veilmeter.attacks.finetune import Training, finetune  # noqa: E402
from veilmeter.core.errors import InputError  # noqa: E402
from veilmeter.data.corpus import Corpus, read_corpus  # noqa: E402
from veilmeter.speech.audio import read_audio, write_audio  # noqa: E402
from veilmeter.speech.extractors import dual_stream, load_extractor  # noqa: E402
from veilmeter.speech.extractors.campplus import trainable  # noqa: E402
from veilmeter.speech.extractors.dual_stream import DualStreamEcapa, Ecapa, drop_bands, drop_stretches  # noqa: E402
from veilmeter.speech.extractors.wavlm import load_ssl  # noqa: E402


def test_the_mel_stream_and_the_pooling_are_the_published_ecapa(tmp_path: Path) -> None:
    """Where the WavLM stream is 1 everywhere, the product is the mel stream."""
    network = fetched(lambda: trainable(f"vpc2026:{write_model(tmp_path)}"))
    model = network.model.eval()
    samples = signal()
    with torch.inference_mode():
        vector = model.pool(model.mel_stream(torch.from_numpy(samples)[None]))[0].numpy()
    expected = load_extractor("ecapa").embed(samples)
    np.testing.assert_allclose(vector, expected, atol=2e-3 * np.abs(expected).max())


def small(folder: Path) -> DualStreamEcapa:
    torch.manual_seed(1)
    wavlm, normalizes = load_ssl(folder)
    return DualStreamEcapa(wavlm, normalizes=normalizes, channels=24, pooled=24)


def test_both_streams_count_and_wavlm_is_not_trained(tmp_path: Path) -> None:
    model = small(write_model(tmp_path))
    noise = np.random.default_rng(2).standard_normal((5, 100, 160)).astype(np.float32)
    frames = torch.from_numpy(signal().reshape(1, -1, 160) + 0.1 * noise)
    before = [parameter.clone() for parameter in model._wavlm[0].parameters()]
    model.train()(frames).square().sum().backward()
    for name in ("layer_weights", "entry.weight", "blocks.0.conv.conv.weight", "fc.conv.weight"):
        gradient = model.get_parameter(name).grad
        assert gradient is not None
        assert gradient.abs().sum() > 0
    assert not any(parameter.requires_grad for parameter in model._wavlm[0].parameters())
    assert all(torch.equal(old, new) for old, new in zip(before, model._wavlm[0].parameters(), strict=True))
    assert not [name for name in model.state_dict() if "wavlm" in name or "encoder" in name]


def test_any_length_gives_one_vector(tmp_path: Path) -> None:
    model = small(write_model(tmp_path)).eval()
    with torch.inference_mode():
        for seconds in (1, 45):
            assert model(torch.from_numpy(np.tile(signal(), seconds).reshape(1, -1, 160))).shape == (1, 192)


def test_what_is_dropped_in_training() -> None:
    torch.manual_seed(0)
    samples = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 16_000)).astype(np.float32))
    cut = drop_stretches(samples)
    for row in cut:
        assert 0 < int((row == 0).sum()) <= 5 * 2000
    assert torch.equal(cut[cut != 0], samples[cut != 0])
    power = torch.fft.rfft(drop_bands(samples)).abs()
    removed = (power < 1e-2).float().mean(dim=1)
    assert (removed > 0).all()
    assert (removed < 0.17).all()


def tones(folder: Path) -> Corpus:
    """Four speakers with a pitch each."""
    rng = np.random.default_rng(0)
    for speaker in range(4):
        (folder / f"s{speaker}").mkdir(parents=True)
        for number in range(4):
            time = np.arange(9_600) / 16_000
            tone = np.sin(2 * np.pi * (200 + 300 * speaker) * time) + 0.3 * rng.standard_normal(len(time))
            write_audio(folder / f"s{speaker}" / f"{number}.wav", 0.2 * tone.astype(np.float32))
    return read_corpus(folder)


def apart(corpus: Corpus, spec: str) -> None:
    extractor = load_extractor(spec)
    vectors = np.array([extractor.embed(read_audio(utterance.path)) for utterance in corpus])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    same = np.equal.outer(*[[utterance.speaker for utterance in corpus]] * 2)
    cosines = vectors @ vectors.T
    assert cosines[same].mean() > cosines[~same].mean() + 0.2


def test_it_is_fine_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four speakers with a pitch each: the loss falls, they are told apart, and a new WavLM trains again."""
    monkeypatch.setattr(dual_stream, "build_dual_stream", lambda folder, offline: small(Path(folder)))
    corpus = tones(tmp_path / "speech")
    folder = write_model(tmp_path / "wavlm")
    training = Training(epochs=25, batch=16, seconds=0.5, learning_rate=3e-3)
    done = finetune(corpus, tmp_path / "out", spec=f"vpc2026:{folder}", training=training)
    assert done.losses[-1] < 0.8 * done.losses[0]
    apart(corpus, done.spec)
    quick = Training(epochs=1, batch=16, seconds=0.5)
    for expected in (0, 1):  # finished at the second time
        assert finetune(corpus, tmp_path / "q", spec=f"vpc2026:{folder}", training=quick).resumed_at == expected
    write_model(folder, stable=False)
    assert finetune(corpus, tmp_path / "q", spec=f"vpc2026:{folder}", training=quick).resumed_at == 0


def test_ecapa_starts_from_the_published_parameters() -> None:
    network = fetched(lambda: trainable("ecapa"))
    samples = signal()
    frames = torch.from_numpy(network.features(samples))[None]
    with torch.inference_mode():
        vector = network.model.eval()(frames)[0].numpy()
    whole = samples[: len(samples) // 160 * 160]
    expected = load_extractor("ecapa").embed(whole)
    np.testing.assert_allclose(vector, expected, atol=2e-3 * np.abs(expected).max())
    assert network.keeps_statistics


def test_ecapa_is_trained_from_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four speakers with a pitch each: random weights learn them, with statistics of their own."""

    def build(*, from_scratch: bool, offline: bool) -> Ecapa:
        assert from_scratch
        torch.manual_seed(0)
        return Ecapa(channels=24, pooled=24)

    monkeypatch.setattr(dual_stream, "build_ecapa", build)
    corpus = tones(tmp_path / "speech")
    before = Ecapa(channels=24, pooled=24).asp_bn.norm.running_mean.clone()
    training = Training.of(["warm_up=0", "learning_rate=0.003", "batch=16", "seconds=2"], epochs=50)
    from safetensors.torch import load_file

    done = finetune(corpus, tmp_path / "out", spec="ecapa:scratch", training=training)
    assert done.losses[-1] < 0.8 * done.losses[0]
    assert done.spec == f"ecapa:scratch@{done.path}"
    assert not torch.equal(load_file(done.path)["asp_bn.norm.running_mean"], before)
    apart(corpus, done.spec)


def test_without_a_wavlm(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs a WavLM model \(give the folder that holds it: vpc2026:FOLDER\)"):
        trainable("vpc2026")
    with pytest.raises(InputError, match=r"config\.json"):
        trainable(f"vpc2026:{tmp_path}")
