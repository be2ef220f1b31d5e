"""What is written: the rate and the channels of the source, parts and sides of recordings as files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
from veilmeter.anonymizers.mcadams import McAdams
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Utterance, read_corpus
from veilmeter.speech.audio import read_audio

soundfile = pytest.importorskip("soundfile")


class Same:
    """Gives back what it hears."""

    name, version = "same", "1"

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        return {}

    def anonymize(self, samples: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
        return samples


def tones(path: Path, rate: int, *pitches: float, seconds: float = 1.3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(int(seconds * rate)) / rate
    soundfile.write(path, np.stack([0.3 * np.sin(2 * np.pi * pitch * time) for pitch in pitches], axis=1), rate)


def pitch_of(path: Path) -> float:
    samples, rate = soundfile.read(path, always_2d=True)
    spectrum = np.abs(np.fft.rfft(samples[:, 0]))
    return float(spectrum.argmax() * rate / len(samples))


@pytest.mark.parametrize("system", [Same(), McAdams(1.0)])
@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (16_000, 2), (44_100, 1), (48_000, 2)])
def test_rate_channels_and_length_are_those_of_the_source(
    tmp_path: Path, system: Any, rate: int, channels: int
) -> None:
    tones(tmp_path / "in/a/1.wav", rate, *[440.0] * channels)
    tones(tmp_path / "in/b/1.wav", rate, *[440.0] * channels)
    anonymize_corpus(read_corpus(tmp_path / "in"), tmp_path / "out", system)
    before, after = soundfile.info(tmp_path / "in/a/1.wav"), soundfile.info(tmp_path / "out/a/1.flac")
    assert (after.samplerate, after.channels, after.frames) == (rate, channels, before.frames)
    assert pitch_of(tmp_path / "out/a/1.flac") == pytest.approx(440, abs=2)


def test_another_rate_on_demand_is_another_run(tmp_path: Path) -> None:
    for speaker in "ab":
        tones(tmp_path / f"in/{speaker}/1.wav", 44_100, 440)
    corpus = read_corpus(tmp_path / "in")
    anonymize_corpus(corpus, tmp_path / "out", Same(), rate=16_000)
    assert soundfile.info(tmp_path / "out/a/1.flac").samplerate == 16_000
    with pytest.raises(InputError, match="16000 Hz"):
        anonymize_corpus(corpus, tmp_path / "out", Same())
    again = anonymize_corpus(corpus, tmp_path / "out", Same(), overwrite=True)
    assert (again.kept, again.written) == (0, 2)
    with pytest.raises(InputError, match="a rate of 100 Hz"):
        anonymize_corpus(corpus, tmp_path / "out", Same(), rate=100)


def test_both_sides_of_a_call_become_files_of_their_own(tmp_path: Path) -> None:
    tones(tmp_path / "in/call.wav", 8000, 300, 1200, seconds=3)
    (tmp_path / "in/list.csv").write_text(
        "path,speaker,channel,start,end\ncall.wav,anna,0,,\ncall.wav,bert,1,,\ncall.wav,bert,1,1,2\n"
    )
    done = anonymize_corpus(read_corpus(tmp_path / "in/list.csv"), tmp_path / "out", McAdams(1.0))
    assert not done.failed
    again = read_corpus(tmp_path / "out")
    assert [(u.id, u.speaker, str(u.stretch)) for u in again] == [
        ("call-0", "anna", ""), ("call-1", "bert", ""), ("call-1-0001000-0002000", "bert", ""),
    ]  # fmt: skip
    for utterance, pitch, seconds in zip(again, (300, 1200, 1200), (3, 3, 1), strict=True):
        about = soundfile.info(utterance.path)
        assert (about.samplerate, about.channels, about.duration) == (8000, 1, seconds)
        assert pitch_of(utterance.path) == pytest.approx(pitch, abs=2)
        assert utterance.path.name == f"{utterance.id}.flac"


def test_sides_that_nobody_chose_are_refused_and_a_choice_is_heard(tmp_path: Path) -> None:
    for speaker in "ab":
        tones(tmp_path / f"in/{speaker}/1.wav", 16_000, 300, 1200)
    done = anonymize_corpus(read_corpus(tmp_path / "in"), tmp_path / "out", Same())
    assert [(problem.kind, "--channel 0, 1 or mix" in problem.fix) for problem in done.failed] == [
        ("channels", True)
    ] * 2
    chosen = read_corpus(tmp_path / "in", channel="1")
    anonymize_corpus(chosen, tmp_path / "side", Same())
    assert soundfile.info(tmp_path / "side/a/1.flac").channels == 1
    assert pitch_of(tmp_path / "side/a/1.flac") == pytest.approx(1200, abs=2)
    # The same choice holds for the copies, which have one channel.
    copies = read_corpus(tmp_path / "side", channel="1")
    np.testing.assert_allclose(
        read_audio(copies.utterances[0].path, stretch=copies.utterances[0].stretch),
        read_audio(chosen.utterances[0].path, stretch=chosen.utterances[0].stretch),
        atol=1e-4,
    )


def test_runs_of_a_system_over_parts_of_files_are_heard_as_they_are(tmp_path: Path) -> None:
    """What was cut out is not cut a second time."""
    from veilmeter.assessment.inputs import corpus_of_copies

    tones(tmp_path / "in/call.wav", 16_000, 300, 1200, seconds=4)
    (tmp_path / "in/list.csv").write_text("path,speaker,channel,start,end\ncall.wav,anna,1,2,4\n")
    corpus = read_corpus(tmp_path / "in/list.csv")
    (copy,) = corpus_of_copies(corpus, anonymize_corpus(corpus, tmp_path / "out", Same())).utterances
    (source,) = corpus.utterances
    np.testing.assert_allclose(
        read_audio(copy.path, stretch=copy.stretch), read_audio(source.path, stretch=source.stretch), atol=1e-4
    )
