"""docs/how-to/cluster.md: its SLURM example works with dask-jobqueue; `sbatch` is replaced by a shell."""

from __future__ import annotations

import copy
import os
import re
import stat
from contextlib import closing
from pathlib import Path

import pytest

from veilmeter.core.engine import map_ordered, open_engine

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "cluster.md"
# What sbatch and scancel do, on this machine: keep a copy of the script and run it in the background; end it.
SBATCH = """#!/bin/sh
for script; do :; done
cp "$script" "$0.$$"
setsid sh "$0.$$" >> "$0.log" 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = '#!/bin/sh\nkill -TERM -- "-$1" 2>/dev/null || kill "$1"\n'


def where(number: int) -> tuple[int, bool]:
    return number * number, "SLURM_TEST" in os.environ


@pytest.mark.slow
def test_the_slurm_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask_jobqueue")
    example = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.S)
    assert example is not None
    text = example[1]
    assert "slurm:" in text
    small = re.sub(r"(cores|processes): \d+", r"\1: 1", text).replace("memory: 32GB", "memory: 1GB")
    config = tmp_path / "slurm.yaml"
    config.write_text(small + "    job-script-prologue: ['export SLURM_TEST=1']\n")
    for name, script in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.chdir(tmp_path)
    import dask

    before = copy.deepcopy(dask.config.config)
    try:
        with closing(open_engine(2, f"slurm:{config}")) as engine:
            found = map_ordered(engine, where, range(12))
    finally:
        dask.config.config.clear()  # what the file said must not reach other tests
        dask.config.config.update(before)
    assert found == [(number * number, True) for number in range(12)]


def test_every_figure_in_the_table_was_measured() -> None:
    """The rows of the table are those of scaling.jsonl."""
    import json

    folder = Path(__file__).parents[1] / "docs" / "validation"
    text = (folder / "scaling.md").read_text()
    latest = {}
    for line in (folder / "scaling.jsonl").read_text().splitlines():
        one = json.loads(line)
        latest[one["what"], one["size"]] = one
    assert len(latest) >= 8
    for one in latest.values():
        row = f"| {one['size']:,} | {one['cpu_seconds']:g} | {one['seconds']:g} | {one['gigabytes']:g} |"
        assert row in text, row
