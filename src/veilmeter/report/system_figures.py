"""Several systems in one figure each: the worst attacker's Linkability, privacy against use, DeID against G_VD."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from veilmeter.core.colors import GRAY
from veilmeter.core.estimate import Estimate
from veilmeter.metrics.measure import better_direction, measure_of
from veilmeter.report.figure import Figure, save_figures
from veilmeter.report.figures import style
from veilmeter.report.figures.similarity import scatter
from veilmeter.report.figures.typesetting import Typesetting
from veilmeter.report.section_figures import curves_figure
from veilmeter.results.compare import read_runs
from veilmeter.results.model import Results

AXIS_MARGIN = 0.06  # of what is shown, on either side


def system_figures(systems: Mapping[str, Results]) -> list[Figure]:
    makers = (_linkability, _trade_off, _distinctness)
    return [figure for maker in makers if (figure := maker(systems)) is not None]


def save_system_figures(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    formats: Iterable[str] = style.FORMATS,
    setting: Typesetting | None = None,
) -> list[str]:
    """The figures of the runs in these folders as files in `out`, each with its data as CSV; their names."""
    drawn = system_figures({run.name: run.results for run in read_runs(folders)})
    save_figures(drawn, out, formats, setting)
    return [figure.id for figure in drawn]


def _linkability(systems: Mapping[str, Results]) -> Figure | None:
    worst = {
        name: results.attackers[results.criteria["linking"].attacker].estimates
        for name, results in systems.items()
        if "linking" in results.criteria and results.criteria["linking"].attacker in results.attackers
    }
    figure = curves_figure(worst, "linkability", who="system")
    return figure and Figure(
        figure.id,
        "Linkability by the strongest attacker",
        "Each line is a system under the attacker who links most. Lines near the dashed one, what guessing achieves, are good.",
        figure.alt,
        figure.chart,
    )  # fmt: skip


def _uses(systems: Mapping[str, Results]) -> list[tuple[str, Estimate, Estimate]]:
    """Name, a measure of use that all systems have, and the worst Linkability."""
    shared = [
        name
        for name in next(iter(systems.values())).part("utility").names
        if all(results.part("utility").single(name) is not None for results in systems.values())
    ]
    if not shared or not all("linking" in results.criteria for results in systems.values()):
        return []
    points = [(name, results.part("utility").single(shared[0]), results.criteria["linking"].estimate)
              for name, results in systems.items()]  # fmt: skip
    return [(name, use, link) for name, use, link in points if use is not None]


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


def _trade_off(systems: Mapping[str, Results]) -> Figure | None:
    points = _uses(systems)
    if len(points) < 2:
        return None
    import altair as alt

    sign = -1 if better_direction(points[0][1]) == "lower" else 1
    front = pareto_front([(name, sign * use.value, link.value) for name, use, link in points])
    rows: list[dict[str, Any]] = []
    for name, use, link in points:
        low_x, high_x = _within_range(use, *(use.interval or (use.value, use.value)))
        low_y, high_y = link.interval or (link.value, link.value)
        rows.append({"system": name, "use": use.value, "linked": link.value, "low_x": low_x, "high_x": high_x,
                     "low_y": low_y, "high_y": high_y, "front": name in front})  # fmt: skip
    names = [name for name, _, _ in points]
    base = alt.Chart(style.table(rows))
    use_title = f"{points[0][1].label} ({'lower' if sign < 0 else 'higher'} is better)"
    ends = [min(row["low_x"] for row in rows), max(row["high_x"] for row in rows)]
    margin = AXIS_MARGIN * (ends[1] - ends[0]) or 1.0
    domain = list(_within_range(points[0][1], ends[0] - margin, ends[1] + margin))
    x = alt.X("use:Q", title=use_title, scale=alt.Scale(domain=domain, nice=False))
    y = alt.Y(
        "linked:Q",
        title="recordings linked (lower is better)",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
    color = alt.Color("system:N", legend=None, scale=alt.Scale(domain=names, range=style.hues(names)))
    chart = alt.layer(
        base.transform_filter("datum.front").mark_line(color=GRAY, strokeDash=[4, 3]).encode(x=x, y=y),
        base.mark_rule(opacity=0.6).encode(x="low_x:Q", x2="high_x:Q", y="linked:Q", color=color),
        base.mark_rule(opacity=0.6).encode(x="use:Q", y="low_y:Q", y2="high_y:Q", color=color),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=x, y=y, color=color, tooltip=["system:N", "use:Q", "linked:Q"]
        ),
        base.mark_text(align="left", dx=9, dy=-9, fontSize=11).encode(x=x, y=y, text="system:N", color=color),
    ).properties(width=640, height=340)
    in_words = "; ".join(
        f"{name}: {use.format_value()}, {100 * link.value:.0f} of 100 linked" for name, use, link in points
    )
    return Figure(
        "trade-off",
        "Privacy against use",
        "Further down fewer people are found. The dashed line joins the systems that no other beats in both: "
        f"{', '.join(front)}. Crosses are 95 % intervals.",
        in_words + ".",
        chart,
    )


def _within_range(estimate: Estimate, low: float, high: float) -> tuple[float, float]:
    """Cut off where the measure ends: no share of words is below 0."""
    entry = measure_of(estimate)
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
