"""Files appear whole or not at all; pipes and devices are written to and stay what they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from veilmeter.core import files
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import read_input_json, write_text


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
