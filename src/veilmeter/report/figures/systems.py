"""Figures of several systems: privacy against use, curves side by side, and the ranking of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from veilmeter.core.colors import BLUE, GRAY
from veilmeter.core.estimate import Estimate, unit_text
from veilmeter.metrics.measure import better_direction, measure_behind
from veilmeter.report.figures import style
from veilmeter.report.figures.page import WORDS_ALONE, Figure, curves_figure, save_figures
from veilmeter.report.figures.similarity import name_layers, name_rows, scatter
from veilmeter.report.figures.typesetting import Typesetting
from veilmeter.report.release import extrapolations
from veilmeter.report.rows import linking_of_all
from veilmeter.results.compare import ComparedRun, read_runs, short_names
from veilmeter.results.model import Results
from veilmeter.results.people import text_floor_curve
from veilmeter.results.run_folder import RunLike
from veilmeter.results.system_table import SystemTable

AXIS_MARGIN = 0.06  # of what is shown, on either side


def system_figures(systems: Mapping[str, Results]) -> list[Figure]:
    """The first one leads the page: privacy against use, or privacy alone where use was not measured. None where the
    runs are not one each, as in a table of groups."""
    if not systems:
        return []
    first = _trade_off(systems) or _risks(systems)
    return [figure for figure in (first, _linkability(systems), _distinctness(systems)) if figure is not None]


def save_system_figures(
    runs: Sequence[RunLike | ComparedRun],
    out: str | Path,
    *,
    formats: Iterable[str] = style.FORMATS,
    setting: Typesetting | None = None,
) -> list[str]:
    """The figures of these runs as files in `out`, each with its data as CSV; their names.

    Parameters
    ----------
    runs : sequence of Assessment, Results or path
        The runs.
    out : str or Path
        The folder for the figures.
    formats : iterable of {"svg", "png", "pdf"}
        The forms in which each is written.
    setting : Typesetting, optional
        Width and font, for print.

    Returns
    -------
    list of str
        The names of the figures.

    Raises
    ------
    InputError
        If a run can't be read.

    Examples
    --------
    >>> save_system_figures(["runs/b1", "runs/b2"], "figures")  # doctest: +SKIP
    ['risks', 'linkability']
    """
    read = read_runs(runs)
    names = short_names([run.name for run in read])
    drawn = system_figures({name: run.results for name, run in zip(names, read, strict=True)})
    save_figures(drawn, out, formats, setting)
    return [figure.id for figure in drawn]


def ranking_figure(table: SystemTable) -> Figure | None:
    """The systems by the figure that ranks them, with bars that join those that do not differ significantly (after the
    critical-difference diagrams of Demšar 2006); nothing where they are not ranked."""
    column = table.ranking_column
    if column is None:
        return None
    points = {
        name: cell.estimate
        for name, cell in zip(table.systems, column.cells, strict=True)
        if cell.estimate is not None and math.isfinite(cell.estimate.value)
    }
    if len(points) < 2:
        return None
    import altair as alt

    rows: list[dict[str, Any]] = []
    for name, point in points.items():
        low, high = point.interval or (point.value, point.value)
        rows.append({"system": name, "value": point.value, "low": low, "high": high})
    ends = [min(row["low"] for row in rows), max(row["high"] for row in rows)]
    step = 0.03 * (ends[1] - ends[0]) or 1.0
    bars: list[dict[str, Any]] = [
        {"system": name, "group": "abcdefghijklmnopqrstuvwxyz"[number % 26], "place": ends[1] + (number + 2) * step}
        for number, names in enumerate(column.alike)
        for name in names
        if len(names) > 1
    ]
    scale = alt.Scale(
        domain=[ends[0] - step, max([ends[1] + step, *(row["place"] + step for row in bars)])], nice=False
    )
    unit = next(iter(points.values())).with_(value=0.0).format_value().lstrip("-0. ")
    direction = f", {column.better} is better" if column.better != "neither" else ""
    title = f"{column.label} ({unit}{direction})" if unit else f"{column.label}{direction}"
    ticks = [tick for tick in _ticks(*ends) if ends[0] <= tick <= ends[1]]
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(values=ticks))
    y = alt.Y("system:N", title=None, sort=list(points), axis=alt.Axis(labelLimit=220))
    base, joined = alt.Chart(style.table(rows)), alt.Chart(style.table(bars))
    line = {"x": alt.X("place:Q", scale=scale), "y": y, "detail": "group:N"}
    chart = alt.layer(
        base.mark_rule().encode(x=alt.X("low:Q", scale=scale, title=title), x2="high:Q", y=y),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, tooltip=["system:N", *(alt.Tooltip(f"{key}:Q", format=".3~f") for key in ("value", "low", "high"))]
        ),
        *([joined.mark_line(strokeWidth=3, color=GRAY, point=alt.OverlayMarkDef(color=GRAY, size=30)).encode(**line)] if bars else []),
    ).properties(width=640, height=24 * len(points))  # fmt: skip
    groups = "; ".join(", ".join(names) for names in column.alike if len(names) > 1)
    return Figure(
        "ranking",
        f"Systems by {column.label}",
        "The best system is on top; lines are 95 % intervals. A gray bar joins systems no two of which differ significantly "
        f"(paired by speaker where that is possible, Holm's rule over {len(column.pairs)} pairs).",
        "; ".join(f"{name}: {point.format_value()}" for name, point in points.items())
        + f". Not significantly different: {groups or 'none'}.",
        chart,
    )  # fmt: skip


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, four to eight of them.

    >>> _ticks(3.0, 41.0)
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = min((factor * size for factor in (1, 2, 5, 10)), key=lambda width: abs(width - rough))
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _linkability(systems: Mapping[str, Results]) -> Figure | None:
    worst = {
        name: results.attackers[results.criteria["linking"].attacker].estimates
        for name, results in systems.items()
        if "linking" in results.criteria and results.criteria["linking"].attacker in results.attackers
    }
    floor = next(filter(None, (text_floor_curve(results.channels) for results in systems.values())), [])
    beyond = {name: extrapolations(systems[name]).get(systems[name].criteria["linking"].attacker, []) for name in worst}
    figure = curves_figure(worst, "linkability", who="system", floor=floor, beyond=beyond)
    return figure and Figure(
        figure.id,
        "Linkability by the strongest attacker",
        "Each line is a system under the attacker who links most. Lines near the dashed one, what guessing achieves, are good."
        + (f" {WORDS_ALONE}" if floor else ""),
        figure.alt,
        figure.chart,
    )  # fmt: skip


def uses(systems: Mapping[str, Results]) -> list[tuple[str, Estimate, Estimate]]:
    """Name, a measure of use that all systems have, and Linkability among everybody by the strongest attacker."""
    shared = [
        name
        for name in next(iter(systems.values())).part("utility").names
        if all(results.part("utility").single(name) is not None for results in systems.values())
    ]
    if not shared or not all("linking" in results.criteria for results in systems.values()):
        return []
    points = [
        (name, results.part("utility").single(shared[0]), linking_of_all(results)) for name, results in systems.items()
    ]
    return [(name, use, link.estimate) for name, use, link in points if use is not None and link is not None]


def pareto_front(points: list[tuple[str, float, float]]) -> list[str]:
    """Systems that no other beats in both (name, use, risk), where a high use and a low risk are good.

    >>> pareto_front([("a", 0.9, 0.5), ("b", 0.5, 0.1), ("c", 0.4, 0.6)])
    ['a', 'b']
    """
    return [
        name
        for name, use, risk in points
        if not any(u >= use and r <= risk and (u > use or r < risk) for other, u, r in points if other != name)
    ]


TRADE_OFF = "trade-off"  # whose limits and baseline the page lets one choose


def _trade_off(systems: Mapping[str, Results]) -> Figure | None:
    points = uses(systems)
    if len(points) < 2:
        return None
    sign = -1 if better_direction(points[0][1]) == "lower" else 1
    front = pareto_front([(name, sign * use.value, link.value) for name, use, link in points])
    rows: list[dict[str, Any]] = []
    for name, use, link in points:
        low_x, high_x = _within_range(use, *(use.interval or (use.value, use.value)))
        low_y, high_y = link.interval or (link.value, link.value)
        rows.append({"system": name, "use": use.value, "linked": link.value, "low_x": low_x, "high_x": high_x,
                     "low_y": low_y, "high_y": high_y, "front": name in front})  # fmt: skip
    in_words = "; ".join(f"{name}: {use.format_value()}, {link.value:.0f} of 100 linked" for name, use, link in points)
    return Figure(
        TRADE_OFF,
        "Privacy against use",
        f"Further down fewer people are found. {_front_words(front)} Crosses are 95 % intervals.",
        in_words + ".",
        _trade_off_chart(rows, points[0][1], sign),
    )


def _front_words(front: Sequence[str]) -> str:
    if len(front) == 1:
        return f"No other system beats {front[0]} in either."
    return f"The dashed line joins the systems that no other beats in both: {', '.join(front)}."


def _trade_off_chart(rows: list[dict[str, Any]], use: Estimate, sign: int) -> Any:
    """The systems; lines at a limit of linked recordings, at a limit of use, and at the figures of a baseline are drawn
    where the page sets these parameters."""
    import altair as alt

    ends = [min(row["low_x"] for row in rows), max(row["high_x"] for row in rows)]
    margin = AXIS_MARGIN * (ends[1] - ends[0]) or 1.0
    left, right = _within_range(use, ends[0] - margin, ends[1] + margin)
    top = min(100.0, 10 * math.ceil((max(row["high_y"] for row in rows) + 5) / 10))
    domains, size = ((left, right), (0.0, top)), (760, 360)
    rows = name_rows(rows, ("use", "linked"), domains, size)
    names, data = [row["system"] for row in rows], style.table(rows)
    base = alt.Chart(data)
    unit = unit_text(use.unit)
    use_title = f"{use.label} ({f'{unit}, ' if unit else ''}{'lower' if sign < 0 else 'higher'} is better)"
    x = alt.X("use:Q", title=use_title, scale=alt.Scale(domain=[left, right], nice=False))
    y = alt.Y(
        "linked:Q",
        title="recordings linked (lower is better)",
        axis=alt.Axis(labelExpr=style.PERCENT),
        scale=alt.Scale(domain=[0, top]),
    )
    color = alt.Color("system:N", legend=None, scale=alt.Scale(domain=names, range=style.hues(names)))
    compared: Any = base
    for key in ("use", "linked"):  # what the baseline has, in every row
        compared = compared.transform_calculate(**{f"_own_{key}": f"datum.system === baseline ? datum.{key} : null"})
        compared = compared.transform_joinaggregate(**{f"_base_{key}": f"max(_own_{key})"})
        against = f"baseline ? format(datum.{key} - datum._base_{key}, '+.1f') : 'none chosen'"
        compared = compared.transform_calculate(**{f"_more_{key}": against})
    named = {"use": use.label, "linked": "recordings linked (%)"}
    tip = ["system:N", *(alt.Tooltip(f"{key}:Q", title=title, format=".1f") for key, title in named.items()),
           *(alt.Tooltip(f"_more_{key}:N", title=f"{title}, to the baseline") for key, title in named.items())]  # fmt: skip
    chosen = base.transform_filter("datum.system === baseline")
    chart = alt.layer(
        base.transform_filter("datum.front").mark_line(color=GRAY, strokeDash=[4, 3]).encode(x=x, y=y),
        *(_limit_line(alt, key, channel) for key, channel in (("limit_use", "x"), ("limit_linked", "y"))),
        *(chosen.mark_rule(color=GRAY, strokeWidth=1).encode(**{axis: place}) for axis, place in (("x", x), ("y", y))),
        base.mark_rule(opacity=0.6).encode(x="low_x:Q", x2="high_x:Q", y="linked:Q", color=color),
        base.mark_rule(opacity=0.6).encode(x="use:Q", y="low_y:Q", y2="high_y:Q", color=color),
        compared.mark_point(filled=True, size=110, opacity=1).encode(x=x, y=y, color=color, tooltip=tip),
        *name_layers(rows, data, ("use", "linked"), domains),
    )
    for name in ("limit_use", "limit_linked", "baseline"):
        chart = chart.add_params(alt.param(name=name, value=None))
    return chart.properties(width=size[0], height=size[1])


RISKS = "risks"


def _risks(systems: Mapping[str, Results]) -> Figure | None:
    """The systems by how many recordings the strongest attacker links, which is all there is without measures of use."""
    import altair as alt

    found = {name: linking_of_all(results) for name, results in systems.items()}
    points = {name: linking.estimate for name, linking in found.items() if linking is not None}
    if len(points) < 2:
        return None
    order = sorted(points, key=lambda name: points[name].value)
    rows: list[dict[str, Any]] = []
    for name in order:
        low, high = points[name].interval or (points[name].value, points[name].value)
        row = {"system": name, "linked": points[name].value, "low": low, "high": high, "guessing": points[name].null}
        rows.append({**row, "reliable": systems[name].verdict.trustworthy})
    base = alt.Chart(style.table(rows))
    axis = alt.Axis(labelExpr=style.PERCENT)
    x = alt.X("linked:Q", title="recordings linked (lower is better)", axis=axis, scale=alt.Scale(domain=[0, 100]))
    y = alt.Y("system:N", title=None, sort=order, axis=alt.Axis(labelLimit=260))
    tip = ["system:N", *(alt.Tooltip(f"{key}:Q", format=".1f") for key in ("linked", "low", "high", "guessing"))]
    chart = alt.layer(
        base.mark_tick(color=GRAY, thickness=2, size=16).encode(x="guessing:Q", y=y),
        _limit_line(alt, "limit_linked", "x"),
        base.mark_rule(strokeWidth=3, opacity=0.45, color=BLUE).encode(x=alt.X("low:Q"), x2="high:Q", y=y),
        base.mark_point(size=80, opacity=1, color=BLUE, strokeWidth=2).encode(
            x=x, y=y, tooltip=tip, fill=alt.condition("datum.reliable", alt.value(BLUE), alt.value("white"))
        ),
    ).add_params(alt.param(name="limit_linked", value=None))
    doubted = " Hollow: these figures can't be relied on yet." if not all(row["reliable"] for row in rows) else ""
    return Figure(
        RISKS,
        "Recordings linked by the strongest attacker",
        f"The lowest risk is on top. Lines are 95 % intervals; the gray tick is guessing.{doubted}",
        "; ".join(f"{name}: {points[name].value:.0f} of 100 linked" for name in order) + ".",
        chart.properties(width=640, height=26 * len(rows)),
    )


def _limit_line(alt: Any, name: str, channel: str) -> Any:
    """A line at the value of a parameter; without data, so that it is not in the CSV."""
    line = alt.Chart(alt.sequence(0, 1)).transform_calculate(limit=name).transform_filter("isValid(datum.limit)")
    return line.mark_rule(color=style.LIMIT, strokeDash=[9, 3, 2, 3], strokeWidth=1.8, clip=True, aria=False).encode(
        **{channel: "limit:Q"}
    )


def _within_range(estimate: Estimate, low: float, high: float) -> tuple[float, float]:
    """Cut off where the measure ends: no share of words is below 0."""
    entry = measure_behind(estimate)
    return (low, high) if entry is None else (max(low, entry.low), min(high, entry.high))


def _distinctness(systems: Mapping[str, Results]) -> Figure | None:
    points = []
    for name, results in systems.items():
        deid, g_vd = (results.part("similarity").single(measure) for measure in ("deid", "g_vd"))
        if deid is not None and g_vd is not None and math.isfinite(deid.value) and math.isfinite(g_vd.value):
            points.append((name, deid, g_vd))
    if len(points) < 2:
        return None
    in_words = "; ".join(f"{name}: DeID {d.value:.1f} %, G_VD {g.value:.1f} dB" for name, d, g in points)
    return Figure(
        "deid-gvd",
        "Protection against distinctness",
        "To the right people are better hidden, further up the anonymized voices stay more distinct from each other. Which of the "
        "two matters depends on the use.",
        in_words + ".",
        scatter(points).properties(width=640, height=340),
    )  # fmt: skip
