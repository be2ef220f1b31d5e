"""The cache is shown and cleared with one command, and nothing outside of it is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "veilmeter.cli.main", "cache", *arguments],
        env={"VEILMETER_CACHE": str(cache), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_clear_removes_everything_and_follows_no_link(tmp_path: Path) -> None:
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    (cache / "embeddings").mkdir(parents=True)
    outside.mkdir()
    (cache / "embeddings" / "part-0.parquet").write_bytes(b"x" * 1000)
    (cache / "model.pt").write_bytes(b"y" * 500)
    (outside / "mine.txt").write_text("keep")
    (cache / "link").symlink_to(outside, target_is_directory=True)
    shown = run(cache, "show")
    assert shown.returncode == 0
    assert "embeddings" in shown.stdout
    assert "model.pt" in shown.stdout
    cleared = run(cache, "clear")
    assert cleared.returncode == 0, cleared.stderr
    assert list(cache.iterdir()) == []
    assert (outside / "mine.txt").read_text() == "keep"
    assert "empty" in run(cache, "show").stdout


@pytest.mark.parametrize("verb", ["show", "clear"])
def test_no_cache_is_no_error(tmp_path: Path, verb: str) -> None:
    assert run(tmp_path / "none", verb).returncode == 0


def test_a_cache_in_use_is_not_cleared(tmp_path: Path) -> None:
    from veilmeter.core.files import only_one

    (tmp_path / "embeddings").mkdir()
    (tmp_path / "embeddings" / "part-0.parquet").write_bytes(b"x")
    with only_one(tmp_path / "embeddings" / "speech-1.lock"):
        refused = run(tmp_path, "clear")
        assert refused.returncode == 2
        assert "a run is using this cache" in refused.stderr
        assert (tmp_path / "embeddings" / "part-0.parquet").exists()
    assert run(tmp_path, "clear").returncode == 0
    assert list(tmp_path.iterdir()) == []
