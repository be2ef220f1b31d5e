"""The recognizers that come with veilmeter, on speech; their weights are fetched once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.fetched import fetched

from veilmeter.data.corpus import read_corpus
from veilmeter.speech import weights
from veilmeter.speech.audio import read_audio
from veilmeter.speech.onnx_session import open_session
from veilmeter.speech.recognizers.base import Recognizer, load_recognizer
from veilmeter.speech.recognizers.moonshine import END, HEAD_SIZE, HEADS, START, Moonshine, read_tokens
from veilmeter.speech.recognizers.whisper import decode, log_mels


@pytest.fixture(scope="module")
def moonshine() -> Recognizer:
    return fetched(lambda: load_recognizer("moonshine"))


@pytest.fixture(scope="module")
def sentence(librispeech: Path) -> np.ndarray:
    corpus = read_corpus(librispeech)
    return read_audio(corpus.by_id["1688-142285-0000"].path)


def test_moonshine_hears_words(moonshine: Recognizer, sentence: np.ndarray) -> None:
    heard = moonshine.transcribe(sentence)
    assert "iron, they say, in all our blood" in heard.text
    assert heard.confidence is not None
    assert 0.5 < heard.confidence < 1


def test_moonshine_hears_nothing_in_noise_and_scraps(moonshine: Recognizer) -> None:
    noise = 0.05 * np.random.default_rng(0).standard_normal(48_000).astype(np.float32)
    assert moonshine.transcribe(noise).text == ""
    assert moonshine.transcribe(noise[:10]).text == ""


def test_a_long_recording_is_heard_in_stretches(moonshine: Recognizer, sentence: np.ndarray) -> None:
    long = np.concatenate([sentence, np.zeros(16_000, np.float32), sentence, np.zeros(16_000, np.float32), sentence])
    assert len(long) > 30 * 16_000
    text = moonshine.transcribe(long).text.lower()
    assert text.count("too much of steel") == 3


def test_lengths_of_tokens_in_one_or_two_bytes() -> None:
    long = b"x" * 300
    assert read_tokens(b"\x01a" + bytes([300 % 128 + 128, 300 // 128]) + long + b"\x00") == [b"a", long, b""]


def test_whispers_front_end_against_the_definition() -> None:
    """A tone's energy lies in the filters around its frequency; 30 s are 3,000 frames; 8 is the range unscaled."""
    tone = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000).astype(np.float32)
    mels = log_mels(tone)
    assert mels.shape == (80, 3000)
    assert mels.max() - mels.min() == pytest.approx(2.0, abs=1e-5)
    # 1 kHz is 15 mel on Slaney's scale, of 45.245 at 8 kHz: filter 15 / 45.245 * 81 - 1 in order.
    assert abs(int(mels[:, 50].argmax()) - (15 / 45.245 * 81 - 1)) < 1
    assert (mels[:, 200:] == mels.min()).all()


def test_bytes_of_whispers_tokens() -> None:
    assert decode(["Ġê", "°Ģ", "<"]) == "가<"
    assert decode([]) == ""


def test_moonshine_as_its_published_decoder(moonshine: Recognizer, sentence: np.ndarray) -> None:
    """Our own graphs, with other integers, choose the tokens that the published graphs choose."""
    assert isinstance(moonshine, Moonshine)
    samples = sentence[: 4 * 16_000]
    published = fetched(lambda: weights.fetch_all((weights.MOONSHINE_ENCODER, weights.MOONSHINE_DECODER)))
    encoder, decoder = map(open_session, published)
    inputs = {i.name: np.zeros((1, HEADS, 0, HEAD_SIZE), np.float32) for i in decoder.get_inputs()[2:-1]}
    inputs |= {"encoder_hidden_states": encoder.run(None, {"input_values": samples[None]})[0]}
    outputs = [output.name for output in decoder.get_outputs()]
    tokens, first = [START], True
    while tokens[-1] != END:
        inputs |= {"input_ids": np.array([tokens[-1:]]), "use_cache_branch": np.array([not first])}
        given = dict(zip(outputs, decoder.run(outputs, inputs), strict=True))
        tokens.append(int(given.pop("logits")[0, -1].argmax()))
        inputs |= {
            name.replace("present.", "past_key_values."): past
            for name, past in given.items()
            if first or ".encoder." not in name
        }
        first = False
    assert moonshine.decode(moonshine.encode(samples), 100)[0] == tokens[1:-1]
    assert len(tokens) > 10
