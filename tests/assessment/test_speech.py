"""Sources: which columns and channels of both sides are meant, and what is said before anything is listened to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veilmeter.assessment import assess
from veilmeter.assessment.settings import Settings, make_settings
from veilmeter.assessment.speech import check_inputs, read_sources
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import SIDES, SpeechRole
from veilmeter.speech.audio import chose_channel

soundfile = pytest.importorskip("soundfile")


def call(path: Path, *pitches: float) -> None:
    """A recording with one tone per channel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(16_000) / 16_000
    soundfile.write(path, np.stack([0.3 * np.sin(2 * np.pi * pitch * time) for pitch in pitches], axis=1), 16_000)


def table(folder: Path, header: str, *rows: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "list.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder / "list.csv"


def both(tmp_path: Path, original: str, anonymized: str) -> list[tuple[SpeechRole, Path]]:
    sides = []
    for role, header in zip(SIDES, (original, anonymized), strict=True):
        call(tmp_path / role / "a.wav", 200, 900)
        sides.append((role, table(tmp_path / role, header, "a.wav,s1")))
    return sides


def test_columns_hold_for_the_first_table_and_others_may_have_own_names(tmp_path: Path) -> None:
    sides = both(tmp_path, "clip,caller", "path,speaker")
    settings = make_settings({"columns": {"path": "clip", "speaker": "caller"}})
    corpora = read_sources(sides, settings)
    assert [[u.speaker for u in corpus] for corpus in corpora.values()] == [["s1"], ["s1"]]
    with pytest.raises(InputError, match="no column 'clap' for 'path'"):
        read_sources(sides, make_settings({"columns": "path=clap,speaker=caller"}))
    with pytest.raises(InputError, match="no column 'clip' for 'path'"):
        read_sources(both(tmp_path / "other", "clip,caller", "sound,who"), settings)


def test_columns_for_folders_are_refused(tmp_path: Path) -> None:
    for role in SIDES:
        for name in ("x/1.wav", "y/1.wav"):
            call(tmp_path / role / name, 200)
    sides = [(role, tmp_path / role) for role in SIDES]
    with pytest.raises(InputError, match="--columns means nothing in the folder layout"):
        read_sources(sides, make_settings({"columns": ["path=clip"]}))
    with pytest.raises(InputError, match="not understood"):
        make_settings({"columns": ["clip"]})


def test_a_channel_is_chosen_where_there_are_several(tmp_path: Path) -> None:
    """An anonymized side of a call is a file with one channel: it is that side."""
    from veilmeter.speech.audio import AudioError, read_audio

    call(tmp_path / "a.wav", 200, 900)
    call(tmp_path / "b.wav", 500)
    listed = table(tmp_path, "path,speaker", "a.wav,s1", "b.wav,s2")
    corpus = read_sources([(SpeechRole.ORIGINAL, listed)], make_settings({"channel": 1}))[
        SpeechRole.ORIGINAL, str(listed)
    ]
    peaks = []
    for utterance in corpus:
        spectrum = np.abs(np.fft.rfft(read_audio(utterance.path, stretch=utterance.stretch)))
        peaks.append(int(spectrum.argmax()))
    assert peaks == [900, 500]
    assert chose_channel(corpus)
    assert not chose_channel(corpus.take(["b"]))
    strict = table(tmp_path / "strict", "path,speaker,channel", "../b.wav,s2,1")
    named = read_sources([(SpeechRole.ORIGINAL, strict)], Settings(root=(str(tmp_path),)))[
        SpeechRole.ORIGINAL, str(strict)
    ]
    with pytest.raises(AudioError, match="channel 1 was asked for"):
        read_audio(named.utterances[0].path, stretch=named.utterances[0].stretch)


NEVER = "def embed(samples):\n    raise SystemExit('listened')\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("b.wav,s1", "no utterance is in both"),
        ("a.wav,s2", "names another speaker"),
        ("gone/a.wav,s1", "there is no such file"),
    ],
)
def test_nothing_is_listened_to_before_both_sides_fit(tmp_path: Path, rows: str, message: str) -> None:
    for role in SIDES:
        for name in "ab":
            call(tmp_path / role / f"{name}.wav", 200)
    original = table(tmp_path / "original", "path,speaker", "a.wav,s1")
    anonymized = table(tmp_path / "anonymized", "path,speaker", rows)
    (tmp_path / "never.py").write_text(NEVER)
    with pytest.raises(InputError, match=message):
        assess(original, anonymized, extractor=f"{tmp_path / 'never.py'}:embed")
    with pytest.raises(InputError, match="no such file or folder"):
        assess(original, original, train_anonymized=tmp_path / "nowhere", extractor=f"{tmp_path / 'never.py'}:embed")


def test_recordings_that_are_not_there_are_said_at_once(tmp_path: Path) -> None:
    for name in "ac":
        call(tmp_path / f"{name}.wav", 200)
    listed = table(tmp_path, "path,speaker", "a.wav,s1", "b.wav,s1", "c.wav,s2")
    sayings: list[str] = []
    sources = dict.fromkeys(SIDES, str(listed))
    check_inputs(sources, Settings(language="en"), sayings.append)
    assert len(sayings) == 2
    assert all("b.wav: there is no such file" in text for text in sayings)
    with pytest.raises(InputError, match="there is no such file"):
        check_inputs(sources, Settings(strict=True), sayings.append)
