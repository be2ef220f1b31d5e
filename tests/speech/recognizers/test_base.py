"""Recognizers of any kind, the language they recognize, and long recordings."""

from __future__ import annotations

import shlex
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.speech.recognizers.base import (
    RECOGNIZERS,
    Transcript,
    cut_at_pauses,
    join_transcripts,
    load_recognizer,
)

SECOND = np.full(16_000, 0.1, np.float32)


def test_the_registry_knows_its_recognizers_and_their_languages() -> None:
    assert list(RECOGNIZERS)[:2] == ["moonshine", "whisper"]
    assert RECOGNIZERS["moonshine"].languages == ("en",)
    assert {"de", "fr", "haw"} < set(RECOGNIZERS["whisper"].languages)
    assert len(RECOGNIZERS["whisper"].languages) == 99


def test_another_language_names_a_recognizer_that_knows_it() -> None:
    with pytest.raises(InputError, match=r"moonshine recognizes en, not 'de' \(choose --recognizer whisper\)"):
        load_recognizer("moonshine", "de")
    with pytest.raises(InputError, match="not 'tlh'"):
        load_recognizer("whisper", "tlh")
    with pytest.raises(InputError, match="did you mean 'moonshine'"):
        load_recognizer("moonshin")


def test_a_program_prints_what_it_hears(tmp_path: Path) -> None:
    script = tmp_path / "asr.py"
    script.write_text(
        "import sys, wave\nw = wave.open(sys.argv[1])\nprint(sys.argv[2], ' ', w.getnframes(), end='\\n\\n')\n"
    )
    line = f"command:{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{input}} {{language}}"
    recognizer = load_recognizer(line, "fr")
    assert recognizer.transcribe(SECOND) == Transcript("fr 16000")
    script.write_text("raise SystemExit('no model')")
    with pytest.raises(InputError, match="no model"):
        recognizer.transcribe(SECOND)
    with pytest.raises(InputError, match=r"no \{input\}"):
        load_recognizer(f"command:{shlex.quote(sys.executable)} -V")


def test_a_function_of_the_users(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "def hear(samples):\n    return f'{len(samples)} samples'\ndef bad(samples):\n    return 7\nnothing = 1\n"
    )
    assert load_recognizer(f"{path}:hear").transcribe(SECOND).text == "16000 samples"
    with pytest.raises(VeilmeterError, match="gave a int"):
        load_recognizer(f"{path}:bad").transcribe(SECOND)
    with pytest.raises(InputError, match="neither a function"):
        load_recognizer(f"{path}:nothing")
    with pytest.raises(InputError, match="has no 'other'"):
        load_recognizer(f"{path}:other")


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60 * 16_000), st.integers(0, 2**32 - 1))
def test_stretches_make_up_the_recording_and_are_bounded(length: int, seed: int) -> None:
    samples = np.random.default_rng(seed).standard_normal(length).astype(np.float32)
    pieces = list(cut_at_pauses(samples, 10.0))
    np.testing.assert_array_equal(np.concatenate(pieces), samples)
    assert max(map(len, pieces)) <= 160_000
    assert all(len(piece) >= 80_000 for piece in pieces[:-1])


def test_it_cuts_in_the_pauses() -> None:
    samples = np.random.default_rng(0).standard_normal(40 * 16_000).astype(np.float32)
    pauses = [(7.0, 7.5), (15.0, 15.4), (22.5, 23.0), (31.0, 31.4)]
    for start, end in pauses:
        samples[int(start * 16_000) : int(end * 16_000)] *= 0.01
    cuts = np.cumsum([len(piece) for piece in cut_at_pauses(samples, 10.0)])[:-1] / 16_000
    assert len(cuts) >= 4
    assert all(any(start <= cut <= end for start, end in pauses) for cut in cuts[:4])
    assert all(a < b for a, b in pairwise(cuts))


def test_confidence_over_stretches_is_that_over_their_tokens() -> None:
    both = join_transcripts([Transcript("a b", 0.5), Transcript("", 1.0), Transcript("c", 0.25)], [2, 1, 1])
    assert both.text == "a b c"
    assert both.confidence == pytest.approx((0.5 * 0.5 * 1.0 * 0.25) ** (1 / 4))
    assert join_transcripts([Transcript("a"), Transcript("b")], [1, 1]) == Transcript("a b")
