"""The user's own code is run as its file says, also where it changes while we work."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from veilmeter.core.errors import InputError
from veilmeter.core.user_code import load_object, source_version

SOURCE = "def answer():\n    return {}\n"


@pytest.fixture
def with_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python keeps it, unless it is told not to."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


def written(path: Path, number: int) -> str:
    """Each time within the same second, and of the same length."""
    path.write_text(SOURCE.format(number))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@pytest.mark.usefixtures("with_bytecode")
@pytest.mark.parametrize("spec", ["{folder}/changing.py:answer", "veilmeter_changing_module:answer"])
def test_changed_code_is_run_and_has_another_version(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / ("changing.py" if ".py" in spec else "veilmeter_changing_module.py")
    for number in (1, 2, 3):
        version = written(file, number)
        function, module = load_object(spec.format(folder=tmp_path), "extractor")
        assert function() == number
        assert source_version(module) == source_version(function) == version
    sys.modules.pop(module.__name__)


@pytest.mark.usefixtures("with_bytecode")
def test_the_version_is_that_of_what_was_loaded(tmp_path: Path) -> None:
    file = tmp_path / "changing.py"
    version = written(file, 1)
    function, module = load_object(f"{file}:answer", "extractor")
    written(file, 2)
    assert (function(), source_version(function)) == (1, version)
    sys.modules.pop(module.__name__)


@pytest.mark.usefixtures("with_bytecode")
@pytest.mark.parametrize("broken", ["def answer(:", "raise RuntimeError('broken')"])
def test_code_that_fails_never_leaves_the_old_one_under_its_name(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file, spec = tmp_path / "veilmeter_broken_module.py", "veilmeter_broken_module:answer"
    before = written(file, 1)
    _, module = load_object(spec, "extractor")
    file.write_text(broken)
    for _ in range(2):  # the second time must not find the module as if nothing had happened
        with pytest.raises(InputError, match="can't be imported"):
            load_object(spec, "extractor")
        assert source_version(module) == before
    version = written(file, 2)
    function, module = load_object(spec, "extractor")
    assert (function(), source_version(module)) == (2, version)
    sys.modules.pop(module.__name__)
