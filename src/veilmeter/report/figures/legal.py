"""Curves of the legal measures: the figure of Vauquier et al. 2025, the population, the cumulative match curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.report.figures.style import ATTACKER_COLORS, FORMATS, GRAY, PALETTE, save, styled

if TYPE_CHECKING:
    import altair as alt

    from veilmeter.estimate import Estimate

Curves = Mapping[str, Sequence["Estimate"]]
ROWS = {"singling_out": "Singling Out", "linkability": "Linkability", "one_minus_eer": "1-EER"}
WIDTH, HEIGHT = 230, 170


def save_all(attackers: Mapping[str, Curves], folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Every figure that there are numbers for; `attackers` are the estimates of each, by name."""
    charts = {"legal": legal_curves, "population": population, "ranks": match_curves}
    made: list[Path] = []
    for name, chart in charts.items():
        drawn = chart(attackers)
        if drawn is not None:
            made += save(drawn, folder, name, formats)
    return made


def legal_curves(attackers: Mapping[str, Curves]) -> alt.TopLevelMixin | None:
    """Figure 1 of the paper: a row a measure, a column a conversation length, a curve an attacker, with chance.

    Bands are 95 % intervals. Singling Out has three levels to be held against: the paper's 1/e, that of an estimated
    threshold, and the measured control (dotted, in the attacker's colour).
    """
    import altair as alt

    lengths = sorted({int(one.at["length"]) for c in attackers.values() for m in ROWS for one in c.get(m, [])})
    there = [m for m in ROWS if any(c.get(m) for c in attackers.values())]
    if not there:
        return None
    color = _colors(list(attackers))
    most = max(_n(one) for c in attackers.values() for m in there for one in c.get(m, []))
    least = min(_n(one) for c in attackers.values() for m in there for one in c.get(m, []))
    rows = []
    for measure in there:
        cells = []
        for length in lengths:
            points = _points(attackers, measure, length)
            cells.append(
                _cell(points, _levels(attackers, measure, length), color, least, most).properties(
                    width=WIDTH,
                    height=HEIGHT,
                    title=f"{ROWS[measure]}, L = {length}",
                )
            )
        rows.append(alt.hconcat(*cells, spacing=18))
    return styled(alt.vconcat(*rows, spacing=14).resolve_scale(color="shared", strokeDash="shared"))  # type: ignore[no-any-return]


def _data(values: list[dict[str, Any]]) -> Any:
    import altair as alt

    make: Any = alt.Data
    return make(values=values)


def _n(one: Estimate) -> int:
    return int(one.at["speakers"])


def _points(attackers: Mapping[str, Curves], measure: str, length: int) -> list[dict[str, Any]]:
    found = []
    for name, curves in attackers.items():
        for one in curves.get(measure, []):
            if one.at["length"] == length:
                low, high = one.interval or (one.value, one.value)
                found.append(
                    {
                        "attacker": name,
                        "speakers": _n(one),
                        "value": one.value,
                        "low": low,
                        "high": high,
                        "level": "attack",
                    }
                )
    return found


def _levels(attackers: Mapping[str, Curves], measure: str, length: int) -> list[dict[str, Any]]:
    """What knowing nothing gives: chance, and for Singling Out the paper's level and the measured control."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, curves in attackers.items():
        for one in curves.get(measure, []):
            if one.at["length"] != length:
                continue
            n = _n(one)
            if one.null is not None:
                null = 0.5 if measure == "one_minus_eer" else one.null
                found.setdefault(("chance", n), {"level": "chance", "attacker": "", "speakers": n, "value": null})
            if measure == "singling_out":
                found.setdefault(
                    ("1/e", n), {"level": "chance in the paper (1/e)", "attacker": "", "speakers": n, "value": exp(-1)}
                )
        if measure == "singling_out":
            for one in curves.get("control", []):
                if one.at["length"] == length:
                    found[(f"control {name}", _n(one))] = {
                        "level": "control", "attacker": name, "speakers": _n(one), "value": one.value,
                    }  # fmt: skip
    return list(found.values())


def _cell(points: list[dict[str, Any]], levels: list[dict[str, Any]], color: Any, least: int, most: int) -> Any:
    import altair as alt

    x = alt.X(
        "speakers:Q",
        scale=alt.Scale(type="log", domain=[least, max(most, least + 1)], nice=False),
        axis=alt.Axis(title="speakers", format="~s", tickCount=5, grid=False, labelOverlap=True),
    )
    y = alt.Y("value:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title=None, format="%", tickCount=5))
    dash = alt.StrokeDash(
        "level:N",
        title="level",
        scale=alt.Scale(
            domain=["chance", "chance in the paper (1/e)", "control"], range=[[5, 3], [1.5, 2.5], [2, 1.5]]
        ),
    )
    data = _data(points)
    tip = [alt.Tooltip("attacker:N"), alt.Tooltip("speakers:Q", format=","), alt.Tooltip("value:Q", format=".3f"),
           alt.Tooltip("low:Q", format=".3f"), alt.Tooltip("high:Q", format=".3f")]  # fmt: skip
    band = alt.Chart(data).mark_area(opacity=0.16).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
    line = alt.Chart(data).mark_line(strokeWidth=2).encode(x=x, y=y, color=color)
    dots = alt.Chart(data).mark_point(filled=True, size=26, opacity=1).encode(x=x, y=y, color=color, tooltip=tip)
    plain = [one for one in levels if not one["attacker"]]
    own = [one for one in levels if one["attacker"]]
    layers: list[Any] = [
        alt.Chart(_data(plain)).mark_line(strokeWidth=1.4, color=GRAY).encode(x=x, y=y, strokeDash=dash)
    ]
    if own:
        layers.append(alt.Chart(_data(own)).mark_line(strokeWidth=1.4).encode(x=x, y=y, strokeDash=dash, color=color))
    return alt.layer(*layers, band, line, dots)


def _colors(names: list[str]) -> Any:
    """Attackers keep their colours in every figure; other names take what is left of the palette."""
    import altair as alt

    free = [c for c in PALETTE if c not in {ATTACKER_COLORS.get(name) for name in names}]
    spare = iter(free * (1 + len(names) // max(len(free), 1)))
    hues = [ATTACKER_COLORS[name] if name in ATTACKER_COLORS else next(spare) for name in names]
    return alt.Color(
        "attacker:N",
        title="attacker",
        scale=alt.Scale(domain=names, range=hues),
        legend=alt.Legend(symbolOpacity=1, symbolSize=70, symbolType="circle"),
    )


def population(attackers: Mapping[str, Curves]) -> alt.TopLevelMixin | None:
    """Measured Linkability, and beyond the gap what the model extrapolates, with its interval; a column a length."""
    import altair as alt

    key = "population_linkability"
    lengths = sorted({int(one.at["length"]) for c in attackers.values() for one in c.get(key, [])})
    if not lengths:
        return None
    color = _colors(list(attackers))
    cells = []
    for length in lengths:
        measured = _points(attackers, "linkability", length)
        beyond = _points(attackers, key, length)
        joined = [
            {**one, "level": "extrapolated"}
            for name in attackers
            for one in sorted([p for p in measured if p["attacker"] == name], key=lambda p: float(p["speakers"]))[-1:]
            + [p for p in beyond if p["attacker"] == name]
        ]
        x = alt.X("speakers:Q", scale=alt.Scale(type="log", nice=False),
                  axis=alt.Axis(title="people", format="~s", tickCount=6, grid=False, labelOverlap=True))  # fmt: skip
        y = alt.Y(
            "value:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="Linkability", format="%", tickCount=5)
        )
        one, far, link = (_data(v) for v in (measured, beyond, joined))
        layers = [
            alt.Chart(one).mark_area(opacity=0.16).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color),
            alt.Chart(one).mark_line(strokeWidth=2).encode(x=x, y=y, color=color),
            alt.Chart(link).mark_line(strokeWidth=1.5, strokeDash=[4, 3]).encode(x=x, y=y, color=color),
            alt.Chart(far).mark_rule(strokeWidth=1.5).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color),
            alt.Chart(far).mark_point(size=50, strokeWidth=2, fill="white").encode(
                x=x, y=y, color=color, tooltip=[alt.Tooltip("speakers:Q", format=","), "value:Q", "low:Q", "high:Q"]),
        ]  # fmt: skip
        cells.append(
            alt.layer(*layers).properties(width=WIDTH + 90, height=HEIGHT + 30, title=f"L = {length} (dashed: model)")
        )
    return styled(alt.hconcat(*cells, spacing=18).resolve_scale(color="shared"))  # type: ignore[no-any-return]


def match_curves(attackers: Mapping[str, Curves]) -> alt.TopLevelMixin | None:
    """How often the right person is among the k best; a column a length, dashed: chance."""
    import altair as alt

    lengths = sorted({int(one.at["length"]) for c in attackers.values() for one in c.get("cmc", [])})
    if not lengths:
        return None
    color = _colors(list(attackers))
    cells = []
    for length in lengths:
        points = [
            {"attacker": name, "k": one.at["k"], "value": one.value, "low": (one.interval or (one.value,) * 2)[0],
             "high": (one.interval or (one.value,) * 2)[1], "chance": one.null}
            for name, curves in attackers.items() for one in curves.get("cmc", []) if one.at["length"] == length
        ]  # fmt: skip
        x = alt.X(
            "k:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(title="k best", grid=False, tickCount=6)
        )
        y = alt.Y("value:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="found", format="%", tickCount=5))
        data = _data(points)
        layers = [
            alt.Chart(data).mark_line(strokeDash=[5, 3], color=GRAY, strokeWidth=1.4).encode(x=x, y=alt.Y("chance:Q")),
            alt.Chart(data).mark_area(opacity=0.16).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color),
            alt.Chart(data).mark_line(strokeWidth=2, point=True).encode(x=x, y=y, color=color),
        ]
        cells.append(alt.layer(*layers).properties(width=WIDTH + 90, height=HEIGHT + 30, title=f"L = {length}"))
    return styled(alt.hconcat(*cells, spacing=18).resolve_scale(color="shared"))  # type: ignore[no-any-return]
