"""`make test-lower`: the tests in an environment of its own with the lowest versions that pyproject.toml allows.

    python tools/lower_bounds.py [TESTS ...]

All dependencies and those of the extras are pinned to their lower bounds, except torch, which comes as constraints.txt
has it. Slow tests and those of a browser are left out.
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
TOOLS = (
    "pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "psutil", "packaging", "kaldi-native-fbank", "kaldiio",
    "pylatexenc", "hatchling", "torch",
)  # fmt: skip


def lowest() -> list[str]:
    """`numpy==1.26` and so on.

    >>> "numpy==1.26" in lowest()
    True
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    found = []
    users = [
        line for extra in ("report", "audio", "media", "whisper", "h5", "cluster", "pandas") for line in extras[extra]
    ]
    for line in [*project["dependencies"], *users]:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", line.strip())
        if match is None:
            raise SystemExit(f"{line!r} has no lower bound")
        if match[1] != "torch":
            found.append(f"{match[1]}=={match[2]}")
    return found


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="veilmeter-lower-") as place:
        venv.create(place, with_pip=True)
        python = str(Path(place, "bin", "python"))
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--upgrade", "pip"], check=True)
        subprocess.run([*pip, *lowest(), *TOOLS], check=True)
        subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
        print("with", " ".join(lowest()), flush=True)
        options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not slow and not browser"]
        return subprocess.run([python, "-m", "pytest", *options, *sys.argv[1:]], cwd=ROOT).returncode


if __name__ == "__main__":
    raise SystemExit(main())
