"""Layers of the recognizer: the last one is what ctranslate2 computes, and one is pooled over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.fetched import fetched
from tests.tiny_ssl import signal

torch = pytest.importorskip("torch")

from veilmeter.core.errors import InputError  # noqa: E402
from veilmeter.speech.extractors import load_extractor  # noqa: E402
from veilmeter.speech.extractors.whisper import WhisperExtractor, read_encoder  # noqa: E402
from veilmeter.speech.recognizers.whisper import log_mels  # noqa: E402


def test_the_last_layer_is_ctranslate2s() -> None:
    library = pytest.importorskip("ctranslate2")
    from veilmeter.speech.recognizers.whisper import load

    extractor = fetched(lambda: WhisperExtractor(6))
    mels = log_mels(signal())
    model = load("en")._model
    expected = np.array(model.encode(library.StorageView.from_array(mels[None])))[0]
    np.testing.assert_allclose(extractor.hidden(mels).numpy(), expected, atol=2e-3)


def test_the_vector_is_mean_and_deviation_of_a_layer() -> None:
    extractor = fetched(lambda: load_extractor("whisper:1"))
    assert (extractor.name, extractor.dimension) == ("whisper:1", 1024)
    vector = extractor.embed(signal())
    frames = extractor.hidden(log_mels(signal())[:, :100]).numpy()  # type: ignore[attr-defined]
    assert frames.shape == (50, 512)
    np.testing.assert_allclose(vector, np.concatenate([frames.mean(axis=0), frames.std(axis=0)]), atol=1e-4)
    assert load_extractor("whisper").name == "whisper:1"
    with pytest.raises(InputError, match=r"at least 0\.1 s"):
        extractor.embed(signal()[:1000])


def test_layers_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no layer 7: whisper has layers 0 to 6"):
        load_extractor("whisper:7")
    with pytest.raises(InputError, match="'two' is not the number of a layer"):
        load_extractor("whisper:two")
    for content in (b"", b"\x06\0\0\0\x05\0Other", b"\x06\0\0\0\x0c\0WhisperSpec\0\x03\0\0\0\x05\0\0\0\x01"):
        (tmp_path / "model.bin").write_bytes(content)
        with pytest.raises(InputError, match="can't be read"):
            read_encoder(tmp_path / "model.bin")
