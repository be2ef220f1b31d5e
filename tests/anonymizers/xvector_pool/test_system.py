"""The anonymizer with the model that comes with the package."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("soundfile")

from tests.fetched import fetched

from veilmeter.anonymizers.base import Anonymizer, NeedsCorpus, load_anonymizer
from veilmeter.anonymizers.xvector_pool import XvectorPool, features, model, system, world
from veilmeter.anonymizers.xvector_pool.training import SAME_PERSON
from veilmeter.core.engine import Here
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.speech import weights


def speech(f0: float = 120.0, seconds: float = 1.0) -> np.ndarray:
    """A voice that glides from one vowel to another, with a pause."""
    t = np.arange(int(seconds * world.RATE)) / world.RATE
    part = t / t[-1]
    phase = np.cumsum(2 * np.pi * f0 * (1 + 0.05 * np.sin(9 * t))) / world.RATE
    signal = np.zeros_like(t)
    for h in range(1, int(7000 / f0)):
        gain = (
            1e-3
            + 1 / (1 + ((h * f0 - 300 - 500 * part) / 100) ** 2)
            + 0.5 / (1 + ((h * f0 - 2200 + 1000 * part) / 150) ** 2)
        )
        signal += gain * np.sin(h * phase)
    signal *= (part < 0.45) | (part > 0.55)
    return (0.3 * signal / np.abs(signal).max()).astype(np.float32)


class FakeEncoder:
    """Numbers from the spectrum of each frame: it needs no weights, and no words are in it."""

    def hear(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = np.arange(400, len(samples) - 400, 384)
        windows = samples[places[:, None] + np.arange(-256, 256)] * np.hanning(512)
        spectra = np.log(np.abs(np.fft.rfft(windows))[:, :256] + 1e-3)
        mixed = spectra @ np.random.default_rng(0).normal(size=(256, 416))
        return places.astype(float), mixed.astype(np.float32)


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[XvectorPool, Corpus]:
    """Two speakers of two utterances and one without audio; the vectors are made up."""

    import soundfile

    class Fake:
        def embed(self, samples: np.ndarray) -> np.ndarray:
            seed = int(1e6 * abs(float(samples[1000:1100].sum()))) % 1000
            vector: np.ndarray = np.random.default_rng(seed).normal(size=192).astype(np.float32)
            return vector

    monkeypatch.setattr(system, "load_extractor", lambda spec, offline: Fake())
    monkeypatch.setattr(system, "load_layer", lambda layer, offline: FakeEncoder())
    monkeypatch.setattr(weights, "fetch", lambda *_, **__: tmp_path)
    utterances = []
    for speaker, gender, f0 in (("anna", "f", 210.0), ("bert", "m", 110.0)):
        for take in range(2):
            path = tmp_path / f"{speaker}-{take}.wav"
            soundfile.write(path, speech(f0 + take), world.RATE)
            utterances.append(Utterance(f"{speaker}-{take}", speaker, path, gender))
    utterances.append(Utterance("carl-0", "carl", tmp_path / "nothing.wav", "m"))
    corpus = Corpus(tmp_path, "folder", tuple(utterances))
    return XvectorPool(seed=3, offline=True).prepare(corpus, Here()), corpus


def test_the_shipped_model_is_small_and_holds_no_one() -> None:
    path = model.builtin_model()
    assert path.stat().st_size <= 4_000_000
    shipped = model.load(path)
    assert (shipped.layer, shipped.converter.shape.bottleneck) == (8, 32)
    assert {g: shipped.pool.genders.count(g) for g in "fm"} == {"f": 128, "m": 128}
    assert shipped.card["largest_cosine_of_pool_and_training_speakers"] < SAME_PERSON
    assert "CC BY 4.0" in shipped.card["license"]
    assert str(shipped.card["parameters"]) in Path(path).with_name("MODEL_CARD.md").read_text().replace(",", "")


def test_pool_voices_are_no_test_or_training_speakers(librispeech: Path) -> None:
    """The pool must hold no real person; with the weights at hand, check against real speakers never trained on."""
    from veilmeter.speech.audio import read_audio
    from veilmeter.speech.extractors.base import load_extractor

    extractor = fetched(lambda: load_extractor("campplus"))
    pool = model.load(model.builtin_model()).pool
    files = sorted((librispeech / "train-clean-100-251x1").glob("*.flac"))[:4]
    files += sorted((librispeech / "test-other-10x10").glob("*/*-0000.flac"))[:3]
    vectors = np.stack([extractor.embed(read_audio(file)[: 5 * world.RATE]) for file in files])
    cosines = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ pool.unit.T
    assert cosines.max() < 0.5


def test_it_is_found_by_name_and_is_an_anonymizer() -> None:
    made = load_anonymizer("xvector-pool", {"seed": 1, "gender": "cross", "offline": True})
    assert isinstance(made, Anonymizer)
    assert isinstance(made, NeedsCorpus)
    assert made.name == "xvector-pool"
    assert made.version == load_anonymizer("xvector-pool").version


def test_parameters_depend_on_seed_and_speaker_alone(prepared: tuple[XvectorPool, Corpus]) -> None:
    anonymizer, corpus = prepared
    anna, also_anna, bert, also_bert, _ = (anonymizer.parameters(u) if u.speaker != "carl" else None for u in corpus)
    assert anna == also_anna
    assert bert == also_bert
    assert anna != bert
    assert anna == json.loads(json.dumps(anna))
    assert len(anna["members"]) == 10
    assert anna["pseudo_speaker"].startswith(anna["gender"])
    assert pickle.loads(pickle.dumps(anonymizer)).parameters(corpus.utterances[0]) == anna
    assert replace(anonymizer, seed=4).parameters(corpus.utterances[0])["members"] != anna["members"]
    with pytest.raises(InputError, match="carl"):
        anonymizer.parameters(corpus.utterances[4])


def test_genders_and_levels_are_kept(prepared: tuple[XvectorPool, Corpus]) -> None:
    _, corpus = prepared
    same = XvectorPool(gender="same", offline=True).prepare(corpus, Here())
    cross = XvectorPool(gender="cross", distance="plda", offline=True).prepare(corpus, Here())
    each = XvectorPool(per="utterance", offline=True).prepare(corpus, Here())
    for utterance in corpus.utterances[:4]:
        assert same.parameters(utterance)["gender"] == utterance.gender
        assert cross.parameters(utterance)["gender"] != utterance.gender
    assert each.parameters(corpus.utterances[0]) != each.parameters(corpus.utterances[1])


def test_the_chosen_voices_are_far_from_the_source(prepared: tuple[XvectorPool, Corpus]) -> None:
    anonymizer, corpus = prepared
    chosen = anonymizer.parameters(corpus.utterances[0])
    pool = anonymizer.chosen_pool
    cosines = pool.unit @ anonymizer.sources["anna"]
    rows = pool.of_gender(chosen["gender"])
    furthest = set(rows[np.argsort(cosines[rows])[:60]])
    assert {pool.rows[name] for name in chosen["members"]} <= furthest


def test_the_output_has_the_pseudo_speakers_pitch_and_is_repeatable(prepared: tuple[XvectorPool, Corpus]) -> None:
    anonymizer, _ = prepared
    samples = speech(120.0)
    outputs = []
    for gender, members in (("f", [f"f{n:03d}" for n in range(1, 11)]), ("m", [f"m{n:03d}" for n in range(1, 11)])):
        parameters = {"pseudo_speaker": "x", "gender": gender, "members": members}
        out = anonymizer.anonymize(samples, parameters)
        assert out.dtype == np.float32
        assert len(out) == len(samples)
        assert np.isfinite(out).all()
        assert np.abs(out).max() <= 1
        np.testing.assert_array_equal(anonymizer.anonymize(samples, parameters), out)
        loaded = model.load(model.builtin_model())
        code = loaded.speaker_code(loaded.pool.average(members))
        level = loaded.f0_level(code)
        # Of what is given to the vocoder: no tracker can be relied on where the words are made up.
        f0 = loaded.convert(features.hear(samples, FakeEncoder()), code).f0
        assert np.log(f0[f0 > 0]).mean() == pytest.approx(level)
        outputs.append((out, level))
    assert outputs[0][1] > outputs[1][1] + 0.2  # women speak higher
    assert not np.array_equal(outputs[0][0], outputs[1][0])


def test_silence_stays_silence_and_noise_passes(prepared: tuple[XvectorPool, Corpus]) -> None:
    anonymizer, corpus = prepared
    parameters = anonymizer.parameters(corpus.utterances[0])
    np.testing.assert_array_equal(anonymizer.anonymize(np.zeros(16000, np.float32), parameters), 0)
    noise = np.random.default_rng(0).normal(0, 0.05, 16000).astype(np.float32)
    assert np.isfinite(anonymizer.anonymize(noise, parameters)).all()


def test_the_output_is_as_loud_as_the_source_whatever_its_level(prepared: tuple[XvectorPool, Corpus]) -> None:
    anonymizer, corpus = prepared
    parameters = anonymizer.parameters(corpus.utterances[0])
    loud, quiet = (anonymizer.anonymize(scale * speech(), parameters) for scale in (np.float32(1), np.float32(0.01)))
    np.testing.assert_allclose(100 * quiet, loud, atol=0.01)
    assert features.level(loud)[1] == pytest.approx(features.level(speech())[1], rel=0.01)


def test_blocks_of_any_size_give_the_same_bytes(
    prepared: tuple[XvectorPool, Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a recording that is longer than what is spoken at once."""
    monkeypatch.setattr(world, "BLOCK_SECONDS", 2.0)
    monkeypatch.setattr(world, "CUT_SECONDS", 0.5)
    anonymizer, corpus = prepared
    parameters = anonymizer.parameters(corpus.utterances[0])
    samples = np.tile(speech(), 5)
    whole = np.concatenate(list(anonymizer.anonymize_blocks([samples], parameters)))
    parts = list(anonymizer.anonymize_blocks(np.array_split(samples, 9), parameters))
    assert len(parts) >= 2
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_the_words_survive_in_another_voice(librispeech: Path) -> None:
    """With the real recognizer, before and after."""
    from veilmeter.speech.audio import read_audio
    from veilmeter.speech.recognizers.base import load_recognizer

    shipped = model.load(model.builtin_model())
    recognizer = fetched(lambda: load_recognizer("moonshine"))
    synthesizer = fetched(lambda: system.WorldSynthesizer(shipped))
    samples = read_audio(librispeech / "test-other-10x10" / "1688" / "1688-142285-0000.flac")[: 5 * world.RATE]
    spoken = fetched(lambda: synthesizer.speak(samples, shipped.pool.average(shipped.pool.names[:10])))
    np.testing.assert_array_equal(synthesizer.speak(samples, shipped.pool.average(shipped.pool.names[:10])), spoken)
    before, after = (set(recognizer.transcribe(heard).text.lower().split()) for heard in (samples, spoken))
    assert len(before & after) > 0.6 * len(before)


def test_own_pools_and_synthesizers_take_their_place(tmp_path: Path) -> None:
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import write_embeddings

    rng = np.random.default_rng(0)
    names = [f"p{n}" for n in range(12)]
    write_embeddings(
        Embeddings(rng.normal(size=(12, 192)), names, names, {"gender": ["f", "m"] * 6}), tmp_path / "pool.npz"
    )
    made = XvectorPool(pool=str(tmp_path / "pool.npz"), furthest=5, drawn=2, synthesizer=f"{__name__}:Backwards")
    assert len(made.chosen_pool) == 12
    assert made.version != XvectorPool().version
    samples = speech()
    out = made.anonymize(samples, {"members": ["p0", "p2"], "gender": "f", "pseudo_speaker": "x"})
    np.testing.assert_array_equal(out, samples[::-1])
    with pytest.raises(InputError, match="fewer than 60"):
        XvectorPool(pool=str(tmp_path / "pool.npz"))
    with pytest.raises(InputError, match="synthesizer"):
        XvectorPool(synthesizer="json:loads").version  # noqa: B018


class Backwards:
    """A synthesizer of someone's own."""

    version = "1"

    def speak(self, samples: np.ndarray, xvector: np.ndarray) -> np.ndarray:
        assert xvector.shape == (192,)
        return samples[::-1].copy()
