"""Rhythm and melody of a source: found, normalized, and laid on another voice."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soxr
from numpy.typing import NDArray
from tests.fetched import fetched

from veilmeter.anonymizers.cascade import Cascade, system
from veilmeter.anonymizers.cascade.phones import Word, load_pronouncer, split_text
from veilmeter.anonymizers.cascade.prosody import Contour, SourceProsody, align
from veilmeter.anonymizers.cascade.voices import load_synthesizer
from veilmeter.speech.audio import RATE
from veilmeter.speech.quality import PitchTracker
from veilmeter.speech.recognizers.base import Transcript

TEXT = "the dog waited by the gate until everyone had come home"
OWN = np.array([10, 3, 1, 4, 2, 5, 3, 9])  # a silence, six phones, a silence


def prosody(*lengths: float, rhythm: bool = True, contour: Contour | None = None) -> SourceProsody:
    """Of the phones ˈab c with these lengths in seconds; the stress and the blank have none."""
    edges = np.concatenate([[1.0], 1.0 + np.cumsum(lengths)])
    spans = [(float(a), float(b)) for a, b in pairwise(edges)]
    places = [None, spans[0], spans[1], None, spans[2], None]
    return SourceProsody("ˈab c.", places, float(np.mean(lengths)), rhythm, contour)


def test_durations_follow_the_source_and_not_its_tempo() -> None:
    given = prosody(0.05, 0.2, 0.05).durations(OWN)
    assert given.tolist() == prosody(0.1, 0.4, 0.1).durations(OWN).tolist()
    assert given[0] == OWN[0]  # silences, blanks and marks stay
    assert given[-1] == OWN[-1]
    assert given[4] == OWN[4]
    phones = [given[1] + given[2], given[3], given[5]]
    assert phones[1] == pytest.approx(4 * phones[0], abs=2)
    assert sum(phones) == pytest.approx(OWN[[1, 2, 3, 5]].sum(), abs=1)
    assert given.min() >= 1
    assert prosody(0.05, 0.2, 0.05, rhythm=False).durations(OWN).tolist() == OWN.tolist()


def test_melody_follows_the_source_and_not_its_height() -> None:
    rising = Contour(np.array([1.0, 1.3]), np.array([-1.0, 1.0]))
    frames = int(2 * OWN.sum())
    own = np.full(frames, 200.0) * np.exp(0.2 * np.sin(np.arange(frames)))
    own[:10] = 0.0
    given = prosody(0.1, 0.1, 0.1, contour=rising).melody(own, OWN)
    assert (given[:10] == 0).all()
    voiced = given[2 * OWN[0] : -2 * OWN[-1]]
    assert (np.diff(voiced) >= 0).all()
    assert voiced[-1] > voiced[0] * 1.2
    assert np.log(given[10:]).mean() == pytest.approx(np.log(own[10:]).mean(), abs=0.2)
    np.testing.assert_array_equal(prosody(0.1, 0.1, 0.1).melody(own, OWN), own)


def test_a_contour_has_neither_height_nor_range() -> None:
    tracker = fetched(PitchTracker)
    times = np.arange(2 * RATE) / RATE

    def glide(low: float, octaves: float) -> NDArray[np.float32]:
        angle = np.cumsum(low * 2 ** (octaves * times / 2)) / RATE * 2 * np.pi
        return (0.1 * sum(np.sin(k * angle) for k in range(1, 8))).astype(np.float32)

    at = np.linspace(0.2, 1.8, 9)
    low, high = (Contour.of(glide(*how), tracker).at(at) for how in ((110.0, 0.5), (180.0, 1.0)))
    np.testing.assert_allclose(low, high, atol=0.25)
    assert (Contour.of(np.zeros(RATE, np.float32), tracker).at(at) == 0).all()


@pytest.fixture(scope="module")
def spoken() -> tuple[list[Word], NDArray[np.float32]]:
    """The text by the fast voice, with half a second of silence behind the gate."""
    words = fetched(load_pronouncer).pronounce(split_text(TEXT))
    voice = fetched(lambda: load_synthesizer("fast"))
    halves = [voice.speak(system.spell(part)[0] + ".", {}) for part in (words[:6], words[6:])]
    joined = np.concatenate([halves[0], np.zeros(12_000, np.float32), halves[1]])
    return words, soxr.resample(joined, 24_000, RATE)


def test_words_and_pauses_are_found(spoken: tuple[list[Word], NDArray[np.float32]]) -> None:
    words, samples = spoken
    aligned = align(words, samples)
    assert aligned is not None
    assert len(aligned) == len(words)
    edges = np.array([edge for word in aligned for span in word.phones for edge in span])
    assert (np.diff(edges) >= -1e-9).all()
    assert [number for number, word in enumerate(aligned[:-1]) if word.pause > 0.45] == [5]
    assert align([*words, *words, *words], samples[: RATE // 3]) is None


@pytest.mark.parametrize("keep", ["", "pauses", "durations", "pitch", "prosody"])
def test_each_can_be_kept(
    spoken: tuple[list[Word], NDArray[np.float32]], keep: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A source with stretched vowels in one half: its rhythm arrives only where it is kept, its length never does."""
    words, samples = spoken
    slow = soxr.resample(samples[len(samples) // 2 :], 10_000, RATE)  # half of it 1.6 times as slow
    source = np.concatenate([samples[: len(samples) // 2], slow])

    class Told:
        name, version, language = "told", "1", "en"

        def transcribe(self, _: NDArray[np.float32]) -> Transcript:
            return Transcript(TEXT, 0.9)

    monkeypatch.setattr(system, "load_recognizer", lambda *_, **__: Told())
    output = Cascade(voice="fast", keep=keep).anonymize(source, {"voice": "fast", "keep": system.parse_keep(keep)})
    assert output.remarks == ()
    assert abs(len(output.samples) - len(source)) > RATE // 10
    before, after = align(words, source), align(words, output.samples)
    assert before is not None
    assert after is not None
    pauses = [number for number, word in enumerate(after[:-1]) if word.pause > 0.35]
    assert pauses == ([5] if keep == "pauses" else [])
    halves = [np.mean([end - start for word in part for start, end in word.phones]) for part in (after[:6], after[6:])]
    assert (halves[1] / halves[0] > 1.25) == (keep in ("durations", "prosody"))
