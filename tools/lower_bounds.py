"""`make test-lower`: the tests of the core in an environment of its own with the lowest versions that pyproject allows.

    python tools/lower_bounds.py [TESTS ...]

Only the core's dependencies are pinned to their lower bounds; those of the extras are left out, and tests that need
them skip.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("tests/metrics", "tests/formats/test_scores.py", "tests/formats/test_vectors.py",
         "tests/formats/test_kaldi.py", "tests/formats/test_parquet.py", "tests/test_calibration.py",
         "tests/inversion", "tests/backends", "tests/cli/test_measure.py", "tests/cli/test_similarity.py",
         "tests/report/figures")  # fmt: skip
TOOLS = ("pytest", "pytest-timeout", "hypothesis", "psutil", "packaging")


def lowest() -> list[str]:
    """`numpy==1.26` and so on.

    >>> "numpy==1.26" in lowest()
    True
    """
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = []
    for line in about["project"]["dependencies"]:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", line.strip())
        if match is None:
            raise SystemExit(f"{line!r} has no lower bound")
        found.append(f"{match[1]}=={match[2]}")
    return found


def main() -> int:
    tests = sys.argv[1:] or [*TESTS]
    with tempfile.TemporaryDirectory(prefix="veilmeter-lower-") as place:
        venv.create(place, with_pip=True)
        python = str(Path(place, "bin", "python"))
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *lowest(), *TOOLS], check=True)
        subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
        print("with", " ".join(lowest()), flush=True)
        options = ["-q", "-p", "no:cacheprovider", "-m", "not slow"]
        return subprocess.run([python, "-m", "pytest", *options, *tests], cwd=ROOT).returncode


if __name__ == "__main__":
    raise SystemExit(main())
