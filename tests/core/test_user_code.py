"""The user's own code is run as its file says, also where it changes while we work."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from veilmeter.anonymizers.base import load_anonymizer
from veilmeter.core import user_code
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.keys import key_of
from veilmeter.core.user_code import load_object, note_origin, source_version, version_of
from veilmeter.speech.extractors.base import load_extractor, load_same_extractor

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


HELPER, USER = "NUMBER = {}\n", "import veilmeter_test_helper as helper\n\ndef answer():\n    return helper.NUMBER\n"
LAZY = "def answer():\n    from veilmeter_test_package.inner import NUMBER\n    return NUMBER\n"


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported, as if by a process of its own each time."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(user_code, "_files", {})  # workers of later tests would load them again
    yield tmp_path
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith(("veilmeter_test_", "veilmeter_own_"))]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    ("user", "helper"),
    [
        (USER, "veilmeter_test_helper.py"),
        (LAZY, "veilmeter_test_package/inner.py"),
        ("from veilmeter_test_package import answer\n", "veilmeter_test_package/inner.py"),
    ],
)
def test_a_module_that_the_users_code_imports_counts(user: str, helper: str, beside: Path) -> None:
    package = beside / "veilmeter_test_package"
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner\n\ndef answer():\n    return inner.NUMBER\n")
    (beside / "own.py").write_text(user)
    versions = []
    for number in (1, 22, 1):
        (beside / helper).write_text(HELPER.format(number))
        forget()
        function, module = load_object(f"{beside}/own.py:answer", "extractor")
        versions.append(source_version(function, module))
        assert function() == number
    assert versions[0] == versions[2] != versions[1]


def test_a_module_that_changed_after_it_was_imported_is_refused(beside: Path) -> None:
    """Its old code runs on: what that computes must not be kept under the new code's name."""
    helper, own = beside / "veilmeter_test_helper.py", beside / "own.py"
    helper.write_text(HELPER.format(1))
    own.write_text(USER)
    load_object(f"{own}:answer", "extractor")
    helper.write_text(HELPER.format(22))
    with pytest.raises(InputError, match="has changed since Python imported it") as refused:
        load_object(f"{own}:answer", "extractor")
    assert "veilmeter_test_helper.py" in str(refused.value)
    importlib.reload(sys.modules["veilmeter_test_helper"])
    assert load_object(f"{own}:answer", "extractor")[0]() == 22


def test_what_is_installed_does_not_count(beside: Path) -> None:
    (beside / "own.py").write_text("import json, numpy.linalg\nfrom veilmeter import core\n\ndef answer(): ...\n")
    _, module = load_object(f"{beside}/own.py:answer", "extractor")
    assert source_version(module) == hashlib.sha256((beside / "own.py").read_bytes()).hexdigest()[:16]


@pytest.mark.parametrize("made", ["partial(answer, 1)", "wrapped(answer)", "Answer()"])
def test_code_counts_however_it_is_wrapped(made: str, beside: Path) -> None:
    source = (
        "from functools import partial, wraps\n\ndef answer(number=0):\n    return {}\n\ndef wrapped(function):\n"
        "    @wraps(function)\n    def inner():\n        return function()\n    return inner\n\n"
        "class Answer:\n    def __call__(self):\n        return {}\n\nmade = " + made + "\n"
    )
    versions = set()
    for number in (1, 2):
        (beside / "own.py").write_text(source.format(number, number))
        function, _ = load_object(f"{beside}/own.py:made", "extractor")
        assert function() == number
        versions.add(source_version(function))
    assert len(versions) == 2


NOTEBOOK = """
SCALE = {scale}

def _helper(x):
    return SCALE * x + {offset}

class Mine:
    @property
    def twice(self):
        return {factor} * _helper(1)

def embed(samples):
    return _helper(Mine().twice) in {{"a", "b"}}
"""


def test_code_of_a_notebook_counts_by_what_is_defined_there() -> None:
    def version(**numbers: int) -> str:
        notebook = ModuleType("veilmeter_test_notebook")
        sys.modules[notebook.__name__] = notebook
        exec(NOTEBOOK.format(**numbers), vars(notebook))
        return source_version(notebook.embed)

    try:
        numbers = {"scale": 1, "factor": 2, "offset": 0}
        first = version(**numbers)
        assert first == version(**numbers) != "unknown"
        assert len({first, *(version(**{**numbers, name: 3}) for name in numbers)}) == 4
    finally:
        del sys.modules["veilmeter_test_notebook"]


ATTACK = """
from dataclasses import dataclass
from veilmeter_test_helper import NUMBER

@dataclass
class Mine:
    strength: int = 1

class Kept:
    def key(self):
        return "the same"

def run(): ...
"""


@pytest.mark.parametrize("used", ["Mine", "Kept", "run"])
def test_the_key_of_work_holds_the_code_of_other_packages(used: str, beside: Path) -> None:
    (beside / "veilmeter_test_plugin.py").write_text(ATTACK)
    keys = []
    for number in (1, 22, 1):
        (beside / "veilmeter_test_helper.py").write_text(HELPER.format(number))
        forget()
        thing = getattr(importlib.import_module("veilmeter_test_plugin"), used)
        keys.append(key_of(len, thing() if isinstance(thing, type) else thing))
    assert keys[0] == keys[2] != keys[1]


MADE = """
from types import SimpleNamespace

class Slots:
    __slots__ = ()
    version = "1"

def make():
    return {made}
"""


@pytest.mark.parametrize("made", ["SimpleNamespace(version='1')", "Slots()"])
def test_code_that_makes_an_object_counts_whatever_version_it_says(made: str, beside: Path) -> None:
    versions = []
    for line in ("", "# changed", ""):
        (beside / "own.py").write_text(MADE.format(made=made) + line)
        make, module = load_object(f"{beside}/own.py:make", "extractor")
        thing = make()
        note_origin(thing, module)
        versions.append(version_of(thing))
    assert versions[0] == versions[2] != versions[1]
    assert all(version.startswith("1+") for version in versions)


def test_ours_say_their_version_themselves() -> None:
    ours = load_anonymizer("mcadams")
    assert version_of(ours) == ours.version


def test_another_process_must_not_have_other_code(beside: Path) -> None:
    """One that is loaded there later would be kept as if it were this one."""
    own = beside / "own.py"
    own.write_text("import numpy as np\n\ndef embed(samples):\n    return np.ones(3)\n")
    version = version_of(load_extractor(f"{own}:embed"))
    assert version_of(load_same_extractor(f"{own}:embed", version)) == version
    own.write_text(own.read_text().replace("ones(3)", "ones(4)"))
    with pytest.raises(VeilmeterError, match="one process has"):
        load_same_extractor(f"{own}:embed", version)
