"""Dataclasses to JSON and back by their annotations: one place that checks what a file says, in any order of the keys.

`encode` writes a field under its own name; `decode` requires what the annotations say and names the place where a file
differs. Estimates are filed under the name of their measure, as in `Estimates.to_json`. Hand-written,
although typer brings pydantic: null as NaN, "inf", estimates under their measure and the refusal of unknown fields in
plain dataclasses would each need a hook there.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from veilmeter.core.estimate import Estimate, Estimates

Labels = Callable[[str], str]
_SCALARS = frozenset((str, float, int, bool))
_NUMBERS = {"inf": math.inf, "-inf": -math.inf}


class MalformedError(ValueError):
    """An invalid value that was read, and its place."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where or 'the file'}: {what}")


def encode(value: Any, *, labels: Labels = lambda name: "") -> Any:
    """`value` as dicts, lists and numbers. A label is written where it is not the one that `labels` gives.

    >>> encode(Estimate(name="eer", value=30.0, unit="percent"))["name"]
    'eer'
    """
    if value is None or type(value) in _SCALARS:
        return value
    if isinstance(value, Estimate):
        return {"name": value.name, **_estimate_form(value, labels)}
    if isinstance(value, Estimates):
        forms: dict[str, Any] = {}
        for name in value.names:
            measured = value[name]
            forms[name] = (
                _estimate_form(measured, labels)
                if isinstance(measured, Estimate)
                else [_estimate_form(point, labels) for point in measured]
            )
        return forms
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: encode(getattr(value, name), labels=labels) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encode(item, labels=labels) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item, labels=labels) for item in value]
    return value


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _estimate_form(estimate: Estimate, labels: Labels) -> dict[str, Any]:
    usual = labels(estimate.name) or estimate.name
    return estimate.to_json() | ({} if estimate.label == usual else {"label": estimate.label})


def decode(wanted: Any, form: Any, *, where: str = "", labels: Labels = lambda name: "") -> Any:
    """The value of type `wanted` that `form` describes; a MalformedError where it describes none.

    >>> decode(tuple[float, float], [1, "inf"], where="interval")
    (1.0, inf)
    >>> decode(int, "3", where="seed")
    Traceback (most recent call last):
    ...
    veilmeter.core.typed_json.MalformedError: seed: expected a whole number, got '3'
    """
    return _Decoder(labels).value(wanted, form, where)


@cache
def _origin(wanted: Any) -> Any:  # asked for every value of a file, as are the arguments
    return get_origin(wanted)


@cache
def _arguments(wanted: Any) -> tuple[Any, ...]:
    return get_args(wanted)


@cache
def _fields(kind: type) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(cast(Any, kind))}


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


class _Decoder:
    def __init__(self, labels: Labels) -> None:
        self.labels = labels

    def value(self, wanted: Any, form: Any, where: str) -> Any:
        if wanted is Any or (wanted in _SCALARS and type(form) is wanted):
            return form
        if wanted in _SCALARS:
            return _scalar(wanted, form, where)
        origin = _origin(wanted)
        if origin in (Union, types.UnionType):
            return self._union(_arguments(wanted), form, where)
        if origin is Literal:
            known = _arguments(wanted)
            if form not in known or isinstance(form, bool):
                raise MalformedError(where, f"expected one of {', '.join(map(str, known))}, got {_shorten(form)}")
            return form
        if origin is tuple or (isinstance(origin, type) and issubclass(origin, Sequence)):
            return self._sequence(_arguments(wanted), form, where)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            held = _arguments(wanted)[1]
            if held in _SCALARS and isinstance(form, dict) and all(type(item) is held for item in form.values()):
                return dict(form)
            return {key: self.value(held, item, f"{where}.{key}") for key, item in _object(form, where).items()}
        if wanted is Estimate:
            entry = _object(form, where)
            return self._estimate(_text(entry.get("name"), f"{where}.name"), entry, where)
        if wanted is Estimates:
            return Estimates(
                self._estimate(name, point, f"{where}.{name}")
                for name, measured in _object(form, where).items()
                for point in (measured if isinstance(measured, list) else [measured])
            )
        if dataclasses.is_dataclass(wanted):
            return self._dataclass(cast(type, wanted), _object(form, where), where)
        return _scalar(wanted, form, where)

    def _union(self, members: tuple[Any, ...], form: Any, where: str) -> Any:
        if form is None and type(None) in members:
            return None
        problems = []
        for member in members:
            if member is type(None):
                continue
            try:
                return self.value(member, form, where)
            except MalformedError as problem:
                problems.append(problem)
        # Of an object the first problem says most; of anything else the last member is the plain one.
        raise problems[0] if isinstance(form, dict) else problems[-1]

    def _sequence(self, members: tuple[Any, ...], form: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(form, list):
            raise MalformedError(where, f"expected a list, got {_shorten(form)}")
        if len(members) == 1 or members[-1] is Ellipsis:
            if members[0] in _SCALARS and all(type(item) is members[0] for item in form):
                return tuple(form)
            return tuple(self.value(members[0], item, f"{where}[{row}]") for row, item in enumerate(form))
        if len(form) != len(members):
            raise MalformedError(where, f"expected a list of {len(members)}, got one of {len(form)}")
        return tuple(self.value(member, item, where) for member, item in zip(members, form, strict=True))

    def _dataclass(self, kind: type, form: Mapping[str, Any], where: str) -> Any:
        hints = _hints(kind)
        fields = _fields(kind)
        strange = next((key for key in form if key not in fields), None)
        if strange is not None:
            near = difflib.get_close_matches(strange, fields, 1)
            raise MalformedError(where, f"unknown field {strange!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        values = {}
        for name, field in fields.items():
            if name in form:
                values[name] = self.value(hints[name], form[name], f"{where}.{name}" if where else name)
            elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                raise MalformedError(where, f"{name!r} is missing")
        try:
            return kind(**values)
        except ValueError as error:
            raise MalformedError(where, str(error)) from None

    def _estimate(self, name: str, form: Any, where: str) -> Estimate:
        entry = _object(form, where)
        hints = _hints(Estimate)
        if "value" not in entry:
            raise MalformedError(where, "'value' is missing")
        for key in ("unit", "method", "better", "n", "interval", "null", "null_range"):
            if key in entry:
                self.value(hints[key], entry[key], f"{where}.{key}")
        for key in self.value(tuple[str, ...], entry.get("at", []), f"{where}.at"):
            self.value(float | int | str, entry.get(key), f"{where}.{key}")
        label = _text(entry["label"], f"{where}.label") if "label" in entry else self.labels(name)
        try:
            return Estimate.from_json(name, entry, label=label)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise MalformedError(where, str(error)) from None


def _object(form: Any, where: str) -> dict[str, Any]:
    if not isinstance(form, dict):
        raise MalformedError(where, f"expected an object, got {_shorten(form)}")
    return form


def _text(form: Any, where: str) -> str:
    if not isinstance(form, str):
        raise MalformedError(where, f"expected text, got {_shorten(form)}")
    return form


def _scalar(wanted: Any, form: Any, where: str) -> Any:
    if wanted is str:
        return _text(form, where)
    if wanted is bool:
        if not isinstance(form, bool):
            raise MalformedError(where, f"expected true or false, got {_shorten(form)}")
        return form
    if wanted is int:
        if not isinstance(form, int) or isinstance(form, bool):
            raise MalformedError(where, f"expected a whole number, got {_shorten(form)}")
        return form
    if wanted is float:
        if form is None:
            return math.nan
        if isinstance(form, str) and form in _NUMBERS:
            return _NUMBERS[form]
        if not isinstance(form, int | float) or isinstance(form, bool):
            raise MalformedError(where, f"expected a number, got {_shorten(form)}")
        try:
            return float(form)
        except OverflowError:
            raise MalformedError(where, "this number is too large") from None
    raise TypeError(f"{wanted!r} can't be read from JSON")


def _shorten(form: Any) -> str:
    text = repr(form)
    return text if len(text) <= 40 else text[:37] + "..."
