"""Options of an anonymizer as a command line gives them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from veilmeter.core.errors import InputError


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE as options: numbers and JSON as such, everything else as text.

    >>> parse_options(["depth=3", "voice=low", "range=[1, 2]"])
    {'depth': 3, 'voice': 'low', 'range': [1, 2]}
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, is_there, value = pair.partition("=")
        if not is_there or not name.isidentifier():
            raise InputError(f"--option {pair!r} is not NAME=VALUE")
        if name in options:
            raise InputError(f"--option {name} is given twice")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options
