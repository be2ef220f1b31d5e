"""Self-supervised models from a folder: every hidden layer is that of the transformers library, and nothing unsafe."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_ssl import signal, write_model

torch = pytest.importorskip("torch")

from veilmeter.core.errors import InputError  # noqa: E402
from veilmeter.data.corpus import read_corpus  # noqa: E402
from veilmeter.speech.audio import write_audio  # noqa: E402
from veilmeter.speech.extractors.base import load_extractor  # noqa: E402
from veilmeter.speech.extractors.embed_corpus import embed_corpus  # noqa: E402
from veilmeter.speech.extractors.wavlm import load_ssl  # noqa: E402

# Frame 17, first three numbers of each hidden layer, by transformers 5.23.0 (WavLMModel, Wav2Vec2Model, HubertModel)
# with the same folders; the last layer is `last_hidden_state`. HuBERT computes what wav2vec 2.0 computes.
POST = [[-1.79407, -0.45524, -1.04293], [-1.03316, -0.74152, 0.28726], [-1.63268, 1.13715, -0.10846],
        [-0.42244, 1.08965, -1.27306]]  # fmt: skip
PRE = [[-0.31927, 0.57594, 0.74681], [0.07141, -2.58429, 1.40221], [1.69915, -0.62509, -0.4543],
       [1.07288, 0.03519, -0.68212]]  # fmt: skip
KNOWN = {
    ("wavlm", False): [[-1.79407, -0.45524, -1.04293], [-0.98533, -0.76062, 0.35138], [-1.61024, 1.16003, -0.12529],
                       [-0.38313, 1.10431, -1.28544]],
    ("wavlm", True): [[-0.31927, 0.57594, 0.74681], [0.23389, -2.67647, 1.14379], [1.82116, -0.69259, -0.7101],
                      [1.11804, -0.00228, -0.71715]],
    ("wav2vec2", False): POST, ("wav2vec2", True): PRE, ("hubert", False): POST, ("hubert", True): PRE,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "stable"), KNOWN)
def test_hidden_layers_are_those_of_transformers(tmp_path: Path, kind: str, stable: bool) -> None:
    # A checkpoint of a model with a head has the prefix.
    model, _ = load_ssl(write_model(tmp_path, kind, stable=stable, prefix=f"{kind}." if stable else ""))
    hidden = model(torch.from_numpy(signal())[None])
    assert [tuple(layer.shape) for layer in hidden] == [(1, 50, 16)] * 4
    np.testing.assert_allclose([layer[0, 17, :3].numpy() for layer in hidden], KNOWN[kind, stable], atol=2e-5)


def test_both_names_of_weight_normalization(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = write_model(tmp_path)
    before = load_extractor(f"wavlm:{folder}").embed(signal())
    tensors = load_file(folder / "model.safetensors")
    for old, new in (("weight_g", "original0"), ("weight_v", "original1")):
        place = "encoder.pos_conv_embed.conv."
        tensors[f"{place}parametrizations.weight.{new}"] = tensors.pop(place + old)
    save_file(tensors, folder / "model.safetensors")
    np.testing.assert_array_equal(load_extractor(f"wavlm:{folder}").embed(signal()), before)


def test_the_vector_is_mean_and_deviation_of_a_layer(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "tiny", stable=True)
    extractor = load_extractor(f"wavlm:{folder}:2")
    samples = signal()
    model, normalizes = load_ssl(folder)
    assert normalizes
    unit = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
    frames = model(torch.from_numpy(unit)[None])[2][0].numpy()
    expected = np.concatenate([frames.mean(axis=0), frames.std(axis=0)])
    np.testing.assert_allclose(extractor.embed(samples), expected, atol=1e-5)
    assert extractor.dimension == 32
    assert extractor.name == "wavlm:tiny:2"
    assert load_extractor(f"wavlm:{folder}").name == "wavlm:tiny:1"
    # The level does not matter where samples are normalized, and does where the folder says they are not.
    np.testing.assert_allclose(extractor.embed(samples / 4), expected, atol=1e-3)
    (folder / "preprocessor_config.json").write_text('{"do_normalize": false}')
    other = load_extractor(f"wavlm:{folder}:2")
    assert np.abs(other.embed(samples) - expected).max() > 0.01
    assert other.version != extractor.version


def test_long_recordings_are_pooled_in_pieces(tmp_path: Path) -> None:
    extractor = load_extractor(f"wavlm:{write_model(tmp_path, stable=False)}:1")
    long = np.tile(signal(), 45)
    np.testing.assert_allclose(extractor.embed(long), extractor.embed(np.tile(signal(), 15)), atol=0.02)
    with pytest.raises(InputError, match=r"at least 0\.1 s"):
        extractor.embed(signal()[:1000])


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(
        InputError, match=r"pytorch_model.bin is a pickle, which can run code .* only model.safetensors"
    ):
        load_extractor(f"wavlm:{folder}")
    (folder / "pytorch_model.bin").rename(folder / "other.txt")
    with pytest.raises(InputError, match=r"model.safetensors"):
        load_extractor(f"wavlm:{folder}")
    (folder / "model.safetensors").write_bytes(b"\x80\x04no tensors at all")
    with pytest.raises(InputError, match="not safetensors"):
        load_extractor(f"wavlm:{folder}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'"),
        ({"hidden_size": 10**9}, "not a possible value"),
        ({"hidden_size": 18}, "do not fit together"),
        ({"hidden_size": 32}, "config.json says"),
        ({"num_hidden_layers": 4}, "tensors of a wavlm are missing"),
        ({"num_hidden_layers": True}, "not a possible value"),
        ({"conv_dim": [8, 8]}, "do not fit together"),
        ({"conv_dim": []}, "not a possible value"),
        ({"feat_extract_norm": "batch"}, "feat_extract_norm"),
        ({"hidden_act": "relu"}, "hidden_act = 'relu' is not supported"),
        ({"layer_norm_eps": "x"}, "not a possible value"),
    ],
)
def test_a_config_that_does_not_fit(tmp_path: Path, change: dict[str, object], message: str) -> None:
    folder = write_model(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=message):
        load_extractor(f"wavlm:{folder}")


def test_layers_and_folders_that_are_not_there(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "tiny")
    with pytest.raises(InputError, match="no layer 4: this model has layers 0 to 3"):
        load_extractor(f"wavlm:{folder}:4")
    with pytest.raises(InputError, match=r"config.json"):
        load_extractor(f"wavlm:{tmp_path / 'gone'}")
    (folder / "config.json").write_text("[]")
    with pytest.raises(InputError, match="model_type is None"):
        load_extractor(f"wavlm:{folder}")


def test_a_corpus_is_embedded(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "tiny")
    for speaker in "ab":
        (tmp_path / "speech" / speaker).mkdir(parents=True)
        write_audio(tmp_path / "speech" / speaker / "1.wav", signal())
    done = embed_corpus(read_corpus(tmp_path / "speech"), tmp_path / "out", f"wavlm:{folder}:1")
    assert (done.extractor, done.dimension, done.utterances) == ("wavlm:tiny:1", 32, 2)
