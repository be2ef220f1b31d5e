"""What `make env` installs into .venv: veilmeter[dev], from requirements-lock.txt with hashes where that fits.

The lock holds one archive per package, for one Python and platform; elsewhere pip resolves pyproject.toml again. torch
comes by version, as constraints.txt pins it: its build for CPUs is another file on every index.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-lock.txt"


def made_for() -> str:
    """The line of the lock that says where it holds."""
    python = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"
    return f"# for: {python}, {sysconfig.get_platform()}"


def pip(*arguments: str, constraint: bool = True, build_constraint: bool = True) -> None:
    environment = dict(os.environ)
    for name, wanted in (("PIP_CONSTRAINT", constraint), ("PIP_BUILD_CONSTRAINT", build_constraint)):
        environment.pop(name, None)
        if wanted:
            environment[name] = str(ROOT / "constraints.txt")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *arguments], check=True, env=environment)


def main() -> int:
    try:
        if made_for() in LOCK.read_text(encoding="utf-8").splitlines():
            # The lock is stricter than the constraints, which have no hashes and would be refused beside it.
            pip("--require-hashes", "--no-deps", "-r", str(LOCK), constraint=False)
            pip("--no-deps", "torch")
            # With the build tools of the lock, instead of others that pip would fetch for itself.
            pip("--no-deps", "--no-build-isolation", "-e", str(ROOT), build_constraint=False)
        else:
            print(f"{LOCK.name} is not {made_for()[2:]}: versions are resolved again", file=sys.stderr)
            pip("-e", f"{ROOT}[dev]")
        subprocess.run([sys.executable, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
