"""External programs: run without a shell, ended when they hang, doubted when they end well."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from veilmeter.anonymizers.command import Command
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Utterance
from veilmeter.speech.audio import write_audio

TONE = (0.3 * np.sin(np.arange(16_000) * 0.2)).astype(np.float32)


def program(tmp_path: Path, text: str) -> str:
    """A Python program as the beginning of a command."""
    path = tmp_path / "my program.py"
    path.write_text("import sys, os, time, shutil\n" + text)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def run(command: Command, utterance: str = "u", speaker: str = "s") -> np.ndarray:
    return command.anonymize(TONE, command.parameters(Utterance(utterance, speaker, Path("x.wav"))))


def test_samples_go_out_and_come_back(tmp_path: Path) -> None:
    copy = Command(program(tmp_path, "shutil.copy(sys.argv[1], sys.argv[2][6:])") + " {input} --out={output}")
    np.testing.assert_allclose(run(copy), TONE, atol=1 / 32768)


def test_ids_and_seeds_are_arguments_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = Command(
        program(tmp_path, f"open({str(log)!r}, 'a').write(repr(sys.argv[3:]) + '\\n'); shutil.copy(*sys.argv[1:3])")
        + " {input} {output} {utterance} {speaker} x{seed}"
    )
    evil = f"$(touch {tmp_path}/hacked); `touch {tmp_path}/hacked` {{input}} | > \"'"
    run(command, evil, "s")
    run(command, "u2", "s")
    run(command, "u2", "t")
    first, second, third = (eval(line) for line in log.read_text().splitlines())
    assert first[0] == evil
    assert not (tmp_path / "hacked").exists()
    assert first[2] == second[2] != third[2]


def test_an_id_must_not_become_an_option(tmp_path: Path) -> None:
    command = Command(program(tmp_path, "shutil.copy(*sys.argv[1:3])") + " {input} {output} {speaker}")
    with pytest.raises(InputError, match="taken for an option"):
        run(command, speaker="--overwrite")


def test_exit_code_and_last_words_are_reported(tmp_path: Path) -> None:
    command = Command(
        program(tmp_path, "print('x' * 9000 + ' no model found', file=sys.stderr); sys.exit(7)") + " {input} {output}"
    )
    with pytest.raises(InputError, match=r"exit code 7; it said: x+ no model found") as caught:
        run(command)
    assert len(str(caught.value)) < 2500


def test_a_killed_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="signal 9"):
        run(Command(program(tmp_path, "os.kill(os.getpid(), 9)") + " {input} {output}"))


def test_a_hanging_program_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = f"child = os.fork(); open({str(pids)!r}, 'a').write(str(os.getpid()) + ' '); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(InputError, match=r"still running after 1\.5 s"):
        run(Command(program(tmp_path, text) + " {input} {output}", timeout=1.5))
    assert time.monotonic() - started < 20
    time.sleep(0.2)
    numbers = [int(one) for one in pids.read_text().split()]
    assert numbers
    assert not any(_runs(number) for number in numbers)


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pass", "left no output"),
        ("open(sys.argv[2], 'w')", "can't be used: it holds no samples"),
        ("open(sys.argv[2], 'w').write('hello' * 99)", "can't be used: it can't be read"),
        ("os.symlink(sys.argv[1], sys.argv[2])", "left no output"),
        ("os.mkdir(sys.argv[2])", "left no output"),
    ],
)
def test_what_it_leaves_is_doubted(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(Command(program(tmp_path, text) + " {input} {output}"))


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    run(Command("cp {input} {output}"))
    with pytest.raises(InputError):
        run(Command("false {input} {output}"))
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "is empty"),
        ("cp '{input} {output}", "can't be split"),
        ("cp {input} there", "no {output}"),
        ("cp {output}", "no {input}"),
        ("cp {input} {output} {gender}", "unknown placeholder {gender}"),
        ("{input} {output}", "can't be a placeholder"),
        ("no-such-program-at-all {input} {output}", "there is no program"),
    ],
)
def test_a_command_that_can_not_work_is_refused_at_once(line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Command(line)


def test_the_version_is_the_program_s_content(tmp_path: Path) -> None:
    path = tmp_path / "anon"
    path.write_text("#!/bin/sh\ncp $1 $2\n")
    path.chmod(0o755)
    first = Command(f"{path} {{input}} {{output}}")
    path.write_text("#!/bin/sh\ncp $1 $2 # other\n")
    assert Command(f"{path} {{input}} {{output}}").version != first.version
    assert os.path.isabs(first.arguments[0])


def test_timeout_must_make_sense() -> None:
    with pytest.raises(InputError, match="time limit"):
        Command("cp {input} {output}", timeout=0)


def test_the_written_file_is_plain_wav(tmp_path: Path) -> None:
    import soundfile

    keep = tmp_path / "kept.wav"
    run(Command("cp {input} {output}"))
    run(
        Command(
            program(tmp_path, f"shutil.copy(sys.argv[1], {str(keep)!r}); shutil.copy(*sys.argv[1:])")
            + " {input} {output}"
        )
    )
    info = soundfile.info(keep)
    assert (info.samplerate, info.channels, info.subtype) == (16_000, 1, "PCM_16")
    write_audio(keep, TONE)


def test_a_command_needs_no_name_of_a_system(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from veilmeter.cli.main import app

    write_audio(tmp_path / "in" / "s" / "1.wav", TONE)
    words = [
        "anonymize",
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        "--command",
        "cp {input} {output}",
        "--jobs",
        "1",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert '"system": "command"' in (tmp_path / "out.manifest.jsonl").read_text()
