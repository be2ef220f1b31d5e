"""Every example in a docstring runs and is right."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import veilmeter

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(veilmeter.__path__, "veilmeter.") if "__main__" not in module.name
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
