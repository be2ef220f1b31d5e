"""requirements-lock.txt holds what pyproject.toml asks for, each with a hash."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


def locked() -> dict[str, str]:
    found = {}
    for line in (ROOT / "requirements-lock.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line)
            assert match, f"no pinned line: {line}"
            found[canonicalize_name(match[1])] = match[2]
    return found


def test_the_lock_has_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    pinned = locked()
    for line in [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras]:
        one = Requirement(line)
        if one.name not in ("veilmeter", "torch"):  # torch: by version, in constraints.txt
            version = pinned.get(canonicalize_name(one.name))
            assert version is not None, f"{one.name} is not in the lock: run `make lock`"
            assert version in one.specifier, f"{one.name} {version} is locked, {line} is asked for: run `make lock`"


def test_the_lock_keeps_the_constraints() -> None:
    pinned = locked()
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            one = Requirement(line)
            if one.name in pinned:
                assert pinned[one.name] in one.specifier


def test_the_lock_is_for_every_python_of_its_series() -> None:
    """A package that needs a later patch release fails on machines that have an earlier one."""
    import sys

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from lock import too_new
    finally:
        sys.path.remove(str(ROOT / "tools"))
    try:
        problems = too_new()
    except PackageNotFoundError as error:
        pytest.skip(f"not all of the lock is installed: {error}")
    assert problems == []


def test_every_library_that_users_install_has_a_lower_bound() -> None:
    """One that `make test-lower` can install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [line for extra in ("report", "audio", "h5", "cluster", "pandas") for line in extras[extra]]
    for line in [*project["dependencies"], *named]:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+>=[0-9.]+", line), line
