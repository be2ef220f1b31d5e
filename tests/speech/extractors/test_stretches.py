"""Parts of recordings through embedding and anonymization, and long recordings in windows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
from veilmeter.data.corpus import read_corpus
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.speech.audio import read_audio
from veilmeter.speech.check_corpus import listen
from veilmeter.speech.extractors.embed_corpus import WINDOW_SECONDS, embed_corpus, embed_in_windows

soundfile = pytest.importorskip("soundfile")

SOURCE = """import numpy as np
def embed(samples):
    return np.array([len(samples), samples[0], samples[-1], 1.0], np.float32)
"""


@pytest.fixture
def calls(tmp_path: Path, speechlike: Callable[..., NDArray[np.float32]]) -> Path:
    """A call with a person on each channel, of whom parts are listed."""
    root = tmp_path / "calls"
    root.mkdir()
    two = np.column_stack([speechlike(6, 1), speechlike(6, 2)])
    soundfile.write(root / "call.wav", two, 16000, subtype="FLOAT")
    (root / "list.csv").write_text(
        "path,speaker,utterance,start,end,channel\n"
        "call.wav,anna,a1,0,2,0\ncall.wav,anna,a2,2,5,0\ncall.wav,bert,b1,1,4,1\n"
    )
    (root / "mine.py").write_text(SOURCE)
    return root


def test_parts_are_embedded_and_again_when_the_list_changes(calls: Path, tmp_path: Path) -> None:
    extractor = f"{calls / 'mine.py'}:embed"
    two, _ = soundfile.read(calls / "call.wav", dtype="float32")

    def expected(start: int, end: int, channel: int) -> list[float]:
        part = two[start * 16000 : end * 16000, channel]
        return [len(part), part[0], part[-1], 1.0]

    assert [heard.seconds for heard in listen(read_corpus(calls))] == [2.0, 3.0, 3.0]
    embed_corpus(read_corpus(calls), tmp_path / "out", extractor)
    found = read_embeddings(tmp_path / "out")
    np.testing.assert_array_equal(found.vectors, [expected(0, 2, 0), expected(2, 5, 0), expected(1, 4, 1)])
    again = embed_corpus(read_corpus(calls), tmp_path / "out", extractor)
    assert (again.computed, again.reused) == (0, 3)
    text = (calls / "list.csv").read_text()
    (calls / "list.csv").write_text(text.replace("a1,0,2,0", "a1,0,3,0").replace("b1,1,4,1", "b1,1,4,0"))
    changed = embed_corpus(read_corpus(calls), tmp_path / "out", extractor)
    assert (changed.computed, changed.reused) == (2, 1)
    found = read_embeddings(tmp_path / "out")
    np.testing.assert_array_equal(found.vectors, [expected(0, 3, 0), expected(2, 5, 0), expected(1, 4, 0)])


class Negate:
    name, version = "negate", "1"

    def parameters(self, utterance: Any) -> dict[str, Any]:
        return {}

    def anonymize(self, samples: NDArray[np.float32], parameters: dict[str, Any]) -> NDArray[np.float32]:
        return -samples


def test_parts_are_anonymized_one_by_one(calls: Path, tmp_path: Path) -> None:
    out = tmp_path / "protected"
    done = anonymize_corpus(read_corpus(calls), out, Negate(), audio="wav")
    assert not done.failed
    protected = read_corpus(out)
    assert [(u.id, u.speaker, str(u.stretch)) for u in protected] == [
        ("a1", "anna", ""), ("a2", "anna", ""), ("b1", "bert", ""),
    ]  # fmt: skip
    for before, after in zip(read_corpus(calls), protected, strict=True):
        clear = read_audio(before.path, stretch=before.stretch)
        np.testing.assert_allclose(read_audio(after.path), -clear, atol=1 / 32768)


class Counting:
    name, version, dimension = "counting", "1", 2

    def __init__(self) -> None:
        self.longest = 0

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        self.longest = max(self.longest, len(samples))
        return np.array([samples.sum(), 1.0], np.float32)


@pytest.mark.parametrize("seconds", [30.0, WINDOW_SECONDS, WINDOW_SECONDS + 0.1, 150.0])
def test_no_window_is_longer_than_a_minute(seconds: float) -> None:
    samples = np.full(int(seconds * 16000), 0.0, np.float32)
    samples[::2] = 0.01
    extractor = Counting()
    vector = embed_in_windows(extractor, [samples], len(samples))
    in_blocks = embed_in_windows(Counting(), np.array_split(samples, 7), len(samples))
    np.testing.assert_array_equal(vector, in_blocks)
    assert extractor.longest <= WINDOW_SECONDS * 16000
    windows = -(-len(samples) // int(WINDOW_SECONDS * 16000))
    assert vector[0] == pytest.approx(samples.sum() / windows, rel=1e-3)
    assert vector[1] == 1


def test_silent_windows_do_not_count() -> None:
    samples = np.zeros(int(3 * WINDOW_SECONDS * 16000), np.float32)
    samples[: int(WINDOW_SECONDS * 16000) : 2] = 0.5
    alone = embed_in_windows(Counting(), [samples], int(WINDOW_SECONDS * 16000))
    np.testing.assert_allclose(embed_in_windows(Counting(), [samples], len(samples)), alone)


@pytest.mark.parametrize(
    ("silent", "most", "heard"),
    [
        ([], 3, [0, 2, 4]),
        ([], None, [0, 1, 2, 3, 4, 5]),
        ([], 9, [0, 1, 2, 3, 4, 5]),
        ([0, 2, 3], 2, [1, 4]),
        ([0, 1, 2, 3, 4], 2, [5]),
    ],
)
def test_of_many_windows_a_few_are_heard_all_over_the_recording(
    silent: list[int], most: int | None, heard: list[int]
) -> None:
    size = int(WINDOW_SECONDS * 16000)
    levels = np.array([0.0 if number in silent else 2.0**-number for number in range(6)], np.float32)
    samples = np.repeat(levels, size)
    samples[::2] *= -0.5
    vector = embed_in_windows(Counting(), np.array_split(samples, 11), len(samples), most=most)
    each = [Counting().embed(samples[number * size : (number + 1) * size]) for number in heard]
    np.testing.assert_allclose(vector, np.mean(each, axis=0), rtol=1e-5)


def test_a_long_recording_is_heard_in_blocks_and_gives_the_same_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veilmeter.speech import recordings

    path = tmp_path / "a.wav"
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 70 * 8000).astype(np.float32)
    soundfile.write(path, samples, 8000, subtype="FLOAT")
    outcomes = []
    for most in (600.0, 5.0):
        monkeypatch.setattr(recordings, "LONG_SECONDS", most)
        examined = recordings.examine(
            recordings.Source("a", str(path)),
            lambda heard: embed_in_windows(Counting(), [heard], len(heard)),
            by_blocks=lambda blocks, length: embed_in_windows(Counting(), blocks, length),
            max_seconds=100,
        )
        outcomes.append(examined)
    assert outcomes[0].record == outcomes[1].record
    np.testing.assert_array_equal(outcomes[0].finding, outcomes[1].finding)
