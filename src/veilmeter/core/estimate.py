"""Estimate: a number that knows its uncertainty, what noise would give, how it was made and which way is private."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Private = Literal["higher", "lower", "neither"]

_UNIT_TEXT = {"percent": " %", "bit": " bit", "dB": " dB", "log10": "", "probability": "", "": "", "count": ""}
_DECIMALS = {"percent": 1, "bit": 3, "dB": 2, "log10": 2, "probability": 3, "": 3, "count": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One measured number.

    `value` and `interval` are in `unit`; `null` is what the measure gives, on average, when the scores carry no
    information at the same counts, `null_range` the 5th to the 95th percentile of that; `n` the counts it rests on;
    `better` the direction in which the data subject is safer; `at` the parameters of a point on a curve; `extra`
    further facts such as ZEBRA's tag.

    >>> print(Estimate(name="eer", label="EER", value=30.943, unit="percent", interval=(28.4, 33.6), null=48.9,
    ...                method="ROCCH", better="higher"))
    EER 30.9 % [28.4, 33.6] (ROCCH, chance 48.9)
    """

    name: str
    value: float
    unit: str = ""
    label: str = ""
    interval: tuple[float, float] | None = None
    null: float | None = None
    null_range: tuple[float, float] | None = None
    method: str = ""
    n: Mapping[str, int] = field(default_factory=dict)
    better: Private = "neither"
    at: Mapping[str, float | int | str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.interval is not None:
            low, high = self.interval
            if low > high:
                raise ValueError(f"{self.name}: the interval [{low}, {high}] runs backwards")
        if not self.label:
            object.__setattr__(self, "label", self.name)

    def with_(self, **changes: Any) -> Estimate:
        return replace(self, **changes)

    @property
    def worst(self) -> float:
        """The end of the interval (or the value) that is worst for the data subject: what a gate must look at."""
        if self.interval is None:
            return self.value
        return self.interval[0] if self.better == "higher" else self.interval[1]

    @property
    def inside_null(self) -> bool | None:
        """Whether the value can't be told from what no information gives; None if that is not known."""
        if self.null_range is None:
            return None
        low, high = self.null_range
        return low <= self.value <= high

    def format_value(self) -> str:
        return format_number(self.value, self.unit) + _UNIT_TEXT.get(self.unit, f" {self.unit}")

    def format_interval(self) -> str:
        if self.interval is None:
            return ""
        return "[" + ", ".join(format_number(end, self.unit) for end in self.interval) + "]"

    def format_null(self) -> str:
        return "" if self.null is None else format_number(self.null, self.unit)

    def __str__(self) -> str:
        at = ", ".join(f"{key} {value}" for key, value in self.at.items())
        note = [self.method] if self.method else []
        if self.null is not None:
            note.append(f"chance {self.format_null()}")
        parts = [self.label + (f" at {at}" if at else ""), self.format_value(), self.format_interval()]
        return " ".join(part for part in parts if part) + (f" ({', '.join(note)})" if note else "")

    def to_json(self) -> dict[str, Any]:
        """The documented form: parameters, value, unit, interval, null, null_range, method, n, better, extras.

        Parameters and extras stand beside the value under their own names, whatever the order of the keys; `at` lists
        which of them are the parameters.
        """
        return {
            **self.at,
            "value": self.value,
            "unit": self.unit,
            "interval": None if self.interval is None else list(self.interval),
            "null": self.null,
            "null_range": None if self.null_range is None else list(self.null_range),
            "method": self.method,
            "n": dict(self.n),
            "better": self.better,
            **({"at": list(self.at)} if self.at else {}),
            **self.extra,
        }

    @classmethod
    def from_json(cls, name: str, form: Mapping[str, Any], *, label: str = "") -> Estimate:
        """The reverse of `to_json`, in any order of the keys. Raises ValueError or TypeError on anything else.

        >>> point = Estimate(name="linkability", value=0.2, interval=(0.1, 0.3), at={"speakers": 20, "length": 1})
        >>> form = point.to_json()
        >>> Estimate.from_json("linkability", dict(sorted(form.items()))) == point
        True
        """
        parameters = form.get("at", [])
        if not isinstance(parameters, list) or any(key not in form for key in parameters):
            raise ValueError(f"{name}: `at` must list the parameters that stand beside the value")
        return cls(
            name=name,
            label=label,
            value=_number(form["value"]),
            unit=str(form.get("unit", "")),
            interval=_pair(form.get("interval")),
            null=None if form.get("null") is None else _number(form["null"]),
            null_range=_pair(form.get("null_range")),
            method=str(form.get("method", "")),
            n=dict(form.get("n", {})),
            better=form.get("better", "neither"),
            at={key: form[key] for key in parameters},
            extra={key: value for key, value in form.items() if key not in _FIELDS and key not in parameters},
        )


_FIELDS = ("value", "unit", "interval", "null", "null_range", "method", "n", "better", "at", "name", "label")


def format_number(value: float, unit: str = "") -> str:
    """As a person would write it: fixed decimals per unit, powers of ten where a value would vanish or be endless.

    >>> format_number(30.943, "percent"), format_number(0.00046, "bit"), format_number(float("-inf"))
    ('30.9', '0.00046', '-inf')
    """
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    decimals = _DECIMALS.get(unit, 3)
    text = f"{value:.{decimals}f}"
    if value != 0 and float(text) == 0:
        return f"{value:.2g}"
    return text


def _number(value: Any) -> float:
    """A number of results.json: JSON has no infinity and no NaN, so these are words and null there."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        raise TypeError("a number is wanted, not true or false")
    if isinstance(value, str):
        return {"inf": math.inf, "-inf": -math.inf}[value]
    try:
        return float(value)
    except OverflowError:  # a whole number with hundreds of digits
        raise ValueError("this number is too large") from None


def _pair(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    low, high = value
    return _number(low), _number(high)
