"""Times in lists that no recording has: the line is left out and named, and the others are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from veilmeter.data.corpus import read_corpus
from veilmeter.speech.audio import write_audio

ODD = ["-5", "1e308", "-1e308", "nan", "inf", "9" * 5000, "0x10"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import numpy as np

    for name in ("a", "b"):
        write_audio(tmp_path / f"{name}.wav", 0.1 * np.sin(np.arange(32_000) / 9.0))
    return tmp_path


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("column", ["start", "duration"])
def test_in_a_table(folder: Path, column: str, value: str) -> None:
    (folder / "list.csv").write_text(f"path,speaker,{column}\na.wav,s,0.5\nb.wav,t,{value}\n")
    corpus = read_corpus(folder / "list.csv")
    assert [utterance.speaker for utterance in corpus] == ["s"]
    assert [problem.line for problem in corpus.problems] == [3]
    if value == "-5":
        assert corpus.problems[0].what == f"the {column} '-5' is negative"


@pytest.mark.parametrize("value", ODD)
def test_in_segments(folder: Path, value: str) -> None:
    (folder / "wav.scp").write_text("a a.wav\nb b.wav\n")
    (folder / "utt2spk").write_text("a-1 s\nb-1 t\n")
    for start, end in ((value, "1"), ("0", value)):
        (folder / "segments").write_text(f"a-1 a 0.1 0.9\nb-1 b {start} {end}\n")
        corpus = read_corpus(folder, "kaldi")
        assert [utterance.id for utterance in corpus] == ["a-1"]
        assert [(problem.kind, problem.line) for problem in corpus.problems] == [("bad-line", 2)]


@pytest.mark.parametrize("value", [1e308, -5, 1e10])
def test_in_json_lines(folder: Path, value: float) -> None:
    lines = [{"path": "a.wav", "speaker": "s", "start": 0.5}, {"path": "b.wav", "speaker": "t", "start": value}]
    (folder / "list.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = read_corpus(folder / "list.jsonl")
    assert [utterance.speaker for utterance in corpus] == ["s"]
    assert len(corpus.problems) == 1
