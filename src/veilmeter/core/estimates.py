"""Estimates: what was measured, as a collection that can be filtered, sorted, made a table, shown and drawn."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from veilmeter.core.estimate import Estimate
from veilmeter.core.extras import need

COLUMNS = ("measure", "label", "value", "unit", "low", "high", "null", "method", "better")


class Estimates(Sequence[Estimate]):
    """An immutable sequence of estimates, of one measure (a curve) or of many.

    `estimates["eer"]` is the one `Estimate` of that name, or, where a measure has several points (`at`), the curve as
    `Estimates`. Iteration gives every point.

    >>> curve = Estimates([Estimate(name="linkability", value=v, at={"speakers": n, "length": 1})
    ...                    for n, v in [(20, 0.4), (5, 0.7)]])
    >>> both = curve + Estimates([Estimate(name="eer", value=30.0, unit="percent")])
    >>> both["eer"].value, both.names
    (30.0, ('linkability', 'eer'))
    >>> [point.value for point in both["linkability"].sorted("speakers")]
    [0.7, 0.4]
    >>> both.filter(speakers=20).only().value
    0.4
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Estimate] = ()) -> None:
        self._items = tuple(items)

    @classmethod
    def of(cls, measured: Mapping[str, Estimate | Sequence[Estimate]]) -> Estimates:
        """What a measure gives by name: an estimate, or the points of a curve."""
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
        """What a result that was made from these depends on."""
        return self._items

    def __add__(self, other: Iterable[Estimate]) -> Estimates:
        return Estimates((*self._items, *other))

    def __repr__(self) -> str:
        return f"Estimates({len(self)}: {', '.join(self.names)})"

    def __str__(self) -> str:
        return "\n".join(str(point) for point in self._items)

    @property
    def names(self) -> tuple[str, ...]:
        """The measures, in order, once each."""
        return tuple(dict.fromkeys(point.name for point in self._items))

    def points(self, name: str) -> Estimates:
        """Every point of a measure, none, one or many."""
        return Estimates(point for point in self._items if point.name == name)

    def single(self, name: str) -> Estimate | None:
        """The estimate of a measure that has one value; None where it was not measured or is a curve."""
        points = self.points(name)
        return points[0] if len(points) == 1 else None

    def only(self) -> Estimate:
        """The one estimate that is left after filtering."""
        if len(self._items) != 1:
            raise ValueError(f"there are {len(self._items)} estimates, not one")
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

    def sorted(self, *keys: str, reverse: bool = False) -> Estimates:
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
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells_of(point)) + "</tr>"
            for point in self._items
        )
        head = "".join(f"<th>{title}</th>" for title in ("measure", "at", "value", "95 % interval", "chance", "method"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

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


def cells_of(point: Estimate) -> tuple[str, str, str, str, str, str]:
    """An estimate as the cells of a table."""
    at = ", ".join(f"{key} {value}" for key, value in point.at.items())
    return (point.label, at, point.format_value(), point.format_interval(), point.format_null(), point.method)


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
