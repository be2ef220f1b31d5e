"""Files appear whole or not at all; pipes and devices are written to and stay what they are."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from veilmeter.core import files
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import read_input_json, scratch_folder, write_text


def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "for whoever reads")
        assert os.read(reader, 100) == b"for whoever reads"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(VeilmeterError, match="no program reads this pipe"):
        write_text(pipe, "for nobody")


def test_a_link_to_standard_output_stays_one(capfd: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/stdout").exists():
        pytest.skip("no such device here")
    before = os.readlink("/dev/stdout")
    write_text("/dev/stdout", "shown")
    assert os.readlink("/dev/stdout") == before
    assert "shown" in capfd.readouterr().out


@pytest.mark.parametrize("value", ["[]", "{}", '{"a":0}', "1"])
def test_json_of_many_small_values_is_refused_before_it_fills_the_memory(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 1000)
    (tmp_path / "a.json").write_text("[" + ",".join([value] * 1001) + "]")
    with pytest.raises(InputError, match="too many values"):
        read_input_json(tmp_path / "a.json")


IN_A_FOLDER = """
import sys
from veilmeter.core.files import scratch_folder
with scratch_folder(sys.argv[1]) as folder:
    (folder / "vectors").write_text("private")
    print(flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_behind_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "veilmeter-results").mkdir()
    (tmp_path / "veilmeter-results" / "results.json").touch()
    words = [sys.executable, "-c", IN_A_FOLDER, str(tmp_path)]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as alive,
    ):
        assert killed.stdout
        assert alive.stdout
        assert (killed.stdout.readline(), alive.stdout.readline()) == (b"\n", b"\n")
        killed.kill()
        killed.wait()
        assert len(list(tmp_path.glob("*/vectors"))) == 2
        files._remove_abandoned.cache_clear()
        with scratch_folder(tmp_path) as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert len(list(tmp_path.glob("*/vectors"))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["veilmeter-results"]
    assert list((tmp_path / "veilmeter-results").iterdir())
