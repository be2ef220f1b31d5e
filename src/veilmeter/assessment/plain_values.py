"""From plain values, as a TOML file or keyword arguments give them, to a dataclass with the types it declares."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError


def build(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass of these fields; an unknown one is an error that suggests the nearest."""
    fields = {f.name: f for f in dataclasses.fields(kind)}
    coerced: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            near = difflib.get_close_matches(key, list(fields), 1)
            raise InputError(
                f"there is no option {key!r}",
                fix=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(fields)}",
            )
        coerced[key] = _coerced(key, value, str(fields[key].type))
    return kind(**coerced)


def _coerced(key: str, value: Any, wanted: str) -> Any:
    """The value in the type that the field has; a single word or number stands for a list of one."""

    def wrong(what: str) -> InputError:
        return InputError(f"{key} must be {what}, not {value!r}")

    if value is None:
        return None
    if wanted.startswith("tuple"):
        items = [value] if isinstance(value, str | Path | int | float) else list(value)
        if "int" in wanted:
            if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
                raise wrong("whole numbers")
            return tuple(items)
        if not all(isinstance(item, str | Path) for item in items):
            raise wrong("text")
        return tuple(str(item) for item in items)
    if wanted.startswith("bool"):
        if not isinstance(value, bool):
            raise wrong("true or false")
    elif wanted.startswith("int"):
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong("a whole number")
    elif wanted.startswith("float"):
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong("a number")
        return float(value)
    elif wanted.startswith("str"):
        if not isinstance(value, str | Path):
            raise wrong("text")
        return str(value)
    return value
