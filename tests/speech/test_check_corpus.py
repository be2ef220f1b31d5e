"""`veilmeter check CORPUS`: all about a corpus before any long run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.engine import Pool
from veilmeter.data.checks import check
from veilmeter.speech import check_corpus
from veilmeter.speech.audio import write_audio

pytest.importorskip("soundfile")

Make = Callable[..., NDArray[np.float32]]


@pytest.fixture
def corpus(tmp_path: Path, speechlike: Make, break_audio: Callable[..., Path], broken_kinds: dict[str, str]) -> Path:
    lines = ["path,speaker,gender,session"]
    for number in range(6):
        write_audio(tmp_path / "audio" / f"{number}.flac", speechlike(1 + number, number))
        lines.append(f"audio/{number}.flac,s{number % 3},{'fm'[number % 2]},{['am', 'pm'][number // 3]}")
    for way in broken_kinds:
        path = break_audio(tmp_path / "audio" / way, way, 1)
        lines.append(f"audio/{path.name},s9,,")
    lines += ["../out.wav,s1,,", "audio/none.wav,s1,,"]
    (tmp_path / "list.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "list.csv"


def test_everything_is_said(corpus: Path, broken_kinds: dict[str, str]) -> None:
    found = check(corpus)
    assert found.kind == "corpus"
    assert found.is_broken
    assert found.usable  # the others can be used, as every command that reads the corpus does
    facts = found.facts
    assert (facts["layout"], facts["speakers"], facts["utterances"]) == ("csv", 4, 7)  # the clipped one counts
    assert facts["hours"] == pytest.approx((21 + 1.5) / 3600, abs=1e-4)
    assert facts["seconds_per_utterance"] == {"least": 1.0, "median": 3.0, "most": 6.0}
    assert facts["speakers_by_gender"] == {"f": 3, "unknown": 1}  # each of s0, s1, s2 is named f once and m once
    assert facts["sessions"] == 6
    expected = {**{kind: list(broken_kinds.values()).count(kind) for kind in broken_kinds.values()},
                "outside-root": 1, "missing-audio": 1}  # fmt: skip
    del expected["unreadable"]
    expected["unreadable"] = 2
    expected["missing-audio"] += 1  # the pipe does not count as a file
    expected["one-recording"] = 1  # somebody is left with one
    assert facts["problems"] == expected
    assert {problem.kind for problem in found.problems} == expected.keys()
    assert [p.kind for p in found.problems if not p.fatal] == ["clipped", "one-recording"]
    truncated = next(p for p in found.problems if p.kind == "truncated")
    assert "3 times truncated" in truncated.what
    assert "cut-flac.flac" in str(truncated) + truncated.what


def test_processes_change_nothing(corpus: Path) -> None:
    from veilmeter.data.corpus import read_corpus

    pool = Pool(2)
    try:
        assert check_corpus.listen(read_corpus(corpus), pool) == check_corpus.listen(read_corpus(corpus))
    finally:
        pool.close()


def test_the_command(corpus: Path) -> None:
    done = CliRunner().invoke(app, ["check", str(corpus)])
    assert done.exit_code == 3
    assert "4 speakers" in done.output
    assert "7 utterances" in done.output
    done = CliRunner().invoke(app, ["check", str(corpus), "--json"])
    (file,) = json.loads(done.stdout)["files"]
    assert file["facts"]["speakers"] == 4


def test_real_speech_is_fine(librispeech: Path) -> None:
    found = check(librispeech / "test-other-10x10")
    assert found.usable
    assert not found.problems
    assert "10 speakers (5 f, 5 m), 100 utterances (10 per speaker), 10 sessions, 0.21 hours" in found.summary


def test_audio_that_nobody_owns_is_a_corpus_that_is_wrong(tmp_path: Path, speechlike: Make) -> None:
    write_audio(tmp_path / "one.wav", speechlike())
    found = check(tmp_path)
    assert [p.kind for p in found.problems] == ["unreadable"]
    assert "no corpus layout" in found.problems[0].what
    done = CliRunner().invoke(app, ["check", str(tmp_path), "--layout", "librispeech"])
    assert done.exit_code == 2
    assert "no usable utterance" in done.output


def test_what_can_be_read_and_not_measured_is_remarked(tmp_path: Path, speechlike: Make) -> None:
    write_audio(tmp_path / "a" / "b" / "1.wav", speechlike(0.6, 0))
    write_audio(tmp_path / "a" / "c" / "1.wav", speechlike(0.6, 1))
    (remark,) = check(tmp_path).problems
    assert remark.kind == "one-speaker"
    assert check(tmp_path).usable
    (remark,) = check(tmp_path / "a").problems
    assert remark.what.startswith("every speaker has one usable recording only")
    write_audio(tmp_path / "a" / "c" / "2.wav", speechlike(0.6, 2))
    assert check(tmp_path / "a").problems[0].what.startswith("1 of 2 speakers have one usable recording only")
    write_audio(tmp_path / "a" / "b" / "2.wav", speechlike(0.6, 3))
    assert not check(tmp_path / "a").problems


def test_the_folder_above_several_kaldi_folders(tmp_path: Path) -> None:
    for name in ("test", "train"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "wav.scp").write_text("a /nothing.wav\n")
    found = check(tmp_path)
    assert not found.usable
    assert "2 Kaldi data folders here: test, train" in found.problems[0].what


def test_recordings_that_embed_leaves_out_do_not_fail_a_corpus(tmp_path: Path, speechlike: Make) -> None:
    for number in range(2):
        for speaker in "ab":
            write_audio(tmp_path / speaker / f"{number}.wav", speechlike(1, number))
    assert CliRunner().invoke(app, ["check", str(tmp_path)]).exit_code == 0
    (tmp_path / "a" / "broken.wav").write_text("no sound")
    done = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert done.exit_code == 3  # as that of `embed`
    assert "can be used without the recordings marked !" in done.output
    assert "! " in done.output.splitlines()[1]


def test_all_broken(tmp_path: Path) -> None:
    write_audio(tmp_path / "a" / "1.wav", np.zeros(16000))
    found = check(tmp_path)
    assert not found.usable
    assert "nothing usable" in found.summary


def test_one_variant_of_voiceprivacy_data(tmp_path: Path, speechlike: Make) -> None:
    for suffix, count in (("", 1), ("_anon", 2)):
        folder = tmp_path / f"libri_test_enrolls{suffix}"
        for number in range(count):
            write_audio(folder / "wav" / f"1-{number}.wav", speechlike(0.6, number))
        (folder / "utt2spk").write_text("".join(f"1-{number} 1\n" for number in range(count)))
    asked = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert asked.exit_code == 2
    assert "--suffix" in asked.output
    found = CliRunner().invoke(app, ["check", str(tmp_path), "--suffix", "_anon"])
    assert found.exit_code == 0, found.output
    assert "2 utterances" in found.output


def test_a_table_with_columns_that_the_user_names(tmp_path: Path) -> None:
    for name in "ab":
        write_audio(tmp_path / f"{name}.wav", 0.1 * np.sin(np.arange(16_000) / 9))
    listed = tmp_path / "clips.jsonl"
    listed.write_text('{"clip": "a.wav", "caller": "s"}\n{"clip": "b.wav", "caller": "t"}\n')
    assert check_corpus.check(listed) is None
    checked = check_corpus.check(listed, columns={"path": "clip", "speaker": "caller"})
    assert checked is not None
    assert checked.facts["speakers"] == 2
