"""Scores and embeddings are measured with the core's few libraries, and a missing extra is named."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from veilmeter.core.errors import LIBRARIES
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BLOCKED = tuple(LIBRARIES)

# In a process of its own, in which none of the extras' libraries can be imported.
BLOCK = f"""
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in {BLOCKED!r} else self.finder.find_spec(name, *rest)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


def run(code: str, *, folder: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", BLOCK + code]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)


def command(line: str, *, folder: Path) -> subprocess.CompletedProcess[str]:
    code = f"from veilmeter.cli.main import main\nsys.argv = {['veilmeter', *line.split()]!r}\nmain()"
    return run(code, folder=folder)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores with a key, and vectors of eight people, as files."""
    folder = tmp_path_factory.mktemp("light")
    rng = np.random.default_rng(0)
    people, each = 8, 6
    vectors = np.repeat(rng.standard_normal((people, 12)), each, axis=0) + rng.standard_normal((people * each, 12))
    speakers = [f"p{number // each}" for number in range(people * each)]
    ids = [f"{speaker}-{number}" for number, speaker in enumerate(speakers)]
    for name in ("original.npz", "original.parquet"):
        write_embeddings(Embeddings(vectors, ids, speakers), folder / name)
    write_embeddings(Embeddings(vectors + rng.standard_normal(vectors.shape), ids, speakers), folder / "hidden.npz")
    lines, key = [], []
    for enrolled in range(people):
        for tested in range(people * each):
            pair = f"p{enrolled} {ids[tested]}"
            same = tested // each == enrolled
            lines.append(f"{pair} {rng.normal(float(same)):.4f}")
            key.append(f"{pair} {'target' if same else 'nontarget'}")
    (folder / "scores.txt").write_text("\n".join(lines) + "\n")
    (folder / "trials.txt").write_text("\n".join(key) + "\n")
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "measure scores.txt --trials trials.txt --no-intervals",
        "linkability --enroll original.npz --test hidden.npz --no-intervals",
        "singling-out --enroll original.npz --test hidden.npz --no-intervals",
        "similarity --original original.parquet --anonymized hidden.npz --no-intervals",
        "check scores.txt",
        "attackers",
    ],
)
def test_measuring_needs_no_extra(line: str, world: Path) -> None:
    ran = command(line, folder=world)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_every_module_below_the_speech_is_imported_without_extras(tmp_path: Path) -> None:
    packages = ("core", "data", "metrics", "results", "cli")
    code = f"""
import importlib, pkgutil
for package in {packages!r}:
    found = importlib.import_module("veilmeter." + package)
    for module in pkgutil.walk_packages(found.__path__, found.__name__ + "."):
        importlib.import_module(module.name)
"""
    ran = run(code, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("measure scores.txt --trials trials.txt --no-intervals --figures drawn", "report"),
        ("check vectors.h5", "h5"),
        ("linkability --enroll vectors.h5 --test hidden.npz", "h5"),
        ("embed speech out.npz --jobs 1 --offline", "audio"),
        ("anonymize speech out --jobs 1", "audio"),
        ("anonymize speech out --jobs 1 --system xvector-pool --offline", "audio"),
        ("anonymize speech out --jobs 1 --system cascade --offline", "audio"),
        ("anonymize speech out --cluster local", "cluster"),
    ],
)
def test_a_missing_extra_is_named(line: str, extra: str, world: Path) -> None:
    (world / "vectors.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    (world / "speech" / "ann").mkdir(parents=True, exist_ok=True)
    (world / "speech" / "ann" / "a.wav").write_bytes(b"RIFF")
    ran = command(line, folder=world)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert f"pip install 'veilmeter[{extra}]'" in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_table_of_extras_is_the_projects() -> None:
    """A library in an extra that users install is known to `need`, under the same extra."""
    extras = PROJECT["optional-dependencies"]
    for extra in ("report", "audio", "h5", "cluster", "pandas"):
        named = {re.split(r"[>=\[ ]", line)[0] for line in extras[extra]}
        assert named == {library for library, home in LIBRARIES.values() if home == extra}


def test_the_extra_called_all_has_all_of_them() -> None:
    extras = PROJECT["optional-dependencies"]
    (line,) = extras["all"]
    found = re.fullmatch(r"veilmeter\[(.+)\]", line)
    assert found is not None
    assert set(found[1].split(",")) == set(extras) - {"all", "dev", "docs"}


def test_the_core_has_only_what_it_needs() -> None:
    core = {re.split(r"[>=]", line)[0] for line in PROJECT["dependencies"]}
    assert core == {"numpy", "scipy", "threadpoolctl", "typer", "rich", "pyarrow"}


def test_importing_the_package_loads_nothing_else(tmp_path: Path) -> None:
    """The command imports it before it can tell Ctrl-C not to print a traceback."""
    done = run("before = {*sys.modules}\nimport veilmeter\nprint(*sorted({*sys.modules} - before))", folder=tmp_path)
    assert done.stdout.split() == ["__future__", "veilmeter", "veilmeter._version"]
