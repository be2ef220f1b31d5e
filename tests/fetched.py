"""Models whose weights are fetched once: without a network, tests that need them are skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from veilmeter.core.errors import InputError, VeilmeterError

Model = TypeVar("Model")


def fetched(load: Callable[[], Model]) -> Model:
    """The model. One that is there and can't be used is an error like any other."""
    try:
        return load()
    except InputError:
        raise
    except VeilmeterError as error:
        pytest.skip(f"no weights: {error}")
