"""The cascade: nothing of the source but words, the same bytes for the same seed, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fetched import fetched

from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
from veilmeter.anonymizers.base import Draw, load_with_unused
from veilmeter.anonymizers.cascade import Cascade, system
from veilmeter.anonymizers.cascade.phones import load_pronouncer
from veilmeter.anonymizers.cascade.voices import load_synthesizer
from veilmeter.anonymizers.treatment import LevelMeter
from veilmeter.core.engine import Here
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Corpus, read_corpus
from veilmeter.speech.audio import RATE, read_audio, write_audio
from veilmeter.speech.recognizers.base import Transcript, load_recognizer

Samples = NDArray[np.float32]
FAST = {"voice": "fast", "keep": []}


class Script:
    """A recognizer that hears what it is told to; nothing where it is silent."""

    name, version, language = "script", "1", "en"

    def __init__(self, hear: Callable[[Samples], Transcript]) -> None:
        self.transcribe = hear


@pytest.fixture
def hears(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Samples], Transcript]], None]:
    fetched(load_pronouncer)
    fetched(lambda: load_synthesizer("fast"))
    return lambda hear: monkeypatch.setattr(system, "load_recognizer", lambda *_, **__: Script(hear))


def noise(seconds: float, level: float = 0.1, seed: int = 0) -> Samples:
    return (level * np.random.default_rng(seed).standard_normal(int(seconds * RATE))).astype(np.float32)


def corpus_of(folder: Path, languages: dict[str, str] | None = None) -> Corpus:
    """Two people, two recordings each."""
    rows = ["path,speaker" + (",language" if languages else "")]
    for number in range(4):
        write_audio(folder / f"{number}.wav", noise(2.0, seed=number))
        speaker = f"s{number // 2}"
        rows.append(f"{number}.wav,{speaker}" + (f",{languages[speaker]}" if languages else ""))
    (folder / "list.csv").write_text("\n".join(rows) + "\n")
    return read_corpus(folder / "list.csv")


def test_nothing_but_words_passes(hears: Callable[..., None]) -> None:
    """Neither level, length, voice nor noise of the source changes a sample; nor do marks and capitals."""
    hears(lambda _: Transcript("The boat left the harbor. Before, the fog lifted", 0.9))
    first = Cascade(voice="fast").anonymize(noise(3.0), FAST)
    hears(lambda _: Transcript("the boat left the harbor before the fog lifted.", 0.5))
    second = Cascade(voice="fast").anonymize(noise(5.0, 0.01, seed=1), FAST)
    np.testing.assert_array_equal(first.samples, second.samples)
    assert first.remarks == ()


def test_every_output_has_the_same_level(hears: Callable[..., None]) -> None:
    levels = []
    for text in ("The boat left the harbor.", "My brother keeps bees and sells the honey at the market."):
        hears(lambda _, text=text: Transcript(text, 0.9))
        meter = LevelMeter(RATE)
        meter.add(Cascade(voice="fast").anonymize(noise(3.0), FAST).samples)
        levels.append(meter.level)
    np.testing.assert_allclose(levels, system.LEVEL, rtol=0.01)


def test_what_is_not_recognized_is_silence_of_that_length(hears: Callable[..., None]) -> None:
    long = np.concatenate([noise(20.0), noise(1.0, 1e-4), noise(18.0, 0.5), noise(1.0, 1e-4), noise(5.0)])
    texts = iter([Transcript("the boat left", 0.9), Transcript("gibberish", 0.1), Transcript("the harbor", 0.9)])
    hears(lambda _: next(texts))
    output = Cascade(voice="fast").anonymize(long, FAST)
    assert len(output.remarks) == 1
    assert output.remarks[0].startswith("not recognized, now silent: 20.")
    start, _, end = output.remarks[0].removeprefix("not recognized, now silent: ").removesuffix(" s").partition(" to ")
    quiet = np.flatnonzero(np.diff(np.concatenate([[1], output.samples != 0, [1]])))
    longest = max(after - before for before, after in zip(quiet[::2], quiet[1::2], strict=False))
    assert longest / RATE == pytest.approx(float(end) - float(start), abs=0.2)


def test_long_silence_is_kept_only_with_pauses(hears: Callable[..., None]) -> None:
    """A silence of the source that fills whole stretches is a pause like any other."""
    hears(lambda _: Transcript("the boat left", 0.9))

    def lengths(keep: str) -> list[int]:
        around = (noise(12.0), noise(12.0, 0.5))
        sources = (np.concatenate([around[0], np.zeros(n * RATE, np.float32), around[1]]) for n in (40, 100))
        parameters = FAST | {"keep": [keep] if keep else []}
        return [len(Cascade(voice="fast", keep=keep).anonymize(source, parameters).samples) for source in sources]

    short, long = lengths("")
    assert short == long < 10 * RATE
    short, long = lengths("pauses")
    assert long - short > 50 * RATE


def test_a_stretch_with_long_pauses_is_heard_in_parts(hears: Callable[..., None]) -> None:
    parts = np.concatenate([noise(4.0), noise(1.5, 1e-4), noise(4.0), noise(1.5, 1e-4), noise(3.0)])
    hears(lambda heard: Transcript("the boat" if len(heard) < 7 * RATE else "", 0.9))
    first = Cascade(voice="fast").anonymize(parts, FAST)
    hears(lambda _: Transcript("the boat the boat the boat", 0.9))
    np.testing.assert_array_equal(first.samples, Cascade(voice="fast").anonymize(parts, FAST).samples)
    assert first.remarks == ()


def test_a_recording_without_words_is_refused(hears: Callable[..., None]) -> None:
    hears(lambda _: Transcript("", 1.0))
    with pytest.raises(InputError, match="no English words"):
        Cascade(voice="fast").anonymize(noise(2.0), FAST)
    with pytest.raises(InputError, match="no English words"):
        Cascade(voice="fast").anonymize(np.zeros(2 * RATE, np.float32), FAST)


def test_other_languages_are_refused(tmp_path: Path, hears: Callable[..., None]) -> None:
    hears(lambda _: Transcript("it was the best of times", 0.9))
    corpus = corpus_of(tmp_path, {"s0": "en-US", "s1": "de"})
    done = anonymize_corpus(corpus, tmp_path / "out", Cascade(voice="fast"))
    assert (done.done, len(done.failed)) == (2, 2)
    assert "English only, not 'de'" in done.failed[0].what
    with pytest.raises(InputError, match="English only"):
        Cascade(language="fr")


def test_speech_that_does_not_sound_english_is_refused(tmp_path: Path, hears: Callable[..., None]) -> None:
    corpus = corpus_of(tmp_path)
    hears(lambda _: Transcript("you can not do it in the middle of the night", 0.33))
    with pytest.raises(InputError, match="does not sound like English"):
        Cascade(voice="fast").prepare(corpus, Here())
    Cascade(voice="fast", language="en").prepare(corpus, Here())
    hears(lambda _: Transcript("", 1.0))
    Cascade(voice="fast").prepare(corpus, Here())  # nothing was heard, so nothing is known


def test_doubtful_words_are_listed(hears: Callable[..., None]) -> None:
    """One recording of another language among English ones is spoken as English words, which the user must know."""
    hears(lambda _: Transcript("the first thing is that the government", 0.36))
    (remark,) = Cascade(voice="fast").anonymize(noise(2.0), FAST).remarks
    assert remark == "words may be wrong or not English (low confidence): 0.0 to 2.0 s"
    for confidence in (0.6, None):
        hears(lambda _, sure=confidence: Transcript("the first thing is that the government", sure))
        assert Cascade(voice="fast").anonymize(noise(2.0), FAST).remarks == ()
    parts = np.concatenate([noise(4.0), noise(1.5, 1e-4), noise(4.0)])
    hears(lambda some: Transcript("the boat" if len(some) < 7 * RATE else "", 0.36))
    assert len(Cascade(voice="fast").anonymize(parts, FAST).remarks) == 1


def test_voices_are_drawn_from_the_seed_and_the_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from veilmeter.anonymizers.cascade.voices import LENGTHS, STYLE, BaseVoices

    rng = np.random.default_rng(0)
    names = tuple(f"a{gender}_{number}" for gender in "fm" for number in range(6))
    pool = BaseVoices(names, np.repeat(rng.standard_normal((12, 1, STYLE)), LENGTHS, axis=1).astype(np.float32))
    monkeypatch.setattr(system, "load_pool", lambda **_: pool)
    utterances = corpus_of(tmp_path).utterances
    drawn = [Cascade().parameters(u)["pseudo_speaker"] for u in utterances]
    assert len(set(drawn)) == 4
    assert drawn == [Cascade(seed=0).parameters(u)["pseudo_speaker"] for u in reversed(utterances)][::-1]
    by_speaker = [Cascade(per="speaker").parameters(u)["pseudo_speaker"] for u in utterances]
    assert by_speaker[0] == by_speaker[1] != by_speaker[2] == by_speaker[3]
    assert Cascade(seed=1).parameters(utterances[0])["pseudo_speaker"] != drawn[0]
    parameters = Cascade(keep="punctuation").parameters(replace(utterances[0], speaker="other"))
    assert set(parameters) == {"voice", "keep", "pseudo_speaker", "mixture", "nearest", "distance"}
    assert json.loads(json.dumps(parameters)) == parameters


def test_the_fast_voice_draws_nothing() -> None:
    anonymizer, unused = load_with_unused("cascade", {"voice": "fast", "seed": 3})
    assert anonymizer.draws == Draw.NONE  # type: ignore[attr-defined]
    assert set(unused) == {"seed", "per"}
    assert (Cascade().draws, Cascade(per="speaker").draws) == (Draw.UTTERANCE, Draw.SPEAKER)


@pytest.mark.parametrize("options", [{"voice": "deep"}, {"keep": "melody"}, {"per": "word"}, {"seed": -1}])
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Cascade(**options)  # type: ignore[arg-type]


def test_real_words_arrive_and_runs_are_the_same(tmp_path: Path) -> None:
    """From speech of the fast voice itself, at another level and rate, through the whole chain, twice."""
    import soxr

    recognizer = fetched(lambda: load_recognizer("moonshine"))
    voice = fetched(lambda: load_synthesizer("fast"))
    phones = [
        word.phones for word in fetched(load_pronouncer).pronounce(system.split_text("the dog waited by the gate"))
    ]
    speech = 0.2 * voice.speak(" ".join(phones) + ".", {})
    (tmp_path / "speech" / "s0").mkdir(parents=True)
    write_audio(tmp_path / "speech" / "s0" / "u0.wav", soxr.resample(speech, 24_000, 22_050), 22_050)
    corpus = read_corpus(tmp_path / "speech")
    runs = [anonymize_corpus(corpus, tmp_path / name, Cascade(voice="fast")) for name in ("one", "two")]
    assert [run.problems for run in runs] == [(), ()]
    one, two = (tmp_path / name / "s0" / "u0.flac" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert "dog waited by the gate" in recognizer.transcribe(read_audio(one)).text.lower()
