"""Estimate: a number that knows its uncertainty, what noise would give, how it was made and which way is private."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, overload

from veilmeter._version import __version__
from veilmeter.core.errors import InputError, need

Private = Literal["higher", "lower", "neither"]

POINTS = "percentage points"  # the unit of a difference of two percentages
_UNIT_TEXT = {"percent": " %", POINTS: " points", "bit": " bit", "dB": " dB", "log10": "", "": "", "count": ""}
_SMALLEST = 1e-6  # of any unit: less is written as zero
_DECIMALS = {"percent": 1, POINTS: 1, "bit": 3, "dB": 2, "log10": 2, "": 3, "count": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One measured number, with its interval and everything that it depends on.

    It is a number where that is safe: `float(estimate)` is its value, and a format such as `f"{estimate:.2f}"` applies
    to the value. It is printed as a person would write it.

    Parameters
    ----------
    name : str
        Name of the measure, such as `"eer"`.
    value : float
        The value, in `unit`.
    unit : str
        `"percent"`, `"bit"`, `"dB"`, or nothing.
    label : str
        Name of the measure in print; by default its name.
    interval : tuple of float, optional
        The ends of the 95 % interval, in `unit`.
    null : float, optional
        Chance level: the average value of the measure, at the same counts, when there is nothing to find.
    null_range : tuple of float, optional
        The 5th and the 95th percentile of that.
    method : str
        How it was computed, such as `"rocch"`.
    n : mapping
        The counts it rests on, such as `{"targets": 100, "speakers": 20}`.
    better : {"higher", "lower", "neither"}
        The direction in which people are safer.
    at : mapping
        The parameters of a point on a curve, such as `{"speakers": 20, "length": 1}`.
    extra : mapping
        Further facts, such as ZEBRA's tag.
    context : mapping
        What else it depends on, for its signature: attacker, extractor, data, seed. It is not compared.

    Raises
    ------
    ValueError
        If the interval runs backwards.

    Examples
    --------
    >>> eer = Estimate(name="eer", label="EER", value=30.943, unit="percent", interval=(28.4, 33.6), null=48.9,
    ...                method="rocch", better="higher", n={"targets": 449, "impostors": 11295, "speakers": 29},
    ...                context={"seed": 0, "v": "1.0"})
    >>> print(eer)
    EER 30.9 % [28.4, 33.6] (rocch, chance 48.9)
    >>> float(eer), f"{eer:.2f}"
    (30.943, '30.94')
    >>> eer.signature
    'EER|method:rocch|trials:11744|speakers:29|seed:0|v:1.0'
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
    context: Mapping[str, float | int | str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.interval is not None:
            low, high = self.interval
            if low > high:
                raise ValueError(f"{self.name}: the interval [{low}, {high}] runs backwards")
        if not self.label:
            object.__setattr__(self, "label", self.name)

    def with_(self, **changes: Any) -> Estimate:
        """The same with other values of some fields."""
        return replace(self, **changes)

    def sign(self, **context: float | int | str) -> Estimate:
        """The same with more facts in its signature; those that are known already stay as they are."""
        return replace(self, context={**context, **self.context})

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else str(self)

    @property
    def signature(self) -> str:
        """All that the figure depends on, in one line to quote beside it: the measure, its parameters, how it was
        computed, the counts it rests on, the seed and the version."""
        facts: dict[str, Any] = {key: value for key, value in self.context.items() if key not in _SIGNED_LAST}
        facts |= {_AMONG.get(key, key): value for key, value in self.at.items()}
        facts |= {"method": self.method} if self.method else {}
        facts |= _signed_counts(self.n)
        facts |= {key: self.context[key] for key in _SIGNED_LAST if key in self.context}
        facts = {"v": __version__} | facts
        facts["v"] = facts.pop("v")
        return "|".join([_signed(self.label), *(f"{_signed(key)}:{_signed(value)}" for key, value in facts.items())])

    @property
    def worst(self) -> float:
        """The end of the interval (or the value) that is worst for the data subject: what a gate must look at."""
        if self.interval is None:
            return self.value
        return self.interval[0] if self.better == "higher" else self.interval[1]

    @property
    def inside_null(self) -> bool | None:
        """Whether the value is within the range of chance; None if that range is not known."""
        if self.null_range is None:
            return None
        low, high = self.null_range
        return low <= self.value <= high

    def format_value(self) -> str:
        """The value with its unit, as a person would write it."""
        return format_number(self.value, self.unit) + _UNIT_TEXT.get(self.unit, f" {self.unit}")

    def format_interval(self) -> str:
        """The interval in brackets, in the decimals of the value unless all of it would vanish; nothing where there is
        none."""
        if self.interval is None:
            return ""
        fixed = any(is_visible(number, self.unit) for number in (self.value, *self.interval))
        return "[" + ", ".join(format_number(end, self.unit, fixed=fixed) for end in self.interval) + "]"

    def format_null(self, *, fixed: bool = False) -> str:
        """What chance gives; nothing where that is not known. `fixed` decimals are for columns: what would vanish there
        is written as less than the smallest number that would not."""
        if self.null is None:
            return ""
        if fixed and self.null > 0 and not is_visible(self.null, self.unit):
            return f"<{10.0 ** -_DECIMALS.get(self.unit, 3):g}"
        return format_number(self.null, self.unit)

    def __str__(self) -> str:
        at = ", ".join(f"{key} {value}" for key, value in self.at.items())
        note = [self.method] if self.method else []
        if self.null is not None:
            note.append(f"chance {self.format_null()}")
        parts = [self.label + (f" at {at}" if at else ""), self.format_value(), self.format_interval()]
        return " ".join(part for part in parts if part) + (f" ({', '.join(note)})" if note else "")

    def __repr__(self) -> str:
        return f"<Estimate {self}>"

    def to_json(self) -> dict[str, Any]:
        """The documented form: parameters, value, unit, interval, null, null_range, method, n, better, extras, and the
        signature where it holds more than these.

        Parameters and extras are beside the value under their own names, whatever the order of the keys; `at` lists
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
            **({"signature": self.signature} if self.context else {}),
        }

    @classmethod
    def from_json(cls, name: str, form: Mapping[str, Any], *, label: str = "") -> Estimate:
        """The reverse of `to_json`, in any order of the keys. Raises ValueError or TypeError on anything else.

        >>> point = Estimate(name="linkability", value=20.0, unit="percent", at={"speakers": 20, "length": 1})
        >>> form = point.to_json()
        >>> Estimate.from_json("linkability", dict(sorted(form.items()))) == point
        True
        """
        parameters = form.get("at", [])
        if not isinstance(parameters, list) or any(key not in form for key in parameters):
            raise ValueError(f"{name}: `at` must list the parameters given beside the value")
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
            context=_context(str(form.get("signature", "")), {*_SIGNED_FIELDS, *form.get("n", {}), *parameters}),
        )


_FIELDS = (
    "value", "unit", "interval", "null", "null_range", "method", "n", "better", "at", "name", "label", "signature"
)  # fmt: skip
_SIGNED_FIELDS = ("method", "trials", "among")
_AMONG = {"speakers": "among"}  # a number of people on a curve, beside the number of those measured
_SIGNED_LAST = ("resamples", "data", "settings", "seed", "v")


def _signed(value: Any) -> str:
    """Text of a signature, in which `|` and `:` separate its parts."""
    return f"{value:g}" if isinstance(value, float) else str(value).replace("|", "/").replace(":", "=")


def _signed_counts(n: Mapping[str, int]) -> dict[str, str]:
    """Target and impostor trials are one number, as papers count them."""
    counts = {key: str(count) for key, count in n.items() if key not in ("targets", "impostors")}
    if "targets" in n and "impostors" in n:
        return {"trials": str(n["targets"] + n["impostors"]), **counts}
    return {**{key: str(n[key]) for key in ("targets", "impostors") if key in n}, **counts}


def _context(signature: str, known: Container[str]) -> dict[str, float | int | str]:
    """Parts of a signature beside the fields of the estimate."""
    facts = dict(part.partition(":")[::2] for part in signature.split("|")[1:])
    return {key: value for key, value in facts.items() if key not in known}


def is_visible(value: float, unit: str) -> bool:
    """Whether a number is not zero in the decimals of its unit.

    >>> is_visible(0.04, "percent"), is_visible(0.06, "percent")
    (False, True)
    """
    return math.isfinite(value) and float(f"{value:.{_DECIMALS.get(unit, 3)}f}") != 0


def format_number(value: float, unit: str = "", *, fixed: bool = False) -> str:
    """As a person would write it: fixed decimals per unit, powers of ten where a value would be endless or, unless they
    are to be `fixed`, where it would vanish.

    >>> format_number(30.943, "percent"), format_number(0.00046, "bit"), format_number(float("-inf"))
    ('30.9', '0.00046', '-inf')
    """
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    decimals = _DECIMALS.get(unit, 3)
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        return f"{value:.2g}" if abs(value) >= _SMALLEST and not fixed else text.removeprefix("-")
    return text


def unit_text(unit: str) -> str:
    """A unit as it is written behind a number; nothing where there is none.

    >>> unit_text("percent"), unit_text("bit"), unit_text("")
    ('%', 'bit', '')
    """
    return _UNIT_TEXT.get(unit, unit).strip()


def unit_of_difference(unit: str) -> str:
    """
    >>> unit_of_difference("percent"), unit_of_difference("bit")
    ('percentage points', 'bit')
    """
    return POINTS if unit == "percent" else unit


def _number(value: Any) -> float:
    """A number of results.json: JSON has no infinity and no NaN, so these are words and null there."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        raise TypeError("expected a number, got true or false")
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


COLUMNS = ("measure", "label", "value", "unit", "low", "high", "null", "method", "better")


_SHOWN = 300  # characters of a list of names


class Estimates(Sequence[Estimate]):
    """Several estimates: of one measure (a curve) or of many, by name and in order. Immutable.

    `estimates["eer"]` is the one `Estimate` of that name or, where a measure has several points (`at`), the curve as
    `Estimates`. Iteration gives every point; `keys`, `values`, `items` and `get` are those of a mapping by name.
    Where one estimate is left, it can be used in place of the collection: `value`, `interval`, `float()` and formats
    are then its own.

    Parameters
    ----------
    items : iterable of Estimate
        The estimates, in the order in which they are shown.

    Examples
    --------
    >>> curve = Estimates([Estimate(name="linkability", value=v, unit="percent", at={"speakers": n, "length": 1})
    ...                    for n, v in [(20, 40.0), (5, 70.0)]])
    >>> both = curve + Estimates([Estimate(name="eer", value=30.0, unit="percent")])
    >>> both["eer"].value, both.names
    (30.0, ('linkability', 'eer'))
    >>> [point.value for point in both["linkability"].sort_by("speakers")]
    [70.0, 40.0]
    >>> both.filter(speakers=20).value, f"{both.filter(name='eer'):.2f}", list(both.keys())
    (40.0, '30.00', ['linkability', 'eer'])
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Estimate] = ()) -> None:
        self._items = tuple(items)

    @classmethod
    def of(cls, measured: Mapping[str, Estimate | Sequence[Estimate]]) -> Estimates:
        """A measure's result by name: an estimate, or the points of a curve."""
        return cls(
            point for curve in measured.values() for point in ([curve] if isinstance(curve, Estimate) else curve)
        )

    # --- as a sequence and by name

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self._items)

    def __contains__(self, item: object) -> bool:
        return any(point.name == item for point in self._items) if isinstance(item, str) else item in self._items

    @overload
    def __getitem__(self, key: int) -> Estimate: ...
    @overload
    def __getitem__(self, key: slice) -> Estimates: ...
    @overload
    def __getitem__(self, key: str) -> Estimate | Estimates: ...
    def __getitem__(self, key: int | slice | str) -> Estimate | Estimates:
        if isinstance(key, str):
            points = self.points(key)
            if not points:
                raise KeyError(key)
            return points[0] if len(points) == 1 and not points[0].at else points
        return Estimates(self._items[key]) if isinstance(key, slice) else self._items[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimates) and self._items == other._items

    def __hash__(self) -> int:
        return hash(tuple(point.name for point in self._items))

    def key(self) -> tuple[Estimate, ...]:
        """The estimates, as the key of a result that was made from them."""
        return self._items

    def __add__(self, other: Iterable[Estimate]) -> Estimates:
        return Estimates((*self._items, *other))

    def __repr__(self) -> str:
        names = ", ".join(self.names)
        return f"Estimates({len(self)}: {names if len(names) <= _SHOWN else names[:_SHOWN] + '...'})"

    def __str__(self) -> str:
        return "\n".join(str(point) for point in self._items)

    @property
    def names(self) -> tuple[str, ...]:
        """The measures, in order, once each."""
        return tuple(dict.fromkeys(point.name for point in self._items))

    def keys(self) -> tuple[str, ...]:
        """The same as `names`, as a mapping has it."""
        return self.names

    def values(self) -> list[Estimate | Estimates]:
        """What each measure has: an estimate, or a curve."""
        return [self[name] for name in self.names]

    def items(self) -> list[tuple[str, Estimate | Estimates]]:
        """Each measure with what it has: an estimate, or a curve."""
        return [(name, self[name]) for name in self.names]

    def get(self, name: str, default: Any = None) -> Any:
        """As `estimates[name]`; the default where there is no such measure."""
        return self[name] if name in self.names else default

    # --- as the one estimate that is left

    @property
    def value(self) -> float:
        """The value of the one estimate that is left after filtering."""
        return self.only().value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the one estimate that is left after filtering."""
        return self.only().interval

    @property
    def signature(self) -> str:
        """The signatures of all of them, one per line."""
        return "\n".join(point.signature for point in self._items)

    def __float__(self) -> float:
        return float(self.only())

    def __format__(self, form: str) -> str:
        return format(self.only(), form) if form else str(self)

    def sign(self, **context: float | int | str) -> Estimates:
        """The same with more facts in the signature of each."""
        return Estimates(point.sign(**context) for point in self._items)

    def points(self, name: str) -> Estimates:
        """Every point of a measure, none, one or many."""
        return Estimates(point for point in self._items if point.name == name)

    def single(self, name: str) -> Estimate | None:
        """The estimate of a measure that has one value; None where it was not measured or is a curve."""
        points = self.points(name)
        return points[0] if len(points) == 1 else None

    def only(self) -> Estimate:
        """The one estimate that is left after filtering.

        Raises
        ------
        InputError
            If there are several, or none.
        """
        if len(self._items) != 1:
            points = f"{len(self._items)} estimates, not one"
            raise InputError(f"there are {points}", fix="choose one, as in estimates.filter(speakers=20, length=1)")
        return self._items[0]

    # --- filtering and sorting

    def filter(self, condition: Callable[[Estimate], bool] | None = None, **at: Any) -> Estimates:
        """Those that fulfill the condition and have these parameters; `name=` chooses a measure."""

        def fits(point: Estimate) -> bool:
            values = {"name": point.name, **point.at}
            return all(key in values and values[key] == value for key, value in at.items())

        return Estimates(point for point in self._items if fits(point) and (condition is None or condition(point)))

    def without(self, *names: str) -> Estimates:
        return Estimates(point for point in self._items if point.name not in names)

    def sort_by(self, *keys: str, reverse: bool = False) -> Estimates:
        """By parameters (`speakers`, `length`), or by `value`, `name` or `worst`; points without one come last."""

        def place(point: Estimate) -> tuple[tuple[bool, Any], ...]:
            values = {"name": point.name, "value": point.value, "worst": point.worst, **point.at}
            return tuple((key not in values, values.get(key, 0)) for key in keys or ("name",))

        return Estimates(sorted(self._items, key=place, reverse=reverse))

    # --- as JSON, a table, a page, a figure

    def to_json(self) -> dict[str, Any]:
        """By measure: an object, or a list of them for a curve."""
        form: dict[str, Any] = {}
        for name in self.names:
            measured = self[name]
            form[name] = (
                measured.to_json() if isinstance(measured, Estimate) else [point.to_json() for point in measured]
            )
        return form

    @classmethod
    def from_json(cls, form: Mapping[str, Any], *, labels: Callable[[str], str] = lambda name: "") -> Estimates:
        """The reverse of `to_json`; `labels` gives the label of a measure."""
        return cls(
            Estimate.from_json(name, point, label=labels(name))
            for name, stored in form.items()
            for point in (stored if isinstance(stored, list) else [stored])
        )

    def columns(self) -> dict[str, list[Any]]:
        """One row per point: what it is, its value and interval, and a column for each parameter."""
        table: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        parameters = tuple(dict.fromkeys(key for point in self._items for key in point.at))
        table |= {name: [] for name in parameters if name not in table}
        for point in self._items:
            low, high = point.interval or (None, None)
            row = {
                "measure": point.name, "label": point.label, "value": point.value, "unit": point.unit, "low": low,
                "high": high, "null": point.null, "method": point.method, "better": point.better,
            }  # fmt: skip
            for name, column in table.items():
                column.append(row[name] if name in row else point.at.get(name))
        return table

    def to_frame(self) -> Any:
        """A pandas DataFrame where pandas is installed, else a pyarrow Table; one row per point."""
        return frame(self.columns())

    def _repr_html_(self) -> str:
        head = ("measure", "at", "value", "95 % interval", "chance", "method")
        return html_table(head, [cells_of(point) for point in self._items])

    def plot(self, x: str | None = None) -> Any:
        """An Altair chart: a curve over a parameter (`speakers` where there is one) with its band, else a dot and its
        interval per measure."""
        need("altair")
        import altair as alt

        columns = self.columns()
        numeric = [key for key in columns if key not in COLUMNS and all(_is_number(v) for v in columns[key])]
        x = x or next((key for key in ("speakers", *numeric) if key in numeric), None)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        data: Any = {"values": rows}
        if x is None:
            base = alt.Chart(alt.InlineData(**data)).encode(y=alt.Y("label:N", title=None))
            return base.mark_rule().encode(x=alt.X("low:Q", title="value"), x2="high:Q") + base.mark_point(
                filled=True
            ).encode(x="value:Q")
        others = [key for key in columns if key not in COLUMNS and key != x and len(set(map(str, columns[key]))) > 1]
        color = f"{others[0]}:N" if others else "label:N"
        base = alt.Chart(alt.InlineData(**data)).encode(x=alt.X(f"{x}:Q", title=x), color=alt.Color(color))
        return base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title="value"), y2="high:Q") + base.mark_line(
            point=True
        ).encode(y="value:Q")


class HasEstimates:
    """The table, the figure and the one-line form of a measurement that has several estimates."""

    if TYPE_CHECKING:

        @property
        def estimates(self) -> Estimates: ...
        @property
        def summary(self) -> str: ...

    def to_frame(self) -> Any:
        """The estimates as a pandas DataFrame, or as a pyarrow Table where pandas is not installed."""
        return self.estimates.to_frame()

    def plot(self, x: str | None = None) -> Any:
        """The estimates as an Altair chart; see `Estimates.plot`."""
        return self.estimates.plot(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.summary)}</p>{self.estimates._repr_html_()}"


def cells_of(point: Estimate) -> tuple[str, str, str, str, str, str]:
    """An estimate as the cells of a table."""
    at = ", ".join(f"{key} {value}" for key, value in point.at.items())
    return (point.label, at, point.format_value(), point.format_interval(), point.format_null(), point.method)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook, with everything escaped."""

    def row(cells: Sequence[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Columns as a pandas DataFrame where pandas is installed, else as a pyarrow Table."""
    try:
        import pandas
    except ImportError:
        import pyarrow

        return pyarrow.table(dict(columns))
    return pandas.DataFrame(dict(columns))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
