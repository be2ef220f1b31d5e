"""Curves of the legal measures: the figure of Vauquier et al. 2025, the population, the cumulative match curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.core.colors import GRAY
from veilmeter.report.figures.style import FORMATS, LIMIT, PERCENT, apply_style, hues, save, table
from veilmeter.report.figures.typesetting import Typesetting

if TYPE_CHECKING:
    import altair as alt

    from veilmeter.core.estimate import Estimate

Curves = Mapping[str, Sequence["Estimate"]]
ROWS = {"singling_out": "Singling Out", "linkability": "Linkability", "one_minus_eer": "1-EER"}
WIDTH, HEIGHT = 230, 170
MOST_POINTS = 40  # of a curve; where it has every N' it is a line

# Kinds of points of a curve; their words in a legend; their dashes.
MEASURED, CONTROL, CHANCE, GUESSING, BEYOND, LIMIT_KIND, FLOOR = (
    "measured", "control", "chance", "guessing", "extrapolated", "limit", "words alone")  # fmt: skip
PAPER = "chance in the paper (1/e)"
WORDS = {CONTROL: "control of that attacker", BEYOND: "extrapolated by a model"}
LEVELS = (CHANCE, PAPER, CONTROL)  # of the paper's figure
DASHES = {
    MEASURED: [1, 0],
    CONTROL: [3, 2],
    CHANCE: [5, 3],
    GUESSING: [5, 3],
    PAPER: [1.5, 2.5],
    BEYOND: [2, 3],
    LIMIT_KIND: [9, 3, 2, 3],
    FLOOR: [1, 2],
}


def save_all(
    attackers: Mapping[str, Curves],
    folder: str | Path,
    formats: Sequence[str] = FORMATS,
    setting: Typesetting | None = None,
) -> list[Path]:
    """Every figure that there are numbers for; `attackers` are the estimates of each, by name."""
    charts = {"legal": legal_curves, "population": population, "ranks": match_curves}
    files: list[Path] = []
    for name, chart in charts.items():
        drawn = chart(attackers)
        if drawn is not None:
            files += save(drawn, folder, name, formats, setting)
    return files


@dataclass(frozen=True, slots=True)
class Look:
    """How a row of curves is drawn: the paper's figure and the report's page differ in no more than this."""

    width: int = WIDTH
    height: int = HEIGHT
    x_title: str = "speakers"
    y_title: str | None = None
    limit: float | None = None
    bottom: bool = False  # the legend is below the figure, for a page that may be narrow


def legal_curves(attackers: Mapping[str, Curves]) -> alt.TopLevelMixin | None:
    """Figure 1 of the paper: one row per measure, one column per conversation length, one curve per attacker.

    Bands are 95 % intervals. Singling Out has three levels to be held against: the paper's 1/e, that of an estimated
    threshold, and the measured control of each attacker (dashed, in the attacker's color).
    """
    import altair as alt

    tables = {measure: curve_rows(attackers, measure) for measure in ROWS}
    there = {measure: rows for measure, rows in tables.items() if rows}
    if not there:
        return None
    counts = sorted({row["speakers"] for rows in there.values() for row in rows})
    panels = [
        curve_panels(rows, list(attackers), title=ROWS[measure] + ", L = {}", counts=counts)
        for measure, rows in there.items()
    ]
    return apply_style(alt.vconcat(*panels, spacing=14).resolve_scale(color="shared", strokeDash="shared"))  # type: ignore[no-any-return]


def curve_rows(
    attackers: Mapping[str, Curves], measure: str, *, levels: Sequence[str] = LEVELS, beyond: str = ""
) -> list[dict[str, Any]]:
    """A table of a measure's curves, one row per point; `kind` says whether it was measured, is a level to hold
    it against (`levels`), or was extrapolated (the estimates called `beyond`).

    Chance is the same for all attackers, and there once; the control is each attacker's own.
    """
    rows: list[dict[str, Any]] = []
    shared: dict[tuple[str, int, int], dict[str, Any]] = {}
    for name, curves in attackers.items():
        points = curves.get(measure, [])
        rows += [_row(name, estimate, MEASURED) for estimate in points]
        rows += [_row(name, estimate, BEYOND) for estimate in (curves.get(beyond, []) if beyond else [])]
        if measure == "singling_out" and CONTROL in levels:
            rows += [_row(name, estimate, CONTROL) for estimate in curves.get("control", [])]
        for estimate in points:
            null = 50.0 if measure == "one_minus_eer" else estimate.null
            levels_shown = {CHANCE: null, GUESSING: null, PAPER: 100 * exp(-1) if measure == "singling_out" else None}
            for level, value in levels_shown.items():
                if level in levels and value is not None:
                    at = {"speakers": _n(estimate), "length": int(estimate.at["length"])}
                    shared.setdefault((level, at["length"], at["speakers"]), _level(level, value, **at))
    return rows + list(shared.values())


def _level(kind: str, value: float, *, speakers: int, length: int) -> dict[str, Any]:
    return {"attacker": "", "speakers": speakers, "length": length, "value": value, "low": None, "high": None,
            "kind": kind}  # fmt: skip


def floor_rows(points: Sequence[Estimate]) -> list[dict[str, Any]]:
    """What words alone give away, as a level to hold attackers against."""
    return [_level(FLOOR, point.value, speakers=_n(point), length=int(point.at.get("length", 1))) for point in points]


def _row(attacker: str, point: Estimate, kind: str) -> dict[str, Any]:
    low, high = point.interval or (None, None)
    return {"attacker": attacker, "speakers": _n(point), "length": int(point.at.get("length", 1)), "value": point.value,
            "low": low, "high": high, "kind": kind}  # fmt: skip


def _n(estimate: Estimate) -> int:
    return int(estimate.at["speakers"])


def curve_panels(
    rows: list[dict[str, Any]],
    names: Sequence[str],
    *,
    title: str | Callable[[int], str],
    counts: Sequence[int] = (),
    look: Look = Look(),  # noqa: B008 (frozen)
) -> Any:
    """The rows of `curve_rows` as panels, one per conversation length; `names` are the attackers in their order.

    All panels have the same people on their axis, those of `counts` or of the rows.
    """
    import altair as alt

    rows = list(rows)
    lengths = sorted({row["length"] for row in rows})
    counts = counts or sorted({row["speakers"] for row in rows})
    if look.limit is not None:
        rows += [_level(LIMIT_KIND, look.limit, speakers=n, length=length) for length in lengths for n in _ends(counts)]
    kinds = [kind for kind in DASHES if any(row["kind"] == kind for row in rows)]
    data = table(rows)  # one table for all panels: it is written once, and so is its CSV
    cells = []
    for number, length in enumerate(lengths):
        named = title.format(length) if isinstance(title, str) else title(length)
        y_title = look.y_title if number == 0 else None
        cell = _cell(data, length, kinds, _colors(names, bottom=look.bottom), counts, y_title, look)
        cells.append(cell.properties(width=look.width, height=look.height, title=named))
    return alt.hconcat(*cells, spacing=18).resolve_scale(color="shared", strokeDash="shared")


def _ticks(counts: Sequence[int]) -> list[int]:
    """Every number of people, or round ones where there are many.

    >>> _ticks(range(2, 131))
    [2, 5, 10, 20, 50, 100, 130]
    """
    if len(counts) <= MOST_POINTS:
        return list(counts)
    least, most = counts[0], counts[-1]
    rounded = [step * 10**power for power in range(len(str(most))) for step in (1, 2, 5)]
    return sorted({least, most, *(n for n in rounded if least < n < most)})


def _ends(counts: Sequence[int]) -> tuple[int, int]:
    return counts[0], counts[-1]


def _cell(
    data: Any, length: int, kinds: Sequence[str], color: Any, counts: Sequence[int], y_title: str | None, look: Look
) -> Any:
    """Bands, lines and points of one panel; levels lie below what was measured."""
    import altair as alt

    least, most = _ends(counts)
    x = alt.X(
        "speakers:Q",
        scale=alt.Scale(type="log", domain=[least, max(most, least + 1)], nice=False),
        axis=alt.Axis(
            title=look.x_title, values=_ticks(counts), format="~s", grid=False, labelOverlap="greedy", labelFlush=True
        ),
    )
    y = alt.Y("value:Q", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(title=y_title, tickCount=5, labelExpr=PERCENT))
    dashes: list[Any] = [DASHES[kind] for kind in kinds]
    dash = alt.StrokeDash(
        "kind:N",
        title=None,
        sort=kinds,
        scale=alt.Scale(domain=kinds, range=dashes),
        legend=_legend(
            bottom=look.bottom,
            symbolStrokeColor=GRAY,
            labelExpr=_words(WORDS),
            values=[kind for kind in kinds if kind != LIMIT_KIND],  # which is named where it is drawn
        ),
    )
    tip = [alt.Tooltip("attacker:N"), alt.Tooltip("kind:N"), alt.Tooltip("speakers:Q", format=","),
           alt.Tooltip("value:Q", format=".1f"), alt.Tooltip("low:Q", format=".1f"),
           alt.Tooltip("high:Q", format=".1f")]  # fmt: skip

    def of(*wanted: str) -> Any:
        only = " || ".join(f"datum.kind === '{kind}'" for kind in wanted)
        return alt.Chart(data).transform_filter(f"datum.length === {length} && ({only})").encode(x=x, y=y)

    layers = [of(CHANCE, GUESSING, PAPER).mark_line(strokeWidth=1.6, color=GRAY).encode(strokeDash=dash)]
    known = of(MEASURED).transform_filter("isValid(datum.low)")
    layers.append(known.mark_area(opacity=0.14).encode(y=alt.Y("low:Q"), y2="high:Q", color=color))
    if CONTROL in kinds:
        layers.append(of(CONTROL).mark_line(strokeWidth=1.4).encode(strokeDash=dash, color=color))
        layers.append(of(CONTROL).mark_point(size=16, strokeWidth=1.2, opacity=1).encode(color=color, tooltip=tip))
    layers.append(of(MEASURED).mark_line(strokeWidth=2).encode(strokeDash=dash, color=color))
    if FLOOR in kinds:
        layers.append(of(FLOOR).mark_line(strokeWidth=3, color=GRAY).encode(strokeDash=dash))
    if len(counts) <= MOST_POINTS:
        layers.append(of(MEASURED).mark_point(filled=True, size=28, opacity=1).encode(color=color, tooltip=tip))
    if BEYOND in kinds:
        layers += _continuation(of, dash, color, tip)
    if LIMIT_KIND in kinds:
        line = of(LIMIT_KIND)
        layers.append(line.mark_line(strokeWidth=1.8, color=LIMIT).encode(strokeDash=dash))
        label = line.transform_filter(f"datum.speakers === {most}").mark_text(
            align="right", dy=-7, dx=-2, color=LIMIT, text=f"limit {look.limit:g} %"
        )
        layers.append(label)
    return alt.layer(*layers)


def _continuation(of: Callable[..., Any], dash: Any, color: Any, tip: list[Any]) -> list[Any]:
    """The extrapolation of a model; its line starts at the last measured point, without a gap."""
    import altair as alt

    joined = (
        of(MEASURED, BEYOND)
        .transform_calculate(reach=f"datum.kind === '{MEASURED}' ? datum.speakers : 0")
        .transform_joinaggregate(end="max(reach)", groupby=["attacker"])
        .transform_filter(f"datum.kind === '{BEYOND}' || datum.speakers === datum.end")
        .transform_calculate(kind=f"'{BEYOND}'")
    )
    fan = joined.transform_filter("isValid(datum.low)")
    return [
        fan.mark_area(opacity=0.1).encode(y=alt.Y("low:Q"), y2="high:Q", color=color),
        joined.mark_line(strokeWidth=1.5).encode(strokeDash=dash, color=color),
        of(BEYOND).mark_point(size=30, strokeWidth=1.5, fill="white", opacity=1).encode(color=color, tooltip=tip),
    ]


def _words(words: Mapping[str, str]) -> str:
    """A legend's labels in words that need no explanation."""
    choices = " : ".join(f"datum.label === '{key}' ? '{value}'" for key, value in words.items())
    return f"{choices} : datum.label"


def _legend(*, bottom: bool, **more: Any) -> Any:
    import altair as alt

    place: dict[str, Any] = (
        {"orient": "bottom", "direction": "horizontal", "columns": 6, "labelLimit": 420} if bottom else {}
    )
    return alt.Legend(symbolType="stroke", symbolOpacity=1, symbolSize=180, **place, **more)


def _colors(names: Sequence[str], *, bottom: bool = False) -> Any:
    import altair as alt

    return alt.Color(
        "attacker:N",
        title=None if bottom else "attacker",
        sort=list(names),
        scale=alt.Scale(domain=list(names), range=hues(names)),
        legend=_legend(bottom=bottom),
    )


def population(attackers: Mapping[str, Curves]) -> alt.TopLevelMixin | None:
    """Measured Linkability, and beyond the gap what a model says, with its interval; one column per length."""
    key = "population_linkability"
    if not any(curves.get(key) for curves in attackers.values()):
        return None
    look = Look(width=WIDTH + 90, height=HEIGHT + 30, x_title="people", y_title="Linkability")
    rows = curve_rows(attackers, "linkability", levels=(), beyond=key)
    return apply_style(curve_panels(rows, list(attackers), title="L = {} (dotted: model)", look=look))  # type: ignore[no-any-return]


def match_curves(attackers: Mapping[str, Curves]) -> alt.TopLevelMixin | None:
    """How often the right person is among the k best; one column per length, dashed: chance."""
    import altair as alt

    lengths = sorted({int(estimate.at["length"]) for c in attackers.values() for estimate in c.get("cmc", [])})
    if not lengths:
        return None
    color = _colors(list(attackers))
    cells = []
    for length in lengths:
        points = [
            {"attacker": name, "k": point.at["k"], "value": point.value,
             "low": (point.interval or (point.value,) * 2)[0],
             "high": (point.interval or (point.value,) * 2)[1], "chance": point.null}
            for name, curves in attackers.items() for point in curves.get("cmc", []) if point.at["length"] == length
        ]  # fmt: skip
        x = alt.X(
            "k:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(title="k best", grid=False, tickCount=6)
        )
        y = alt.Y(
            "value:Q", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(title="found", tickCount=5, labelExpr=PERCENT)
        )
        data = table(points)
        layers = [
            alt.Chart(data).mark_line(strokeDash=[5, 3], color=GRAY, strokeWidth=1.4).encode(x=x, y=alt.Y("chance:Q")),
            alt.Chart(data).mark_area(opacity=0.16).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color),
            alt.Chart(data).mark_line(strokeWidth=2, point=True).encode(x=x, y=y, color=color),
        ]
        cells.append(alt.layer(*layers).properties(width=WIDTH + 90, height=HEIGHT + 30, title=f"L = {length}"))
    return apply_style(alt.hconcat(*cells, spacing=18).resolve_scale(color="shared"))  # type: ignore[no-any-return]
