"""External programs: run without a shell, ended when they hang, doubted when they end well."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.anonymizers.base import Output
from veilmeter.anonymizers.command import Command
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Utterance
from veilmeter.speech.audio import read_audio, write_audio

TONE = (0.3 * np.sin(np.arange(16_000) * 0.2)).astype(np.float32)


def program(tmp_path: Path, text: str) -> str:
    """A Python program as the beginning of a command."""
    path = tmp_path / "my program.py"
    path.write_text("import sys, os, time, shutil\n" + text)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def run(command: Command, utterance: str = "u", speaker: str = "s") -> np.ndarray:
    return command.anonymize(TONE, command.parameters(Utterance(utterance, speaker, Path("x.wav")))).samples


def batch(command: Command, count: int) -> list[Output | InputError]:
    people = [Utterance(f"u{number}", f"s{number % 2}", Path("x.wav")) for number in range(count)]
    return list(command.anonymize_batch((TONE * (n + 1) / count, command.parameters(p)) for n, p in enumerate(people)))


def corpus(folder: Path, count: int) -> Path:
    for number in range(count):
        write_audio(folder / f"s{number % 3}" / f"{number}.wav", TONE)
    return folder


def anonymize(*words: object) -> Any:
    from typer.testing import CliRunner

    from veilmeter.cli.main import app

    return CliRunner().invoke(app, ["anonymize", *map(str, words), "--jobs", "1", "--quiet"])


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
    with pytest.raises(InputError, match="still running after 6 s"):
        run(Command(program(tmp_path, text) + " {input} {output}", timeout=6))
    assert time.monotonic() - started < 50
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
        ("pass", "wrote no output"),
        ("open(sys.argv[2], 'w')", "can't be used: it holds no samples"),
        ("open(sys.argv[2], 'w').write('hello' * 99)", "can't be used: it can't be read"),
        ("os.symlink(sys.argv[1], sys.argv[2])", "wrote no output"),
        ("os.mkdir(sys.argv[2])", "wrote no output"),
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
        ("no-such-program-at-all {input} {output}", "no program"),
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
    done = anonymize(corpus(tmp_path / "in", 1), tmp_path / "out", "--command", "cp {input} {output}")
    assert done.exit_code == 0, done.output
    assert '"system": "command"' in (tmp_path / "out.manifest.jsonl").read_text()


LISTED = """
inputs, outputs = (open(path).read().splitlines() for path in sys.argv[1:3])
for one, other in zip(inputs, outputs, strict=True):
    shutil.copy(one, other)
"""
FOLDERS = "for name in os.listdir(sys.argv[1]): shutil.copy(sys.argv[1] + '/' + name, sys.argv[2])"


@pytest.mark.parametrize(
    ("text", "places"), [(LISTED, "{input_list} {output_list}"), (FOLDERS, "{input_folder} {output_folder}")]
)
def test_many_recordings_with_one_start(tmp_path: Path, text: str, places: str) -> None:
    count = tmp_path / "starts"
    line = program(tmp_path, f"open({str(count)!r}, 'a').write('x')\n" + text)
    outcomes = batch(Command(f"{line} {places}"), 5)
    assert count.read_text() == "x"
    for number, outcome in enumerate(outcomes):
        assert isinstance(outcome, Output)
        np.testing.assert_allclose(outcome.samples, TONE * (number + 1) / 5, atol=1 / 32768)


def test_lists_of_seeds_and_speakers_go_with_lists(tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = program(tmp_path, LISTED + f"shutil.copy(sys.argv[3], {str(log)!r})")
    rest = "{input_list} {output_list} {seed_list}"
    for per, different in (("speaker", 2), ("utterance", 4)):
        command = Command(f"{line} {rest}", per=per)
        batch(command, 4)
        assert len(set(log.read_text().split())) == different
        assert command.draws == per


def test_the_draw_of_a_finite_set_is_an_argument_and_on_record(tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = program(tmp_path, f"open({str(log)!r}, 'a').write(sys.argv[3] + '\\n'); shutil.copy(*sys.argv[1:3])")
    command = Command(line + " {input} {output} voice-{draw}", choices=3, per="utterance")
    assert (command.choices, command.draws) == (3, "utterance")
    for number in range(12):
        run(command, f"u{number}", "s")
    assert set(log.read_text().split()) == {"voice-0", "voice-1", "voice-2"}
    with pytest.raises(InputError, match="choices must be a number of draws, at least 2"):
        Command("cp {input} {output} {draw}")
    with pytest.raises(InputError, match="where its 3 choices go"):
        Command("cp {input} {output}", choices=3)


def test_one_missing_output_of_a_batch_is_one_failure(tmp_path: Path) -> None:
    line = program(tmp_path, LISTED + "os.remove(outputs[1])")
    outcomes = batch(Command(f"{line} {{input_list}} {{output_list}}"), 3)
    assert [isinstance(outcome, InputError) for outcome in outcomes] == [False, True, False]


def test_a_batch_that_ends_badly_gives_nothing(tmp_path: Path) -> None:
    line = program(tmp_path, LISTED + "sys.exit(3)")
    outcomes = batch(Command(f"{line} {{input_list}} {{output_list}}"), 3)
    assert all(isinstance(outcome, InputError) and "exit code 3" in outcome.what for outcome in outcomes)


def test_a_program_that_changed_is_run_again(tmp_path: Path) -> None:
    """Its own file, found through PATH or not, and every file that its arguments name."""
    speech, out, level = corpus(tmp_path / "in", 3), tmp_path / "out", tmp_path / "level.txt"
    level.write_text("1.0")
    text = (
        "import soundfile\nx, r = soundfile.read(sys.argv[1])\n"
        "soundfile.write(sys.argv[2], x * float(open(sys.argv[3][8:]).read()), r)"
    )
    line = program(tmp_path, text) + " {input} {output} " + shlex.quote(f"--level={level}")
    words = (speech, out, "--command", line, "--format", "wav")
    first = anonymize(*words)
    assert first.exit_code == 0, first.output
    assert str(level) in first.output
    heard = (out / "s0" / "0.wav").read_bytes()
    again = anonymize(*words)
    assert "3 of them from before" in again.output
    level.write_text("0.5")
    changed = anonymize(*words)
    assert changed.exit_code == 0, changed.output
    assert "3 were made again" in changed.output
    assert "from before" not in changed.output
    assert (out / "s0" / "0.wav").read_bytes() != heard
    (tmp_path / "my program.py").write_text("import sys, os, time, shutil\n" + text.replace("x *", "0.9 * x *"))
    assert "3 were made again" in anonymize(*words).output


def test_a_version_of_the_user_s_own_takes_the_place_of_contents(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path / "in", 2), tmp_path / "out"
    line = program(tmp_path, "shutil.copy(*sys.argv[1:3])") + " {input} {output}"
    assert anonymize(speech, out, "--command", line, "--version", "1").exit_code == 0
    program(tmp_path, "shutil.copy(*sys.argv[1:3])  # other")
    kept = anonymize(speech, out, "--command", line, "--version", "1")
    assert "2 of them from before" in kept.output
    assert "as long as you say --version 1" in kept.output
    assert "2 were made again" in anonymize(speech, out, "--command", line, "--version", "2").output


def test_a_program_that_always_fails_is_stopped(tmp_path: Path) -> None:
    count = tmp_path / "starts"
    line = program(tmp_path, f"open({str(count)!r}, 'a').write('x')\nprint('no model found')\nsys.exit(1)")
    done = anonymize(corpus(tmp_path / "in", 25), tmp_path / "out", "--command", f"{line} {{input}} {{output}}")
    assert isinstance(done.exception, InputError)
    assert str(done.exception).count("no model found") == 1
    assert "10 recordings in a row failed the same way" in str(done.exception)
    assert len(count.read_text()) == 10


def test_a_few_failures_are_no_reason_to_stop(tmp_path: Path) -> None:
    text = "sys.exit(1) if int(sys.argv[3]) % 2 else shutil.copy(*sys.argv[1:3])"
    line = program(tmp_path, "sys.argv[3] = sys.argv[3].rsplit('/')[-1]\n" + text) + " {input} {output} {utterance}"
    done = anonymize(corpus(tmp_path / "in", 30), tmp_path / "out", "--command", line)
    assert done.exit_code == 3, done.output


def test_children_in_sessions_of_their_own_are_ended_too(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = (
        f"import subprocess\nchild = subprocess.Popen(['setsid', 'sleep', '60'], start_new_session=True)\n"
        f"open({str(pids)!r}, 'w').write(str(child.pid))\nshutil.copy(*sys.argv[1:3])"
    )
    run(Command(program(tmp_path, text) + " {input} {output}"))
    assert not _runs(int(pids.read_text()))
    with pytest.raises(InputError, match="still running"):
        run(Command(program(tmp_path, text + "\ntime.sleep(60)") + " {input} {output}", timeout=6))
    assert not _runs(int(pids.read_text()))


def test_what_a_program_prints_is_not_kept(tmp_path: Path) -> None:
    """Half a gigabyte of it, and nothing of that on the disk or in memory."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = "for _ in range(500):\n    os.write(1, b'x' * (1 << 20))\nprint('the end')\nsys.exit(2)"
    with pytest.raises(InputError, match="the end"):
        run(Command(program(tmp_path, text) + " {input} {output}"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_killed_run_leaves_no_speech_and_no_program(tmp_path: Path) -> None:
    """SIGKILL in the middle; the program's child lives on until the next run, which clears everything away."""
    pids, out = tmp_path / "pids", tmp_path / "out"
    speech = corpus(tmp_path / "in", 2)
    slow = (
        f"import subprocess\nchild = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(pids)!r} + '.part', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(pids)!r} + '.part', {str(pids)!r})\ntime.sleep(60)"
    )
    line = program(tmp_path, slow) + " {input} {output}"
    words = [sys.executable, "-m", "veilmeter.cli.main", "anonymize", str(speech), str(out), "--command", line]
    with subprocess.Popen([*words, "--jobs", "1", "--quiet"]) as run_to_kill:
        while not pids.exists():
            time.sleep(0.05)
        run_to_kill.kill()
    itself, child = map(int, pids.read_text().split())
    for _ in range(200):
        if not _runs(itself):
            break
        time.sleep(0.05)
    assert not _runs(itself)
    assert list(out.rglob("*.wav")), "the recording lies in the output folder, where it is found again"
    program(tmp_path, "shutil.copy(*sys.argv[1:3])")
    done = anonymize(speech, out, "--command", line)
    assert done.exit_code == 0, done.output
    assert not _runs(child)
    assert sorted(path.suffix for path in out.rglob("*") if path.is_file()) == [".flac", ".flac"]


def test_other_rates_and_lengths_are_remarked(tmp_path: Path) -> None:
    text = "import soundfile\nx, r = soundfile.read(sys.argv[1])\nsoundfile.write(sys.argv[2], x, 8000)"
    line = program(tmp_path, text) + " {input} {output}"
    done = anonymize(corpus(tmp_path / "in", 1), tmp_path / "out", "--command", line)
    assert done.exit_code == 0, done.output
    assert "left audio at 8000 Hz" in done.output
    assert "it lasted 1.00 s and lasts 2.00 s" in done.output


def test_a_file_of_one_s_own_as_a_system(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(
        "class Softer:\n"
        "    name, version, draws = 'softer', '1', 'none'\n"
        "    def __init__(self, by=0.5):\n"
        "        self.by = by\n"
        "    def parameters(self, utterance):\n"
        "        return {'by': self.by}\n"
        "    def anonymize(self, samples, parameters):\n"
        "        return samples * parameters['by']\n"
    )
    words = [str(corpus(tmp_path / "in", 4)), str(tmp_path / "out"), "--system", f"{own}:Softer", "--option", "by=0.25"]
    command = [sys.executable, "-m", "veilmeter.cli.main", "anonymize", *words, "--jobs", "2", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heard = read_audio(tmp_path / "out" / "s0" / "0.flac")
    np.testing.assert_allclose(heard, TONE * 0.25, atol=1 / 32768)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--alpha", "0.7", "--option", "alpha=0.8"], "alpha is given twice"),
        (["--option", "seed=5"], "seed is given twice"),
        (["--option", "alpha=0.7", "--option", "alpha=0.8"], "--option alpha is given twice"),
    ],
)
def test_an_option_in_two_spellings_is_refused(tmp_path: Path, words: list[str], name: str) -> None:
    done = anonymize(tmp_path, tmp_path / "out", "--system", "mcadams", *words)
    assert isinstance(done.exception, InputError)
    assert name in str(done.exception)
    assert not (tmp_path / "out").exists()
