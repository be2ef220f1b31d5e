"""`veilmeter transcribe`, with a recognizer that takes no time."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.speech.audio import write_audio

HEAR = """
def hear(samples):
    return "=word " * round(len(samples) / 16000)
"""


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    (tmp_path / "asr.py").write_text(HEAR)
    for number in (1, 2, 3):
        write_audio(tmp_path / f"speech/anna/{number}.wav", 0.1 * np.sin(np.arange(number * 16_000)))
    write_audio(tmp_path / "speech/anna/silent.wav", np.zeros(16_000))
    return tmp_path / "speech"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["transcribe", *map(str, arguments), "--quiet", "--jobs", "1"])


def test_three_files_say_the_same(speech: Path, tmp_path: Path) -> None:
    recognizer = f"{tmp_path}/asr.py:hear"
    result = run(speech, tmp_path / "out", "--recognizer", recognizer, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)["transcribed"]
    assert (facts["utterances"], facts["without_words"], facts["computed"]) == (4, 1, 4)
    assert (facts["language"], facts["language_from"]) == ("en", "assumed")
    lines = (tmp_path / "out/text").read_text().splitlines()
    assert lines == ["anna/1 =word", "anna/2 =word =word", "anna/3 =word =word =word", "anna/silent"]
    with open(tmp_path / "out/transcripts.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[1] == {
        "utterance": "anna/2", "speaker": "anna", "text": "'=word =word", "confidence": "", "seconds": "2.0"
    }  # fmt: skip
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(tmp_path / "out/transcripts.parquet")
    assert table["text"].to_pylist() == [line.partition(" ")[2] for line in lines]
    again = run(speech, tmp_path / "out", "--recognizer", recognizer)
    assert "4 of them from before" in again.output
    assert "no words were recognized in 1" in again.output


def test_what_cant_be_read_is_left_out_and_another_language_is_refused(speech: Path, tmp_path: Path) -> None:
    (speech / "anna/broken.wav").write_bytes(b"no audio")
    result = run(speech, tmp_path / "out", "--recognizer", f"{tmp_path}/asr.py:hear")
    assert result.exit_code == 3
    assert "broken.wav" in result.output
    refused = run(speech, tmp_path / "other", "--language", "de", "--recognizer", "moonshine")
    assert isinstance(refused.exception, InputError)
    assert "choose --recognizer whisper" in str(refused.exception)


def test_a_lower_limit_acts_in_a_used_folder(speech: Path, tmp_path: Path) -> None:
    recognizer = f"{tmp_path}/asr.py:hear"
    assert run(speech, tmp_path / "out", "--recognizer", recognizer).exit_code == 0
    lowered = run(speech, tmp_path / "out", "--recognizer", recognizer, "--max-seconds", 2.5, "--json")
    assert lowered.exit_code == 3, lowered.output
    assert json.loads(lowered.stdout)["transcribed"]["utterances"] == 3
    assert "anna/3" not in (tmp_path / "out/text").read_text()
