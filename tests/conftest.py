"""Where the real data lies. Tests that need it skip when it is absent; CI has it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

SHARED = Path(os.environ.get("VEILMETER_SHARED", Path(__file__).resolve().parents[1].parent / "shared"))


def _shared(*parts: str) -> Path:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the reference data {'/'.join(parts)} is not here")
    return path


@pytest.fixture(scope="session")
def vpc2020() -> Path:
    """Real x-vectors and scores: original and anonymized with B1, by two extractors."""
    return _shared("data", "vpc2020-b1")


@pytest.fixture(scope="session")
def librispeech() -> Path:
    """Real speech: test-other-10x10 and train-clean-100-251x1."""
    return _shared("data", "librispeech")


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """The values to reach."""
    found: dict[str, Any] = json.loads(_shared("REFERENCE.json").read_text())
    return found
