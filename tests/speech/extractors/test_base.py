"""Extractors by name: built in, registered, or a user's own function."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.speech.extractors import Extractor, load_extractor

OWN = """
import numpy as np

def function(samples):
    return samples[:3] + 1

class Made:
    name, version, dimension = "made", "7", 2
    def embed(self, samples):
        return np.ones(2, np.float32)

instance = Made()
number = 5

def make():
    return Made()

def make_nothing():
    return None

def fails(samples):
    raise KeyError("x")

def words(samples):
    return ["a", "b"]

def table(samples):
    return np.ones((2, 2))

class Unmakeable:
    def __init__(self, x):
        pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_own_extractors.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_own_extractors", raising=False)
    return tmp_path / "my_own_extractors.py"


@pytest.mark.parametrize("module", ["my_own_extractors", "FILE"])
def test_a_function_of_ones_own(own: Path, module: str) -> None:
    found = load_extractor(f"{own if module == 'FILE' else module}:function")
    assert isinstance(found, Extractor)
    assert found.dimension == 3
    np.testing.assert_array_equal(found.embed(np.zeros(100, np.float32)), np.ones(3, np.float32))
    version = found.version
    own.write_text(OWN + "# changed\n")
    assert load_extractor(f"{own}:function").version != version


@pytest.mark.parametrize("name", ["Made", "instance", "make"])
def test_a_class_or_an_object_of_ones_own(own: Path, name: str) -> None:
    found = load_extractor(f"my_own_extractors:{name}")
    assert (found.name, found.version, found.dimension) == ("made", "7", 2)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("campus", "did you mean 'campplus'.*campplus, ge2e, .*onnx:FILE"),
        ("no_such_module:f", "no module 'no_such_module'"),
        ("my_own_extractors:nothing", "has no 'nothing'"),
        ("my_own_extractors:make_nothing", "neither a function nor an extractor"),
        ("my_own_extractors:number", "neither a function nor an extractor"),
        ("my_own_extractors:fails", "fails on a second of noise: KeyError"),
        ("my_own_extractors:words", "did not return numbers"),
        ("my_own_extractors:table", "not one vector"),
        ("my_own_extractors:Unmakeable", "can't be made"),
        ("nothing.py:f", "there is no such file"),
        ("onnx:nothing.onnx", "there is no such file"),
    ],
)
def test_what_is_no_extractor_says_why(own: Path, spec: str, said: str) -> None:
    with pytest.raises(VeilmeterError, match=said):
        load_extractor(spec)


def test_a_module_that_does_not_even_load(own: Path) -> None:
    own.write_text("1 / 0")
    with pytest.raises(InputError, match="ZeroDivisionError"):
        load_extractor(f"{own}:f")


def test_registered_extractors_are_found_by_name(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = importlib.metadata.EntryPoint("mine", "my_own_extractors:Made", "veilmeter.extractors")

    def installed(group: str) -> list[object]:
        assert group == "veilmeter.extractors"
        return [entry, SimpleNamespace(name="other")]

    monkeypatch.setattr(sys, "path", [str(own.parent), *sys.path])
    monkeypatch.setattr("veilmeter.core.registry.find_entry_points", installed)
    assert load_extractor("mine").name == "made"
    with pytest.raises(InputError, match="mine, other"):
        load_extractor("yours")
