"""`make lock`: requirements-lock.txt, the versions and hashes of all that veilmeter[dev] needs, as it is in .venv.

`make env` installs from it with hashes (tools/install.py), so that a package that was changed after the fact is
refused. One archive per package: the one for this platform and Python. torch is left out: its build for CPUs is another
file on every index, and constraints.txt pins its version.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

from install import made_for

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-lock.txt"
LEFT_OUT = {"torch", "veilmeter", "pip", "setuptools", "wheel", "atheris"}
# What installs the project itself, and what torch wants at run time (its version as in constraints.txt).
BUILDS = ["hatchling>=1.24", "editables", "setuptools<81"]
HEAD = """\
# Made by `make lock` from a working environment, for tools/install.py; do not edit.
"""


def needed() -> dict[str, str]:
    """The installed version of everything that veilmeter[dev] needs, and that needs in turn."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, str] = {}
    seen = set()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for extra in project["optional-dependencies"].values() for line in extra]
    first = [Requirement(line) for line in [*project["dependencies"], *extras]]
    left = [(canonicalize_name(one.name), inner) for one in first for inner in ("", *one.extras)]
    while left:
        name, extra = left.pop()
        if (name, extra) in seen or name == "veilmeter":
            continue
        seen.add((name, extra))
        about = metadata.distribution(name)
        found[name] = about.version
        for line in about.requires or ():
            one = Requirement(line)
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                left += [(canonicalize_name(one.name), inner) for inner in ("", *one.extras)]
    return {name: version for name, version in sorted(found.items()) if name not in LEFT_OUT}


def too_new() -> list[str]:
    """Packages that the oldest Python of the lock's series can't install: the lock is for every 3.11, not for ours."""
    from packaging.specifiers import SpecifierSet

    oldest = f"{sys.version_info[0]}.{sys.version_info[1]}.0"
    wanted = {name: metadata.metadata(name).get("Requires-Python") or "" for name in needed()}
    return [f"{name} needs Python {text}" for name, text in wanted.items() if oldest not in SpecifierSet(text)]


def resolved(*arguments: str) -> set[str]:
    """The lines of the lock for what pip would install."""
    with tempfile.NamedTemporaryFile() as report:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--dry-run", "--ignore-installed", "--report", report.name, *arguments], check=True)
        found = json.loads(Path(report.name).read_text())["install"]
    lines = set()
    for one in found:
        digest = one["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.add(f"{one['metadata']['name'].lower()}=={one['metadata']['version']} --hash=sha256:{digest}")
    return lines


def main() -> int:
    if problems := too_new():
        raise SystemExit("\n".join([*problems, "pin older ones in constraints.txt"]))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("\n".join(f"{name}=={version}" for name, version in needed().items()))
        names.flush()
        lines = resolved("--no-deps", "-r", names.name) | resolved("-c", names.name, *BUILDS)
    LOCK.write_text(f"{HEAD}{made_for()}\n" + "\n".join(sorted(lines)) + "\n")
    print(f"{len(lines)} packages in {LOCK.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
