"""The figures of a page: section by section, and several systems in one figure each.

A figure is a chart, how to read it, words for those who can't see it, and its data.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.colors import BLUE, GRAY
from veilmeter.core.estimate import Estimate, Estimates, unit_text
from veilmeter.core.files import make_folder, plain, write_text
from veilmeter.core.text import csv_cell
from veilmeter.metrics.measure import better_direction, label_of, measure_behind
from veilmeter.report.figures import legal, style
from veilmeter.report.figures.similarity import name_layers, name_rows, scatter
from veilmeter.report.figures.typesetting import Typesetting
from veilmeter.report.release import extrapolations
from veilmeter.report.rows import linking_of_all
from veilmeter.results.compare import ComparedRun, read_runs, short_names
from veilmeter.results.model import AttackerResult, Results
from veilmeter.results.people import text_floor_curve
from veilmeter.results.run_folder import RunLike
from veilmeter.results.system_table import SystemTable
from veilmeter.wording.english.page import recordings_each

WIDE = 850  # of a figure that takes the page's width


@dataclass(frozen=True, eq=False)
class Figure:
    """`chart` is Altair's or its finished specification (large ones take seconds to convert), `caption` says how to
    read it and what is good, `alt` replaces it."""

    id: str
    title: str
    caption: str
    alt: str
    chart: Any

    @property
    def spec(self) -> dict[str, Any]:
        chart: dict[str, Any] = plain(
            self.chart if isinstance(self.chart, dict) else style.apply_style(self.chart).to_dict(validate=False)
        )
        chart.get("config", {}).pop("background", None)  # the page's own shows through
        return chart


def save_figures(
    figures: Iterable[Figure],
    folder: str | Path,
    formats: Iterable[str] = style.FORMATS,
    setting: Typesetting | None = None,
) -> None:
    """Every figure as files, and its data as CSV."""
    wanted = tuple(formats)
    for figure in figures:
        chart = figure.chart if isinstance(figure.chart, dict) else style.apply_style(figure.chart)
        style.save(chart, folder, figure.id, wanted, setting)
        write_text(make_folder(folder) / f"{figure.id}.csv", csv_of(figure.spec))


def csv_of(spec: Mapping[str, Any]) -> str:
    """A figure's data; tables with the same columns are one."""
    by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for table in _tables(spec):
        unfolded = [row for stored in table for row in _unfold(stored)]
        rows = [{key: value for key, value in row.items() if not key.startswith("_")} for row in unfolded]
        by_columns.setdefault(tuple(dict.fromkeys(key for row in rows for key in row)), []).extend(rows)
    out = io.StringIO()
    for number, (keys, rows) in enumerate(by_columns.items()):
        out.write("\n" if number else "")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(keys)
        writer.writerows([csv_cell(row.get(key, "")) for key in keys] for row in rows)
    return out.getvalue()


def _tables(node: Any) -> list[list[dict[str, Any]]]:
    """Every table of data in a specification, in their order."""
    if isinstance(node, list):
        return [table for part in node for table in _tables(part)]
    if not isinstance(node, dict):
        return []
    own = [
        *node.get("datasets", {}).values(),
        node.get("data", {}).get("values") if isinstance(node.get("data"), dict) else None,
    ]
    below = [table for key, part in node.items() if key not in ("datasets", "data") for table in _tables(part)]
    return [rows for rows in own if isinstance(rows, list) and rows] + below


def _unfold(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A table may be stored by columns: lists side by side, and what is the same in every row once."""
    lists = [value for value in row.values() if isinstance(value, list)]
    if not lists:
        return [row]
    return [
        {key: value[at] if isinstance(value, list) else value for key, value in row.items()}
        for at in range(len(lists[0]))
    ]


# --- the technical part, section by section

LN10 = math.log(10)
NOTHING_HEARD = "has heard nothing (perfect privacy)"

WORDS_ALONE = "The dotted line is what the words alone link, which no change of the voice can hide."
_CURVES = {
    "linkability": (
        "Each line is an attacker, each panel an amount of speech per person; bands are 95 % intervals. Further right the attacker "
        "must choose among more people. Lines near the gray dashed one, what guessing achieves, are good; a line that stays high to "
        "the right is not.",
        "people to choose from",
        "recordings linked to the right person",
    ),
    "singling_out": (
        "How often a rule made from one voice fits exactly one of N people. Each solid line is an attacker, the dashed line of the same "
        "color is that attacker's control, which knows nothing about anybody; some controls coincide. A solid line on its dashed one "
        "is good; what lies above it is the risk.",
        "people in the data",
        "rules that isolate one person",
    ),
}  # fmt: skip


def section_figures(section: str, results: Results, limit: float | None) -> list[Figure]:
    """The figures of one section, in their order; none where nothing was measured."""
    curves = {name: attacker.estimates for name, attacker in results.attackers.items()}
    if section == "linking":
        floor, beyond = text_floor_curve(results.channels), extrapolations(results)
        figures = [curves_figure(curves, "linkability", limit=limit, floor=floor, beyond=beyond)]
    elif section == "singling_out":
        figures = [curves_figure(curves, "singling_out")]
    elif section == "disclosure":
        figures = [_profiles(results.attackers)]
    elif section == "inversion":
        figures = [_learning_curve(results)]
    elif section == "verification":
        figures = [_det(results.attackers)]
    else:
        figures = []
    return [figure for figure in figures if figure is not None]


def curves_figure(
    estimates: Mapping[str, Estimates],
    name: str,
    *,
    limit: float | None = None,
    who: str = "attacker",
    floor: Sequence[Estimate] = (),
    beyond: Mapping[str, Sequence[Estimate]] | None = None,
) -> Figure | None:
    """The curves of all attackers (or systems), drawn as in the paper's figure; `floor` is what words alone link,
    `beyond` what a model says of larger numbers of people."""
    curves: dict[str, dict[str, Sequence[Estimate]]] = {
        attacker: {key: points.points(key) for key in (name, "control")} for attacker, points in estimates.items()
    }
    for attacker, points in (beyond or {}).items():
        if attacker in curves:
            curves[attacker][legal.BEYOND] = points
    level = legal.GUESSING if name == "linkability" else legal.CONTROL
    rows = legal.curve_rows(curves, name, levels=(level,), beyond=legal.BEYOND)
    measured = [row for row in rows if row["kind"] == legal.MEASURED]
    if not measured:
        return None
    rows += legal.floor_rows(floor)
    caption, x_title, y_title = _CURVES[name]
    panels = len({row["length"] for row in rows})
    look = legal.Look(
        width=(WIDE - 18 * (panels - 1)) // panels - (30 if panels > 1 else 0),
        height=280,
        x_title=x_title,
        y_title=y_title,
        limit=limit,
        bottom=True,
    )
    shown = [attacker for attacker in curves if any(row["attacker"] == attacker for row in measured)]
    chart = legal.curve_panels(rows, shown, title=recordings_each, look=look)
    title = label_of(name)
    if floor:
        caption += f" {WORDS_ALONE}"
    if limit is not None:
        caption += f" The magenta line is the limit, {limit:g} %."
    if any(row["kind"] == legal.BEYOND for row in rows):
        caption += (
            " Dotted continuations are extrapolated by a model; the fan around them is their 95 % interval. They end where "
            "it leaves more than half of the people open."
        )
    alt_text = f"{title} against the number of people. " + _in_words(measured, rows, who)
    return Figure(name.replace("_", "-"), title, caption, alt_text, chart)


def _in_words(measured: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], who: str) -> str:
    """Each attacker's figure among all people and with most speech, against its level, for those who can't see it."""
    length, people = max(row["length"] for row in measured), max(row["speakers"] for row in measured)
    parts = []
    for row in measured:
        if (row["length"], row["speakers"]) == (length, people):
            own = [
                level
                for level in rows
                if level["kind"] in (legal.CONTROL, legal.GUESSING)
                and level["attacker"] in ("", row["attacker"])
                and (level["length"], level["speakers"]) == (length, people)
            ]
            against = f" ({own[0]['kind']} {own[0]['value']:.0f} %)" if own else ""
            parts.append(f"{row['attacker']} {row['value']:.0f} %{against}")
    return f"Among {people:,} people with {recordings_each(length)}, by {who}: " + "; ".join(parts) + "."


def _attacker_color(
    order: Sequence[str], title: str | None = None, nobody: str = "", *, shown: Mapping[str, str] | None = None
) -> Any:
    """Attackers keep their color in every figure; gray is the attacker who knows nothing. The legend uses the names in `shown`."""
    import altair as alt

    domain = [*order, nobody] if nobody else list(order)
    return alt.Color(
        "attacker:N",
        title=title,
        sort=domain,
        scale=alt.Scale(domain=domain, range=[*style.hues(order), GRAY][: len(domain)]),
        legend=alt.Legend(
            orient="bottom",
            columns=2 if shown or any("(" in name for name in order) else 6,
            labelExpr=f"({json.dumps(dict(shown))})[datum.label] || datum.label" if shown else "datum.label",
            labelLimit=420,
            symbolType="stroke",
            symbolOpacity=1,
            symbolSize=180,
        ),
    )


def _profiles(attackers: Mapping[str, AttackerResult]) -> Figure | None:
    """ECE profiles of all attackers, with the paper's legend (D_ECE, l_w, tag)."""
    from veilmeter.report.figures.scores import ece_lines

    rows: list[dict[str, Any]] = []
    order: dict[str, str] = {}
    in_words = []
    prior: Mapping[str, Sequence[float]] = {}
    for name, attacker in attackers.items():
        d_ece, l_w = attacker.estimates.single("d_ece"), attacker.estimates.single("l_w")
        if not attacker.profile or d_ece is None or l_w is None:
            continue
        tag = l_w.extra.get("tag", "?")
        prior = prior or attacker.profile
        order[name] = f"{name} ({d_ece.value:.3f} bit, {l_w.value:.2f}, {tag})"
        in_words.append(f"{name} {d_ece.value:.3f} bit, tag {tag}")
        rows += _profile_rows(name, attacker.profile, "pav")
    if not rows:
        return None
    rows += _profile_rows(NOTHING_HEARD, prior, "prior")
    chart = ece_lines(
        rows,
        "attacker",
        _attacker_color(list(order), "attacker (D_ECE, l_w, tag)", NOTHING_HEARD, shown=order),
        dashed=NOTHING_HEARD,
        titles=("what the attacker believed before (log10 of the odds)", "uncertainty that remains (bit)"),
    )
    return Figure(
        "zebra",
        "What a comparison leaves unknown",
        "The dashed curve is an attacker who has heard nothing: perfect privacy. The further a line lies below it, the more an "
        "average comparison gives away; the area between them, taken over all prior beliefs, is D_ECE. Lines on the dashed "
        "curve are good.",
        "ECE profiles: " + "; ".join(in_words) + ".",
        chart.properties(width=WIDE, height=320),
    )  # fmt: skip


def _profile_rows(name: str, profile: Mapping[str, Sequence[float]], curve: str) -> list[dict[str, Any]]:
    pairs = zip(profile["log_odds"], profile[curve], strict=True)
    return [{"attacker": name, "log_odds": round(x / LN10, 4), "ece": round(y, 5)} for x, y in pairs]


def _det(attackers: Mapping[str, AttackerResult]) -> Figure | None:
    """Misses against false alarms of all attackers, on normal-deviate axes."""
    from veilmeter.report.figures.scores import det_lines, det_rows

    rows: list[dict[str, Any]] = []
    in_words = []
    for name, attacker in attackers.items():
        if not attacker.det:
            continue
        eer = attacker.estimates.single("eer")
        if eer is not None:
            in_words.append(f"{name} EER {eer.format_value()} ({eer.method})")
        rows += det_rows(attacker.det["fpr"], attacker.det["fnr"], attacker=name)
    if not rows:
        return None
    order = list(dict.fromkeys(row["attacker"] for row in rows))
    titles = ("false pairs accepted (%)", "true pairs missed (%)")
    return Figure(
        "det",
        "Detection error trade-off",
        "Each line is an attacker who moves their threshold. Towards the lower left they recognize people; lines in the upper "
        "right, through 50 and 50, are guessing. The equal error rate is where a line, or its convex hull, crosses the diagonal.",
        "Detection error trade-off curves: " + "; ".join(in_words) + ".",
        det_lines(rows, "attacker", _attacker_color(order), titles=titles).properties(width=460, height=420),
    )  # fmt: skip


def _learning_curve(results: Results) -> Figure | None:
    from veilmeter.report.figures.inversion import curve

    part = results.parts.get("inversion")
    if part is None:
        return None
    # Chance does not depend on how much the attacker knows; results say it with the finished attack.
    chance = {point.at.get("gender"): point.null for point in part.estimates.points("top1")}
    stored = part.estimates.points("learning_curve") or [
        Estimate.from_json("top1", form, label=label_of("top1")) for form in part.details.get("learning_curve", [])
    ]
    points = [p if p.null is not None else p.with_(null=chance.get(p.at.get("gender"))) for p in stored]
    if len(points) < 2:
        return None
    best = max(points, key=lambda point: point.value)
    return Figure(
        "learning-curve",
        "What undoing it takes",
        "How many recordings the attacker must know in both forms (left to right) to undo the anonymizer for the others. A line "
        "that stays at the dashed one, chance, is good; one that rises early means that a few known pairs suffice. The band is the range "
        "over several draws of the known recordings.",
        f"Top-1 after inversion against the number of known pairs; highest {best.value:.1f} % with {best.at.get('pairs')} pairs.",
        curve(points, "pairs", title="recordings known in both forms", logarithmic=True).properties(
            width=WIDE - 60, height=280, title=""
        ),
    )  # fmt: skip


# --- several systems: the worst attacker's Linkability, privacy against use, DeID against G_VD

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
    ['linkability']
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
